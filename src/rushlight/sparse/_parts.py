"""Compressed tensors of parts that a program gives: what fits, and what is said where something does not."""

import rushlight as rl
from rushlight.sparse import _text
from rushlight.sparse._blocks import KINDS, assemble
from rushlight.sparse._invariants import check_sparse_tensor_invariants


def build(layout, starts, others, values, size, strict=None):
    """A tensor of checked parts. `strict` looks too at what is merely unusual: order within rows, gaps in memory."""
    if strict is None:
        strict = check_sparse_tensor_invariants.is_enabled()
    by_rows, blocks = KINDS[layout]
    first, second = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    for name, x in ((first, starts), (second, others)):
        if x.dim() < 1:
            raise RuntimeError(f"{name} must have dimensionality >= 1 but got {x.dim()}")
        if strict and x.numel() and x.stride(-1) != 1 and x.size(-1) > 1:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")
    if starts.dim() != others.dim():
        raise RuntimeError(
            f"{first} and {second} dimensionalities must be equal but got {starts.dim()} and {others.dim()}, respectively"
        )
    b, block = starts.dim() - 1, 2 if blocks else 0
    if values.dim() < b + 1 + block:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={b} + {block}) but got "
            f"{values.dim()}"
        )
    if starts.dtype is not others.dtype:
        kinds = [x._type_name()[len("torch.") : -len("Tensor")] for x in (starts, others)]
        raise RuntimeError(
            f"{first} and {second} must have the same dtype, bot got {kinds[0]} and {kinds[1]}, respectively"
        )
    if starts.dtype not in (rl.int32, rl.int64):
        kind = starts._type_name()[len("torch.") : -len("Tensor")]
        raise RuntimeError(f"{first} and {second} dtype must be Int or Long, but got {kind}")
    size = _size(layout, starts, others, values, size)
    _check_shapes(layout, starts, others, values, size, (first, second))
    rows, columns = size[b : b + 2]
    high, wide = values.shape[b + 1 : b + 3] if blocks else (1, 1)
    limit = columns // wide if by_rows else rows // high
    _check_indices(starts, others, (first, second), by_rows, limit, strict)
    return assemble(layout, starts, others, values, size)


def _size(layout, starts, others, values, size):
    by_rows, blocks = KINDS[layout]
    b, block = starts.dim() - 1, 2 if blocks else 0
    dense = values.dim() - b - 1 - block
    if size is None:
        high, wide = values.shape[b + 1 : b + 3] if blocks else (1, 1)
        along, across = starts.size(-1) - 1, int(others.max()) + 1 if others.numel() else 0
        sparse = (along * high, across * wide) if by_rows else (across * high, along * wide)
        size = (*starts.shape[:-1], *sparse, *values.shape[b + 1 + block :])
    size = tuple(int(n) for n in size)
    if len(size) != b + 2 + dense:
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={b} + 2 + {dense}) but got "
            f"{len(size)}"
        )
    return size


def _check_shapes(layout, starts, others, values, size, names):
    by_rows, blocks = KINDS[layout]
    first, second = names
    b = starts.dim() - 1
    batches = [list(x.shape[:b]) for x in (starts, others, values)]
    if any(batch != list(size[:b]) for batch in batches):
        raise RuntimeError(
            f"all batch dimensions of {first} (={batches[0]}), {second} (={batches[1]}), and values (={batches[2]}) must be "
            f"equal to tensor batch dimensions (={list(size[:b])})"
        )
    high, wide = values.shape[b + 1 : b + 3] if blocks else (1, 1)
    for d, n in enumerate((high, wide)):
        if n == 0 or size[b + d] % n:
            raise RuntimeError(
                f"tensor shape[{b + d}] (={size[b + d]}) must be divisible with blocksize[{d}] (={n}) as defined by values "
                "shape"
            )
    groups = size[b] // high if by_rows else size[b + 1] // wide
    if starts.size(-1) != groups + 1:
        kind = ("row" if by_rows else "column") + (" block" if blocks else "")
        raise RuntimeError(
            f"{first}.shape[-1] must be equal to the number of {kind}s + 1 (={groups + 1}), but got {starts.size(-1)}"
        )
    nnz = values.size(b)
    if others.size(-1) != nnz:
        raise RuntimeError(
            f"{second}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{b}], but got {others.size(-1)}"
        )
    dense = tuple(values.shape[b + 1 + (2 if blocks else 0) :])
    if dense != size[b + 2 :]:
        raise RuntimeError(
            f"values and tensor must have the same dense sizes, but got {list(dense)} and {list(size[b + 2 :])}"
        )


def _check_indices(starts, others, names, by_rows, limit, strict):
    first, second = names
    dims = ("nrows", "ncols") if by_rows else ("ncols", "nrows")
    if starts.numel():
        if bool((starts[..., 0] != 0).any()):
            raise RuntimeError(f"`{first}[..., 0] == 0` is not satisfied.")
        if bool((starts[..., -1] != others.size(-1)).any()):
            raise RuntimeError(f"`{first}[..., -1] == nnz` is not satisfied.")
        counts = starts[..., 1:] - starts[..., :-1]
        if counts.numel() and (int(counts.min()) < 0 or (strict and int(counts.max()) > limit)):
            raise RuntimeError(f"`0 <= {first}[..., 1:] - {first}[..., :-1] <= {dims[1]}` is not satisfied.")
    if not others.numel():
        return
    if int(others.min()) < 0 or int(others.max()) >= limit:
        raise RuntimeError(f"`0 <= {second} < {dims[1]}` is not satisfied.")
    if strict and others.size(-1) > 1:
        # One entry behind another is larger, unless a row begins with it.
        at = rl.arange(1, others.size(-1), dtype=starts.dtype).expand(*others.shape[:-1], -1)
        begins = (starts.unsqueeze(-1) == at.unsqueeze(-2)).any(-2)
        if bool(((others[..., 1:] <= others[..., :-1]) & ~begins).any()):
            raise RuntimeError(
                f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {dims[0]} are sorted and distinct "
                "along the last dimension values` is not satisfied."
            )


def _validate_sparse_compressed_tensor_args(
    compressed_indices, plain_indices, values, size, layout, check_pinning=None
):
    """Raises where the parts do not make a compressed tensor."""
    build(layout, compressed_indices, plain_indices, values, size, strict=True)


def _validator(layout):
    def validate(compressed_indices, plain_indices, values, size, check_pinning=None):
        build(layout, compressed_indices, plain_indices, values, size, strict=True)

    validate.__name__ = validate.__qualname__ = f"_validate_{str(layout).rpartition('.')[2]}_tensor_args"
    validate.__doc__ = f"Raises where the parts do not make a tensor of layout {_text.LAYOUTS[layout]}."
    return validate


_validate_sparse_csr_tensor_args = _validator(rl.sparse_csr)
_validate_sparse_csc_tensor_args = _validator(rl.sparse_csc)
_validate_sparse_bsr_tensor_args = _validator(rl.sparse_bsr)
_validate_sparse_bsc_tensor_args = _validator(rl.sparse_bsc)


def _validate_compressed_sparse_indices(is_crow, compressed_idx, plain_idx, cdim, dim, nnz):
    """Raises where indices do not make a compressed matrix of cdim rows (or columns) of dim, with nnz entries."""
    size = (*compressed_idx.shape[:-1], *((cdim, dim) if is_crow else (dim, cdim)))
    values = rl.zeros(()).expand(*plain_idx.shape[:-1], nnz)
    layout = rl.sparse_csr if is_crow else rl.sparse_csc
    build(layout, compressed_idx, plain_idx, values, size, strict=True)
