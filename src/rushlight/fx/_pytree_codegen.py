"""Graphs whose arguments and results are trees: how their source takes them apart and puts them together."""

from rushlight.fx.graph import CodeGen


class PyTreeInfo:
    """The names of the arguments, and the trees of arguments and results."""

    def __init__(self, orig_args, in_spec, out_spec):
        self.orig_args, self.in_spec, self.out_spec = list(orig_args), in_spec, out_spec


class PyTreeCodeGen(CodeGen):
    """Placeholders are the leaves of the arguments."""

    def __init__(self, pytree_info):
        self.pytree_info = pytree_info

    def header(self, names):
        """(parameters, lines that take them apart into the placeholders of these names)."""
        given = ", ".join(self.pytree_info.orig_args)
        if not names:
            return self.pytree_info.orig_args, []
        return self.pytree_info.orig_args, [
            f"{', '.join(names)}, = fx_pytree.tree_flatten_spec([{given}], self._in_spec)"
        ]

    def result(self, text, is_sequence):
        """The line that returns a result."""
        if self.pytree_info.out_spec is None:
            return f"return {text}"
        return f"return pytree.tree_unflatten({text if is_sequence else f'[{text}]'}, self._out_spec)"
