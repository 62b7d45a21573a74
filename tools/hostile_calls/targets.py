"""What is called: every registered op, and every public function and class of the packages that take tensors or numbers."""

import inspect

# Ops that end, block or reconfigure the process.
SKIP = (
    "_set_",
    "_swap_function_mode",
    "_memory",
    "set_num_threads",
    "_push_saved_hooks",
    "_pop_saved_hooks",
    "_install",
    "manual_seed",
)
ORDINARY = (
    RuntimeError, TypeError, ValueError, IndexError, OverflowError, NotImplementedError, AttributeError, AssertionError,
    MemoryError, KeyError, ZeroDivisionError, BufferError, ArithmeticError, Warning,
)  # fmt: skip


def getitem(input, index):
    return input[index]


def setitem(input, index, value):
    input[index] = value
    return input


def made_and_used(cls):
    """Makes an object of a class with the call's arguments and uses it as modules and distributions are used."""

    def use(*args, **kwargs):
        import rushlight as rl

        made = cls(*args, **kwargs)
        repr(made)
        if isinstance(made, rl.nn.Module):
            for shape in ((2, 3), (1, 2, 5, 5)):
                x = rl.ones(shape, requires_grad=True)
                try:
                    out = made(x)
                except ORDINARY:
                    continue
                if isinstance(out, rl.Tensor) and out.requires_grad:
                    out.sum().backward()
        elif hasattr(made, "log_prob"):
            made.log_prob(made.sample())
        return made

    use.__wrapped__ = cls
    return use


def targets(rl):
    """Name -> callable: all registered ops, and what is written in Python beside them."""
    import importlib

    from rushlight import _C

    found = dict(_C.ops)
    for space in (
        "",
        "nn.functional",
        "linalg",
        "fft",
        "special",
        "nn.utils.rnn",
        "nn.init",
        "nn.utils",
        "autograd",
        "autograd.functional",
        "func",
        "sparse",
        "signal.windows",
        "testing",
        "utils.dlpack",
    ):
        module = importlib.import_module("rushlight" + ("." + space if space else ""))
        for name in dir(module):
            value = getattr(module, name, None)
            if name.startswith("_") or isinstance(value, type) or not callable(value):
                continue
            if not str(getattr(value, "__module__", "")).startswith("rushlight"):
                continue
            found.setdefault(f"{space}.{name}" if space else name, value)
    for name in dir(rl.Tensor):
        value = getattr(rl.Tensor, name)
        if callable(value) and not name.startswith("__") and name not in found:
            found[f"Tensor.{name}"] = value
    for space in ("nn", "distributions"):
        module = importlib.import_module("rushlight." + space)
        for name in module.__all__ if hasattr(module, "__all__") else dir(module):
            value = getattr(module, name, None)
            if isinstance(value, type) and not name.startswith("_"):
                found[f"{space}.{name}"] = made_and_used(value)
    for name in ("__getitem__", "__setitem__", "__deepcopy__", "__reduce_ex__", "__format__", "__array__", "__contains__", "__dlpack__", "__setstate__"):  # fmt: skip
        if hasattr(rl.Tensor, name):
            found[f"Tensor.{name}"] = getattr(rl.Tensor, name)
    for name in ("UntypedStorage", "FloatStorage", "Size", "Generator", "device", "Tensor", "LongTensor"):
        found[f"class.{name}"] = getattr(rl, name)
    found["getitem"], found["setitem"] = getitem, setitem
    stop = {"save", "load", "compile", "seed", "set_default_dtype", "set_default_device", "Tensor.tofile", "set_grad_enabled",
            "use_deterministic_algorithms", "install_as_torch", "uninstall_as_torch", "set_printoptions", "set_default_tensor_type",
            "set_num_interop_threads", "inference_mode", "set_rng_state", "Tensor.share_memory_", "from_file", "set_flush_denormal",
            "set_warn_always", "set_deterministic_debug_mode", "Tensor._make_subclass", "autograd.set_site_recording",
            "autograd.set_grad_enabled"}  # fmt: skip
    return {
        n: f
        for n, f in sorted(found.items())
        if n not in stop and not n.startswith(SKIP) and "autocast" not in n
    }


def parameters(function):
    """The parameters of a call, (name, default) each; a default of `inspect.Parameter.empty` is required."""
    signatures = getattr(function, "_signatures", None)
    if signatures:
        rows = []
        for signature in signatures:
            row, depth, item = [], 0, ""
            for c in signature + ",":
                depth += (c == "(") - (c == ")")
                if c == "," and not depth:
                    name, _, default = item.strip().partition("=")
                    if name and name != "*":
                        row.append((name.removesuffix("..."), default or inspect.Parameter.empty))
                    item = ""
                else:
                    item += c
            rows.append(row)
        return rows
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [[("input", inspect.Parameter.empty), ("a", "0"), ("b", "0")]]
    return [[(p.name, p.default) for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]]
