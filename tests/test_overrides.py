import pytest

import rushlight as rl
from rushlight import overrides as ours


class Loud:
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((cls.__name__, [t.__name__ for t in types]))
        return NotImplemented if args and args[0] == "decline" else "handled by " + cls.__name__


class Louder(Loud):
    pass


def function(*args, **kwargs):
    return "plain"


def test_detection():
    assert ours.has_torch_function((rl.ones(1), Loud()))
    assert not ours.has_torch_function((rl.ones(1), 3, rl.nn.Parameter(rl.ones(1))))
    assert ours.has_torch_function_unary(Loud()) and not ours.has_torch_function_variadic(1, rl.ones(1))
    assert ours.is_tensor_like(rl.ones(1)) and ours.is_tensor_like(Loud()) and not ours.is_tensor_like(3)


def test_dispatch_order_and_refusal():
    Loud.calls.clear()
    result = ours.handle_torch_function(function, (Loud(), Louder(), Loud()), 1)
    assert result == "handled by Louder"
    assert Loud.calls == [("Louder", ["Louder", "Loud"])]
    with pytest.raises(TypeError, match="no implementation found for '.*function' on types"):
        ours.handle_torch_function(function, (Loud(),), "decline")


def test_wrapping():
    wrapped = ours.wrap_torch_function(lambda x: (x,))(lambda x: "plain")
    assert wrapped(3) == "plain" and wrapped(Loud()) == "handled by Loud"


def test_listings():
    listed = ours.get_overridable_functions()
    assert rl.add in listed[rl] and rl.zeros not in listed[rl]
    assert rl.zeros in ours.get_ignored_functions()
    assert ours.resolve_name(rl.add) == "torch.add"
    assert ours.resolve_name(rl.nn.functional.relu) in ("torch.nn.functional.relu", "torch.relu")
    assert ours.resolve_name(3) is None
