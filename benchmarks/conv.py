"""Convolutions against PyTorch, layer by layer: `python benchmarks/conv.py [word ...] [--threads N] [--rounds R]`.

Words select layers by name. Forward, gradients wrt input and wrt weight are timed separately. GFLOP/s are those
of the plain formula.

`--algorithms` compares rushlight's algorithms with each other instead: for each layer and pass the times, in ms, of all
that are applicable, fastest first, the one that is chosen marked by a star. `--dtype` and `--nhwc` change the operands,
`RUSHLIGHT_ISA` the instruction set, `--part 2/4` runs the second quarter of the layers."""

import importlib
import math

import side

PASSES = ("forward", "input", "weight")


def layers():
    """name -> (op, input sizes, weight sizes, keyword arguments)"""
    rows = {}

    def add(name, op, x, w, **arguments):
        rows[name] = (op, x, w, arguments)

    edges = {64: 56, 128: 28, 256: 14, 512: 7}
    for n in (1, 8, 32):
        add(f"resnet n{n} stem 7x7/2 3-64", "conv2d", (n, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3)
        for c, edge in edges.items():
            add(f"resnet n{n} 3x3 {c}@{edge}", "conv2d", (n, c, edge, edge), (c, c, 3, 3), padding=1)
            if c > 64:
                wide = (n, c // 2, 2 * edge, 2 * edge)
                add(f"resnet n{n} 3x3/2 {c}@{edge}", "conv2d", wide, (c, c // 2, 3, 3), stride=2, padding=1)
                add(f"resnet n{n} 1x1/2 {c}@{edge}", "conv2d", wide, (c, c // 2, 1, 1), stride=2)
    for c, edge in {64: 32, 128: 16, 256: 8, 512: 4}.items():
        add(f"cifar n16 3x3 {c}@{edge}", "conv2d", (16, c, edge, edge), (c, c, 3, 3), padding=1)
        if c > 64:
            wide = (16, c // 2, 2 * edge, 2 * edge)
            add(f"cifar n16 3x3/2 {c}@{edge}", "conv2d", wide, (c, c // 2, 3, 3), stride=2, padding=1)
            add(f"cifar n16 1x1/2 {c}@{edge}", "conv2d", wide, (c, c // 2, 1, 1), stride=2)
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
    add("conv3d 3x3x3 256@2x7x7", "conv3d", (4, 256, 2, 7, 7), (256, 256, 3, 3, 3), padding=1)
    add("text 3x100 1-100@60", "conv2d", (32, 1, 60, 100), (100, 1, 3, 100))
    add("text 5x300 1-100@60", "conv2d", (32, 1, 60, 300), (100, 1, 5, 300))
    add("17x17 16-32@20", "conv2d", (8, 16, 20, 20), (32, 16, 17, 17))
    add("transposed 7x7 100-64@2", "conv_transpose2d", (16, 100, 2, 2), (100, 64, 7, 7))
    add("dilated 3x3 128-256@8", "conv2d", (32, 128, 8, 8), (256, 128, 3, 3), padding=4, dilation=4)
    add("tiny 3x3 8@8", "conv2d", (1, 8, 8, 8), (8, 8, 3, 3), padding=1)
    return rows


CURRENT = {}


def prepare(T, name):
    op, xs, ws, kwargs = layers()[name]
    call, grad = getattr(T.nn.functional, op), T.autograd.grad
    T.manual_seed(0)
    x, w = T.randn(*xs), T.randn(*ws)
    xg, wg = x.clone().requires_grad_(), w.clone().requires_grad_()
    yx, yw = call(xg, w, **kwargs), call(x, wg, **kwargs)
    g = T.randn(*yx.shape)
    # each element of these meets every tap
    flops = 2 * (x.numel() if op.startswith("conv_transpose") else g.numel())
    for v in ws[1:]:
        flops *= v
    return {
        "flops": flops,
        "forward": lambda: call(x, w, **kwargs),
        "input": lambda: grad(yx, xg, g, retain_graph=True),
        "weight": lambda: grad(yw, wg, g, retain_graph=True),
    }


def answer(T, request):
    name, kind = request
    if name not in CURRENT:
        CURRENT.clear()
        CURRENT[name] = prepare(T, name)
    return {"best": side.timed(CURRENT[name][kind], 0.03), "flops": CURRENT[name]["flops"]}


def plain(name):
    """A layer as a convolution: pass -> its name among the passes of a convolution, and the arguments of that."""
    op, xs, ws, kwargs = layers()[name]
    rank, transposed = len(xs) - 2, op.startswith("conv_transpose")

    def each(key, default):
        value = kwargs.get(key, default)
        return (value,) * rank if isinstance(value, int) else tuple(value)

    stride, padding, dilation = each("stride", 1), each("padding", 0), each("dilation", 1)
    if transposed:  # the input pass of a convolution of its result
        sizes = zip(xs[2:], ws[2:], stride, padding, dilation, strict=True)
        result = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, k, s, p, d in sizes]
        xs = (xs[0], ws[1] * kwargs.get("groups", 1), *result)
    passes = ("input", "forward", "weight") if transposed else PASSES
    shape = (xs, ws, stride, padding, dilation, kwargs.get("groups", 1))
    return dict(zip(PASSES, passes, strict=True)), shape


def runs_of(T, shape, dtype, nhwc):
    """pass of a convolution -> function that computes it"""
    xs, ws, stride, padding, dilation, groups = shape
    T.manual_seed(0)
    x, w = (T.randn(*sizes).to(dtype) for sizes in (xs, ws))
    if nhwc and len(xs) > 3:
        x, w = (
            t.contiguous(memory_format=T.channels_last if t.dim() == 4 else T.channels_last_3d)
            for t in (x, w)
        )
    zeros = (0,) * len(stride)
    filters = w.detach().requires_grad_()
    y = T.convolution(x, filters, None, stride, padding, dilation, False, zeros, groups)
    g = T.randn(*y.shape).to(dtype)
    if nhwc and len(xs) > 3:
        g = g.contiguous(memory_format=T.channels_last if g.dim() == 4 else T.channels_last_3d)
    sizes = zip(xs[2:], g.shape[2:], ws[2:], stride, padding, dilation, strict=True)
    rest = tuple(n - ((o - 1) * s - 2 * p + d * (k - 1) + 1) for n, o, k, s, p, d in sizes)
    return {
        "forward": lambda: T.convolution(x, w, None, stride, padding, dilation, False, zeros, groups),
        "input": lambda: T.convolution(g, w, None, stride, padding, dilation, True, rest, groups),
        "weight": lambda: T.autograd.grad(y, filters, g, retain_graph=True),
    }


def compare_algorithms(names, options):
    """Prints the times of all applicable algorithms, and how much the chosen ones take above the fastest."""
    T = importlib.import_module(options.module)
    T.set_num_threads(options.threads)
    dtype, cpu, excess = getattr(T, options.dtype), T.backends.cpu, {kind: [] for kind in PASSES}
    print(f"{options.dtype}, {cpu.get_cpu_capability()}, {options.threads} threads")
    for name in names:
        kinds, shape = plain(name)
        runs = runs_of(T, shape, dtype, options.nhwc)
        for kind in PASSES:
            problem = (*shape, dtype, kinds[kind])
            chosen = cpu.conv_algorithm(*problem, channels_last=options.nhwc)
            best = dict.fromkeys(cpu.conv_algorithms(*problem, channels_last=options.nhwc), math.inf)
            for trial in range(options.rounds):
                for algorithm in sorted(best, reverse=trial % 2 == 1):
                    if trial and best[algorithm] > 4 * min(best.values()):
                        continue
                    with cpu.force_conv_algorithm(algorithm):
                        best[algorithm] = min(best[algorithm], side.timed(runs[kinds[kind]], 0.008))
            excess[kind].append(best[chosen] / min(best.values()))
            times = sorted((time, algorithm) for algorithm, time in best.items())
            cells = [f"{'*' if a == chosen else ''}{a} {t * 1e3:.3f}" for t, a in times]
            print(f"{name:<32} {kind:<8} " + "  ".join(cells), flush=True)
    for kind in PASSES:
        mean = math.exp(sum(map(math.log, excess[kind])) / len(excess[kind]))
        print(f"{kind}: the chosen ones take {mean:.3f} times as long as the fastest, in the geometric mean")


def main(arguments=None):
    parser = side.parser(__doc__, rounds=2)
    parser.add_argument("word", nargs="*")
    parser.add_argument(
        "--algorithms", action="store_true", help="compare rushlight's algorithms with each other"
    )
    parser.add_argument("--dtype", default="float32", help="with --algorithms")
    parser.add_argument("--nhwc", action="store_true", help="with --algorithms: channels_last tensors")
    parser.add_argument("--part", default="1/1", help="with --algorithms: which part of the layers, as 2/4")
    options = parser.parse_args(arguments)
    if options.worker:
        side.serve(options.worker, options.threads, answer)
        return
    names = [n for n in layers() if not options.word or any(w in n for w in options.word)]
    if options.algorithms:
        part, parts = map(int, options.part.split("/"))
        compare_algorithms(names[len(names) * (part - 1) // parts : len(names) * part // parts], options)
        return
    print(f"{'layer':<32}" + "".join(f"{kind:>28}" for kind in PASSES))
    with side.Pair(__file__, options) as pair:
        for name in names:
            cells = []
            for kind in PASSES:
                ours, rival = pair.best([name, kind])
                if isinstance(ours, str):
                    cells.append(ours[:26])
                    continue
                rate = ours["flops"] / ours["best"] * 1e-9
                cells.append(
                    f"{ours['best'] * 1e3:9.3f} ms {rate:5.0f} GF {rival['best'] / ours['best']:5.2f}x"
                )
            print(f"{name:<32}" + "".join(f"{c:>28}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
