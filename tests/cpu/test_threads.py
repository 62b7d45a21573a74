"""The thread pool: same bits for every number of threads, forks, several Python threads."""

import os
import subprocess
import sys
import threading

import pytest

import rushlight as rl

SIZE = 1_000_000


@pytest.fixture(autouse=True)
def threads():
    before = rl.get_num_threads()
    yield
    rl.set_num_threads(before)


def work():
    rl.manual_seed(0)
    x = rl.randn(SIZE)
    y = (x * 2 + 1).exp().sum() + rl.empty(SIZE).exponential_().sum()
    return x.tolist()[::997], y.item()


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_results_do_not_depend_on_threads(n):
    rl.set_num_threads(1)
    expected = work()
    rl.set_num_threads(n)
    assert rl.get_num_threads() == n
    assert work() == expected


def layers():
    """Forward and backward of layers whose loops are shared out by rows, planes, points or bags."""
    F = rl.nn.functional
    rl.manual_seed(0)
    x = rl.randn(8, 12, 34, 33, requires_grad=True)
    grid = (rl.rand(8, 30, 31, 2) * 2.4 - 1.2).requires_grad_()
    table = rl.randn(500, 40, requires_grad=True)
    results = [
        F.max_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 2),
        F.adaptive_avg_pool2d(x, 1),
        F.grid_sample(x, grid, align_corners=False),
        F.embedding_bag(rl.randint(0, 500, (300, 9)), table, mode="mean"),
        x.logsumexp(1),
        F.cross_entropy(x, rl.randint(0, 12, (8, 34, 33)), weight=rl.rand(12)),
        rl.fft.rfft(x).abs(),
    ]
    sum(r.square().sum() for r in results).backward()
    return [t.numpy().tobytes() for t in (*(r.detach() for r in results), x.grad, grid.grad, table.grad)]


def matmuls(check=False):
    """Products of all layouts, with sizes around the edges of blocks, panels, slices and tiles."""
    rl.manual_seed(0)
    results = []
    shapes = [(500, 300, 97), (1030, 257, 65), (130, 512, 520), (96, 700, 1), (25, 600, 500), (700, 40, 16)]
    for m, k, n in [*shapes, (13, 513, 33), (260, 512, 700)]:
        for flip_a in (False, True):
            for flip_b in (False, True):
                a = rl.randn(k, m).t() if flip_a else rl.randn(m, k)
                b = rl.randn(n, k).t() if flip_b else rl.randn(k, n)
                row, full = rl.randn(n), rl.randn(m, n)
                got = (a @ b, rl.addmm(row, a, b), rl.addmm(full, a, b, beta=0.5, alpha=2))
                results += got
                if check:
                    exact = a.double() @ b.double()
                    wanted = ((exact, 1), (exact + row, 1), (2 * exact + 0.5 * full, 2))
                    for y, (want, alpha) in zip(got, wanted, strict=True):
                        assert float((y - want).abs().max()) < 2e-4 * alpha, (m, k, n, flip_a, flip_b)
    q, k, v = (rl.randn(2, 3, 200, 40, requires_grad=True) for _ in range(3))
    for causal in (False, True):
        results.append(rl.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
        results[-1].square().sum().backward()
    return [t.detach().numpy().tobytes() for t in (*results, q.grad, k.grad, v.grad)]


@pytest.mark.parametrize("n", [2, 3, 8])
def test_products_do_not_depend_on_threads(n):
    rl.set_num_threads(1)
    expected = matmuls(check=n == 2)
    rl.set_num_threads(n)
    assert matmuls() == expected


@pytest.mark.parametrize("n", [2, 3, 8])
def test_layers_do_not_depend_on_threads(n):
    rl.set_num_threads(1)
    expected = layers()
    rl.set_num_threads(n)
    assert layers() == expected


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.complex64, rl.int16, rl.uint8])
def test_indices_that_meet_do_not_depend_on_threads(dtype):
    """A large target is shared out: each of its elements still sees its values in order."""

    def puts():
        rl.manual_seed(0)
        positions, values = rl.randint(0, 30_000, (70_003,)), (rl.randn(2 * 70_003) * 20).to(dtype)
        target = rl.zeros(2 * 30_000, dtype=dtype)
        for v in (values[:70_003], values[::2]):
            target[:30_000].scatter_add_(0, positions, v)
            target[::2].index_put_((positions - 30_000,), v)
        with pytest.raises((RuntimeError, IndexError), match="out of"):
            target.scatter_add(0, positions + 30_001, values[:70_003])
        return target.numpy().tobytes()

    rl.set_num_threads(1)
    expected = puts()
    for n in (2, 3, 16):
        rl.set_num_threads(n)
        assert puts() == expected


@pytest.mark.parametrize("n", [0, -1, 10**9])
def test_refuses_odd_numbers_of_threads(n):
    with pytest.raises(RuntimeError):
        rl.set_num_threads(n)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own():
    rl.set_num_threads(4)
    expected = work()  # the parent's threads are running
    for _ in range(3):
        child = os.fork()
        if child == 0:
            ok = False
            try:
                ok = work() == expected
            finally:
                os._exit(0 if ok else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    assert work() == expected


def test_several_python_threads():
    rl.set_num_threads(4)
    x = rl.randn(SIZE)
    expected = (x * 3).exp().sum().item()
    wrong = []

    def run():
        for _ in range(10):
            if (x * 3).exp().sum().item() != expected:
                wrong.append(1)

    team = [threading.Thread(target=run) for _ in range(4)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    assert not wrong


def test_errors_inside_loops_surface():
    rl.set_num_threads(4)
    with pytest.raises(RuntimeError, match="probability"):
        rl.multinomial(rl.full((SIZE,), -1.0), 1)
    assert work() == work()


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_environment_sets_the_number_of_threads():
    show = "import rushlight as rl; print(rl.get_num_threads())"
    assert python(show, RUSHLIGHT_NUM_THREADS="3", OMP_NUM_THREADS="5").stdout == "3\n"
    assert python(show, RUSHLIGHT_NUM_THREADS="", OMP_NUM_THREADS="5,2").stdout == "5\n"
    nonsense = python(show, RUSHLIGHT_NUM_THREADS="many", OMP_NUM_THREADS="-1")
    assert int(nonsense.stdout) >= 1


def test_the_process_ends_while_workers_sleep():
    done = python("import rushlight as rl; rl.set_num_threads(8); rl.randn(3_000_000); print('done')")
    assert done.returncode == 0 and done.stdout == "done\n" and done.stderr == ""
