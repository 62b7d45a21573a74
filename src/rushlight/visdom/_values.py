"""Arguments as arrays of values, and errors that say which argument is wrong, what was expected and what came."""

import numpy as np


class BadData(ValueError, AssertionError):
    """Data of the wrong shape or value. visdom's own checks are assertions: programs that catch those catch this."""


def describe(value):
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"shape {tuple(shape)}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{type(value).__name__} {value!r:.60}"


def array(call, name, value):
    """The value in float64; tensors of any library, arrays, numbers and nested lists are taken."""
    try:
        result = _to_numpy(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{call}: {name} must be numbers, got {describe(value)}: {error}") from None
    if result.dtype.kind not in "buif":
        raise TypeError(
            f"{call}: {name} must be numbers, got {describe(value)} with elements of type {result.dtype}"
        )
    return result.astype(np.float64)


def _to_numpy(value):
    if hasattr(value, "detach"):
        value = value.detach()
        if value.is_floating_point():
            value = value.double()  # NumPy has no bfloat16
        return value.cpu().numpy()
    if isinstance(value, (list, tuple)):
        return np.asarray([_to_numpy(v) if hasattr(v, "detach") else v for v in value])
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__array__"):
        return np.asarray(value)
    if value is None or isinstance(value, (str, bytes, dict, set)):
        raise TypeError("not an array, a tensor or a list of numbers")
    return np.asarray(value)


def require(true, call, sentence):
    if not true:
        raise BadData(f"{call}: {sentence}")


def of_dims(call, name, value, dims, expected):
    """An array with one of so many dimensions; `expected` names the shapes, as in "N or N x M"."""
    result = array(call, name, value)
    if result.ndim not in dims:
        hint = f". Of a single value: [{name}]" if result.ndim == 0 else ""
        raise BadData(f"{call}: {name} must be {expected}, got shape {result.shape}{hint}")
    require(result.size > 0, call, f"{name} must be {expected}, got shape {result.shape}: nothing to plot")
    return result


def options(call, opts):
    if opts is None:
        return {}
    if not isinstance(opts, dict):
        raise TypeError(f"{call}: opts must be a dict, got {describe(opts)}")
    return dict(opts)


def names(call, option, opts, count, of_what):
    """opts[option] as `count` strings, or None."""
    given = opts.get(option)
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise TypeError(f"{call}: opts['{option}'] must be a list of names, got {describe(given)}")
    require(len(given) == count, call, f"opts['{option}'] has {len(given)} names for {count} {of_what}")
    return [str(n) for n in given]


def string(call, name, value):
    if not isinstance(value, str):
        raise TypeError(f"{call}: {name} must be a str, got {describe(value)}")
    return value


def plain(values):
    """Nested lists for JSON, None where a number is not finite."""
    if values.ndim > 1:
        return [plain(row) for row in values]
    if np.isfinite(values).all():
        return values.tolist()
    return [v if np.isfinite(v) else None for v in values.tolist()]


def json_value(value):
    """What users put into opts, for JSON: tensors and arrays become lists, the unknown becomes its text."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    if isinstance(value, np.generic):
        return json_value(value.item())
    if isinstance(value, np.ndarray) or hasattr(value, "detach"):
        return json_value(_to_numpy(value).tolist())
    return str(value)
