"""Function transforms: grad, vjp, jvp, jacobians, hessian, vmap, and calling modules as functions.

Built on autograd: a transform differentiates with respect to fresh copies of its arguments. If the function's
result also depends on other tensors that require grad (an outer transform's arguments, a module's
parameters), the transform's own result stays differentiable with respect to those; otherwise it is plain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight as rl

from ._ops._rearrange import rearrange
from ._transforms.functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state
from ._transforms.jacobians import columns, pull_back, rows
from ._transforms.vmap.batched import Batched, get_unwrapped, innermost, random_as, spread, wrap
from ._transforms.vmap.call import vmap
from .autograd.function import _transforms
from .utils._pytree import tree_flatten, tree_map, tree_unflatten

_dual_of = rl._C.ops["_dual_of"]

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Any:
    """A function that computes the same without writes: each becomes a new tensor, which views are taken of again.

    Writes to the arguments come last, as copy_. Traced by make_fx, the program has no other writes; run as it is, it gives
    what func gives. A write to a view of which func itself takes a gradient is refused.

    Args:
        func (callable): any function of tensors.
        remove (str): "mutations", or "mutations_and_views", which makes copies of views, too. Default: "mutations"

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import make_fx
        >>> def f(x):
        ...     y = x.clone()
        ...     y.add_(1)
        ...     return y
        >>> print(make_fx(torch.func.functionalize(f))(torch.zeros(2)).code.strip())
        def forward(self, x_1):
            clone = torch.ops.aten.clone.default(x_1);  x_1 = None
            add = torch.ops.aten.add.Tensor(clone, 1);  clone = None
            return add
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            "'mutations', 'mutations_and_views'"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        from ._transforms import functionalization

        run: Any = functionalization.run
        return run(func, args, kwargs, reapply_views=remove == "mutations")

    return wrapped


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The values of all samples of a tensor inside vmap, to look at; other tensors are returned as they are.

    Args:
        tensor (Tensor): any.
        recurse (bool): goes through nested vmaps; False takes off one. Default: True

    Example:
        >>> def f(x):
        ...     print(x.shape, torch.func.debug_unwrap(x).shape)
        ...     return x.sum()
        >>> _ = torch.func.vmap(f)(torch.ones(4, 3))
        torch.Size([3]) torch.Size([4, 3])
    """
    return innermost(tensor) if recurse else get_unwrapped(tensor)


def _fresh(tree: Any) -> Any:
    """(tree of graph inputs with the same values, its tensors)."""
    leaves, spec = tree_flatten(tree)
    fresh = []
    for leaf in leaves:
        if not isinstance(leaf, rl.Tensor):
            raise ValueError(f"Expected all differentiated arguments to be tensors, got {type(leaf)}")
        if not (leaf.dtype.is_floating_point or leaf.dtype.is_complex):
            raise RuntimeError(
                f"only Tensors of floating point dtype can require gradients, or of complex dtype; got {leaf.dtype}"
            )
        leaf = spread(leaf)
        fresh.append(leaf.view_as(leaf) if leaf.requires_grad else leaf.detach().requires_grad_())
    return tree_unflatten(fresh, spec), fresh


def _begun(x: Any) -> Any:
    """x itself, as a step of the graph."""
    return wrap(_begun(x._value), x._level) if type(x) is Batched else _dual_of(x)


def _recorded(tensor: Any) -> Any:
    """The tensor that the graph knows for this one."""
    tensor = innermost(tensor)
    return tensor._held if tensor.is_nested else tensor


def _reaches_outside(outputs: Any, inputs: Any) -> Any:
    """Whether outputs depend on tensors that require grad other than these inputs."""
    if any(not x.is_leaf for x in inputs):
        return True
    own = {id(_recorded(x)) for x in inputs}
    if any(o.requires_grad and o.grad_fn is None and id(_recorded(o)) not in own for o in outputs):
        return True
    stack = [o.grad_fn for o in outputs if o.grad_fn is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in own:
            return True
        for parent, _ in node.next_functions:
            if parent is not None and parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return False


def _tensor_outputs(output: Any, where: Any) -> Any:
    leaves, spec = tree_flatten(output)
    if not leaves or all(leaf is None for leaf in leaves):
        raise RuntimeError(
            f"{where}: Expected f to be a function that has non-empty output (got output = {output})"
        )
    for leaf in leaves:
        if not isinstance(leaf, rl.Tensor):
            raise RuntimeError(
                f"{where}: expected f(*primals) to return only tensors, or a tree of them, got unsupported type "
                f"{type(leaf)}"
            )
    return leaves, spec


def _split_aux(result: Any, has_aux: bool, where: Any) -> Any:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True, "
            f"got {type(result)}"
        )
    for leaf in tree_flatten(result[1])[0]:
        if not isinstance(leaf, rl.Tensor):
            raise RuntimeError(f"{where}: aux of f: Expected tensors, got unsupported type {type(leaf)}")
    return result


def _release(tree: Any, outside: Any) -> Any:
    """Detached from the transform's own inputs, unless an outside graph runs through."""
    if outside:
        return tree
    return tree_map(lambda leaf: leaf.detach() if isinstance(leaf, rl.Tensor) else leaf, tree)


def _pull_back(
    outputs: Any, cotangents: Any, inputs: Any, create_graph: bool, retain_graph: bool = True
) -> Any:
    """Vector-Jacobian product, with zeros where there is no path."""
    grads = pull_back(outputs, cotangents, inputs, create_graph, retain_graph)
    return [rl.zeros_like(x) if g is None else g for x, g in zip(inputs, grads, strict=True)]


def _positions(argnums: Any, count: int, where: Any) -> Any:
    """argnums as a tuple of indices >= 0."""
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    if not all(isinstance(n, int) for n in positions):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {argnums}")
    if not positions:
        raise RuntimeError("argnums must be non-empty: it names the arguments to differentiate by")
    for n in positions:
        if not -count <= n < count:
            raise RuntimeError(f"{where}: Got argnum={n}, but only {count} positional inputs")
    positions = tuple(n % count for n in positions)
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return positions


class _Trace:
    """One run of a function at fresh copies of some of its arguments."""

    def __init__(
        self,
        func: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
        argnums: Any,
        has_aux: bool,
        where: Any,
        forward: bool = False,
    ) -> None:
        recorded = forward or rl.is_grad_enabled()  # under no_grad() a gradient is a plain value
        positions = _positions(argnums, len(args), where)
        args = list(args)

        with rl.enable_grad():
            chosen, self.inputs = _fresh(tuple(args[n] for n in positions))
            # Forward mode may write to its arguments: they are no leaves, but the first step of the graph.
            given = tree_map(_begun, chosen) if forward else chosen
            for n, value in zip(positions, given, strict=True):
                args[n] = value
            _transforms.depth += 1
            try:
                result = func(*args, **kwargs)
            finally:
                _transforms.depth -= 1
        self.output, aux = _split_aux(result, has_aux, where)
        self.outputs, self.output_spec = _tensor_outputs(self.output, where)
        self.reaches = _reaches_outside(self.outputs, self.inputs)
        self.outside = recorded and self.reaches
        self.aux = _release(aux, self.outside)
        self.input_tree = chosen if isinstance(argnums, tuple) else chosen[0]
        self.input_spec = tree_flatten(self.input_tree)[1]

    def value(self) -> Any:
        return _release(self.output, self.outside)


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient and the value of a scalar function.

    Args:
        func (callable): returns a tensor without dimensions; with has_aux, (tensor, aux).
        argnums (int or tuple of ints): the arguments to differentiate by. Default: 0
        has_aux (bool): whether func also returns something that is handed through. Default: False

    Returns:
        A function that returns (gradient, value); with has_aux, (gradient, (value, aux)).

    Example:
        >>> torch.func.grad_and_value(torch.sin)(torch.tensor(0.0))
        (tensor(1.), tensor(0.))
    """

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        trace = _Trace(func, args, kwargs, argnums, has_aux, "grad_and_value(f)(*args)")
        if not isinstance(trace.output, rl.Tensor):
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a tensor, got unsupported type "
                f"{type(trace.output)}"
            )
        if trace.output.dim() != 0:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
                f"{trace.output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        seeds = [rl.ones_like(trace.output)]
        with rl.enable_grad():
            grads = _pull_back(trace.outputs, seeds, trace.inputs, trace.outside, trace.outside)
        grads = tree_unflatten(_release(grads, trace.outside), trace.input_spec)
        value = trace.value()
        return (grads, (value, trace.aux)) if has_aux else (grads, value)

    return wrapper


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of a scalar function; applied again, second derivatives.

    Args:
        func (callable): returns a tensor without dimensions; with has_aux, (tensor, aux).
        argnums (int or tuple of ints): the arguments to differentiate by; a tuple gives a tuple. Default: 0
        has_aux (bool): whether func also returns something that is handed through. Default: False

    Returns:
        A function that returns the gradient; with has_aux, (gradient, aux).

    Example:
        >>> torch.func.grad(lambda x: x**3)(torch.tensor(2.0))
        tensor(12.)
        >>> per_sample = torch.func.vmap(torch.func.grad(lambda w, x: (w * x) ** 2), in_dims=(None, 0))
        >>> per_sample(torch.tensor(3.0), torch.tensor([1.0, 2.0]))
        tensor([ 6., 24.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = both(*args, **kwargs)
        return (result[0], result[1][1]) if has_aux else result[0]

    return wrapper


def _match(tree: Any, spec: Any, where: Any) -> Any:
    leaves, own = tree_flatten(tree)
    if own != spec:
        raise RuntimeError(
            f"{where}: Expected pytree structure {spec}, the same python structure as its counterpart, got {own}"
        )
    return leaves


def _require_floats(outputs: Any) -> None:
    for y in outputs:
        if not (y.is_floating_point() or y.is_complex()):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{y.dtype}"
            )


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The output of a function, and a function for vector-Jacobian products at this point.

    Args:
        func (callable): from tensors, or trees of them, to tensors; with has_aux, to (output, aux).
        *primals (Tensor): the point.
        has_aux (bool): whether func also returns something that is handed through. Default: False

    Returns:
        (output, vjp_fn), with has_aux (output, vjp_fn, aux). vjp_fn(cotangents), like the output, returns a
        tuple with cotangents^T J for each primal.

    Example:
        >>> y, vjp_fn = torch.func.vjp(torch.mul, torch.tensor(2.0), torch.tensor(5.0))
        >>> y, vjp_fn(torch.tensor(1.0))
        (tensor(10.), (tensor(5.), tensor(2.)))
    """
    trace = _Trace(func, primals, {}, tuple(range(len(primals))), has_aux, "vjp(f, *primals)")
    _require_floats(trace.outputs)

    def vjp_fn(cotangents: Any) -> Any:
        cotangents = _match(cotangents, trace.output_spec, "vjp_fn")
        create = rl.is_grad_enabled() and (trace.reaches or any(c.requires_grad for c in cotangents))
        with rl.enable_grad():
            grads = _pull_back(trace.outputs, cotangents, trace.inputs, create)
        return tree_unflatten(_release(grads, create), trace.input_spec)

    output = trace.value()
    return (output, vjp_fn, trace.aux) if has_aux else (output, vjp_fn)


class _Linearization:
    """u -> u^T J with a graph in u: its vector-Jacobian product with v is J v."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.u = [rl.zeros_like(o).detach().requires_grad_() for o in trace.outputs]
        with rl.enable_grad():
            self.pulled = _pull_back(trace.outputs, self.u, trace.inputs, create_graph=True)

    def push(self, tangents: Any) -> Any:
        create = self.trace.outside or any(t.requires_grad for t in tangents)
        with rl.enable_grad():
            pushed = _pull_back(self.pulled, tangents, self.u, create)
        return _release(pushed, create)


def _check_tangents(primals: Any, tangents: Any, where: Any) -> Any:
    primal_leaves, spec = tree_flatten(tuple(primals))
    if not isinstance(tangents, tuple):
        raise RuntimeError(
            f"{where}: Expected tangents to be a tuple of the same python structure as primals, got {type(tangents)}"
        )
    leaves = _match(tuple(tangents), spec, where)
    for p, t in zip(primal_leaves, leaves, strict=True):
        if not isinstance(t, rl.Tensor):
            raise RuntimeError(f"{where}: Expected tangents to only contain Tensors, got {type(t)}")
        if p.shape != t.shape:
            got = tuple(t.shape)
            raise RuntimeError(
                f"{where}: Trying to set a forward gradient that has a different size than that of the original Tensor: "
                f"expected a tangent of shape {tuple(p.shape)}, got {got}"
            )
    return leaves


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """The output of a function and the Jacobian-vector product J tangents: its derivative in a direction.

    Args:
        func (callable): from tensors, or trees of them, to tensors; with has_aux, to (output, aux).
        primals (tuple): the point.
        tangents (tuple): the direction, of the same structure.
        strict (bool): refuses an output that does not depend on the inputs. Default: False
        has_aux (bool): whether func also returns something that is handed through. Default: False

    Returns:
        (output, product), with has_aux (output, product, aux).

    Example:
        >>> torch.func.jvp(torch.mul, (torch.tensor(2.0), torch.tensor(5.0)), (torch.tensor(1.0), torch.tensor(0.0)))
        (tensor(10.), tensor(5.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. It should be valid to call f(*primals)."
        )
    where = "jvp(f, primals, tangents)"
    flat = tree_flatten(primals)[0]
    if not flat:
        raise RuntimeError(f"{where}: Expected primals to be non-empty and contain at least one Tensor")
    for p in flat:
        if not isinstance(p, rl.Tensor):
            raise RuntimeError(f"{where}: Expected primals to only contain Tensors, got {type(p)}")
    leaves = _check_tangents(primals, tangents, where)
    trace = _Trace(func, primals, {}, tuple(range(len(primals))), has_aux, where, forward=True)
    if strict and not all(y.requires_grad for y in trace.outputs):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with "
            "strict=True."
        )
    pushed = tree_unflatten(_Linearization(trace).push(leaves), trace.output_spec)
    output = trace.value()
    return (output, pushed, trace.aux) if has_aux else (output, pushed)


def linearize(func: Callable[..., Any], *primals: Any) -> Any:
    """The output of a function, and a function for Jacobian-vector products that does not run it again.

    Args:
        func (callable): from tensors, or trees of them, to tensors.
        *primals (Tensor): the point.

    Returns:
        (output, jvp_fn): jvp_fn(*tangents) applies the Jacobian at the point.

    Example:
        >>> y, jvp_fn = torch.func.linearize(torch.square, torch.tensor([1.0, 2.0]))
        >>> y, jvp_fn(torch.ones(2)), jvp_fn(torch.tensor([0.0, 1.0]))
        (tensor([1., 4.]), tensor([2., 4.]), tensor([0., 4.]))
    """
    where = "linearize(f, *primals)"
    trace = _Trace(func, primals, {}, tuple(range(len(primals))), False, where, forward=True)
    linear = _Linearization(trace)

    def jvp_fn(*tangents: Any) -> Any:
        return tree_unflatten(linear.push(_check_tangents(primals, tangents, "jvp_fn")), trace.output_spec)

    return trace.value(), jvp_fn


def _by_output(blocks: Any, trace: Any) -> Any:
    """[output][input] blocks as the caller's trees of them."""
    blocks = _release(blocks, trace.outside)
    return tree_unflatten(
        [tree_unflatten(list(block), trace.input_spec) for block in blocks], trace.output_spec
    )


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Any:
    """A function that gives the Jacobian of func by backward passes: best where there are few outputs.

    All rows are computed by one backward, which takes a stack of gradients through the graph.

    Args:
        func (callable): from tensors to tensors; with has_aux, to (output, aux).
        argnums (int or tuple of ints): the arguments to differentiate by. Default: 0
        has_aux (bool): whether func also returns something that is handed through. Default: False
        chunk_size (int): so many rows at a time, to bound the memory; None means all. Default: None

    Returns:
        A function that returns tensors of shape output.shape + input.shape.

    Example:
        >>> torch.func.jacrev(torch.cumsum)(torch.ones(3), 0)
        tensor([[1., 0., 0.],
                [1., 1., 0.],
                [1., 1., 1.]])
    """

    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        trace = _Trace(func, args, kwargs, argnums, has_aux, "vjp(f, *primals) of jacrev(f)(*args)")
        _require_floats(trace.outputs)
        blocks = rows(trace.outputs, trace.inputs, trace.outside, chunk_size)
        result = _by_output(blocks, trace)
        return (result, trace.aux) if has_aux else result

    return wrapper


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Any:
    """A function that gives the Jacobian of func by Jacobian-vector products: best where there are few inputs.

    Args:
        func (callable): from tensors to tensors; with has_aux, to (output, aux).
        argnums (int or tuple of ints): the arguments to differentiate by. Default: 0
        has_aux (bool): whether func also returns something that is handed through. Default: False
        randomness (str): what random functions inside do: "error", "same" or "different". Default: "error"

    Returns:
        A function that returns tensors of shape output.shape + input.shape.

    Example:
        >>> torch.func.jacfwd(lambda x: torch.stack([x**2, x**3]))(torch.tensor(2.0))
        tensor([ 4., 12.])
    """

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with random_as(randomness):
            where = "jvp(f, primals, tangents) of jacfwd(f)(*args)"
            trace = _Trace(func, args, kwargs, argnums, has_aux, where, forward=True)
        blocks = columns(trace.outputs, trace.inputs, trace.outside)
        result = _by_output(blocks, trace)
        return (result, trace.aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Any:
    """A function that gives the Hessian of a scalar function: the Jacobian of its gradient.

    Args:
        func (callable): returns a tensor of one element.
        argnums (int or tuple of ints): the arguments to differentiate by. Default: 0

    Example:
        >>> torch.func.hessian(lambda x: x.prod())(torch.tensor([2.0, 3.0]))
        tensor([[0., 1.],
                [1., 0.]])
    """
    return jacrev(jacrev(func, argnums), argnums)


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
