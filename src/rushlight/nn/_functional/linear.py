"""Products of groups of matrices."""

from __future__ import annotations

import rushlight as rl
from rushlight._C import Tensor, dtype


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:
    """Products of groups of matrices: rows, columns or the inner dimension of 2-d operands are cut at
    `offs`."""
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if (mat_a.dim() == 2 or mat_b.dim() == 2) != (offs is not None):
        raise RuntimeError("Have to provide offsets for 2d operands, and only for them")
    if offs is None:
        out = mat_a @ mat_b
    else:
        ends = [int(e) for e in offs]
        cuts = list(zip([0, *ends[:-1]], ends, strict=True))
        if mat_a.dim() == 2 and mat_b.dim() == 2:
            out = rl.stack([mat_a[:, a:b] @ mat_b[a:b] for a, b in cuts])
        elif mat_a.dim() == 2:
            out = rl.cat([mat_a[a:b] @ mat_b[i] for i, (a, b) in enumerate(cuts)])
        else:
            out = rl.cat([mat_a[i] @ mat_b[:, a:b] for i, (a, b) in enumerate(cuts)], 1)
    return out if out_dtype is None else out.to(out_dtype)
