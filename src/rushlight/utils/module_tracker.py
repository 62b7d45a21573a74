"""Which modules run: ModuleTracker."""

from __future__ import annotations

import weakref
from typing import Any, Self

import rushlight as rl
from rushlight.utils._pytree import tree_leaves


class ModuleTracker:
    """A block in which `parents` are the names of the modules that run, forward or backward, "Global" among them.

    The names are paths below the outermost module of a call. `is_bw` says whether a backward runs.

    Example:
        >>> from rushlight.utils.module_tracker import ModuleTracker
        >>> net = nn.Sequential(nn.Linear(2, 2))
        >>> with ModuleTracker() as tracker:
        ...     _ = net[0].register_forward_pre_hook(lambda *call: print(sorted(tracker.parents)))
        ...     _ = net(torch.ones(1, 2))
        ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._hooks: list[Any] = []
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._has_callback = False

    @property
    def is_bw(self) -> Any:
        """Whether a backward runs in this thread."""
        from rushlight._compat.c_names import _current_graph_task_id

        return _current_graph_task_id() != -1

    def _name(self, module: rl.nn.Module) -> Any:
        if module not in self._names:
            top = type(module).__name__
            for path, inner in module.named_modules():
                self._names[inner] = f"{top}.{path}" if path else top
        return self._names[module]

    def _queue_end(self) -> None:
        """After the backward no module of it runs any more."""
        if self._has_callback:
            return

        def end() -> None:
            self.parents, self._has_callback = {"Global"}, False

        rl.autograd.Variable._execution_engine.queue_callback(end)
        self._has_callback = True

    def _entered(self, name: str) -> Any:
        def hook(*grads: Any) -> None:
            if self.is_bw:
                self._queue_end()
            self.parents.add(name)

        return hook

    def _left(self, name: str) -> Any:
        return lambda *grads: self.parents.discard(name)

    @staticmethod
    def _asking(tree: Any) -> list[rl.Tensor]:
        return [t for t in tree_leaves(tree) if isinstance(t, rl.Tensor) and t.requires_grad]

    def _enter(self, module: rl.nn.Module, inputs: Any) -> None:
        name = self._name(module)
        self._entered(name)()
        tensors = self._asking(inputs)
        if (
            rl.is_grad_enabled() and tensors and not self.is_bw
        ):  # backward leaves it when all of these have a gradient
            self._hooks.append(rl.autograd.graph.register_multi_grad_hook(tensors, self._left(name)))

    def _leave(self, module: rl.nn.Module, inputs: Any, output: Any) -> None:
        name = self._name(module)
        self._left(name)()
        tensors = self._asking(output)
        if rl.is_grad_enabled() and tensors and not self.is_bw:
            self._hooks.append(
                rl.autograd.graph.register_multi_grad_hook(tensors, self._entered(name), mode="any")
            )

    def __enter__(self) -> Self:
        modules = rl.nn.modules.module
        self._hooks = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *exc: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks, self.parents = [], {"Global"}
