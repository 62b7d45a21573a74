"""Jagged tensors by the names of PyTorch's module."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._utils import _check_tensor
from rushlight.nested._make import jagged_from_list as jagged_from_list
from rushlight.nested._make import jagged_from_tensor_and_lengths as jagged_from_tensor_and_lengths
from rushlight.nested._make import nested_tensor_from_jagged
from rushlight.nested._ragged_size import size_of
from rushlight.nested._tensor import NestedTensor as NestedTensor
from rushlight.nested._tensor import jagged

NestedTensor.__module__ = __name__


def get_tensor_symint(tensor, *, coeff=1):
    """The size of the ragged dimension that belongs to a tensor of offsets."""
    return size_of(tensor, coeff)


def nested_view_from_values_offsets(values, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    return nested_tensor_from_jagged(
        values, offsets, jagged_dim=ragged_idx, min_seqlen=min_seqlen, max_seqlen=max_seqlen
    )


def nested_view_from_values_offsets_lengths(
    values, offsets, lengths, ragged_idx=1, min_seqlen=None, max_seqlen=None
):
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def nested_from_padded(padded, offsets, ragged_idx=1, sum_S=None, min_seqlen=None, max_seqlen=None):
    """A jagged tensor of what a padded one has for the sequences of `offsets`."""
    from rushlight.nested import _pad

    shape = list(padded.shape[1:])
    shape[ragged_idx - 1] = int(offsets[-1]) if sum_S is None else sum_S
    cache = {key: n for key, n in (("min_seqlen", min_seqlen), ("max_seqlen", max_seqlen)) if n is not None}
    like = jagged(padded.detach().new_empty(1).expand(shape), offsets, None, ragged_idx, cache)
    return like._like(_pad.unpadded(padded, like))


def buffer_from_jagged(x):
    """The values of a jagged tensor, with its history."""
    return x.values()


class ViewNestedFromBuffer:
    """The old way to make a jagged tensor of values."""

    @staticmethod
    def apply(values, offsets, metadata_cache=None):
        cache = metadata_cache or {}
        return nested_tensor_from_jagged(
            values, offsets, min_seqlen=cache.get("min_seqlen"), max_seqlen=cache.get("max_seqlen")
        )


def _rebuild_njt(state):
    """A jagged tensor of a file, which may say anything."""
    if type(state) is not dict:
        raise TypeError("a jagged tensor must be made of a dict of its parts")
    parts: list[Any] = [state.get(key) for key in ("values", "offsets", "lengths")]
    values, offsets, lengths = parts
    ragged_idx = state.get("_ragged_idx", 1)
    for part in (values, offsets) if lengths is None else (values, offsets, lengths):
        _check_tensor(part)
    if type(ragged_idx) is not int or not 1 <= ragged_idx <= values.dim():
        raise ValueError(f"a jagged tensor whose ragged dimension is {ragged_idx} of {values.dim()}")
    if any(t.dim() != 1 or t.dtype not in (rl.int32, rl.int64) for t in (offsets, lengths) if t is not None):
        raise ValueError("the offsets and lengths of a jagged tensor must be lists of whole numbers")
    if offsets.numel() < 1 or (lengths is not None and lengths.numel() != offsets.numel() - 1):
        raise ValueError("a jagged tensor must have one offset more than sequences")
    starts, each = offsets[:-1], offsets.diff() if lengths is None else lengths
    if bool(((starts < 0) | (each < 0) | (starts > values.size(ragged_idx - 1) - each)).any()):
        raise ValueError("a jagged tensor whose sequences lie outside of its values")
    made = jagged(values, offsets, lengths, ragged_idx)
    if type(state.get("_metadata_cache")) is dict:  # its lengths are counted again
        for key, count in (("min_seqlen", made._get_min_seqlen), ("max_seqlen", made._get_max_seqlen)):
            if key in state["_metadata_cache"]:
                count()
    return made.requires_grad_() if state.get("requires_grad") is True else made
