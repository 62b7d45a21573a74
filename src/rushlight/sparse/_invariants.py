"""Whether the indices of sparse tensors are checked when they are made, or before they are first used."""

_enabled = False


class check_sparse_tensor_invariants:
    """A region, a decorator and a setting: indices of sparse tensors are checked as soon as these are made.

    Without it they are checked before they are first used.

    Args:
        enable (bool): False switches the check off in the region. Default: True

    Example:
        >>> with torch.sparse.check_sparse_tensor_invariants():
        ...     torch.sparse_coo_tensor([[5]], [1.0], (3,))
        Traceback (most recent call last):
            ...
        RuntimeError: ...
    """

    def __init__(self, enable=True):
        self._wanted, self._before = enable, []

    @staticmethod
    def is_enabled():
        """Whether the check is on."""
        return _enabled

    @staticmethod
    def enable():
        """Switches the check on."""
        global _enabled
        _enabled = True

    @staticmethod
    def disable():
        """Switches the check off."""
        global _enabled
        _enabled = False

    def __enter__(self):
        global _enabled
        if self._before:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context "
                "nesting."
            )
        self._before.append(_enabled)
        _enabled = self._wanted

    def __exit__(self, *exc):
        global _enabled
        _enabled = self._before.pop()

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def checked(*args, **kwargs):
            with type(self)(self._wanted):
                return function(*args, **kwargs)

        return checked
