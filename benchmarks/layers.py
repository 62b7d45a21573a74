"""Layers, forward and with backward, against PyTorch: `python benchmarks/layers.py [family ...] [--threads N] [--rounds R]`.

The last lines are the list of what is slower than PyTorch by more than 10 %."""

import side

# family -> row -> (what is made once, what is timed). `T` is the framework, `F` its nn.functional; `x` requires grad.
# Rows with an `out` are timed forward and with backward; others only as they stand.
ROWS = {
    "norm": {
        "layer_norm 768x128": ("x = leaf(768, 128); m = T.nn.LayerNorm(128)", "m(x)"),
        "layer_norm 64x1024": ("x = leaf(64, 1024); m = T.nn.LayerNorm(1024)", "m(x)"),
        "layer_norm 8x16": ("x = leaf(8, 16); m = T.nn.LayerNorm(16)", "m(x)"),
        "rms_norm 768x512": ("x = leaf(768, 512); m = T.nn.RMSNorm(512)", "m(x)"),
        "batch_norm 16x64x32x32": ("x = leaf(16, 64, 32, 32); m = T.nn.BatchNorm2d(64)", "m(x)"),
        "batch_norm 128x256": ("x = leaf(128, 256); m = T.nn.BatchNorm1d(256)", "m(x)"),
        "batch_norm eval": ("x = leaf(16, 64, 32, 32); m = T.nn.BatchNorm2d(64).eval()", "m(x)"),
        "group_norm 8x64x28x28": ("x = leaf(8, 64, 28, 28); m = T.nn.GroupNorm(8, 64)", "m(x)"),
        "instance_norm 8x32x64x64": ("x = leaf(8, 32, 64, 64); m = T.nn.InstanceNorm2d(32, affine=True)", "m(x)"),
    },
    "softmax": {
        "softmax 768x64": ("x = leaf(768, 64)", "x.softmax(-1)"),
        "softmax 64x50257": ("x = leaf(64, 50257)", "x.softmax(-1)"),
        "softmax dim 1 8x21x64x64": ("x = leaf(8, 21, 64, 64)", "x.softmax(1)"),
        "log_softmax 128x10": ("x = leaf(128, 10)", "x.log_softmax(-1)"),
        "log_softmax 512x1000": ("x = leaf(512, 1000)", "x.log_softmax(-1)"),
        "logsumexp dim 0 3x16x61": ("x = leaf(3, 16, 61)", "x.logsumexp(0)"),
        "logsumexp 256x1000": ("x = leaf(256, 1000)", "x.logsumexp(1)"),
        "cross_entropy 64x10": ("x = leaf(64, 10); y = T.randint(0, 10, (64,))", "F.cross_entropy(x, y)"),
        "cross_entropy 2048x65": ("x = leaf(2048, 65); y = T.randint(0, 65, (2048,))", "F.cross_entropy(x, y)"),
        "cross_entropy 128x50257": ("x = leaf(128, 50257); y = T.randint(0, 50257, (128,))", "F.cross_entropy(x, y)"),
        "cross_entropy 4x21x64x64": ("x = leaf(4, 21, 64, 64); y = T.randint(0, 21, (4, 64, 64))", "F.cross_entropy(x, y)"),
        "bce_with_logits 4096": ("x = leaf(4096); y = T.rand(4096)", "F.binary_cross_entropy_with_logits(x, y)"),
        "mse 64x1000": ("x = leaf(64, 1000); y = T.randn(64, 1000)", "F.mse_loss(x, y)"),
        "smooth_l1 64x1000": ("x = leaf(64, 1000); y = T.randn(64, 1000)", "F.smooth_l1_loss(x, y)"),
    },
    "activation": {
        f"{name} {shape}": (f"x = leaf({shape.replace('x', ', ')})", code)
        for name, code in {
            "gelu": "F.gelu(x)", "gelu tanh": "F.gelu(x, approximate='tanh')", "silu": "F.silu(x)", "tanh": "x.tanh()",
            "relu": "F.relu(x)", "leaky_relu": "F.leaky_relu(x, 0.2)", "elu": "F.elu(x)", "softplus": "F.softplus(x)",
            "mish": "F.mish(x)", "sigmoid": "x.sigmoid()", "hardswish": "F.hardswish(x)", "dropout": "F.dropout(x, 0.1)",
        }.items()
        for shape in ("768x512", "32x64")
    },
    "embedding": {
        "embedding 12x64 of 65x128": ("m = T.nn.Embedding(65, 128); i = T.randint(0, 65, (12, 64))", "m(i)"),
        "embedding 64x256 of 50257x256": ("m = T.nn.Embedding(50257, 256); i = T.randint(0, 50257, (64, 256))", "m(i)"),
        "embedding_bag mean 512x20": (
            "m = T.nn.EmbeddingBag(10000, 64, mode='mean'); i = T.randint(0, 10000, (512, 20))", "m(i)"),
        "embedding_bag sum offsets": (
            "m = T.nn.EmbeddingBag(10000, 64, mode='sum'); i = T.randint(0, 10000, (8192,)); o = T.arange(0, 8192, 16)",
            "m(i, o)"),
    },
    "pool": {
        "max_pool2d 64x64x24x24": ("x = leaf(64, 64, 24, 24)", "F.max_pool2d(x, 2)"),
        "max_pool2d 3 2 1 16x64x56x56": ("x = leaf(16, 64, 56, 56)", "F.max_pool2d(x, 3, 2, 1)"),
        "avg_pool2d 16x64x32x32": ("x = leaf(16, 64, 32, 32)", "F.avg_pool2d(x, 2)"),
        "adaptive_avg_pool2d 1 16x512x7x7": ("x = leaf(16, 512, 7, 7)", "F.adaptive_avg_pool2d(x, 1)"),
        "max_pool1d 32x64x256": ("x = leaf(32, 64, 256)", "F.max_pool1d(x, 2)"),
        "interpolate bilinear 8x16x32x32": (
            "x = leaf(8, 16, 32, 32)", "F.interpolate(x, scale_factor=2, mode='bilinear')"),
        "interpolate nearest 8x16x32x32": ("x = leaf(8, 16, 32, 32)", "F.interpolate(x, scale_factor=2)"),
        "grid_sample 8x3x64x64": ("x = leaf(8, 3, 64, 64); g = T.rand(8, 64, 64, 2) * 2 - 1",
                                  "F.grid_sample(x, g, align_corners=False)"),
        "pad 16x16x32x32": ("x = leaf(16, 16, 32, 32)", "F.pad(x, (1, 1, 1, 1))"),
        "pixel_shuffle 8x64x32x32": ("x = leaf(8, 64, 32, 32)", "F.pixel_shuffle(x, 2)"),
    },
    "recurrent": {
        "LSTM 32x64x64 256": ("x = leaf(32, 64, 64); m = T.nn.LSTM(64, 256, batch_first=True)", "m(x)[0]"),
        "LSTM 2 layers bidirectional": ("x = leaf(35, 20, 100); m = T.nn.LSTM(100, 100, 2, bidirectional=True)", "m(x)[0]"),
        "LSTM 1x50 of 32": ("x = leaf(50, 1, 16); m = T.nn.LSTM(16, 32)", "m(x)[0]"),
        "LSTM 16x10 of 650": ("x = leaf(10, 16, 650); m = T.nn.LSTM(650, 650)", "m(x)[0]"),
        "GRU 32x64x64 256": ("x = leaf(32, 64, 64); m = T.nn.GRU(64, 256, batch_first=True)", "m(x)[0]"),
        "RNN 32x64x64 128": ("x = leaf(32, 64, 64); m = T.nn.RNN(64, 128, batch_first=True)", "m(x)[0]"),
        "LSTMCell 16x64": ("x = leaf(16, 64); m = T.nn.LSTMCell(64, 64)", "m(x)[0]"),
        "GRUCell 16x64": ("x = leaf(16, 64); m = T.nn.GRUCell(64, 64)", "m(x)"),
    },
    "optimizer": {
        f"{name} {kind}": (f"p = net({kind!r}); o = T.optim.{name}", "o.step()")
        for name in ("Adam(p)", "AdamW(p)", "SGD(p, lr=0.1, momentum=0.9)", "RMSprop(p)", "Adagrad(p)", "Adadelta(p)")
        for kind in ("small", "large")
    },
    "other": {
        "cumsum 256x1024": ("x = leaf(256, 1024)", "x.cumsum(1)"),
        "cumsum dim 0 1024x256": ("x = leaf(1024, 256)", "x.cumsum(0)"),
        "rfft 64x1024": ("z = T.randn(64, 1024)", "T.fft.rfft(z)"),
        "rfft abs 64x1024": ("x = leaf(64, 1024)", "T.fft.rfft(x).abs()"),
        "fft2 16x64x64": ("z = T.randn(16, 64, 64)", "T.fft.fft2(z)"),
        "irfft 64x513": ("z = T.fft.rfft(T.randn(64, 1024))", "T.fft.irfft(z)"),
        "fft 1000x100": ("z = T.randn(1000, 100, dtype=T.complex64)", "T.fft.fft(z)"),
        "stft 4x16000": ("z = T.randn(4, 16000); w = T.hann_window(400)",
                         "T.stft(z, 400, 160, window=w, return_complex=True)"),
        "int matmul 128": ("z = T.randint(0, 9, (128, 128))", "z @ z"),
        "exp float64 100000": ("z = T.randn(100000, dtype=T.float64)", "z.exp()"),
        "erf float64 100000": ("z = T.randn(100000, dtype=T.float64)", "z.erf()"),
        "pow float64 100000": ("z = T.rand(100000, dtype=T.float64)", "z ** 1.7"),
        "clip_grad_norm_": ("p = net('large')", "T.nn.utils.clip_grad_norm_(p, 1.0)"),
    },
}  # fmt: skip


def prepare(T, code):
    T.manual_seed(0)

    def leaf(*size):
        return T.randn(*size).requires_grad_()

    def net(kind):
        width, depth = (32, 4) if kind == "small" else (512, 8)
        parameters = [T.nn.Parameter(T.randn(*s)) for s in [(width, width), (width,)] * depth]
        for p in parameters:
            p.grad = T.randn(*p.shape)
        return parameters

    names = {"T": T, "F": T.nn.functional, "leaf": leaf, "net": net}
    exec(code, names)
    return names


def measure(T, names, code):
    run = eval(f"lambda: {code}", names)
    result = {"forward": side.timed(run)}
    out = run()
    if not getattr(out, "requires_grad", False):
        return result
    gradient = T.ones_like(out)
    leaves = [v for v in names.values() if isinstance(v, T.Tensor) and v.requires_grad]
    leaves += list(names["m"].parameters()) if "m" in names else []

    def both():
        for v in leaves:
            v.grad = None
        run().backward(gradient)

    result["backward"] = side.timed(both)
    return result


PREPARED = {}


def answer(T, request):
    made, code = request
    if made not in PREPARED:
        PREPARED.clear()
        PREPARED[made] = prepare(T, made)
    return measure(T, PREPARED[made], code)


def main(arguments=None):
    parser = side.parser(__doc__)
    parser.add_argument("family", nargs="*", default=list(ROWS))
    parser.add_argument("--row", default="", help="only rows whose name contains this")
    options = parser.parse_args(arguments)
    if options.worker:
        side.serve(options.worker, options.threads, answer)
        return
    slower = []
    with side.Pair(__file__, options) as pair:
        for family in options.family:
            print(f"\n{family:<36}{'forward':>24}{'forward and backward':>24}")
            for name, row in ROWS[family].items():
                if options.row not in name:
                    continue
                ours, rival = pair.best(row)
                if isinstance(ours, str):
                    print(f"{name:<36}{ours[:80]}", flush=True)
                    continue
                keys = [k for k in ("forward", "backward") if k in ours and k in rival]
                print(
                    f"{name:<36}" + "".join(f"{side.cell(ours[k], rival[k]):>24}" for k in keys), flush=True
                )
                slower += [(rival[k] / ours[k], name, k) for k in keys if rival[k] < 0.9 * ours[k]]
    print(f"\nslower than {options.rival} by more than 10 %: {len(slower)}")
    for ratio, name, key in sorted(slower):
        print(f"  {ratio:5.2f}x  {name} {key}")


if __name__ == "__main__":
    main()
