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
    """Processes started by `spawn(join=False)`."""

    def __init__(self, processes, errors):
        self.processes = processes
        self._errors = errors
        self._waiting = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self):
        return [process.pid for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait; True when all have ended. If one fails the others are ended and its error is raised."""
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
    pass


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """`spawn` with a choice of start method."""
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
    """Run fn(i, *args) in nprocs processes; the first failure ends the others and is raised here."""
    if start_method != "spawn":
        import warnings

        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}). To use a different "
            "start_method use torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
