"""Which multiplication the steps of recurrent layers take: Strassen-Winograd's or the direct one (csrc/cpu/rnn)."""

import contextlib
from collections.abc import Iterator

from .. import _C

_ops = _C.ops


def recurrent_gemm(
    hidden_size: int, batch: int, steps: int, mode: str = "LSTM", dtype: _C.dtype = _C.float32
) -> str:
    """How the steps of a recurrent layer multiply their states with the weights: "direct" or "strassen".

    One level of Strassen-Winograd takes seven multiplications of blocks for eight; csrc/cpu/rnn/README.md has its error.

    Args:
        hidden_size (int): of the layer.
        batch (int): how many sequences.
        steps (int): how long they are.
        mode (str): "LSTM", "GRU", "RNN_TANH" or "RNN_RELU". Default: "LSTM"
        dtype (torch.dtype): of weights and states. Default: torch.float32

    Example:
        >>> with torch.backends.cpu.force_recurrent_gemm("direct"):
        ...     torch.backends.cpu.recurrent_gemm(hidden_size=256, batch=32, steps=40)
        'direct'
    """
    weight = _ops["empty"]([hidden_size, hidden_size], dtype=dtype, device="meta")
    return _ops["_rnn_gemm"](weight, batch, steps, mode)


@contextlib.contextmanager
def force_recurrent_gemm(name: str) -> Iterator[None]:
    """Recurrent layers multiply by the algorithm of this name for a block, on all threads.

    That holds for their steps and for the gradient of their weights. "strassen" is taken wherever the sizes allow it (float32,
    AVX-512), others are multiplied directly. RUSHLIGHT_RNN_GEMM=<name> in the environment does so from the start.

    Args:
        name (str): "direct" or "strassen"; "" takes the faster one, as without this.

    Example:
        >>> lstm, x = nn.LSTM(8, 128), torch.randn(10, 32, 8)
        >>> with torch.backends.cpu.force_recurrent_gemm("direct"):
        ...     y, _ = lstm(x)
    """
    before = _ops["_rnn_gemm_forced"]()
    _ops["_force_rnn_gemm"](name)
    try:
        yield
    finally:
        _ops["_force_rnn_gemm"](before)
