"""PyTorch's internal names of normalisations, pooling and weight norms, where its own tools call them."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight._C import Tensor, dtype

from .. import _C
from .._core.compose import op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


_ops = _C.ops
_batch_norm = _ops["native_batch_norm"]


@op
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """batch_norm with the means and inverse deviations it used.

    These have the parameters' type, and are empty outside training."""
    out, mean, invstd = _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        mean, invstd = mean.new_empty(0), invstd.new_empty(0)
    like = next((t for t in (weight, bias, running_mean, running_var) if t is not None), input)
    return out, mean.to(like.dtype), invstd.to(like.dtype)


@op
def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *args: Any, **named: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """native_batch_norm; the running statistics can be left out."""
    names = ("running_mean", "running_var", "training", "momentum", "eps")
    if len(args) + len(named) == 3:
        names = names[2:]
    elif len(args) + len(named) != 5:
        raise TypeError(
            "_native_batch_norm_legit() takes (input, weight, bias, [running_mean, running_var,] "
            "training, momentum, eps)"
        )
    given = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in names or name in given:
            raise TypeError(f"_native_batch_norm_legit() got an unexpected keyword argument '{name}'")
        given[name] = value
    mean, var = given.get("running_mean"), given.get("running_var")
    if not given["training"] and mean is None:
        raise RuntimeError("_native_batch_norm_legit: expected running_mean and running_var outside training")
    return native_batch_norm(
        input, weight, bias, mean, var, given["training"], given["momentum"], given["eps"]
    )


@op
def _native_batch_norm_legit_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """native_batch_norm by the running statistics."""
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@op
def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """native_batch_norm in training; the fourth result, memory of other backends, is empty."""
    out = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*out, input.new_empty(0, dtype=_C.uint8))


@op
def _batch_norm_no_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """native_batch_norm by the running statistics; the fourth result, memory of other backends, is empty."""
    out = native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return (*out, input.new_empty(0, dtype=_C.uint8))


@op
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # noqa: N803
    """group_norm with the means and inverse deviations (N, group) it used."""
    if group <= 0 or C % group:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got {C} and {group}"
        )
    if input.numel() != N * C * HxW:
        raise RuntimeError(
            f"native_group_norm: {N} x {C} x {HxW} elements do not make input of {list(input.shape)}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t.numel() != C:
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, {C}"
            )
    wide = input.float() if input.dtype in (_C.float16, _C.bfloat16) else input
    x = wide.reshape(N, group, C // group * HxW)
    var, mean = _ops["var_mean"](x, 2, correction=0)
    invstd = (var + eps).rsqrt()
    out = ((x - mean.unsqueeze(2)) * invstd.unsqueeze(2)).reshape(N, C, HxW)
    if weight is not None:
        out = out * weight.reshape(1, C, 1)
    if bias is not None:
        out = out + bias.reshape(1, C, 1)
    dtype = input.dtype if weight is None or weight.dtype == input.dtype else weight.dtype
    return out.reshape(input.shape).to(input.dtype), mean.to(dtype), invstd.to(dtype)


@op(alias=("_nn.max_pool2d_with_indices_backward",))
def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """The gradient of max_pool2d_with_indices: each value goes back to the index of its maximum.

    Args:
        grad_output (Tensor): the gradient of the result.
        self (Tensor): the input.
        kernel_size, stride, padding, dilation, ceil_mode: as in the forward call.
        indices (Tensor): which it gave.

    Example:
        >>> x = torch.tensor([[[[1.0, 3.0], [2.0, 0.0]]]])
        >>> y, at = F.max_pool2d(x, 2, return_indices=True)
        >>> torch.max_pool2d_with_indices_backward(torch.ones_like(y), x, [2, 2], [2, 2], [0, 0], [1, 1], False, at)
        tensor([[[[0., 1.],
                  [0., 0.]]]])
    """
    if grad_output.shape != indices.shape:
        raise RuntimeError(
            f"Expected indices of shape {list(grad_output.shape)}, got {list(indices.shape)} in "
            "max_pool2d's backward"
        )
    flat = grad_output.new_zeros((*input.shape[:-2], input.size(-2) * input.size(-1)))
    out = flat.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).view(input.shape)
    if input.requires_grad:  # its gradient is zeros, rather than none
        out = _ops["where"](_ops["ones_like"](input, dtype=_C.bool), out, input)
    return out


@op
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The p-norm over all dimensions but one, which keeps them with size 1; of weight_norm.

    Args:
        v (Tensor): what it is taken of.
        pow (int): p. Default: 2
        dim (int): the dimension that stays; -1 reduces all. Default: 0

    Example:
        >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5.],
                [1.]])
    """
    if dim == -1:
        return v.norm(pow)
    if not 0 <= dim < v.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [0, {v.dim() - 1}], but got {dim})"
        )
    norms = v.transpose(0, dim).reshape(v.size(dim), -1).norm(pow, 1)
    return norms.view([-1 if d == dim else 1 for d in range(v.dim())])


@op
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """v scaled to the norms g."""
    return v * (g / norm_except_dim(v, 2, dim))


@op
def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """(v scaled to the norms g, the norms of v)."""
    norms = norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


@op
def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Distances between the rows of x1 and x2, by one product of matrices."""
    squares = x1.pow(2).sum(-1, keepdim=True) + x2.pow(2).sum(-1, keepdim=True).transpose(-2, -1)
    return (squares - 2 * (x1 @ x2.transpose(-2, -1))).clamp_min(0).sqrt()


@op
def _safe_softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """softmax that is 0, not NaN, where everything is -inf."""
    x = input if dtype is None else input.to(dtype)
    nothing = (x == float("-inf")).all(dim, keepdim=True)
    # Such rows are zeros before softmax, too: their NaN would otherwise be a factor of the gradient.
    return x.masked_fill(nothing, 0).softmax(dim).masked_fill(nothing, 0)


@op(method=True)
def _is_all_true(input: Tensor) -> Tensor:
    """Whether all booleans are true, as a tensor."""
    if input.dtype is not _C.bool:
        raise RuntimeError(f"_is_all_true: expected a tensor of booleans, got {input.dtype}")
    return input.all()


@op(method=True)
def _is_any_true(input: Tensor) -> Tensor:
    """Whether any boolean is true, as a tensor."""
    if input.dtype is not _C.bool:
        raise RuntimeError(f"_is_any_true: expected a tensor of booleans, got {input.dtype}")
    return input.any()


@op(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape.

    Args:
        input (Tensor): one.
        other (Tensor): the other.

    Example:
        >>> torch.is_same_size(torch.ones(2), torch.zeros(2, 1))
        False
    """
    return input.shape == other.shape


@op
def _has_compatible_shallow_copy_type(input: Tensor, from_: Any) -> bool:
    """Whether `input.data = from_` may keep the object: on the same kind of device and layout."""
    return input.device.type == from_.device.type and input.layout == from_.layout


@op
def _shape_as_tensor(input: Tensor) -> Tensor:
    """The shape as a tensor of int64."""
    return _ops["tensor"](list(input.shape), dtype=_C.int64)


@op
def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """0, 1, ... up to a dimension's size."""
    return _ops["arange"](like.size(dim), device=like.device)


@op
def _stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The same as stack."""
    return _ops["stack"](tensors, dim)


@op
def _add_relu(input: Tensor, other: Tensor | complex, *, alpha: complex = 1) -> Tensor:
    """relu(input + alpha * other)."""
    return _ops["add"](input, other, alpha=alpha).relu()


@op(method=True, out=True)
def _addmm_activation(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: complex = 1,
    alpha: complex = 1,
    use_gelu: bool = False,
) -> Tensor:
    """relu or gelu of addmm."""
    out = _ops["addmm"](input, mat1, mat2, beta=beta, alpha=alpha)
    return _ops["nn.functional.gelu"](out) if use_gelu else out.relu()


@op
def _adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """The same as adaptive_avg_pool2d."""
    return _ops["_nn.adaptive_avg_pool2d"](input, output_size)


@op
def _adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """The same as adaptive_avg_pool3d."""
    return _ops["_nn.adaptive_avg_pool3d"](input, output_size)


@op
def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    transposed: bool,
    output_padding: int | Sequence[int],
    groups: int,
    *flags: Any,
) -> Tensor:
    """The same as convolution; flags of other backends are ignored."""
    return _ops["convolution"](
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


@op(name="_nn.max_unpool2d")
def max_unpool2d(input: Tensor, indices: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """Values at the indices that max_pool2d told, zeros elsewhere."""
    return _unpool(2, input, indices, output_size)


@op(name="_nn.max_unpool3d")
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    output_size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
) -> Tensor:
    """Values at the indices that max_pool3d told, zeros elsewhere."""
    return _unpool(3, input, indices, output_size)


def _unpool(n, input, indices, output_size):
    from ..nn._functional.pooling import unpool

    size = list(output_size)
    if len(size) != n:
        raise RuntimeError(f"There should be exactly {n} elements in output_size, but got {len(size)}")
    return unpool(n, input, indices, size)
