"""Compiled functions are replayed, and nobody can tell: same results to the bit, same state, same errors."""

import random

import pytest
from replay_programs import World, batch, event, program

import rushlight as rl
from rushlight.jit._replay import compiled


def alike(a, b):
    if isinstance(a, rl.Tensor):
        assert (
            isinstance(b, rl.Tensor)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and a.stride() == b.stride()
        )
        assert a.requires_grad == b.requires_grad and (a.grad_fn is None) == (b.grad_fn is None)
        assert a.grad_fn is None or a.grad_fn.name() == b.grad_fn.name()
        assert rl.equal(a.isnan(), b.isnan()) and rl.equal(a.nan_to_num(), b.nan_to_num())
    elif isinstance(a, list | tuple):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            alike(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            alike(a[key], b[key])
    else:
        assert a == b or (a != a and b != b)


def outcome(f, x):
    try:
        return f(x), None
    except Exception as error:
        return None, (type(error), str(error).split("\n")[0])


def lockstep(seed, calls=14):
    """Runs a random program in both ways; returns how many replays there were."""
    eager, other = World(seed), World(seed)
    f, g = program(seed, eager), program(seed, other)
    g = compiled(g, g)
    draw = random.Random(seed + 2)
    held = []
    for call in range(calls):
        if draw.random() < 0.25:
            again = draw.getrandbits(32)
            for w in (eager, other):
                rl.manual_seed(again)
                event(random.Random(again), w)
        rl.manual_seed(seed + call)
        x = batch(draw, eager.n)
        before = rl.get_rng_state()
        (one, error), states = outcome(f, x), eager.state()
        rl.set_rng_state(before)
        two, error_too = outcome(g, x)
        where = f"seed {seed}, call {call}"
        assert error == error_too, where
        try:
            alike(one, two)
            if error is None:
                alike(states, other.state())
            for first, second in held:
                alike(first, second)
        except AssertionError as e:
            raise AssertionError(where) from e
        if error is not None:
            break
        if draw.random() < 0.3:
            held.append((one, two))
    return sum(v.figures()["replays"] for v in g._compiler.core.variants)


@pytest.mark.parametrize("part", range(8))
def test_random_programs(part):
    replays = sum(lockstep(seed) > 0 for seed in range(40 * part, 40 * part + 40))
    assert replays >= 10
