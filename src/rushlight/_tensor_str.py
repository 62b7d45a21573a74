"""Tensors as text: column widths, line wrapping, summaries, suffixes.

The elements leave the tensor once, as Python numbers (`tolist`), so printing needs no arithmetic ops.
A summarised tensor becomes nested lists of its corners only; the elided middle of a level is the marker
`None` between head and tail.
"""

from __future__ import annotations

from math import ceil, isfinite, isinf, isnan

import rushlight as rl

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "tensor_str"]

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80},
}


class _Options:
    __slots__ = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    precision: int
    threshold: float
    edgeitems: int
    linewidth: float
    sci_mode: bool | None

    def __init__(self):
        self.update(_PROFILES["default"])
        self.sci_mode = None

    def update(self, values):
        for name, value in values.items():
            setattr(self, name, value)

    def asdict(self):
        return {name: getattr(self, name) for name in self.__slots__}


_options = _Options()


PRINT_OPTS = _options


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
):
    """Chooses how tensors print.

    Args:
        precision (int): digits behind the point. Default: None, as before
        threshold (int): of how many elements on tensors are summarized. Default: None, as before
        edgeitems (int): how many a summary shows at either end. Default: None, as before
        linewidth (int): characters of a line. Default: None, as before
        profile (str): 'default', 'short' or 'full', which single options refine. Default: None
        sci_mode (bool): whether to write 1.0000e+00. Default: None, where it is needed

    Example:
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor(1 / 3)
        tensor(0.33)
        >>> torch.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile must be one of {sorted(_PROFILES)}, got {profile!r}")
        _options.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({name: value for name, value in given.items() if value is not None})
    _options.sci_mode = sci_mode


def get_printoptions():
    """The current print options, as a dict that `set_printoptions(**...)` accepts.

    Example:
        >>> torch.get_printoptions()["precision"]
        4
    """
    return _options.asdict()


class printoptions:
    """A block with other print options.

    Args:
        options (object): those of set_printoptions.

    Example:
        >>> with torch.printoptions(precision=2):
        ...     print(torch.tensor(1 / 3))
        tensor(0.33)
    """

    def __init__(self, **options):
        self.options = options

    def __enter__(self):
        self.saved = get_printoptions()
        try:
            set_printoptions(**self.options)
        except BaseException:
            _options.update(self.saved)
            raise

    def __exit__(self, *exc):
        _options.update(self.saved)


class _FloatFormat:
    """Width and notation shared by all floats of one tensor."""

    def __init__(self, values):
        self.width, self.integral, self.scientific = 1, True, False
        finite = [v for v in values if v != 0 and isfinite(v)]
        if not finite:
            return
        smallest, largest = min(map(abs, finite)), max(map(abs, finite))
        self.integral = all(v == ceil(v) for v in finite)
        wide_range = largest / smallest > 1000.0 or largest > 1.0e8
        self.scientific = wide_range or (not self.integral and smallest < 1.0e-4)
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode
        if self.scientific:
            spec, point = f".{_options.precision}e", 0
        elif self.integral:
            spec, point = ".0f", 1
        else:
            spec, point = f".{_options.precision}f", 0
        self.width = max(len(format(v, spec)) for v in finite) + point

    def __call__(self, value):
        if self.scientific:
            text = f"{value:.{_options.precision}e}"
        elif self.integral:
            text = f"{value:.0f}"
            if not (isinf(value) or isnan(value)):
                text += "."
        else:
            text = f"{value:.{_options.precision}f}"
        return text.rjust(self.width)


class _PlainFormat:
    """Integers and bools: right-aligned."""

    def __init__(self, values):
        self.width = max((len(str(v)) for v in values), default=1)

    def __call__(self, value):
        return str(value).rjust(self.width)


class _ComplexFormat:
    def __init__(self, values):
        self.real = _FloatFormat([v.real for v in values])
        self.imag = _FloatFormat([v.imag for v in values])
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value):
        imag = self.imag(value.imag).lstrip() + "j"
        return self.real(value.real) + ("" if imag[0] in "+-" else "+") + imag


def _elements(t, summarize):
    """The elements as nested lists; `None` stands where a summary elides the middle."""
    if t.dim() == 0 or not summarize:
        return t.tolist()
    edge, size = _options.edgeitems, len(t)
    if not edge:
        return [None]
    if t.dim() == 1:
        if size <= 2 * edge:
            return t.tolist()
        return t[:edge].tolist() + [None] + t[-edge:].tolist()
    if size <= 2 * edge:
        return [_elements(row, True) for row in t]
    head = [_elements(t[i], True) for i in range(edge)]
    tail = [_elements(t[i], True) for i in range(size - edge, size)]
    return head + [None] + tail


def _leaves(items, out):
    for item in items:
        if isinstance(item, list):
            _leaves(item, out)
        elif item is not None:
            out.append(item)
    return out


def _lay_out(items, dim, indent, fmt):
    """Nested lists as bracketed text whose continuation lines start `indent + 1` columns in."""
    if dim == 0:
        return fmt(items)
    pad = " " * (indent + 1)
    if dim > 1:
        rows = ["..." if row is None else _lay_out(row, dim - 1, indent + 1, fmt) for row in items]
        return "[" + ("," + "\n" * (dim - 1) + pad).join(rows) + "]"
    per_line = max(1, int((_options.linewidth - indent) // (fmt.width + 2)))
    cells = ["..."] if items == [None] else [" ..." if item is None else fmt(item) for item in items]
    lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return "[" + (",\n" + pad).join(lines) + "]"


def _contents(t, indent):
    if t.dtype.is_floating_point or t.dtype.is_complex:
        t = t.detach()
    items = _elements(t, t.numel() > _options.threshold)
    values = _leaves(items, []) if isinstance(items, list) else [items]
    if t.dtype.is_complex:
        fmt = _ComplexFormat(values)
    elif t.dtype.is_floating_point:
        fmt = _FloatFormat(values)
    else:
        fmt = _PlainFormat(values)
    return _lay_out(items, t.dim(), indent, fmt)


def _with_suffixes(text, suffixes, indent, force_newline=False):
    """Append `, suffix` for each, breaking the line before a suffix that would cross the line width."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column, force_newline = indent + len(suffix), False
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def _default_dtypes(nonempty):
    """The dtypes that go without saying."""
    real = rl.get_default_dtype()
    if not nonempty:
        return (real,)
    return (real, rl.complex128 if real == rl.float64 else rl.complex64, rl.int64, rl.bool)


def _grad_fn_name(grad_fn):
    name = type(grad_fn).__name__
    if name in ("CppFunction", "Node"):
        own = grad_fn.name
        name = (own() if callable(own) else own).rsplit("::", 1)[-1]
    return name


def _is_parameter(t):
    nn = getattr(rl, "nn", None)
    return nn is not None and isinstance(t, nn.Parameter)


def _history(t):
    """What asks for its gradient, and its tangent."""
    from .autograd import function

    forward = function._forward_mode
    tangent = None
    if forward is not None and forward.active():
        primal, tangent = forward.unpack_dual(t)
        if tangent is not None:
            t = primal
    try:
        grad_fn = t.grad_fn
    except RuntimeError:  # a view whose history was lost
        return ["grad_fn=<Invalid>"]
    parts = []
    if grad_fn is not None:
        parts.append(f"grad_fn=<{_grad_fn_name(grad_fn)}>")
    elif t.requires_grad:
        parts.append("requires_grad=True")
    return parts if tangent is None else [*parts, f"tangent={tangent}"]


def tensor_str(t, *, tensor_contents=None):
    """The repr of a tensor, as `Tensor.__repr__` returns it; a Parameter's without its heading."""
    kind = type(t)
    plain = kind is rl.Tensor or (_is_parameter(t) and kind is rl.nn.Parameter)
    prefix = "tensor(" if plain else kind.__name__ + "("
    indent = len(prefix)
    suffixes = []
    device = t.device
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    is_meta = device.type == "meta" or (not plain and tensor_contents is None and not t._has_memory())
    empty = not is_meta and t.numel() == 0
    if is_meta or (t.dim() != 1 if empty else not _options.edgeitems):
        suffixes.append(f"size={tuple(t.shape)}")
    if t.dtype not in _default_dtypes(nonempty=not (is_meta or empty)):
        suffixes.append(f"dtype={t.dtype}")
    if t.layout != rl.strided:
        suffixes.append(f"layout={t.layout}")
    suffixes += _history(t)
    if tensor_contents is None:
        if is_meta:
            tensor_contents = "..."
        elif empty:
            tensor_contents = "[]"
        else:
            source = t if kind is rl.Tensor else t.as_subclass(rl.Tensor)
            tensor_contents = _contents(source, indent)
    text = _with_suffixes(prefix + tensor_contents, suffixes, indent)
    if _is_parameter(t) and not plain:
        text = f"Parameter({text})"
    return text


def _tensor_str(self, indent):
    """The elements of a tensor as text, without the name around them."""
    if self.numel() == 0:
        return "[]"
    return _contents(self.detach().as_subclass(rl.Tensor), indent)


def _add_suffixes(tensor_str, suffixes, indent, force_newline):
    """The text with its suffixes, on a new line where they do not fit."""
    parts, last = [tensor_str], len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or last + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            last, force_newline = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            last += len(suffix) + 2
    return "".join([*parts, ")"])


def _str_intern(inp, *, tensor_contents=None):
    return tensor_str(inp, tensor_contents=tensor_contents)
