"""Which modules run: ModuleTracker."""

import rushlight as rl


class ModuleTracker:
    """A block in which `parents` are the names of the modules whose forward runs, "Global" among them.

    The names are paths below the outermost module of a call. Backward is not followed.
    """

    def __init__(self):
        self.parents, self._names, self._hooks = {"Global"}, {}, []

    def _name(self, module):
        if module not in self._names:
            top = type(module).__name__
            for path, inner in module.named_modules():
                self._names[inner] = f"{top}.{path}" if path else top
        return self._names[module]

    def _enter(self, module, inputs):
        self.parents.add(self._name(module))

    def _leave(self, module, inputs, output):
        self.parents.discard(self._name(module))

    def __enter__(self):
        modules = rl.nn.modules.module
        self._hooks = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *exc):
        for hook in self._hooks:
            hook.remove()
        self.parents = {"Global"}
