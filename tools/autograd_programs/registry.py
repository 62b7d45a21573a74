"""The steps that programs are made of, by kind and name: each module of steps adds its own."""

# kind -> {name: f(T, x, y, z, k)}
STEPS = {"view": {}, "write": {}, "pure": {}, "grad": {}, "out": {}}


def step(kind, weight=1):
    def add(function):
        STEPS[kind][function.__name__] = (function, weight)
        return function

    return add


def methods(kind, names, *arguments):
    """Steps that are x.name(*arguments)."""
    for name in names.split():
        STEPS[kind][name] = (lambda T, x, y, z, k, name=name: getattr(x, name)(*arguments), 1)


def with_other(kind, names, weight=1):
    """Steps that are x.name(y)."""
    for name in names.split():
        STEPS[kind][name] = (lambda T, x, y, z, k, name=name: getattr(x, name)(y), weight)


def dim_of(x, k):
    return k % max(x.dim(), 1)


def index_of(x, k):
    """An index along the first dimension."""
    return k % max(x.shape[0], 1) if x.dim() else 0


def repeats(x):
    """Whether elements share an address; the stride of a dimension of size 1 is nobody's business."""
    return x.numel() > 0 and any(n > 1 and s == 0 for n, s in zip(x.shape, x.stride()))


def far(x):
    """Whether there are elements in x whose last bit turns an angle."""
    return bool((x.detach().abs() > 1e4).any())
