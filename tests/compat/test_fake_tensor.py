"""FakeTensorMode: programs on shapes, types and devices alone."""

import copy
import io

import pytest

import rushlight as rl
from rushlight import nn
from rushlight._subclasses import FakeTensor, FakeTensorMode
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
)
from rushlight._subclasses.meta_utils import assert_metadata_eq


@pytest.fixture
def mode():
    return FakeTensorMode()


def test_new_tensors_are_fake(mode):
    with mode:
        x, y = rl.randn(2, 3), rl.zeros(3, dtype=rl.int64, device="cuda")
    assert isinstance(x, FakeTensor) and str(x) == "FakeTensor(..., size=(2, 3))"
    assert str(y) == "FakeTensor(..., device='cuda:0', size=(3,), dtype=torch.int64)"
    assert x.fake_mode is mode and y.device == rl.device("cuda", 0)


def test_ops_give_shapes_types_and_devices(mode):
    with mode:
        x = rl.randn(2, 3, device="cuda")
        assert (x @ x.t()).shape == (2, 2)
        assert (x > 0).dtype is rl.bool
        assert x.max(1).indices.dtype is rl.int64
        assert (x * rl.tensor(2.0)).device.type == "cuda"
        assert x.to("cpu").device.type == "cpu"
        assert x.add_(1) is x
        assert rl.empty(1).resize_(3, 4).shape == (3, 4)
        assert x[0].untyped_storage().nbytes() == 24
    assert (x + 1).shape == (2, 3)  # outside of the mode, by the class


def test_what_depends_on_values_is_refused(mode):
    with mode:
        x = rl.randn(2, 3)
        for call in (x.sum().item, lambda: bool(x.sum()), x.tolist, lambda: rl.equal(x, x)):
            with pytest.raises(DataDependentOutputException):
                call()
        for call in (x.nonzero, lambda: x[x > 0], x.unique):
            with pytest.raises(DynamicOutputShapeException):
                call()
        with pytest.raises(FakeTensorDeviceMismatchError, match="cpu and cuda:0"):
            x + rl.ones(2, 3, device="cuda")


def test_numbers_keep_their_value(mode):
    with mode:
        step = rl.tensor(3)
        step += 1
        assert step.item() == 4 and (step * 2).item() == 8
        other = step.detach()
        step.copy_(rl.randint(5, ()))
        for t in (step, other):
            with pytest.raises(DataDependentOutputException):
                t.item()


def test_modules_train(mode):
    with mode:
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 5))
        loss = nn.functional.cross_entropy(model(rl.randn(2, 3, 8, 8)), rl.tensor([0, 1]))
        loss.backward()
        for kind in (rl.optim.SGD, rl.optim.Adam, rl.optim.RMSprop):
            kind(model.parameters(), lr=0.1).step()
    for p in model.parameters():
        assert isinstance(p, nn.Parameter) and isinstance(p, FakeTensor) and p.grad.shape == p.shape
    assert isinstance(copy.deepcopy(model)[0].weight, FakeTensor)


def test_real_tensors_are_converted_once(mode):
    base = rl.ones(2, 3)
    fake, row = mode.from_tensor(base), mode.from_tensor(base[1])
    assert mode.from_tensor(base) is fake and mode.from_tensor(fake) is fake
    assert row.storage_offset() == 3 and row.elem.untyped_storage().nbytes() == 24
    parameter = mode.from_tensor(nn.Parameter(base))
    assert isinstance(parameter, nn.Parameter) and parameter.requires_grad
    transposed = mode.from_tensor(base.t())
    assert transposed.shape == (3, 2) and transposed.stride() == (1, 3)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        FakeTensorMode().from_tensor(fake)


def _same(a, b):
    assert a == b


def test_tensors_from_outside(mode):
    x = rl.ones(2)
    with mode:
        with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first"):
            x + 1
        assert str(x) == "tensor([1., 1.])"
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(x + 1, FakeTensor)


def test_fake_tensors_are_saved_as_real_ones(mode):
    with mode:
        x = rl.ones(2, 3)
        state = {"x": x, "row": x[1], "p": nn.Parameter(rl.ones(2))}
    file = io.BytesIO()
    with rl.serialization.skip_data(materialize_fake_tensors=True):
        rl.save(state, file)
    file.seek(0)
    found = rl.load(file)
    assert type(found["x"]) is rl.Tensor and found["x"].tolist() == [[0] * 3] * 2
    assert found["row"].data_ptr() == found["x"][1].data_ptr()
    assert isinstance(found["p"], nn.Parameter)


def test_metadata_that_differs():
    with pytest.raises(AssertionError):
        assert_metadata_eq(_same, rl.ones(2, 3), rl.ones(2, 3).t())
    with pytest.raises(AssertionError):
        assert_metadata_eq(_same, rl.ones(2), rl.ones(2, requires_grad=True))
    assert_metadata_eq(_same, rl.ones(2, 3), rl.empty(2, 3, device="meta"))
