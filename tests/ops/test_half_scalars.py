"""float16 and bfloat16 tensors with Python numbers: the number keeps its digits, only the result is rounded."""

import pytest

import rushlight as rl

SHORT = (rl.float16, rl.bfloat16)
NUMBERS = (0.1, 1.0013, 3.14159, -7.3, 1001)


def values(dtype, shape=(50, 8)):
    rl.manual_seed(0)
    return (rl.randn(*shape) * 3).to(dtype)


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("number", NUMBERS)
def test_products_and_quotients(dtype, number):
    x = values(dtype)
    f = x.float()
    product, quotient = (f * number).to(dtype), (f / number).to(dtype)
    assert rl.equal(x * number, product) and rl.equal(number * x, product)
    assert rl.equal(x / number, quotient)
    assert rl.equal(number / x, (x.reciprocal().float() * number).to(dtype))
    assert rl.equal(x * rl.tensor(float(number)), product) and rl.equal(
        x / rl.tensor(float(number)), quotient
    )
    assert rl.equal(x[:, ::2] * number, product[:, ::2]) and rl.equal(x.t() / number, quotient.t())
    assert rl.equal(x.clone().mul_(number), product) and rl.equal(x.clone().div_(number), quotient)
    assert rl.equal(x[0, 0] * number, product[0, 0])
    for y in (x * number, x / number, number / x):
        assert y.dtype == dtype


@pytest.mark.parametrize("dtype", SHORT)
def test_special_values(dtype):
    inf, nan = float("inf"), float("nan")
    x = rl.tensor([0.0, -0.0, 1.0, -inf, nan], dtype=dtype)

    def text(t):
        return [str(v) for v in t.tolist()]

    assert text(x * 2.5) == ["0.0", "-0.0", "2.5", "-inf", "nan"]
    assert text(x * -1.0) == ["-0.0", "0.0", "-1.0", "inf", "nan"]
    assert text(x * inf) == ["nan", "nan", "inf", "-inf", "nan"]
    assert text(x / 0) == ["nan", "nan", "inf", "-inf", "nan"]
    assert text(x / inf) == ["0.0", "-0.0", "0.0", "nan", "nan"]
    assert text(x / 1e-40)[2:4] == ["inf", "-inf"]
    assert (x * (1 + 2j)).dtype.is_complex


@pytest.mark.parametrize("dtype", SHORT)
def test_gradients(dtype):
    x = values(dtype).requires_grad_()
    scale = rl.tensor(0.1, requires_grad=True)
    (x * 0.1 + x / 3.14159).float().sum().backward()
    assert rl.allclose(x.grad.float(), rl.full_like(x, 0.1 + 1 / 3.14159).float(), rtol=1e-2)
    (x * scale).float().sum().backward()
    assert scale.grad.dtype == rl.float32
    assert scale.grad.item() == pytest.approx(x.detach().float().sum().item(), rel=2e-2)
