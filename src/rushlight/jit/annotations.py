"""Types for annotations of scripted code."""

from typing import Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = List  # noqa: UP006
__getattr__ = _unsupported_attribute(__name__)
