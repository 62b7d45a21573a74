"""Shared tensors and spawn."""

import os
import signal
import time

import pytest

import rushlight as rl
from rushlight import multiprocessing as mp


def add_one(queue, tensor):
    tensor.add_(1)
    if queue is not None:
        queue.put(tensor)
        queue.get()  # stay alive until the tensor has been taken


def fail(index, kind):
    if index == 1:
        if kind == "raise":
            raise ValueError("boom")
        if kind == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def write(index, tensor):
    tensor[index] = index + 1


def put_and_wait(queue, event):
    queue.put([rl.arange(5.0), rl.nn.Parameter(rl.ones(2)), rl.ones(0, 3), rl.ones(2, 3).t(), rl.ones(1)[0]])
    event.wait(20)


def test_share_memory_is_seen_by_forked_processes():
    model = rl.nn.Linear(3, 2)
    for p in model.parameters():
        assert not p.is_shared()
    before = [p.tolist() for p in model.parameters()]
    model.share_memory()
    assert all(p.is_shared() for p in model.parameters())
    assert [p.tolist() for p in model.parameters()] == before

    def zero():
        with rl.no_grad():
            for p in model.parameters():
                p.zero_()

    process = mp.get_context("fork").Process(target=zero)
    process.start()
    process.join(20)
    assert process.exitcode == 0
    assert all(bool((p == 0).all()) for p in model.parameters())
    model(rl.ones(1, 3)).sum().backward()
    assert model.weight.grad is not None


def test_queues_share():
    context = mp.get_context("fork")
    queue, event = context.Queue(), context.Event()
    process = context.Process(target=put_and_wait, args=(queue, event))
    process.start()
    numbers, parameter, empty, transposed, scalar = queue.get(timeout=20)
    event.set()
    process.join(20)
    assert numbers.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0] and numbers.is_shared()
    assert isinstance(parameter, rl.nn.Parameter) and parameter.requires_grad
    assert tuple(empty.shape) == (0, 3) and tuple(transposed.shape) == (3, 2) and scalar.item() == 1.0
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf"):
        mp.reductions.reduce_tensor(rl.ones(2, requires_grad=True) * 2)


def test_descriptors_are_closed_with_the_tensor():
    t = rl.ones(1000).share_memory_()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        rl.ones(1000).share_memory_()
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    assert t.is_shared() and t.sum().item() == 1000


def test_start_processes():
    shared = rl.zeros(3).share_memory_()
    mp.start_processes(write, args=(shared,), nprocs=3, start_method="fork")
    assert shared.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "kind, error, text",
    [
        (
            "raise",
            mp.ProcessRaisedException,
            "-- Process 1 terminated with the following error:\n(.|\n)*boom",
        ),
        ("exit", mp.ProcessExitedException, "process 1 terminated with exit code 3"),
        ("kill", mp.ProcessExitedException, "process 1 terminated with signal SIGKILL"),
    ],
)
def test_the_first_failure_ends_all(kind, error, text):
    start = time.monotonic()
    with pytest.raises(error, match=text):
        mp.start_processes(fail, args=(kind,), nprocs=3, start_method="fork")
    assert time.monotonic() - start < 30


def test_spawn():
    shared = rl.zeros(2).share_memory_()
    mp.spawn(write, args=(shared,), nprocs=2)
    assert shared.tolist() == [1.0, 2.0]


def test_strategies():
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError):
        mp.set_sharing_strategy("carrier pigeon")
