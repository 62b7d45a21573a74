"""torch.return_types: the classes of named tuples that functions return, by the function's name."""

import rushlight as rl

# Each class is made with the first result of its function: these are the smallest calls.
_CALLS = {
    **{n: (lambda n=n: getattr(rl, n)(rl.ones(1, 1), 0)) for n in ("cummax", "cummin", "max", "median", "min", "mode",
                                                                  "nanmedian", "sort")},
    **{n: (lambda n=n: getattr(rl, n)(rl.ones(1, 1), 1)) for n in ("kthvalue", "topk")},
    **{n: (lambda n=n: getattr(rl, n)(rl.ones(1, 1))) for n in ("aminmax", "frexp", "geqrf", "qr", "slogdet", "svd")},
    **{f"linalg_{n}": (lambda n=n: getattr(rl.linalg, n)(rl.ones(1, 1))) for n in (
        "cholesky_ex", "eig", "eigh", "inv_ex", "ldl_factor", "ldl_factor_ex", "lu", "lu_factor", "lu_factor_ex", "qr",
        "slogdet", "svd")},
    **{f"linalg_{n}": (lambda n=n: getattr(rl.linalg, n)(rl.ones(1, 1), rl.ones(1, 1))) for n in ("lstsq", "solve_ex")},
    "histogram": lambda: rl.histogram(rl.ones(1), 1),
    "histogramdd": lambda: rl.histogramdd(rl.ones(1, 1), [1]),
    "lu_unpack": lambda: rl.lu_unpack(rl.ones(1, 1), rl.ones(1, dtype=rl.int32)),
    "triangular_solve": lambda: rl.triangular_solve(rl.ones(1, 1), rl.ones(1, 1)),
}  # fmt: skip
__all__ = list(_CALLS)


def __getattr__(name):
    if name in _CALLS:
        with rl.no_grad():
            found = globals()[name] = type(_CALLS[name]())
        return found
    from rushlight._missing import no_name

    raise no_name(__name__, name)
