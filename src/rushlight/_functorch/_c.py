"""torch._C._functorch: levels of vmap by hand, and questions about the tensors inside."""

import enum
from collections.abc import Iterator

import rushlight as rl
from rushlight._transforms.vmap.batched import Batched, _levels, batched_at, inside, physical, wrap
from rushlight._transforms.vmap.batched import get_unwrapped as get_unwrapped
from rushlight._transforms.vmap.batched import is_batchedtensor as is_batchedtensor
from rushlight._transforms.vmap.rules.registry import fallback


class TransformType(enum.Enum):
    """The kinds of transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


# PyTorch's layers of dispatch, to be named; calls here take one path.
DispatchKey = enum.Enum(
    "DispatchKey",
    "Undefined Dense CPU CUDA Meta Sparse SparseCPU SparseCsrCPU QuantizedCPU NestedTensorCPU BackendSelect Python "
    "PythonDispatcher PythonTLSSnapshot FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode FuncTorchBatched "
    "FuncTorchVmapMode FuncTorchGradWrapper Functionalize Conjugate Negative ZeroTensor ADInplaceOrView AutogradOther "
    "AutogradFunctionality AutogradCPU AutogradCUDA AutogradMeta AutogradNestedTensor Autograd Tracer AutocastCPU "
    "AutocastCUDA PreDispatch CompositeImplicitAutograd CompositeExplicitAutograd",
)


class DispatchKeySet:
    """A set of DispatchKeys."""

    def __init__(self, *keys: DispatchKey) -> None:
        self._keys = frozenset(keys)

    def __iter__(self) -> Iterator[DispatchKey]:
        return iter(sorted(self._keys, key=lambda key: key.value))

    def __or__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(*self._keys, *other._keys)

    def __and__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(*(self._keys & other._keys))

    def __sub__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(*(self._keys - other._keys))

    def add(self, key: DispatchKey) -> "DispatchKeySet":
        return DispatchKeySet(*self._keys, key)

    def remove(self, key: DispatchKey) -> "DispatchKeySet":
        return DispatchKeySet(*(self._keys - {key}))

    def has(self, key: DispatchKey) -> bool:
        return key in self._keys

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


_open: list = []  # the blocks of _vmap_increment_nesting


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Begins a vmap over so many samples; its level."""
    block = inside(batch_size, randomness)
    level = block.__enter__()
    _open.append(block)
    return level


def _vmap_decrement_nesting() -> int:
    """Ends the innermost vmap."""
    _open.pop().__exit__(None, None, None)
    return len(_levels.stack) + 1


def _add_batch_dim(tensor: rl.Tensor, in_dim: int, level: int) -> rl.Tensor:
    """One sample of tensor, along dimension in_dim, at a level of vmap."""
    return wrap(tensor if in_dim == 0 else tensor.movedim(in_dim, 0), level)


def _remove_batch_dim(tensor: rl.Tensor, level: int, batch_size: int, out_dim: int) -> rl.Tensor:
    """All samples of tensor, along dimension out_dim."""
    return physical(tensor, level, batch_size).movedim(0, out_dim)


def _unwrap_batched(tensor: rl.Tensor, level: int) -> tuple[rl.Tensor, int | None]:
    """(all samples, their dimension), or (tensor, None) if it is not mapped at this level."""
    return (tensor._value, 0) if batched_at(tensor, level) else (tensor, None)  # type: ignore[attr-defined]


def maybe_get_level(tensor: rl.Tensor) -> int:
    """The level of vmap that a tensor belongs to, or -1."""
    return tensor._level if type(tensor) is Batched else -1  # type: ignore[attr-defined]


def maybe_get_bdim(tensor: rl.Tensor) -> int:
    """The dimension of the samples, or -1."""
    return 0 if type(tensor) is Batched else -1


def maybe_current_level() -> int | None:
    """The level of the innermost vmap, or None outside of all."""
    return len(_levels.stack) or None


peek_interpreter_stack = maybe_current_level


def current_level() -> int:
    """The level of the innermost vmap."""
    return len(_levels.stack)


def is_gradtrackingtensor(tensor: rl.Tensor) -> bool:
    """Never: torch.func's derivatives run on plain tensors here."""
    return False


is_functionaltensor = is_legacy_batchedtensor = is_gradtrackingtensor


def is_functorch_wrapped_tensor(tensor: rl.Tensor) -> bool:
    """Whether a transform wraps the tensor: vmap alone does."""
    return type(tensor) is Batched


def _is_vmap_fallback_enabled() -> bool:
    return fallback.enabled


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Whether functions without a rule may run sample by sample."""
    fallback.enabled = bool(enabled)


def reshape_dim_into(src: int, dst: int, x: rl.Tensor) -> rl.Tensor:
    """x with dimension src joined to dst of the others."""
    rank = x.dim()
    src = src % rank
    dst = dst % (rank - 1)
    moved = x.movedim(src, dst)
    shape = list(moved.shape)
    shape[dst : dst + 2] = [shape[dst] * shape[dst + 1]]
    return moved.reshape(shape)


def reshape_dim_outof(src: int, size: int, x: rl.Tensor) -> rl.Tensor:
    """x with dimension src split into (size, rest)."""
    src = src % x.dim()
    if x.shape[src] % size:
        raise RuntimeError(f"reshape_dim_outof: {x.shape[src]} is not divisible by {size}")
    shape = list(x.shape)
    shape[src : src + 1] = [size, x.shape[src] // size]
    return x.reshape(shape)
