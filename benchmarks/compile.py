"""Whole steps, compiled, against PyTorch's as they are: `python benchmarks/compile.py [word ...] [--threads N] [--rounds R]`.

Columns: the step as it is, and by compile, each with PyTorch's (as it is) over it; then eager over compiled. With
--rival-compiled PyTorch's step goes through torch.compile, which needs a C++ compiler and takes some seconds for each."""

import importlib

import side


def small_ops(T, wrap):
    a, b = T.randn(4, requires_grad=True), T.randn(4)

    def step():
        x = a
        for _ in range(100):
            x = x * b
        x.sum().backward()
        a.grad = None
        return x

    return wrap(step)


def actor_critic(T, wrap):
    nn, F = T.nn, T.nn.functional
    body, policy, value = nn.Linear(4, 32), nn.Linear(32, 2), nn.Linear(32, 1)
    params = [*body.parameters(), *policy.parameters(), *value.parameters()]
    opt = T.optim.SGD(params, lr=1e-3, momentum=0.9)
    obs, act, ret = T.randn(5, 4), T.randint(0, 2, (5, 1)), T.randn(5, 1)

    def step():
        opt.zero_grad()
        h = T.tanh(body(obs))
        v = value(h)
        chosen = F.log_softmax(policy(h), dim=-1).gather(1, act)
        loss = -(chosen * (ret - v.detach())).mean() + 0.5 * (ret - v).pow(2).mean()
        loss.backward()
        opt.step()
        return loss

    return wrap(step)


def mlp(T, wrap):
    nn, F = T.nn, T.nn.functional
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    opt = T.optim.Adam(net.parameters())
    x, y = T.randn(32, 64), T.randint(0, 10, (32,))

    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    fast = wrap(step)
    return lambda: fast(x, y)


def deep_narrow(T, wrap):
    nn = T.nn
    net = nn.Sequential(*[layer for _ in range(30) for layer in (nn.Linear(8, 8), nn.Tanh())])
    opt = T.optim.SGD(net.parameters(), lr=0.01)
    x = T.randn(4, 8)

    def step():
        opt.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        opt.step()
        return loss

    return wrap(step)


def cell_loop(T, wrap):
    nn = T.nn
    cell = nn.Linear(16, 8)
    xs = T.randn(20, 4, 8)

    def step():
        cell.weight.grad = cell.bias.grad = None
        h = T.zeros(4, 8)
        for x in xs:
            h = T.tanh(cell(T.cat([x, h], 1)))
        loss = h.pow(2).sum()
        loss.backward()
        return loss

    return wrap(step)


def pointwise_chain(T, wrap, n=1_000_000):
    x, w = T.randn(n), T.randn(n, requires_grad=True)

    def step():
        y = T.tanh(x * w + 0.5)
        z = (y * y + T.sigmoid(w) * x).clamp(-1, 1)
        (z - y).pow(2).mean().backward()
        w.grad = None
        return y

    return wrap(step)


STEPS = {f.__name__: f for f in (small_ops, actor_critic, mlp, deep_narrow, cell_loop, pointwise_chain)}


def answer(T, request):
    importlib.import_module(f"{T.__name__}.jit")
    T.manual_seed(0)
    name, compiled = request
    run = STEPS[name](T, T.compile if compiled else lambda step: step)
    for _ in range(5):
        run()
    return {"time": side.timed(run)}


def main(arguments=None):
    parser = side.parser(__doc__)
    parser.add_argument("word", nargs="*")
    parser.add_argument("--rival-compiled", action="store_true")
    options = parser.parse_args(arguments)
    if options.worker:
        side.serve(options.worker, options.threads, answer)
        return
    with side.Pair(__file__, options) as pair:
        print(f"{'':<20}{'as it is':>24}{'compiled':>24}{'gain':>10}")
        for name in STEPS:
            if options.word and not any(word in name for word in options.word):
                continue
            ours, rival = pair.best((name, False))
            fast, rival_fast = (
                pair.best((name, True)) if options.rival_compiled else pair.best_of_ours((name, True))
            )
            by = rival_fast if options.rival_compiled else rival
            told = "".join(f"{side.cell(a['time'], b['time']):>24}" for a, b in ((ours, rival), (fast, by)))
            print(f"{name:<20}{told}{ours['time'] / fast['time']:>9.2f}x", flush=True)


if __name__ == "__main__":
    main()
