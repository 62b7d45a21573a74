"""fp32_precision: how exact products, convolutions and recurrent layers of float32 are."""

from .. import _C

_ops = _C.ops
_WORDS = {"ieee": "highest", "tf32": "high", "bf16": "medium"}  # of set_float32_matmul_precision
_BITS = {word: name for name, word in _WORDS.items()}
_asked = {"all": "none", "matmul": "none", "conv": "none", "rnn": "none"}


def _effective(part):
    return _asked["all"] if _asked[part] == "none" else _asked[part]


def get(part):
    """What is asked for `part`: its own setting, or that for all where it has none."""
    asked = _effective(part)
    if part != "matmul":
        return asked
    now = _BITS[_ops["get_float32_matmul_precision"]()]
    return asked if now == "ieee" and asked in ("none", "ieee") else now


def put(part, value):
    """Asks for a precision: "ieee" sums products in float32, "tf32" and "bf16" allow less, "none" is the default."""
    if value != "none" and value not in _WORDS:
        raise RuntimeError(
            f"Unknown precision: {value}\n  fp32_precision is 'ieee', 'tf32', 'bf16' or 'none'"
        )
    _asked[part] = value
    if part in ("all", "matmul"):
        _ops["set_float32_matmul_precision"](_WORDS.get(_effective("matmul"), "highest"))
    if part in ("all", "conv"):
        _ops["_set_plain_convolutions"](_effective("conv") == "ieee")


def setting(part):
    """fp32_precision as a property."""
    return property(lambda self: get(part), lambda self, value: put(part, value))


class _Matmul:
    fp32_precision = setting("matmul")


class _Conv:
    fp32_precision = setting("conv")


class _Rnn:
    fp32_precision = setting("rnn")


PARTS = {"matmul": _Matmul(), "conv": _Conv(), "rnn": _Rnn()}
