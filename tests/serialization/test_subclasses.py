"""Files with tensors of user's classes: attributes in __slots__, own states, wrappers without memory."""

import io
import pickle

import pytest

import rushlight as rl
from rushlight.serialization import safe_globals


def through_file(value, *classes):
    f = io.BytesIO()
    rl.save(value, f)
    f.seek(0)
    with safe_globals(list(classes)):
        return rl.load(f)


class WithSlots(rl.Tensor):
    __slots__ = ["elem", "unset"]

    @staticmethod
    def __new__(cls, elem):
        made = rl.Tensor._make_subclass(cls, elem.to("meta"), elem.requires_grad)
        made.elem = elem
        return made


class WithState(WithSlots):
    def __getstate__(self):
        return "marker", self.elem, self.__dict__

    def __setstate__(self, state):
        marker, self.elem, self.__dict__ = state
        self.marker = marker


class Pair(rl.Tensor):
    @staticmethod
    def __new__(cls, a, b):
        return rl.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, requires_grad=a.requires_grad)

    def __init__(self, a, b):
        self.a, self.b = a, b

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        a = func(*[x.a if isinstance(x, Pair) else x for x in args], **(kwargs or {}))
        b = func(*[x.b if isinstance(x, Pair) else x for x in args], **(kwargs or {}))
        return Pair(a, b) if isinstance(a, rl.Tensor) else a


@pytest.mark.parametrize("kind", [WithSlots, WithState])
def test_slots_and_states_are_kept(kind):
    made = kind(rl.tensor([1.0, 2.0]))
    made.label = "x"
    again = through_file(made, kind)
    assert type(again) is kind and again.elem.tolist() == [1.0, 2.0] and again.label == "x"
    assert not hasattr(again, "unset")
    assert getattr(again, "marker", None) == ("marker" if kind is WithState else None)


def test_wrappers_are_kept_with_what_they_hold():
    again = through_file({"p": Pair(rl.tensor([1.0]), rl.tensor([2.0]))}, Pair)["p"]
    assert type(again) is Pair and again.shape == (1,) and again.dtype == rl.float32
    assert again.a.tolist() == [1.0] and again.b.tolist() == [2.0]


def test_refusals_name_the_class_to_allow():
    with pytest.raises(
        pickle.UnpicklingError,
        match=r"use `torch.serialization.add_safe_globals\(\[Pair\]\)` or .* to allowlist",
    ):
        through_file(Pair(rl.ones(1), rl.ones(1)))
