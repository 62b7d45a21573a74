"""Hostile arguments give an exception, never a crash: huge and negative sizes, wrong types, dimensions out of range."""

import contextlib
import pathlib
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest

import rushlight as rl

HUGE = 2**62
VALUES = (
    0, 1, -1, 2, HUGE, -HUGE, 2**63 - 1, -(2**63), 2**64, 0.5, float("nan"), float("inf"), 1j, None, True, "x", b"x", (), [], [1, 2],
    [-1], (HUGE, HUGE), [None], object(), rl.float32, rl.int64, rl.device("cpu"), slice(None), {}, {"a": 1}, np.zeros(3), np.float32(2), ...,
)  # fmt: skip
EXPECTED = (
    RuntimeError, TypeError, ValueError, IndexError, OverflowError, NotImplementedError, AttributeError, AssertionError, MemoryError,
    KeyError, ZeroDivisionError, BufferError,
)  # fmt: skip
# Ops that wait, print, or change the process as a whole.
SKIP = {"_set_library_path", "set_num_threads", "_set_default_dtype", "_set_grad_enabled", "_set_inference", "_set_anomaly", "_set_sites",
        "_push_saved_hooks", "_pop_saved_hooks", "_set_torch_function", "_swap_overriding", "_pop_function_mode", "_set_torch_dispatch", "_set_dispatch_modes", "_dispatching", "_swap_bodies", "_new_wrapper", "_memory_set_limit", "_set_memory_limit", "_set_cache_limit"}  # fmt: skip


def tensors():
    return [
        rl.zeros(()), rl.ones(3), rl.ones(2, 3), rl.zeros(0, 3), rl.arange(3), rl.ones(2, 2, dtype=rl.bool), rl.ones(3, dtype=rl.complex64),
        rl.ones(4, dtype=rl.float16), rl.ones(1).expand(5), rl.ones(2, 3, 4).transpose(0, 2), rl.ones(2, 3, requires_grad=True),
    ]  # fmt: skip


def attempt(function, args, kwargs):
    with contextlib.suppress(EXPECTED):
        function(*args, **kwargs)


def names():
    from rushlight import _C

    return sorted(n for n in _C.ops if n not in SKIP and not n.startswith(("_memory", "_set_")))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shard", range(8))
def test_random_arguments(shard):
    from rushlight import _C

    rl.memory.set_limit(1 << 30)
    try:
        for name in names()[shard::8]:
            rng = random.Random(name)
            function = _C.ops[name]
            for _ in range(60):
                pool = tensors()
                args = [
                    rng.choice(pool) if rng.random() < 0.6 else rng.choice(VALUES)
                    for _ in range(rng.randint(0, 5))
                ]
                if args and rng.random() < 0.8:
                    args[0] = rng.choice(pool)
                attempt(function, args, {})
    finally:
        rl.memory.set_limit(0)
        rl.set_default_dtype(rl.float32)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (RuntimeError, lambda: rl.empty(HUGE, HUGE)),
        (RuntimeError, lambda: rl.zeros(-1)),
        (RuntimeError, lambda: rl.zeros(2**40)),
        (RuntimeError, lambda: rl.ones(3).expand(HUGE, HUGE, 3)),
        (RuntimeError, lambda: rl.ones(3).as_strided((HUGE,), (1,))),
        (RuntimeError, lambda: rl.ones(3).as_strided((2,), (-1,))),
        (IndexError, lambda: rl.ones(3).sum(HUGE)),
        (IndexError, lambda: rl.ones(3)[5]),
        (IndexError, lambda: rl.ones(3)[rl.tensor([7])]),
        (IndexError, lambda: rl.ones(3)[:, None, 0, 0]),
        (ValueError, lambda: rl.ones(3)[::-1]),
        (RuntimeError, lambda: rl.ones(3).gather(0, rl.tensor([-1]))),
        (RuntimeError, lambda: rl.ones(3).view(2, 2)),
        (RuntimeError, lambda: rl.ones(3).reshape(-1, -1)),
        (RuntimeError, lambda: rl.ones(2, 3) @ rl.ones(2, 3)),
        (TypeError, lambda: rl.ones(3) + "x"),
        (TypeError, lambda: rl.add(rl.ones(3))),
        (TypeError, lambda: rl.add(rl.ones(3), 1, bogus=2)),
        (RuntimeError, lambda: rl.tensor([1, 2], dtype=rl.uint8).fill_(1000)),
        (RuntimeError, lambda: rl.ones(2).repeat(HUGE, HUGE)),
        (RuntimeError, lambda: rl.combinations(rl.ones(3), 2**40, with_replacement=True)),
        (RuntimeError, lambda: rl.combinations(rl.ones(1), HUGE, with_replacement=True)),
        (RuntimeError, lambda: rl.combinations(rl.ones(1000), 500)),
    ],
)
def test_named(kind, call):
    with pytest.raises(kind):
        call()


META = rl.ones(2, 3, device="meta")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (TypeError, lambda: rl.cat(rl.ones(2, 2))),
        (TypeError, lambda: rl.stack(rl.ones(2, 2))),
        (RuntimeError, lambda: rl.complex(rl.ones(2), rl.ones(2), out=rl.empty(2, dtype=rl.complex128))),
        (RuntimeError, lambda: rl.gather(rl.ones(2), 0, rl.tensor([0]), out=rl.empty(1, dtype=rl.float64))),
        (RuntimeError, lambda: rl.ones(2, 3).tensor_split(HUGE)),
        (RuntimeError, lambda: rl.zeros(0).chunk(HUGE)),
        (RuntimeError, lambda: rl.ones(2, 3).set_(META)),
        (ValueError, lambda: rl.pca_lowrank(rl.ones(4, 4), niter=HUGE)),
        (ValueError, lambda: float(rl.ones(3))),
        (NotImplementedError, lambda: rl.unique_consecutive(META)),
        (NotImplementedError, lambda: rl.allclose(META, META)),
        (NotImplementedError, lambda: rl.equal(META, META)),
        (RuntimeError, lambda: rl.ones(3).gather(0, rl.ones(2, dtype=rl.long, device="meta"))),
        (RuntimeError, lambda: rl.ones(3).index_select(0, rl.ones(2, dtype=rl.long, device="meta"))),
        (NotImplementedError, lambda: META.tolist()),
    ],
)
def test_refused(kind, call):
    with pytest.raises(kind):
        call()


def test_answers_at_the_edges():
    assert rl.nn.functional.instance_norm(rl.zeros(2, 0, 3)).shape == (2, 0, 3)
    assert rl.nonzero_static(META, size=4).shape == (4, 2)
    values = [2**63 + 5, 2**64 - 1, 0]
    wide = rl.tensor(values, dtype=rl.uint64)
    assert wide.tolist() == values and wide[0].item() == values[0] and int(wide[1]) == values[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rl.as_tensor(np.float32(1.5)).dtype == rl.float32


def test_sweep():
    """A sample of tools/hostile.py, in processes that may die without taking the tests along."""
    tool = pathlib.Path(__file__).resolve().parents[2] / "tools" / "hostile.py"
    command = [sys.executable, str(tool), "--calls", "3", "--seed", "11", "--timeout", "120"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


class Emptying:
    """An index that empties the list it stands in."""

    def __init__(self, owner):
        self.owner = owner

    def __index__(self):
        self.owner.clear()
        return 1

    __float__ = __int__ = __index__


@pytest.mark.parametrize(
    "call",
    [
        rl.zeros,
        rl.tensor,
        rl.ones(2, 3).view,
        rl.ones(2, 3).sum,
        rl.ones(2, 3).permute,
        rl.ones(2, 3).__getitem__,
        rl.Size,
    ],
)
def test_lists_that_change_while_they_are_read(call):
    for rest in ([2, 3], [[1], [2]], [slice(None), 1], [None, 0]):
        owner = []
        owner += [1, Emptying(owner), *rest]
        attempt(call, (owner,), {})


def test_a_truth_that_raises():
    class Untrue:
        def __bool__(self):
            raise ValueError("neither")

    with pytest.raises(ValueError, match="neither"):
        rl.nn.Parameter(rl.ones(2), Untrue())


def test_lists_that_hold_themselves():
    own = [1]
    own.append(own)
    for call in (
        lambda: rl.clamp(rl.ones(2), 0, out=[own, 1]),
        lambda: rl.tensor(own),
        lambda: rl.ones(2)[own],
        lambda: rl.zeros(own),
    ):
        with pytest.raises(EXPECTED):
            call()


def test_a_power_that_is_no_integer():
    for n in (float("nan"), 0.5, rl.tensor(float("nan")), "2"):
        with pytest.raises(TypeError, match="int"):
            rl.linalg.matrix_power(rl.eye(2), n)
    assert rl.matrix_power(rl.eye(2) * 2, rl.tensor(3))[0, 0] == 8
