"""x[...] and x[...] = v against NumPy, on keys drawn at random; then what NumPy has not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as rl

SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)


@st.composite
def slices(draw, size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    return slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3)))


@st.composite
def basic_keys(draw, shape):
    """Integers, slices, None and at most one Ellipsis."""
    used = draw(st.integers(0, len(shape)))
    items, dotted = [], False
    for d in range(used):
        if shape[d] and draw(st.booleans()):
            items.append(draw(st.integers(-shape[d], shape[d] - 1)))
        else:
            items.append(draw(slices(shape[d])))
        if draw(st.integers(0, 4)) == 0:
            items.append(None)
    if not dotted and draw(st.booleans()):
        items.append(Ellipsis)
    return tuple(items)


@st.composite
def advanced_keys(draw, shape):
    """Slices with index arrays that broadcast together, or one mask, among them.

    No integers: NumPy takes them for index arrays, torch for selections.
    """
    common = draw(st.sampled_from([(2,), (3,), (2, 3), (1,), (0,)]))
    items, d = [], 0
    masked = False
    while d < len(shape):
        kind = draw(st.integers(0, 3))
        if kind == 0 and not masked and not any(isinstance(i, np.ndarray) for i in items):
            k = draw(st.integers(1, len(shape) - d))
            mask = draw(
                st.lists(
                    st.booleans(),
                    min_size=int(np.prod(shape[d : d + k])),
                    max_size=int(np.prod(shape[d : d + k])),
                )
            )
            items.append(np.array(mask, dtype=bool).reshape(shape[d : d + k]))
            masked = True
            d += k
            continue
        if kind == 1 and shape[d] and not masked:
            n = int(np.prod(common))
            index = draw(st.lists(st.integers(-shape[d], shape[d] - 1), min_size=n, max_size=n))
            items.append(np.array(index, dtype=np.int64).reshape(common))
        elif kind == 2:
            items.append(draw(slices(shape[d])))
        else:
            items.append(slice(None))
        if draw(st.integers(0, 6)) == 0:
            items.append(None)
        d += 1
    return tuple(items)


def numbered(shape):
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)


def ours(key):
    return tuple(rl.tensor(k) if isinstance(k, np.ndarray) else k for k in key)


@st.composite
def cases(draw):
    shape = draw(SHAPES)
    return shape, draw(basic_keys(shape) if draw(st.booleans()) else advanced_keys(shape))


@settings(max_examples=400, deadline=None)
@given(cases())
def test_get(case):
    shape, key = case
    x = numbered(shape)
    expected = x[key]
    actual = rl.tensor(x)[ours(key)]
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.numpy(), expected)


@settings(max_examples=400, deadline=None)
@given(cases(), st.booleans())
def test_set(case, scalar):
    shape, key = case
    expected = numbered(shape)
    t = rl.tensor(expected)
    value = 7.0 if scalar else -numbered(expected[key].shape)
    t[ours(key)] = value if scalar else rl.tensor(value)
    expected[key] = value
    np.testing.assert_array_equal(t.numpy(), expected)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_gradient_of_get(case):
    shape, key = case
    x = rl.tensor(numbered(shape)).requires_grad_()
    y = x[ours(key)]
    y.backward(rl.tensor(numbered(tuple(y.shape))))
    expected = np.zeros(shape)
    np.add.at(expected, key, numbered(tuple(y.shape)))
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_gradient_of_set(case):
    shape, key = case
    x = rl.tensor(numbered(shape)).requires_grad_()
    y = x * 2
    index = np.arange(np.prod(shape)).reshape(shape)[key]
    if len(np.unique(index)) != index.size:
        return  # which of several values stays is not defined
    v = rl.tensor(numbered(index.shape)).requires_grad_()
    y[ours(key)] = v
    dy = numbered(shape)
    y.backward(rl.tensor(dy))
    left = np.array(dy * 2)
    left[key] = 0
    np.testing.assert_array_equal(x.grad.numpy(), left)
    np.testing.assert_array_equal(v.grad.numpy(), dy[key])


def test_basic_indexing_is_a_view():
    x = rl.zeros(3, 4)
    x[1:, None, ::2][0] += 1
    assert x.sum().item() == 2
    assert x[...]._is_view()


def test_bools_add_a_dimension():
    x = rl.ones(2, 3)
    assert tuple(x[True].shape) == (1, 2, 3)
    assert tuple(x[False].shape) == (0, 2, 3)
    assert tuple(x[rl.tensor(True)].shape) == (1, 2, 3)


def test_zero_dim_tensors_are_integers():
    x = rl.arange(6).reshape(2, 3)
    assert x[rl.tensor(1), rl.tensor(2)].item() == 5


def test_lists_of_sequences_are_tuples():
    x = rl.arange(6).reshape(2, 3)
    assert x[[[0, 1], [1, 2]]].tolist() == [1, 5]
    assert x[[0, 1]].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x[:, [True, False, True]].tolist() == [[0, 2], [3, 5]]


@pytest.mark.parametrize(
    ("key", "kind", "words"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        ((0, 0, 0), IndexError, "too many indices"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (1.5, IndexError, "only integers"),
        ([0, 7], IndexError, "index 7 is out of bounds for dimension 0 with size 3"),
        ([True, False], IndexError, "The shape of the mask"),
        (([0, 1], [0, 1, 2]), IndexError, "could not be broadcast"),
        (2**70, ValueError, "64 bits"),
    ],
)
def test_errors(key, kind, words):
    with pytest.raises(kind, match=words):
        rl.ones(3, 4)[key]


def test_writing_refuses_what_is_no_number():
    x = rl.ones(3)
    with pytest.raises(TypeError, match="can't assign a str"):
        x[0] = "a"
    with pytest.raises(RuntimeError):
        x[:] = rl.ones(4)
    with pytest.raises(IndexError):
        rl.tensor(1.0)[0]


def test_leading_ones_of_a_value_do_not_count():
    at = rl.tensor([0, 2])
    for key in (at, rl.tensor([True, False, True])):
        for shape in ((1, 2), (1, 1, 2), (1, 1), (1, 1, 1)):
            x, value = rl.zeros(3), rl.ones(shape, requires_grad=True)
            x[key] = value
            assert x.tolist() == [1.0, 0.0, 1.0]
            x.sum().backward()
            assert value.grad.shape == value.shape and value.grad.sum() == 2
    x = rl.zeros(3, 3)
    x[:, at] = rl.ones(1, 3, 2)
    x[at, at] = rl.full((1, 2), 2.0)
    assert x.tolist() == [[2, 0, 1], [1, 0, 1], [1, 0, 2]]
    with pytest.raises(RuntimeError, match="shape mismatch"):
        x[at] = rl.ones(2, 1, 3)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        rl.zeros(3).index_put_((at,), rl.ones(1, 2))


def test_a_write_reads_its_source_first():
    x = rl.arange(6.0)
    x[rl.tensor([0, 1, 2])] = x[rl.tensor([3, 4, 5])]
    assert x.tolist() == [3, 4, 5, 3, 4, 5]
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:] = x[:-1]
    x[1:] = x[:-1].clone()
    assert x.tolist() == [3, 3, 4, 5, 3, 4]


def test_sums_do_not_depend_on_threads():
    values, index = rl.randn(200_000), rl.randint(0, 1000, (200_000,))
    results = []
    for n in (1, 2, 4):
        before = rl.get_num_threads()
        rl.set_num_threads(n)
        results.append(rl.zeros(1000).index_add(0, index, values))
        rl.set_num_threads(before)
    assert all(bool((r == results[0]).all()) for r in results)


def test_indices_into_nothing():
    at, none = rl.tensor([5]), rl.zeros(0, 3)
    for call in (
        lambda: none.index_fill(0, at, 1.0),
        lambda: none.index_fill_(0, at, 1.0),
        lambda: none.index_copy(0, at, rl.zeros(1, 3)),
        lambda: none.index_select(0, at),
        lambda: rl.zeros(3, 0).index_select(0, at),
        lambda: rl.nn.functional.embedding(at, none),
        lambda: rl.nn.functional.embedding(at, rl.zeros(3, 0)),
    ):
        with pytest.raises(RuntimeError):
            call()
    for call in (
        lambda: rl.zeros(0).index_add(0, at, rl.zeros(1)),
        lambda: rl.zeros(0).index_select(0, at),
        lambda: none.index_reduce(0, at, rl.zeros(1, 3), "prod"),
        lambda: rl.zeros(3, 0).index_reduce(0, at, rl.zeros(1, 0), "prod"),
        lambda: rl.zeros(3).index_reduce(0, at, rl.zeros(1), "prod"),
    ):
        with pytest.raises(IndexError, match="out of bounds"):
            call()
    # Nothing is written, and nobody looks.
    assert rl.zeros(3, 0).index_fill(0, at, 1.0).shape == (3, 0)
    assert rl.zeros(0, 0).index_copy(0, at, rl.zeros(1, 0)).shape == (0, 0)
    assert none.index_select(0, at[:0]).shape == (0, 3)


def test_unique_by_its_primitives():
    x = rl.tensor([3.0, 1.0, 3.0])
    values, inverse, counts = rl._unique2(x, return_inverse=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1.0, 3.0], [1, 0, 1], [])
    assert rl._unique(x)[1].shape == (0,)
    values, inverse, counts = rl.ops.aten.unique_dim(x, 0)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1.0, 3.0], [1, 0, 1], [1, 2])
