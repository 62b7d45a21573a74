"""Singular values of matrices of low rank."""

import rushlight as rl


def test_none_is_the_default_number_of_iterations():
    a = rl.randn(6, 4, dtype=rl.float64)
    u, s, v = rl.svd_lowrank(a, q=4, niter=None)
    assert rl.allclose(u @ rl.diag(s) @ v.T, a)
