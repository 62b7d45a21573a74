"""Functions that PyTorch has removed, and still names in its errors."""


def _removed(name, instead):
    def removed(*args, **kwargs):
        raise RuntimeError(
            f"torch.{name}: This function was deprecated since version 1.9 and is now removed: use torch.{instead}"
        )

    removed.__name__ = removed.__qualname__ = name
    removed.__doc__ = f"Removed; it raises and names torch.{instead}."
    return removed


symeig, eig, solve, matrix_rank, lstsq = (
    _removed(*pair)
    for pair in (("symeig", "linalg.eigh"), ("eig", "linalg.eig"), ("solve", "linalg.solve"),
                 ("matrix_rank", "linalg.matrix_rank"), ("lstsq", "linalg.lstsq"))
)  # fmt: skip
