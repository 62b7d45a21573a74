"""Values of special functions, worked out to 40 digits, across the forms that their kernels change between."""

import pytest

import rushlight as torch

VALUES = [
    ("bessel_j0", (0.3,), 0.9776262465382961),
    ("bessel_y0", (0.3,), -0.8072735778045195),
    ("bessel_j0", (2.4048255576957724,), 1.6946014926954953e-16),
    ("bessel_y0", (2.4048255576957724,), 0.5099243834484791),
    ("bessel_j0", (2.4048255576957733,), -2.916354544642841e-16),
    ("bessel_y0", (2.4048255576957733,), 0.509924383448479),
    ("bessel_j0", (5.5,), -0.006843869417819197),
    ("bessel_y0", (5.5,), -0.339480592881911),
    ("bessel_j0", (7.9,), 0.19436184484127825),
    ("bessel_y0", (7.9,), 0.20652094814437577),
    ("bessel_j0", (8.1,), 0.14751745404437766),
    ("bessel_y0", (8.1,), 0.23809132870223482),
    ("bessel_j0", (25.25,), 0.1241420860363391),
    ("bessel_y0", (25.25,), -0.09897715155607249),
    ("bessel_j0", (9999.5,), -0.004478727403128425),
    ("bessel_y0", (9999.5,), 0.0066034961394446185),
    ("bessel_j0", (300000.0,), -0.0009138609602111037),
    ("bessel_y0", (300000.0,), 0.00113442675095884),
    ("bessel_j1", (-0.3,), -0.148318816273104),
    ("bessel_j1", (1e-08,), 5e-09),
    ("bessel_y1", (1e-08,), -63661977.236758195),
    ("bessel_j1", (3.8317059702075107,), 6.539463336189929e-16),
    ("bessel_y1", (3.8317059702075107,), 0.41251739515882585),
    ("bessel_j1", (7.0,), -0.004682823482345833),
    ("bessel_y1", (7.0,), -0.30266723702418485),
    ("bessel_j1", (7.9,), 0.2191793999217512),
    ("bessel_y1", (7.9,), -0.18172107728057313),
    ("bessel_j1", (-8.1,), -0.24760776698159287),
    ("bessel_j1", (25.25,), -0.09653920971948139),
    ("bessel_y1", (25.25,), -0.12612554501532683),
    ("bessel_j1", (9999.5,), 0.006603272200132839),
    ("bessel_y1", (9999.5,), 0.004479057600043106),
    ("bessel_j1", (300000.0,), 0.0011344252278588153),
    ("bessel_y1", (300000.0,), 0.0009138628509236246),
    ("gammaln", (1e-300,), 690.7755278982137),
    ("gammaln", (0.25,), 1.2880225246980774),
    ("gammaln", (0.75,), 0.20328095143129538),
    ("gammaln", (1.000000001,), -5.772157118381039e-10),
    ("gammaln", (1.45,), -0.12142059074030692),
    ("gammaln", (1.9999999999,), -4.2278437004755317e-11),
    ("gammaln", (3.25,), 0.9358019311087253),
    ("gammaln", (6.4,), 5.484106985919302),
    ("gammaln", (6.6,), 5.8426800552746325),
    ("gammaln", (100000.0,), 1051287.7089736569),
    ("gammaln", (1e300,), 6.897755278982137e302),
    ("gammaln", (-0.5,), 1.2655121234846454),
    ("gammaln", (-1e-320,), 736.8272408909739),
    ("gammaln", (-2.4570247382208006,), 5.619192358950097e-17),
    ("gammaln", (-3.2,), -0.37243213612996867),
    ("gammaln", (-50.25,), -147.96757866714194),
    ("digamma", (1e-09,), -1000000000.5772156),
    ("digamma", (0.5,), -1.9635100260214235),
    ("digamma", (3.25,), 1.016990911068179),
    ("digamma", (12.5,), 2.4851956512749123),
    ("digamma", (-0.25,), 2.9141391202135276),
    ("digamma", (-7.9999,), -9997.859041309805),
    ("digamma", (-1e-12,), 999999999999.4229),
    ("erfcx", (0.1,), 0.8964569799691267),
    ("erfcx", (1.5,), 0.3215854164543175),
    ("erfcx", (20.0,), 0.02817434874105132),
    ("erfcx", (10000000000.0,), 5.641895835477563e-11),
    ("erfcx", (-0.5,), 1.952360489182557),
    ("erfcx", (-5.0,), 144009798674.66104),
    ("erfcx", (-26.5,), 1.924553162418569e305),
    ("log_ndtr", (-10000.0,), -50000010.12927891),
    ("log_ndtr", (-40.0,), -804.6084420137538),
    ("log_ndtr", (-3.0,), -6.607726221510349),
    ("log_ndtr", (-0.1,), -0.7761545927302733),
    ("log_ndtr", (0.1,), -0.6165050101150263),
    ("log_ndtr", (3.0,), -0.0013508099647481938),
    ("log_ndtr", (20.0,), -2.7536241186062337e-89),
    ("log_ndtr", (37.0,), -5.725571222524577e-300),
    (
        "zeta",
        (
            1.25,
            0.5,
        ),
        6.333967529208202,
    ),
    (
        "zeta",
        (
            3.0,
            0.001,
        ),
        1000000001.1988161,
    ),
    (
        "zeta",
        (
            40.0,
            2.5,
        ),
        1.2089275466329262e-16,
    ),
    (
        "zeta",
        (
            2.0,
            10000.0,
        ),
        0.00010000500016666666,
    ),
    (
        "zeta",
        (
            3.0,
            -2.5,
        ),
        0.0541020258208637,
    ),
    (
        "gammainc",
        (
            0.5,
            0.25,
        ),
        0.5204998778130465,
    ),
    (
        "gammaincc",
        (
            0.5,
            0.25,
        ),
        0.4795001221869535,
    ),
    (
        "gammainc",
        (
            0.5,
            9.0,
        ),
        0.9999779095030014,
    ),
    (
        "gammaincc",
        (
            0.5,
            9.0,
        ),
        2.209049699858544e-05,
    ),
    (
        "gammainc",
        (
            5.0,
            4.0,
        ),
        0.37116306482012645,
    ),
    (
        "gammaincc",
        (
            5.0,
            4.0,
        ),
        0.6288369351798735,
    ),
    (
        "gammainc",
        (
            5.0,
            30.0,
        ),
        0.999999996375699,
    ),
    (
        "gammaincc",
        (
            5.0,
            30.0,
        ),
        3.6243009520614882e-09,
    ),
    (
        "gammainc",
        (
            90.0,
            100.0,
        ),
        0.8536538253012672,
    ),
    (
        "gammaincc",
        (
            90.0,
            100.0,
        ),
        0.1463461746987328,
    ),
    (
        "gammainc",
        (
            400.0,
            380.0,
        ),
        0.15855070978429478,
    ),
    (
        "gammaincc",
        (
            400.0,
            380.0,
        ),
        0.8414492902157052,
    ),
    (
        "chebyshev_polynomial_t",
        (
            0.3,
            0.0,
        ),
        1.0,
    ),
    (
        "chebyshev_polynomial_u",
        (
            0.3,
            0.0,
        ),
        1.0,
    ),
    (
        "legendre_polynomial_p",
        (
            0.3,
            0.0,
        ),
        1.0,
    ),
    (
        "laguerre_polynomial_l",
        (
            0.3,
            0.0,
        ),
        1.0,
    ),
    (
        "hermite_polynomial_h",
        (
            0.3,
            0.0,
        ),
        1.0,
    ),
    (
        "chebyshev_polynomial_t",
        (
            0.3,
            1.0,
        ),
        0.3,
    ),
    (
        "chebyshev_polynomial_u",
        (
            0.3,
            1.0,
        ),
        0.6,
    ),
    (
        "legendre_polynomial_p",
        (
            0.3,
            1.0,
        ),
        0.3,
    ),
    (
        "laguerre_polynomial_l",
        (
            0.3,
            1.0,
        ),
        0.7,
    ),
    (
        "hermite_polynomial_h",
        (
            0.3,
            1.0,
        ),
        0.6,
    ),
    (
        "chebyshev_polynomial_t",
        (
            0.3,
            5.0,
        ),
        0.99888,
    ),
    (
        "chebyshev_polynomial_u",
        (
            0.3,
            5.0,
        ),
        1.01376,
    ),
    (
        "legendre_polynomial_p",
        (
            0.3,
            5.0,
        ),
        0.34538625,
    ),
    (
        "laguerre_polynomial_l",
        (
            0.3,
            5.0,
        ),
        -0.09333274999999998,
    ),
    (
        "hermite_polynomial_h",
        (
            0.3,
            5.0,
        ),
        31.757759999999998,
    ),
    (
        "chebyshev_polynomial_t",
        (
            0.3,
            40.0,
        ),
        0.9291591886517991,
    ),
    (
        "chebyshev_polynomial_u",
        (
            0.3,
            40.0,
        ),
        1.0454181275398593,
    ),
    (
        "legendre_polynomial_p",
        (
            0.3,
            40.0,
        ),
        0.12511584585570795,
    ),
    (
        "laguerre_polynomial_l",
        (
            0.3,
            40.0,
        ),
        0.34841821941447815,
    ),
    (
        "chebyshev_polynomial_t",
        (
            0.3,
            100.0,
        ),
        0.5843957271937806,
    ),
    (
        "legendre_polynomial_p",
        (
            1.0,
            1e300,
        ),
        1.0,
    ),
]


def near(got, value, rtol, atol):
    return abs(got - value) <= rtol * abs(value) + atol


@pytest.mark.parametrize(("name", "args", "value"), VALUES)
def test_value(name, args, value):
    function = getattr(torch.special, name)
    doubles = [torch.tensor([a], dtype=torch.float64) for a in args]
    got = function(*doubles).item()
    assert near(got, value, 3e-14, 1e-15)
    # The same bits among others, wherever the element stands: blocks choose their form by what is in them.
    crowd = [
        torch.cat([torch.linspace(0.1, 3.0, 600).double(), d, torch.tensor([-1.5, float("nan")]).double()])
        for d in doubles
    ]
    assert function(*crowd)[600].item() == got
    assert function(*[torch.stack([c, c], 1)[:, 1] for c in crowd])[600].item() == got


FLOATS = [row for row in VALUES if all(torch.tensor(a).item() == a for a in row[1])]


@pytest.mark.parametrize(("name", "args", "value"), FLOATS)
def test_value_of_floats(name, args, value):
    got = getattr(torch.special, name)(*[torch.tensor(a) for a in args]).item()
    want = torch.tensor(value, dtype=torch.float64).float().item()
    assert got == want or near(got, want, 2e-7, 1e-15)


def test_incomplete_gamma_of_large_numbers():
    a = torch.tensor([1e6, 1e8, 1e20, 1e300], dtype=torch.float64)
    low, high = torch.special.gammainc(a, a), torch.special.gammaincc(a, a)
    assert torch.allclose(low + high, torch.ones_like(a), rtol=1e-15)
    # P(a, a) = 1/2 + 1 / (3 sqrt(2 pi a)) + ...
    assert torch.allclose(low - 0.5, 1 / (3 * (2 * torch.pi * a).sqrt()), rtol=1e-6, atol=1e-16)
    x = a[:3] + 2 * a[:3].sqrt()
    assert torch.allclose(torch.special.gammaincc(a[:3], x), torch.full_like(x, 0.02275013), atol=2e-3)
    assert torch.special.gammaincc(a, 2 * a).tolist() == [0, 0, 0, 0]
