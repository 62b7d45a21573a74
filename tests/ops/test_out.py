"""out=: which tensors a result may be written to. Every op of the specs is asked, and PyTorch with it."""

import warnings

import numpy as np
import pytest
from specs import ALL

import rushlight as rl

# A type other than the result's own, of the same kind; and one of another kind.
OTHER = {
    "float64": "float32",
    "int64": "int32",
    "bool": "uint8",
    "complex128": "complex64",
    "float32": "float64",
}

# (op, case): why ours differs.
KNOWN = {
    ("nn.functional.logsigmoid", "resize"): "PyTorch resizes it without a word",
    ("addbmm", "resize"): "PyTorch resizes it without a word",
    **{(name, "partial"): "as addmm" for name in ("baddbmm", "addbmm", "addmv", "take_along_dim", "kron")},
    (
        "addmm",
        "partial",
    ): "the product is computed in memory of its own here, so that no element is read after it was written",
    ("histc", "grad"): "it has no derivative here either; PyTorch lets an out= that asks for gradients pass",
}


def find(module, name):
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def to(T, value):
    """The samples' tensors in framework T."""
    if isinstance(value, rl.Tensor):
        return T.from_numpy(np.array(value.detach().numpy()))
    if isinstance(value, (list, tuple)):
        return type(value)(to(T, v) for v in value)
    return getattr(T, str(value).rpartition(".")[2]) if isinstance(value, rl.dtype) else value


def outcome(call):
    """ "ok", "resized" (with the warning) or the class of the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            # What is not implemented is a RuntimeError, too.
            return "RuntimeError" if isinstance(error, RuntimeError) else type(error).__name__
    return "resized" if any("was resized" in str(w.message) for w in caught) else "ok"


def cases(T, function, x, args, keywords):
    """{case: outcome} of writing to each kind of tensor, in place of each result."""
    found = function(x, *args, **keywords)
    results = [found] if isinstance(found, T.Tensor) else list(found)
    if not all(isinstance(r, T.Tensor) for r in results):
        return {}

    def ask(n, out, given=x):
        outs = [T.zeros(r.shape, dtype=r.dtype) for r in results]
        outs[n] = out
        return outcome(
            lambda: function(
                given, *args, **keywords, out=outs[0] if isinstance(found, T.Tensor) else tuple(outs)
            )
        )

    seen = {}
    for n, r in enumerate(results):
        kind = str(r.dtype).rpartition(".")[2]
        fresh = T.zeros(r.shape, dtype=r.dtype)
        seen["exact", n] = ask(n, fresh)
        seen["other", n] = ask(n, fresh.to(getattr(T, OTHER.get(kind, "float32"))))
        seen["kind", n] = ask(n, T.zeros(r.shape, dtype=T.float64 if kind == "int64" else T.int64))
        seen["resize", n] = ask(n, T.zeros((*(s + 1 for s in r.shape), 2), dtype=r.dtype))
        seen["empty", n] = ask(n, T.zeros(0, dtype=r.dtype))
        if r.dtype.is_floating_point:
            seen["grad", n] = ask(n, T.zeros(r.shape, dtype=r.dtype, requires_grad=True))
        if r.dim() and r.shape[-1] > 1:
            seen["expanded", n] = ask(n, T.zeros((*r.shape[:-1], 1), dtype=r.dtype).expand(r.shape))
        if not isinstance(x, T.Tensor) or x.dtype != r.dtype or not x.numel() or not r.numel():
            continue
        if x.shape == r.shape:
            same = x.clone()
            seen["same", n] = ask(n, same, same)
        memory = T.zeros(x.numel() + r.numel(), dtype=x.dtype)
        across = memory[1 : 1 + x.numel()].view(x.shape)
        across.copy_(x)
        seen["partial", n] = ask(n, memory[: r.numel()].view(r.shape), across)
    return seen


@pytest.mark.parametrize("spec", [s for s in ALL if s.out], ids=str)
def test_out_is_as_strict_as_torch(spec):
    torch = pytest.importorskip("torch")
    theirs = find(torch, spec.name)
    if theirs is None:
        pytest.skip("not in PyTorch")
    done = 0
    for sample in spec.samples():
        given = [to(torch, v) for v in (sample.input, sample.args)]
        keywords = {k: to(torch, v) for k, v in sample.kwargs.items()}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = cases(torch, theirs, *given, keywords)
        except (RuntimeError, TypeError, ValueError):
            continue  # a sample that PyTorch does not take
        if any(case == "exact" and seen != "ok" for (case, _), seen in expected.items()):
            continue
        got = cases(rl, spec.function, sample.input, sample.args, sample.kwargs)
        for (case, n), seen in expected.items():
            if (spec.name, case) in KNOWN or (case == "grad" and seen == "ok"):
                continue  # the latter: PyTorch has no derivative of it
            assert got[case, n] == seen, (case, n, sample)
        done += 1
        if done == 2:
            return


def test_out_is_refused_before_it_is_changed():
    x = rl.arange(6.0)
    for out in (rl.zeros(1).expand(6), rl.zeros(6, dtype=rl.float64)):
        with pytest.raises(RuntimeError):
            rl.neg(x, out=out)
        assert out.eq(0).all() and out.shape == (6,)
    for part in (x[:5], x[1:].clone()):
        kept = x.clone()
        if part.data_ptr() == x.data_ptr():
            with pytest.raises(RuntimeError, match="single memory location"):
                rl.exp(part, out=x[1:])
            assert x.equal(kept)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        rl.mm(rl.ones(2, 2), rl.ones(2, 2), out=rl.zeros(2, 2, dtype=rl.float64))


def test_sum_is_computed_in_the_type_of_out():
    out = rl.zeros((), dtype=rl.int64)
    assert rl.sum(rl.tensor([1.5, 1.5]), out=out) is out
    assert out.item() == 2  # 1 + 1: the elements are cast, not the sum


@pytest.mark.parametrize("spec", [s for s in ALL if s.out], ids=str)
def test_out_of_none_is_none_at_all(spec):
    """Programs hand on an optional out=: the call is the plain one, with its history."""
    sample = spec.samples()[0]
    x = sample.input
    if isinstance(x, rl.Tensor) and x.is_floating_point():
        x = x.detach().clone().requires_grad_()
    plain, handed = (
        spec.function(x, *sample.args, **sample.kwargs, **given) for given in ({}, {"out": None})
    )
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (plain, handed)), strict=True):
        assert a.equal(b) or a.isnan().any()
        assert a.requires_grad == b.requires_grad


@pytest.mark.parametrize("dtype", [rl.uint8, rl.int64, rl.float64, rl.bool, rl.complex64])
def test_factories_compute_in_the_type_of_out(dtype):
    def out():
        return rl.empty(0, dtype=dtype)

    assert rl.equal(rl.eye(2, out=out()), rl.eye(2, dtype=dtype))
    assert rl.equal(rl.ones(3, out=out()), rl.ones(3, dtype=dtype))
    assert rl.equal(rl.zeros(3, out=out()), rl.zeros(3, dtype=dtype))
    assert rl.equal(rl.full((2,), 1.1, out=out()), rl.full((2,), 1.1, dtype=dtype))
    assert rl.empty(3, out=out()).dtype == dtype


@pytest.mark.parametrize("factory", [rl.zeros, rl.ones, rl.empty, rl.eye])
def test_factories_refuse_another_dtype_than_that_of_out(factory):
    with pytest.raises(RuntimeError, match="dtype Long does not match dtype of out parameter .Float."):
        factory(2, dtype=rl.int64, out=rl.empty(0))
