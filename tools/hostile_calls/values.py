"""Values that no caller should pass: lying sequences, huge numbers, objects that raise or change under the reader."""

HUGE = 2**62
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    -5,
    100,
    2**31,
    -(2**31),
    2**40,
    HUGE,
    -HUGE,
    2**63 - 1,
    -(2**63),
    2**64,
    10**30,
)
FLOATS = (0.5, -2.5, 1e30, -1e308, 5e-324, float("nan"), float("inf"), -float("inf"), 1j, complex("nan"))


class Liar:
    """A sequence whose length, items and numbers are not to be trusted."""

    def __init__(self, length, item=0):
        self.length, self.item = length, item

    def __len__(self):
        return self.length

    def __getitem__(self, at):
        if at > 50:
            raise IndexError("no more")
        return self.item


class Shrinking(list):
    """A list that loses an item each time one is looked at."""

    def __getitem__(self, at):
        value = list.__getitem__(self, at)
        self.clear()
        return value

    def __iter__(self):
        while self:
            yield self.pop()


class Number:
    """Raises, or is of the wrong type, where a number is asked for."""

    def __init__(self, what):
        self.what = what

    def give(self):
        if isinstance(self.what, Exception):
            raise self.what
        return self.what

    __index__ = __int__ = __float__ = __complex__ = __bool__ = __len__ = give


class Truncated(int):
    """An int that says it is another one."""

    def __index__(self):
        return 2**70


class Shrinker:
    """An index that empties the list in which it stands."""

    def __init__(self, owner):
        self.owner = owner

    def __index__(self):
        self.owner.clear()
        return 1


class Overriding:
    """Takes over functions, badly."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise ValueError("not with me")


class NotOverriding:
    __torch_function__ = None


class ArrayLike:
    """Promises an array that is not there."""

    __array_interface__ = {"shape": (2**40,), "typestr": "<f4", "data": (0, False), "version": 3}

    def __array__(self, *args, **kwargs):
        return "no array"


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


DEEP = nested(30000)  # more than a stack of recursive calls holds


def own_item():
    value = [1]
    value.append(value)
    return value


def emptied():
    value = []
    value += [1, Shrinker(value), 2, 3]
    return value


def hostile_objects():
    return (
        Liar(-1), Liar(3), Liar(2**40), Liar(2, None), Liar(2, []), Shrinking([1, 2, 3]), Shrinking([[1], [2]]), emptied(),
        Number(ValueError("hostile")), Number("x"), Number(2**70), Number(-1), Number(None), Truncated(3), Overriding(), NotOverriding(),
        ArrayLike(), nested(60), DEEP, own_item(), [own_item(), 1], (Number(1),) * 3, memoryview(b"abc"), bytearray(3), type, NotImplemented,
    )  # fmt: skip


def hostile_values(rl, np):
    return (
        *hostile_objects(),
        *NUMBERS, *FLOATS, None, True, False, "", "x", "mean", "sum", "none", b"x", (), [], [1, 2], [-1], [0, 0], (HUGE, HUGE),
        [2**31, 2**31], [None], [[1], [2, [3]]], [0.5], ["a"], object(), rl.float32, rl.int64, rl.bool, rl.complex64, rl.float16,
        rl.device("cpu"), rl.device("meta"), slice(None), {}, {"a": 1}, np.zeros(3), np.zeros((0, 2)), np.float32(2), np.int8(-1), ...,
        range(3), [1] * 70, (1,) * 5000, int, lambda *a: a, rl.preserve_format, rl.strided, rl.default_generator, slice(HUGE, -HUGE), slice(None, None, HUGE), slice(0, 2**64),
        slice(None, None, -1), (slice(None), [0, 5]), (None,) * 80, (..., ...), (True, False), (slice(1, None), None, 0), [True, False, True], ([0], [[1]]),
    )  # fmt: skip
