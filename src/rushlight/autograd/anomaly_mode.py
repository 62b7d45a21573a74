"""Anomaly detection: backward stops at the first NaN and names the line of the forward call it belongs to."""

from .. import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Turn anomaly detection on or off, for good or as a context manager for a block."""

    def __init__(self, mode, check_nan=True):
        self.saved = _C.ops["is_anomaly_enabled"](), _C.ops["is_anomaly_check_nan_enabled"]()
        _C.ops["_set_anomaly"](bool(mode), bool(check_nan))

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        _C.ops["_set_anomaly"](*self.saved)


class detect_anomaly:
    """Context manager: anomaly detection inside a block."""

    def __init__(self, check_nan=True):
        import warnings

        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        self.setting = set_detect_anomaly(True, self.check_nan)

    def __exit__(self, *exc):
        self.setting.__exit__(*exc)
