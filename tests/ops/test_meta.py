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
            results = [t for t in tensors(spec.function(*given, **keywords)) if t.requires_grad]
            if not wanted or not results:
                break
            found = rl.autograd.grad(results, wanted, [rl.ones_like(r) for r in results], allow_unused=True)
            shapes.append([None if g is None else (tuple(g.shape), g.dtype) for g in found])
        if shapes:
            assert shapes[0] == shapes[1]
