"""Groups of several processes: stores, collectives, messages, data-parallel training."""

import datetime
import threading

import pytest

import rushlight as rl
import rushlight.distributed as dist
from rushlight.multiprocessing.spawn import start_processes
from rushlight.nn.parallel import DistributedDataParallel

WAIT = datetime.timedelta(seconds=60)


def in_processes(count, work, path):
    """Runs work(rank, count) in a group of forked processes, which meet by a file."""

    def run(rank):
        store = dist.FileStore(path, count)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=count, timeout=WAIT)
        work(rank, count)
        dist.destroy_process_group()

    start_processes(run, nprocs=count, start_method="fork")


def reductions(rank, n):
    for dtype in (rl.float32, rl.bfloat16, rl.int64, rl.complex64):
        x = rl.arange(5).to(dtype) + rank
        dist.all_reduce(x)
        assert x.tolist() == [n * i + n * (n - 1) // 2 for i in range(5)]
    x = rl.ones(300_001) * rank
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    assert (x == n - 1).all()
    x = rl.arange(6.0).reshape(2, 3).t()
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    assert x.tolist() == rl.arange(6.0).reshape(2, 3).t().tolist()
    x = rl.tensor([rank, 1 << rank])
    dist.all_reduce(x, op=dist.ReduceOp.BOR)
    assert x.tolist() == [3 if n > 2 else 1, (1 << n) - 1]
    x = rl.tensor(float(rank))
    dist.reduce(x, 1)
    assert x.item() == (sum(range(n)) if rank == 1 else rank)
    out = rl.zeros(2)
    dist.reduce_scatter_tensor(out, rl.arange(2.0 * n))
    assert out.tolist() == [n * 2.0 * rank, n * (2.0 * rank + 1)]
    with pytest.raises(RuntimeError, match="non-integral dtype"):
        dist.all_reduce(rl.ones(1), op=dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="Invalid scalar type"):
        dist.all_reduce(rl.ones(1, dtype=rl.bool))
    with pytest.raises(TypeError, match="Expected parameter `tensor`"):
        dist.all_reduce(1)


def movements(rank, n):
    own = rl.full((2,), float(rank))
    everyones = [rl.zeros(2) for _ in range(n)]
    dist.all_gather(everyones, own)
    assert [t[0].item() for t in everyones] == list(range(n))
    whole = rl.zeros(n, 2, dtype=rl.float32)
    dist.all_gather_into_tensor(whole, own)
    assert whole[:, 1].tolist() == list(range(n))
    dist.broadcast(own, 1)
    assert own.tolist() == [1, 1]
    part = rl.zeros(1)
    dist.scatter(part, [rl.tensor([10.0 * i]) for i in range(n)] if rank == 0 else None, 0)
    assert part.item() == 10 * rank
    found = [rl.zeros(1) for _ in range(n)] if rank == 2 else None
    work = dist.gather(part, found, 2, async_op=True)
    assert work.wait() and (rank != 2 or [t.item() for t in found] == [10 * i for i in range(n)])
    swapped = rl.zeros(n)
    dist.all_to_all_single(swapped, rl.arange(float(n)) + rank * n)
    assert swapped.tolist() == [i * n + rank for i in range(n)]
    with pytest.raises(RuntimeError, match=r"invalid tensor size at index 0 \(expected \(3\), got \(2\)\)"):
        dist.all_gather([rl.zeros(2)] * n, rl.ones(3))
    with pytest.raises(RuntimeError, match="invalid root rank"):
        dist.broadcast(own, n)
    dist.barrier()


def objects_and_groups(rank, n):
    found = [None] * n
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank * 1000})
    assert [(v["rank"], len(v["text"])) for v in found] == [(i, 1000 * i) for i in range(n)]
    values = [1, "a"] if rank == 0 else [None, None]
    dist.broadcast_object_list(values, 0)
    assert values == [1, "a"]
    mine = [None]
    dist.scatter_object_list(mine, [f"for {i}" for i in range(n)] if rank == 0 else None, 0)
    assert mine == [f"for {rank}"]
    some, ones = dist.new_group([0, 2]), rl.ones(1)
    if rank == 1:
        assert some is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(some) == -1
        with pytest.warns(UserWarning, match="does not belong to the given group"):
            assert dist.all_reduce(ones, group=some) is None
    else:
        dist.all_reduce(ones, group=some)
        assert ones.item() == 2 and dist.get_global_rank(some, 1) == 2 and dist.get_world_size(some) == 2


def messages(rank, n):
    following, before = (rank + 1) % n, (rank - 1) % n
    sent = [dist.isend(rl.tensor([float(rank), tag]), following, tag=tag) for tag in (7, 8)]
    got = rl.zeros(2)
    assert dist.recv(got, before, tag=8) == before and got.tolist() == [before, 8]  # another order of tags
    assert dist.recv(got, tag=7) == before and got.tolist() == [before, 7]
    assert all(work.wait() for work in sent)
    out, into = rl.tensor([rank]), rl.zeros(1, dtype=rl.int64)
    ops = [dist.P2POp(dist.isend, out, following), dist.P2POp(dist.irecv, into, before)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert into.item() == before
    with pytest.raises(ValueError, match="should not be the same as the rank of the current process"):
        dist.send(got, rank)


def mismatch(rank, n):
    with pytest.raises(RuntimeError, match="preamble|closed by peer"):
        dist.all_reduce(rl.ones(3 + 9 * rank))


@pytest.mark.parametrize("work", [reductions, movements, objects_and_groups, messages, mismatch])
def test_three_processes(work, tmp_path):
    in_processes(3, work, tmp_path / "store")
    assert work is mismatch or not (tmp_path / "store").exists()  # the last process removes it


def test_processes_meet_by_an_address():
    """Two groups after one another, as init_method="tcp://..." makes them."""
    server = dist.TCPStore("127.0.0.1", 0, is_master=True)
    free = server.port + 1 if server.port < 65000 else server.port - 1

    def run(rank):
        method = f"tcp://127.0.0.1:{free}"
        dist.init_process_group("gloo", init_method=method, rank=rank, world_size=2, timeout=WAIT)
        x = rl.tensor([rank + 1.0])
        dist.all_reduce(x, op=dist.ReduceOp.PRODUCT)
        assert x.item() == 2 and dist.get_world_size() == 2
        dist.barrier()

    start_processes(run, nprocs=2, start_method="fork")


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "prefix"])
def test_stores(kind, tmp_path):
    make = {
        "hash": dist.HashStore,
        "file": lambda: dist.FileStore(tmp_path / "s"),
        "tcp": lambda: dist.TCPStore("127.0.0.1", 0, is_master=True),
        "prefix": lambda: dist.PrefixStore("p", dist.HashStore()),
    }
    store = make[kind]()
    store.set_timeout(datetime.timedelta(milliseconds=50))
    with pytest.raises(dist.DistStoreError, match="Wait timeout"):
        store.get("a")
    store.set("a", "1")
    assert store.get("a") == b"1" and store.check(["a"]) and not store.check(["a", "b"])
    assert store.add("n", 3) == 3 and store.add("n", -1) == 2 and store.get("n") == b"2"
    assert store.compare_set("k", "", "v") == b"v" and store.compare_set("k", "x", "w") == b"v"
    assert store.compare_set("k", "v", "w") == b"w" and store.compare_set("z", "q", "w") == b"q"
    store.append("k", "!")
    store.multi_set(["x", "y"], ["1", b"\x00"])
    assert store.multi_get(["k", "x", "y"]) == [b"w!", b"1", b"\x00"]
    assert store.delete_key("x") and not store.delete_key("x")
    threading.Timer(0.02, store.set, ("late", "v")).start()
    store.wait(["late"], datetime.timedelta(seconds=20))


def test_how_groups_are_refused(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AssertionError, match="Unknown backend type xyz"):
        dist.init_process_group("xyz", rank=0, world_size=1, store=dist.HashStore())
    with pytest.raises(AssertionError, match="rank must be non-negative"):
        dist.init_process_group("gloo", world_size=1, store=dist.HashStore())
    with pytest.raises(RuntimeError, match="No rendezvous handler for foo://"):
        dist.init_process_group("gloo", init_method="foo://x", rank=0, world_size=1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="environment variable MASTER_ADDR expected"):
        dist.init_process_group("gloo", rank=0)
    assert not dist.is_initialized()
    with pytest.raises(AssertionError, match="cannot be None"):
        dist.destroy_process_group()


class Branches(rl.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = rl.nn.Linear(3, 4), rl.nn.Linear(3, 4), rl.nn.BatchNorm1d(4)

    def forward(self, x, which=0):
        return self.norm((self.a, self.b)[which](x))


def averages(rank, n):
    rl.manual_seed(rank)  # the first process' parameters count
    net = rl.nn.Linear(3, 2)
    wrapped, x = DistributedDataParallel(net), rl.arange(12.0).reshape(4, 3)
    half = x[2 * rank : 2 * rank + 2]
    wrapped(half).square().mean().backward()
    rl.manual_seed(0)
    whole = rl.nn.Linear(3, 2)
    whole(x).square().mean().backward()
    assert rl.allclose(net.weight.grad, whole.weight.grad)
    with wrapped.no_sync():
        wrapped(half).square().mean().backward()
    assert not rl.allclose(net.weight.grad, 2 * whole.weight.grad)
    wrapped(half).square().mean().backward()
    assert rl.allclose(net.weight.grad, 3 * whole.weight.grad, rtol=1e-4)


def unused(rank, n):
    x = rl.arange(12.0).reshape(4, 3)
    wrapped = DistributedDataParallel(Branches(), find_unused_parameters=True)
    wrapped(x, rank).square().sum().backward()  # each process uses another branch
    assert wrapped.module.a.weight.grad is not None and wrapped.module.b.weight.grad is not None
    wrapped.zero_grad()
    wrapped(x).square().sum().backward()
    assert wrapped.module.b.weight.grad is None
    plain = DistributedDataParallel(Branches())
    plain(x).sum().backward()
    with pytest.raises(RuntimeError, match="Expected to have finished reduction in the prior iteration"):
        plain(x)


@pytest.mark.parametrize("work", [averages, unused])
def test_data_parallel(work, tmp_path):
    in_processes(2, work, tmp_path / "store")
