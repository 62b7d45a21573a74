"""Special functions, against SciPy."""

import numpy as np
import scipy.special as sp
from opspec import OpSpec, Sample, ints, rand

import rushlight as rl


def between(low, high):
    return lambda: [
        Sample(rand(3, 4, low=low, high=high)),
        Sample(rand(3, 2, low=low, high=high).t()),
        Sample(rand(0)),
    ]


def pairs(low, high):
    return lambda: [
        Sample(rand(3, 4, low=low, high=high), rand(3, 4, low=low, high=high)),
        Sample(rand(3, 1, low=low, high=high), rand(4, low=low, high=high)),
    ]


def both(name, numpy, low, high, **kwargs):
    """A function of the package, also a method, with an alias in `special`."""
    return OpSpec(name, between(low, high), numpy, inplace=True, out=True, **kwargs)


def only(name, numpy, low, high, **kwargs):
    """A function of `special` alone."""
    return OpSpec("special." + name, between(low, high), numpy, method=False, out=True, **kwargs)


def plain(name, numpy, low, high):
    """One without derivative."""
    return only(name, numpy, low, high, grad=False)


def polynomial(name, numpy):
    samples = lambda: [Sample(rand(3, 4, low=-0.9, high=2), ints(3, 4).double())]  # noqa: E731
    return OpSpec(
        "special." + name, samples, lambda x, n: numpy(n.astype(int), x), method=False, grad=False, out=True
    )


def third_kind(n, x, sign):
    """V (sign -1) and W (sign 1) from U: U_n -/+ U_(n-1)."""
    return sp.eval_chebyu(n, x) + sign * np.where(n > 0, sp.eval_chebyu(n - 1, x), 0)


FIRST = rl.tensor(1.7, dtype=rl.float64)

SPECS = [
    both("erf", sp.erf, -3, 3),
    both("erfc", sp.erfc, -3, 5),
    both("erfinv", sp.erfinv, -0.95, 0.95),
    both("lgamma", sp.gammaln, 0.2, 6),
    both("digamma", sp.digamma, 0.2, 6),
    both("i0", sp.i0, -5, 12),
    both("logit", sp.logit, 0.1, 0.9),
    OpSpec(
        "polygamma",
        lambda: [Sample(1, rand(3, low=0.3, high=4)), Sample(2, rand(3, low=0.3, high=4))],
        sp.polygamma,
        method=False,
    ),
    OpSpec(
        "mvlgamma",
        lambda: [Sample(rand(3, low=2, high=4), 3)],
        lambda x, p: np.vectorize(lambda v: sp.multigammaln(v, p))(x),
    ),
    # By the second argument: there is no derivative by the first.
    OpSpec("igamma", pairs(0.3, 5), sp.gammainc, derive=lambda a, x: rl.igamma(FIRST, x), out=True),
    OpSpec("igammac", pairs(0.3, 5), sp.gammaincc, derive=lambda a, x: rl.igammac(FIRST, x), out=True),
    OpSpec(
        "special.zeta",
        pairs(1.5, 5),
        sp.zeta,
        method=False,
        derive=lambda s, q: rl.special.zeta(FIRST, q),
        out=True,
    ),
    OpSpec("special.xlog1py", pairs(0.2, 2), sp.xlog1py, method=False, out=True),
    only("erfcx", sp.erfcx, -2, 30),
    only("ndtr", sp.ndtr, -3, 3),
    only("ndtri", sp.ndtri, 0.05, 0.95),
    only("log_ndtr", sp.log_ndtr, -8, 3),
    only("entr", sp.entr, 0.1, 3),
    only("i0e", sp.i0e, -5, 12),
    only("i1", sp.i1, -5, 12),
    only("i1e", sp.i1e, -5, 12),
    plain("airy_ai", lambda x: sp.airy(x)[0], -6, 5),
    plain("bessel_j0", sp.j0, -12, 12),
    plain("bessel_j1", sp.j1, -12, 12),
    plain("bessel_y0", sp.y0, 0.1, 12),
    plain("bessel_y1", sp.y1, 0.1, 12),
    plain("modified_bessel_i0", sp.i0, -5, 12),
    plain("modified_bessel_i1", sp.i1, -5, 12),
    plain("modified_bessel_k0", sp.k0, 0.1, 12),
    plain("modified_bessel_k1", sp.k1, 0.1, 12),
    plain("scaled_modified_bessel_k0", sp.k0e, 0.1, 12),
    plain("scaled_modified_bessel_k1", sp.k1e, 0.1, 12),
    plain("spherical_bessel_j0", lambda x: sp.spherical_jn(0, x), 0.1, 12),
    polynomial("chebyshev_polynomial_t", sp.eval_chebyt),
    polynomial("chebyshev_polynomial_u", sp.eval_chebyu),
    polynomial("hermite_polynomial_h", sp.eval_hermite),
    polynomial("hermite_polynomial_he", sp.eval_hermitenorm),
    polynomial("laguerre_polynomial_l", sp.eval_laguerre),
    polynomial("legendre_polynomial_p", sp.eval_legendre),
    polynomial("shifted_chebyshev_polynomial_t", sp.eval_sh_chebyt),
    polynomial("shifted_chebyshev_polynomial_u", sp.eval_sh_chebyu),
    polynomial("chebyshev_polynomial_v", lambda n, x: third_kind(n, x, -1)),
    polynomial("chebyshev_polynomial_w", lambda n, x: third_kind(n, x, 1)),
    polynomial("shifted_chebyshev_polynomial_v", lambda n, x: third_kind(n, 2 * x - 1, -1)),
    polynomial("shifted_chebyshev_polynomial_w", lambda n, x: third_kind(n, 2 * x - 1, 1)),
]
