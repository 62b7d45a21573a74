"""nn.utils beside torch's: the same parametrisations, prunings and fusions from one seed."""

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.prune")
pytestmark = pytest.mark.filterwarnings("ignore")


def both(make):
    """make(library) from one seed, for rushlight and for torch."""
    out = []
    for lib in (rl, torch):
        lib.manual_seed(5)
        out.append(make(lib))
    return out


def same(a, b):
    assert list(a.state_dict()) == list(b.state_dict())
    for (key, x), y in zip(a.state_dict().items(), b.state_dict().values()):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-4, atol=1e-5, err_msg=key)


MAKERS = {
    "weight_norm": lambda lib: lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(4, 3)),
    "weight_norm_old": lambda lib: lib.nn.utils.weight_norm(lib.nn.Conv2d(2, 3, 3)),
    "spectral_norm": lambda lib: lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(4, 3)),
    "spectral_norm_old": lambda lib: lib.nn.utils.spectral_norm(lib.nn.Linear(4, 3)),
    "l1": lambda lib: lib.nn.utils.prune.l1_unstructured(lib.nn.Linear(4, 3), "weight", 5),
    "ln": lambda lib: lib.nn.utils.prune.ln_structured(lib.nn.Linear(4, 3), "weight", 1, 2, 0),
}


@pytest.mark.parametrize("name", MAKERS)
def test_same_state_and_result(name):
    mine, theirs = both(MAKERS[name])
    same(mine, theirs)
    x = (
        np.random.default_rng(0)
        .standard_normal((2, 2, 5, 5) if "old" in name and "weight" in name else (2, 4))
        .astype("f")
    )
    np.testing.assert_allclose(
        mine(rl.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5
    )
    same(mine, theirs)


def test_orthogonal_is_orthogonal():
    rl.manual_seed(0)
    for shape in ((4, 4), (3, 5), (5, 3)):
        m = rl.nn.utils.parametrizations.orthogonal(rl.nn.Linear(*shape))
        w = m.weight.detach()
        gram = w @ w.t() if w.size(0) <= w.size(1) else w.t() @ w
        assert rl.allclose(gram, rl.eye(gram.size(0)), atol=1e-5)


def test_fused_batch_norm_gives_the_same():
    conv, bn = rl.nn.Conv2d(2, 3, 3).eval(), rl.nn.BatchNorm2d(3)
    bn(rl.randn(4, 3, 5, 5) * 2 + 1)
    bn.eval()
    x = rl.randn(1, 2, 6, 6)
    fused = rl.nn.utils.fuse_conv_bn_eval(conv, bn)
    assert rl.allclose(fused(x), bn(conv(x)), atol=1e-5)


def test_data_parallel_on_one_device():
    m = rl.nn.DataParallel(rl.nn.Linear(2, 2))
    assert list(m.state_dict()) == ["module.weight", "module.bias"]
    assert m(rl.ones(3, 2)).shape == (3, 2)


def test_removing_prunes_for_good():
    m = rl.nn.utils.prune.l1_unstructured(rl.nn.Linear(4, 3), "weight", 6)
    assert rl.nn.utils.prune.is_pruned(m)
    rl.nn.utils.prune.remove(m, "weight")
    assert list(m.state_dict()) == ["bias", "weight"]
    assert int((m.weight == 0).sum()) == 6
