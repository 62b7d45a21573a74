"""functorch.experimental: what its names became since."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._functorch.apis import chunk_vmap as chunk_vmap
from rushlight._transforms.functional_call import (
    replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_,
)
from rushlight.func import functionalize as functionalize
from rushlight.func import hessian as hessian
from rushlight.func import jacfwd as jacfwd
from rushlight.func import jvp as jvp

__getattr__ = _unsupported_attribute(__name__)
