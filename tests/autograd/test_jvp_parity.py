"""Jacobian-vector products of every op against torch's forward mode."""

import numpy as np
import pytest
from specs import ALL

import rushlight as rl

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own

NOT_COMPARED = {
    "linalg.cholesky",  # of a matrix taken as symmetric: along directions that are not, each says something else
    "linalg.eig",  # up to signs
    "linalg.eigh",
    "linalg.svd",
    "scatter_reduce",  # torch's derivative of "prod" is not that of finite differences
}


def theirs(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def translated(value):
    """The same value with torch's tensors and types."""
    if isinstance(value, rl.Tensor):
        return torch.tensor(np.asarray(value.detach().numpy()))
    if isinstance(value, rl.dtype):
        return getattr(torch, str(value).rsplit(".", 1)[-1])
    return type(value)(map(translated, value)) if isinstance(value, list | tuple) else value


def positions(values):
    """Where among the arguments differentiable tensors stand: (argument, index in the list or None)."""
    for i, v in enumerate(values):
        for k, t in enumerate(v) if isinstance(v, list | tuple) else [(None, v)]:
            if isinstance(t, rl.Tensor) and (t.is_floating_point() or t.is_complex()):
                yield i, k


def product(library, function, values, kwargs, at, tangents):
    def call(*inputs):
        full = [list(v) if isinstance(v, list | tuple) else v for v in values]
        for (i, k), x in zip(at, inputs, strict=True):
            if k is None:
                full[i] = x
            else:
                full[i][k] = x
        result = function(*full, **kwargs)
        results = (result,) if isinstance(result, library.Tensor) else result
        return tuple(
            t for t in results if isinstance(t, library.Tensor) and (t.is_floating_point() or t.is_complex())
        )

    inputs = tuple(values[i] if k is None else values[i][k] for i, k in at)
    return library.func.jvp(call, inputs, tangents)[1]


@pytest.mark.parametrize(
    "spec", [s for s in ALL if s.grad and s.name not in NOT_COMPARED and theirs(s.name)], ids=str
)
def test_every_op(spec):
    generator = np.random.default_rng(0)
    for sample in spec.samples():
        values = [sample.input, *sample.args]
        at = list(positions(values))
        tangents = []
        for i, k in at:
            x = values[i] if k is None else values[i][k]
            t = generator.standard_normal(tuple(x.shape))
            if x.is_complex():
                t = t + 1j * generator.standard_normal(tuple(x.shape))
            tangents.append(np.asarray(t).astype(x.detach().numpy().dtype))
        kwargs = {k: translated(v) for k, v in sample.kwargs.items()}
        try:
            expected = product(
                torch,
                theirs(spec.name),
                [*map(translated, values)],
                kwargs,
                at,
                tuple(map(torch.tensor, tangents)),
            )
        except (
            RuntimeError,
            TypeError,
            NotImplementedError,
        ):  # torch has no forward mode, or no such overload
            continue
        found = product(rl, spec.function, values, sample.kwargs, at, tuple(map(rl.tensor, tangents)))
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            b = b.detach().resolve_conj().resolve_neg().numpy(force=True)
            assert tuple(a.shape) == b.shape
            np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-5, atol=1e-7)
