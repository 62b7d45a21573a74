"""Calls every op, public function and class with hostile arguments, in worker processes that may crash, hang or be
refused memory, and reports those that do: `python tools/hostile.py [--calls N] [--seed S] [--only NAME] [--jobs J]`.
An exception of an ordinary class is what a hostile call should get; one whose text names something private is a fault too.
Half of the calls get tensors that end at an inaccessible page. `--repeat NAME INDEX` makes one call again, in this process."""

import argparse
import inspect
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
import warnings

from hostile_calls.inputs import Guarded, make_tensors
from hostile_calls.targets import ORDINARY, parameters, targets
from hostile_calls.values import hostile_values

TENSORS = {"input", "other", "self", "weight", "mat", "mat1", "mat2", "vec", "tensor", "x", "y", "a", "A", "B", "index", "mask", "target",
           "source", "src", "indices", "values", "batch1", "batch2", "tensor1", "tensor2", "end", "condition", "query", "key", "value"}  # fmt: skip


def plausible(rng, name, default, tensors):
    if name in TENSORS or name.endswith(("input", "tensor", "output", "weight", "indices")):
        return rng.choice(tensors)
    if name in ("tensors", "operands", "seq"):
        return [rng.choice(tensors) for _ in range(rng.randint(0, 3))]
    if default is not inspect.Parameter.empty and not isinstance(default, str):
        return default
    text = str(default)
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if (
        "size" in name
        or "shape" in name
        or name in ("dims", "sizes", "stride", "padding", "dilation", "repeats")
    ):
        return rng.choice(((2, 3), 1, (1,), 2, [1, 1], (3, 2)))
    if name in ("dim", "dim0", "dim1", "axis"):
        return rng.choice((0, 1, -1))
    return rng.choice((*tensors[:8], 0, 1, 2, 1.0, (1, 1)))


_guarded: list[Guarded] = []


def arguments(rl, np, name, function, index, seed):
    rng = random.Random(f"{seed}:{name}:{index}")
    rl.manual_seed(0)
    if not _guarded:
        _guarded.append(Guarded(rl, np))
    tensors = make_tensors(rl) if rng.random() < 0.5 else _guarded[0].sample(rng)
    values = hostile_values(rl, np)
    any_value = lambda: rng.choice(tensors) if rng.random() < 0.5 else rng.choice(values)  # noqa: E731
    if rng.random() < 0.2:  # no plan at all
        args = [any_value() for _ in range(rng.randint(0, 6))]
        if args and rng.random() < 0.7:
            args[0] = rng.choice(tensors)
        return args, {}
    row = rng.choice(parameters(function))
    args, kwargs = [], {}
    for at, (param, default) in enumerate(row):
        if param == "out" or (at > 0 and default is not inspect.Parameter.empty and rng.random() < 0.4):
            continue
        value = plausible(rng, param, default, tensors)
        if len(args) == at and rng.random() < 0.8:
            args.append(value)
        else:
            kwargs[param] = value
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        if args and (not kwargs or rng.random() < 0.7):
            args[rng.randrange(len(args))] = any_value()
        elif kwargs:
            kwargs[rng.choice(sorted(kwargs))] = any_value()
    if rng.random() < 0.05:
        kwargs[rng.choice(("out", "dtype", "device", "generator", "requires_grad", "bogus"))] = any_value()
    return args, kwargs


def check_memory(rl, value, depth=0):
    """Each tensor must lie inside its storage."""
    if isinstance(value, rl.Tensor):
        if value.layout is not rl.strided or value.device.type == "meta" or not value.numel():
            return
        last = sum((n - 1) * s for n, s in zip(value.shape, value.stride())) + value.storage_offset()
        if last < 0 or (last + 1) * value.element_size() > value.untyped_storage().nbytes():
            raise SystemError(
                f"a result outside its memory: {value.shape} {value.stride()} {value.storage_offset()}"
            )
        if value.numel() <= 1 << 16:
            repr(value.detach())
    elif isinstance(value, tuple | list) and depth < 3:
        for item in value[:100]:
            check_memory(rl, item, depth + 1)


# A message for the caller of a public function: private attributes, and modules that nobody imports, say nothing to him.
PRIVATE = re.compile(r"has no attribute '_[a-z]|unexpected keyword argument '_|\b_C\.ops\b")


def names_internals(error):
    """Whether a message speaks of what the caller neither wrote nor can see."""
    hit = PRIVATE.search(str(error))
    return bool(hit) and "rushlight has no such name" not in str(error)


def make_call(rl, np, name, function, index, seed):
    args, kwargs = arguments(rl, np, name, function, index, seed)
    result = None
    try:
        result = function(*args, **kwargs)
        if inspect.isgenerator(result):
            result = None
        check_memory(rl, result)
        roots = [
            t for t in (result if isinstance(result, tuple | list) else [result]) if isinstance(t, rl.Tensor)
        ]
        for root in roots[:2]:
            if root.requires_grad and root.device.type != "meta" and root.numel() < 1 << 20:
                root.real.sum().backward() if root.is_complex() else root.sum().backward()
    except ORDINARY as error:
        if names_internals(error):
            raise SystemError(f"the message names internals: {type(error).__name__}: {error}") from error
    check_memory(rl, args)


def worker(options):
    """Makes the calls of some ops, saying before each on stdout which it is."""
    import resource

    import numpy as np

    import rushlight as rl

    warnings.simplefilter("ignore")
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # its shadow memory alone is terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rl.memory.set_limit(1 << 30)
    rl.set_num_threads(1)
    devnull = os.open(os.devnull, os.O_WRONLY)
    said = os.dup(1)
    os.dup2(devnull, 1)
    all_targets = targets(rl)
    for item in options.worker.split(","):
        name, start = item.split("@")
        function = all_targets[name]
        for index in range(int(start), options.calls):
            os.write(said, f"{name} {index}\n".encode())
            try:
                make_call(rl, np, name, function, index, options.seed)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                os.write(
                    said,
                    f"! {name} {index} {type(error).__name__}: {error}".replace("\n", " ")[:300].encode()
                    + b"\n",
                )
            rl._C.ops["_set_grad_enabled"](True)
            rl._C.ops["_set_inference"](False)
            rl._C.ops["_set_torch_function"](True)
        os.write(said, f"done {name}\n".encode())


class Job:
    """One worker process and what it still has to do."""

    def __init__(self, options, todo):
        self.options, self.todo, self.last, self.rest = options, todo, None, b""
        self.start()

    def start(self):
        items = ",".join(f"{n}@{i}" for n, i in self.todo.items())
        command = [
            sys.executable,
            __file__,
            "--worker",
            items,
            "--calls",
            str(self.options.calls),
            "--seed",
            str(self.options.seed),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.heard = time.monotonic() + 60  # for its imports

    def poll(self, faults):
        """Reads what the worker said; a dead or silent one is noted and begun again behind the call at fault."""
        ready, _, _ = select.select([self.process.stdout], [], [], 0.2)
        if ready:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if data:
                self.heard = time.monotonic()
                *lines, self.rest = (self.rest + data).split(b"\n")
                for line in lines:
                    self.take(line.decode(), faults)
                return True
            self.process.wait()
            if not self.todo:
                return False
            code = self.process.returncode
            self.blame(faults, signal.Signals(-code).name if code < 0 else f"exit {code}")
        elif time.monotonic() - self.heard > self.options.timeout:
            self.process.kill()
            self.process.wait()
            self.blame(faults, f"hangs (more than {self.options.timeout} s)")
        else:
            return True
        if self.todo:
            self.rest = b""
            self.start()
        return bool(self.todo)

    def take(self, line, faults):
        if line.startswith("! "):
            _, name, index, what = line.split(" ", 3)
            faults.append((name, int(index), what))
            print(f"{name} {index}: {what}", flush=True)
        elif line.startswith("done "):
            del self.todo[line[5:]]
            self.last = None
        else:
            name, index = line.split()
            self.last = (name, int(index))

    def blame(self, faults, what):
        name, index = self.last or (next(iter(self.todo)), 0)
        faults.append((name, index, what))
        print(f"{name} {index}: {what}", flush=True)
        if index + 1 < self.options.calls:
            self.todo[name] = index + 1
        else:
            del self.todo[name]
        self.last = None


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--calls", type=int, default=200, help="calls of each op")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--only", help="ops whose name contains this")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--timeout", type=float, default=20.0, help="seconds for one call")
    p.add_argument("--repeat", nargs=2, metavar=("NAME", "INDEX"))
    p.add_argument("--worker", help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.worker:
        return worker(options)
    import rushlight as rl

    names = [n for n in targets(rl) if not options.only or options.only in n]
    if options.repeat:
        import numpy as np

        name, index = options.repeat[0], int(options.repeat[1])
        function = targets(rl)[name]
        args, kwargs = arguments(rl, np, name, function, index, options.seed)
        shown = [f"{tuple(a.shape)} {a.dtype} {a.device}" if isinstance(a, rl.Tensor) else a for a in args]
        print(name, shown, kwargs, flush=True)
        rl.memory.set_limit(1 << 30)
        return make_call(rl, np, name, function, index, options.seed)
    faults = []
    jobs = [Job(options, dict.fromkeys(names[k :: options.jobs], 0)) for k in range(options.jobs)]
    while jobs:
        jobs = [job for job in jobs if job.poll(faults)]
    print(f"{len(names)} ops, {options.calls} calls each: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
