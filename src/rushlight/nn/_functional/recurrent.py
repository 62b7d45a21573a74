"""Recurrent networks: cells, and loops of cells over sequences and packed sequences.

Weights of one layer and direction are w_ih, w_hh, then b_ih, b_hh where there are biases, then w_hr where
an LSTM
projects its state. The input's products are taken for all steps at once; a step adds those of the state.
"""

import rushlight as rl
from rushlight import _autocast
from rushlight.nn import _core as core
from rushlight.nn import functional as F


@_autocast.low
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """tanh(W x + b + U h + c)."""
    return (core.linear(input, w_ih, b_ih) + core.linear(hx, w_hh, b_hh)).tanh()


@_autocast.low
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """max(0, W x + b + U h + c)."""
    return (core.linear(input, w_ih, b_ih) + core.linear(hx, w_hh, b_hh)).relu()


@_autocast.full
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a gated recurrent unit."""
    return _gru_step(core.linear(input, w_ih, b_ih), hx, w_hh, b_hh)


@_autocast.full
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a long short-term memory; hx and the result are (h, c)."""
    return _lstm_step(core.linear(input, w_ih, b_ih), hx, w_hh, b_hh, None)


def _gru_step(gates, h, w_hh, b_hh, _=None):
    # gates are (N, 3 H): reset, update, new
    return core.gru_step(gates, core.linear(h, w_hh, b_hh), h)


def _lstm_step(gates, state, w_hh, b_hh, w_hr):
    # gates are (N, 4 H): input, forget, cell, output
    h, c = state
    sums = rl.addmm(gates, h, w_hh.t()) if b_hh is None else gates + core.linear(h, w_hh, b_hh)
    h, c = core.lstm_step(sums, c)
    if w_hr is not None:
        h = core.linear(h, w_hr)
    return h, c


def _tanh_step(gates, h, w_hh, b_hh, _=None):
    return rl.addmm(gates, h, w_hh.t()).tanh()


def _relu_step(gates, h, w_hh, b_hh, _=None):
    return rl.addmm(gates, h, w_hh.t()).relu()


def _rows(state, start, end):
    """Rows of a state, which is a tensor or a pair of them."""
    if isinstance(state, tuple):
        return tuple(s[start:end] for s in state)
    return state[start:end]


def _join(a, b):
    if isinstance(a, tuple):
        return tuple(rl.cat([x, y]) for x, y in zip(a, b))
    return rl.cat([a, b])


def _first(state):
    return state[0] if isinstance(state, tuple) else state


def _layer(step, input, state, weights, bias, reverse, batch_sizes):
    """One direction of one layer: (outputs like the input, last state)."""
    w_ih, w_hh = weights[0], weights[1]
    b_ih, b_hh = (weights[2], weights[3]) if bias else (None, None)
    w_hr = weights[-1] if len(weights) == (5 if bias else 3) else None
    if bias and step is not _gru_step:  # the state's bias joins the input's; a GRU needs it apart
        b_ih, b_hh = b_ih + b_hh, None
    gates = core.linear(input, w_ih, b_ih)
    if batch_sizes is not None:
        return _packed_layer(step, gates, state, w_hh, b_hh, w_hr, reverse, batch_sizes)
    outputs = []
    steps = gates.unbind(0)
    for one in reversed(steps) if reverse else steps:
        state = step(one, state, w_hh, b_hh, w_hr)
        outputs.append(_first(state))
    if reverse:
        outputs.reverse()
    return rl.stack(outputs), state


def _packed_layer(step, gates, state, w_hh, b_hh, w_hr, reverse, batch_sizes):
    """The same over a packed sequence: each step has its own number of rows, never more than the one
    before."""
    steps = gates.split(batch_sizes)
    outputs = [None] * len(steps)
    if reverse:
        # From the last step, rows join with their first state as sequences begin.
        current = _rows(state, 0, batch_sizes[-1])
        for t in range(len(steps) - 1, -1, -1):
            have = _first(current).size(0)
            if batch_sizes[t] > have:
                current = _join(current, _rows(state, have, batch_sizes[t]))
            current = step(steps[t], current, w_hh, b_hh, w_hr)
            outputs[t] = _first(current)
        return rl.cat(outputs), current
    finished = []
    current = state
    for t, one in enumerate(steps):
        have, size = _first(current).size(0), batch_sizes[t]
        if size < have:  # the sequences that ended keep their state
            finished.append(_rows(current, size, have))
            current = _rows(current, 0, size)
        current = step(one, current, w_hh, b_hh, w_hr)
        outputs[t] = _first(current)
    for ended in reversed(finished):
        current = _join(current, ended)
    return rl.cat(outputs), current


def _run(
    step, input, batch_sizes, states, params, bias, num_layers, dropout, train, bidirectional, batch_first
):
    """All layers; states is a list with one state per layer and direction."""
    if batch_first:
        input = input.transpose(0, 1)
    directions = 2 if bidirectional else 1
    per = len(params) // (num_layers * directions)
    last = []
    for layer in range(num_layers):
        outputs = []
        for d in range(directions):
            k = layer * directions + d
            out, state = _layer(
                step, input, states[k], params[k * per : (k + 1) * per], bias, d == 1, batch_sizes
            )
            outputs.append(out)
            last.append(state)
        input = outputs[0] if directions == 1 else rl.cat(outputs, -1)
        if dropout != 0 and train and layer < num_layers - 1:
            input = F.dropout(input, dropout, True)
    if batch_first:
        input = input.transpose(0, 1)
    return input, last


@_autocast.low
def lstm(*args):
    """(output, h_n, c_n) of lstm(input, (h, c), params, bias, num_layers, dropout, train, bidirectional,
    batch_first).

    A packed call is lstm(data, batch_sizes, (h, c), params, ...) without batch_first.
    """
    if isinstance(args[1], rl.Tensor):
        input, batch_sizes, hx, *rest = args
        batch_sizes, batch_first = batch_sizes.tolist(), False
        params, bias, num_layers, dropout, train, bidirectional = rest
    else:
        input, hx, params, bias, num_layers, dropout, train, bidirectional, batch_first = args
        batch_sizes = None
    states = list(zip(hx[0].unbind(0), hx[1].unbind(0)))
    out, last = _run(
        _lstm_step,
        input,
        batch_sizes,
        states,
        params,
        bias,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
    )
    return out, rl.stack([h for h, _ in last]), rl.stack([c for _, c in last])


def _simple(step, args):
    if isinstance(args[2], rl.Tensor):
        input, batch_sizes, hx, params, bias, num_layers, dropout, train, bidirectional = args
        batch_sizes, batch_first = batch_sizes.tolist(), False
    else:
        input, hx, params, bias, num_layers, dropout, train, bidirectional, batch_first = args
        batch_sizes = None
    out, last = _run(
        step,
        input,
        batch_sizes,
        list(hx.unbind(0)),
        params,
        bias,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
    )
    return out, rl.stack(last)


@_autocast.full
def gru(*args):
    """(output, h_n) of a gated recurrent unit; arguments as for `lstm`, with one state."""
    return _simple(_gru_step, args)


@_autocast.low
def rnn_tanh(*args):
    """(output, h_n) of a plain recurrent network with tanh."""
    return _simple(_tanh_step, args)


@_autocast.low
def rnn_relu(*args):
    """(output, h_n) of a plain recurrent network with ReLU."""
    return _simple(_relu_step, args)
