"""Private names of torch.jit that packages touch: decorators, and lists of what was scripted."""

from typing import Final as Final

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.jit import export as export
from rushlight.jit import ignore as ignore
from rushlight.jit import unused as unused


def _copy_to_script_wrapper(fn):
    """Marks a method that a scripted module keeps: all of them are kept here."""
    fn._torchscript_modifier = "copy to script wrapper"
    return fn


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls one of two, by an argument that is True or False."""

    def fn(*args, **kwargs):
        chosen = (
            kwargs[arg_name] if arg_name in kwargs else args[arg_index] if arg_index < len(args) else default
        )
        return (if_true if chosen else if_false)(*args, **kwargs)

    if if_true.__doc__ is not None or if_false.__doc__ is not None:
        fn.__doc__ = if_true.__doc__ or if_false.__doc__
    if module_name is not None:
        fn.__module__ = module_name
    if func_name is not None:
        fn.__name__ = func_name
    return fn


def is_scripting():
    """Whether this call comes from a module that jit.script made."""
    from rushlight.jit import is_scripting as inside

    return inside()


_overload = _overload_method = lambda func: func
__getattr__ = _unsupported_attribute(__name__)
