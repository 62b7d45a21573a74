"""Recurrent networks: cells, and layers of cells over sequences and packed sequences.

Weights of one layer and direction are w_ih, w_hh, then b_ih, b_hh where there are biases, then w_hr where
an LSTM projects its state. A layer's direction is one op, `rnn_layer`; only projecting LSTMs go step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight._core import autocast as _autocast
from rushlight._core.compose import public
from rushlight.nn import _core as core
from rushlight.nn import functional as F


@public
@_autocast.low
def rnn_tanh_cell(
    input: rl.Tensor,
    hx: rl.Tensor,
    w_ih: rl.Tensor,
    w_hh: rl.Tensor,
    b_ih: rl.Tensor | None = None,
    b_hh: rl.Tensor | None = None,
) -> rl.Tensor:
    """Takes one step of a plain recurrent network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh); see `nn.RNNCell`.

    Args:
        input (Tensor): x, (N, input_size).
        hx (Tensor): h, (N, H).
        w_ih (Tensor): (H, input_size).
        w_hh (Tensor): (H, H).
        b_ih (Tensor): (H,). Default: None
        b_hh (Tensor): (H,). Default: None

    Example:
        >>> torch.rnn_tanh_cell(torch.ones(1, 2), torch.zeros(1, 3), torch.ones(3, 2), torch.eye(3))
        tensor([[0.9640, 0.9640, 0.9640]])
    """
    out: rl.Tensor = (core.linear(input, w_ih, b_ih) + core.linear(hx, w_hh, b_hh)).tanh()
    return out


@public
@_autocast.low
def rnn_relu_cell(
    input: rl.Tensor,
    hx: rl.Tensor,
    w_ih: rl.Tensor,
    w_hh: rl.Tensor,
    b_ih: rl.Tensor | None = None,
    b_hh: rl.Tensor | None = None,
) -> rl.Tensor:
    """Takes one step of a recurrent network with ReLU: h' = max(0, W_ih x + b_ih + W_hh h + b_hh); see `nn.RNNCell`.

    Args:
        input (Tensor): x, (N, input_size).
        hx (Tensor): h, (N, H).
        w_ih (Tensor): (H, input_size).
        w_hh (Tensor): (H, H).
        b_ih (Tensor): (H,). Default: None
        b_hh (Tensor): (H,). Default: None

    Example:
        >>> torch.rnn_relu_cell(torch.ones(1, 2), torch.zeros(1, 3), torch.ones(3, 2), torch.eye(3))
        tensor([[2., 2., 2.]])
    """
    out: rl.Tensor = (core.linear(input, w_ih, b_ih) + core.linear(hx, w_hh, b_hh)).relu()
    return out


@public
@_autocast.full
def gru_cell(
    input: rl.Tensor,
    hx: rl.Tensor,
    w_ih: rl.Tensor,
    w_hh: rl.Tensor,
    b_ih: rl.Tensor | None = None,
    b_hh: rl.Tensor | None = None,
) -> rl.Tensor:
    """Takes one step of a gated recurrent unit: h' = (1 - z) n + z h; see `nn.GRU` for z and n.

    Args:
        input (Tensor): x, (N, input_size).
        hx (Tensor): h, (N, H).
        w_ih (Tensor): (3 H, input_size).
        w_hh (Tensor): (3 H, H).
        b_ih (Tensor): (3 H,). Default: None
        b_hh (Tensor): (3 H,). Default: None

    Example:
        >>> torch.gru_cell(torch.ones(1, 2), torch.ones(1, 1), torch.zeros(3, 2), torch.zeros(3, 1))
        tensor([[0.5000]])
    """
    out: rl.Tensor = core.gru_step(core.linear(input, w_ih, b_ih), core.linear(hx, w_hh, b_hh), hx)
    return out


@public
@_autocast.full
def lstm_cell(
    input: rl.Tensor,
    hx: Sequence[rl.Tensor],
    w_ih: rl.Tensor,
    w_hh: rl.Tensor,
    b_ih: rl.Tensor | None = None,
    b_hh: rl.Tensor | None = None,
) -> tuple[rl.Tensor, rl.Tensor]:
    """Takes one step of a long short-term memory: c' = f c + i g, h' = o tanh(c'); see `nn.LSTM` for i, f, g and o.

    Args:
        input (Tensor): x, (N, input_size).
        hx (tuple): (h (N, H), c (N, H)).
        w_ih (Tensor): (4 H, input_size).
        w_hh (Tensor): (4 H, H).
        b_ih (Tensor): (4 H,). Default: None
        b_hh (Tensor): (4 H,). Default: None

    Returns:
        (h', c')

    Example:
        >>> states = torch.zeros(1, 1), torch.ones(1, 1)
        >>> torch.lstm_cell(torch.ones(1, 2), states, torch.zeros(4, 2), torch.zeros(4, 1))[1]
        tensor([[0.5000]])
    """
    h, c = hx
    result: tuple[rl.Tensor, rl.Tensor] = core.lstm_step(
        core.linear(input, w_ih, b_ih) + core.linear(h, w_hh, b_hh), c
    )
    return result


def _projected_layer(
    input: rl.Tensor,
    h: rl.Tensor,
    c: rl.Tensor,
    w_ih: rl.Tensor,
    w_hh: rl.Tensor,
    b_ih: rl.Tensor | None,
    b_hh: rl.Tensor | None,
    w_hr: rl.Tensor,
    batch_sizes: list[int] | None,
    batch_first: bool,
    reverse: bool,
) -> tuple[rl.Tensor, rl.Tensor, rl.Tensor]:
    """A direction of an LSTM whose state is w_hr h: (outputs like the input, last h, last c)."""
    gates = core.linear(input, w_ih, b_ih if b_hh is None or b_ih is None else b_ih + b_hh)
    if batch_sizes is None:
        steps = gates.unbind(1 if batch_first else 0)
        batch_sizes = [h.size(0)] * len(steps)
    else:
        steps = gates.split(batch_sizes)
    outputs: list[Any] = [None] * len(steps)
    for t in reversed(range(len(steps))) if reverse else range(len(steps)):
        n = batch_sizes[t]
        now, cell = core.lstm_step(rl.addmm(steps[t], h[:n], w_hh.t()), c[:n])
        outputs[t] = now = core.linear(now, w_hr)
        # The rows beyond have ended, or not begun: they keep their state.
        h, c = (now, cell) if n == h.size(0) else (rl.cat([now, h[n:]]), rl.cat([cell, c[n:]]))
    if input.dim() == 2:
        return rl.cat(outputs), h, c
    return rl.stack(outputs, 1 if batch_first else 0), h, c


def _layer(
    mode: str,
    input: rl.Tensor,
    h: rl.Tensor,
    c: rl.Tensor | None,
    weights: Sequence[rl.Tensor],
    bias: bool,
    batch_sizes: list[int] | None,
    batch_first: bool,
    reverse: bool,
) -> Any:
    """One direction of one layer: (outputs like the input, last h) and the last c of an LSTM."""
    w_ih, w_hh = weights[0], weights[1]
    b_ih, b_hh = (weights[2], weights[3]) if bias else (None, None)
    if len(weights) == (5 if bias else 3):
        assert c is not None  # projections are of LSTMs alone
        return _projected_layer(
            input, h, c, w_ih, w_hh, b_ih, b_hh, weights[-1], batch_sizes, batch_first, reverse
        )
    return core.rnn_layer(input, h, c, w_ih, w_hh, b_ih, b_hh, mode, batch_sizes, batch_first, reverse)


def _run(
    mode: str,
    input: rl.Tensor,
    batch_sizes: list[int] | None,
    hx: Sequence[rl.Tensor],
    params: Sequence[rl.Tensor],
    bias: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[rl.Tensor, ...]:
    """All layers; hx lists the states, each (layers * directions, N, H). Returns the output and the last states."""
    directions = 2 if bidirectional else 1
    per = len(params) // (num_layers * directions)
    h0, c0 = hx[0].unbind(0), hx[1].unbind(0) if len(hx) == 2 else None
    last: list[list[Any]] = [[] for _ in hx]
    for layer in range(num_layers):
        outputs = []
        for d in range(directions):
            k = layer * directions + d
            out, *state = _layer(
                mode,
                input,
                h0[k],
                None if c0 is None else c0[k],
                params[k * per : (k + 1) * per],
                bias,
                batch_sizes,
                batch_first,
                d == 1,
            )
            outputs.append(out)
            for states, one in zip(last, state, strict=True):
                states.append(one)
        input = outputs[0] if directions == 1 else rl.cat(outputs, -1)
        if dropout != 0 and train and layer < num_layers - 1:
            # The random numbers go to the elements step by step, whichever dimension stands first.
            steps = input.transpose(0, 1).contiguous() if batch_first and batch_sizes is None else input
            steps = F.dropout(steps, dropout, True)
            input = steps.transpose(0, 1) if batch_first and batch_sizes is None else steps
    return (input, *[s[0].unsqueeze(0) if len(s) == 1 else rl.stack(s) for s in last])


@public
@_autocast.low
def lstm(*args: Any) -> tuple[rl.Tensor, ...]:
    """Runs long short-term memories over sequences; `nn.LSTM` calls it with its weights.

    Args:
        args (any): input, (h, c), weights, bias, num_layers, dropout, train, bidirectional, batch_first; or, for
            packed sequences, data, batch_sizes, (h, c), and the same from weights on without batch_first.

    Returns:
        (output, h_n, c_n)

    Example:
        >>> layer, x, h = nn.LSTM(2, 3), torch.randn(4, 1, 2), torch.zeros(1, 1, 3)
        >>> output, h_n, c_n = torch.lstm(x, (h, h), layer.all_weights[0], True, 1, 0.0, False, False, False)
        >>> output.shape
        torch.Size([4, 1, 3])
    """
    if isinstance(args[1], rl.Tensor):
        input, batch_sizes, hx, *rest = args
        return _run("LSTM", input, batch_sizes.tolist(), hx, *(*rest, False))
    input, hx, *rest = args
    return _run("LSTM", input, None, hx, *rest)


def _simple(mode: str, args: tuple[Any, ...]) -> Any:
    if isinstance(args[2], rl.Tensor):
        input, batch_sizes, hx, *rest = args
        return _run(mode, input, batch_sizes.tolist(), (hx,), *(*rest, False))
    input, hx, *rest = args
    return _run(mode, input, None, (hx,), *rest)


@public
@_autocast.full
def gru(*args: Any) -> tuple[rl.Tensor, rl.Tensor]:
    """Runs gated recurrent units over sequences; `nn.GRU` calls it with its weights.

    Args:
        args (any): as for `lstm`, with a single state h in place of (h, c).

    Returns:
        (output, h_n)

    Example:
        >>> layer, x, h = nn.GRU(2, 3), torch.randn(4, 1, 2), torch.zeros(1, 1, 3)
        >>> torch.gru(x, h, layer.all_weights[0], True, 1, 0.0, False, False, False)[0].shape
        torch.Size([4, 1, 3])
    """
    result: tuple[rl.Tensor, rl.Tensor] = _simple("GRU", args)
    return result


@public
@_autocast.low
def rnn_tanh(*args: Any) -> tuple[rl.Tensor, rl.Tensor]:
    """Runs a plain recurrent network with tanh over sequences; `nn.RNN` calls it with its weights.

    Args:
        args (any): as for `lstm`, with a single state h in place of (h, c).

    Returns:
        (output, h_n)

    Example:
        >>> layer, x, h = nn.RNN(2, 3), torch.randn(4, 1, 2), torch.zeros(1, 1, 3)
        >>> torch.rnn_tanh(x, h, layer.all_weights[0], True, 1, 0.0, False, False, False)[0].shape
        torch.Size([4, 1, 3])
    """
    result: tuple[rl.Tensor, rl.Tensor] = _simple("RNN_TANH", args)
    return result


@public
@_autocast.low
def rnn_relu(*args: Any) -> tuple[rl.Tensor, rl.Tensor]:
    """Runs a plain recurrent network with ReLU over sequences; `nn.RNN` calls it with its weights.

    Args:
        args (any): as for `lstm`, with a single state h in place of (h, c).

    Returns:
        (output, h_n)

    Example:
        >>> layer, x, h = nn.RNN(2, 3), torch.randn(4, 1, 2), torch.zeros(1, 1, 3)
        >>> torch.rnn_relu(x, h, layer.all_weights[0], True, 1, 0.0, False, False, False)[0].shape
        torch.Size([4, 1, 3])
    """
    result: tuple[rl.Tensor, rl.Tensor] = _simple("RNN_RELU", args)
    return result
