"""Causal masks for scaled_dot_product_attention, aligned with either corner of the scores."""

import rushlight as rl


def causal_upper_left(*size):
    """True where query i may see key j: j <= i."""
    rows, columns = size[-2:]
    return rl.ones(rows, columns, dtype=rl.bool).tril()


def causal_lower_right(*size):
    """The same with the last query seeing all keys."""
    rows, columns = size[-2:]
    return rl.ones(rows, columns, dtype=rl.bool).tril(columns - rows)
