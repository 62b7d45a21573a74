"""Products with weights beyond the plain linear layer, which is the core's."""

import rushlight as rl


def bilinear(input1, input2, weight, bias=None):
    """x1' A_k x2 + b_k for each row k of weight (out, in1, in2)."""
    if input1.dim() != input2.dim():
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}"
        )
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {list(input1.shape[:-1])} and "
            f"{list(input2.shape[:-1])}"
        )
    if weight.dim() != 3 or input1.size(-1) != weight.size(1):
        raise RuntimeError(
            f"bilinear(): input1 size does not match weight size: got {input1.size(-1)} but expected "
            f"{list(weight.shape)[1:2]}"
        )
    if input2.size(-1) != weight.size(2):
        raise RuntimeError(
            f"bilinear(): input2 size does not match weight size: got {input2.size(-1)} but expected "
            f"{weight.size(2)}"
        )
    if bias is not None and bias.size(0) != weight.size(0):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.size(0)} but expected "
            f"{weight.size(0)}"
        )
    out, n1, n2 = weight.shape
    x1, x2 = input1.reshape(-1, n1), input2.reshape(-1, n2)
    # (batch, out * in2), then summed against x2
    left = (x1 @ weight.permute(1, 0, 2).reshape(n1, out * n2)).view(-1, out, n2)
    result = (left @ x2.unsqueeze(2)).squeeze(2)
    if bias is not None:
        result = result + bias
    return result.view(*input1.shape[:-1], out)


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
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
        cuts = list(zip([0, *ends[:-1]], ends))
        if mat_a.dim() == 2 and mat_b.dim() == 2:
            out = rl.stack([mat_a[:, a:b] @ mat_b[a:b] for a, b in cuts])
        elif mat_a.dim() == 2:
            out = rl.cat([mat_a[a:b] @ mat_b[i] for i, (a, b) in enumerate(cuts)])
        else:
            out = rl.cat([mat_a[i] @ mat_b[:, a:b] for i, (a, b) in enumerate(cuts)], 1)
    return out if out_dtype is None else out.to(out_dtype)
