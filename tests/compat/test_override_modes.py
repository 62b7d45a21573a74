"""Modes and classes with __torch_function__: who is asked, in which order, and how it is switched off."""

import pytest

import rushlight as torch
from rushlight import overrides
from rushlight.overrides import TorchFunctionMode


class Logs(TorchFunctionMode):
    def __init__(self, log, name="mode", answer=None):
        self.log, self.name, self.answer = log, name, answer

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(self.name)
        return self.answer if self.answer is not None else func(*args, **(kwargs or {}))


class Sub(torch.Tensor):
    pass


def test_one_mode_entered_twice_is_asked_twice():
    log = []
    with Logs(log) as mode, mode:
        torch.zeros(2)
    assert log == ["mode", "mode"]


def test_the_innermost_mode_comes_first():
    log = []
    with Logs(log, "outer") as outer, Logs(log, "inner") as inner:
        torch.zeros(2)
        assert overrides._get_current_function_mode() is inner
        assert overrides._get_current_function_mode_stack() == [outer, inner]
    assert log == ["inner", "outer"]
    assert overrides._get_current_function_mode() is None


def test_a_mode_that_declines_leaves_the_call_to_the_class():
    log, x = [], torch.ones(2)
    with (
        Logs(log, answer=NotImplemented),
        pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.neg'"),
    ):
        torch.neg(x)

    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "class"

    with Logs(log, answer=NotImplemented):
        assert torch.neg(Answers()) == "class"
        assert torch.einsum("i", Answers()) == "class"
    assert len(log) == 3


def test_a_mode_needs_a_plain_method():
    class Wrong(TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1

    with pytest.raises(RuntimeError, match="classmethod is not supported"), Wrong():
        torch.ones(1)


@pytest.mark.parametrize(
    "switch, seen, kind",
    [
        (torch._C.DisableTorchFunctionSubclass, ["mode"], torch.Tensor),
        (torch._C.DisableTorchFunction, [], torch.Tensor),
    ],
)
def test_switches(switch, seen, kind):
    log = []
    x = torch.ones(2).as_subclass(Sub)
    with Logs(log), switch():
        assert type(torch.neg(x)) is kind
        assert torch._C._is_torch_function_all_disabled() == (seen == [])
        with overrides._enable_torch_function(), torch._C.DisableTorchFunction():
            torch.neg(x)
    assert log == seen
    assert type(torch.neg(x)) is Sub
    with switch():
        guard = torch._C._EnableTorchFunction()
        assert type(torch.neg(x)) is Sub
        del guard
        assert type(torch.neg(x)) is kind


def test_python_functions_see_modes():
    def double(x):
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(double, (x,), x)
        return x + x

    log = []
    with Logs(log, answer=7):
        assert double(torch.ones(1)) == 7
    assert overrides.has_torch_function_unary(torch.ones(1)) is False
    with pytest.raises(TypeError, match="expected a sequence"):
        overrides.has_torch_function(object())


def test_lists_of_functions():
    table = overrides.get_overridable_functions()
    assert torch.add in table[torch] and torch.Tensor.add in table[torch.Tensor]
    assert torch.Tensor.shape.__get__ in table[torch.Tensor]
    assert not overrides.get_ignored_functions() & {f for fs in table.values() for f in fs}
    stand_ins = overrides.get_testing_overrides()
    assert stand_ins[torch.add](1, 2) == -1
    for function, name in [
        (torch.add, "torch.add"),
        (torch.absolute, "torch.absolute"),
        (torch.Tensor.add, "torch.Tensor.add"),
        (torch.linalg.inv, "torch.linalg.inv"),
        (torch.Tensor.shape.__get__, "torch.Tensor.shape.__get__"),
    ]:
        assert overrides.resolve_name(function) == name
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert not overrides.is_tensor_method_or_property(torch.add)


@pytest.mark.parametrize(
    "function, name, module",
    [
        (torch.linalg.inv, "linalg_inv", "_C._linalg"),
        (torch.fft.fft, "fft_fft", "_C._fft"),
        (torch.special.erf, "special_erf", "_C._special"),
        (torch.absolute, "absolute", ""),
        (torch.einsum, "einsum", "functional"),
    ],
)
def test_names_of_functions(function, name, module):
    import pickle

    assert function.__name__ == name
    assert function.__module__.partition(".")[2] == module
    assert pickle.loads(pickle.dumps(function)) is function


def test_methods_and_functions_are_distinguished():
    import pickle

    log = []

    class Sees(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 3)
    with Sees():
        x.cov()
        torch.cov(x)
    assert log[0] is torch.Tensor.cov and log[1] is torch.cov and torch.cov is not torch.Tensor.cov
    assert overrides.resolve_name(torch.cov) == "torch.cov"
    assert overrides.resolve_name(torch.Tensor.cov) == "torch.Tensor.cov"
    assert pickle.loads(pickle.dumps(torch.Tensor.cov)) is torch.Tensor.cov


def test_initialisers_and_methods_of_sparse_tensors_are_taken_over():
    class Answers(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, sorted(kwargs or {})

    x = torch.ones(2).as_subclass(Answers)
    assert torch.nn.init.constant_(x, 3) == ("constant_", ["tensor", "val"])
    assert torch.nn.init.uniform_(x, b=2) == ("uniform_", ["b", "tensor"])
    assert x.coalesce() == ("coalesce", [])
    assert torch.nn.init.constant_(torch.ones(2), 3).tolist() == [3.0, 3.0]
