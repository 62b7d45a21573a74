"""What torch.compile returns for a module."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._dynamo import is_dynamo_supported as is_dynamo_supported


class _Replays:
    """The tapes of one module. A copy of the module begins without."""

    def __init__(self, fullgraph):
        self.fullgraph = fullgraph
        self.module: Any = None
        self.call: Any = None

    def __call__(self, module, *args, **kwargs):
        if self.module is not module:
            from rushlight.jit._replay import compiled

            self.module, self.call = module, compiled(module, module, self.fullgraph)
        return self.call(*args, **kwargs)

    def __reduce__(self):
        return _Replays, (self.fullgraph,)


class OptimizedModule(rl.nn.Module):
    """A module that calls another one, `_orig_mod`, and has its attributes."""

    def __init__(self, mod, dynamo_ctx=None, fullgraph=None):
        super().__init__()
        rl.nn.Module.__setattr__(self, "_orig_mod", mod)
        if fullgraph is not None:
            self.__dict__["_replays"] = _Replays(fullgraph)

    def forward(self, *args, **kwargs):
        replays = self.__dict__.get("_replays")
        # With gradients the result has a graph, whose backward comes later: no tape holds that.
        if replays is None or rl.is_grad_enabled():
            return self._orig_mod(*args, **kwargs)
        return replays(self._orig_mod, *args, **kwargs)

    @property
    def training(self):
        inner: Any = self._modules["_orig_mod"]
        return inner.training

    @training.setter
    def training(self, mode):
        if "_orig_mod" in self.__dict__.get("_modules", ()):  # not while this module is made
            inner: Any = self._modules["_orig_mod"]
            inner.training = mode

    def __getattr__(self, name):
        wrapped = self.__dict__.get("_modules", {}).get("_orig_mod")
        if name == "_orig_mod" and wrapped is not None:
            return wrapped
        if wrapped is None:  # being unpickled
            raise AttributeError(name)
        return getattr(wrapped, name)

    def __setattr__(self, name, value):
        if (
            name in ("_orig_mod", "training", "forward")
            or name in self.__dict__
            or "_modules" not in self.__dict__
        ):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        if name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


__getattr__ = _unsupported_attribute(__name__)
