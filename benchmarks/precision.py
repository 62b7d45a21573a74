"""Products with fewer bits: `python benchmarks/precision.py [--size 1024] [--repeats 30]`, GFLOP/s and error of each way."""

import argparse
import time

import rushlight as rl


def best_seconds(call, repeats):
    call()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=30)
    args = parser.parse_args()
    n = args.size
    rl.manual_seed(0)
    a, b = rl.randn(n, n), rl.randn(n, n)
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    print(f"products of {n} x {n}, {rl.get_num_threads()} threads")
    print(f"{'numbers':<18}{'GFLOP/s':>9}{'largest error / sum of sizes':>31}")
    ways = [(f"float32 {p}", p, a, b) for p in ("highest", "high", "medium")]
    for name, precision, x, y in [*ways, ("bfloat16", "highest", a.bfloat16(), b.bfloat16())]:
        rl.set_float32_matmul_precision(precision)
        speed = 2 * n**3 / best_seconds(lambda x=x, y=y: x @ y, args.repeats) / 1e9
        error = ((x @ y).double() - exact).abs().div(size).max().item()
        print(f"{name:<18}{speed:>9.0f}{error:>31.1e}")


if __name__ == "__main__":
    main()
