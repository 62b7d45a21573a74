"""FlopCounterMode: products and convolutions are counted by module, backward included."""

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.utils.flop_counter import FlopCounterMode, register_flop_formula


def counted(run, **options):
    with FlopCounterMode(display=False, **options) as counter:
        run()
    return counter


def by_name(counter, scope="Global"):
    return {str(op): n for op, n in counter.get_flop_counts()[scope].items()}


def test_matmul():
    a, b = rl.ones(4, 8), rl.ones(8, 3)
    assert by_name(counted(lambda: a @ b)) == {"aten.mm": 192}
    assert by_name(counted(lambda: rl.bmm(rl.ones(2, 3, 4), rl.ones(2, 4, 5)))) == {"aten.bmm": 240}
    assert by_name(counted(lambda: rl.einsum("bij,bjk->bik", rl.ones(2, 3, 4), rl.ones(2, 4, 5)))) == {
        "aten.bmm": 240
    }
    assert counted(lambda: rl.einsum("ij,ij->ij", a, a)).get_total_flops() == 0
    assert counted(lambda: rl.tensordot(a, b, 1)).get_total_flops() == 192
    assert counted(lambda: rl.addmm(rl.ones(3), a, b)).get_total_flops() == 192
    assert counted(lambda: (a + a).exp().sum()).get_total_flops() == 0


def test_backward_counts_a_product_for_each_gradient():
    layer, x = nn.Linear(8, 3), rl.ones(4, 8)
    assert by_name(counted(lambda: layer(x).sum().backward())) == {"aten.addmm": 192, "aten.mm": 192}
    x.requires_grad_()
    assert counted(lambda: layer(x).sum().backward()).get_total_flops() == 576


def test_convolutions_by_module():
    net = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1, stride=2), nn.ReLU(), nn.Conv2d(6, 4, 3, groups=2))
    counter = counted(lambda: net(rl.ones(2, 3, 16, 16)))
    assert by_name(counter) == {"aten.convolution": 57024}
    assert by_name(counter, "Sequential.0") == {"aten.convolution": 41472}
    assert by_name(counter, "Sequential.2") == {"aten.convolution": 15552}
    up = nn.ConvTranspose2d(3, 5, 4, 2, 1)
    assert counted(lambda: up(rl.ones(1, 3, 8, 8))).get_total_flops() == 30720


def test_what_composed_functions_call_is_counted(capsys):
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True), rl.ones(2, 5, 8)
    with FlopCounterMode() as counter:
        attention(x, x, x)
    assert counter.get_total_flops() == 6720
    assert "MultiheadAttention" in capsys.readouterr().out
    with counter:
        pass
    assert counter.get_total_flops() == 0


def test_formulas_of_the_user():
    def formula(shape, *args, out_val=None, **kwargs):
        return 7 * shape[0]

    assert counted(lambda: rl.ones(3).exp(), custom_mapping={rl.exp: formula}).get_total_flops() == 21
    assert register_flop_formula(rl.sinh)(formula) is formula
    assert counted(lambda: rl.ones(2).sinh()).get_total_flops() == 14
    assert counted(lambda: rl.ones(2).exp()).get_total_flops() == 0


def test_hooks_go_when_the_block_ends():
    layer = nn.Linear(2, 2)
    counter = FlopCounterMode(display=False)
    with pytest.raises(ZeroDivisionError), counter:
        1 / 0  # noqa: B018
    layer(rl.ones(1, 2))
    assert counter.get_total_flops() == 0
