"""The fused steps themselves: fp16 and bf16, large tensors, thread counts, and arguments that do not fit."""

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")
ops = rl._C.ops


def rows(*shapes, seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    return [rl.from_numpy(rng.standard_normal(s).astype(dtype)) for s in shapes]


def adam(params, grads, m, v, steps, largest=()):
    return ops["_optim.adam_step"](
        params, grads, m, v, list(largest), steps, 0.1, 0.9, 0.99, 1e-8, 0.01, False, False, False
    )


def counters(n):
    return [rl.tensor(0.0) for _ in range(n)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Adadelta"])
def test_half_types_compute_in_float(name, dtype):
    """One step from the same values: each result is the float32 step, rounded once."""
    values, grad = np.linspace(-2, 2, 37, dtype="float32"), np.linspace(3, -1, 37, dtype="float32")
    half = getattr(rl, dtype)
    p, g = rl.from_numpy(values).to(half), rl.from_numpy(grad).to(half)
    q = p.float().requires_grad_()
    q.grad = g.float()
    p.requires_grad_()
    p.grad = g
    getattr(rl.optim, name)([p], lr=0.5).step()
    getattr(rl.optim, name)([q], lr=0.5).step()
    assert p.dtype == half
    np.testing.assert_array_equal(p.detach().float().numpy(), q.detach().to(half).float().numpy())


def test_mixed_types_in_one_group():
    params = [rl.ones(5, dtype=d, requires_grad=True) for d in (rl.float32, rl.float64, rl.complex64)]
    for p in params:
        p.grad = rl.ones_like(p)
    rl.optim.SGD(params, lr=0.25).step()
    assert [p.tolist() for p in params] == [[0.75] * 5, [0.75] * 5, [0.75 + 0j] * 5]


def test_bits_do_not_depend_on_threads():
    shapes = [(300, 257), (5,), (0,), (70001,), (1,)]
    results, before = [], rl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            rl.set_num_threads(threads)
            params, grads = rows(*shapes), rows(*shapes, seed=1)
            m, v, steps = [rl.zeros_like(p) for p in params], [rl.zeros_like(p) for p in params], counters(5)
            for _ in range(3):
                assert adam(params, grads, m, v, steps)
            norms = ops["_optim.norms"](grads, 2.0)
            results.append([t.numpy().copy() for t in (*params, *m, *v, *steps, *norms)])
    finally:
        rl.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_norms(order):
    tensors = rows((130, 77), (3,), (0, 4), (), (40000,))
    flat = np.concatenate([t.numpy().ravel() for t in tensors])
    each = [np.linalg.norm(t.numpy().ravel(), order) if t.numel() else 0.0 for t in tensors]
    np.testing.assert_allclose([t.item() for t in ops["_optim.norms"](tensors, order)], each, rtol=1e-5)
    (total,) = ops["_optim.total_norm"](tensors, order)
    np.testing.assert_allclose(total.item(), np.linalg.norm(flat, order), rtol=1e-5)
    tensors[1][0] = float("nan")
    assert np.isnan(ops["_optim.total_norm"](tensors, order)[0].item())
    assert ops["_optim.norms"](tensors, 3.0) == () and ops["_optim.norms"]([], order) == ()


def test_what_does_not_fit_changes_nothing():
    (p,), (g,) = rows((3, 4)), rows((3, 4), seed=1)
    before = p.numpy().copy()
    zeros, step = rl.zeros(3, 4), rl.tensor(0.0)
    assert not adam([p], [g], [rl.zeros(4, 3)], [zeros], [step])  # state of another shape
    assert not adam([p], [g.double()], [zeros], [zeros], [step])  # gradient of another type
    assert not adam([p], [g], [zeros], [zeros], [rl.tensor(0)])  # a counter of integers
    assert not adam([p], [g], [zeros], [zeros], [rl.zeros(2)])
    assert not adam([rl.ones(1, 4).expand(3, 4)], [g], [zeros], [zeros], [step])  # elements that share memory
    assert not adam([rl.ones(3, 4, dtype=rl.int64)], [g], [zeros], [zeros], [step])
    for wrong in (
        ([p, p], [g], [zeros], [zeros], [step]),
        ([p], [g], [], [zeros], [step]),
        ([p], [g], [zeros], [], [step]),
    ):
        try:
            assert not adam(*wrong)
        except RuntimeError as e:
            assert "different lengths" in str(e)
    with pytest.raises(TypeError):
        adam([p], [None], [zeros], [zeros], [step])
    assert step.item() == 0.0 and not zeros.any()
    np.testing.assert_array_equal(p.numpy(), before)


def test_strided_gradients_are_read_in_the_parameters_order():
    p, q = rl.zeros(3, 4), rl.zeros(3, 4)
    g = rl.arange(12.0).view(4, 3).t()
    step = lambda x, grad: ops["_optim.sgd_step"]([x], [grad], [], [], 1.0, 0.0, 0.0, 0.0, False, False)  # noqa: E731
    assert step(p, g) and step(q, g.contiguous())
    assert p.tolist() == q.tolist() == (-g).tolist()
    assert step(p, rl.ones(1, 4).expand(3, 4)) and (p - q).tolist() == [[-1.0] * 4] * 3


def test_a_step_is_a_write_that_backward_notices():
    w = rl.ones(3, requires_grad=True)
    loss = (w * w).sum()
    w.grad = rl.ones(3)
    rl.optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def matrices(n, dtype=None):
    params = [rl.randn(4, 3, dtype=dtype).requires_grad_() for _ in range(n)]
    for p in params:
        p.grad = rl.randn(4, 3, dtype=dtype)
    return params


@pytest.mark.parametrize("name", ["Adafactor", "Muon", "Adam", "SGD", "RMSprop", "NAdam"])
def test_a_step_is_one_op(name):
    """However many parameters: their number does not change how many ops Python calls."""

    def calls(n):
        optimizer = getattr(rl.optim, name)(matrices(n))
        optimizer.step()  # makes the state
        with rl.profiler.profile() as profile:
            optimizer.step()
        return sum(e.count for e in profile.key_averages())

    assert calls(3) == calls(20) == 1


def test_lbfgs_calls_as_many_ops_for_many_parameters():
    def calls(n):
        params = [rl.full((3,), i + 1.0).requires_grad_() for i in range(n)]
        optimizer = rl.optim.LBFGS(params, lr=0.1, max_iter=4, tolerance_grad=0, tolerance_change=0)

        def closure():
            for p in params:
                p.grad = rl.ones(3) * 2
            return 1.0

        with rl.profiler.profile() as profile:
            optimizer.step(closure)
        counted = {e.key: e.count for e in profile.key_averages()}
        return {
            key: count
            for key, count in counted.items()
            if key not in ("ones", "mul", "aten::ones", "aten::mul")
        }

    assert calls(2) == calls(30)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adafactor_of_any_layout(dtype):
    """Strided parameters, gradients of another layout, batches of matrices, empty ones: as the plain copy."""

    def run(view):
        rng = np.random.default_rng(0)
        shapes = [(4, 6), (2, 5, 3), (7,), (), (1, 1), (0, 3), (3, 0)]
        params = [
            view(rl.from_numpy(np.asarray(rng.standard_normal(s), dtype))).requires_grad_() for s in shapes
        ]
        optimizer = rl.optim.Adafactor(params, lr=0.1, weight_decay=0.01)
        for _ in range(3):
            for p in params:
                p.grad = rl.from_numpy(np.asarray(rng.standard_normal(tuple(p.shape)), dtype))
            optimizer.step()
        return [p.detach().numpy() for p in params]

    def strided(t):
        return t.detach().t().contiguous().t() if t.dim() == 2 else t

    for a, b in zip(run(lambda t: t), run(strided), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_bits_of_adafactor_do_not_depend_on_threads():
    results, before = [], rl.get_num_threads()
    try:
        for threads in (1, 3):
            rl.set_num_threads(threads)
            params = [p.requires_grad_() for p in rows((300, 257), (70001,), (3, 64, 128))]
            optimizer = rl.optim.Adafactor(params, lr=0.1)
            for step in range(2):
                for p, g in zip(params, rows(*[p.shape for p in params], seed=step), strict=True):
                    p.grad = g
                optimizer.step()
            results.append([p.detach().numpy().copy() for p in params])
    finally:
        rl.set_num_threads(before)
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_wrong_lists_are_refused():
    p = rl.ones(4, 3)
    with pytest.raises(RuntimeError, match="different lengths"):
        ops["_optim.adafactor_step"]([p], [], [], [], [], 0.1, -0.8, -1.0, 1e-3, 1.0, 0.0, False)
    with pytest.raises(RuntimeError, match="the state of parameter 0"):
        ops["_optim.adafactor_step"](
            [p], [p], [rl.ones(2)], [rl.ones(3)], counters(1), 0.1, -0.8, -1.0, 1e-3, 1.0, 0.0, False
        )
    with pytest.raises(RuntimeError, match="the vector has size"):
        ops["_optim.add_flat_"]([p], rl.ones(3), 1.0)
    with pytest.raises(RuntimeError, match="of the history"):
        ops["_optim.lbfgs_direction"](rl.ones(3), [rl.ones(2)], [rl.ones(3)], [rl.tensor(1.0)], 1)
    assert ops["_optim.flat"]([rl.tensor([1 + 2j]), rl.tensor([[3.0]])]).tolist() == [1.0, 2.0, 3.0]
