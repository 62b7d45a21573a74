"""Recurrent layers and cells."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, Self, overload

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight.nn import init
from rushlight.nn._functional import recurrent
from rushlight.nn.modules._memory_limit import OBJECT_BYTES, check_memory
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.rnn import PackedSequence

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Deprecated: index_select along a dimension."""
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """Holds what RNN, LSTM and GRU share: weights by layer and direction, checks, packed and unbatched inputs.

    Args:
        mode (str): 'LSTM', 'GRU', 'RNN_TANH' or 'RNN_RELU'.
        input_size (int): size of each step's input.
        hidden_size (int): size of the state.
        num_layers (int): layers, each on the outputs of the one before. Default: 1
        bias (bool): whether there are biases. Default: True
        batch_first (bool): (N, L, H) rather than (L, N, H). Default: False
        dropout (float): probability of dropping an output between layers. Default: 0.0
        bidirectional (bool): runs backwards through the sequence too. Default: False
        proj_size (int): an LSTM's state is projected to this size; 0 for none. Default: 0
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Example:
        >>> [tuple(weight.shape) for weight in nn.RNNBase("GRU", 10, 20).all_weights[0]]
        [(60, 10), (60, 20), (60,), (60,)]
    """

    __constants__ = ["mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
                     "bidirectional",
                     "proj_size"]  # fmt: skip
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0, device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size, self.hidden_size, self.proj_size = input_size, hidden_size, proj_size
        self.mode, self.num_layers, self.bidirectional = mode, num_layers, bidirectional
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        directions = 2 if bidirectional else 1
        if isinstance(dropout, bool) or not (isinstance(dropout, numbers.Number) and 0 <= dropout <= 1):
            raise ValueError(f"dropout should be a number in range [0, 1], got {dropout!r}")
        if num_layers == 1 and dropout > 0:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer: "
                f"dropout={dropout} changes nothing with num_layers=1",
                stacklevel=2,
            )
        for name, value in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
        for name, value in sizes.items():
            if name != "num_layers" and not isinstance(value, int):
                raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero, got {value}")
        if proj_size < 0:
            raise ValueError(
                f"proj_size should be a positive integer, or zero for no projection, got {proj_size}"
            )
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        rows = _GATES[mode] * hidden_size
        state = proj_size if proj_size > 0 else hidden_size
        self._all_weights = []
        self._flat_weights_names = []
        self._flat_weights: list[Any] = []
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        each = OBJECT_BYTES * directions * (4 if bias else 2)
        check_memory("num_layers", num_layers, each)
        for layer in range(num_layers):
            for direction in range(directions):
                inputs = input_size if layer == 0 else state * directions
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, state)}
                if bias:
                    shapes.update(bias_ih=(rows,), bias_hh=(rows,))
                if proj_size > 0:
                    shapes.update(weight_hr=(proj_size, hidden_size))
                end = f"_l{layer}" + ("_reverse" if direction else "")
                names = [name + end for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(rl.empty(shape, **made)))
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    def _init_flat_weights(self) -> None:
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]

    def __setattr__(self, name: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names")
        if names is not None and name in names and len(self._flat_weights) == len(names):
            self._flat_weights[names.index(name)] = value
        super().__setattr__(name, value)

    def flatten_parameters(self) -> None:
        """Does nothing: weights need no common buffer here. Programs written for GPUs call it."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self._flat_weights = []
        out = super()._apply(fn, recurse)
        self._init_flat_weights()
        return out

    def reset_parameters(self) -> None:
        """Draws all weights and biases anew from U(-k, k), k = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises unless an input has the weights' dtype, the right number of dimensions and input_size.

        Args:
            input (Tensor): the steps' inputs.
            batch_sizes (Tensor): those of a packed sequence, or None.
        """
        if input.dtype != self._flat_weights[0].dtype and not rl.is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({self._flat_weights[0].dtype})"
            )
        want = 2 if batch_sizes is not None else 3
        if input.dim() != want:
            raise RuntimeError(f"input must have {want} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.size(-1)}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Returns the shape that a state must have, (num_layers x directions, N, size).

        Args:
            input (Tensor): the steps' inputs.
            batch_sizes (Tensor): those of a packed sequence, or None.
        """
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        directions = 2 if self.bidirectional else 1
        return self.num_layers * directions, batch, self.proj_size if self.proj_size > 0 else self.hidden_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raises RuntimeError unless a state has a shape.

        Args:
            hx (Tensor): the state.
            expected_hidden_size (tuple): the shape.
            msg (str): the error, formatted with the shape wanted and the one found. Default: a sentence
        """
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises unless input and state fit this network.

        Args:
            input (Tensor): the steps' inputs.
            hidden (Tensor): the first state; (h_0, c_0) for an LSTM.
            batch_sizes (Tensor): those of a packed sequence, or None.
        """
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Tensor, permutation: Tensor | None) -> Any:
        """Returns a state with its batch reordered.

        Args:
            hx (Tensor): (num_layers x directions, N, size); (h, c) for an LSTM.
            permutation (Tensor): indices of the batch, or None to leave it.
        """
        if permutation is None:
            return hx
        return hx.index_select(1, permutation)

    def _weights_now(self) -> list[Any]:
        """The weights in order; looked up by name where something replaced one (parametrisations, swaps)."""
        own = self._parameters
        try:
            return [own[name] for name in self._flat_weights_names]
        except KeyError:
            return [getattr(self, name) for name in self._flat_weights_names]

    def _prepare(self, input: Any, hx: Any) -> Any:
        """(data, batch_sizes, sorted_indices, unsorted_indices, batched, first state or None)."""
        name = type(self).__name__
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            if hx is not None:
                for one in hx if isinstance(hx, tuple) else (hx,):
                    if one.dim() != 3:
                        raise RuntimeError(
                            f"For batched 3-D input, hx should also be 3-D but got {one.dim()}-D tensor"
                        )
            return (
                data,
                batch_sizes,
                sorted_indices,
                unsorted_indices,
                True,
                self.permute_hidden(hx, sorted_indices) if hx is not None else None,
            )
        if input.dim() not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        if not batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
        if hx is not None:
            want = 3 if batched else 2
            states = hx if isinstance(hx, tuple) else (hx,)
            if any(one.dim() != want for one in states):
                kind = f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx"
                if isinstance(hx, tuple):
                    raise RuntimeError(
                        f"{kind} and cx should also be {want}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) "
                        "tensors"
                    )
                raise RuntimeError(f"{kind} should also be {want}-D but got {hx.dim()}-D tensor")
            if not batched:
                hx = tuple(s.unsqueeze(1) for s in hx) if isinstance(hx, tuple) else hx.unsqueeze(1)
        return input, None, None, None, batched, hx

    def _finish(self, output: Any, hidden: Any, packed: Any, batched: bool) -> Any:
        """The result in the form of the input."""
        if packed is not None:
            batch_sizes, sorted_indices, unsorted_indices = packed
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return output, self.permute_hidden(hidden, unsorted_indices)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            hidden = tuple(h.squeeze(1) for h in hidden) if isinstance(hidden, tuple) else hidden.squeeze(1)
        return output, hidden

    def _options(self, packed: Any) -> Any:
        common = (
            self._weights_now(),
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        return common if packed else (*common, self.batch_first)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        self.__dict__["_flat_weights"] = []
        self._init_flat_weights()

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """Returns the weights as a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _replicate_for_data_parallel(self) -> Any:
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        return replica

    def _one_state(self, run: Callable[..., Any], input: Any, hx: Any) -> Any:
        """forward of the networks with a single state."""
        data, batch_sizes, order, back, batched, hx = self._prepare(input, hx)
        if hx is None:
            layers, batch, size = self.get_expected_hidden_size(data, batch_sizes)
            hx = rl.zeros(layers, batch, size, dtype=data.dtype, device=data.device)
        self.check_forward_args(data, hx, batch_sizes)
        if batch_sizes is None:
            output, hidden = run(data, hx, *self._options(False))
            return self._finish(output, hidden, None, batched)
        output, hidden = run(data, batch_sizes, hx, *self._options(True))
        return self._finish(output, hidden, (batch_sizes, order, back), True)


class RNN(RNNBase):
    """Runs a plain recurrent network over sequences: h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh).

    Gradients through many steps vanish or explode: `nn.LSTM` and `nn.GRU` remember longer, and
    `nn.utils.clip_grad_norm_` helps either. Sequences of unequal length go through
    `nn.utils.rnn.pack_padded_sequence`.

    Args:
        input_size (int): size of each step's input.
        hidden_size (int): size of the state, H.
        num_layers (int): layers, each on the outputs of the one before. Default: 1
        nonlinearity (str): 'tanh' or 'relu'. Default: 'tanh'
        bias (bool): whether there are b_ih and b_hh. Default: True
        batch_first (bool): input and output are (N, L, *) rather than (L, N, *); states are not changed.
            Default: False
        dropout (float): probability of dropping an output of all layers but the last, in training. Default: 0.0
        bidirectional (bool): runs backwards through the sequence too, D = 2 directions. Default: False
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (L, N, input_size), h_0 (num_layers D, N, H), zeros by default -> output (L, N, D H) of the last
        layer, h_n (num_layers D, N, H); all also without N; a PackedSequence gives one

    Attributes:
        weight_ih_l0 (H, input_size): W_ih, drawn from U(-k, k), k = 1 / sqrt(H); (H, D H) in further layers l1, ...
        weight_hh_l0 (H, H): W_hh, drawn from the same. The backward direction's names end in _reverse.
        bias_ih_l0, bias_hh_l0 (H,): drawn from the same.

    Example:
        >>> rnn = nn.RNN(10, 20, num_layers=2)
        >>> output, h_n = rnn(torch.randn(5, 3, 10))
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        first, given, rest = args[:3], args[3:4], args[4:]  # it stands fourth, after num_layers
        self.nonlinearity = given[0] if given else kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity {self.nonlinearity!r}: 'tanh' and 'relu' are known")
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *first, *rest, **kwargs)

    @overload
    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def forward(self, input: PackedSequence, hx: Tensor | None = None) -> tuple[PackedSequence, Tensor]: ...
    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Any, Any]:
        run = recurrent.rnn_tanh if self.mode == "RNN_TANH" else recurrent.rnn_relu
        out: tuple[Any, Any] = self._one_state(run, input, hx)
        return out


class GRU(RNNBase):
    """Runs gated recurrent units over sequences: h_t = (1 - z_t) n_t + z_t h_(t-1).

    r_t = s(W_ir x_t + b_ir + W_hr h_(t-1) + b_hr), z_t likewise with z, s the sigmoid, and
    n_t = tanh(W_in x_t + b_in + r_t (W_hn h_(t-1) + b_hn)). Nearly as able as `nn.LSTM` with three quarters of its
    weights. Sequences of unequal length go through `nn.utils.rnn.pack_padded_sequence`.

    Args:
        input_size (int): size of each step's input.
        hidden_size (int): size of the state, H.
        num_layers (int): layers, each on the outputs of the one before. Default: 1
        bias (bool): whether there are biases. Default: True
        batch_first (bool): input and output are (N, L, *) rather than (L, N, *); states are not changed.
            Default: False
        dropout (float): probability of dropping an output of all layers but the last, in training. Default: 0.0
        bidirectional (bool): runs backwards through the sequence too, D = 2 directions. Default: False
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (L, N, input_size), h_0 (num_layers D, N, H), zeros by default -> output (L, N, D H) of the last
        layer, h_n (num_layers D, N, H); all also without N; a PackedSequence gives one

    Attributes:
        weight_ih_l0 (3 H, input_size): W_ir, W_iz, W_in, U(-k, k), k = 1 / sqrt(H); (3 H, D H) in further layers.
        weight_hh_l0 (3 H, H): drawn from the same. The backward direction's names end in _reverse.
        bias_ih_l0, bias_hh_l0 (3 H,): drawn from the same.

    Example:
        >>> gru = nn.GRU(10, 20, batch_first=True)
        >>> output, h_n = gru(torch.randn(3, 5, 10))
        >>> output.shape, h_n.shape
        (torch.Size([3, 5, 20]), torch.Size([1, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    @overload
    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
    @overload
    def forward(self, input: PackedSequence, hx: Tensor | None = None) -> tuple[PackedSequence, Tensor]: ...
    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Any, Any]:
        out: tuple[Any, Any] = self._one_state(recurrent.gru, input, hx)
        return out


class LSTM(RNNBase):
    """Runs long short-term memories over sequences: c_t = f_t c_(t-1) + i_t g_t, h_t = o_t tanh(c_t).

    i_t = s(W_ii x_t + b_ii + W_hi h_(t-1) + b_hi), f_t and o_t likewise with f and o, s the sigmoid, and g_t with g
    and tanh. The cell c carries gradients over many steps. Sequences of unequal length go through
    `nn.utils.rnn.pack_padded_sequence`; to go on after a part of a sequence, pass the states and detach them.

    Args:
        input_size (int): size of each step's input.
        hidden_size (int): size of the cell, H.
        num_layers (int): layers, each on the outputs of the one before. Default: 1
        bias (bool): whether there are biases. Default: True
        batch_first (bool): input and output are (N, L, *) rather than (L, N, *); states are not changed.
            Default: False
        dropout (float): probability of dropping an output of all layers but the last, in training. Default: 0.0
        bidirectional (bool): runs backwards through the sequence too, D = 2 directions. Default: False
        proj_size (int): h_t = W_hr (o_t tanh(c_t)) of this size P < H; 0 for none, P = H. Default: 0
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (L, N, input_size), (h_0 (num_layers D, N, P), c_0 (num_layers D, N, H)), zeros by default
        -> output (L, N, D P) of the last layer, (h_n, c_n) of their shapes; all also without N; a PackedSequence
        gives one

    Attributes:
        weight_ih_l0 (4 H, input_size): W_ii, W_if, W_ig, W_io, U(-k, k), k = 1 / sqrt(H); (4 H, D P) further on.
        weight_hh_l0 (4 H, P): drawn from the same. The backward direction's names end in _reverse.
        bias_ih_l0, bias_hh_l0 (4 H,): drawn from the same.
        weight_hr_l0 (P, H): drawn from the same; only with proj_size.

    Example:
        >>> lstm = nn.LSTM(10, 20, num_layers=2, bidirectional=True)
        >>> output, (h_n, c_n) = lstm(torch.randn(5, 3, 10))
        >>> output.shape, h_n.shape, c_n.shape
        (torch.Size([5, 3, 40]), torch.Size([4, 3, 20]), torch.Size([4, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Returns the shape that the cell state must have, (num_layers x directions, N, hidden_size).

        Args:
            input (Tensor): the steps' inputs.
            batch_sizes (Tensor): those of a packed sequence, or None.
        """
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_forward_args(  # type: ignore[override]
        self, input: Tensor, hidden: tuple[Tensor, Tensor], batch_sizes: Tensor | None
    ) -> None:
        self.check_input(input, batch_sizes)
        for i, size in enumerate((self.get_expected_hidden_size, self.get_expected_cell_size)):
            message = f"Expected hidden[{i}] size {{}}, got {{}}"
            self.check_hidden_size(hidden[i], size(input, batch_sizes), message)

    def permute_hidden(  # type: ignore[override]
        self, hx: tuple[Tensor, Tensor], permutation: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if permutation is None:
            return hx
        return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)

    @overload
    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
    @overload
    def forward(
        self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...
    def forward(
        self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, Any]:
        """Runs the network over a batch of sequences.

        Args:
            input (Tensor or PackedSequence): (L, N, input_size), or (N, L, input_size) with batch_first.
            hx (tuple): (h_0, c_0). Default: zeros

        Returns:
            (output, (h_n, c_n)): the last layer's output of every step, and the states after the last step.
        """
        if isinstance(hx, list):
            hx = tuple(hx)
        data, batch_sizes, order, back, batched, hx = self._prepare(input, hx)
        if hx is None:
            made = {"dtype": data.dtype, "device": data.device}
            hx = (
                rl.zeros(self.get_expected_hidden_size(data, batch_sizes), **made),
                rl.zeros(self.get_expected_cell_size(data, batch_sizes), **made),
            )
        self.check_forward_args(data, hx, batch_sizes)
        if batch_sizes is None:
            output, h, c = recurrent.lstm(data, hx, *self._options(False))
            out: tuple[Any, Any] = self._finish(output, (h, c), None, batched)
            return out
        output, h, c = recurrent.lstm(data, batch_sizes, hx, *self._options(True))
        result: tuple[Any, Any] = self._finish(output, (h, c), (batch_sizes, order, back), True)
        return result


class RNNCellBase(Module):
    """Holds what the cells share: weight_ih, weight_hh, bias_ih and bias_hh, and the checks.

    Args:
        input_size (int): size of the input.
        hidden_size (int): size of the state.
        bias (bool): whether there are biases.
        num_chunks (int): gates, each of hidden_size rows of the weights.
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Example:
        >>> nn.RNNCellBase(10, 20, bias=True, num_chunks=4).weight_ih.shape
        torch.Size([80, 10])
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        shapes: dict[str, tuple[int, ...] | None] = {
            "weight_ih": (rows, input_size),
            "weight_hh": (rows, hidden_size),
        }
        shapes |= dict.fromkeys(("bias_ih", "bias_hh"), (rows,) if bias else None)
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(rl.empty(shape, **made)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights and biases anew from U(-k, k), k = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _check(self, input: Tensor, states: Any) -> None:
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for state in states:
            if state.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {state.dim()}D instead")
            if state.size(-1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden has inconsistent hidden_size: got {state.size(-1)}, expected {self.hidden_size}"
                )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(-1)} expected {self.input_size}"
            )
        if input.dim() == 2:
            for state in states:
                if state.dim() == 2 and state.size(0) != input.size(0):
                    raise RuntimeError(
                        f"Input batch size {input.size(0)} doesn't match hidden batch size {state.size(0)}"
                    )

    def _one_state(self, cell: Callable[..., Tensor], input: Tensor, hx: Tensor | None) -> Tensor:
        self._check(input, () if hx is None else (hx,))
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = rl.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        out = cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out if batched else out.squeeze(0)


class RNNCell(RNNCellBase):
    """Takes one step of a plain recurrent network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    For loops over steps of your own; whole sequences run much faster in `nn.RNN`.

    Args:
        input_size (int): size of the input.
        hidden_size (int): size of the state, H.
        bias (bool): whether there are b_ih and b_hh. Default: True
        nonlinearity (str): 'tanh' or 'relu'. Default: 'tanh'
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (N, input_size), hx (N, H), zeros by default -> h' (N, H); also without N

    Attributes:
        weight_ih (H, input_size): drawn from U(-k, k), k = 1 / sqrt(H).
        weight_hh (H, H): drawn from the same.
        bias_ih, bias_hh (H,): drawn from the same.

    Example:
        >>> cell, h = nn.RNNCell(10, 20), torch.zeros(3, 20)
        >>> for x in torch.randn(6, 3, 10):
        ...     h = cell(x, h)
        >>> h.shape
        torch.Size([3, 20])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = recurrent.rnn_tanh_cell if self.nonlinearity == "tanh" else recurrent.rnn_relu_cell
        return self._one_state(cell, input, hx)


class GRUCell(RNNCellBase):
    """Takes one step of a gated recurrent unit: h' = (1 - z) n + z h; see `nn.GRU` for z and n.

    For loops over steps of your own, a decoder's for instance; whole sequences run faster in `nn.GRU`.

    Args:
        input_size (int): size of the input.
        hidden_size (int): size of the state, H.
        bias (bool): whether there are biases. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (N, input_size), hx (N, H), zeros by default -> h' (N, H); also without N

    Attributes:
        weight_ih (3 H, input_size): drawn from U(-k, k), k = 1 / sqrt(H).
        weight_hh (3 H, H): drawn from the same.
        bias_ih, bias_hh (3 H,): drawn from the same.

    Example:
        >>> cell = nn.GRUCell(10, 20)
        >>> cell(torch.randn(3, 10)).shape
        torch.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._one_state(recurrent.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """Takes one step of a long short-term memory: c' = f c + i g, h' = o tanh(c'); see `nn.LSTM` for i, f, g and o.

    For loops over steps of your own, a decoder's for instance; whole sequences run faster in `nn.LSTM`.

    Args:
        input_size (int): size of the input.
        hidden_size (int): size of the state, H.
        bias (bool): whether there are biases. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (N, input_size), hx = (h (N, H), c (N, H)), zeros by default -> (h', c'); also without N

    Attributes:
        weight_ih (4 H, input_size): drawn from U(-k, k), k = 1 / sqrt(H).
        weight_hh (4 H, H): drawn from the same.
        bias_ih, bias_hh (4 H,): drawn from the same.

    Example:
        >>> cell = nn.LSTMCell(10, 20)
        >>> h, c = cell(torch.randn(3, 10))
        >>> h.shape, c.shape
        (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check(input, () if hx is None else hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = rl.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = recurrent.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))
