"""Ops at several sizes against PyTorch: `python benchmarks/ops.py [family ...] [--threads N] [--rounds R]`.

Each framework runs in a process of its own; for each op the two take turns for a few rounds, and the best time counts."""

import argparse
import json
import subprocess
import sys
import time

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
    return {
        "T": T, "n": n, "x": x, "y": T.randn(n), "p": T.rand(n) + 0.5, "z": T.zeros(n), "h": T.rand(n),
        "m": T.randn(side, side), "row": T.randn(side), "mask": T.rand(n) < 0.5, "i": T.randint(0, n, (n,)),
        "rows": T.randint(0, side, (side,)), "c": T.randint(0, 1000, (n,)), "s": T.randn(n).sort()[0], "k": max(1, n // 100),
        "a": T.randn(m, m), "b": T.randn(m, m), "v": T.randn(m), "q": T.randn(max(1, n // (q * q)), q, q),
        "g": T.randn(n, requires_grad=True),
    }  # fmt: skip


def worker(module, threads):
    T = __import__(module)
    T.set_num_threads(threads)
    prepared = {}
    for line in sys.stdin:
        n, code = json.loads(line)
        if n not in prepared:
            prepared.clear()
            prepared[n] = prepare(T, n)
        names = prepared[n]
        run = eval(f"lambda: {code}", names)
        try:
            run()
        except Exception as error:
            print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
            continue
        start = time.perf_counter()
        run()
        once = max(time.perf_counter() - start, 1e-7)
        repeat = max(1, min(1000, int(0.002 / once)))
        best = float("inf")
        for _ in range(max(3, min(30, int(0.05 / (once * repeat))))):
            start = time.perf_counter()
            for _ in range(repeat):
                run()
            best = min(best, (time.perf_counter() - start) / repeat)
        print(json.dumps({"best": best}), flush=True)


class Worker:
    def __init__(self, module, threads):
        command = [sys.executable, __file__, "--worker", module, "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, n, code):
        self.process.stdin.write(json.dumps([n, code]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="*", default=list(FAMILIES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--module", default="rushlight")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.threads)
        return
    ours, theirs = Worker(options.module, options.threads), Worker("torch", options.threads)
    slower = []
    for family in options.family:
        print(f"\n{family:<16}" + "".join(f"{n:>24,}" for n in SIZES))
        rows = {name: [] for name in FAMILIES[family]}
        for n in SIZES:
            for name, code in FAMILIES[family].items():
                best = {}
                for _ in range(options.rounds):
                    for label, run in (("torch", theirs), ("ours", ours)):
                        result = run(n, code)
                        if "error" in result:
                            best[label] = result["error"]
                            break
                        best[label] = min(best.get(label, float("inf")), result["best"])
                bad = [v for v in best.values() if isinstance(v, str)]
                if bad:
                    rows[name].append(bad[0][:22])
                    continue
                ratio = best["torch"] / best["ours"]
                rows[name].append(f"{best['ours'] * 1e6:10.2f} us {ratio:5.2f}x")
                if ratio < 0.9:
                    slower.append((ratio, family, name, n))
        for name, cells in rows.items():
            print(f"{name:<16}" + "".join(f"{c:>24}" for c in cells), flush=True)
    print(f"\nslower than torch by more than 10 %: {len(slower)}")
    for ratio, family, name, n in sorted(slower):
        print(f"  {ratio:5.2f}x  {family} {name} at {n:,}")


if __name__ == "__main__":
    main()
