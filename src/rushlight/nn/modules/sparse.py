"""Tables of vectors."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


def _check_table(embeddings: Tensor) -> Any:
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    return embeddings.shape


def _wrap_padding(padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"padding_idx must be within num_embeddings: got {padding_idx} for {rows} rows")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def _take_table(
    module: Any,
    given: Tensor | None,
    trained: bool,
    device: rl.device | str | int | None,
    dtype: rl.dtype | None,
) -> None:
    """The table of an embedding: a given one, or a new one that starts at random."""
    shape = (module.num_embeddings, module.embedding_dim)
    if given is not None and tuple(given.shape) != shape:
        raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
    table = rl.empty(shape, device=device, dtype=dtype) if given is None else given
    module.weight = Parameter(table, requires_grad=trained)
    if given is None:
        module.reset_parameters()


class Embedding(Module):
    """Looks up rows of a learned table: y = weight[input].

    The first layer of models of words or other categories. An index that is negative or beyond the table raises.

    Args:
        num_embeddings (int): number of rows V, the size of the vocabulary.
        embedding_dim (int): size of each vector, D.
        padding_idx (int): a row that starts at 0 and gets no gradient, for padding tokens. Default: None
        max_norm (float): rows looked up whose norm is greater are scaled down to it, in place. Default: None
        norm_type (float): p of that p-norm. Default: 2.0
        scale_grad_by_freq (bool): divides a row's gradient by how often it occurs in the batch. Default: False
        sparse (bool): makes the gradient of weight a sparse tensor; few optimizers take it (SGD, SparseAdam,
            Adagrad). Default: False
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (*), integers in [0, V) -> (*, D)

    Attributes:
        weight (V, D): drawn from N(0, 1).

    Example:
        >>> table = nn.Embedding(10, 3)
        >>> table(torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
        torch.Size([2, 4, 3])
        >>> nn.Embedding(10, 3, padding_idx=0)(torch.tensor([0])).detach()
        tensor([[0., 0., 0.]])
    """

    weight: Parameter

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False, device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _wrap_padding(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        _take_table(self, _weight, not _freeze, device, dtype)

    def reset_parameters(self) -> None:
        """Draws the table anew from N(0, 1); the row padding_idx becomes 0."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with rl.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        if self.sparse is not False:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: Any = None,
        max_norm: Any = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Any:
        """Makes an Embedding of a given table.

        Args:
            embeddings (Tensor): the table (V, D), shared, not copied.
            freeze (bool): leaves the table out of training (requires_grad=False). Default: True
            padding_idx (int): a row that gets no gradient; its values stay. Default: None
            max_norm (float): as for the constructor. Default: None
            norm_type (float): as for the constructor. Default: 2.0
            scale_grad_by_freq (bool): as for the constructor. Default: False
            sparse (bool): as for the constructor. Default: False

        Returns:
            The new Embedding.

        Example:
            >>> table = nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
            >>> table(torch.tensor([1]))
            tensor([[3., 4.]])
        """
        rows, cols = _check_table(embeddings)
        return cls(
            num_embeddings=rows, embedding_dim=cols, _weight=embeddings, _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip


class EmbeddingBag(Module):
    """Reduces bags of rows of a learned table: y_b = mean, sum or max of weight[i] over the indices i of bag b.

    Quicker than `nn.Embedding` followed by a mean, and bags may differ in length: for bags of words and features
    of recommenders. An empty bag gives zeros.

    Args:
        num_embeddings (int): number of rows, V.
        embedding_dim (int): size of each vector, D.
        max_norm (float): rows looked up whose norm is greater are scaled down to it, in place. Default: None
        norm_type (float): p of that p-norm. Default: 2.0
        scale_grad_by_freq (bool): divides a row's gradient by how often it occurs; not for 'max'. Default: False
        mode (str): 'sum', 'mean' or 'max'. Default: 'mean'
        sparse (bool): makes the gradient of weight a sparse tensor; not for 'max'. Default: False
        include_last_offset (bool): offsets has one more entry, the end of the last bag. Default: False
        padding_idx (int): a row that bags leave out, and that gets no gradient. Default: None
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (B, N), or (N,) with offsets (B,) at which bags start -> (B, D); per_sample_weights of the shape of
        input, for mode 'sum', are factors of the rows

    Attributes:
        weight (V, D): drawn from N(0, 1).

    Example:
        >>> bags = nn.EmbeddingBag.from_pretrained(torch.arange(6.0).view(3, 2), mode="sum")
        >>> bags(torch.tensor([0, 1, 2]), offsets=torch.tensor([0, 2]))
        tensor([[2., 4.],
                [4., 5.]])
    """

    weight: Parameter

    __constants__ = ["num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq",
                     "mode", "sparse",
                     "include_last_offset", "padding_idx"]  # fmt: skip

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False, _weight: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None, device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _wrap_padding(padding_idx, num_embeddings)
        self.mode, self.include_last_offset, self.sparse = mode, include_last_offset, sparse
        _take_table(self, _weight, True, device, dtype)

    reset_parameters = Embedding.reset_parameters
    _fill_padding_idx_with_zero = Embedding._fill_padding_idx_with_zero

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        names = (
            "max_norm",
            "norm_type",
            "scale_grad_by_freq",
            "mode",
            "sparse",
            "include_last_offset",
            "padding_idx",
        )
        options = {name: getattr(self, name) for name in names}
        return F.embedding_bag(input, self.weight, offsets, per_sample_weights=per_sample_weights, **options)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> Any:  # fmt: skip
        """Makes an EmbeddingBag of a given table.

        Args:
            embeddings (Tensor): the table (V, D), shared, not copied.
            freeze (bool): leaves the table out of training (requires_grad=False). Default: True
            max_norm (float): as for the constructor. Default: None
            norm_type (float): as for the constructor. Default: 2.0
            scale_grad_by_freq (bool): as for the constructor. Default: False
            mode (str): as for the constructor. Default: 'mean'
            sparse (bool): as for the constructor. Default: False
            include_last_offset (bool): as for the constructor. Default: False
            padding_idx (int): as for the constructor; the row's values stay. Default: None

        Returns:
            The new EmbeddingBag.
        """
        norm = (max_norm, norm_type, scale_grad_by_freq)
        out = cls(  # type: ignore[call-arg]
            *_check_table(embeddings), *norm, mode, sparse, embeddings, include_last_offset, padding_idx
        )
        out.weight.requires_grad = not freeze
        return out
