"""Convolutions against PyTorch, layer by layer: `python benchmarks/conv.py [word ...] [--threads N] [--rounds R]`.

Words select layers by name. Each framework runs in a process of its own; forward, gradient by the input and gradient by
the filters are timed apart, the two frameworks in turn, and the best time counts. GFLOP/s are those of the plain formula."""

import argparse
import json
import subprocess
import sys
import time

PASSES = ("forward", "input", "weight")


def layers():
    """name -> (op, input sizes, weight sizes, keyword arguments)"""
    rows = {}

    def add(name, op, x, w, **arguments):
        rows[name] = (op, x, w, arguments)

    sides = {64: 56, 128: 28, 256: 14, 512: 7}
    for n in (1, 8, 32):
        add(f"resnet n{n} stem 7x7/2 3-64", "conv2d", (n, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3)
        for c, side in sides.items():
            add(f"resnet n{n} 3x3 {c}@{side}", "conv2d", (n, c, side, side), (c, c, 3, 3), padding=1)
            if c > 64:
                wide = (n, c // 2, 2 * side, 2 * side)
                add(f"resnet n{n} 3x3/2 {c}@{side}", "conv2d", wide, (c, c // 2, 3, 3), stride=2, padding=1)
                add(f"resnet n{n} 1x1/2 {c}@{side}", "conv2d", wide, (c, c // 2, 1, 1), stride=2)
    for c, side in {64: 32, 128: 16, 256: 8, 512: 4}.items():
        add(f"cifar n16 3x3 {c}@{side}", "conv2d", (16, c, side, side), (c, c, 3, 3), padding=1)
        if c > 64:
            wide = (16, c // 2, 2 * side, 2 * side)
            add(f"cifar n16 3x3/2 {c}@{side}", "conv2d", wide, (c, c // 2, 3, 3), stride=2, padding=1)
            add(f"cifar n16 1x1/2 {c}@{side}", "conv2d", wide, (c, c // 2, 1, 1), stride=2)
    add("cifar n16 3x3 3-64@32", "conv2d", (16, 3, 32, 32), (64, 3, 3, 3), padding=1)
    add("mnist n64 3x3 1-32", "conv2d", (64, 1, 28, 28), (32, 1, 3, 3))
    add("mnist n64 3x3 32-64", "conv2d", (64, 32, 26, 26), (64, 32, 3, 3))
    add("dcgan G 4x4 64-128@1", "conv_transpose2d", (16, 64, 1, 1), (64, 128, 4, 4))
    add("dcgan G 4x4/2 128-64@4", "conv_transpose2d", (16, 128, 4, 4), (128, 64, 4, 4), stride=2, padding=1)
    add("dcgan G 4x4/2 64-32@8", "conv_transpose2d", (16, 64, 8, 8), (64, 32, 4, 4), stride=2, padding=1)
    add("dcgan G 4x4/2 32-3@16", "conv_transpose2d", (16, 32, 16, 16), (32, 3, 4, 4), stride=2, padding=1)
    add("dcgan D 4x4/2 3-32@32", "conv2d", (16, 3, 32, 32), (32, 3, 4, 4), stride=2, padding=1)
    add("dcgan D 4x4/2 32-64@16", "conv2d", (16, 32, 16, 16), (64, 32, 4, 4), stride=2, padding=1)
    add("dcgan D 4x4/2 64-128@8", "conv2d", (16, 64, 8, 8), (128, 64, 4, 4), stride=2, padding=1)
    add("dcgan D 4x4 128-1@4", "conv2d", (16, 128, 4, 4), (1, 128, 4, 4))
    add("1x1 256-64@56", "conv2d", (4, 256, 56, 56), (64, 256, 1, 1))
    add("1x1 64-256@56", "conv2d", (4, 64, 56, 56), (256, 64, 1, 1))
    add("1x1 512-2048@7", "conv2d", (8, 512, 7, 7), (2048, 512, 1, 1))
    add("1x1 n1 1024-256@14", "conv2d", (1, 1024, 14, 14), (256, 1024, 1, 1))
    add("5x5 48-96@27", "conv2d", (8, 48, 27, 27), (96, 48, 5, 5), padding=2)
    add("11x11/4 3-64@224", "conv2d", (4, 3, 224, 224), (64, 3, 11, 11), stride=4, padding=2)
    add("dilated 3x3 64@56", "conv2d", (4, 64, 56, 56), (64, 64, 3, 3), padding=2, dilation=2)
    add("patches 16x16/16 3-384@224", "conv2d", (4, 3, 224, 224), (384, 3, 16, 16), stride=16)
    add("vgg 3x3 64@224", "conv2d", (1, 64, 224, 224), (64, 64, 3, 3), padding=1)
    add("unet 2x2/2 128-64@56", "conv_transpose2d", (2, 128, 56, 56), (128, 64, 2, 2), stride=2)
    add("depthwise 3x3 96@56", "conv2d", (8, 96, 56, 56), (96, 1, 3, 3), padding=1, groups=96)
    add("depthwise 3x3/2 96@56", "conv2d", (8, 96, 56, 56), (96, 1, 3, 3), stride=2, padding=1, groups=96)
    add("depthwise 7x7 96@56", "conv2d", (4, 96, 56, 56), (96, 1, 7, 7), padding=3, groups=96)
    add("depthwise 5x5 480@14", "conv2d", (8, 480, 14, 14), (480, 1, 5, 5), padding=2, groups=480)
    add("resnext 3x3 g32 128@56", "conv2d", (4, 128, 56, 56), (128, 4, 3, 3), padding=1, groups=32)
    add("resnext 3x3 g32 512@14", "conv2d", (4, 512, 14, 14), (512, 16, 3, 3), padding=1, groups=32)
    add("conv1d k3 256@512", "conv1d", (8, 256, 512), (256, 256, 3), padding=1)
    add("conv1d k7/2 64@4096", "conv1d", (4, 64, 4096), (64, 64, 7), stride=2, padding=3)
    add("conv1d k10/5 1-512@16000", "conv1d", (1, 1, 16000), (512, 1, 10), stride=5)
    add("conv3d 3x3x3 32@16x28x28", "conv3d", (2, 32, 16, 28, 28), (32, 32, 3, 3, 3), padding=1)
    add(
        "conv3d 3x3x3/2 16-32@16x56x56", "conv3d", (1, 16, 16, 56, 56), (32, 16, 3, 3, 3), stride=2, padding=1
    )
    add("tiny 3x3 8@8", "conv2d", (1, 8, 8, 8), (8, 8, 3, 3), padding=1)
    return rows


def worker(module, threads):
    T = __import__(module)
    F = __import__(f"{module}.nn.functional", fromlist=["conv2d"])
    T.set_num_threads(threads)
    grad = T.autograd.grad
    rows, current, runs = layers(), None, {}
    for line in sys.stdin:
        name, kind = json.loads(line)
        if name != current:
            op, xs, ws, kwargs = rows[name]
            T.manual_seed(0)
            x, w = T.randn(*xs), T.randn(*ws)
            xg, wg = x.clone().requires_grad_(), w.clone().requires_grad_()
            call = getattr(F, op)
            yx, yw = call(xg, w, **kwargs), call(x, wg, **kwargs)
            g = T.randn(*yx.shape)
            runs = {
                "forward": lambda call=call, x=x, w=w, kwargs=kwargs: call(x, w, **kwargs),
                "input": lambda y=yx, xg=xg, g=g: grad(y, xg, g, retain_graph=True),
                "weight": lambda y=yw, wg=wg, g=g: grad(y, wg, g, retain_graph=True),
            }
            # each element of these meets every tap
            macs = x.numel() if op.startswith("conv_transpose") else g.numel()
            for v in ws[1:]:
                macs *= v
            current = name
        run = runs[kind]
        run()
        start = time.perf_counter()
        run()
        once = max(time.perf_counter() - start, 1e-7)
        repeat = max(1, min(1000, int(0.001 / once)))
        best = float("inf")
        for _ in range(max(3, min(30, int(0.03 / (once * repeat))))):
            start = time.perf_counter()
            for _ in range(repeat):
                run()
            best = min(best, (time.perf_counter() - start) / repeat)
        print(json.dumps({"best": best, "flops": 2 * macs}), flush=True)


class Worker:
    def __init__(self, module, threads):
        command = [sys.executable, __file__, "--worker", module, "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, name, kind):
        self.process.stdin.write(json.dumps([name, kind]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("word", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--module", default="rushlight")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.threads)
        return
    ours, theirs = Worker(options.module, options.threads), Worker("torch", options.threads)
    names = [n for n in layers() if not options.word or any(w in n for w in options.word)]
    print(f"{'layer':<32}" + "".join(f"{kind:>28}" for kind in PASSES))
    for name in names:
        cells = []
        for kind in PASSES:
            best = {"torch": float("inf"), "ours": float("inf")}
            for _ in range(options.rounds):
                for label, run in (("torch", theirs), ("ours", ours)):
                    result = run(name, kind)
                    best[label] = min(best[label], result["best"])
            rate = result["flops"] / best["ours"] * 1e-9
            cells.append(f"{best['ours'] * 1e3:9.3f} ms {rate:5.0f} GF {best['torch'] / best['ours']:5.2f}x")
        print(f"{name:<32}" + "".join(f"{c:>28}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
