"""Window functions. `sym=False` makes them one period of a periodic function, for spectra."""

import math

from ... import _C

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]

_ops = _C.ops


def _check(name, M, dtype, layout):  # noqa: N803 (torch's name)
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and layout is not _C.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    dtype = dtype or _ops["get_default_dtype"]()
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _steps(start, end, M, dtype, device, requires_grad):  # noqa: N803
    return _ops["linspace"](start, end, M, dtype=dtype, device=device, requires_grad=requires_grad)


def _empty(dtype, device, requires_grad):
    return _ops["empty"](0, dtype=dtype, device=device, requires_grad=requires_grad)


def exponential(
    M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False
):  # noqa: N803
    """The exponential window w_n = exp(-|n - center| / tau).

    Args:
        M (int): the number of values.
        center (float): the position of the maximum; None means the middle, the only one for symmetric windows.
            Default: None
        tau (float): the decay, above 0. Default: 1.0
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.exponential(5)
        tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    dtype = _check("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    k = _steps(-center / tau, (-center + M - 1) / tau, M, dtype, device, requires_grad)
    return (-k.abs()).exp()


def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """The cosine window w_n = sin(pi (n + 1/2) / M).

    Args:
        M (int): the number of values.
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.cosine(5)
        tensor([0.3090, 0.8090, 1.0000, 0.8090, 0.3090])
    """
    dtype = _check("cosine", M, dtype, layout)
    if M == 0:
        return _empty(dtype, device, requires_grad)
    start = 0.5
    constant = math.pi / (M + 1 if not sym and M > 1 else M)
    return _steps(start * constant, (start + M - 1) * constant, M, dtype, device, requires_grad).sin()


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """The Gaussian window w_n = exp(-((n - (M - 1) / 2) / std)^2 / 2).

    Args:
        M (int): the number of values.
        std (float): the standard deviation, above 0. Default: 1.0
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.gaussian(5)
        tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    dtype = _check("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _empty(dtype, device, requires_grad)
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    constant = 1 / (std * math.sqrt(2))
    k = _steps(start * constant, (start + M - 1) * constant, M, dtype, device, requires_grad)
    return (-k * k).exp()


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """The Kaiser window w_n = I0(beta sqrt(1 - x_n^2)) / I0(beta), x_n from -1 to 1.

    Args:
        M (int): the number of values.
        beta (float): the shape, at least 0: larger is narrower. Default: 12.0
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.kaiser(5)
        tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01, 5.2773e-05])
    """
    dtype = _check("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if M == 1:
        return _ops["ones"](1, dtype=dtype, device=device, requires_grad=requires_grad)
    if not isinstance(beta, _C.Tensor):
        beta = _ops["tensor"](beta, dtype=dtype)
    start = -beta
    constant = 2.0 * beta / (M if not sym else M - 1)
    largest = beta if beta.item() < (start + (M - 1) * constant).item() else start + (M - 1) * constant
    k = _steps(start, largest, M, dtype, device, requires_grad)
    return (beta * beta - k * k).clamp(min=0).sqrt().i0() / beta.i0()


def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """The Bartlett window, a triangle: w_n = 1 - |2 n / (M - 1) - 1|.

    Args:
        M (int): the number of values.
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    dtype = _check("bartlett", M, dtype, layout)
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if M == 1:
        return _ops["ones"](1, dtype=dtype, device=device, requires_grad=requires_grad)
    constant = 2 / (M if not sym else M - 1)
    return 1 - _steps(-1, -1 + (M - 1) * constant, M, dtype, device, requires_grad).abs()


def general_cosine(M, *, a, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """A sum of cosines: w_n = sum over i of (-1)^i a_i cos(2 pi i n / (M - 1)).

    Args:
        M (int): the number of values.
        a (sequence of floats): the coefficients.
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.general_cosine(5, a=[0.46, 0.23, 0.31])
        tensor([0.5400, 0.1500, 1.0000, 0.1500, 0.5400])
    """
    dtype = _check("general_cosine", M, dtype, layout)
    if M == 0:
        return _empty(dtype, device, requires_grad)
    if M == 1:
        return _ops["ones"](1, dtype=dtype, device=device, requires_grad=requires_grad)
    try:
        a = list(a)
    except TypeError:
        raise TypeError("Coefficients must be a list/tuple") from None
    if not a:
        raise ValueError("Coefficients cannot be empty")
    constant = 2 * math.pi / (M if not sym else M - 1)
    k = _steps(0, (M - 1) * constant, M, dtype, device, requires_grad)
    window = None
    for i, weight in enumerate(a):
        term = (k * i).cos() * (weight if i % 2 == 0 else -weight)
        window = term if window is None else window + term
    return window


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """The general Hamming window w_n = alpha - (1 - alpha) cos(2 pi n / (M - 1)).

    Args:
        M (int): the number of values.
        alpha (float): the first coefficient. Default: 0.54
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.general_hamming(5, alpha=0.6)
        tensor([0.2000, 0.6000, 1.0000, 0.6000, 0.2000])
    """
    options = {"sym": sym, "dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return general_cosine(M, a=[alpha, 1.0 - alpha], **options)


def hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """The Hamming window w_n = 0.54 - 0.46 cos(2 pi n / (M - 1)).

    Args:
        M (int): the number of values.
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """The Hann window w_n = (1 - cos(2 pi n / (M - 1))) / 2.

    Args:
        M (int): the number of values.
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """The Blackman window w_n = 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1)).

    Args:
        M (int): the number of values.
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.blackman(5)
        tensor([-1.4901e-08,  3.4000e-01,  1.0000e+00,  3.4000e-01, -1.4901e-08])
    """
    options = {"dtype": _check("blackman", M, dtype, layout), "layout": layout, "device": device}
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, requires_grad=requires_grad, **options)


def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """Nuttall's window: a sum of four cosines with the coefficients 0.3635819, 0.4891775, 0.1365995 and 0.0106411.

    Args:
        M (int): the number of values.
        sym (bool): True gives a symmetric window, False a periodic one (the first M of M + 1 values). Default:
            True
        dtype (dtype): float32 or float64; None means the default type. Default: None
        layout (layout): torch.strided. Default: None
        device (device): of the window. Default: None
        requires_grad (bool): whether the window asks for a gradient. Default: False

    Example:
        >>> torch.signal.windows.nuttall(5)
        tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
