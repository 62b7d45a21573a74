"""What operators of a program (torch.library) must keep to, and the node that records them."""

import threading
import warnings

import rushlight as rl


class _BelowAutograd(threading.local):
    depth = 0  # of torch._C._AutoDispatchBelowAutograd


below_autograd = _BelowAutograd()

_NO_DEVICE = (
    "Functions without tensor inputs are required to have a `device: torch.device` argument when kernels are registered "
    "for some device types: it says which of them runs"
)


def flat(args):
    """The arguments, and those in lists."""
    for a in args:
        if isinstance(a, (list, tuple)):
            yield from a
        else:
            yield a


def refuse_named_tensors(op):
    """Neither gradients nor vmap's rules know tensors that are given by name alone."""
    for a in op._schema.arguments:
        if a.kwarg_only and str(a.type).startswith("Tensor"):
            raise NotImplementedError(
                f"{op._qualname}: operators with kwarg-only Tensor args are not supported: {a.name} stands behind the "
                "star. Make it positional"
            )


def check_schema(op, mutates):
    """A schema that was given by hand says the same of writes as mutates_args."""
    written = {a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    if mutates != "unknown" and written != set(mutates):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={set(mutates) or '{}'}` and `schema={op._schema}`: the "
            f"op mutates {written or '{}'} by its schema. Please make these consistent"
        )


def check_device_argument(op):
    """An operator with kernels per device, and without tensors, is told the device."""
    names = [(a.name, str(a.type)) for a in op._schema.arguments]
    if any("Tensor" in kind for _, kind in names) or any(name == "device" for name, _ in names):
        return
    raise ValueError(_NO_DEVICE)


def check_device(op, args, kwargs):
    names = [a.name for a in op._schema.arguments if not a.kwarg_only]
    given = {**dict(zip(names, args, strict=False)), **kwargs}.get("device")
    if given is None or any(isinstance(a, rl.Tensor) for a in flat((*args, *kwargs.values()))):
        return
    kind = rl.device(given).type
    if kind not in ("cpu", "meta"):
        raise RuntimeError(f"{op._name} does not have a kernel registered for {kind}, only for cpu")


def check_aliases(op, args, kwargs, result):
    """Results are new tensors: a program of graphs may reorder calls, and looks at nothing but the schema."""
    seen = {_memory(t) for t in _tensors((*args, *kwargs.values()))}
    seen.discard(None)
    for t in _tensors(result if isinstance(result, (list, tuple)) else [result]):
        memory = _memory(t)
        if memory is None:
            continue
        if memory in seen:
            raise RuntimeError(
                f"{op._qualname} (with implementation in {getattr(op._function, '__module__', '?')}): The output of this "
                "custom operator (1) must not also be an input to this custom operator and (2) may not alias any inputs "
                "to this custom operator or other returns. Return a clone of it, x.clone(), or nothing where the operator "
                "writes to an argument"
            )
        seen.add(memory)


def _tensors(values):
    return (t for t in flat(values) if isinstance(t, rl.Tensor))


def _memory(t):
    try:
        return t.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError):
        return None  # it has none


def count_writes(op, args, kwargs):
    """The tensors that the schema says were written to have a new version: graphs that saved them notice."""
    names = [a.name for a in op._schema.arguments if not a.kwarg_only]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    for a in op._schema.arguments:
        if a.alias_info is not None and a.alias_info.is_write:
            for t in _tensors([given.get(a.name)]):
                if not t.is_inference():
                    t._bump_version()


class Call:
    """Arguments of a recorded call: lists are given to the graph tensor by tensor."""

    def __init__(self, args, named):
        self.named, self.lengths = named, [len(a) if isinstance(a, (list, tuple)) else None for a in args]
        self.flat = list(flat(args))
        self.results, self.one_list = None, False

    def grouped(self, values):
        """One value per argument from one per tensor."""
        left = iter(values)
        return tuple(next(left) if n is None else [next(left) for _ in range(n)] for n in self.lengths)

    def spread(self, grads):
        """The reverse, of what a backward returned."""
        found = []
        grads = (*grads, *[None] * (len(self.lengths) - len(grads)))  # arguments left to their defaults
        for n, g in zip(self.lengths, grads, strict=False):
            if n is None:
                found.append(g)
            elif g is None:
                found += [None] * n
            elif not isinstance(g, (list, tuple)) or len(g) != n:
                raise RuntimeError(
                    f"a backward returned {type(g).__name__} as the gradient of a list of {n} tensors: expected a list of "
                    "as many gradients, or None"
                )
            else:
                found += g
        return (*found, *grads[len(self.lengths) :])


def node(op):
    """The autograd.Function of an operator."""

    class Operator(rl.autograd.Function):
        @staticmethod
        def forward(ctx, call, *values):
            args = call.grouped(values)
            ctx.needs_input_grad = call.grouped(ctx.needs_input_grad[1:])
            output = op._run(*args, **call.named)
            if op._setup is not None and call.named:
                op._setup(ctx=ctx, inputs=args, keyword_only_inputs=call.named, output=output)
            elif op._setup is not None:
                op._setup(ctx, args, output)
            ctx._call = call
            if not isinstance(output, (list, tuple)):
                return output
            call.one_list = isinstance(output, list)  # the one result; a tuple is several
            call.results = Call([output] if call.one_list else output, {})
            return tuple(call.results.flat)

        @staticmethod
        def backward(ctx, *grads):
            if op._backward is None:
                return _refuse(op, len(ctx._call.flat))
            results = ctx._call.results
            found = op._backward(ctx, *(grads if results is None else results.grouped(grads)))
            found = found if isinstance(found, (list, tuple)) else (found,)
            return (None, *ctx._call.spread(found))

    Operator.__name__ = Operator.__qualname__ = f"{op._name}_"
    return Operator


def _refuse(op, count):
    if op._strict:
        raise RuntimeError(
            f"Trying to backward through {op._qualname} but no autograd formula was registered. Please use "
            "register_autograd to add one."
        )
    warnings.warn(
        f"{op._qualname}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop "
        "through it. Its inputs get no gradient: register one with torch.library.register_autograd",
        stacklevel=2,
    )
    return (None,) * (count + 1)


def without_formula(op, args, kwargs, mode):
    """An operator declared with a schema, and without a backward. Its function is seen by autograd as it is; unless the
    mode is "nothing", a backward through the results says that nobody has thought of their gradient."""
    result = op._run(*args, **kwargs)
    if mode == "nothing":
        return result
    results = result if isinstance(result, (list, tuple)) else (result,)
    marked = [_marked(op, r, args) if isinstance(r, rl.Tensor) else r for r in results]
    return type(result)(marked) if isinstance(result, (list, tuple)) else marked[0]


def _marked(op, result, args):
    if result.requires_grad:
        result.register_hook(lambda grad: _refuse(op, 0) and None)
        return result
    if not (result.is_floating_point() or result.is_complex()) or any(result is a for a in args):
        return result
    asking = [t for t in _tensors(flat(args)) if t.requires_grad]
    return _Unknown.apply(op, result, *asking)


class _Unknown(rl.autograd.Function):
    """The end of the graph at a result whose gradient is not known."""

    @staticmethod
    def forward(ctx, op, result, *inputs):
        ctx.op, ctx.count = op, len(inputs) + 1
        return result.view_as(result)

    @staticmethod
    def backward(ctx, *grads):
        return _refuse(ctx.op, ctx.count)


def apply(op, args, named):
    """The operator, recorded."""
    call = Call(args, named)
    results = node(op).apply(call, *call.flat)
    if call.results is None:
        return results
    grouped = call.results.grouped(results)
    return grouped[0] if call.one_list else grouped
