"""The pairs of `rushlight.testing._comparison`, which test suites of other packages derive theirs from."""

import pytest

import rushlight as rl
from rushlight import testing


def test_pairs_of_leaves_can_be_of_a_users_class():
    from rushlight.testing import _comparison as comparison

    class WordPair(comparison.Pair):
        def __init__(self, actual, expected, **options):
            self._check_inputs_isinstance(actual, expected, cls=str)
            super().__init__(actual, expected, **options)

        def compare(self):
            if self.actual.lower() != self.expected.lower():
                self._fail(AssertionError, f"words differ: {self.actual}, {self.expected}")

    kinds = (
        WordPair,
        comparison.NonePair,
        comparison.BooleanPair,
        comparison.NumberPair,
        comparison.TensorLikePair,
    )
    ours = {"a": ["x", 1.0], "b": (rl.ones(2), None)}
    assert not comparison.not_close_error_metas(
        ours, {"a": ["X", 1.0], "b": (rl.ones(2), None)}, pair_types=kinds
    )
    metas = comparison.not_close_error_metas(
        ours, {"a": ["y", 2.0], "b": (rl.zeros(2), None)}, pair_types=kinds
    )
    assert [meta.id for meta in metas] == [("a", 0), ("a", 1), ("b", 0)]
    with pytest.raises(
        AssertionError, match=r"words differ: x, y\n\nThe failure occurred for item \['a'\]\[0\]"
    ):
        raise metas[0].to_error()
    pairs = comparison.originate_pairs([1, True], [1, True], pair_types=kinds)
    assert [type(pair).__name__ for pair in pairs] == ["NumberPair", "BooleanPair"]
    with pytest.raises(AssertionError, match="1 != 2"):
        raise comparison.not_close_error_metas(1, 2)[0].to_error()


def test_pairs_compare_compressed_indices_and_values():
    a = rl.tensor([[0.0, 1], [2, 0]])
    testing.assert_close(a.to_sparse_csr(), a.to_sparse_csr())
    with pytest.raises(AssertionError, match="Sparse CSR col_indices are not equal!"):
        testing.assert_close(a.to_sparse_csr(), rl.tensor([[1.0, 0], [2, 0]]).to_sparse_csr())
    with pytest.raises(
        AssertionError, match="The number of specified values in sparse COO tensors does not match: 2 != 1"
    ):
        testing.assert_close(a.to_sparse(), rl.tensor([[0.0, 1], [0, 0]]).to_sparse())
