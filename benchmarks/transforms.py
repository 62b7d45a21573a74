"""Function transforms against PyTorch: `python benchmarks/transforms.py [word ...] [--threads N] [--rounds R]`.

Jacobians, Hessians, gradients per sample, ensembles and plain vmap."""

import importlib

import side


def mlp(T, *widths):
    nn = T.nn
    layers = [
        layer for a, b in zip(widths, widths[1:], strict=False) for layer in (nn.Linear(a, b), nn.Tanh())
    ]
    return nn.Sequential(*layers[:-1]).requires_grad_(False)


def cnn(T):
    nn = T.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10),
    ).requires_grad_(False)  # fmt: skip


def transformer(T):
    nn = T.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(50, 32), nn.Linear(32, 10)
            self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)

        def forward(self, x):
            return self.out(self.layer(self.table(x)).mean(1))

    return Net().requires_grad_(False)


def per_sample(T, model, x, y):
    """Gradients of the loss of each sample by the parameters."""
    func, F = T.func, T.nn.functional
    parameters = dict(model.named_parameters())

    def loss(p, a, b):
        return F.cross_entropy(func.functional_call(model, p, (a.unsqueeze(0),)), b.unsqueeze(0))

    gradients = func.vmap(func.grad(loss), (None, 0, 0))
    return lambda: gradients(parameters, x, y)


def ensemble(T, count):
    models = [mlp(T, 64, 64, 10) for _ in range(count)]
    stacked, x = T.func.stack_module_state(models), T.randn(32, 64)
    run = T.func.vmap(lambda p, b: T.func.functional_call(models[0], (p, b), (x,)))
    return lambda: run(*stacked)


def calls():
    """name -> function of the framework that gives what is timed"""
    rows = {}
    for w in (16, 64, 256):
        for name in ("jacrev", "jacfwd"):

            def jacobian(T, name=name, w=w):
                f, x = getattr(T.func, name)(mlp(T, w, w, w, w)), T.randn(w)
                return lambda: f(x)

            rows[f"{name} of an MLP {w} wide"] = jacobian

        def batch(T, w=w):
            f, x = T.func.vmap(T.func.jacrev(mlp(T, w, w, w, w))), T.randn(8, w)
            return lambda: f(x)

        rows[f"vmap(jacrev), 8 samples, {w} wide"] = batch
    for w in (16, 64):

        def hessian(T, w=w):
            f, x = T.func.hessian(mlp(T, w, w, w, 1)), T.randn(w)
            return lambda: f(x)

        rows[f"hessian of an MLP {w} wide"] = hessian
    for name in ("jacrev", "jacfwd"):

        def of_image(T, name=name):
            f, x = getattr(T.func, name)(cnn(T)), T.randn(1, 3, 16, 16)
            return lambda: f(x)

        rows[f"{name} of a CNN"] = of_image
    rows |= {
        "per sample, MLP, 64": lambda T: per_sample(
            T, mlp(T, 64, 128, 10), T.randn(64, 64), T.randint(0, 10, (64,))
        ),
        "per sample, CNN, 32": lambda T: per_sample(
            T, cnn(T), T.randn(32, 3, 16, 16), T.randint(0, 10, (32,))
        ),
        "per sample, transformer, 16": lambda T: per_sample(
            T, transformer(T), T.randint(0, 50, (16, 12)), T.randint(0, 10, (16,))
        ),
        "ensemble of 10": lambda T: ensemble(T, 10),
        "vmap(dot) 64x100": lambda T: (lambda x: lambda: T.func.vmap(T.dot)(x, x))(T.randn(64, 100)),
    }
    return rows


def answer(T, request):
    importlib.import_module(f"{T.__name__}.func")
    T.manual_seed(0)
    return {"time": side.timed(calls()[request](T))}


def main(arguments=None):
    parser = side.parser(__doc__)
    parser.add_argument("word", nargs="*")
    options = parser.parse_args(arguments)
    if options.worker:
        side.serve(options.worker, options.threads, answer)
        return
    with side.Pair(__file__, options) as pair:
        for name in calls():
            if options.word and not any(word in name for word in options.word):
                continue
            ours, rival = pair.best(name)
            told = ours[:80] if isinstance(ours, str) else side.cell(ours["time"], rival["time"])
            print(f"{name:<36}{told:>24}", flush=True)


if __name__ == "__main__":
    main()
