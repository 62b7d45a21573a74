"""Softmax, norms, products, sums, attention and padding of strided nested tensors."""

import math

import rushlight as rl
from rushlight.nested import _pad
from rushlight.nested._strided import LAYERS, _need_contiguous, handles, refusal
from rushlight.nested._tensor import Nested, jagged, strided, strided_of, wrapped


@handles("softmax", "_softmax")
def softmax(x, dim, dtype=None):
    if not x._sizes and x.dim() == 1:
        return x
    at = wrapped(dim, x.dim())
    if at == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return strided_of(
        [rl.softmax(t, at - 1, dtype=dtype if isinstance(dtype, rl.dtype) else None) for t in x.unbind()]
    )


@handles("log_softmax")
def log_softmax(x, dim, dtype=None):
    at = wrapped(dim, x.dim())
    if at == 0:
        raise RuntimeError("Cannot apply log_softmax across nested dimension 0")
    return strided_of([rl.log_softmax(t, at - 1, dtype=dtype) for t in x.unbind()])


@handles("layer_norm")
def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    _need_contiguous(x)
    shape = tuple(normalized_shape)
    inner = x.dim() - len(shape)
    if inner < 2:
        raise RuntimeError(
            f"normalized_shape extends into irregular dimensions for the nested tensor: {list(shape)} of {x.dim()} dimensions"
        )
    for i, n in enumerate(shape):
        sizes = {size[inner - 1 + i] for size in x._sizes}
        if len(sizes) > 1:
            raise RuntimeError(
                f"normalized_shape extends into irregular dimensions for the nested tensor: dimension {inner + i}"
            )
        if sizes and sizes != {n}:
            raise RuntimeError(
                f"The shape at dimension {i} of normalized_shape doesn't match the input: {n} and {sizes.pop()}"
            )
    rows = x._held.reshape(-1, *shape)
    return x._like(rl.layer_norm(rows, shape, weight, bias, eps).reshape(-1))


@handles("rms_norm")
def rms_norm(x, normalized_shape, weight=None, eps=None):
    _need_contiguous(x)
    rows = x._held.reshape(-1, *normalized_shape)
    return x._like(rl.rms_norm(rows, normalized_shape, weight, eps).reshape(-1))


@handles("linear")
def linear(x, weight, bias=None):
    if isinstance(weight, Nested):
        raise RuntimeError("Linear does not support nested weight when input is a nested tensor.")
    if not x.is_contiguous():
        raise RuntimeError("for now linear only supports contiguous nested tensor: call contiguous() first")
    if x.dim() < 3 or weight.dim() != 2:
        raise RuntimeError(
            f"Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: {x.dim()}. Dense tensor dim: "
            f"{weight.dim()}"
        )
    last = {size[-1] for size in x._sizes}
    if len(last) > 1:
        raise RuntimeError(
            f"Expected all tensors in nested tensor to have the same trailing dimension, instead last dimension equals: {sorted(last)}"
        )
    n = last.pop()
    if n != weight.size(1):
        raise RuntimeError(
            f"Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' to equal 'weight.size(1), but "
            f"got: last_dim = {n}, and weight.size(1) = {weight.size(1)}"
        )
    out = rl.nn.functional.linear(x._held.reshape(-1, n), weight, bias)
    return strided(out.reshape(-1), [(*size[:-1], weight.size(0)) for size in x._sizes])


@handles("bmm")
def bmm(a, b):
    for word, t in (("batch1", a), ("batch2", b)):
        if t.dim() != 3:
            raise RuntimeError(f"{word} must be a 3D tensor")
    n, other = (len(t._sizes) if isinstance(t, Nested) else t.size(0) for t in (a, b))
    if n != other:
        raise RuntimeError(
            f"Expected size for the 1st dimension of batch2 tensor to be: {n} but got: {other}."
        )
    made = []
    for i, (x, y) in enumerate(zip(a.unbind(), b.unbind(), strict=True)):
        if x.size(1) != y.size(0):
            raise RuntimeError(
                f"{i}-th nested matrices in batch cannot be multiplied ({x.size(0)}x{x.size(1)} and {y.size(0)}x{y.size(1)})"
            )
        made.append(x.mm(y))
    return strided_of(made)


@handles("matmul", "__rmatmul__")
def matmul(a, b):
    nested = isinstance(a, Nested), isinstance(b, Nested)
    if nested == (True, False) and b.dim() == 2 and a.dim() >= 3:
        return strided_of([rl.matmul(t, b) for t in a.unbind()])
    if False in nested:
        if a.dim() == b.dim() == 3:
            return bmm(a, b)
        kinds = "nested self and non-nested" if nested[0] else "non-nested self and nested"
        raise RuntimeError(f"Expected both to be nested, but got a {kinds} other")
    for word, t in (("1st", a), ("2nd", b)):
        if t.dim() < 3:
            raise RuntimeError(
                f"matmul: For nested tensors, only inputs with >= 3 dims are currently supported. {word} input has rank: {t.dim()}"
            )
    if len(a._sizes) != len(b._sizes):
        raise RuntimeError(
            f"matmul: Expected size for the 1st dimension of 2nd input tensor to be: {len(a._sizes)} but got: {len(b._sizes)}."
        )
    made = []
    for i, (x, y) in enumerate(zip(a.unbind(), b.unbind(), strict=True)):
        if x.shape[:-2] != y.shape[:-2]:
            raise RuntimeError(
                f"matmul: For nested tensors, batch dimensions must have the same sizes, no broadcasting is currently performed: "
                f"{list(x.shape)} and {list(y.shape)} at {i}"
            )
        if x.size(-1) != y.size(-2):
            raise RuntimeError(
                f"matmul: Nested tensors cannot be matrix multiplied ({x.size(-2)}x{x.size(-1)} and {y.size(-2)}x{y.size(-1)})"
            )
        made.append(rl.matmul(x, y))
    return strided_of(made)


@handles("sum")
def sum_(x, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        raise NotImplementedError(refusal("sum"))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    if wrapped(dims[0], x.dim()) != x.dim() - 1 or x.dim() < 2:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now "
            f"got dimension {dims[0]} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return strided_of([t.sum(-1, keepdim=True, dtype=dtype) for t in x.unbind()])


@handles("embedding")
def embedding(weight, indices, *args, **kwargs):
    if isinstance(weight, Nested):
        raise RuntimeError("embedding: the weight cannot be a nested tensor")
    _need_contiguous(indices)
    rows = rl._C.ops["embedding"](weight, indices._held, *args, **kwargs)
    return strided(rows.reshape(-1), [(*size, weight.size(1)) for size in indices._sizes])


@handles("to_padded_tensor")
def to_padded_tensor(x, padding, output_size=None):
    if not x.is_contiguous():
        raise RuntimeError(
            "for now to_padded_tensor only supports contiguous nested tensor: call contiguous() first"
        )
    if not x._sizes:
        return rl.empty(0, dtype=x.dtype)
    if x.numel() == 0:
        raise RuntimeError("at least one constituent tensor should have non-zero numel")
    largest = [max(column) for column in zip(*x._sizes, strict=True)]
    if output_size is not None:
        if len(output_size) != x.dim():
            raise RuntimeError(
                f"Length of output_size does not match NestedTensor dims. Broadcasting is not supported: {len(output_size)} and {x.dim()}"
            )
        if any(n < m for n, m in zip(output_size[1:], largest, strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
            )
        largest = list(output_size[1:])
    if len({size[1:] for size in x._sizes}) == 1 and x.dim() > 1:  # sequences of rows: all at once
        starts = [start // math.prod(x._sizes[0][1:]) for start in x._starts]
        rows = jagged(x._held.view(-1, *x._sizes[0][1:]), rl.tensor([*starts, starts[-1] + x._sizes[-1][0]]))
        return _pad.to_padded_tensor(rows, padding, (len(x._sizes), *largest))
    padded = []
    for part in x.unbind():
        margins = [n for d in reversed(range(part.dim())) for n in (0, largest[d] - part.size(d))]
        padded.append(rl.nn.functional.pad(part, margins, value=padding) if any(margins) else part)
    return rl.stack(padded)


@handles("scaled_dot_product_attention", table=LAYERS)
def attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Nested tensors for query / key are not supported when an explicit attn_mask is set"
        )
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Nested tensors for query / key are not supported when is_causal=True: use the jagged "
            "layout"
        )
    if not all(isinstance(t, Nested) for t in (query, key, value)):
        raise RuntimeError(
            "scaled_dot_product_attention: expected query, key and value to be all nested or all non-nested"
        )
    one = rl.nn.functional.scaled_dot_product_attention
    made = [
        one(q, k, v, None, dropout_p, scale=scale, enable_gqa=enable_gqa)
        for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    ]
    return strided_of(made)
