"""Code of one's own, scripted, against PyTorch as it is: `python benchmarks/script.py [word ...] [--threads N] [--rounds R]`.

Columns: the code as it is, and by jit.script; time and PyTorch's (as it is) over it. Forward and backward."""

import importlib

import side


def functions(torch):
    """name -> (function, how many tensors it takes)"""

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def mish(x):
        return x * torch.tanh(torch.log1p(torch.exp(x)))

    def focal_loss(p, target):
        error = -(target * torch.log(p) + (1 - target) * torch.log(1 - p))
        sure = torch.exp(-error)
        return (0.25 * (1 - sure) ** 2 * error).mean()

    def box_overlap(a, b):
        low, high = torch.maximum(a, b), torch.minimum(a + 1, b + 1)
        common = torch.clamp(high - low, 0, 1)
        return common / (2 - common + 1e-6)

    return {
        "gelu": (gelu, 1),
        "mish": (mish, 1),
        "focal loss": (focal_loss, 2),
        "box overlap": (box_overlap, 2),
    }


def cell(torch, hidden):
    nn = torch.nn

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.gates = nn.Linear(2 * hidden, 4 * hidden)

        def forward(self, x, h, c):
            i, f, g, o = self.gates(torch.cat([x, h], 1)).chunk(4, 1)
            i = torch.sigmoid(i)
            f = torch.sigmoid(f)
            c = f * c + i * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            return h, c

    return Cell()


def calls():
    """name -> function of the framework, and of what to do with the code, that gives what is timed"""
    rows = {}
    for n in (1000, 100_000, 1_000_000):
        for name in ("gelu", "mish", "focal loss", "box overlap"):

            def run(T, script, name=name, n=n):
                function, count = functions(T)[name]
                function = script(function)
                given = [(T.rand(n) * 0.8 + 0.1).requires_grad_() for _ in range(count)]

                def step():
                    T.autograd.grad(function(*given).sum(), given)

                return step

            rows[f"{name}, {n}"] = run
    for hidden, batch in ((16, 4), (128, 32), (512, 64)):

        def steps(T, script, hidden=hidden, batch=batch):
            made, x = script(cell(T, hidden)), T.randn(batch, hidden)

            def step():
                h = c = T.zeros(batch, hidden)
                for _ in range(10):
                    h, c = made(x, h, c)
                h.sum().backward()

            return step

        rows[f"10 steps of a cell, {hidden} wide"] = steps
    return rows


def answer(T, request):
    importlib.import_module(f"{T.__name__}.jit")
    T.manual_seed(0)
    name, scripted = request
    return {"time": side.timed(calls()[name](T, T.jit.script if scripted else lambda code: code))}


def main(arguments=None):
    parser = side.parser(__doc__)
    parser.add_argument("word", nargs="*")
    options = parser.parse_args(arguments)
    if options.worker:
        side.serve(options.worker, options.threads, answer)
        return
    with side.Pair(__file__, options) as pair:
        print(f"{'':<36}{'as it is':>24}{'scripted':>24}")
        for name in calls():
            if options.word and not any(word in name for word in options.word):
                continue
            ours, rival = pair.best((name, False))
            scripted, _ = pair.best((name, True))
            told = "".join(f"{side.cell(t['time'], rival['time']):>24}" for t in (ours, scripted))
            print(f"{name:<36}{told}", flush=True)


if __name__ == "__main__":
    main()
