"""LazyModuleMixin: layers that learn their input size from the first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Lets a module start with parameters without a shape and make them at its first call.

    It stands before the plain class among the bases. A subclass creates `nn.UninitializedParameter`s, defines
    `initialize_parameters`, and names in `cls_to_become` the plain class it turns into.

    Args:
        args (any): passed on to the next class.
        kwargs (any): likewise.

    Example:
        >>> layer = nn.LazyLinear(2)
        >>> layer.has_uninitialized_params()
        True
        >>> layer(torch.randn(1, 5)).shape
        torch.Size([1, 2])
        >>> type(layer).__name__, layer.in_features
        ('Linear', 5)
    """

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    register_forward_pre_hook: Callable[..., Any]
    _register_load_state_dict_pre_hook: Callable[..., Any]
    _get_name: Callable[[], str]

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Both take themselves off once the parameters are there.
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        # A lazy parameter is saved as it is: it has no detach() of a shape.
        for table in (self._parameters, self._buffers):
            for name, value in table.items():
                if value is not None and name not in self._non_persistent_buffers_set:
                    destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _lazy_load_hook(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Gives lazy parameters the shapes of the loaded ones."""
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            key = prefix + name
            if value is not None and is_lazy(value) and key in state_dict and not is_lazy(state_dict[key]):
                value.materialize(state_dict[key].shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> Any:
        """Gives the parameters their shapes from the arguments of the first call; subclasses define it.

        Args:
            args (any): what the module was called with.
            kwargs (any): likewise.
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> Any:
        """Returns whether some parameter or buffer of this module itself (not of children) has no shape yet."""
        return any(is_lazy(v) for v in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {self._get_name()} has not been fully initialized: its initialize_parameters left "
                "some "
                "parameter without a shape"
            )
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward "
            "pass to correctly initialize the modules"
        )
