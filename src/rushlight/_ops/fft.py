"""What surrounds Fourier transforms: frequencies, shifts, short-time transforms."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight._C import device, dtype, layout

from .. import _C
from .._core.compose import op
from ._arguments import takes

_ops = _C.ops
_warn_once = _ops["_warn_once"]
Tensor = _C.Tensor


def _frequencies(n, d, indices, dtype, device, requires_grad):
    dtype = _ops["get_default_dtype"]() if dtype is None else dtype
    result = indices(dtype, device) * (1.0 / (n * d))
    return result.requires_grad_() if requires_grad else result


@op(name="fft.fftfreq", out=True)
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: device | str | int | None = None,
    pin_memory: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of the n values of a transform, 0 first, negative ones last.

    Args:
        n (int): the length of the signal.
        d (float): the distance of samples. Default: 1.0
        dtype, layout, device, pin_memory, requires_grad: of the result.

    Example:
        >>> torch.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """

    def indices(dtype, device):
        first = _ops["arange"](0, (n - 1) // 2 + 1, dtype=dtype, device=device)
        return _ops["cat"]([first, _ops["arange"](-(n // 2), 0, dtype=dtype, device=device)])

    return _frequencies(n, d, indices, dtype, device, requires_grad)


@op(name="fft.rfftfreq", out=True)
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: device | str | int | None = None,
    pin_memory: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of the n // 2 + 1 values of a real transform.

    Args:
        n (int): the length of the signal.
        d (float): the distance of samples. Default: 1.0
        dtype, layout, device, pin_memory, requires_grad: of the result.

    Example:
        >>> torch.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """

    def indices(dtype, device):
        return _ops["arange"](0, n // 2 + 1, dtype=dtype, device=device)

    return _frequencies(n, d, indices, dtype, device, requires_grad)


def _dims(x, dim):
    return list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)


@op(name="fft.fftshift")
@takes("input")
def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Moves the zero frequency to the middle.

    Args:
        input (Tensor): a spectrum.
        dim (int or sequence of ints): the dimensions. Default: None, all

    Example:
        >>> torch.fft.fftshift(torch.fft.fftfreq(4))
        tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    dims = _dims(input, dim)
    return input.roll([input.shape[d] // 2 for d in dims], dims)


@op(name="fft.ifftshift")
@takes("input")
def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Inverse of fftshift: moves the middle to the front.

    Args:
        input (Tensor): a shifted spectrum.
        dim (int or sequence of ints): the dimensions. Default: None, all

    Example:
        >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    dims = _dims(input, dim)
    return input.roll([(input.shape[d] + 1) // 2 for d in dims], dims)


def _padded_window(name, window, win_length, n_fft, dtype, device):
    if window is None:
        window = _ops["ones"](win_length, dtype=dtype, device=device)
    elif window.dim() != 1 or window.shape[0] != win_length:
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={win_length}, "
            f"but got window with size {list(window.shape)}"
        )
    if win_length == n_fft:
        return window
    left = (n_fft - win_length) // 2
    zeros = _ops["zeros"](n_fft, dtype=window.dtype, device=device)
    return _ops["cat"]([zeros[:left], window, zeros[: n_fft - win_length - left]])


@op(method=True)
@takes("input")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Short-time Fourier transform: transforms of overlapping frames, (..., frequencies, frames).

    Args:
        input (Tensor): (N,) or (B, N), the signals.
        n_fft (int): the length of a frame.
        hop_length (int): the distance of frames. Default: None, n_fft // 4
        win_length (int): of the window, which is padded with zeros to n_fft. Default: None, n_fft
        window (Tensor): (win_length,), what frames are multiplied with. Default: None, ones
        center (bool): pads the signal on both sides, so that frame t is centred at t * hop_length. Default: True
        pad_mode (str): how it is padded, a mode of F.pad. Default: 'reflect'
        normalized (bool): divides by sqrt(n_fft). Default: False
        onesided (bool): keeps n_fft // 2 + 1 frequencies. Default: None, for real signals and windows
        return_complex (bool): must be True, or False for real pairs in a last dimension. Default: None
        align_to_window (bool): without center, whether frames are as long as the window. Default: None

    Example:
        >>> torch.stft(torch.ones(16), 8, window=torch.hann_window(8), return_complex=True).shape
        torch.Size([5, 9])
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"stft: expected a tensor of floating point or complex values, got {input.dtype}")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, got shape {list(input.shape)}")
    if return_complex is None:
        if not input.is_complex() and (window is None or not window.is_complex()):
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs")
        return_complex = True
    x = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        pad = n_fft // 2
        if pad_mode == "reflect" and pad >= x.shape[-1]:
            raise RuntimeError(
                f"stft: reflecting {pad} values needs a longer input, got length {x.shape[-1]}"
            )
        x = _pad_ends(x, pad, pad_mode)
    if not 0 < n_fft <= x.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"stft: expected 0 < win_length <= n_fft, but got win_length={length}")
    real_dtype = _ops["real"](x).dtype if x.is_complex() else x.dtype
    if window is None:
        _warn_once(
            "A window was not provided. A rectangular window is applied, which leaks between frequencies; give one like "
            "torch.hann_window(n_fft), or say window=torch.ones(n_fft) for the rectangular one."
        )
    w = _padded_window("stft", window, length, n_fft, real_dtype, x.device)
    frames = x.unfold(-1, n_fft, hop) * w  # (batch, pieces, n_fft)
    onesided = not frames.is_complex() if onesided is None else onesided
    if onesided and frames.is_complex():
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    norm = "ortho" if normalized else None
    result = (_ops["fft.rfft"] if onesided else _ops["fft.fft"])(frames, None, -1, norm).transpose(1, 2)
    if input.dim() == 1:
        result = result.squeeze(0)
    return result if return_complex else _ops["view_as_real"](result)


def _pad_ends(x, pad, mode):
    if mode == "reflect":
        return _ops["cat"]([x[..., 1 : pad + 1].flip(-1), x, x[..., x.shape[-1] - pad - 1 : -1].flip(-1)], -1)
    from ..nn import functional

    return functional.pad(x.unsqueeze(1), (pad, pad), mode).squeeze(1)


def _check_istft(input, n_fft, hop, win, window, onesided, return_complex):
    """What istft refuses; returns whether the input has one side of the spectrum only."""
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft "
            "with return_complex=True."
        )
    if input.numel() == 0:
        raise RuntimeError("istft: input tensor cannot be empty.")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, got shape {list(input.shape)}")
    full = input.shape[-2] == n_fft and (n_fft != n_fft // 2 + 1)
    onesided = not full if onesided is None else onesided
    expected, formula = (n_fft // 2 + 1, "n_fft / 2 + 1") if onesided else (n_fft, "n_fft")
    if input.shape[-2] != expected:
        raise RuntimeError(
            "istft: expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"{formula} when onesided={bool(onesided)}, but got {input.shape[-2]}"
        )
    if not 0 < hop <= win:
        raise RuntimeError("istft: expected 0 < hop_length <= win_length")
    if not 0 < win <= n_fft:
        raise RuntimeError("istft: expected 0 < win_length <= n_fft")
    if onesided and window is not None and window.is_complex():
        raise RuntimeError("Cannot have onesided output if window is complex")
    if return_complex and onesided:
        raise RuntimeError("istft: cannot have onesided output if window or input is complex")
    return onesided


def _overlap_add(frames, hop):
    """(batch, frames, n) to (batch, total): frame i begins at i * hop."""
    batch, count, n = frames.shape
    starts = _ops["arange"](count, device=frames.device).unsqueeze(1) * hop
    index = (starts + _ops["arange"](n, device=frames.device)).reshape(-1)
    empty = _ops["zeros"](batch, n + hop * (count - 1), dtype=frames.dtype, device=frames.device)
    return empty.index_add(1, index, frames.reshape(batch, -1))


def _padded_to_length(signal, length):
    """(batch, n) with zeros up to `length`, which is unusual and said."""
    import warnings

    warnings.warn(
        "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
        "Please check your center and hop_length settings.",
        UserWarning,
        stacklevel=4,
    )
    rest = _ops["zeros"](signal.shape[0], length - signal.shape[-1], dtype=signal.dtype, device=signal.device)
    return _ops["cat"]([signal, rest], -1)


@op(method=True)
@takes("input")
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Inverse of torch.stft: frames are transformed back, weighted by the window, added up and divided by its square's sum.

    Args:
        input (Tensor): (..., frequencies, frames), complex.
        n_fft (int): the length of a frame.
        hop_length (int): the distance of frames. Default: None, n_fft // 4
        win_length (int): of the window. Default: None, n_fft
        window (Tensor): as given to stft. Default: None, ones
        center (bool): whether the signal had been padded. Default: True
        normalized (bool): whether it had been divided by sqrt(n_fft). Default: False
        onesided (bool): whether there are n_fft // 2 + 1 frequencies. Default: None, told by their number
        length (int): what the signal is cut or padded to. Default: None
        return_complex (bool): whether the signal is complex. Default: False

    Raises:
        RuntimeError: windows whose sum of squares is 0 somewhere.

    Example:
        >>> w = torch.hann_window(8)
        >>> x = torch.arange(16.0)
        >>> y = torch.istft(torch.stft(x, 8, window=w, return_complex=True), 8, window=w)
        >>> torch.allclose(x, y, atol=1e-5)
        True
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    onesided = _check_istft(input, n_fft, hop, win, window, onesided, return_complex)
    if window is None:
        _warn_once(
            "A window was not provided. A rectangular window is applied: give the one that stft had, or say "
            "window=torch.ones(n_fft) if it had none."
        )
    x = input if input.dim() == 3 else input.unsqueeze(0)
    w = _padded_window("istft", window, win, n_fft, _ops["real"](x).dtype, x.device)
    x = x.transpose(1, 2)  # (batch, frames, frequencies)
    norm = "ortho" if normalized else None
    if return_complex:
        frames = _ops["fft.ifft"](x, None, -1, norm)
    else:
        frames = _ops["fft.irfft"](x if onesided else x[..., : n_fft // 2 + 1], n_fft, -1, norm)
        if w.is_complex():
            raise RuntimeError("istft: a complex window needs return_complex=True")
    signal = _overlap_add(frames * w, hop)
    weight = _overlap_add((w * w).expand(1, frames.shape[1], n_fft), hop)
    start = n_fft // 2 if center else 0
    end = signal.shape[-1] - start if length is None else start + length
    signal, weight = signal[:, start:end], weight[:, start:end]
    if bool((weight.abs() < 1e-11).any()):
        raise RuntimeError("window overlap add min: 1. Some elements are covered by zeros of the window only")
    signal = signal / weight
    if length is not None and signal.shape[-1] < length:
        signal = _padded_to_length(signal, length)
    return signal if input.dim() == 3 else signal.squeeze(0)
