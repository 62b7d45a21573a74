"""Ops composed in Python, one file per family. See rushlight/_core/compose.py."""

# Classes that packages look for at this address, in torch.ops here.
_CLASSES = {"_OpNamespace": "Namespace", "OpOverloadPacket": "Op", "OpOverload": "Overload"}


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    from rushlight._core import unsupported
    from rushlight import ops

    if name in _CLASSES:
        return getattr(ops, _CLASSES[name])
    raise unsupported.no_name(__name__, name)
