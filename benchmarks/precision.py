"""Products and convolutions of each precision: `python benchmarks/precision.py [--size 1024] [--repeats 30]`.

GFLOP/s (of convolutions: those of plain sums) and error of each precision.
"""

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
    precisions = [(f"float32 {p}", p, a, b) for p in ("highest", "high", "medium")]
    for name, precision, x, y in [*precisions, ("bfloat16", "highest", a.bfloat16(), b.bfloat16())]:
        rl.set_float32_matmul_precision(precision)
        speed = 2 * n**3 / best_seconds(lambda x=x, y=y: x @ y, args.repeats) / 1e9
        error = ((x @ y).double() - exact).abs().div(size).max().item()
        print(f"{name:<18}{speed:>9.0f}{error:>31.1e}")
    rl.set_float32_matmul_precision("highest")
    convolutions(args.repeats)


def convolutions(repeats):
    """3x3 convolutions by Winograd's transforms, the default, and by plain sums: forward and both gradients."""
    print(
        "\n3x3 convolutions: time, and errors of result, gradient by the input, gradient by the weights (relative L2)"
    )
    print(f"{'shape':<14}{'fp32_precision':<16}{'ms':>8}{'y':>9}{'dx':>9}{'dw':>9}")
    for n, channels, size in ((16, 64, 56), (8, 128, 28), (8, 256, 14), (8, 512, 7)):
        rl.manual_seed(0)
        x, w = rl.randn(n, channels, size, size).relu(), rl.randn(channels, channels, 3, 3)
        g = rl.randn(n, channels, size, size)

        def step(dtype, x=x, w=w, g=g):
            image, filters = (t.to(dtype).detach().requires_grad_() for t in (x, w))
            y = rl.nn.functional.conv2d(image, filters, padding=1)
            y.backward(g.to(dtype))
            return y.detach(), image.grad, filters.grad

        exact = step(rl.float64)
        for precision in ("none", "ieee"):
            rl.backends.mkldnn.conv.fp32_precision = precision
            seconds = best_seconds(lambda: step(rl.float32), max(3, repeats // 3))
            errors = [
                ((a - b).norm() / b.norm()).item() for a, b in zip(step(rl.float32), exact, strict=True)
            ]
            shape = f"{n}x{channels}@{size}"
            print(f"{shape:<14}{precision:<16}{seconds * 1e3:>8.1f}" + "".join(f"{e:>9.1e}" for e in errors))
    rl.backends.mkldnn.conv.fp32_precision = "none"


if __name__ == "__main__":
    main()
