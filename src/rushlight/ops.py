"""torch.ops.aten.<name>(.<overload>): the ops under the names that compiled programs use."""

from . import _C

__all__ = ["aten"]


def _slice(input, dim=0, start=None, end=None, step=1):
    return input.movedim(dim, 0)[slice(start, end, step)].movedim(0, dim)


class _Packet:
    """An op with overloads: all of them are the one function, which looks at its arguments itself."""

    def __init__(self, name, function):
        self.__name__ = name
        self._function = function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self

    def __repr__(self):
        return f"<op aten.{self.__name__}>"


class _Namespace:
    def __getattr__(self, name):
        import importlib

        import rushlight

        home, short = rushlight, name
        for prefix in ("linalg", "special", "fft"):
            if name.startswith(prefix + "_"):
                home, short = importlib.import_module(f"rushlight.{prefix}"), name[len(prefix) + 1 :]
        function = _slice if name == "slice" else None
        function = function or getattr(home, short, None) or getattr(_C.Tensor, short, None)
        if function is None:
            function = getattr(importlib.import_module("rushlight.nn.functional"), short, None)
        if function is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        packet = _Packet(name, function)
        setattr(self, name, packet)
        return packet


aten = _Namespace()
