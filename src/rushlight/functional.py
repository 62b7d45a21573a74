"""torch.functional: functions of the package under their older address."""

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

_NAMES = [
    "align_tensors", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
    "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "split", "stft", "tensordot",
    "unique", "unique_consecutive", "unravel_index",
]  # fmt: skip
globals().update({name: getattr(rl, name) for name in _NAMES if hasattr(rl, name)})
Tensor = rl.Tensor
_unsupported = _unsupported_attribute(__name__)


def __getattr__(name):
    return rl.nn.functional if name == "F" else _unsupported(name)
