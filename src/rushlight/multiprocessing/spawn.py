"""`spawn`: run a function in several processes and fail as soon as one of them fails."""

import multiprocessing
import signal
import sys
from multiprocessing import connection

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """The base of the errors of processes that spawn started."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process ended by an exception, whose traceback is the message."""


class ProcessExitedException(ProcessException):
    """A process was killed, or left with an exit code."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(function, index, args, errors):
    """What each process does: a traceback goes back through its own pipe."""
    try:
        function(index, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted, too, and says so
    except Exception:
        import traceback

        errors.send(traceback.format_exc())
        errors.close()
        sys.exit(1)


class ProcessContext:
    """The processes that spawn(join=False) started.

    Args:
        processes (list): of multiprocessing.Process.
        errors (list): the pipes that their errors come from.

    Example:
        >>> context = torch.multiprocessing.start_processes(print, nprocs=1, join=False, start_method="fork")
        >>> while not context.join():
        ...     pass
    """

    def __init__(self, processes, errors):
        self.processes = processes
        self._errors = errors
        self._waiting = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self):
        """The numbers of the processes, by the system's count."""
        return [process.pid for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Waits for a process to end; if one fails, the others are ended and its error is raised.

        Args:
            timeout (float): seconds to wait; None waits for ever. Default: None
            grace_period (float): seconds that the others have before they are killed. Default: None

        Returns:
            True when all have ended.
        """
        if not self._waiting:
            return True
        ready = connection.wait(self._waiting, timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self._waiting.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            return not self._waiting
        self._end_others(grace_period)
        raise self._failure(failed)

    def _end_others(self, grace_period):
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30 if grace_period is None else grace_period)
            if process.is_alive():
                process.kill()
                process.join()

    def _failure(self, index):
        """The exception that tells how a process ended."""
        process = self.processes[index]
        try:
            message = self._errors[index].recv() if self._errors[index].poll() else None
        except EOFError:
            message = None
        if message is not None:
            text = f"\n\n-- Process {index} terminated with the following error:\n{message}"
            return ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            text = f"process {index} terminated with signal {name}"
            return ProcessExitedException(text, index, process.pid, code, name)
        return ProcessExitedException(
            f"process {index} terminated with exit code {code}", index, process.pid, code
        )


class SpawnContext(ProcessContext):
    """The old name of ProcessContext.

    Args:
        processes (list): of multiprocessing.Process.
        errors (list): the pipes that their errors come from.

    Example:
        >>> issubclass(torch.multiprocessing.SpawnContext, torch.multiprocessing.ProcessContext)
        True
    """


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs fn(i, *args) in nprocs processes, which are started as start_method says.

    Args:
        fn (callable): gets the number of its process first.
        args (tuple): the other arguments. Default: ()
        nprocs (int): how many processes. Default: 1
        join (bool): waits for them; False returns a ProcessContext. Default: True
        daemon (bool): whether they end with this process. Default: False
        start_method (str): "spawn", "fork" or "forkserver". Default: "spawn"

    Example:
        >>> total = torch.zeros(2).share_memory_()
        >>> def work(i, total):
        ...     total[i] = i + 1
        >>> torch.multiprocessing.start_processes(work, args=(total,), nprocs=2, start_method="fork")
        >>> total
        tensor([1., 2.])
    """
    context = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, sender), daemon=daemon)
        process.start()
        sender.close()  # the child holds the only other end
        errors.append(receiver)
        processes.append(process)
    running = ProcessContext(processes, errors)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs fn(i, *args) in nprocs fresh processes; the first failure ends the others and is raised here.

    Args:
        fn (callable): a function of an importable module; it gets the number of its process first.
        args (tuple): the other arguments. Default: ()
        nprocs (int): how many processes. Default: 1
        join (bool): waits for them; False returns a ProcessContext. Default: True
        daemon (bool): whether they end with this process. Default: False
        start_method (str): "spawn"; another warns, start_processes takes it. Default: "spawn"

    Example:
        >>> torch.multiprocessing.spawn(divmod, args=(1,), nprocs=1)
    """
    if start_method != "spawn":
        import warnings

        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}). To use a different "
            "start_method use torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
