"""What functions of masks have in common: identities of reductions, and masks of arguments and results."""

import math

import rushlight as rl
from rushlight.masked import _ops

_NONE = ("mean", "median", "var", "std")  # no element stands for nothing


def _canonical_dim(dim, ndim):
    """Dimensions wrapped and in order; all for None and ()."""
    if dim is not None and not isinstance(dim, int):
        for d in dim:
            if [e % max(ndim, 1) for e in dim].count(d % max(ndim, 1)) > 1:
                raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
    return _ops._dims(dim, ndim)


def _reduction_identity(op_name, input, *args):
    """The number that a reduction does not change by, of the input's type; None if there is none."""
    dtype = input.dtype
    name = op_name.rpartition(".")[2]
    if name in _NONE:
        return None
    if name in ("sum", "cumsum", "norm") and args and name == "norm":
        value = 0 if args[0] is None or args[0] >= 0 else math.inf
    elif name in ("sum", "cumsum", "norm"):
        value = 0
    elif name in ("prod", "cumprod"):
        value = 1
    elif name in ("amax", "argmax", "logaddexp", "logsumexp"):
        value = _ops._lowest(dtype)
    elif name in ("amin", "argmin"):
        value = _ops._highest(dtype)
    else:
        raise NotImplementedError(f"identity of {op_name} on {dtype} input")
    return rl.tensor(value, dtype=dtype, device=input.device)


def _input_mask(input, *args, mask=None, **kwargs):
    """The mask of an input as a boolean tensor of its shape."""
    if input.layout not in (rl.strided, rl.sparse_coo, rl.sparse_csr):
        raise ValueError(
            f"_input_mask expects strided or sparse COO or sparse CSR tensor but got {input.layout}"
        )
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.dim() > input.dim():
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
        )
    if mask.layout is rl.strided and input.layout is not rl.strided:
        mask = mask.to(rl.bool).expand(input.shape)
        return mask.to_sparse(layout=input.layout)
    if mask.layout is not rl.strided and input.layout is rl.strided:
        mask = mask.to_dense()
    if mask.layout is rl.strided:
        mask = mask.expand(input.shape)
    return mask.to(rl.bool)


def _output_mask(op, input, *args, **kwargs):
    """Where the result of a masked function has a value."""
    name = getattr(op, "__name__", str(op)).rpartition(".")[2]
    mask = _input_mask(input, *args, **kwargs)
    if name in ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"):
        return mask
    skip = 1 if name == "norm" else 0  # its order comes before dim
    dim = kwargs.get("dim", args[skip] if len(args) > skip else -1 if name == "median" else None)
    if mask.layout is not rl.strided:
        mask = mask.to_dense()
    dims = _canonical_dim(dim, input.dim())
    keepdim = kwargs.get("keepdim", False)
    return mask.any(dims, bool(keepdim)) if dims else mask


def _combine_input_and_mask(op, input, mask, *args):
    """input with the identity of the reduction op where the mask is False."""
    from rushlight.masked.maskedtensor.core import is_masked_tensor

    if is_masked_tensor(input):
        own = input.get_mask()
        input, mask = input.get_data(), own if mask is None else own & mask
    if mask is None:
        return input
    name = op if isinstance(op, str) else getattr(op, "_op_name", None) or op.__name__
    identity = _reduction_identity(name, input, *args)
    if identity is None:
        raise ValueError(f"{name}: no number stands for an element that is left out")
    return _where(_input_mask(input, mask=mask), input, identity)


def _where(mask, input, fill_value):
    """where(mask, input, fill_value). Of sparse tensors the result has entries where the mask has them: the fill
    value is what all others stand for."""
    if mask.layout is rl.strided:
        return rl.where(mask, input, fill_value)
    if mask.layout not in (rl.sparse_coo, rl.sparse_csr):
        raise ValueError(f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}")
    wanted = mask.to_sparse().coalesce()
    kept = wanted.values()
    filled = kept.flatten(1).any(1) if kept.dim() > 1 else kept
    index = wanted.indices()[:, filled]
    entries = rl.where(kept[filled], input.to_dense()[tuple(index)], fill_value)
    result = rl.sparse_coo_tensor(index, entries, input.shape, is_coalesced=True)
    return result if mask.layout is rl.sparse_coo else result.to_sparse_csr()
