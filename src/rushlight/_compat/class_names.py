"""Names of classes that PyTorch has in its top level: aliases of ours, and placeholders of those that are not here."""

import enum

import rushlight as rl
from rushlight._core.unsupported import placeholder as _placeholder

DeviceObjType, TensorType, Generic = (_placeholder(n) for n in ("DeviceObjType", "TensorType", "Generic"))
# What an operator is said to be (OpOverload.tags).
Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded pointwise pt2_compliant_tag reduction view_copy",
    module="torch",
)
Tag.__doc__ = "What an operator is said to be, in OpOverload.tags."
FloatType, IntType, BoolType, StringType, NoneType, ListType, DictType, TupleType, OptionalType = (
    _placeholder(f"jit.{n}")
    for n in (
        "FloatType",
        "IntType",
        "BoolType",
        "StringType",
        "NoneType",
        "ListType",
        "DictType",
        "TupleType",
        "OptionalType",
    )
)


StorageBase = rl.storage.StorageBase
Stream, Event = rl.cpu.Stream, rl.cpu.Event
Future = rl.futures.Future
ScriptModule, ScriptFunction = rl.jit.ScriptModule, rl.jit.ScriptFunction
