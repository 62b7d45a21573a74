"""Ready parametrisations: orthogonal, weight_norm and spectral_norm."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from rushlight.nn.modules.module import Module
from rushlight.nn.utils import parametrize
from rushlight.nn.utils.weight_norm import norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _is_orthogonal(q: Tensor, eps: float | None = None) -> bool:
    n, k = q.size(-2), q.size(-1)
    eye = rl.eye(k, dtype=q.dtype, device=q.device)
    eps = 10.0 * n * rl.finfo(q.dtype).eps if eps is None else eps
    return rl.allclose(q.mH @ q, eye, atol=eps)


def _make_orthogonal(a: Tensor) -> Tensor:
    """The orthogonal factor of A whose triangular factor has a positive diagonal."""
    x, tau = rl.geqrf(a)
    return rl.linalg.householder_product(x, tau) * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Maps any matrix to one with orthonormal columns (or rows, where these are fewer)."""

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        tall = X.mT if wide else X
        Q = self._reflected(tall) if self.orthogonal_map == "householder" else self._rotated(tall)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _rotated(self, X: Tensor) -> Tensor:
        """The first columns of a rotation, from the lower triangle of X as a skew matrix."""
        n, k = X.shape[-2:]
        lower = rl.nn.functional.pad(X.tril(), (0, n - k))
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            return rl.matrix_exp(skew)[..., :k]
        # Cayley: (I - A/2)^-1 (I + A/2)
        half = skew / 2
        eye = rl.eye(n, dtype=X.dtype, device=X.device)
        return rl.linalg.solve(eye - half, eye + half)[..., :k]

    def _reflected(self, X: Tensor) -> Tensor:
        """A product of reflections along the columns below the diagonal, which holds the signs."""
        vectors = X.tril(-1)
        Q = rl.linalg.householder_product(vectors, 2 / (1 + vectors.square().sum(-2)))
        return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        with rl.no_grad():
            if Q.shape != self.shape:
                raise ValueError(
                    f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape "
                    f"{Q.shape}."
                )
            given = Q
            n, k = Q.size(-2), Q.size(-1)
            wide = n < k
            if wide:
                Q = Q.mT
                n, k = k, n
            if not hasattr(self, "base"):
                if self.orthogonal_map in ("cayley", "matrix_exp"):
                    raise NotImplementedError(
                        "It is not possible to assign to the matrix exponential or the Cayley parametrization when "
                        f"use_trivialization=False: it has no base (orthogonal_map={self.orthogonal_map!r})"
                    )
                reflections, tau = rl.geqrf(Q)
                signs = reflections.diagonal(dim1=-2, dim2=-1)
                signs.copy_(signs.sign() * rl.where(tau == 0, -1.0, 1.0))
                return reflections.mT if wide else reflections
            if n == k:
                Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
            else:
                # A random completion to a square orthogonal matrix.
                rest = rl.randn(*(Q.size()[:-2] + (n, n - k)), dtype=Q.dtype, device=Q.device)
                Q = _make_orthogonal(rl.cat([Q, rest], dim=-1))
            self.base = Q
            # Minus the identity is the matrix that all three maps send to the identity.
            out = rl.zeros_like(given)
            out.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return out


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a matrix of a module orthogonal: Q^T Q = I, or Q Q^T = I where it is wide.

    The matrix is computed from an unconstrained one at every use; optimizers train that one.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter. Default: 'weight'
        orthogonal_map (str): 'matrix_exp', 'cayley' or 'householder'. Default: None, 'matrix_exp' for square or
            complex matrices, else 'householder'
        use_trivialization (bool): computes relative to the value there was, which is more stable. Default: True

    Example:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(5, 3))
        >>> bool(torch.allclose(layer.weight @ layer.weight.T, torch.eye(3), atol=1e-5))
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, rl.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


class _WeightNorm(Module):
    """weight = g v / |v|."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits a parameter into length and direction, trained separately: W = g v / ||v||.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter. Default: 'weight'
        dim (int): the dimension with a length for each index; None for one length in all. Default: 0

    Example:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        >>> [tuple(p.shape) for p in layer.parametrizations.weight.parameters()]
        [(3, 1), (3, 4)]
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def load_old(
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # Files of the old form have name_g and name_v.
        old = prefix + name + "_g", prefix + name + "_v"
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(load_old)
    return module


class _SpectralNorm(Module):
    """weight / sigma(weight), sigma followed by power iteration in training."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] "
                f"but got {dim})"
            )
        if n_power_iterations < 1:
            raise ValueError(f"Expected n_power_iterations to be positive, but got {n_power_iterations}")
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim == 1:
            return  # a vector is divided by its length
        self.n_power_iterations = n_power_iterations
        matrix = self._reshape_weight_to_matrix(weight)
        for name, length in zip(("_u", "_v"), matrix.shape, strict=True):
            start = matrix.new_empty(length).normal_()
            self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
        self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        with rl.no_grad():
            for _ in range(n_power_iterations):
                # In place, so that replicas of a module share the vectors.
                self._u.copy_(F.normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mH @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, as backward may need them after the next call changed them.
        u, v = self._u.clone(), self._v.clone()
        return weight / rl.vdot(u, rl.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a parameter by its greatest singular value: W / sigma(W).

    It bounds the gain of a layer (Lipschitz constant 1), as in discriminators of GANs. sigma is estimated by
    power iterations in training; evaluation keeps the estimate.

    Args:
        module (Module): changed in place and returned.
        name (str): the parameter. Default: 'weight'
        n_power_iterations (int): iterations at each use. Default: 1
        eps (float): the least norm that vectors are divided by. Default: 1e-12
        dim (int): the dimension that makes the matrix's rows. Default: None, 1 for transposed convolutions, else 0

    Example:
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=20)
        >>> round(torch.linalg.matrix_norm(layer.weight, 2).item(), 3)
        1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, rl.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module
