"""Which algorithm computes a convolution: the table of csrc/cpu/conv/table.cpp, asked and overruled."""

import contextlib
from collections import namedtuple
from collections.abc import Iterator, Sequence

from .. import _C

_ops = _C.ops

ConvAlgorithm = namedtuple("ConvAlgorithm", "name pass_name layout isa dtypes")
ConvAlgorithm.__doc__ = "A row of conv_table(): one algorithm for one pass and one layout of images."


class ConvTable(list):
    """The rows, each a ConvAlgorithm, in order of priority; `print` shows them as a table."""

    def __str__(self) -> str:
        rows = [ConvAlgorithm._fields, *((*row[:4], ", ".join(row.dtypes)) for row in self)]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = ("  ".join([*map(str.ljust, row[:4], widths), row[4]]) for row in rows)
        return "\n".join(line.rstrip() for line in lines)


def conv_table() -> ConvTable:
    """All convolution algorithms of the CPU. A convolution is computed by the first row of its pass, layout and dtype
    that is applicable to its shape and profitable; NHWC rows are for channels_last tensors. float16 and bfloat16 are
    converted for the rows of float32.
    """
    table = ConvTable()
    for line in _ops["_conv_table"]().splitlines():
        name, pass_name, layout, isa, dtypes = line.split("\t")
        table.append(ConvAlgorithm(name, pass_name, layout, isa, tuple(dtypes.split())))
    return table


def _choices(
    input_shape: Sequence[int],
    weight_shape: Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    groups: int,
    dtype: object,
    pass_name: str,
    channels_last: bool,
    bias: bool,
) -> list[str]:
    x, w = (_ops["empty"](list(sizes), dtype=dtype, device="meta") for sizes in (input_shape, weight_shape))
    stride, padding, dilation = ([v] if isinstance(v, int) else list(v) for v in (stride, padding, dilation))
    text = _ops["_conv_choices"](x, w, stride, padding, dilation, groups, pass_name, channels_last, bias)
    return [line.split("\t")[0] for line in text.splitlines()]


def conv_algorithm(
    input_shape: Sequence[int],
    weight_shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    dtype: object = None,
    pass_name: str = "forward",
    *,
    channels_last: bool = False,
    bias: bool = False,
) -> str:
    """The name of the algorithm that computes a convolution, or a gradient of it: pass_name is "forward", "input" or
    "weight". A transposed convolution is the "input" pass of the convolution that it transposes. Winograd's algorithms
    leave values beyond 1e18 to the next one.
    """
    choices = _choices(
        input_shape, weight_shape, stride, padding, dilation, groups, dtype, pass_name, channels_last, bias
    )
    return choices[0]


def conv_algorithms(
    input_shape: Sequence[int],
    weight_shape: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    dtype: object = None,
    pass_name: str = "forward",
    *,
    channels_last: bool = False,
    bias: bool = False,
) -> list[str]:
    """The names of all algorithms that could compute it, in order of priority; arguments as for conv_algorithm()."""
    choices = _choices(
        input_shape, weight_shape, stride, padding, dilation, groups, dtype, pass_name, channels_last, bias
    )
    return list(dict.fromkeys(choices[1:]))


@contextlib.contextmanager
def force_conv_algorithm(name: str) -> Iterator[None]:
    """Computes convolutions by the algorithm of this name for a block, on all threads. Those to which it is not
    applicable are computed as usual. RUSHLIGHT_CONV=<name> in the environment does so from the start.
    """
    before = _ops["_conv_forced"]()
    _ops["_force_conv"](name)
    try:
        yield
    finally:
        _ops["_force_conv"](before)
