"""SchemaCheckMode: inside it, what every primitive writes to and shares memory with is held against its schema."""

from typing import Any, NamedTuple

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._dispatch.schema import AliasInfo
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode


class Mutation(NamedTuple):
    """An argument that was written to."""

    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    """An argument and a result that share memory."""

    op_name: str
    arg_name: str
    output_number: str


def _tensors(tree: Any) -> list:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, rl.Tensor)]


def _inner(t: Any) -> Any:
    """The tensor that a wrapper of one wraps."""
    return getattr(t, "elem", t)


def clone_inputs(args: Any) -> list:
    """Copies of the tensors among values and in the lists among them."""
    return [pytree.tree_map(lambda v: v.detach().clone() if isinstance(v, rl.Tensor) else v, a) for a in args]


def _memory(value: Any) -> set:
    found = set()
    for t in _tensors(value):
        t = _inner(t)
        if t.numel() and not t.is_sparse:
            found.add(t.untyped_storage()._cdata)
    return found


def _metadata(value: Any) -> list:
    return [(tuple(t.shape), t.stride() if t.layout is rl.strided else None) for t in _tensors(value)]


def _changed(before: list, value: Any, old: Any) -> bool:
    if before != _metadata(value):
        return True
    pairs = zip(_tensors(value), _tensors(old), strict=True)
    return any(
        not rl.allclose(_inner(now), _inner(then), rtol=0, atol=0, equal_nan=True) for now, then in pairs
    )


class SchemaCheckMode(TorchDispatchMode):
    """A block whose primitives are watched: `ops` are those that ran, `mutated` and `aliasing` what they did.

    Raises:
        RuntimeError: a primitive writes to an argument, or shares memory with one, which its schema does not say.

    Example:
        >>> from rushlight._subclasses.schema_check_mode import SchemaCheckMode
        >>> x = torch.ones(2)
        >>> with SchemaCheckMode() as checked:
        ...     _ = x.sinh_()
        >>> checked.mutated
        [Mutation(op_name='aten::sinh_', arg_name='input')]
    """

    def __init__(self) -> None:
        super().__init__()
        self.ops: list = []
        self.mutated: list = []
        self.aliasing: list = []

    def reset_cache(self) -> None:
        self.ops.clear()
        self.mutated.clear()
        self.aliasing.clear()

    def display_ops(self) -> None:
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        named = _named(func, args, kwargs)
        before = {name: (_metadata(value), clone_inputs([value])[0]) for name, (_, value) in named.items()}
        own = {name: _memory(value) for name, (_, value) in named.items()}
        out = func(*args, **kwargs)
        name = func._schema.name
        self.ops.append(name)
        if not name.startswith(("aten::", "prim", "rushlight::")) and not func._schema.is_mutable:
            given = [t for _, value in named.values() for t in _tensors(value)]
            if any(result is t for result in _tensors(out) for t in given):
                raise RuntimeError(
                    f"Custom operators are not allowed to directly return inputs: {func} does. Return a clone, or a view with "
                    "an alias annotation"
                )
        several = isinstance(out, (list, tuple)) and (len(func._schema.returns) > 1 or len(out) > 1)
        results = list(out) if several else [out]
        self._check_results(func, results)
        marked = _marks(func._schema, named, len(results))
        for argument, (info, value) in named.items():
            # What shares memory with an argument that may be written to is written to with it.
            with_it = [i for other, (i, _) in named.items() if i is not None and own[other] & own[argument]]
            infos = [*with_it, *([] if info is None else [info])]
            shown = "input" if argument in ("self", "input") else argument
            self._check_aliases(name, shown, infos, marked, own[argument], results)
            if _changed(before[argument][0], value, before[argument][1]):
                if not any(i.is_write for i in infos):
                    raise RuntimeError(f"Argument {shown} is not defined as mutable but was mutated")
                self.mutated.append(Mutation(name, shown))
        return out

    def _check_aliases(
        self, name: str, shown: str, infos: list, marked: list, own: set, results: list
    ) -> None:
        for i, result in enumerate(results):
            if not own & _memory(result):
                continue
            shared = [
                r
                for r, m in zip(results, marked, strict=False)
                if m is not None and _memory(r) & _memory(result)
            ]
            marks = [
                m
                for r, m in zip(results, marked, strict=False)
                if m is not None and any(r is s for s in shared)
            ]
            if not any(info.before_set & mark.before_set for info in infos for mark in marks):
                raise RuntimeError(f"Argument {shown} is not defined to alias output but was aliasing")
            self.aliasing.append(Aliasing(name, shown, f"output_{i}"))

    def _check_results(self, func: Any, results: list) -> None:
        marked = [r.alias_info for r in func._schema.returns]
        free = all(m is None for m in marked)
        for i in range(len(results)):
            for j in range(i + 1, len(results)):
                if free and _memory(results[i]) & _memory(results[j]):
                    raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")


def _marks(schema: Any, named: dict, count: int) -> list:
    """The alias annotations of the results: those of out= are its tensors."""
    outs = [
        info for name, (info, _) in named.items() if info is not None and name not in _argument_names(schema)
    ]
    return outs if len(outs) == count else [r.alias_info for r in schema.returns]


def _argument_names(schema: Any) -> set:
    return {a.name for a in schema.arguments}


def _named(func: Any, args: Any, kwargs: Any) -> dict:
    """{name: (alias annotation, value)} of the arguments of a call."""
    found, schema = {}, func._schema
    positional = [a for a in schema.arguments if not a.kwarg_only]
    for argument, value in zip(positional, args, strict=False):
        found[argument.name] = (argument.alias_info, value)
    infos = {a.name: a.alias_info for a in schema.arguments}
    for name, value in kwargs.items():
        if name == "out" and isinstance(value, (list, tuple)):  # the results by their names
            own = _result_names(func, len(value))
            found.update(
                {n: (AliasInfo(f"a{i}", True), v) for i, (n, v) in enumerate(zip(own, value, strict=True))}
            )
        else:
            found[name] = (infos.get(name), value)
    if schema.name in _TRAINING and found.get("training", (None, False))[1]:
        for name in ("running_mean", "running_var"):
            found[name] = (AliasInfo(name, True), found[name][1])
    return found


def _result_names(func: Any, count: int) -> list:
    """The names of the results of a primitive."""
    stated = getattr(func._function, "_results", None)
    names = [name.strip() for name in stated.split(",")] if stated else []
    return names if len(names) == count else [f"out{i}" for i in range(count)]


# Primitives that write to running statistics where they train, which their schemas do not say.
_TRAINING = {"aten::native_batch_norm", "aten::batch_norm", "aten::instance_norm", "aten::cudnn_batch_norm"}


__getattr__ = _unsupported_attribute(__name__)
