"""Ops at several sizes against PyTorch: `python benchmarks/ops.py [family ...] [--sizes N ...] [--threads N] [--rounds R]`.

The last lines are the list of what is slower than PyTorch by more than 10 %. Where that is near, both are measured
more often."""

import side

SIZES = (10, 1_000, 100_000, 10_000_000)

# family -> op -> what to time, given the framework T and prepared tensors; `n` is the number of elements.
FAMILIES = {
    "pointwise": {
        "add": "x + y", "mul": "x * y", "div": "x / p", "exp": "x.exp()", "log": "p.log()", "tanh": "x.tanh()",
        "sigmoid": "x.sigmoid()", "sin": "x.sin()", "sqrt": "p.sqrt()", "relu": "x.relu()", "pow": "p ** 1.5",
        "where": "T.where(mask, x, y)", "lt": "x < y", "clamp": "x.clamp(-1, 1)", "add_": "z.add_(x)",
        "add_scalar": "x + 1.5", "broadcast": "m + row", "cast": "x.double()", "abs": "x.abs()", "floor": "x.floor()",
    },
    "reduction": {
        "sum": "x.sum()", "mean": "x.mean()", "max": "x.max()", "argmax": "x.argmax()", "sum_rows": "m.sum(1)",
        "sum_columns": "m.sum(0)", "max_rows": "m.max(1)", "var": "x.var()", "norm": "x.norm()", "cumsum": "x.cumsum(0)",
        "softmax": "m.softmax(1)", "logsumexp": "m.logsumexp(1)", "any": "mask.any()", "prod": "x.prod()",
    },
    "indexing": {
        "index_select": "m.index_select(0, rows)", "gather": "x.gather(0, i)", "fancy": "x[i]", "mask": "x[mask]",
        "nonzero": "mask.nonzero()", "scatter_add": "z.scatter_add(0, i, y)", "masked_fill": "x.masked_fill(mask, 0.0)",
        "cat": "T.cat([x, y])", "transpose_copy": "m.t().contiguous()", "flip": "x.flip(0)", "roll": "x.roll(1)",
        "slice_copy": "x[::2].contiguous()", "clone": "x.clone()", "index_put": "z.index_put((i,), y)",
    },
    "sort": {"sort": "x.sort()", "argsort": "x.argsort()", "topk": "x.topk(k)", "unique": "c.unique()",
             "searchsorted": "T.searchsorted(s, x)", "sort_ints": "c.sort()", "kthvalue": "x.kthvalue(k)"},
    "matmul": {"mm": "a @ b", "mm_t": "a @ b.t()", "mv": "a @ v", "bmm": "q @ q", "addmm": "T.addmm(v, a, b)", "dot": "x.dot(y)"},
    "linalg": {
        "solve": "T.linalg.solve(a, b)", "inv": "T.linalg.inv(a)", "lu_factor": "T.linalg.lu_factor(a)", "det": "T.linalg.det(a)",
        "cholesky": "T.linalg.cholesky(spd)", "eigh": "T.linalg.eigh(spd)", "eigvalsh": "T.linalg.eigvalsh(spd)",
        "svd": "T.linalg.svd(a)", "svdvals": "T.linalg.svdvals(a)", "qr": "T.linalg.qr(a)", "lstsq": "T.linalg.lstsq(a, b)",
        "inv_batch": "T.linalg.inv(q)", "qr_batch": "T.linalg.qr(q)",
    },
    "random": {"rand": "T.rand(n)", "randn": "T.randn(n)", "randint": "T.randint(0, 1000, (n,))", "randperm": "T.randperm(n)",
               "bernoulli": "T.bernoulli(h)", "uniform_": "z.uniform_()", "normal_": "z.normal_()"},
    "backward": {"chain": "(x * g + g).tanh().sum().backward()"},
}  # fmt: skip


def prepare(T, n):
    T.manual_seed(0)
    side = max(1, int(n**0.5))
    m = max(1, min(side, 1024))
    q = max(1, min(64, int((n / 4) ** 0.5)))
    x = T.randn(n)
    a = T.randn(m, m)
    return {
        "T": T, "n": n, "x": x, "y": T.randn(n), "p": T.rand(n) + 0.5, "z": T.zeros(n), "h": T.rand(n),
        "m": T.randn(side, side), "row": T.randn(side), "mask": T.rand(n) < 0.5, "i": T.randint(0, n, (n,)),
        "rows": T.randint(0, side, (side,)), "c": T.randint(0, 1000, (n,)), "s": T.randn(n).sort()[0], "k": max(1, n // 100),
        "a": a, "spd": a @ a.t() / m + T.eye(m), "b": T.randn(m, m), "v": T.randn(m), "q": T.randn(max(1, n // (q * q)), q, q),
        "g": T.randn(n, requires_grad=True),
    }  # fmt: skip


PREPARED = {}


def answer(T, request):
    n, code = request
    if n not in PREPARED:
        PREPARED.clear()
        PREPARED[n] = prepare(T, n)
    return {"best": side.timed(eval(f"lambda: {code}", PREPARED[n]))}


def main(arguments=None):
    parser = side.parser(__doc__)
    parser.add_argument("family", nargs="*", default=list(FAMILIES))
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options = parser.parse_args(arguments)
    if options.worker:
        side.serve(options.worker, options.threads, answer)
        return
    slower = []
    with side.Pair(__file__, options) as pair:
        for family in options.family:
            print(f"\n{family:<16}" + "".join(f"{n:>24,}" for n in options.sizes))
            rows = {name: [] for name in FAMILIES[family]}
            for n in options.sizes:
                for name, code in FAMILIES[family].items():
                    ours, rival = pair.best([n, code], doubt=(0.7, 1.1))
                    if isinstance(ours, str):
                        rows[name].append(ours[:22])
                        continue
                    rows[name].append(side.cell(ours["best"], rival["best"]))
                    ratio = rival["best"] / ours["best"]
                    if ratio < 0.9:
                        slower.append((ratio, family, name, n))
            for name, cells in rows.items():
                print(f"{name:<16}" + "".join(f"{c:>24}" for c in cells), flush=True)
    print(f"\nslower than {options.rival} by more than 10 %: {len(slower)}")
    for ratio, family, name, n in sorted(slower):
        print(f"  {ratio:5.2f}x  {family} {name} at {n:,}")


if __name__ == "__main__":
    main()
