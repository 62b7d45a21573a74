"""Jacobians, Hessians and their products with vectors, for functions of tensors.

All are built from vector-Jacobian products. A Jacobian-vector product takes two of them: u -> u^T J is
linear in u, so that its own vector-Jacobian product with v is J v.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value: Any, what: str, where: Any) -> Any:
    """(is_tuple, tuple of tensors); lists count as tuples."""
    is_tuple = isinstance(value, (tuple, list))
    values = tuple(value) if is_tuple else (value,)
    for i, item in enumerate(values):
        if not isinstance(item, rl.Tensor):
            if is_tuple:
                raise TypeError(
                    f"The {what} given to {where} must be either a Tensor or a tuple of Tensors but the "
                    "value at "
                    f"index {i} has type {type(item)}."
                )
            raise TypeError(
                f"The {what} given to {where} must be either a Tensor or a tuple of Tensors but the given "
                f"{what} has type {type(item)}."
            )
    return is_tuple, values


def _call(func: Callable[..., Any], inputs: Any, where: Any) -> Any:
    return _as_tuple(func(*inputs), "outputs of the user-provided function", where)


def _fresh(tensors: Any, connected: Any) -> Any:
    """New graph inputs with these values; `connected` keeps them part of the caller's graph."""
    if connected:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in tensors)
    return tuple(t.detach().requires_grad_() for t in tensors)


def _finish(values: Any, is_tuple: Any, create_graph: bool) -> Any:
    """What to hand to the caller: nested tuples, detached unless a graph was asked for."""

    def free(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(free(item) for item in value)
        return value if create_graph else value.detach()

    values = free(values)
    return values if is_tuple else values[0]


def _require_differentiable(outputs: Any) -> None:
    for i, output in enumerate(outputs):
        if not output.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be "
                "computed in a differentiable manner from the input when running in strict mode."
            )


def _grads(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> Any:
    """autograd.grad over the outputs that require grad; None where there is no path."""
    if grad_outputs is None:
        grad_outputs = (None,) * len(outputs)
    live = [(o, g) for o, g in zip(outputs, grad_outputs, strict=True) if o is not None and o.requires_grad]
    if not live:
        return (None,) * len(inputs)
    return rl.autograd.grad(
        [o for o, _ in live],
        inputs,
        [g for _, g in live],
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
    )


_STAGES = {
    "back": "The output of the user-provided function is independent of input {i}. This is not allowed in strict "
    "mode.",
    "row": "Output {out} of the user-provided function is independent of input {i}. This is not allowed in "
    "strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the grad_outputs "
    "when using the double backward trick to compute forward mode gradients. This is not allowed in strict "
    "mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {i}. This is not "
    "allowed "
    "in strict mode.",
    "hessian": "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect "
    "to input {i} is independent of the input. This is not allowed in strict mode. You should ensure that "
    "your "
    "function is twice differentiable and that the jacobian depends on the inputs (this would be violated "
    "by a "
    "linear function for example).",
}


def _fill(grads: Any, references: Any, strict: bool, create_graph: bool, stage: Any, out: int = 0) -> Any:
    """Zeros in place of missing gradients, or in strict mode an error that says what does not depend on "
    "what."""
    filled = []
    for i, (grad, reference) in enumerate(zip(grads, references, strict=True)):
        if grad is None:
            if strict:
                missing = "back" if stage == "hessian" else stage
                raise RuntimeError(_STAGES[missing].format(out=out, i=i))
            grad = rl.zeros_like(reference)
        elif strict and create_graph and not grad.requires_grad:
            if stage == "hessian":
                raise RuntimeError(_STAGES["hessian"].format(i=i))
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {i}. This is not "
                "allowed "
                "in strict mode when create_graph=True."
            )
        filled.append(grad)
    return tuple(filled)


def _check_v(v: Any, references: Any, is_tuple: Any, where: str = "vjp") -> Any:
    """The vector of a product, as a tuple of the same structure and shapes as `references`."""
    _, v = _as_tuple(v, "v", where)
    if len(v) != len(references):
        if is_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(references)} but got {len(v)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (vector, reference) in enumerate(zip(v, references, strict=True)):
        if vector.shape != reference.shape:
            entry = f"Entry {i} in " if is_tuple else ""
            raise RuntimeError(
                f"{entry}v has invalid size: should be {reference.shape} but got {vector.shape}."
            )
    return v


def _single_output(outputs: Any, is_tuple: Any, where: Any) -> Any:
    if is_tuple:
        raise RuntimeError(f"The function given to {where} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {where} should contain a single element"
        )
    if outputs[0].dim() != 0:
        return (outputs[0].squeeze(),)
    return outputs


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of a function and the vector-Jacobian product v^T J at a point.

    Args:
        func (callable): from tensors to a tensor or a tuple of tensors.
        inputs (Tensor or tuple): the point, one tensor for each argument.
        v (Tensor or tuple): like the outputs; may be left out for a scalar function. Default: None
        create_graph (bool): records the computation, so that the result can be differentiated. Default: False
        strict (bool): refuses outputs that do not depend on an input, instead of giving zeros. Default: False

    Returns:
        (outputs, product); the product is like the inputs.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vjp(lambda x: x**2, x, torch.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with rl.enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _fresh(inputs, create_graph)
        many_out, outputs = _call(func, inputs, "vjp")
        if strict:
            _require_differentiable(outputs)
        if v is not None:
            v = _check_v(v, outputs, many_out)
        elif len(outputs) != 1 or outputs[0].nelement() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a "
                "single element."
            )
    with rl.set_grad_enabled(create_graph or rl.is_grad_enabled()):
        product = _fill(_grads(outputs, inputs, v, create_graph), inputs, strict, create_graph, "back")
    return _finish(outputs, many_out, create_graph), _finish(product, many_in, create_graph)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of a function and the Jacobian-vector product J v at a point.

    It takes two vector-Jacobian products; func.jvp is the same for functions of several arguments.

    Args:
        func (callable): from tensors to a tensor or a tuple of tensors.
        inputs (Tensor or tuple): the point, one tensor for each argument.
        v (Tensor or tuple): like the inputs; may be left out if there is a single element. Default: None
        create_graph (bool): records the computation, so that the result can be differentiated. Default: False
        strict (bool): refuses outputs that do not depend on an input, instead of giving zeros. Default: False

    Returns:
        (outputs, product); the product is like the outputs.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.jvp(lambda x: x.prod(), x, torch.tensor([1.0, 10.0]))
        (tensor(2.), tensor(12.))
    """
    with rl.enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _fresh(inputs, create_graph)
        if v is not None:
            v = _check_v(v, inputs, many_in, "jvp")
        elif len(inputs) != 1 or inputs[0].nelement() != 1:
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a single Tensor "
                "with a single element."
            )
        many_out, outputs = _call(func, inputs, "jvp")
        if strict:
            _require_differentiable(outputs)
        u = tuple(rl.zeros_like(o).requires_grad_() for o in outputs)
        pulled = _fill(_grads(outputs, inputs, u, create_graph=True), inputs, strict, True, "back")
    with rl.set_grad_enabled(create_graph or rl.is_grad_enabled()):
        v = (None,) * len(inputs) if v is None else v
        pushed = _grads(pulled, u, v, create_graph)
        pushed = _fill(pushed, outputs, strict, create_graph, "back_trick")
    return _finish(outputs, many_out, create_graph), _finish(pushed, many_out, create_graph)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function at a point: J[i, j] = d output_i / d input_j.

    Args:
        func (callable): from tensors to a tensor or a tuple of tensors.
        inputs (Tensor or tuple): the point, one tensor for each argument.
        create_graph (bool): records the computation, so that the result can be differentiated. Default: False
        strict (bool): refuses outputs that do not depend on an input, instead of giving zeros. Default: False
        vectorize (bool): computes all rows at once. Default: False
        strategy (str): "reverse-mode" by rows or, with vectorize, "forward-mode" by columns. Default:
            "reverse-mode"

    Returns:
        A tensor of shape output.shape + input.shape; nested tuples of them for several outputs and inputs.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.jacobian(lambda x: torch.stack([x.sum(), x.prod()]), x)
        tensor([[1., 1.],
                [2., 1.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode", but got {strategy!r}.'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
            'supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
            "together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    with rl.enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _fresh(inputs, create_graph)
        many_out, outputs = _call(func, inputs, "jacobian")
        if strict:
            _require_differentiable(outputs)
        if vectorize:
            from rushlight._transforms import jacobians as _jacobians

            find = _jacobians.rows if strategy == "reverse-mode" else _jacobians.columns
            jacobians = tuple(map(tuple, find(outputs, inputs, create_graph)))
        else:
            jacobians = tuple(
                _output_jacobian(output, i, inputs, create_graph, strict) for i, output in enumerate(outputs)
            )
    jacobians = _finish(jacobians, True, create_graph)
    if not many_in:
        jacobians = tuple(row[0] for row in jacobians)
    return jacobians if many_out else jacobians[0]


def _output_jacobian(output: rl.Tensor, number: int, inputs: Any, create_graph: bool, strict: bool) -> Any:
    n = output.nelement()
    columns: list[list[rl.Tensor]] = [[] for _ in inputs]
    basis = rl.zeros_like(output, memory_format=rl.contiguous_format).detach()
    flat = basis.view(-1)
    for j in range(n):
        with rl.no_grad():
            flat[j] = 1
        # the gradient, or a graph of it, may share memory with the basis vector, which changes afterwards
        seed = basis.clone()
        grads = _grads((output,), inputs, (seed,), create_graph, retain_graph=True)
        grads = _fill(grads, inputs, strict, create_graph, "row", number)
        for column, grad in zip(columns, grads, strict=True):
            column.append(grad)
        with rl.no_grad():
            flat[j] = 0
    shape = tuple(output.shape)
    return tuple(
        rl.stack(column).reshape(shape + tuple(x.shape)) if column else x.new_zeros(shape + tuple(x.shape))
        for column, x in zip(columns, inputs, strict=True)
    )


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function at a point: H[i, j] = d^2 f / d input_i d input_j.

    Args:
        func (callable): from tensors to a tensor of one element.
        inputs (Tensor or tuple): the point, one tensor for each argument.
        create_graph (bool): records the computation, so that the result can be differentiated. Default: False
        strict (bool): refuses outputs that do not depend on an input, instead of giving zeros. Default: False
        vectorize (bool): computes all rows at once. Default: False
        outer_jacobian_strategy (str): "reverse-mode" or, with vectorize, "forward-mode". Default:
            "reverse-mode"

    Returns:
        A tensor of shape input.shape + input.shape; nested tuples of them for several inputs.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), x)
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    many_in, inputs = _as_tuple(inputs, "inputs", "hessian")

    def gradient(*xs: Any) -> Any:
        # xs are the outer jacobian's inputs: part of its graph
        is_tuple, outputs = _call(func, xs, "hessian")
        outputs = _single_output(outputs, is_tuple, "hessian")
        if strict:
            _require_differentiable(outputs)
        grads = _grads(outputs, xs, create_graph=True)
        if strict:
            for i, grad in enumerate(grads):
                if grad is None or not grad.requires_grad:
                    raise RuntimeError(_STAGES["hessian"].format(i=i))
        return _fill(grads, xs, strict, False, "back")

    result = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if many_in else result[0][0]


def _gradient(func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, where: Any) -> Any:
    """(outputs, their gradient with a graph) of a scalar function at fresh inputs."""
    is_tuple, outputs = _call(func, inputs, where)
    outputs = _single_output(outputs, is_tuple, where)
    if strict:
        _require_differentiable(outputs)
    grads = _fill(_grads(outputs, inputs, create_graph=True), inputs, strict, True, "hessian")
    return outputs, grads


def _hessian_v(v: Any, inputs: Any, many_in: Any, where: Any) -> Any:
    if v is not None:
        return _check_v(v, inputs, many_in, where)
    if len(inputs) != 1 or inputs[0].nelement() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor "
            "with a "
            "single element."
        )
    return (rl.ones_like(inputs[0]).detach(),)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function and the product v^T H of a vector with its Hessian.

    Args:
        func (callable): from tensors to a tensor of one element.
        inputs (Tensor or tuple): the point, one tensor for each argument.
        v (Tensor or tuple): like the inputs; may be left out if there is a single element. Default: None
        create_graph (bool): records the computation, so that the result can be differentiated. Default: False
        strict (bool): refuses outputs that do not depend on an input, instead of giving zeros. Default: False

    Returns:
        (value, product).

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), x, torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    with rl.enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "vhp")
        inputs = _fresh(inputs, create_graph)
        v = _hessian_v(v, inputs, many_in, "vhp")
        outputs, grads = _gradient(func, inputs, create_graph, strict, "vhp")
    with rl.set_grad_enabled(create_graph or rl.is_grad_enabled()):
        product = _fill(_grads(grads, inputs, v, create_graph), inputs, strict, create_graph, "double_back")
    return _finish(outputs, False, create_graph), _finish(product, many_in, create_graph)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function and the product H v of its Hessian with a vector.

    vhp gives the same for less work, as H is symmetric where the second derivatives are continuous.

    Args:
        func (callable): from tensors to a tensor of one element.
        inputs (Tensor or tuple): the point, one tensor for each argument.
        v (Tensor or tuple): like the inputs; may be left out if there is a single element. Default: None
        create_graph (bool): records the computation, so that the result can be differentiated. Default: False
        strict (bool): refuses outputs that do not depend on an input, instead of giving zeros. Default: False

    Returns:
        (value, product).

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    with rl.enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "hvp")
        inputs = _fresh(inputs, create_graph)
        v = _hessian_v(v, inputs, many_in, "hvp")
        outputs, grads = _gradient(func, inputs, create_graph, strict, "hvp")
        u = tuple(rl.zeros_like(x).requires_grad_() for x in inputs)
        pulled = _fill(_grads(grads, inputs, u, create_graph=True), inputs, strict, True, "double_back")
    with rl.set_grad_enabled(create_graph or rl.is_grad_enabled()):
        product = _fill(_grads(pulled, u, v, create_graph), inputs, strict, create_graph, "back_trick")
    return _finish(outputs, False, create_graph), _finish(product, many_in, create_graph)


# Helpers that packages import by their private names.
def _grad_postprocess(values: Any, create_graph: bool) -> Any:
    return _finish(values, True, create_graph)


def _tuple_postprocess(values: Any, unpack: Any) -> Any:
    """Takes off the tuples that were put around single tensors: `unpack` says which level was a tuple already."""
    if isinstance(unpack, tuple):
        outer, inner = unpack
        if not inner:
            values = tuple(row[0] for row in values)
        return values if outer else values[0]
    return values if unpack else values[0]


def _construct_standard_basis_for(tensors: tuple[rl.Tensor, ...], tensor_numels: tuple[int, ...]) -> Any:
    """The rows of an identity matrix, cut into one (total, numel) block of columns for each tensor."""
    total, start, blocks = sum(tensor_numels), 0, []
    for t, numel in zip(tensors, tensor_numels, strict=True):
        block = t.new_zeros(total, numel)
        block.diagonal(-start).fill_(1)
        blocks.append(block)
        start += numel
    return tuple(blocks)
