"""rushlight.ops.aten: PyTorch's primitives by name."""

import pytest

import rushlight as rl


def test_names_of_every_home():
    aten = rl.ops.aten
    x = rl.arange(6.0).view(2, 3)
    assert rl.equal(aten.add.Tensor(x, x), x + x)
    assert rl.equal(aten.view.default(x, (3, 2)), x.view(3, 2))
    assert rl.equal(aten.linalg_inv(rl.eye(2)), rl.eye(2))
    assert rl.equal(aten.slice(x, 1, 0, 3, 2), x[:, ::2])
    assert rl.equal(
        aten.im2col(x.view(1, 1, 2, 3), (2, 2), (1, 1), (0, 0), (1, 1))[0, :, 0], rl.tensor([0.0, 1, 3, 4])
    )
    assert aten.add is aten.add and aten.add.Tensor == aten.add.Tensor and aten.add.Tensor != aten.add.out
    assert str(aten.add.Tensor) == "aten.add.Tensor"


def test_unknown_names():
    with pytest.raises(AttributeError):
        rl.ops.aten.no_such_op  # noqa: B018
    with pytest.raises(AttributeError):  # a library may be registered later, so its name alone is no error
        rl.ops.no_such_library.no_such_op  # noqa: B018


def test_statistics_of_batch_norm_have_the_parameters_type():
    x, half, wide = rl.ones(4, 3).half(), rl.ones(3).half(), rl.ones(3)
    assert rl.native_batch_norm(x, half, half, None, None, True, 0.1, 1e-5)[1].dtype == rl.float16
    assert rl.native_batch_norm(x, wide, wide, None, None, True, 0.1, 1e-5)[2].dtype == rl.float32
