"""Products composed of other products."""

from __future__ import annotations

from rushlight._C import dtype

from .. import _C
from .._core import autocast as _autocast
from .._core.compose import op
from ._arguments import takes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


_ops = _C.ops
_einsum = _ops["_einsum"]
_tensordot = _ops["_tensordot"]
_matmul = _ops["matmul"]
Tensor = _C.Tensor


@op(spread=True)
def einsum(*args: Any) -> Tensor:
    """Sums of products over named dimensions: einsum("bij,bjk->bik", a, b) multiplies a batch of matrices.

    Args:
        args (str, Tensors): the equation and its operands. Letters name dimensions, `...` stands for those that broadcast;
            letters that are not on the right are summed. Without `->` the letters that occur once make the result, in
            alphabetical order. Or operands and lists of ints in turn, the result's list last.

    Example:
        >>> a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.einsum("ij->j", a)
        tensor([4., 6.])
        >>> torch.einsum("ii", a)
        tensor(5.)
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        return _einsum(*_from_sublists(args))
    operands = args[1:]
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = operands[0]
    return _einsum(args[0], list(operands))


def _from_sublists(args):
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) as an equation and its operands."""

    def letters(sublist):
        return "".join("..." if s is Ellipsis else _letter(s) for s in sublist)

    operands, inputs = args[: len(args) // 2 * 2 : 2], args[1::2]
    equation = ",".join(letters(s) for s in inputs[: len(operands)])
    if len(args) % 2 == 1:
        equation += "->" + letters(args[-1])
    return equation, list(operands)


def _letter(n):
    if not 0 <= n < 52:
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26)


@op(out="exact")
@takes("a", "b")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """a and b multiplied and summed over pairs of dimensions.

    Args:
        a (Tensor): one operand.
        b (Tensor): the other.
        dims (int, or two lists of ints): the last dims of a and the first of b; or the dimensions of a, and those of b.
            Default: 2

    Example:
        >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), 1).shape
        torch.Size([2, 4])
        >>> torch.tensordot(torch.ones(2, 3), torch.ones(4, 3), ([1], [1])).shape
        torch.Size([2, 4])
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return _tensordot(a, b, list(range(a.dim() - dims, a.dim())), list(range(dims)))
    if len(dims) != 2:
        raise RuntimeError(f"tensordot expects two lists of dimensions, got {dims}")
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    return _tensordot(a, b, first, second)


@op(method=True, out="exact")
@takes("input", "other")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products along the last dimension of both.

    Args:
        input (Tensor): (*, N).
        other (Tensor): (*', N); where either has no dimensions, the two are multiplied.

    Returns:
        Tensor: (*, *').

    Example:
        >>> torch.inner(torch.tensor([1.0, 2.0]), torch.tensor([[3.0, 4.0], [5.0, 6.0]]))
        tensor([11., 17.])
    """
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return _tensordot(input, other, [-1], [-1])


@op(out=True)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, in the order that takes the fewest operations.

    Args:
        matrices (Tensor): two-dimensional, one by one; torch.linalg.multi_dot is its modern name.

    Example:
        >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 1), torch.ones(1, 2))
        tensor([[3., 3.],
                [3., 3.]])
    """
    if len(matrices) == 1 and isinstance(matrices[0], list | tuple):
        matrices = tuple(matrices[0])
    for m in matrices:
        if not isinstance(m, Tensor):
            raise TypeError(f"chain_matmul(): expected Tensors, got {type(m).__name__}")
        if m.dim() != 2:
            raise RuntimeError(f"chain_matmul: Tensor dimension is {m.dim()}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0] if len(matrices) == 1 else _ops["linalg.multi_dot"](matrices)


@op(name="linalg.matrix_power", out="exact")
@takes("input")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A matrix multiplied with itself n times; the inverse is taken for negative n.

    Args:
        input (Tensor): (..., m, m).
        n (int): the exponent; 0 gives the identity.

    Example:
        >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    if not hasattr(n, "__index__") or isinstance(n, bool):
        raise TypeError(f"matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    n = n.__index__()
    if input.dim() < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if input.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            "linalg.matrix_power: A must be batches of square matrices, but they are "
            f"{input.shape[-2]} by {input.shape[-1]} matrices"
        )
    if n == 0:
        # an identity that depends on A, with a gradient of zero
        one = _ops["eye"](input.shape[-1], dtype=input.dtype, device=input.device)
        return _ops["where"](_ops["ones_like"](input, dtype=_C.bool), one, input)
    if n < 0:
        input, n = _ops["linalg.inv"](input), -n
    result: Any = None
    while True:
        if n % 2:
            result = input if result is None else _matmul(result, input)
        n //= 2
        if n == 0:
            break
        input = _matmul(input, input)
    return result.clone() if result is input else result


@op(name="matrix_power", method=True, out=True)
@takes("input")
def _matrix_power(input: Tensor, n: int) -> Tensor:
    """A matrix multiplied with itself n times; the inverse is taken for negative n.

    Args:
        input (Tensor): (..., m, m).
        n (int): the exponent; 0 gives the identity.

    Example:
        >>> torch.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    return matrix_power(input, n)


@op(name="linalg.vecdot", out=True)
@_autocast.low
@takes("x", "y")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of conj(x) * y along a dimension.

    Args:
        x (Tensor): vectors.
        y (Tensor): others; both broadcast.
        dim (int): the dimension of the vectors. Default: -1

    Example:
        >>> torch.linalg.vecdot(torch.ones(2, 3), torch.ones(3))
        tensor([3., 3.])
    """
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, got {x.dtype} and {y.dtype}"
        )
    return (x.conj() * y).sum(dim)


@op(alias=("nn.functional.bilinear",))
@takes("input1", "input2", "weight")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Applies a bilinear form per output: y_k = x1^T A_k x2 + b_k; see `nn.Bilinear`.

    Args:
        input1 (Tensor): x1, (*, D1).
        input2 (Tensor): x2, (*, D2).
        weight (Tensor): A, (K, D1, D2).
        bias (Tensor): b, (K,). Default: None

    Example:
        >>> torch.bilinear(torch.ones(1, 2), torch.ones(1, 3), torch.ones(4, 2, 3))
        tensor([[6., 6., 6., 6.]])
    """
    if input1.dim() != input2.dim():
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}"
        )
    shapes = f"{list(input1.shape)} and {list(input2.shape)}"
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(f"bilinear(): input batch dimensions do not match: got {shapes}")
    if input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        raise RuntimeError(
            f"bilinear(): inputs of {shapes} do not match weight of shape {list(weight.shape)}"
        )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]}, not {weight.shape[0]}"
        )
    result = _einsum("...i,kij,...j->...k", [input1, weight, input2])
    return result if bias is None else result + bias


def _check_grouped(a, b, offs, bias, out_dtype):
    for t, name in ((a, "mat_a"), (b, "mat_b")):
        if t.dtype not in (_C.float32, _C.bfloat16, _C.float16):
            kind = str(t.dtype).rpartition(".")[2]
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {kind}")
        if t.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if (offs is not None) != (a.dim() == 2 or b.dim() == 2):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"contraction dimension of mat_a and mat_b must match: {a.shape[-1]} and {b.shape[-2]}"
        )
    if offs is not None and (offs.dim() != 1 or offs.dtype != _C.int32):
        raise RuntimeError("Offsets have to be int32, of one dimension")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")


@op(alias=("nn.functional.grouped_mm",))
@takes("input", "mat2")
def _grouped_mm(
    input: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:
    """Multiplies groups of matrices: y_g = a_g b_g, groups being the batch of 3-d operands or parts of 2-d ones.

    A 2-d operand is cut at offs: input by rows, mat2 by columns; two 2-d operands along the inner dimension. The
    matrix products of experts that get unequal numbers of tokens.

    Args:
        input (Tensor): (G, M, K) or (M, K).
        mat2 (Tensor): (G, K, N) or (K, N).
        offs (Tensor): int32 (G,), where each group ends; with a 2-d operand, and only then. Default: None
        bias (Tensor): not supported. Default: None
        out_dtype (dtype): that of the operands, no other. Default: None

    Returns:
        (M, N) for one 2-d operand, else (G, M, N).

    Example:
        >>> F.grouped_mm(torch.ones(3, 2), torch.ones(2, 2, 1), offs=torch.tensor([1, 3]).int()).shape
        torch.Size([3, 1])
    """
    _check_grouped(input, mat2, offs, bias, out_dtype)
    if offs is None:
        return _matmul(input, mat2)
    ends = [0, *offs.tolist()]
    spans = [slice(begin, end) for begin, end in zip(ends, ends[1:], strict=False)]
    for t in (input, mat2):
        if t.dim() == 3 and t.shape[0] != len(spans):
            raise RuntimeError(f"matrix batch sizes have to match the offsets: {t.shape[0]} and {len(spans)}")
    if input.dim() == 2 and mat2.dim() == 2:
        return _ops["stack"]([_matmul(input[:, s], mat2[s]) for s in spans])
    if input.dim() == 2:
        parts, dim, size = [_matmul(input[s], mat2[g]) for g, s in enumerate(spans)], 0, input.shape[0]
    else:
        parts, dim, size = [_matmul(input[g], mat2[:, s]) for g, s in enumerate(spans)], 1, mat2.shape[1]
    if ends[-1] < size:  # what belongs to no group
        rest = list(parts[0].shape)
        rest[dim] = size - ends[-1]
        parts.append(parts[0].new_zeros(rest))
    return _ops["cat"](parts, dim)


@op(name="_int_mm", out="exact")
@takes("self", "mat2")
def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices of int8, summed as int32."""
    for name, x in (("self", self), ("mat2", mat2)):
        if x.dim() != 2:
            raise RuntimeError(f"Expected {name} to be of dimension 2 but got {x.dim()}")
        if x.dtype != _C.int8:
            raise RuntimeError(f"Expected {name} dtype to be of type int8 but got {x.dtype}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"self.size(1) needs to match mat2.size(0) but got {self.shape[1]} and {mat2.shape[0]}"
        )
    return _matmul(self.to(_C.int32), mat2.to(_C.int32))


@op
@takes("self", "mat2", "scales")
def _weight_int8pack_mm(self, mat2, scales):
    """self times the transpose of a weight of int8, whose row n stands for mat2[n] * scales[n]."""
    if mat2.dtype != _C.int8 or mat2.dim() != 2 or self.dim() != 2 or self.shape[1] != mat2.shape[1]:
        raise RuntimeError(
            f"_weight_int8pack_mm : expect A to be 2D tensor and B of int8 and as many columns, got {tuple(self.shape)} and "
            f"{tuple(mat2.shape)} of {mat2.dtype}"
        )
    if scales.numel() != mat2.shape[0]:
        raise RuntimeError(
            f"_weight_int8pack_mm : expect scales to be 1d tensor with size {mat2.shape[0]}, got {tuple(scales.shape)}"
        )
    return _matmul(self, mat2.to(self.dtype).t()) * scales.to(self.dtype)


@op
@takes("self")
def _convert_weight_to_int4pack_for_cpu(self, innerKTiles):
    """A weight of integers from 0 to 15, two in a byte: the even columns in the upper four bits."""
    if self.dim() != 2 or self.dtype != _C.int32 or self.shape[1] % 2:
        raise RuntimeError(
            "_convert_weight_to_int4pack_for_cpu : expect weight to be int32 of two dimensions, with an even number of "
            f"columns, got {tuple(self.shape)} of {self.dtype}"
        )
    if innerKTiles not in (2, 4, 8):
        raise RuntimeError("_convert_weight_to_int4pack_for_cpu: innerKTiles need to be 2, 4, or 8")
    return (self[:, ::2] << 4 | self[:, 1::2]).to(_C.uint8)


@op
@takes("self", "mat2")
def _weight_int4pack_mm_for_cpu(self, mat2, qGroupSize, qScaleAndZeros):
    """self times the transpose of a weight of four bits: in each group of columns (q - 8) * scale + zero."""
    n, k = mat2.shape[0], mat2.shape[1] * 2
    if self.dim() != 2 or self.shape[1] != k or mat2.dtype != _C.uint8:
        raise RuntimeError(
            f"_weight_int4pack_mm_for_cpu : expect A of {k} columns and B of uint8, got {tuple(self.shape)} and {mat2.dtype}"
        )
    if qGroupSize not in (32, 64, 128, 256) or k % qGroupSize:
        raise RuntimeError(
            f"_weight_int4pack_mm_for_cpu: expect qGroupSize to be 32, 64, 128 or 256 and to divide {k}, got {qGroupSize}"
        )
    if tuple(qScaleAndZeros.shape) != (k // qGroupSize, n, 2):
        raise RuntimeError(
            f"_weight_int4pack_mm_for_cpu: expect qScaleAndZeros to be 3d tensor with sizes [{k // qGroupSize}, {n}, 2], got "
            f"{list(qScaleAndZeros.shape)}"
        )
    integers = _ops["stack"]([mat2 >> 4, mat2 & 15], 2).reshape(n, k // qGroupSize, qGroupSize)
    scale, zero = (qScaleAndZeros[..., i].t().unsqueeze(2).to(_C.float32) for i in (0, 1))
    weight = ((integers.to(_C.float32) - 8) * scale + zero).reshape(n, k)
    return _matmul(self.to(_C.float32), weight.t()).to(self.dtype)
