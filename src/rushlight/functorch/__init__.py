"""The package functorch: the older address of torch.func, and modules as functions of their parameters."""

import functools
import warnings

from rushlight._functorch.make_functional import FunctionalModule as FunctionalModule
from rushlight._functorch.make_functional import FunctionalModuleWithBuffers as FunctionalModuleWithBuffers
from rushlight._functorch.make_functional import combine_state_for_ensemble as combine_state_for_ensemble
from rushlight._functorch.make_functional import make_functional as make_functional
from rushlight._functorch.make_functional import make_functional_with_buffers as make_functional_with_buffers
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight import func as _func
from rushlight.version import __version__ as __version__


def _deprecated(name, home="torch.func"):
    """A transform under its older name, which says where it has moved."""
    transform = getattr(_func, name)

    @functools.wraps(transform)
    def call(*args, **kwargs):
        warnings.warn(
            f"functorch.{name} is deprecated: functorch is a part of PyTorch. Please use `{home}.{name}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return transform(*args, **kwargs)

    return call


vmap = _deprecated("vmap", "torch")
grad, grad_and_value = _deprecated("grad"), _deprecated("grad_and_value")
vjp, jvp = _deprecated("vjp"), _deprecated("jvp")
jacrev, jacfwd, hessian = _deprecated("jacrev"), _deprecated("jacfwd"), _deprecated("hessian")
functionalize = _deprecated("functionalize")


def __getattr__(name):
    if name == "make_fx":  # with all of torch.fx, which few programs need
        from rushlight.fx.experimental.proxy_tensor import make_fx

        return make_fx
    return _missing(name)


_missing = _unsupported_attribute(__name__)
