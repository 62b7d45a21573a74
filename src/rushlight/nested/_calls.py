"""What a nested tensor does with a call: the rule of its layout for that op, or a refusal by name."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._C import OpFlags, Tensor
from rushlight.nested import _backward
from rushlight.nested._tensor import Nested, NestedTensor, StridedNested

# What looks at a type, and nothing else.
_METADATA_NAMES = (
    "is_complex is_floating_point is_signed element_size get_device is_inference is_conj is_neg result_type "
    "can_cast promote_types _type_name dim ndimension is_distributed"
)
_METADATA = frozenset(_METADATA_NAMES.split())
# Elementwise, though composed in Python.
_TOO = frozenset(("rrelu", "threshold_backward", "gelu_backward", "silu_backward"))


_VIEWS_NAMES = (
    "view reshape view_as reshape_as transpose swapaxes swapdims permute movedim select narrow slice split "
    "split_with_sizes chunk squeeze unsqueeze flatten unflatten expand expand_as __getitem__ tensor_split _mT "
    "mT"
)
_VIEWS = frozenset(_VIEWS_NAMES.split())


def _memory(x):
    return x._held.untyped_storage().data_ptr()


def _seen(result, x):
    """A result of a view of x knows whose memory it shows."""
    if isinstance(result, tuple):
        for r in result:
            _seen(r, x)
    elif isinstance(result, Nested) and result is not x and _memory(result) == _memory(x):
        result._seen_as_view_of(x)
    return result


def name_of(func):
    name: Any = getattr(func, "_op_name", None) or getattr(func, "__name__", "")
    return name.rpartition(".")[2]


def is_pointwise(func, name):
    if getattr(func, "_flags", 0) & OpFlags.ELEMENTWISE:
        return True
    return name.removesuffix("_") in _TOO or (name.startswith("__r") and name.endswith("_op__"))


def tensors_in(values):
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif type(value) in (list, tuple):
            yield from tensors_in(value)


def _elements(values):
    """Values with the elements of nested tensors instead of these."""
    return [
        v._held if isinstance(v, Nested) else type(v)(_elements(v)) if type(v) in (list, tuple) else v
        for v in values
    ]


def without_overrides(function, *args, **kwargs):
    before = rl._C.ops["_set_torch_function"](False)
    try:
        return function(*args, **kwargs)
    finally:
        rl._C.ops["_set_torch_function"](before)


def call(func, args, kwargs):
    name = name_of(func)
    if name in _METADATA:
        return without_overrides(func, *args, **kwargs)
    if name == "_run_backward":
        return _backward.run_backward(*args, **kwargs)
    if getattr(func, "_op_name", "").startswith("_optim."):  # steps of optimizers go by element
        return func(*_elements(args), **dict(zip(kwargs, _elements(kwargs.values()), strict=True)))
    jagged = strided = False
    for t in tensors_in((*args, *kwargs.values())):
        jagged = jagged or isinstance(t, NestedTensor)
        strided = strided or isinstance(t, StridedNested)
    rules: Any
    if jagged:
        from rushlight.nested import _jagged_rules

        rules = _jagged_rules
    else:
        from rushlight.nested import _strided_rules

        rules = _strided_rules
    if jagged and strided and name not in ("to", "is_same_size"):
        raise RuntimeError(
            f"{name}: a nested tensor of layout torch.strided and one of layout torch.jagged do not mix: make one of the other's "
            "unbind(), torch.nested.as_nested_tensor(list, layout=...)"
        )
    out = kwargs.get("out")
    if out is not None:
        kwargs = {k: v for k, v in kwargs.items() if k != "out"}
        return out.copy_(call(func, args, kwargs))
    kwargs.pop("out", None)
    inner = getattr(func, "__wrapped__", None)
    of_nn = inner is not None and getattr(func, "__module__", "").startswith(
        ("rushlight.nn", "rushlight._C._nn")
    )
    handler = (rules.LAYERS if of_nn else rules.HANDLERS).get(name)
    if handler is not None:
        result = handler(*args, **kwargs)
        return _seen(result, args[0]) if name in _VIEWS and args and isinstance(args[0], Nested) else result
    if inner is not None:  # composed of other functions: each of them comes here
        return inner(*args, **kwargs)
    if is_pointwise(func, name):
        return rules.pointwise(func, name, args, kwargs)
    handler = rules.HANDLERS.get(name[:-1]) if name.endswith("_") and not name.endswith("__") else None
    if handler is not None and isinstance(args[0], Nested):
        return args[0].copy_(handler(*args, **kwargs))
    raise NotImplementedError(rules.refusal(name))
