"""Sequences of different lengths: padding and packing."""

from __future__ import annotations

import itertools
from collections import namedtuple
from typing import Any, Self

import rushlight as rl
from rushlight._C import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence",
    "unpad_sequence", "pack_sequence", "unpack_sequence",
]  # fmt: skip

_Fields = namedtuple("_Fields", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Fields):
    """Holds a batch of sequences of unequal length step by step, without padding.

    Made by `pack_padded_sequence` and `pack_sequence`, taken and given by `nn.RNN`, `nn.LSTM` and `nn.GRU`.

    Args:
        data (Tensor): (sum of lengths, *): the rows of step 0, then of step 1, ..., longest sequences first.
        batch_sizes (Tensor): (longest length,): how many sequences reach each step, on the CPU. Default: None
        sorted_indices (Tensor): (N,): the order by length, None where it was given so. Default: None
        unsorted_indices (Tensor): (N,): the inverse permutation. Default: None

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:  # the old way: (data, batch_sizes) in one tuple
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError(
                    "PackedSequence: expected batch_sizes, or (data, batch_sizes) as the only argument"
                )
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created "
                f"manually; got one on {batch_sizes.device}"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves or casts the data, with the arguments of `Tensor.to`; the indices follow to its device.

        Args:
            args (any): as for Tensor.to.
            kwargs (any): likewise.
        """
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        move = {k: v for k, v in kwargs.items() if k not in ("dtype", "device")}
        order, back = (None if i is None else i.to(data.device, **move) for i in self[2:])
        return type(self)(data, self.batch_sizes, order, back)

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """A copy on the GPU."""
        return self if self.data.is_cuda else self.to(*args, device="cuda", **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """A copy on the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def double(self) -> Self:
        """The data as float64."""
        return self.to(dtype=rl.double)

    def float(self) -> Self:
        """The data as float32."""
        return self.to(dtype=rl.float)

    def half(self) -> Self:
        """The data as float16."""
        return self.to(dtype=rl.half)

    def long(self) -> Self:
        """The data as int64."""
        return self.to(dtype=rl.long)

    def int(self) -> Self:
        """The data as int32."""
        return self.to(dtype=rl.int)

    def short(self) -> Self:
        """The data as int16."""
        return self.to(dtype=rl.short)

    def char(self) -> Self:
        """The data as int8."""
        return self.to(dtype=rl.int8)

    def byte(self) -> Self:
        """The data as uint8."""
        return self.to(dtype=rl.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        result: bool = self.data.is_cuda
        return result

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        result: bool = self.data.is_pinned()
        return result

    def pin_memory(self) -> Self:
        """A copy in pinned memory."""
        order, back = (None if i is None else i.pin_memory() for i in self[2:])
        return type(self)(self.data.pin_memory(), self.batch_sizes, order, back)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Returns the permutation that undoes another: result[permutation[i]] = i.

    Args:
        permutation (Tensor): (N,), or None, which is returned.

    Example:
        >>> nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    out = rl.empty_like(permutation, memory_format=rl.contiguous_format)
    return out.scatter_(0, permutation, rl.arange(0, permutation.numel(), device=permutation.device))


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | list[int], batch_first: bool = False, enforce_sorted: bool = True
) -> Any:
    """Packs a padded batch for a recurrent network, which then skips the padding.

    h_n is then the state after the last real step of each sequence. `pad_packed_sequence` undoes it.

    Args:
        input (Tensor): (L, N, *), or (N, L, *) with batch_first.
        lengths (Tensor or list of int): (N,), at least 1, on the CPU.
        batch_first (bool): the batch is the first dimension. Default: False
        enforce_sorted (bool): sequences must come with falling lengths; False sorts them, and sorts results back.
            Default: True

    Returns:
        A PackedSequence.

    Example:
        >>> x = torch.tensor([[1, 2, 0], [3, 4, 5]])
        >>> packed = nn.utils.rnn.pack_padded_sequence(x, [2, 3], batch_first=True, enforce_sorted=False)
        >>> packed.data
        tensor([3, 1, 4, 2, 5])
    """
    if not isinstance(lengths, rl.Tensor):
        lengths = rl.as_tensor(lengths, dtype=rl.int64, device="cpu")
    else:
        lengths = lengths.to(rl.int64)
    if enforce_sorted:
        order = None
    else:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    steps_first = input.transpose(0, 1) if batch_first else input
    if lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} "
            f"{lengths.dtype} tensor"
        )
    if steps_first.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.dim() != 1 or lengths.size(0) != steps_first.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} "
            f"(batch_size={steps_first.size(1)})"
        )
    count = lengths.tolist()
    if count[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in itertools.pairwise(count)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
            "requirement if you do not need ONNX exportability."
        )
    if count[0] > steps_first.size(0):
        raise RuntimeError(
            f"Expected sequences no longer than the padded length {steps_first.size(0)}, but got a length "
            f"of {count[0]}"
        )
    # Rows in use at each step, then one slice of rows for each run of steps with as many of them.
    sizes, pieces = [], []
    start, rows = 0, len(count)
    for length in reversed(count):
        if length > start:
            pieces.append(steps_first[start:length, :rows].reshape(-1, *steps_first.shape[2:]))
            sizes.extend([rows] * (length - start))
            start = length
        rows -= 1
    return PackedSequence(rl.cat(pieces), rl.tensor(sizes, dtype=rl.int64), order, None)


def pad_packed_sequence(
    sequence: Any, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Pads a packed batch: undoes `pack_padded_sequence`.

    Args:
        sequence (PackedSequence): what to pad.
        batch_first (bool): gives (N, L, *) rather than (L, N, *). Default: False
        padding_value (float): what stands behind the ends. Default: 0.0
        total_length (int): L, at least the longest length. Default: None, the longest

    Returns:
        (padded sequences, their lengths), in the order before packing.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 0, 0]]), tensor([3, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data, batch = sequence.data, sizes[0]
    # Where each row of the data goes in (steps, batch), flattened.
    at = rl.cat([rl.arange(t * batch, t * batch + n) for t, n in enumerate(sizes)]).to(data.device)
    empty = data.new_full((steps * batch, *data.shape[1:]), padding_value)
    padded = empty.index_copy(0, at, data).view(steps, batch, *data.shape[1:])
    if batch_first:
        padded = padded.transpose(0, 1)
    lengths = (sequence.batch_sizes.unsqueeze(1) > rl.arange(batch)).sum(0)
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices
        return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | list[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stacks sequences of unequal length into a padded batch.

    The usual collate_fn of a DataLoader of sequences.

    Args:
        sequences (list of Tensor): each (length, *).
        batch_first (bool): gives (N, L, *) rather than (L, N, *). Default: False
        padding_value (float): what is put where a sequence is shorter. Default: 0.0
        padding_side (str): 'right' or 'left'. Default: 'right'

    Example:
        >>> nn.utils.rnn.pad_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])], batch_first=True)
        tensor([[1, 2, 3],
                [4, 0, 0]])
    """
    if not isinstance(sequences, (list, tuple)):
        if not hasattr(sequences, "__iter__"):
            raise RuntimeError(
                f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
            )
        sequences = sequences.unbind(0) if isinstance(sequences, rl.Tensor) else tuple(sequences)
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.size(0) for s in sequences)
    rest = list(sequences[0].shape[1:])
    padded = []
    for s in sequences:
        if list(s.shape[1:]) != rest:
            raise RuntimeError(
                f"The size of tensors must match except in the first dimension: expected (length, {rest}), "
                f"got {list(s.shape)}"
            )
        missing = longest - s.size(0)
        if missing:
            around = (missing, 0) if padding_side == "left" else (0, missing)
            s = rl.constant_pad_nd(s, (*[0] * (2 * (s.dim() - 1)), *around), padding_value)
        padded.append(s)
    return rl.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Takes the sequences out of a padded batch: undoes `pad_sequence`.

    Args:
        padded_sequences (Tensor): (L, N, *), or (N, L, *) with batch_first.
        lengths (Tensor): (N,).
        batch_first (bool): the batch is the first dimension. Default: False

    Returns:
        A list of N tensors (length, *).

    Example:
        >>> nn.utils.rnn.unpad_sequence(torch.tensor([[1, 2], [4, 0]]), torch.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([4])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(padded_sequences, lengths, strict=False)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> Any:
    """Packs a list of sequences for a recurrent network.

    Args:
        sequences (list of Tensor): each (length, *).
        enforce_sorted (bool): they must come with falling lengths; False sorts them. Default: True

    Returns:
        A PackedSequence.

    Example:
        >>> nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])]).data
        tensor([1, 4, 2, 3])
    """
    lengths = rl.as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: Any) -> list[Tensor]:
    """Takes the sequences out of a PackedSequence: undoes `pack_sequence`.

    Args:
        packed_sequences (PackedSequence): what to take apart.

    Returns:
        A list of tensors (length, *).

    Example:
        >>> nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([4])]))
        [tensor([1, 2]), tensor([4])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
