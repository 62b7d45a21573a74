import numpy as np
from opspec import OpSpec, Sample, randn

import rushlight as rl

from .matmul import c


def square(*size):
    """Matrices far from singular."""
    return rl.tensor(randn(*size).numpy() + 3 * np.eye(size[-1]))


def positive(*size):
    x = randn(*size).numpy()
    return rl.tensor(x @ np.swapaxes(x, -1, -2) + np.eye(size[-1]))


def squares():
    return [Sample(square(3, 3)), Sample(square(2, 3, 3)), Sample(square(0, 3, 3)), Sample(square(0, 0))]


def not_square():
    return [(RuntimeError, Sample(randn(2, 3))), (RuntimeError, Sample(randn(3)))]


def singular():
    return [*not_square(), (rl.linalg.LinAlgError, Sample(rl.tensor(np.zeros((2, 2)))))]


def multiplies_back(combine):
    """The parts of a decomposition give the matrix again."""

    def check(sample, result):
        np.testing.assert_allclose(
            combine(*[p.detach().numpy() for p in result]), sample.input.numpy(), rtol=1e-8, atol=1e-10
        )

    return check


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def from_lu(sample, result):
    p, low, up = rl.lu_unpack(*result)
    np.testing.assert_allclose((p @ low @ up).numpy(), sample.input.numpy(), rtol=1e-8, atol=1e-10)


def by_pivots(sample, result):
    a = np.tril(sample.input.numpy()) + adjoint(np.tril(sample.input.numpy(), -1))
    b = randn(3, 2)
    x = rl.linalg.ldl_solve(result[0], result[1], b)
    np.testing.assert_allclose(a @ x.numpy(), b.numpy(), atol=1e-8)


def without_signs(factor):
    """Vectors are given up to a sign or phase: their lengths, element by element, are not."""

    def derive(a):
        return tuple(t.abs() if t.dim() > 1 else t for t in factor(a))

    return derive


linalg = [
    OpSpec("linalg.inv", squares, np.linalg.inv, method=False, out=True, errors=singular),
    OpSpec("inverse", squares, np.linalg.inv, out=True, errors=singular),
    OpSpec("linalg.det", squares, np.linalg.det, method=False, out=True, errors=not_square),
    OpSpec("linalg.slogdet", squares, lambda a: tuple(np.linalg.slogdet(a)), method=False),
    OpSpec("logdet", lambda: [Sample(positive(3, 3))], lambda a: np.log(np.linalg.det(a))),
    OpSpec(
        "linalg.solve",
        lambda: [
            Sample(square(3, 3), randn(3, 2)),
            Sample(square(2, 3, 3), randn(3, 1)),
            Sample(square(3, 3), randn(2, 3, 2)),
            Sample(square(3, 3), randn(3)),
        ],
        lambda a, b: np.linalg.solve(a, b),
        method=False,
        out=True,
        errors=lambda: [(RuntimeError, Sample(square(3, 3), randn(2, 2))), (TypeError, Sample(square(3, 3)))],
    ),
    OpSpec(
        "linalg.solve_triangular",
        lambda: [
            Sample(square(3, 3), randn(3, 2), upper=True),
            Sample(square(2, 3, 3), randn(3, 2), upper=False),
        ],
        lambda a, b, upper: np.linalg.solve(
            np.triu(a) if upper else np.tril(a), np.broadcast_to(b, (*a.shape[:-2], *b.shape))
        ),
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.cholesky",
        lambda: [Sample(positive(3, 3)), Sample(positive(2, 2, 2))],
        np.linalg.cholesky,
        derive=lambda a: rl.linalg.cholesky(a + a.mT),
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.qr",
        lambda: [Sample(randn(4, 3)), Sample(randn(2, 3, 3)), Sample(randn(2, 4))],
        check=multiplies_back(np.matmul),
        method=False,
    ),
    OpSpec(
        "linalg.lu",
        lambda: [Sample(randn(3, 3)), Sample(randn(4, 2)), Sample(randn(2, 4))],
        check=multiplies_back(lambda p, low, u: p @ low @ u),
        method=False,
    ),
    OpSpec(
        "linalg.lu_factor",
        lambda: [Sample(square(3, 3)), Sample(randn(4, 2)), Sample(randn(2, 4))],
        check=from_lu,
        method=False,
    ),
    OpSpec(
        "linalg.svd",
        lambda: [Sample(randn(4, 3)), Sample(randn(2, 3, 4)), Sample(c(3, 3))],
        check=multiplies_back(
            lambda u, s, vh: (u[..., : s.shape[-1]] * s[..., None, :]) @ vh[..., : s.shape[-1], :]
        ),
        derive=without_signs(lambda a: rl.linalg.svd(a, full_matrices=False)),
        method=False,
    ),
    OpSpec(
        "linalg.svdvals",
        lambda: [Sample(randn(4, 3)), Sample(randn(2, 3, 4))],
        lambda a: np.linalg.svd(a, compute_uv=False),
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.eigvalsh",
        lambda: [Sample(positive(3, 3))],
        np.linalg.eigvalsh,
        derive=lambda a: rl.linalg.eigvalsh(a + a.mH),
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.eigh",
        lambda: [Sample(positive(3, 3))],
        check=multiplies_back(lambda w, v: (v * w) @ adjoint(v)),
        derive=without_signs(lambda a: rl.linalg.eigh(a + a.mH)),
        method=False,
    ),
    OpSpec(
        "linalg.eig",
        lambda: [Sample(square(3, 3))],
        check=multiplies_back(lambda w, v: ((v * w) @ np.linalg.inv(v)).real),
        derive=without_signs(rl.linalg.eig),
        method=False,
    ),
    OpSpec(
        "linalg.pinv",
        lambda: [Sample(randn(4, 3)), Sample(randn(2, 3, 4))],
        np.linalg.pinv,
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.lstsq",
        lambda: [Sample(randn(5, 3), randn(5, 2))],
        check=lambda s, r: np.testing.assert_allclose(
            r.solution.detach().numpy(),
            np.linalg.lstsq(s.input.numpy(), s.args[0].numpy(), rcond=None)[0],
            atol=1e-8,
        ),
        method=False,
    ),
    OpSpec("linalg.ldl_factor", lambda: [Sample(positive(3, 3))], check=by_pivots, grad=False, method=False),
    OpSpec(
        "linalg.matrix_power",
        lambda: [Sample(square(3, 3), 3), Sample(square(3, 3), -2), Sample(square(2, 2), 0)],
        np.linalg.matrix_power,
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.multi_dot",
        lambda: [Sample([randn(2, 3), randn(3, 4), randn(4, 2)])],
        np.linalg.multi_dot,
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.matrix_norm",
        lambda: [
            Sample(randn(3, 4)),
            Sample(randn(3, 4), 1),
            Sample(randn(3, 4), 2),
            Sample(randn(3, 4), "nuc"),
        ],
        np.linalg.norm,
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.cond",
        lambda: [Sample(square(3, 3)), Sample(square(3, 3), 1)],
        np.linalg.cond,
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.matrix_rank",
        lambda: [Sample(randn(3, 4)), Sample(rl.tensor(np.ones((3, 3))))],
        lambda a: np.asarray(np.linalg.matrix_rank(a)),
        grad=False,
        method=False,
        out=True,
    ),
    OpSpec(
        "linalg.matrix_exp",
        lambda: [Sample(randn(3, 3)), Sample(rl.tensor(np.diag([1.0, 30.0])))],
        check=lambda s, r: np.testing.assert_allclose(r.detach().numpy(), _expm(s.input.numpy()), rtol=1e-8),
        method=False,
    ),
]


def _expm(a):
    w, v = np.linalg.eig(a)
    return ((v * np.exp(w)) @ np.linalg.inv(v)).real


def _fft(name, numpy_name=None):
    def samples():
        complex_in = name in ("fft", "ifft", "fftn", "ifftn", "fft2", "ifft2", "irfft", "hfft", "irfftn")
        make = c if complex_in else randn
        return [Sample(make(3, 8)), Sample(make(2, 5)), Sample(make(2, 7), norm="ortho")]

    return OpSpec(f"fft.{name}", samples, getattr(np.fft, numpy_name or name), method=False, out=True)


SPECS = linalg + [
    _fft(n)
    for n in [
        "fft",
        "ifft",
        "rfft",
        "irfft",
        "hfft",
        "ihfft",
        "fft2",
        "ifft2",
        "rfft2",
        "irfft2",
        "fftn",
        "ifftn",
        "rfftn",
        "irfftn",
    ]
]
