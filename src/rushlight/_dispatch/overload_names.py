"""How PyTorch calls the overloads of its primitives: aten.sum.dim_IntList is the one with `dim`."""

# The name whatever is given.
ALWAYS = {
    "transpose": "int", "transpose_": "int", "select": "int", "slice": "Tensor", "index": "Tensor", "unbind": "int",
    "empty": "memory_format", "where": "self", "var": "correction", "std": "correction", "var_mean": "correction",
    "std_mean": "correction", "flatten": "using_ints", "softmax": "int", "log_softmax": "int", "rsub": "Scalar",
    "linalg_matrix_norm": "default", "quantile": "default", "scatter_reduce": "two", "unflatten": "int",
    "narrow": "default", "diagonal": "default", "movedim": "int", "cross": "default", "cdist": "default",
    "true_divide": "Tensor", "logsumexp": "default", "swapaxes": "default", "add": "Tensor", "sub": "Tensor",
    "mul": "Tensor", "div": "Tensor", "add_": "Tensor", "sub_": "Tensor", "mul_": "Tensor", "div_": "Tensor",
}  # fmt: skip
# The first of the arguments that is given decides.
GIVEN = {
    "sum": {"dim": "dim_IntList"}, "nansum": {}, "mean": {"dim": "dim"}, "prod": {"dim": "dim_int"}, "any": {"dim": "dim"},
    "all": {"dim": "dim"}, "max": {"dim": "dim", "other": "other"}, "min": {"dim": "dim", "other": "other"},
    "median": {"dim": "dim"}, "nanmedian": {"dim": "dim"}, "squeeze": {"dim": "dim"}, "squeeze_": {"dim": "dim"},
    "div": {"rounding_mode": "Tensor_mode"}, "div_": {"rounding_mode": "Tensor_mode"}, "round": {"decimals": "decimals"},
    "round_": {"decimals": "decimals"}, "bernoulli": {"p": "p"}, "bernoulli_": {"p": "float"},
    "split": {"split_size": "Tensor", "split_size_or_sections": "Tensor"}, "view": {"dtype": "dtype"},
    "scatter": {"src": "src", "value": "value", "reduce": "reduce"},
    "scatter_": {"src": "src", "value": "value", "reduce": "reduce"},
    "arange": {"step": "start_step", "start": "start"}, "norm": {"dim": "ScalarOpt_dim"}, "argsort": {"stable": "stable"},
    "sort": {"stable": "stable"}, "randint": {"low": "low"}, "unique": {},
}  # fmt: skip
# Overloads named after the type of one argument.
BY_TYPE = {
    **dict.fromkeys(
        ["eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "greater", "less", "greater_equal", "less_equal", "not_equal", "floor_divide", "multiply", "subtract", "divide", "logical_and"],
        "other",
    ),
    "fill": "value", "fill_": "value", "masked_fill": "value", "masked_fill_": "value", "lerp": "weight", "lerp_": "weight",
}  # fmt: skip
_INT_FILL = {"index_fill", "index_fill_"}


def overload_name(name, given):
    """The overload of a primitive for a call; `given` has the arguments that differ from their defaults."""
    from .._C import Tensor

    if name in ("pow", "pow_", "float_power"):
        base = "Tensor" if isinstance(given.get("input"), Tensor) else "Scalar"
        power = "Tensor" if isinstance(given.get("exponent"), Tensor) else "Scalar"
        if name.endswith("_"):
            return power
        return f"{base}_{power}" if base == "Tensor" else "Scalar"
    if name in ("clamp", "clamp_", "clip", "clip_"):
        return "Tensor" if any(isinstance(given.get(k), Tensor) for k in ("min", "max")) else "default"
    if name in _INT_FILL:
        return "int_Tensor" if isinstance(given.get("value"), Tensor) else "int_Scalar"
    for argument, overload in GIVEN.get(name, {}).items():
        if given.get(argument) is not None:
            return (
                "dims"
                if overload == "dim"
                and name.startswith("squeeze")
                and isinstance(given["dim"], (list, tuple))
                else overload
            )
    if name in ALWAYS:
        return ALWAYS[name]
    key = name if name in BY_TYPE else name.removesuffix("_")
    if key in BY_TYPE:
        tensor = isinstance(given.get(BY_TYPE[key]), Tensor)
        if key == "floor_divide" and tensor:
            return "default"
        return "Tensor" if tensor else "Scalar"
    return "default"
