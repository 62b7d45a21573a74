"""Selective checkpoints: a policy says which ops keep their results, so that backward need not compute them again."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_map


class CheckpointPolicy(enum.Enum):
    """What becomes of an op's result in a checkpoint."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


class SelectiveCheckpointContext:
    """Tells a policy whether it is asked during the recomputation."""

    def __init__(self, *, is_recompute: Any) -> None:
        self.is_recompute = is_recompute


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_METADATA = {"size", "sym_size", "stride", "sym_stride", "storage_offset", "sym_storage_offset", "numel", "sym_numel",
             "dim", "is_contiguous", "detach", "layout", "device", "prim_layout", "prim_device"}  # fmt: skip


def _ignored(func: Callable[..., Any]) -> Any:
    """Ops that ask for sizes and the like, and detach, are no work."""
    return str(func).split(".")[1 if str(func).startswith("aten.") else 0] in _METADATA


class _Kept:
    """A result, and the version that it had."""

    def __init__(self, value: Any) -> None:
        self.val = value.detach() if isinstance(value, rl.Tensor) else value
        self.version = value._version if isinstance(value, rl.Tensor) else None

    def get(self, allow_mutation: Any) -> Any:
        if self.version is not None and not allow_mutation and self.val._version != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated. Leave that op to be recomputed, or "
                "pass allow_cache_entry_mutation=True."
            )
        return self.val


class _CachingTorchDispatchMode(TorchDispatchMode):
    """During forward: keeps what the policy says."""

    def __init__(self, policy_fn: Any, storage: Any) -> None:
        super().__init__()
        self.policy_fn, self.storage = policy_fn, storage

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if _ignored(func):
            return func(*args, **kwargs)
        policy = self.policy_fn(SelectiveCheckpointContext(is_recompute=False), func, *args, **kwargs)
        out = func(*args, **kwargs)
        if _saved(policy):
            self.storage[func].append(tree_map(_Kept, out))
        return out


class _CachedTorchDispatchMode(TorchDispatchMode):
    """During the recomputation: gives back what was kept."""

    def __init__(self, policy_fn: Any, storage: Any, allow_cache_entry_mutation: Any) -> None:
        super().__init__()
        self.policy_fn, self.storage = policy_fn, storage
        self.allow_cache_entry_mutation = allow_cache_entry_mutation

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if _ignored(func):
            return func(*args, **kwargs)
        policy = self.policy_fn(SelectiveCheckpointContext(is_recompute=True), func, *args, **kwargs)
        if not _saved(policy):
            return func(*args, **kwargs)
        kept = self.storage.get(func)
        if kept is None:
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        if not kept:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        return tree_map(lambda k: k.get(self.allow_cache_entry_mutation), kept.pop(0))


def _saved(policy: Any) -> Any:
    if isinstance(policy, bool):  # the older form
        return policy
    return policy in _SAVED


def _policy_of(ops: Any) -> Any:
    """A policy that keeps the results of these ops."""
    for op in ops:
        if isinstance(op, rl.ops.OpOverload):
            continue
        hint = ""
        if isinstance(op, rl.ops.OpOverloadPacket):
            hint = " Please update the OpOverloadPacket to a specific OpOverload, such as .default."
        raise ValueError(
            f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op).__name__}.{hint}"
        )

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        return CheckpointPolicy.MUST_SAVE if op in ops else CheckpointPolicy.PREFER_RECOMPUTE

    return policy


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> Any:
    """The two contexts of `checkpoint(..., context_fn=...)` that keep the results of some ops.

    Args:
        policy_fn_or_list: policy(ctx, op, *args, **kwargs) -> CheckpointPolicy, or the ops whose results are kept.
        allow_cache_entry_mutation: whether results that are kept may be written to.
    """
    if isinstance(policy_fn_or_list, list):
        policy = _policy_of(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict[Any, Any] = defaultdict(list)
    return (
        _CachingTorchDispatchMode(policy, storage),
        _CachedTorchDispatchMode(policy, storage, allow_cache_entry_mutation),
    )
