"""Anomaly detection: backward stops at the first NaN and names the line of the forward call it belongs to."""

from __future__ import annotations

from typing import Any

from .. import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switches anomaly detection on or off: at once, and as a context until its end.

    Args:
        mode (bool): whether backward stops at the first NaN, and says which line of the program it belongs to.
        check_nan (bool): False keeps the reports of errors, without looking for NaN. Default: True

    Example:
        >>> x = torch.tensor([0.0], requires_grad=True)
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     (torch.sqrt(x) * 0).backward()
        Traceback (most recent call last):
            ...
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.saved = _C.ops["is_anomaly_enabled"](), _C.ops["is_anomaly_check_nan_enabled"]()
        _C.ops["_set_anomaly"](bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        _C.ops["_set_anomaly"](*self.saved)


class detect_anomaly:
    """A region with anomaly detection: backward stops at the first NaN and names the line it belongs to.

    It warns that it is on, since it slows the program down; set_detect_anomaly does the same without a warning.

    Args:
        check_nan (bool): False keeps the reports of errors, without looking for NaN. Default: True

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> with torch.autograd.detect_anomaly():
        ...     print(torch.is_anomaly_enabled())
        True
    """

    def __init__(self, check_nan: bool = True) -> None:
        import warnings

        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.setting = set_detect_anomaly(True, self.check_nan)

    def __exit__(self, *exc: Any) -> None:
        self.setting.__exit__(*exc)
