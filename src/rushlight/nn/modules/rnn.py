"""Recurrent layers and cells."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

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
    """What RNN, LSTM and GRU share: weights named weight_ih_l0, weight_hh_l0, bias_ih_l0, ... and the checks.

    Args:
        batch_first: (N, L, H) instead of (L, N, H).
        dropout: between layers.
        proj_size: an LSTM's state is projected to this size; 0 for none.
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

    def _init_flat_weights(self):
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]

    def __setattr__(self, name: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names")
        if names is not None and name in names and len(self._flat_weights) == len(names):
            self._flat_weights[names.index(name)] = value
        super().__setattr__(name, value)

    def flatten_parameters(self) -> None:
        """Does nothing: weights need no common buffer here. Called by programs written for GPUs."""

    def _apply(self, fn, recurse=True):
        self._flat_weights: list[Any] = []
        out = super()._apply(fn, recurse)
        self._init_flat_weights()
        return out

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
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
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        directions = 2 if self.bidirectional else 1
        return self.num_layers * directions, batch, self.proj_size if self.proj_size > 0 else self.hidden_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Tensor, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Tensor, permutation: Tensor | None) -> Any:
        if permutation is None:
            return hx
        return hx.index_select(1, permutation)

    def _weights_now(self):
        """The weights in order; looked up by name where something replaced one (parametrisations, swaps)."""
        own = self._parameters
        try:
            return [own[name] for name in self._flat_weights_names]
        except KeyError:
            return [getattr(self, name) for name in self._flat_weights_names]

    def _prepare(self, input, hx):
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

    def _finish(self, output, hidden, packed, batched):
        """The result in the form of the input."""
        if packed is not None:
            batch_sizes, sorted_indices, unsorted_indices = packed
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return output, self.permute_hidden(hidden, unsorted_indices)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            hidden = tuple(h.squeeze(1) for h in hidden) if isinstance(hidden, tuple) else hidden.squeeze(1)
        return output, hidden

    def _options(self, packed):
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
        """Weights by layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _replicate_for_data_parallel(self):
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        return replica

    def _one_state(self, run, input, hx):
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
    """A plain recurrent network: h' = tanh(W x + b + U h + c), or with relu; RNN(input_size, hidden_size,
    ...)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        first, given, rest = args[:3], args[3:4], args[4:]  # it stands fourth, after num_layers
        self.nonlinearity = given[0] if given else kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity {self.nonlinearity!r}: 'tanh' and 'relu' are known")
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *first, *rest, **kwargs)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        run = recurrent.rnn_tanh if self.mode == "RNN_TANH" else recurrent.rnn_relu
        return self._one_state(run, input, hx)


class GRU(RNNBase):
    """A network of gated recurrent units; GRU(input_size, hidden_size, ...)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._one_state(recurrent.gru, input, hx)


class LSTM(RNNBase):
    """A network of long short-term memories; LSTM(input_size, hidden_size, ...)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
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

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """(output, (h_n, c_n)); hx is (h_0, c_0), zeros by default."""
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
            return self._finish(output, (h, c), None, batched)
        output, h, c = recurrent.lstm(data, batch_sizes, hx, *self._options(True))
        return self._finish(output, (h, c), (batch_sizes, order, back), True)


class RNNCellBase(Module):
    """What the cells share: weight_ih, weight_hh, bias_ih and bias_hh."""

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
        """Uniform within 1 / sqrt(hidden_size)."""
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

    def _check(self, input, states):
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

    def _one_state(self, cell, input, hx):
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
    """One step of a plain recurrent network."""

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
    """One step of a gated recurrent unit."""

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
    """One step of a long short-term memory: (h, c)."""

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
