"""Products and attention of jagged tensors."""

import rushlight as rl
from rushlight.nested._jagged import LAYERS, _with, handles, of_parts, shape_text, unbind
from rushlight.nested._tensor import Nested


@handles("linear")
def linear(x, weight, bias=None):
    if not isinstance(x, Nested) or isinstance(weight, Nested):
        raise RuntimeError("linear: only the input may be a nested tensor")
    if x._ragged_idx == x.dim() - 1:
        raise RuntimeError(
            f"linear(): the last dimension of a nested tensor {shape_text(x)} must not be the ragged one: transpose it first"
        )
    return _with(x, rl.nn.functional.linear(x._held, weight, bias))


@handles("embedding")
def embedding(weight, indices, *args, **kwargs):
    if isinstance(weight, Nested):
        raise RuntimeError("embedding: the weight cannot be a nested tensor")
    return _with(indices, rl._C.ops["embedding"](weight, indices._held, *args, **kwargs))


@handles("bmm")
def bmm(a, b):
    for word, t in (("batch1", a), ("batch2", b)):
        if t.dim() != 3:
            raise RuntimeError(f"{word} must be a 3D tensor")
    return matmul(a, b)


def _parts(t, batch, dims):
    """One factor for each sequence."""
    if isinstance(t, Nested):
        return unbind(t)
    if t.dim() == dims and t.size(0) == batch:
        return t.unbind()
    if t.dim() < dims or t.size(0) == 1:
        return [t if t.dim() < dims else t[0]] * batch
    return None


@handles("matmul", "__matmul__")
def matmul(a, b):
    if isinstance(a, Nested) and not isinstance(b, Nested) and b.dim() == 2 and a._ragged_idx < a.dim() - 1:
        return _with(a, rl.matmul(a._held, b))
    nested = a if isinstance(a, Nested) else b
    dims = max(a.dim(), b.dim())
    pairs = [_parts(t, nested._batch(), dims) for t in (a, b)]
    wrong = RuntimeError(
        f"matmul(): not supported between inputs of shapes {shape_text(a)} and {shape_text(b)}"
    )
    if None in pairs or len(pairs[0]) != len(pairs[1]):
        raise wrong
    # Where the ragged dimension of each factor is, counted from the end.
    at = [t._ragged_idx - t.dim() if isinstance(t, Nested) else None for t in (a, b)]
    inside = (at[0] == -1, at[1] == -2)
    if inside[0] != inside[1] and not (at[0] is None or at[1] is None):
        raise wrong
    if inside == (True, True):
        if a._ragged_size != b._ragged_size:
            raise wrong
        return rl.stack([rl.matmul(x, y) for x, y in zip(*pairs, strict=True)])
    left = [at[0]] if at[0] is not None and at[0] != -1 else []
    right = [at[1]] if at[1] is not None and at[1] != -2 else []
    if any(inside) or len({*left, *right}) > 1 or (left and right and a._ragged_size != b._ragged_size):
        raise wrong
    where = (left or right)[0]
    owner = a if left else b
    return of_parts([rl.matmul(x, y) for x, y in zip(*pairs, strict=True)], owner, dims + where)


@handles("scaled_dot_product_attention", table=LAYERS)
def attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Each sequence attends to itself: nothing is padded."""
    if attn_mask is not None:
        raise ValueError(
            "NestedTensor: attn_mask is not supported yet: sequences need no mask for their ends, is_causal has its own"
        )
    if not all(isinstance(t, Nested) for t in (query, key, value)):
        raise ValueError(
            "Expected query, key, and value to be all nested or all non-nested, but got query.is_nested: "
            f"{query.is_nested}, key.is_nested: {key.is_nested}, value.is_nested: {value.is_nested} instead."
        )
    for t in (key, value):
        if t.dtype != query.dtype:
            raise ValueError(
                f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype}, key.dtype: {key.dtype}, "
                f"and value.dtype: {value.dtype} instead."
            )
    if any(t.dim() < 3 for t in (query, key, value)):
        raise ValueError(
            f"Expected query, key, and value to all be  at least 3 dimensional, but got query.dim: {query.dim()}, key.dim: "
            f"{key.dim()} and value.dim: {value.dim()} instead."
        )
    if any(t._ragged_idx == t.dim() - 1 for t in (query, key, value)):
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found: expected (batch, heads, ragged, features), got "
            f"{shape_text(query)}: transpose it first"
        )
    one = rl.nn.functional.scaled_dot_product_attention
    made = [
        one(
            q.unsqueeze(0),
            k.unsqueeze(0),
            v.unsqueeze(0),
            None,
            dropout_p,
            is_causal,
            scale=scale,
            enable_gqa=enable_gqa,
        ).squeeze(0)
        for q, k, v in zip(unbind(query), unbind(key), unbind(value), strict=True)
    ]
    if query.dim() != 4 or query._ragged_idx != 2:
        return of_parts(made, query, query._ragged_idx)
    # In memory (sequences, heads, features), so that the heads can be joined by a view after transpose(1, 2).
    return of_parts([t.transpose(0, 1) for t in made], query, 1).transpose(1, 2)
