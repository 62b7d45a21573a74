"""Steps of whole training loops, and of inference, against PyTorch: `python benchmarks/workloads.py [name ...]`.

A workload is a function of the framework T (and F, its nn.functional) that builds a network with data and returns one
step: forward, backward and optimizer, unless it says otherwise. `--scaling` shows how the step of a small network grows
with its batch and its width."""

import side

BATCHES, WIDTHS = (1, 8, 64, 512), (16, 64, 256, 1024)


def training(T, net, loss, optimizer=None):
    optimizer = optimizer or T.optim.Adam(net.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def mlp(T, F, batch, sizes):
    layers = [m for a, b in zip(sizes, sizes[1:], strict=False) for m in (T.nn.Linear(a, b), T.nn.ReLU())]
    net = T.nn.Sequential(*layers[:-1])
    x, y = T.randn(batch, sizes[0]), T.randint(0, sizes[-1], (batch,))
    return training(T, net, lambda: F.cross_entropy(net(x), y))


def tiny_regression(T, F):
    net = T.nn.Sequential(T.nn.Linear(2, 8), T.nn.Tanh(), T.nn.Linear(8, 1))
    x, y = T.randn(16, 2), T.randn(16, 1)
    return training(T, net, lambda: F.mse_loss(net(x), y), T.optim.SGD(net.parameters(), lr=0.1))


def image_cnn(T, F):
    net = T.nn.Sequential(
        *[T.nn.Conv2d(1, 32, 3), T.nn.ReLU(), T.nn.Conv2d(32, 64, 3), T.nn.ReLU(), T.nn.MaxPool2d(2)],
        *[T.nn.Dropout(0.25), T.nn.Flatten(), T.nn.Linear(9216, 128), T.nn.ReLU(), T.nn.Linear(128, 10)],
    )
    x, y = T.randn(64, 1, 28, 28), T.randint(0, 10, (64,))
    return training(T, net, lambda: F.cross_entropy(net(x), y))


def residual_net(T, F):
    def block(c_in, c_out, stride):
        body = T.nn.Sequential(
            *[T.nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), T.nn.BatchNorm2d(c_out), T.nn.ReLU()],
            *[T.nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False), T.nn.BatchNorm2d(c_out)],
        )
        skip = T.nn.Identity() if stride == 1 else T.nn.Conv2d(c_in, c_out, 1, stride, bias=False)
        return body, skip

    stem = T.nn.Conv2d(3, 32, 3, 1, 1)
    blocks = [block(32, 32, 1), block(32, 64, 2), block(64, 128, 2), block(128, 256, 2)]
    head = T.nn.Linear(256, 10)
    net = T.nn.ModuleList([stem, head, *[m for pair in blocks for m in pair]])
    x, y = T.randn(16, 3, 32, 32), T.randint(0, 10, (16,))

    def loss():
        h = F.relu(stem(x))
        for body, skip in blocks:
            h = F.relu(body(h) + skip(h))
        return F.cross_entropy(head(h.mean((2, 3))), y)

    return training(T, net, loss, T.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))


def small_gpt(T, F, train=True):
    nn, vocabulary, width, heads, context, batch = T.nn, 65, 128, 4, 64, 12

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (
                p.view(b, t, heads, -1).transpose(1, 2) for p in self.qkv(self.before(x)).split(width, 2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
            return x + self.mlp(self.between(x))

    words, positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
    blocks, head = nn.Sequential(*[Block() for _ in range(4)]), nn.Linear(width, vocabulary, bias=False)
    net = nn.ModuleList([words, positions, blocks, head])
    x, y = T.randint(0, vocabulary, (batch, context)), T.randint(0, vocabulary, (batch, context))

    def scores():
        return head(blocks(words(x) + positions.weight))

    if train:
        return training(
            T,
            net,
            lambda: F.cross_entropy(scores().view(-1, vocabulary), y.view(-1)),
            T.optim.AdamW(net.parameters()),
        )
    net.eval()

    def step():
        with T.no_grad():
            scores()

    return step


def gpt_inference(T, F):
    """Forward only."""
    return small_gpt(T, F, train=False)


def word_lstm(T, F):
    words, cells, head = T.nn.Embedding(1000, 128), T.nn.LSTM(128, 256, 2), T.nn.Linear(256, 1000)
    net = T.nn.ModuleList([words, cells, head])
    x, y = T.randint(0, 1000, (35, 20)), T.randint(0, 1000, (35 * 20,))
    return training(T, net, lambda: F.cross_entropy(head(cells(words(x))[0]).view(-1, 1000), y))


def image_gan(T, F):
    nn = T.nn
    maker = nn.Sequential(
        *[nn.ConvTranspose2d(64, 128, 4), nn.BatchNorm2d(128), nn.ReLU()],
        *[nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU()],
        *[nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU()],
        *[nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh()],
    )
    judge = nn.Sequential(
        *[nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2)],
        *[nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(128, 1, 4), nn.Flatten(0)],
    )
    a, b = T.optim.Adam(maker.parameters()), T.optim.Adam(judge.parameters())
    real, ones, zeros = T.randn(16, 3, 32, 32), T.ones(16), T.zeros(16)
    bce = F.binary_cross_entropy_with_logits

    def step():
        made = maker(T.randn(16, 64, 1, 1))
        b.zero_grad()
        (bce(judge(real), ones) + bce(judge(made.detach()), zeros)).backward()
        b.step()
        a.zero_grad()
        bce(judge(made), ones).backward()
        a.step()

    return step


def cart_policy(T, F):
    """One choice of an agent, without a batch: no_grad forward, then a sample."""
    net = T.nn.Sequential(T.nn.Linear(4, 64), T.nn.ReLU(), T.nn.Linear(64, 2))
    x = T.randn(4)

    def step():
        with T.no_grad():
            T.multinomial(net(x).softmax(-1), 1).item()

    return step


WORKLOADS = {
    "tiny regression": tiny_regression,
    "policy choice": cart_policy,
    "mlp 64 of 784-256-10": lambda T, F: mlp(T, F, 64, (784, 256, 10)),
    "cnn 64 of 28x28": image_cnn,
    "residual net 16 of 32x32": residual_net,
    "gan 16 of 32x32": image_gan,
    "lstm 35x20 of 256": word_lstm,
    "gpt 12x64 of 128": small_gpt,
    "gpt 12x64 inference": gpt_inference,
}
SCALING = {f"mlp {b} of {w}-{w}-10": (b, w) for w in WIDTHS for b in BATCHES}
CURRENT = {}


def answer(T, name):
    if name not in CURRENT:
        CURRENT.clear()
        T.manual_seed(0)
        F = T.nn.functional
        if name in WORKLOADS:
            CURRENT[name] = WORKLOADS[name](T, F)
        else:
            batch, width = SCALING[name]
            CURRENT[name] = mlp(T, F, batch, (width, width, 10))
    return {"best": side.timed(CURRENT[name], 0.2)}


def scaling(pair):
    print(f"\n{'a step of width-width-10':<28}" + "".join(f"{f'batch {b}':>24}" for b in BATCHES))
    for width in WIDTHS:
        cells = []
        for batch in BATCHES:
            ours, rival = pair.best(f"mlp {batch} of {width}-{width}-10")
            cells.append(ours if isinstance(ours, str) else side.cell(ours["best"], rival["best"]))
        print(f"{f'width {width}':<28}" + "".join(f"{c[:22]:>24}" for c in cells), flush=True)


def main(arguments=None):
    parser = side.parser(__doc__, rounds=2)
    parser.add_argument("name", nargs="*", help="words of the workloads' names")
    parser.add_argument("--scaling", action="store_true")
    options = parser.parse_args(arguments)
    if options.worker:
        side.serve(options.worker, options.threads, answer)
        return
    with side.Pair(__file__, options) as pair:
        if options.name or not options.scaling:
            print(f"{'step of':<28}{'time, times as fast':>24}")
        for name in WORKLOADS if options.name or not options.scaling else ():
            if options.name and not any(word in name for word in options.name):
                continue
            ours, rival = pair.best(name)
            text = ours if isinstance(ours, str) else side.cell(ours["best"], rival["best"])
            print(f"{name:<28}{text:>24}", flush=True)
        if options.scaling:
            scaling(pair)


if __name__ == "__main__":
    main()
