"""Ctrl-C while backward or a long op runs."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import rushlight as rl

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")


@pytest.fixture
def handler():
    """Installs a handler of SIGINT for the time of a test."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")
    before = signal.getsignal(signal.SIGINT)
    yield lambda h: signal.signal(signal.SIGINT, h)
    signal.signal(signal.SIGINT, before)


def chain():
    """(leaf, result of some nodes, where the hook of one in the middle sends SIGINT)"""
    x = rl.ones(3, requires_grad=True)
    middle = x * 1
    middle.register_hook(lambda g: signal.raise_signal(signal.SIGINT))
    return x, (middle * 2).sum()


def test_between_the_nodes_of_a_backward(handler):
    handler(signal.default_int_handler)
    x, y = chain()
    with pytest.raises(KeyboardInterrupt):
        y.backward()
    assert x.grad is None
    z = (x * 3).sum()  # the next backward knows nothing of it
    z.backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_handler_of_the_program_runs_between_nodes(handler):
    seen = []
    x, y = chain()
    handler(lambda *_: seen.append(x.grad))
    y.backward()
    assert seen == [None] and x.grad.tolist() == [2, 2, 2]


LONG = """
import os, signal, subprocess, threading, time
import rushlight as torch
torch.set_num_threads({threads})
signal.signal(signal.SIGINT, {handler})
x = torch.rand(3_000_000)
many = x.repeat(8)
m = torch.rand(600, 600) / 300

def pointwise():
    return torch.special.zeta(many + 1.5, many + 2).sum()

def matmuls():
    return m.expand(250, 600, 600) @ m

def matmul():
    return torch.ones(4000, 4000) @ torch.ones(4000, 4000)

def indexed():
    return many[torch.randint(0, len(many), (60_000_000,))]

def drawn():
    return torch.randperm(80_000_000)

def samples():
    return torch.poisson(many * 20)

def totals():
    return many.logcumsumexp(0)

def listed():
    return torch.tensor(x.tolist() * 4)

def chosen():
    return torch.multinomial(x + 0.1, 2_000_000)

def rows():
    return torch.unique((many * 3).int().view(-1, 8), dim=0)

def one_plane():
    return torch.nn.functional.max_pool2d(x[:1_000_000].view(1, 1, 1000, 1000), 41, 1)

def largest():
    return torch.topk(many, 20_000_000)

def prime():
    return torch.fft.fft(many[:4_194_301])

def backward():
    y = x.clone().requires_grad_()
    z = torch.lgamma(y + 1)
    for _ in range(10):
        z = torch.digamma(z.exp())
    z.sum().backward()

def in_place():
    y = x.clone()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        for _ in range(1000):
            y.digamma_()
            y.abs_().add_(1)
            done = y.clone()
    except KeyboardInterrupt:
        pass
    # Whatever was interrupted, no write was left half done: all elements are at the same step.
    z = x.clone()
    for _ in range(1000):
        for step in (lambda: z.digamma_(), lambda: z.abs_(), lambda: z.add_(1)):
            step()
            if torch.equal(z, y):
                print("whole")
                return
def cpu_time(interrupted):
    # What sends the signal is another process: some ops keep the interpreter lock.
    if interrupted:
        sender = subprocess.Popen(["sh", "-c", f"sleep 0.05; kill -INT {{os.getpid()}}"])
    used, start = None, time.process_time()
    try:
        work()
        used = time.process_time() - start
        if interrupted:
            sender.wait()
            time.sleep(10)  # until the signal comes
    except (KeyboardInterrupt, ZeroDivisionError) as e:
        seen.add(type(e).__name__)
    return time.process_time() - start if used is None else used

work, seen = {work}, set()
if {work!r} == "in_place":
    work()
else:
    # Processor time, not the clock, and one early stop is enough: a loaded machine changes neither.
    whole = min(cpu_time(False), cpu_time(False))  # memory is touched for the first time in the first
    for _ in range(5):
        if cpu_time(True) < 0.7 * whole:
            seen.add("early")
        if {handler!r} != "signal.default_int_handler" or "early" in seen:
            break
    print(*sorted(seen))
print(float(torch.ones(100_000).sum()))
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", ["pointwise", "matmuls", "matmul", "backward"])
def test_a_long_op_stops(work, threads):
    assert run(work, threads) == ["KeyboardInterrupt", "early", "100000.0"]


@pytest.mark.parametrize(
    "work",
    [
        "indexed",
        "drawn",
        "samples",
        "totals",
        "listed",
        "chosen",
        "rows",
        "prime",
        "one_plane",
        "largest",
    ],
)
def test_what_one_thread_does_alone_stops(work):
    assert run(work, 1) == ["KeyboardInterrupt", "early", "100000.0"]


def test_a_handler_of_the_program_is_called_after_the_op():
    handler = "lambda *_: 1 / 0"
    assert run("pointwise", 2, handler) == ["ZeroDivisionError", "100000.0"]


def test_writes_in_place_are_not_interrupted():
    assert run("in_place", 2)[-2:] == ["whole", "100000.0"]


def run(work, threads, handler="signal.default_int_handler"):
    code = LONG.format(work=work, threads=threads, handler=handler)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
