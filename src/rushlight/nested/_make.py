"""Nested tensors made of lists, of padded tensors, and of values with offsets."""

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nested._tensor import Nested, NestedTensor, alias, jagged, strided, strided_of


def _check_layout(layout):
    layout = rl.strided if layout is None else layout
    if layout is not rl.strided and layout is not rl.jagged:
        raise RuntimeError(
            f"Specified layout is unsupported for nested tensors: {layout}: use strided or jagged"
        )
    return layout


def _on_cpu(pin_memory):
    if pin_memory:
        raise RuntimeError(
            "Cannot access accelerator device when none is available: pin_memory has no use on a CPU"
        )


def nested_tensor(
    tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A nested tensor with copies of the tensors of a list; it has no history.

    Args:
        tensor_list (list): tensors, arrays or lists of scalars, which may differ in size.
        dtype (dtype): of the copies; None takes the tensors'. Default: None
        layout (layout): torch.strided, or torch.jagged for tensors that differ in one dimension only. None
            means torch.strided. Default: None
        device (device): of the copies. Default: None
        requires_grad (bool): whether it asks for a gradient. Default: False
        pin_memory (bool): accepted. Default: False

    Example:
        >>> x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
        >>> x.size(0), [len(part) for part in x.unbind()]
        (2, [2, 3])
    """
    layout = _check_layout(layout)
    if not isinstance(tensor_list, (list, tuple)) or (
        layout is rl.strided and not isinstance(tensor_list, list)
    ):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    _on_cpu(pin_memory)
    tensors = []
    for item in tensor_list:
        if isinstance(item, Nested):
            raise RuntimeError(
                "nested_tensor(): a tensor of the list is nested itself: give the tensors in it, unbind()"
            )
        if isinstance(item, Tensor):
            tensors.append(item.detach().to(device=device, dtype=dtype))
        else:
            tensors.append(rl.tensor(item, dtype=dtype, device=device))
    with rl.no_grad():
        if layout is rl.jagged:
            made = jagged_from_list(tensors, None)[0]
        else:
            made = _strided_from(tensors, dtype, device, copy=True)
    return made.requires_grad_(requires_grad)


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor of tensors with their history: of a list, or of the rows of a tensor.

    Args:
        ts (list or Tensor): the tensors, or one whose first dimension is the batch.
        dtype (dtype): None takes the tensors'. Default: None
        device (device): None takes the tensors'. Default: None
        layout (layout): torch.strided or torch.jagged; None means torch.strided. Default: None

    Example:
        >>> a, b = torch.ones(2, requires_grad=True), torch.ones(3)
        >>> torch.nested.as_nested_tensor([a, b], layout=torch.jagged).sin().sum().backward()
        >>> a.grad.shape
        torch.Size([2])
    """
    layout = _check_layout(layout)
    if isinstance(ts, Nested):
        if ts.layout is not layout:
            raise RuntimeError(
                "Converting between nested tensor layouts is not supported: as_nested_tensor(x.unbind(), layout=...)"
            )
        return ts.to(device=device, dtype=dtype)
    if not isinstance(ts, Tensor) and not (
        isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)
    ):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors"
        )
    if isinstance(ts, Tensor):
        if ts.dim() < 2:
            raise RuntimeError(
                f"as_nested_tensor(): Expected tensor argument to have dim() > 1, but got dim() = {ts.dim()}: its first dimension "
                "is the batch"
            )
        ts = ts.to(device=device, dtype=dtype)
        if layout is rl.jagged:
            batch, length = ts.shape[:2]
            offsets = rl.arange(batch + 1, dtype=rl.int64, device=ts.device) * length
            cache = {"min_seqlen": length, "max_seqlen": length}
            return jagged(alias(ts.flatten(0, 1)), offsets, None, 1, cache)._seen_as_view_of(ts)
        made = strided(ts.reshape(-1), [ts.shape[1:]] * len(ts))
        return made._seen_as_view_of(ts) if ts.is_contiguous() else made
    if layout is rl.jagged:
        return jagged_from_list(list(ts), None, dtype=dtype, device=device)[0]
    return _strided_from([t.to(device=device, dtype=dtype) for t in ts], dtype, device)


def _strided_from(tensors, dtype, device, copy=False):
    if not tensors:
        return strided(rl.empty(0, dtype=dtype, device=device), [])
    for i, (a, b) in enumerate(zip(tensors, tensors[1:], strict=False)):
        if a.dim() != b.dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. "
                f"Found dimension {b.dim()} for Tensor at index {i + 1} and dimension {a.dim()} for Tensor at index {i}."
            )
    tensors = [t.to(tensors[0].dtype) for t in tensors]
    if len(tensors) == 1:
        flat = tensors[0].reshape(-1)
        return strided(flat.clone() if copy else alias(flat), [tensors[0].shape])
    return strided_of(tensors)


def jagged_from_list(tensors, offsets, dtype=None, device=None):
    """(jagged tensor, offsets) of tensors that differ in one dimension at most."""
    if not len(tensors):
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, values in (
        ("have the same dtype", {t.dtype for t in tensors}),
        ("be on the same device", {t.device for t in tensors}),
        ("have the same dim", {t.dim() for t in tensors}),
    ):
        if len(values) > 1:
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must {what}")
    dims = tensors[0].dim()
    if dims == 0:
        raise RuntimeError(
            "Cannot construct a nested tensor from a list of zero-dim tensors: give each a dimension"
        )
    ragged = [d for d in range(dims) if len({t.size(d) for t in tensors}) > 1]
    if len(ragged) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout "
            "only allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim. "
            "layout=torch.strided has no such limit."
        )
    at = ragged[0] if ragged else 0
    tensors = [t.to(device=device, dtype=dtype) for t in tensors]
    values = rl.cat(tensors, at)
    lengths = [t.size(at) for t in tensors]
    if offsets is None:
        starts = [0]
        for n in lengths:
            starts.append(starts[-1] + n)
        offsets = rl.tensor(starts, dtype=rl.int64, device=values.device)
    cache = {"min_seqlen": min(lengths), "max_seqlen": max(lengths)}
    return jagged(alias(values), offsets, None, at + 1, cache)._seen_as_view_of(values), offsets


def nested_tensor_from_jagged(
    values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None
):
    """A jagged tensor that is a view of values: sequence i is values[offsets[i] : offsets[i + 1]].

    Args:
        values (Tensor): all sequences, one behind the other.
        offsets (Tensor): where each begins, and the end of the last; or lengths alone are given. Default: None
        lengths (Tensor): how long each is; with offsets, sequences may leave gaps. Default: None
        jagged_dim (int): the dimension of the sequences, the batch being 0; None means 1. Default: None
        min_seqlen (int): the least length, if it is known. Default: None
        max_seqlen (int): the largest length, if it is known. Default: None

    Example:
        >>> x = torch.nested.nested_tensor_from_jagged(torch.arange(5.0), torch.tensor([0, 2, 5]))
        >>> [part.tolist() for part in x.unbind()]
        [[0.0, 1.0], [2.0, 3.0, 4.0]]
    """
    if not isinstance(values, Tensor):
        from rushlight.fx import Proxy

        if isinstance(values, Proxy):
            raise RuntimeError(
                "torch.nested.nested_tensor_from_jagged does not support tracing with fx.symbolic_trace. Use fx.wrap to "
                "wrap the function that calls nested_tensor_from_jagged."
            )
        raise TypeError(f"nested_tensor_from_jagged(): values must be a Tensor, not {type(values).__name__}")
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = rl.nn.functional.pad(lengths.cumsum(0), (1, 0)), None
    ragged_idx = 1 if jagged_dim is None else jagged_dim
    for name, t in (("offsets", offsets), ("lengths", lengths)):
        if t is not None and (t.dim() != 1 or t.dtype not in (rl.int64, rl.int32)):
            raise RuntimeError(
                f"nested_tensor_from_jagged(): expected 1D {name} of integers, got {t.dim()}D {t.dtype}"
            )
    if values.dim() < 1 or not 1 <= ragged_idx <= values.dim():
        raise RuntimeError(
            f"nested_tensor_from_jagged(): jagged_dim must be between 1 and {values.dim()}, the dimensions of values, got "
            f"{ragged_idx}"
        )
    if offsets.numel() < 1:
        raise RuntimeError(
            "nested_tensor_from_jagged(): offsets must have one element more than there are sequences"
        )
    cache = {key: n for key, n in (("min_seqlen", min_seqlen), ("max_seqlen", max_seqlen)) if n is not None}
    return jagged(alias(values), offsets, lengths, ragged_idx, cache)._seen_as_view_of(values)


def narrow(tensor, dim, start, length, layout=rl.strided):
    """Some elements along a dimension of a tensor; with tensors for start and length, others in each row.

    Args:
        tensor (Tensor): dense.
        dim (int): the dimension; 1 where start or length are tensors.
        start (int or Tensor): the first element, one for all rows or one for each.
        length (int or Tensor): how many elements.
        layout (layout): torch.strided, or torch.jagged, which tensors need. Default: torch.strided

    Example:
        >>> x = torch.arange(8).reshape(2, 4)
        >>> part = torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged)
        >>> [row.tolist() for row in part.unbind()]
        [[0, 1], [5, 6, 7]]
    """
    if not isinstance(start, (int, Tensor)):
        raise RuntimeError("start must be an integer or a tensor")
    if not isinstance(length, (int, Tensor)):
        raise RuntimeError("length must be an integer or a tensor")
    if layout is rl.strided:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError(
                "start and length must be integers for the strided layout NT impl: layout=torch.jagged takes tensors"
            )
        return as_nested_tensor(rl.unbind(tensor), layout=rl.strided).narrow(dim, start, length)
    if layout is not rl.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    return jagged_from_tensor_and_lengths(tensor, start, length)[0]


def jagged_from_tensor_and_lengths(tensor, starts, lengths):
    """(jagged view, offsets, lengths or None) of a padded tensor: `lengths` elements of each row from `starts` on."""
    if tensor.dim() < 2:
        raise RuntimeError(f"nested narrow: expected a tensor of 2 dimensions or more, got {tensor.dim()}")
    batch, longest = tensor.shape[:2]
    starts, lengths = (
        (x if isinstance(x, Tensor) else rl.tensor(x)).to(rl.int64).expand(batch) for x in (starts, lengths)
    )
    if bool(((starts < 0) | (lengths < 0) | (starts + lengths > longest)).any()):
        raise RuntimeError(
            f"narrow: a start or length lies outside of the dimension, which has {longest} elements"
        )
    begin = rl.arange(batch) * longest + starts
    ends = begin + lengths
    values = alias(tensor.flatten(0, 1))
    cache = {"min_seqlen": int(lengths.min()), "max_seqlen": int(lengths.max())} if batch else {}
    offsets = rl.cat([begin, ends[-1:]]) if batch else rl.zeros(1, dtype=rl.int64)
    if batch and bool((ends == offsets[1:]).all()):  # without holes: the values from the first to the last
        first, last = int(begin[0]), int(ends[-1])
        offsets = offsets - first
        made = jagged(values[first:last], offsets, None, 1, cache)
        return made._seen_as_view_of(tensor), offsets, None
    lengths = lengths.clone()
    return jagged(values, offsets, lengths, 1, cache)._seen_as_view_of(tensor), offsets, lengths


def masked_select(tensor, mask):
    """The elements of a tensor where a mask is True: a jagged tensor with a sequence for each row.

    Args:
        tensor (Tensor): dense.
        mask (Tensor): bool, broadcast with it.

    Example:
        >>> x = torch.arange(6).reshape(2, 3)
        >>> part = torch.nested.masked_select(x, x % 2 == 0)
        >>> [row.tolist() for row in part.unbind()]
        [[0, 2], [4]]
    """
    if tensor.layout is not rl.strided or isinstance(tensor, Nested):
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout is not rl.strided or isinstance(mask, Nested):
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    values = tensor.masked_select(mask)
    whole = mask.expand(rl.broadcast_shapes(tensor.shape, mask.shape))
    lengths = whole.sum(-1).reshape(-1)
    return jagged(values, rl.nn.functional.pad(lengths.cumsum(0), (1, 0)))


def to_padded_tensor(input, padding, output_size=None, out=None):
    """The tensors of a nested tensor as one dense tensor, each filled up to the size of the largest.

    Args:
        input (Tensor): nested.
        padding (float): what it is filled up with.
        output_size (tuple of ints): of the result, instead of the least that fits. Default: None

    Example:
        >>> x = torch.nested.nested_tensor([[1.0, 2.0], [3.0]])
        >>> torch.nested.to_padded_tensor(x, 0.0)
        tensor([[1., 2.],
                [3., 0.]])
    """
    padded = input.to_padded_tensor(padding, output_size)
    return padded if out is None else out.copy_(padded)


def from_mask(t, mask, mask_check=True):
    """torch._nested_tensor_from_mask: of each row of t as many elements as `mask` has True, which come first."""
    if mask.dtype is not rl.bool:
        raise RuntimeError("Expected mask to be of ScalarType Bool, but got " + _kind(mask) + " instead.")
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if mask.shape != t.shape[:2]:
        raise RuntimeError("Mask size should match input size")
    lengths = mask.sum(1)
    if mask_check and not left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    kept = rl.arange(t.size(1)) < lengths.unsqueeze(1)
    return strided(t[kept].reshape(-1), [(n, t.size(2)) for n in lengths.tolist()])


def left_aligned(t, mask):
    """torch._nested_tensor_from_mask_left_aligned: whether each row of a mask is True first and False then."""
    if mask.dtype is not rl.bool:
        raise RuntimeError("Expected mask to be of ScalarType Bool, but got " + _kind(mask) + " instead.")
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3 or mask.shape != t.shape[:2]:
        raise RuntimeError("Mask size should match input size")
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any())


def _kind(t):
    return t._type_name()[len("torch.") : -len("Tensor")]


def like_nested(padded, example):
    """torch._nested_from_padded_and_nested_example: of each row of a padded tensor what the example has."""
    parts = [row[tuple(slice(n) for n in size)] for row, size in zip(padded, example._sizes, strict=True)]
    return strided_of(parts)


def from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=False):
    """torch._nested_from_padded: of each row of a padded tensor the size that a matrix says."""
    if padded.dim() <= 1:
        raise RuntimeError("Expected padded tensor to have at least 2 dimensions")
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).flatten(2, 3)
    parts = [
        row[tuple(slice(n) for n in size)]
        for row, size in zip(padded, cpu_nested_shape_example.tolist(), strict=True)
    ]
    return strided_of(parts)


__all__ = ["NestedTensor"]
