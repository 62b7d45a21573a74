"""Mixed precision: autocast regions and gradient scaling."""

from rushlight.amp import autocast_mode as autocast_mode
from rushlight.amp import grad_scaler as grad_scaler
from rushlight.amp.autocast_mode import autocast as autocast
from rushlight.amp.autocast_mode import custom_bwd as custom_bwd
from rushlight.amp.autocast_mode import custom_fwd as custom_fwd
from rushlight.amp.autocast_mode import is_autocast_available as is_autocast_available
from rushlight.amp.grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
