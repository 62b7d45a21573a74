"""Meta tensors: every op says the shape, type and strides of its results without computing them, and so does its backward."""

import pytest
from specs import ALL

import rushlight as rl

# The result, or its size, depends on the values: these may say so.
DATA = {
    "allclose", "argwhere", "bincount", "ctc_loss", "equal", "nn.functional.embedding_bag", "segment_reduce", "masked_select", "nonzero", "repeat_interleave", "unique",
    "unique_consecutive",
}  # fmt: skip
# Not differentiable by their first argument, which the test asks for.
PARTLY = {"igamma", "igammac", "special.zeta"}


def to_meta(value):
    if isinstance(value, rl.Tensor):
        return value.to("meta")
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_meta, value))
    return value


def tensors(value):
    if isinstance(value, rl.Tensor):
        return [value]
    return [t for item in value for t in tensors(item)] if isinstance(value, (list, tuple)) else []


def described(value):
    return [(tuple(t.shape), t.dtype, t.stride()) for t in tensors(value)]


def leaves(sample, convert):
    """The sample's arguments, the float tensors among them asking for gradients."""

    def one(value):
        if isinstance(value, rl.Tensor):
            value = convert(value.detach())
            return value.clone().requires_grad_() if value.dtype.is_floating_point else value
        return type(value)(map(one, value)) if isinstance(value, (list, tuple)) else value

    return [one(v) for v in (sample.input, *sample.args)]


@pytest.mark.parametrize("spec", ALL, ids=str)
def test_forward(spec):
    for sample in spec.samples():
        expected = spec.function(sample.input, *sample.args, **sample.kwargs)
        given = [to_meta(v) for v in (sample.input, *sample.args)]
        keywords = {k: to_meta(v) for k, v in sample.kwargs.items()}
        if not tensors(given) and not tensors(list(keywords.values())):
            continue
        try:
            result = spec.function(*given, **keywords)
        except RuntimeError:  # NotImplementedError, or from item()
            assert spec.name in DATA
            continue
        if spec.name == "linalg.matrix_exp":  # how often it squares, and so its layout, depends on the values
            assert result.shape == expected.shape and result.dtype == expected.dtype
            continue
        assert described(result) == described(expected)
        assert all(t.device.type == "meta" for t in tensors(result))


@pytest.mark.parametrize("spec", [s for s in ALL if s.grad and s.name not in DATA | PARTLY], ids=str)
def test_backward(spec):
    for sample in spec.samples():
        shapes = []
        for convert in (lambda t: t, to_meta):
            given = leaves(sample, convert)
            wanted = [t for t in tensors(given) if t.requires_grad]
            keywords = {k: convert(v) if isinstance(v, rl.Tensor) else v for k, v in sample.kwargs.items()}
            function = spec.derive or spec.function
            results = [t for t in tensors(function(*given, **keywords)) if t.requires_grad]
            if not wanted or not results:
                break
            found = rl.autograd.grad(results, wanted, [rl.ones_like(r) for r in results], allow_unused=True)
            shapes.append([None if g is None else (tuple(g.shape), g.dtype) for g in found])
        if shapes:
            assert shapes[0] == shapes[1]


def test_kernels_that_count_say_that_there_is_nothing_to_count():
    x = rl.empty(3, 4, device="meta")
    for call in (x.nonzero, lambda: x[x > 0], lambda: rl.unique(x), lambda: rl.masked_select(x, x > 0)):
        with pytest.raises(NotImplementedError, match="meta tensor"):
            call()


def test_what_has_no_loop_on_the_cpu_has_none_on_meta():
    for device in ("cpu", "meta"):
        with pytest.raises(NotImplementedError, match="\"lgamma_cpu\" not implemented for 'ComplexFloat'"):
            rl.lgamma(rl.ones(3, dtype=rl.complex64, device=device))


def test_copies_between_devices():
    host, meta = rl.arange(6.0).reshape(2, 3), rl.empty(2, 3, device="meta")
    assert meta.copy_(host) is meta and meta.device.type == "meta"
    assert host.t().to("meta").stride() == (1, 3)
    for call in (lambda: host.copy_(meta), lambda: meta.to("cpu"), lambda: host.fill_(meta.sum())):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            call()
    assert host.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        host.to("cuda")


def test_numbers_of_the_host_meet_meta_tensors():
    x = rl.empty(2, 3, device="meta", requires_grad=True)
    y = x * rl.tensor(2.0) + 1
    assert y.device.type == "meta" and y.shape == (2, 3)
    (g,) = rl.autograd.grad(y.sum(), x)
    assert g.device.type == "meta" and g.shape == (2, 3)


def test_generators_belong_to_a_device():
    assert rl.Generator().device == rl.device("cpu") == rl.Generator("cpu").device
    for device in ("meta", "cuda"):
        with pytest.raises(RuntimeError, match="no random numbers are drawn on device"):
            rl.Generator(device)
    before = rl.get_rng_state()
    rl.randn(100, device="meta"), rl.empty(50, device="meta").uniform_(generator=rl.Generator())
    assert rl.equal(rl.get_rng_state(), before)
