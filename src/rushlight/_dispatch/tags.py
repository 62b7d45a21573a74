"""Tags of primitives: what programs ask of an op without knowing its name."""

import rushlight as rl

from .. import _C

_SHAPES = {"nonzero", "unique", "_unique", "_unique2", "unique_consecutive", "unique_dim", "masked_select", "argwhere", "bincount",
           "repeat_interleave"}  # fmt: skip
_VALUES = {"_local_scalar_dense", "item", "equal", "is_nonzero", "allclose"}
_RANDOM_IN_PLACE = {
    "normal_",
    "uniform_",
    "bernoulli_",
    "random_",
    "exponential_",
    "cauchy_",
    "log_normal_",
    "geometric_",
}
_VIEW_IN_PLACE = {
    "squeeze_",
    "unsqueeze_",
    "t_",
    "transpose_",
    "swapaxes_",
    "swapdims_",
    "as_strided_",
    "detach_",
    "resize_",
}


def tags_of(overload):
    """The tags of a primitive that is not a program's own."""
    Tag, name = rl.Tag, overload.overloadpacket.__name__
    if overload.namespace not in ("aten", "prims", "prim"):
        return []
    found = [Tag.pt2_compliant_tag]
    if overload._overloadname.endswith("out"):
        found.append(Tag.generated)
    if name in _SHAPES:
        found.append(Tag.dynamic_output_shape)
    if name in _VALUES:
        found.append(Tag.data_dependent_output)
    if overload._flags & _C.OpFlags.RANDOM or name in _RANDOM_IN_PLACE:
        found.append(Tag.nondeterministic_seeded)
    if name in _VIEW_IN_PLACE:
        found.append(Tag.inplace_view)
    if name.endswith("_copy"):
        found.append(Tag.view_copy)
    traits = getattr(overload._function, "traits", None)
    if traits is not None and getattr(traits, "kernel", None):
        found.append(Tag.pointwise)
    return found
