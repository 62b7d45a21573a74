"""torch.return_types: the classes of named tuples that functions return, by the function's name."""

import rushlight as rl

# A class is made with the first result of its function, so that is asked for: arguments of the smallest call, m a matrix of
# one element, p its pivot, digits themselves.
_CALLS = {
    "aminmax": "m", "cummax": "m0", "cummin": "m0", "frexp": "m", "geqrf": "m", "histogram": "m1", "kthvalue": "m1",
    "linalg_cholesky_ex": "m", "linalg_eig": "m", "linalg_eigh": "m", "linalg_inv_ex": "m", "linalg_ldl_factor": "m",
    "linalg_ldl_factor_ex": "m", "linalg_lstsq": "mm", "linalg_lu": "m", "linalg_lu_factor": "m",
    "linalg_lu_factor_ex": "m", "linalg_qr": "m", "linalg_slogdet": "m", "linalg_solve_ex": "mm", "linalg_svd": "m",
    "lu_unpack": "mp", "max": "m0", "median": "m0", "min": "m0", "mode": "m0", "nanmedian": "m0", "qr": "m",
    "slogdet": "m", "sort": "m0", "svd": "m", "topk": "m1", "triangular_solve": "mm",
}  # fmt: skip
__all__ = list(_CALLS)


def __getattr__(name):
    if name not in _CALLS:
        from rushlight._missing import no_name

        raise no_name(__name__, name)
    made = {"m": lambda: rl.ones(1, 1), "p": lambda: rl.ones(1, dtype=rl.int32)}
    arguments = [made[c]() if c in made else int(c) for c in _CALLS[name]]
    short = name.removeprefix("linalg_")
    function = getattr(rl if short == name else rl.linalg, short)
    found = globals()[name] = type(function(*arguments))
    return found
