import pytest

import rushlight as rl
from rushlight._core.type_info import finfo, iinfo

oracle = pytest.importorskip("torch")

FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
INTS = ["uint8", "int8", "int16", "int32", "int64"]


@pytest.mark.parametrize("name", FLOATS)
def test_finfo(name):
    mine, theirs = finfo(getattr(rl, name)), oracle.finfo(getattr(oracle, name))
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(mine, field) == getattr(theirs, field)
    assert repr(mine) == repr(theirs)
    assert mine == finfo(getattr(rl, name))


@pytest.mark.parametrize("name", INTS)
def test_iinfo(name):
    mine, theirs = iinfo(getattr(rl, name)), oracle.iinfo(getattr(oracle, name))
    for field in ("bits", "max", "min", "dtype"):
        assert getattr(mine, field) == getattr(theirs, field)
    assert repr(mine) == repr(theirs)


def test_refusals():
    assert finfo() == finfo(rl.get_default_dtype()) != finfo(rl.float64)
    assert finfo(type=rl.float32).bits == 32
    with pytest.raises(TypeError, match="requires a floating point input type"):
        finfo(rl.int32)
    with pytest.raises(TypeError, match="requires an integer input type"):
        iinfo(rl.float32)
    with pytest.raises(TypeError, match="torch.bool is not supported"):
        iinfo(rl.bool)
    with pytest.raises(TypeError, match="must be torch.dtype, not str"):
        finfo("float32")
    with pytest.raises(TypeError):
        iinfo()
    with pytest.raises(TypeError, match="unhashable"):
        hash(finfo())
    with pytest.raises(AttributeError):
        finfo().eps = 1.0
