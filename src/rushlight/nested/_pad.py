"""Between jagged and padded tensors."""

from __future__ import annotations

from typing import Any

import rushlight as rl


def positions(x, longest):
    """(where each element of the sequences stands among the values, where it stands in a padded batch), both flat."""
    lengths = x._sequence_lengths().to(rl.int64)
    batch = rl.repeat_interleave(rl.arange(lengths.numel()), lengths)
    first = rl.nn.functional.pad(lengths.cumsum(0), (1, 0))[:-1]
    at = rl.arange(batch.numel()) - first[batch]
    return x._offsets[:-1].to(rl.int64)[batch] + at, batch * longest + at


def padded(x: Any, fill: Any, longest: Any = None) -> Any:
    """(B, L, ...) of a jagged tensor whose ragged dimension is brought to the front, filled up at the ends."""
    longest = x._get_max_seqlen() if longest is None else longest
    values = x._held.movedim(x._ragged_idx - 1, 0)
    source, target = positions(x, longest)
    if x._lengths is not None or source.numel() != values.size(0):
        values = values.index_select(0, source)
    whole = values.new_full((x._batch() * longest, *values.shape[1:]), fill)
    return whole.index_copy(0, target, values).unflatten(0, (x._batch(), longest))


def to_padded_tensor(x, padding, output_size=None):
    """The sequences side by side, each filled up to the longest, or to a size."""
    ragged = x._ragged_idx
    longest = x._get_max_seqlen()
    sizes = list(x.size())
    if output_size is not None:
        if len(output_size) != x.dim():
            raise RuntimeError(
                f"Length of output_size does not match NestedTensor dims. Broadcasting is not supported: {len(output_size)} and "
                f"{x.dim()}"
            )
        if output_size[ragged] < longest or any(
            n < m for d, (n, m) in enumerate(zip(output_size, sizes, strict=True)) if d != ragged
        ):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
            )
        longest = output_size[ragged]
    whole = padded(x, padding, longest).movedim(1, ragged)
    if output_size is not None and tuple(whole.shape) != tuple(output_size):
        margins = [n for d in reversed(range(whole.dim())) for n in (0, output_size[d] - whole.size(d))]
        whole = rl.nn.functional.pad(whole, margins, value=padding)
    return whole


def unpadded(whole: Any, x: Any) -> Any:
    """The values of a padded batch (its ragged dimension where x has it) that belong to the sequences of x, in x's order."""
    ragged = x._ragged_idx
    flat = whole.movedim(ragged, 1)
    source, target = positions(x, flat.size(1))
    rows = flat.flatten(0, 1).index_select(0, target)
    if x._lengths is not None or source.numel() != x._held.size(ragged - 1):
        rows = rows.new_zeros((x._held.size(ragged - 1), *rows.shape[1:])).index_copy(0, source, rows)
    return rows.movedim(0, ragged - 1)


def _one(offsets):
    if len(offsets) != 1:
        raise RuntimeError(f"only a single jagged dim is supported, got offsets of {len(offsets)}")
    if offsets[0].dim() != 1:
        raise RuntimeError(f"expected 1D offsets, but got {offsets[0].dim()}D")
    return offsets[0]


def _view(values, offsets):
    from rushlight.nested._tensor import jagged

    return jagged(values, offsets)


def jagged_to_padded(values, offsets, max_lengths, padding_value=0.0):
    offsets = _one(offsets)
    longest, (length,) = int(offsets.diff().max()) if offsets.numel() > 1 else 0, max_lengths
    whole = padded(_view(values, offsets), padding_value, max(longest, length))
    return whole[:, :length]


def padded_to_jagged(dense, offsets, total=None):
    offsets = _one(offsets)
    if dense.dim() < 2:
        raise RuntimeError(f"expected padded dim >= 2, but padded.dim() = {dense.dim()}")
    last = int(offsets[-1])
    if total is not None and last != total:
        raise RuntimeError(f"final offset should match total_L value, got {last} and {total}")
    longest = int(offsets.diff().max()) if offsets.numel() > 1 else 0
    if longest > dense.size(1):
        raise RuntimeError(
            f"found batch item of length {longest} when max length specified by padded input is {dense.size(1)}"
        )
    return unpadded(dense, _view(dense.new_empty(1).expand(last, *dense.shape[2:]), offsets))
