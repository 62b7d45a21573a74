"""torch._subclasses.meta_utils: whether tensors agree in everything but their values."""

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


def assert_metadata_eq(assert_eq, m1, m2, *, skip_symbolic=False, skip_leaf=False):
    """Calls assert_eq(a, b) for each property of two tensors, and of their gradients and bases."""
    assert_eq(m1.dtype, m2.dtype)
    if not skip_symbolic:
        assert_eq(m1.shape, m2.shape)
    assert_eq(m1.requires_grad, m2.requires_grad)
    if not skip_leaf:
        assert_eq(m1.is_leaf, m2.is_leaf)
    for name in ("is_sparse", "layout"):
        assert_eq(getattr(m1, name), getattr(m2, name))
    for name in ("is_inference", "is_conj", "is_neg"):
        assert_eq(getattr(m1, name)(), getattr(m2, name)())
    grads = [t.grad if t.is_leaf else None for t in (m1, m2)]
    assert_eq(grads[0] is not None, grads[1] is not None)
    if grads[0] is not None:
        assert_metadata_eq(assert_eq, *grads, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
    if m1.layout is rl.strided:
        if not skip_symbolic:
            assert_eq(m1.stride(), m2.stride())
            assert_eq(m1.storage_offset(), m2.storage_offset())
        assert_eq(m1._is_view(), m2._is_view())
        if m1._is_view() and m1._base is not None:
            assert_metadata_eq(
                assert_eq, m1._base, m2._base, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf
            )
    elif m1.layout is rl.sparse_coo:
        for name in ("sparse_dim", "dense_dim", "is_coalesced"):
            assert_eq(getattr(m1, name)(), getattr(m2, name)())


__getattr__ = _unsupported_attribute(__name__)
