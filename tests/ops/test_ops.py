"""Generic tests over every OpSpec: forward, strides, in-place, out=, errors, first and second derivatives."""

import numpy as np
import pytest
from opspec import parts, to_numpy
from specs import ALL

import rushlight as rl


def assert_same(actual, expected, rtol):
    actual, expected = to_numpy(actual), to_numpy(expected)
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected):
            assert_same(a, e, rtol)
        return
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("spec", ALL, ids=str)
def test_forward(spec):
    for sample in spec.samples():
        result = spec.function(sample.input, *sample.args, **sample.kwargs)
        if spec.numpy is not None:
            keywords = {k: to_numpy(v) for k, v in sample.kwargs.items()}
            expected = spec.numpy(to_numpy(sample.input), *map(to_numpy, sample.args), **keywords)
            assert_same(result, expected, spec.rtol)
        if spec.check is not None:
            spec.check(sample, result)
        assert spec.numpy is not None or spec.check is not None, "a spec must say what is right"
        if spec.method and isinstance(sample.input, rl.Tensor):
            by_method = getattr(sample.input, spec.name.rsplit(".", 1)[-1])(*sample.args, **sample.kwargs)
            assert_same(by_method, to_numpy(result), spec.rtol)


def spaced(x):
    """The same values in memory with gaps and an offset."""
    if not isinstance(x, rl.Tensor) or x.dim() == 0:
        return x
    array = np.zeros((*x.shape, 2), dtype=to_numpy(x).dtype)
    array[..., 1] = to_numpy(x)
    return rl.tensor(array)[..., 1]


@pytest.mark.filterwarnings("ignore:torch.searchsorted")  # says that it copies
@pytest.mark.parametrize("spec", [s for s in ALL if s.strided], ids=str)
def test_strided(spec):
    for sample in spec.samples():
        plain = spec.function(sample.input, *sample.args, **sample.kwargs)
        strided = spec.function(spaced(sample.input), *map(spaced, sample.args), **sample.kwargs)
        if spec.numpy is not None:
            assert_same(strided, to_numpy(plain), spec.rtol)
        else:
            spec.check(sample, strided)


@pytest.mark.parametrize("spec", [s for s in ALL if s.inplace], ids=str)
def test_inplace(spec):
    for sample in spec.samples():
        expected = spec.function(sample.input, *sample.args, **sample.kwargs)
        x = sample.input.clone()
        method = getattr(x, spec.name.rsplit(".", 1)[-1] + "_")
        if expected.shape != x.shape or not rl.can_cast(expected.dtype, x.dtype):
            with pytest.raises(RuntimeError):
                method(*sample.args, **sample.kwargs)
            continue
        before = x._version
        assert method(*sample.args, **sample.kwargs) is x
        assert x._version == before + 1
        np.testing.assert_allclose(to_numpy(x), to_numpy(expected).astype(to_numpy(x).dtype), rtol=spec.rtol)


@pytest.mark.parametrize("spec", [s for s in ALL if s.out], ids=str)
def test_out(spec):
    for sample in spec.samples():
        expected = spec.function(sample.input, *sample.args, **sample.kwargs)
        out = rl.tensor(np.zeros(0)).to(expected.dtype) if hasattr(rl.Tensor, "to") else expected.clone()
        assert spec.function(sample.input, *sample.args, **sample.kwargs, out=out) is out
        assert_same(out, to_numpy(expected), spec.rtol)


@pytest.mark.parametrize("spec", [s for s in ALL if s.errors()], ids=str)
def test_errors(spec):
    for kind, sample in spec.errors():
        with pytest.raises(kind):
            spec.function(sample.input, *sample.args, **sample.kwargs)


MANY = 300  # elements beyond which one random direction stands for the whole jacobian


def check_derivative(spec, check):
    checked = 0
    for sample in spec.samples():
        inputs, call = parts(sample)
        function = call(spec.derive or spec.function)
        outputs = function(*inputs) if inputs else ()
        if outputs:
            size = sum(x.numel() for x in inputs) + sum(y.numel() for y in outputs)
            checked += 1
            assert check(function, inputs, fast_mode=size > MANY)
    assert checked, "no sample has anything to differentiate: say grad=False"


@pytest.mark.parametrize("spec", [s for s in ALL if s.grad], ids=str)
def test_gradient(spec):
    from rushlight.autograd import gradcheck

    check_derivative(spec, gradcheck)


@pytest.mark.parametrize("spec", [s for s in ALL if s.grad and s.gradgrad], ids=str)
def test_second_gradient(spec):
    from rushlight.autograd import gradgradcheck

    check_derivative(spec, gradgradcheck)


@pytest.mark.parametrize("spec", [s for s in ALL if s.grad], ids=str)
@pytest.mark.parametrize("create_graph", [False, True])
def test_backward_unpacks_a_saved_tensor_once(spec, create_graph):
    """A checkpoint recomputes for each tensor that is asked for, and frees it when it is fetched."""
    if create_graph and not spec.gradgrad:
        return
    for sample in spec.samples():
        inputs, call = parts(sample)
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        packed, unpacked = [], []

        def pack(x, packed=packed):
            packed.append(x)
            return len(packed) - 1

        def unpack(number, packed=packed, unpacked=unpacked):
            unpacked.append(number)
            return packed[number]

        with rl.autograd.graph.saved_tensors_hooks(pack, unpack):
            results = call(spec.derive or spec.function)(*leaves) if leaves else ()
        results = [y for y in results if y.requires_grad]
        unpacked.clear()  # what the forward of a composed op differentiated by itself
        if results:
            ones = [rl.ones_like(y) for y in results]
            rl.autograd.grad(results, leaves, ones, create_graph=create_graph, allow_unused=True)
        assert len(unpacked) == len(set(unpacked))
