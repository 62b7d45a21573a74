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
    """Multiplies groups of matrices: y_g = a_g b_g, groups being the batch of 3-d operands or parts of 2-d ones.

    A 2-d operand is cut at offs: mat_a by rows, mat_b by columns; two 2-d operands along the inner dimension. The
    matrix products of experts that get unequal numbers of tokens.

    Args:
        mat_a (Tensor): (G, M, K) or (M, K).
        mat_b (Tensor): (G, K, N) or (K, N).
        offs (Tensor): (G,), where each group ends; with a 2-d operand, and only then. Default: None
        bias (Tensor): not supported. Default: None
        out_dtype (dtype): what the result is cast to. Default: None

    Returns:
        (M, N) for one 2-d operand, else (G, M, N).

    Example:
        >>> F.grouped_mm(torch.ones(3, 2), torch.ones(2, 2, 1), offs=torch.tensor([1, 3])).shape
    """
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
