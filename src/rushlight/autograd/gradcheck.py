"""gradcheck: do the gradients of a function agree with its finite differences?

A complex number is treated as two real ones. For a real-valued part L of the output (its real or imaginary
part) the gradient of a complex input z = x + iy is dL/dx + i dL/dy; both sides are compared in that form.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import rushlight as rl

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Raised by gradcheck and gradgradcheck when a gradient is wrong."""


def _tensors(value: Any) -> tuple[Any, ...] | tuple[Any]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _of_dense(func: Callable[..., Any], inputs: Any, masked: Any) -> Any:
    from rushlight.sparse._gradcheck import of_dense

    return of_dense(func, inputs, masked)


def _is_tensor(t: object) -> bool:
    """A tensor, or an object of a class that takes over functions and stands for one."""
    return isinstance(t, rl.Tensor) or rl.overrides.is_tensor_like(t)


def _is_differentiable(t: Any) -> bool:
    return _is_tensor(t) and t.requires_grad


def _is_continuous(t: Any) -> bool:
    return _is_tensor(t) and (t.dtype.is_floating_point or t.dtype.is_complex)


def _check_inputs(inputs: Any) -> None:
    if not any(_is_differentiable(x) for x in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    for i, x in enumerate(inputs):
        if not _is_differentiable(x):
            continue
        if x.dtype not in (rl.float64, rl.complex128):
            import warnings

            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or "
                "complex.",
                stacklevel=4,
            )
        overlapping = any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True))
        if overlapping:
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
        x.retain_grad()


def _outputs(func: Callable[..., Any], inputs: Any) -> list[tuple[int, Any]]:
    """(index, tensor) of each output that gradients can flow through, by value type."""
    return [(i, o) for i, o in enumerate(_tensors(func(*inputs))) if _is_continuous(o)]


def _numerical_column(
    func: Callable[..., Any], inputs: Any, x: rl.Tensor, flat_index: Any, step: Any, picked: Any
) -> list[Any]:
    """Central difference of all picked outputs when one element of x moves by +-step (maybe imaginary)."""
    flat = x.data.reshape(-1) if x.is_contiguous() else None

    def moved(delta: Any) -> Any:
        with rl.no_grad():
            if flat is not None:
                original = flat[flat_index].clone()
                flat[flat_index] = original + delta
            else:
                at = _unravel(flat_index, x.shape)
                original = x.data[at].clone()
                x.data[at] = original + delta
        try:
            outputs = _tensors(func(*inputs))
            return [outputs[i].detach().clone() for i in picked]
        finally:
            with rl.no_grad():
                if flat is not None:
                    flat[flat_index] = original
                else:
                    x.data[at] = original

    return _derivatives(moved(step), moved(-step), 2 * abs(step))


def _derivatives(above: Any, below: Any, width: Any) -> list[Any]:
    for a, b in zip(above, below, strict=True):
        for what in ("shape", "dtype"):
            if getattr(a, what) != getattr(b, what):
                raise AssertionError(
                    f"Expects function to return outputs with the same {what} when inputs are perturbed within epsilon, but "
                    f"got {getattr(a, what)} and {getattr(b, what)}."
                )
    return [(a - b) / width for a, b in zip(above, below, strict=True)]


def _unravel(flat: Any, shape: Any) -> tuple[Any, ...]:
    index = []
    for size in reversed(shape):
        flat, i = divmod(flat, size)
        index.append(i)
    return tuple(reversed(index))


def _part(t: rl.Tensor, name: str) -> Any:
    return t if name == "whole" else getattr(t, name)


def _numerical_jacobians(
    func: Callable[..., Any], inputs: Any, x: rl.Tensor, picked: Any, eps: float
) -> list[Any]:
    """For each picked output, {part: jacobian (elements of x, elements of the output)}."""
    n = x.numel()
    along_real = [_numerical_column(func, inputs, x, j, eps, picked) for j in range(n)]
    along_imag = None
    if x.dtype.is_complex:
        along_imag = [_numerical_column(func, inputs, x, j, 1j * eps, picked) for j in range(n)]
    result = []
    for k in range(len(picked)):
        parts = {}
        real_rows = rl.stack([column[k].reshape(-1) for column in along_real])
        imag_rows = None
        if along_imag is not None:
            imag_rows = rl.stack([column[k].reshape(-1) for column in along_imag])
        names = ("real", "imag") if real_rows.dtype.is_complex else ("whole",)
        for name in names:
            parts[name] = _part(real_rows, name)
            if imag_rows is not None:
                parts[name] = rl.complex(
                    _part(real_rows, name).contiguous(), _part(imag_rows, name).contiguous()
                )
        result.append(parts)
    return result


def _analytical_jacobian(output: rl.Tensor, inputs: Any, seed: Any) -> list[rl.Tensor | Any]:
    """One jacobian (elements of x, elements of output) per input, by backward with `seed` on each element."""
    columns: list[list[rl.Tensor]] = [[] for _ in inputs]
    grad_output = rl.zeros_like(output, memory_format=rl.contiguous_format)
    flat = grad_output.view(-1)
    for j in range(output.numel()):
        flat[j] = seed
        if output.requires_grad:
            grads = rl.autograd.grad(
                output, inputs, grad_output.clone(), retain_graph=True, allow_unused=True
            )
        else:
            grads = (None,) * len(inputs)
        for column, x, grad in zip(columns, inputs, grads, strict=True):
            if grad is not None and grad.shape != x.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            if grad is not None and grad.dtype.is_complex and not x.dtype.is_complex:
                grad = grad.real
            column.append(rl.zeros_like(x).reshape(-1) if grad is None else grad.reshape(-1))
        flat[j] = 0
    return [
        rl.stack(column, 1) if column else x.new_zeros(x.numel(), 0)
        for column, x in zip(columns, inputs, strict=True)
    ]


def _worst_entry(numerical: Any, analytical: Any, atol: float, rtol: float) -> tuple[int, int]:
    """(input element, output element) where the two differ most beyond the tolerance."""
    excess = (numerical - analytical).abs() - (atol + rtol * numerical.abs())
    excess = rl.where(rl.isnan(excess), rl.full_like(excess, float("inf")), excess)
    result: tuple[int, int] = divmod(int(excess.reshape(-1).argmax().item()), numerical.shape[1])
    return result


def _compare(
    numerical: Any,
    analytical: Any,
    part: Any,
    out_number: Any,
    output: rl.Tensor,
    in_number: Any,
    x: rl.Tensor,
    atol: float,
    rtol: float,
) -> None:
    if analytical.dtype != numerical.dtype:
        analytical = analytical.to(numerical.dtype)
    if numerical.numel() == 0 or rl.allclose(analytical, numerical, rtol, atol):
        return
    if bool((analytical == numerical).all()):
        return
    i, j = _worst_entry(numerical, analytical, atol, rtol)
    prefix = ""
    if part != "whole":
        name = {"real": "real", "imag": "imaginary"}[part]
        prefix = f"While considering the {name} part of complex outputs only, "
    raise GradcheckError(
        f"{prefix}Jacobian mismatch for output {out_number} with respect to input {in_number},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
        f"Worst entry: d output{list(_unravel(j, output.shape))} / d input{list(_unravel(i, x.shape))} is "
        f"{numerical[i, j].item()} numerically, {analytical[i, j].item()} analytically.\n"
    )


def _check_reentrant(output: rl.Tensor, inputs: Any, seed: Any, nondet_tol: float) -> None:
    first, second = (_analytical_jacobian(output, inputs, seed) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        if a.numel() and float((a - b).abs().max().item()) > nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                "times gives different values, although analytical gradient matches numerical gradient."
                f"The tolerance for nondeterminism was {nondet_tol}."
            )


def _check_no_path(func: Callable[..., Any], inputs: Any, variable: Any, eps: float) -> None:
    """No output requires grad: then none may depend on an input."""
    picked = [i for i, _ in _outputs(func, inputs)]
    for x in (x for x in variable if x.numel()):
        for parts in _numerical_jacobians(func, inputs, x, picked, eps):
            for jacobian in parts.values():
                if jacobian.numel() and bool((jacobian != 0).any()):
                    raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_dtypes(outputs: Any, inputs: Any) -> None:
    for _, output in outputs:
        if not output.requires_grad:
            continue
        grads = rl.autograd.grad(output, inputs, rl.zeros_like(output), retain_graph=True, allow_unused=True)
        for x, grad in zip(inputs, grads, strict=True):
            if grad is not None and grad.dtype != x.dtype:
                raise GradcheckError("Gradient has dtype mismatch")


@functools.cache
def _generator() -> Any:
    """Of its own, so that a function which draws random positions finds its stream untouched."""
    return rl.Generator().manual_seed(0)


def _direction(t: rl.Tensor) -> rl.Tensor:
    """A random direction of length 1 in the space of t."""
    with rl.no_grad():
        parts = [
            rl.rand(t.shape, dtype=rl.float64, generator=_generator()) * 2 - 1
            for _ in range(2 if t.dtype.is_complex else 1)
        ]
        v = (rl.complex(*parts) if len(parts) == 2 else parts[0]).to(t.dtype)
        return v / v.abs().square().sum().sqrt()


def _dot(a: Any, b: Any) -> float:
    """The real part of <a, b>: how much of the real-valued function with gradient a changes along b."""
    product = a.conj() * b
    return float((product.real if product.dtype.is_complex else product).sum().item())


def _size(direction: Any) -> float:
    return float(direction.abs().sum().item())


def _along(func: Callable[..., Any], inputs: Any, x: rl.Tensor, u: Any, eps: float, picked: Any) -> list[Any]:
    """Central difference of all picked outputs when x moves along u."""
    original = x.detach().clone()
    ends = []
    try:
        for sign in (1, -1):
            with rl.no_grad():
                x.data.copy_(original + sign * eps * u)
            outputs = _tensors(func(*inputs))
            ends.append([outputs[i].detach().clone() for i in picked])
    finally:
        with rl.no_grad():
            x.data.copy_(original)
    above, below = ends
    return _derivatives(above, below, 2 * eps)


def _fast(
    func: Callable[..., Any],
    inputs: Any,
    variable: Any,
    positions: Any,
    outputs: Any,
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
) -> None:
    """v^T J u for one random u of each input and one random v of each output.

    When each entry of J is within atol, the product is within atol * sum |u| * sum |v|: that is its tolerance.
    """
    for number, x in zip(positions, variable, strict=True):
        if not x.numel():
            continue
        u = _direction(x)
        moved = _along(func, inputs, x, u, eps, [i for i, _ in outputs])
        for (out_number, output), derivative in zip(outputs, moved, strict=True):
            if not output.numel():
                continue
            v = _direction(output)
            (g,) = rl.autograd.grad(output, x, v, retain_graph=True, allow_unused=True)
            analytical = 0.0 if g is None else _dot(g, u)
            numerical = _dot(v, derivative)
            if not abs(analytical - numerical) <= atol * _size(u) * _size(v) + rtol * abs(numerical):
                raise GradcheckError(
                    f"Jacobian mismatch for output {out_number} with respect to input {number},\n"
                    f"numerical:{numerical}\nanalytical:{analytical}\n"
                    "These are sums over a random direction (fast mode): fast_mode=False names the entry.\n"
                )
        if nondet_tol < float("inf"):
            for _, output in outputs:
                v = _direction(output)
                first, second = (
                    rl.autograd.grad(output, x, v, retain_graph=True, allow_unused=True)[0] for _ in range(2)
                )
                if first is not None and float((first - second).abs().max().item()) > nondet_tol:
                    raise GradcheckError(
                        "Backward is not reentrant: it gave different values when run twice."
                    )


def _gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_grad_dtypes: Any,
    options: dict[str, Any],
) -> None:
    inputs = _tensors(inputs)
    _check_inputs(inputs)
    positions = [i for i, x in enumerate(inputs) if _is_differentiable(x)]
    variable = [inputs[i] for i in positions]
    outputs = [(i, o) for i, o in _outputs(func, inputs) if o.requires_grad]
    if not outputs and options["backward"]:
        _check_no_path(func, inputs, variable, eps)
        return
    from . import _gradcheck_modes as modes

    if options["backward"]:
        _check_jacobians(func, inputs, variable, positions, outputs, (eps, atol, rtol, nondet_tol), options)
    if options["forward"]:
        modes.check_forward(func, inputs, variable, positions, eps, atol, rtol, options["fast"])
        if options["undefined"]:
            modes.check_forward_undefined(func, inputs, variable)
        if options["batched forward"]:
            modes.check_forward_batched(func, inputs, variable)
    if not options["backward"]:
        return
    if options["batched"]:
        modes.check_batched(variable, outputs)
    modes.check_zero(outputs, variable, options["masked"])
    if options["undefined"]:
        modes.check_undefined(func, inputs, variable)
    if check_grad_dtypes:
        _check_dtypes(outputs, variable)


def _check_jacobians(
    func: Callable[..., Any],
    inputs: Any,
    variable: Any,
    positions: Any,
    outputs: Any,
    tolerances: Any,
    options: dict[str, Any],
) -> None:
    eps, atol, rtol, nondet_tol = tolerances
    if options["fast"]:
        _fast(func, inputs, variable, positions, outputs, eps, atol, rtol, nondet_tol)
        return
    picked = [i for i, _ in outputs]
    numerical = [_numerical_jacobians(func, inputs, x, picked, eps) if x.numel() else [] for x in variable]
    for k, (out_number, output) in enumerate(outputs):
        for part in ("imag", "real") if output.dtype.is_complex else ("whole",):
            seed = 1j if part == "imag" else 1
            analytical = _analytical_jacobian(output, variable, seed)
            for i, x in enumerate(variable):
                if not x.numel():
                    continue
                _compare(
                    numerical[i][k][part],
                    analytical[i],
                    part,
                    out_number,
                    output,
                    positions[i],
                    x,
                    atol,
                    rtol,
                )
            _check_reentrant(output, variable, seed, nondet_tol)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = False,
) -> bool:
    """Compares the gradients of a function with central differences, for every input that requires grad.

    Inputs should be float64: the comparison needs the precision.

    Args:
        func (callable): from the inputs to a tensor or a tuple of tensors.
        inputs (Tensor or tuple): its arguments.
        eps (float): the step of the differences. Default: 1e-6
        atol (float): the absolute tolerance. Default: 1e-5
        rtol (float): the relative tolerance. Default: 1e-3
        raise_exception (bool): False returns False instead of raising. Default: True
        nondet_tol (float): by how much two runs of backward may differ. Default: 0.0
        check_undefined_grad (bool): whether backward is also tried with undefined gradients. Default: True
        check_grad_dtypes (bool): whether gradients must be of the type of their inputs. Default: False
        check_batched_grad (bool): whether backward is also tried with a batch of gradients. Default: False
        check_batched_forward_grad (bool): the same for forward mode. Default: False
        check_forward_ad (bool): whether forward mode is compared, too. Default: False
        check_backward_ad (bool): whether backward is compared. Default: True
        fast_mode (bool): compares one random direction instead of every entry. Default: False
        masked (bool): for sparse inputs, looks at the specified elements alone. Default: False

    Returns:
        True where all agree.

    Raises:
        GradcheckError: an entry differs; the message has both Jacobians.

    Example:
        >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(torch.sin, x)
        True
        >>> torch.autograd.gradcheck(lambda x: x * x.detach(), x, raise_exception=False)
        False
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_undefined_grad and not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Setting check_undefined_grad=True requires check_backward_ad or check_forward_ad"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = _tensors(inputs)
    if any(isinstance(x, rl.Tensor) and x.layout is not rl.strided for x in inputs):
        func, inputs = _of_dense(func, inputs, masked)
    options = {
        "forward": check_forward_ad,
        "backward": check_backward_ad,
        "batched": check_batched_grad,
        "batched forward": check_batched_forward_grad,
        "undefined": check_undefined_grad,
        "masked": masked,
        "fast": fast_mode,
    }
    try:
        _gradcheck(func, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes, options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_like(t: rl.Tensor, noncontiguous: Any) -> rl.Tensor:
    """Random values of the shape of t, kept away from zero."""
    grad = (
        rl.empty_like(t, memory_format=rl.contiguous_format).uniform_(-1, 1)
        if not t.dtype.is_complex
        else None
    )
    if grad is None:
        grad = rl.complex(*(rl.rand(t.shape, dtype=t.real.dtype, device=t.device) * 2 - 1 for _ in range(2)))
    if noncontiguous and grad.dim():
        grad = grad.unsqueeze(-1).repeat_interleave(2, -1)[..., 0]
    return grad.detach().requires_grad_()


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compares second derivatives of a function with central differences of its gradients.

    Args:
        func (callable): from the inputs to a tensor or a tuple of tensors.
        inputs (Tensor or tuple): its arguments, float64.
        grad_outputs (Tensor or tuple): the gradients that backward starts from; None draws them. Default: None
        eps (float): the step of the differences. Default: 1e-6
        atol (float): the absolute tolerance. Default: 1e-5
        rtol (float): the relative tolerance. Default: 1e-3
        gen_non_contig_grad_outputs (bool): draws grad_outputs that are not contiguous. Default: False
        raise_exception (bool): False returns False instead of raising. Default: True
        nondet_tol (float): by how much two runs of backward may differ. Default: 0.0
        check_undefined_grad (bool): whether backward is also tried with undefined gradients. Default: True
        check_grad_dtypes (bool): whether gradients must be of the type of their inputs. Default: False
        check_batched_grad (bool): whether backward is also tried with a batch of gradients. Default: False
        check_fwd_over_rev (bool): compares forward mode over backward. Default: False
        check_rev_over_rev (bool): compares backward over backward. Default: True
        fast_mode (bool): compares one random direction instead of every entry. Default: False
        masked (bool): for sparse inputs, looks at the specified elements alone. Default: False

    Returns:
        True where all agree.

    Example:
        >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(torch.exp, x)
        True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    inputs = _tensors(inputs)
    if any(isinstance(x, rl.Tensor) and x.layout is not rl.strided for x in inputs):
        func, inputs = _of_dense(func, inputs, masked)
    if grad_outputs is None:
        outputs = [o for _, o in _outputs(func, inputs) if o.requires_grad]
        grad_outputs = tuple(_random_like(o, gen_non_contig_grad_outputs) for o in outputs)
    else:
        grad_outputs = _tensors(grad_outputs)
    split = len(inputs)

    def gradient(*args: Any) -> Any:
        xs = tuple(
            x.requires_grad_() if _is_continuous(x) and not x.requires_grad and inputs[i].requires_grad else x
            for i, x in enumerate(args[:split])
        )
        with rl.enable_grad():
            outputs = [o for _, o in _outputs(func, xs) if o.requires_grad]
            targets = tuple(x for x in xs if _is_differentiable(x))
            grads = rl.autograd.grad(outputs, targets, args[split:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradient,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _private(name: str, grad_out: Any) -> None:
    import warnings

    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. It is deprecated: use "
        "torch.autograd.functional.jacobian.",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. `get_numerical_jacobian` and its like support no other value."
        )


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Any, ...]:
    """The jacobians of fn's first output by differences, one for each input (or those of `target`). Deprecated."""
    _private("get_numerical_jacobian", grad_out)
    wanted = [x for x in _tensors(inputs if target is None else target) if _is_differentiable(x)]
    found = [_numerical_jacobians(lambda *_: fn(inputs), (), x, [0], eps)[0] for x in wanted]
    return tuple(next(iter(parts.values())) for parts in found)


def get_analytical_jacobian(
    inputs: Any, output: rl.Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[rl.Tensor | Any, ...], bool, bool, bool]:
    """(jacobians by backward, whether it is reentrant, sizes are right, types are right). Deprecated."""
    _private("get_analytical_jacobian", grad_out)
    wanted = [x for x in _tensors(inputs) if _is_differentiable(x)]
    found, again = (_analytical_jacobian(output, wanted, 1) for _ in range(2))
    reentrant = all(
        not a.numel() or float((a - b).abs().max()) <= nondet_tol for a, b in zip(found, again, strict=True)
    )
    types_agree = all(a.dtype == x.dtype for a, x in zip(found, wanted, strict=True))
    return tuple(found), reentrant, True, types_agree


class _Module(types.ModuleType):
    """`autograd.gradcheck` names this module and the function in it: the module can be called, too."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _Module
