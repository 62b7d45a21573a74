"""torch._subclasses.fake_utils: fake results against real ones."""

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    MetadataMismatchError,
    UnsupportedFakeTensorException,
)
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode


def outputs_are_inputs(outputs: Any, inputs: Any) -> bool:
    """Whether a result is an argument."""
    given = {id(leaf) for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, rl.Tensor)}
    return any(isinstance(leaf, rl.Tensor) and id(leaf) in given for leaf in pytree.tree_leaves(outputs))


def outputs_alias_inputs(outputs: Any, inputs: Any) -> bool:
    """Whether a result shares memory with an argument."""

    def memory(tree: Any) -> set:
        return {
            leaf.untyped_storage()._cdata
            for leaf in pytree.tree_leaves(tree)
            if isinstance(leaf, rl.Tensor) and leaf.layout is rl.strided and leaf.numel()
        }

    return bool(memory(outputs) & memory(inputs))


def check_metadata(fake: Any, real: Any, where: str, strides: bool = True) -> None:
    """Raises where a fake tensor differs from a real one in size, type, device or strides."""
    if tuple(fake.shape) != tuple(real.shape):
        raise MetadataMismatchError(
            f"{where}: Shapes {tuple(real.shape)} and {tuple(fake.shape)} are not equal (real, fake)!"
        )
    if fake.dtype != real.dtype:
        raise MetadataMismatchError(
            f"{where}: Dtypes {real.dtype} and {fake.dtype} are not equal (real, fake)!"
        )
    if fake.device != real.device:
        raise MetadataMismatchError(
            f"{where}: Devices {real.device} and {fake.device} are not equal (real, fake)!"
        )
    if not strides or real.layout is not rl.strided:
        return
    pairs = [(a, b) for n, a, b in zip(real.shape, real.stride(), fake.stride(), strict=True) if n > 1]
    if real.numel() and any(a != b for a, b in pairs):
        raise MetadataMismatchError(
            f"{where}: Strides mismatch! {tuple(real.stride())} and {tuple(fake.stride())} (real, fake)"
        )


def try_convert_fake_to_real(ten_list: list) -> list:
    """Tensors of uninitialised values with the geometry of fake ones; what is no fake tensor stays."""

    def real(t: Any) -> Any:
        if not isinstance(t, FakeTensor) or t.fake_device.type != "cpu":
            return t
        storage = rl.empty(t.elem.untyped_storage().nbytes() // t.element_size(), dtype=t.dtype)
        return storage.as_strided(tuple(t.shape), t.stride(), t.storage_offset())

    from rushlight.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        return [real(t) for t in ten_list]


class CrossRefFakeMode(TorchDispatchMode):
    """A block whose primitives run once more on fake tensors, whose results must agree with the real ones.

    Args:
        ignore_op_fn (callable): primitives for which it is true are left alone. Default: None
        check_strides (bool): strides are compared, too. Default: True
        check_aliasing (bool): whether results share memory with arguments is compared. Default: True

    Example:
        >>> from rushlight._subclasses import CrossRefFakeMode
        >>> with CrossRefFakeMode():
        ...     print(torch.ones(2, 3).sum(0))
        tensor([2., 2., 2.])
    """

    def __init__(
        self, ignore_op_fn: Callable | None = None, *, check_strides: bool = True, check_aliasing: bool = True,
        only_check_ops_with_meta: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.ignore_op_fn = ignore_op_fn if ignore_op_fn is not None else lambda op: False
        self.check_strides, self.check_aliasing = check_strides, check_aliasing
        self.only_check_ops_with_meta = only_check_ops_with_meta

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        expected = None if self.ignore_op_fn(func) or func.mutates else self._fake(func, args, kwargs)
        result = func(*args, **kwargs)
        if expected is None:
            return result
        found, wanted = pytree.tree_leaves(expected[0]), pytree.tree_leaves(result)
        if len(found) != len(wanted):
            raise MetadataMismatchError(f"{func}: {len(found)} fake results, and {len(wanted)} real ones")
        if self.check_aliasing and outputs_are_inputs(result, (args, kwargs)) != outputs_are_inputs(
            *expected
        ):
            raise MetadataMismatchError(f"{func}: a result is an argument on one side alone")
        for i, (fake, real) in enumerate(zip(found, wanted, strict=True)):
            if isinstance(real, rl.Tensor):
                check_metadata(fake, real, f"{func}: output[{i}]", self.check_strides)
        return result

    def _fake(self, func: Any, args: Any, kwargs: Any) -> Any:
        """(results, arguments) on fake tensors, or None where these cannot tell."""
        mode = FakeTensorMode()

        def fake(t: Any) -> Any:
            return mode.from_tensor(t) if isinstance(t, rl.Tensor) else t

        try:
            given, named = pytree.tree_map(fake, (args, kwargs))
            with mode:
                return func(*given, **named), (given, named)
        except (DataDependentOutputException, DynamicOutputShapeException, UnsupportedFakeTensorException):
            return None
        except NotImplementedError:
            return None


__getattr__ = _unsupported_attribute(__name__)
