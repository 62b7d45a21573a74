"""Calls every op with hostile arguments, in worker processes that may crash, hang or be refused memory, and reports
those that do: `python tools/hostile.py [--calls N] [--seed S] [--only NAME] [--jobs J]`. An exception of an ordinary
class is what a hostile call should get. `--repeat NAME INDEX` makes one call again, in this process."""

import argparse
import inspect
import os
import random
import select
import signal
import subprocess
import sys
import time
import warnings

HUGE = 2**62
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    -5,
    100,
    2**31,
    -(2**31),
    2**40,
    HUGE,
    -HUGE,
    2**63 - 1,
    -(2**63),
    2**64,
    10**30,
)
FLOATS = (0.5, -2.5, 1e30, -1e308, 5e-324, float("nan"), float("inf"), -float("inf"), 1j, complex("nan"))
# Ops that end, block or reconfigure the process.
SKIP = (
    "_set_",
    "_swap_function_mode",
    "_memory",
    "set_num_threads",
    "_push_saved_hooks",
    "_pop_saved_hooks",
    "_install",
    "manual_seed",
)
ORDINARY = (
    RuntimeError, TypeError, ValueError, IndexError, OverflowError, NotImplementedError, AttributeError, AssertionError,
    MemoryError, KeyError, ZeroDivisionError, BufferError, ArithmeticError, Warning,
)  # fmt: skip


class Liar:
    """A sequence whose length, items and numbers are not to be trusted."""

    def __init__(self, length, item=0):
        self.length, self.item = length, item

    def __len__(self):
        return self.length

    def __getitem__(self, at):
        if at > 50:
            raise IndexError("no more")
        return self.item


class Shrinking(list):
    """A list that loses an item each time one is looked at."""

    def __getitem__(self, at):
        value = list.__getitem__(self, at)
        self.clear()
        return value

    def __iter__(self):
        while self:
            yield self.pop()


class Number:
    """Raises, or is of the wrong type, where a number is asked for."""

    def __init__(self, what):
        self.what = what

    def give(self):
        if isinstance(self.what, Exception):
            raise self.what
        return self.what

    __index__ = __int__ = __float__ = __complex__ = __bool__ = __len__ = give


class Truncated(int):
    """An int that says it is another one."""

    def __index__(self):
        return 2**70


class Shrinker:
    """An index that empties the list in which it stands."""

    def __init__(self, owner):
        self.owner = owner

    def __index__(self):
        self.owner.clear()
        return 1


class Overriding:
    """Takes over functions, badly."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise ValueError("not with me")


class NotOverriding:
    __torch_function__ = None


class ArrayLike:
    """Promises an array that is not there."""

    __array_interface__ = {"shape": (2**40,), "typestr": "<f4", "data": (0, False), "version": 3}

    def __array__(self, *args, **kwargs):
        return "no array"


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


DEEP = nested(30000)  # more than a stack of recursive calls holds


def own_item():
    value = [1]
    value.append(value)
    return value


def emptied():
    value = []
    value += [1, Shrinker(value), 2, 3]
    return value


def hostile_objects():
    return (
        Liar(-1), Liar(3), Liar(2**40), Liar(2, None), Liar(2, []), Shrinking([1, 2, 3]), Shrinking([[1], [2]]), emptied(),
        Number(ValueError("hostile")), Number("x"), Number(2**70), Number(-1), Number(None), Truncated(3), Overriding(), NotOverriding(),
        ArrayLike(), nested(60), DEEP, own_item(), [own_item(), 1], (Number(1),) * 3, memoryview(b"abc"), bytearray(3), type, NotImplemented,
    )  # fmt: skip


def hostile_values(rl, np):
    return (
        *hostile_objects(),
        *NUMBERS, *FLOATS, None, True, False, "", "x", "mean", "sum", "none", b"x", (), [], [1, 2], [-1], [0, 0], (HUGE, HUGE),
        [2**31, 2**31], [None], [[1], [2, [3]]], [0.5], ["a"], object(), rl.float32, rl.int64, rl.bool, rl.complex64, rl.float16,
        rl.device("cpu"), rl.device("meta"), slice(None), {}, {"a": 1}, np.zeros(3), np.zeros((0, 2)), np.float32(2), np.int8(-1), ...,
        range(3), [1] * 70, (1,) * 5000, int, lambda *a: a, rl.preserve_format, rl.strided, rl.default_generator, slice(HUGE, -HUGE), slice(None, None, HUGE), slice(0, 2**64),
        slice(None, None, -1), (slice(None), [0, 5]), (None,) * 80, (..., ...), (True, False), (slice(1, None), None, 0), [True, False, True], ([0], [[1]]),
    )  # fmt: skip


def make_tensors(rl):
    return (
        rl.zeros(()), rl.ones(3), rl.ones(2, 3), rl.zeros(0), rl.zeros(0, 3), rl.zeros(2, 0, 3), rl.arange(3), rl.ones(2, 2, dtype=rl.bool),
        rl.ones(3, dtype=rl.complex64), rl.ones(4, dtype=rl.float16), rl.ones(4, dtype=rl.bfloat16), rl.ones(1).expand(5),
        rl.ones(2, 3, 4).transpose(0, 2), rl.ones(2, 3, requires_grad=True), rl.ones(2, 3, dtype=rl.float64, requires_grad=True),
        rl.full((3,), float("nan")), rl.full((2, 2), float("inf")), rl.tensor([-1, 5, HUGE]), rl.tensor([[1, 0], [-7, 2]]),
        rl.full((2,), -(2**63)), rl.tensor([255, 0], dtype=rl.uint8), rl.ones(2, dtype=rl.uint64), rl.ones(2, 3, device="meta"),
        rl.ones(2, 3, 8), rl.ones(1, 2, 5, 5), rl.ones(2, 2, 3, 3), rl.ones(1, 2, 3, 4, 4), rl.ones(1, 1, 1, 1, 1, 1),
        rl.ones(3, 3, dtype=rl.float64), rl.eye(3), rl.tensor(5), rl.tensor(2**40), rl.tensor(-3), rl.tensor(float("nan")),
        rl.tensor([0, 1, 2], dtype=rl.int32), rl.ones(2, 3)[:, ::2], rl.ones(8)[3:5], rl.ones(4, requires_grad=True) * 2,
    )  # fmt: skip


def getitem(input, index):
    return input[index]


def setitem(input, index, value):
    input[index] = value
    return input


def targets(rl):
    """Name -> callable: all registered ops, and what is written in Python beside them."""
    import importlib

    from rushlight import _C

    found = dict(_C.ops)
    for space in (
        "",
        "nn.functional",
        "linalg",
        "fft",
        "special",
        "nn.utils.rnn",
        "nn.init",
        "autograd",
        "sparse",
    ):
        module = importlib.import_module("rushlight" + ("." + space if space else ""))
        for name in dir(module):
            value = getattr(module, name, None)
            if name.startswith("_") or isinstance(value, type) or not callable(value):
                continue
            if not str(getattr(value, "__module__", "")).startswith("rushlight"):
                continue
            found.setdefault(f"{space}.{name}" if space else name, value)
    for name in dir(rl.Tensor):
        value = getattr(rl.Tensor, name)
        if callable(value) and not name.startswith("__") and name not in found:
            found[f"Tensor.{name}"] = value
    found["getitem"], found["setitem"] = getitem, setitem
    stop = {"save", "load", "compile", "seed", "set_default_dtype", "set_default_device", "Tensor.tofile", "set_grad_enabled",
            "use_deterministic_algorithms", "install_as_torch", "uninstall_as_torch", "set_printoptions", "set_default_tensor_type",
            "set_num_interop_threads", "inference_mode", "set_rng_state", "Tensor.share_memory_", "from_file", "set_flush_denormal",
            "set_warn_always", "set_deterministic_debug_mode", "Tensor._make_subclass", "autograd.set_site_recording",
            "autograd.set_grad_enabled"}  # fmt: skip
    return {
        n: f
        for n, f in sorted(found.items())
        if n not in stop and not n.startswith(SKIP) and "autocast" not in n
    }


def parameters(function):
    """The parameters of a call, (name, default) each; a default of `inspect.Parameter.empty` is required."""
    signatures = getattr(function, "_signatures", None)
    if signatures:
        rows = []
        for signature in signatures:
            row, depth, item = [], 0, ""
            for c in signature + ",":
                depth += (c == "(") - (c == ")")
                if c == "," and not depth:
                    name, _, default = item.strip().partition("=")
                    if name and name != "*":
                        row.append((name.removesuffix("..."), default or inspect.Parameter.empty))
                    item = ""
                else:
                    item += c
            rows.append(row)
        return rows
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [[("input", inspect.Parameter.empty), ("a", "0"), ("b", "0")]]
    return [[(p.name, p.default) for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]]


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


def arguments(rl, np, name, function, index, seed):
    rng = random.Random(f"{seed}:{name}:{index}")
    rl.manual_seed(0)
    tensors = make_tensors(rl)
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
    except ORDINARY:
        pass
    check_memory(rl, args)


def worker(options):
    """Makes the calls of some ops, saying before each on stdout which it is."""
    import resource

    import numpy as np

    import rushlight as rl

    warnings.simplefilter("ignore")
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
