// Eigenvalues and singular values.
#include <algorithm>
#include <cmath>
#include <complex>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

// (..., n, n) of x_j - x_i, ones on the diagonal.
Tensor differences(const Tensor& x) {
  int64_t n = x.sizes()[x.dim() - 1];
  return add(sub(unsqueeze(x, -2), unsqueeze(x, -1)), identity(n, n, x.dtype(), x.device()));
}
Tensor skew(const Tensor& x) { return sub(x, mH(x)); }
bool uses_upper(const char* name, const std::string& uplo) {
  CHECK(uplo.size() == 1 && (uplo[0] == 'U' || uplo[0] == 'L' || uplo[0] == 'u' || uplo[0] == 'l'), Runtime, name,
        ": Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  return uplo[0] == 'U' || uplo[0] == 'u';
}
Tensor or_zeros(const Tensor& dy, const Tensor& like) {
  return dy.defined() ? dy : zeros(like.sizes(), like.dtype(), like.device());
}

// Complex vectors are known up to a factor of length 1 each. A function that depends on it has no derivative: that by
// the angles of the factors is the imaginary part of diag(V^H dV), given here.
void check_angles(const char* name, const char* vectors, const Tensor& by_angles) {
  if (!by_angles.has_values()) return;
  Tensor t = to_host(contiguous(detach(by_angles)));
  double most = 0;
  visit_compute(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T>) {
      const T* p = t.data<T>();
      for (int64_t i = 0; i < t.numel(); ++i) most = std::max(most, std::abs(static_cast<double>(std::imag(p[i]))));
    }
  });
  CHECK(most <= 1e-2, Runtime, name, ": The ", vectors, " in the complex case are specified up to multiplication by ",
        "e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined: by some phi its ",
        "derivative is ", most, ". Take what does not depend on it, like absolute values or v v^H.");
}

}  // namespace

// eigh: A = V diag(w) V^H        dA = V (diag(dw) + (V^H dV) / E) V^H, E_ij = w_j - w_i, nothing on the diagonal
struct EighBackward : Node {
  static constexpr const char* kName = "LinalgEighBackward0";
  static constexpr bool kStacks = true;
  static constexpr bool kUndefinedOk = true;
  Saved eigenvalues, eigenvectors;
  Grads backward(const Grads& dy) {
    Tensor w = eigenvalues.unpack(*this), v = eigenvectors.unpack(*this), vh = mH(v);
    Tensor dw = dy[0].defined() ? cast(dy[0], v.dtype()) : Tensor();
    if (!dy[1].defined()) {
      if (!dw.defined()) return {Tensor()};
      return {matmul(scale_columns(v, dw), vh)};
    }
    Tensor k = matmul(vh, dy[1]);
    if (v.is_complex()) check_angles("linalg_eigh_backward", "eigenvectors", diagonal_of(k));
    int64_t n = rows(v);
    Tensor off = sub(full({n, n}, Scalar(1), v.dtype(), v.device()), identity(n, n, v.dtype(), v.device()));
    Tensor inner = div(mul(k, off), differences(w));
    if (dw.defined()) inner = add(inner, diag_embed(dw));
    return {matmul(matmul(v, inner), vh)};
  }
  FIELDS(eigenvalues, eigenvectors)
};
static std::tuple<Tensor, Tensor> eigh_of(const char* name, const Tensor& a, const std::string& uplo, bool vectors) {
  check_square(name, a);
  check_linalg_type(name, a);
  bool upper = uses_upper(name, uplo), recorded = will_record({a});
  Tensor v = column_copy(a), w = empty(IntSpan(a.sizes().data(), a.dim() - 1), to_real(a.dtype()), a.device());
  Tensor info = empty(batch_of(a), DType::Int32, a.device());
  backend(v.device()).linalg->eigh(v.view(), w.view(), info.view(), upper, vectors || recorded);
  check_info(name, info);
  Tensor results[] = {w, v};
  record_all<EighBackward>({results, 2}, {a}, [&](auto& n) {
    n.eigenvalues = save_output(n, w, 0);
    n.eigenvectors = save_output(n, v, 1);
  });
  return {w, v};
}
std::tuple<Tensor, Tensor> eigh(const Tensor& a, const std::string& uplo) {
  return eigh_of("linalg.eigh", a, uplo, true);
}
static Tensor eigvalsh(const Tensor& a, const std::string& uplo) {
  return std::get<0>(eigh_of("linalg.eigvalsh", a, uplo, false));
}

// eig: A V = V diag(w), columns of V of length 1
// dA = V^-H (diag(dw) + (V^H dV - V^H V diag(Re diag(V^H dV))) / conj(E)) V^H, E_ij = w_j - w_i
struct EigBackward : Node {
  static constexpr const char* kName = "LinalgEigBackward0";
  static constexpr bool kStacks = true;
  static constexpr bool kUndefinedOk = true;
  Saved eigenvalues, eigenvectors;
  Grads backward(const Grads& dy) {
    Tensor w = eigenvalues.unpack(*this), v = eigenvectors.unpack(*this), vh = mH(v);
    if (!dy[0].defined() && !dy[1].defined()) return {Tensor()};
    if (!dy[1].defined()) return {solve(vh, scale_rows(vh, dy[0]))};
    Tensor k = matmul(vh, dy[1]);
    check_angles("linalg_eig_backward", "eigenvectors", diagonal_of(k));
    Tensor lengths = as_complex(real_of(diagonal_of(k)));
    int64_t n = rows(v);
    Tensor off = sub(full({n, n}, Scalar(1), v.dtype(), v.device()), identity(n, n, v.dtype(), v.device()));
    Tensor inner = div(mul(sub(k, scale_columns(matmul(vh, v), lengths)), off), conj(differences(w)));
    if (dy[0].defined()) inner = add(inner, diag_embed(dy[0]));
    return {solve(vh, matmul(inner, vh))};
  }
  FIELDS(eigenvalues, eigenvectors)
};
static bool all_finite(const Tensor& a) {
  bool finite = true;
  Tensor t = to_host(contiguous(detach(a)));
  visit_compute(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || is_complex_v<T>) {
      using R = decltype(std::abs(T()));
      const R* p = static_cast<const R*>(t.data());
      for (int64_t i = 0; i < t.numel() * static_cast<int64_t>(sizeof(T) / sizeof(R)); ++i)
        finite = finite && std::isfinite(p[i]);
    }
  });
  return finite;
}
static std::tuple<Tensor, Tensor> eig_of(const char* name, const Tensor& a, bool vectors) {
  check_square(name, a);
  check_linalg_type(name, a);
  CHECK(!a.has_values() || all_finite(a), Runtime, "torch.", name, ": input tensor should not contain infs or NaNs.");
  DType complex = to_complex(a.dtype());
  bool recorded = will_record({a});
  Tensor w = empty(IntSpan(a.sizes().data(), a.dim() - 1), complex, a.device()),
         v = column_major(a.sizes(), complex, a.device());
  Tensor info = empty(batch_of(a), DType::Int32, a.device());
  View vectors_view = v.view();
  backend(a.device()).linalg->eig(a.view(), w.view(), vectors || recorded ? &vectors_view : nullptr, info.view());
  check_info(name, info);
  Tensor results[] = {w, v};
  record_all<EigBackward>({results, 2}, {a}, [&](auto& n) {
    n.eigenvalues = save_output(n, w, 0);
    n.eigenvectors = save_output(n, v, 1);
  });
  return {w, v};
}
static std::tuple<Tensor, Tensor> eig(const Tensor& a) { return eig_of("linalg.eig", a, true); }
static Tensor eigvals(const Tensor& a) { return std::get<0>(eig_of("linalg.eigvals", a, false)); }

// svd: A = U diag(s) V^H. With K = skew(U^H dU) / E, M = skew(V^H dV) / E, E_ij = s_j^2 - s_i^2:
//   dA = U (K diag(s) + diag(s) M + diag(ds)) V^H + (I - U U^H) dU diag(1/s) V^H + U diag(1/s) dV^H (I - V V^H)
// and, complex, diag(skew(U^H dU)) / (2 s) on the inner diagonal.
struct SvdBackward : Node {
  static constexpr const char* kName = "LinalgSvdBackward0";
  static constexpr bool kStacks = true;
  static constexpr bool kUndefinedOk = true;
  Saved U, S, Vh;
  Grads backward(const Grads& dy) {
    const Tensor whole_u = U.unpack(*this), s = S.unpack(*this), whole_vh = Vh.unpack(*this);
    Tensor u = whole_u, vh = whole_vh;
    int64_t k = s.sizes()[s.dim() - 1], m = rows(u), n = cols(vh);
    if (!dy[0].defined() && !dy[1].defined() && !dy[2].defined()) return {Tensor()};
    u = narrow(u, -1, 0, k);
    vh = narrow(vh, -2, 0, k);
    Tensor sc = cast(s, u.dtype());
    if (!dy[0].defined() && !dy[2].defined()) return {matmul(scale_columns(u, cast(dy[1], u.dtype())), vh)};
    Tensor du = narrow(or_zeros(dy[0], whole_u), -1, 0, k), dvh = narrow(or_zeros(dy[2], whole_vh), -2, 0, k);
    Tensor squares = mul(s, s), e = differences(squares);
    Tensor ku = matmul(mH(u), du), kv = matmul(vh, mH(dvh)), su = skew(ku), sv = skew(kv);
    Tensor inner = add(scale_columns(div(su, e), sc), scale_rows(div(sv, e), sc));
    if (u.is_complex()) check_angles("svd_backward", "singular vectors", add(diagonal_of(ku), diagonal_of(kv)));
    int64_t size = k;
    Tensor off = sub(full({size, size}, Scalar(1), u.dtype(), u.device()), identity(size, size, u.dtype(), u.device()));
    inner = mul(inner, off);
    Tensor on_diagonal = dy[1].defined() ? cast(dy[1], u.dtype()) : Tensor();
    if (u.is_complex()) {
      Tensor phase = div(diagonal_of(su), mul(s, Scalar(2)));
      on_diagonal = on_diagonal.defined() ? add(on_diagonal, phase) : phase;
    }
    if (on_diagonal.defined()) inner = add(inner, diag_embed(on_diagonal));
    Tensor da = matmul(matmul(u, inner), vh);
    if (m > k && dy[0].defined()) da = add(da, matmul(div(sub(du, matmul(u, ku)), unsqueeze(s, -2)), vh));
    if (n > k && dy[2].defined()) da = add(da, matmul(u, div(sub(dvh, matmul(mH(kv), vh)), unsqueeze(s, -1))));
    return {da};
  }
  FIELDS(U, S, Vh)
};
static std::tuple<Tensor, Tensor, Tensor> svd_of(const char* name, const Tensor& a, bool full, bool vectors,
                                                 const std::optional<std::string>& driver) {
  check_matrix(name, a);
  check_linalg_type(name, a);
  CHECK(!driver, Runtime, name, ": keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  int64_t m = rows(a), n = cols(a), k = std::min(m, n);
  bool compute = vectors || will_record({a});
  Device device = a.device();
  Tensor s = empty(with(batch_of(a), {k}), to_real(a.dtype()), device), info = empty(batch_of(a), DType::Int32, device);
  Tensor u = column_major(with(batch_of(a), {m, full ? m : k}), a.dtype(), device),
         vh = column_major(with(batch_of(a), {full ? n : k, n}), a.dtype(), device);
  View uv = u.view(), vv = vh.view();
  backend(a.device())
      .linalg->svd(a.view(), compute ? &uv : nullptr, s.view(), compute ? &vv : nullptr, info.view(),
                   SvdDriver::DivideAndConquer);
  check_info(name, info);
  Tensor results[] = {u, s, vh};
  record_all<SvdBackward>({results, 3}, {a}, [&](auto& node) {
    node.U = save_output(node, u, 0);
    node.S = save_output(node, s, 1);
    node.Vh = save_output(node, vh, 2);
  });
  return {u, s, vh};
}
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices, std::optional<std::string> driver) {
  return svd_of("linalg.svd", a, full_matrices, true, driver);
}
static std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& a, bool full_matrices,
                                                     const std::optional<std::string>& driver) {
  return svd(a, full_matrices, driver);
}
static Tensor svdvals(const Tensor& a, const std::optional<std::string>& driver) {
  return std::get<1>(svd_of("linalg.svdvals", a, false, false, driver));
}
static std::tuple<Tensor, Tensor, Tensor> old_svd(const Tensor& a, bool some, bool compute_uv) {
  if (!compute_uv) {
    check_matrix("svd", a, "input");
    Tensor s = std::get<1>(svd_of("svd", a, false, false, std::nullopt));
    return {zeros(with(batch_of(a), {rows(a), rows(a)}), a.dtype(), a.device()), s,
            zeros(with(batch_of(a), {cols(a), cols(a)}), a.dtype(), a.device())};
  }
  auto [u, s, vh] = svd_of("svd", a, !some, true, std::nullopt);
  return {u, s, mH(vh)};
}

static const Register registered([](Ops& ops) {
  ops.def("linalg.eigh", eigh, "input, UPLO='L'", kCastFull | kExactOut | kFreeOut, R"(
    Computes eigenvalues and eigenvectors of symmetric (Hermitian) matrices: A = V diag(w) V^H.

    Returns:
        A named tuple: eigenvalues, real and ascending, and eigenvectors, the columns.

    Gradient:
        Of the eigenvectors for distinct eigenvalues only, and functions that do not depend on their sign.

    Example:
        >>> w, V = torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> w
        tensor([1., 3.]))",
          "eigenvalues, eigenvectors");
  ops.def("linalg.eigvalsh", eigvalsh, "input, UPLO='L'", kCastFull | kExactOut | kFreeOut, R"(
    Computes the eigenvalues of symmetric (Hermitian) matrices, real and ascending.

    Example:
        >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        tensor([1., 3.]))");
  ops.def("linalg.eig", eig, "input", kCastFull, R"(
    Computes eigenvalues and eigenvectors of square matrices: A v = w v.

    Returns:
        A named tuple of complex tensors: eigenvalues, in no order, and eigenvectors, the columns, of norm 1.

    Gradient:
        For distinct eigenvalues, and functions that do not depend on the phase of the eigenvectors.

    Example:
        >>> w, V = torch.linalg.eig(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
        >>> w
        tensor([0.+1.j, 0.-1.j]))",
          "eigenvalues, eigenvectors");
  ops.def("linalg.eigvals", eigvals, "input", kCastFull, R"(
    Computes the eigenvalues of square matrices; they are complex and in no order.

    Example:
        >>> torch.linalg.eigvals(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor([2.+0.j, 3.+0.j]))");
  ops.def("linalg.svd", linalg_svd, "A, full_matrices=True, *, driver=None", kCastFull | kExactOut | kFreeOut, R"(
    Factors matrices into singular values and vectors: A = U diag(S) Vh.

    Args:
        full_matrices: whether U and Vh are square, instead of having as many columns and rows as S.

    Returns:
        A named tuple: U, S (real, descending) and Vh.

    Gradient:
        Of U and Vh for distinct singular values only, functions that do not depend on the signs of the
        vectors, and without full_matrices where A is not square.

    Example:
        >>> A = torch.tensor([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
        >>> U, S, Vh = torch.linalg.svd(A, full_matrices=False)
        >>> S
        tensor([4., 3.])
        >>> torch.allclose(U @ torch.diag(S) @ Vh, A)
        True)",
          "U, S, Vh");
  ops.def("linalg.svdvals", svdvals, "A, *, driver=None", kCastFull | kExactOut | kFreeOut, R"(
    Computes the singular values of matrices, real and descending.

    Example:
        >>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor([4., 3.]))");
  ops.def("svd", old_svd, "input, some=True, compute_uv=True", kMethod | kCastFull, R"(
    Factors matrices into singular values and vectors: A = U diag(S) V^H; see torch.linalg.svd().

    Args:
        input: a matrix, or a batch of matrices.
        some: whether U and V have as many columns as S, instead of being square.
        compute_uv: whether U and V are computed; otherwise they are zeros.

    Returns:
        A named tuple: U, S (descending) and V, not its transpose.

    Example:
        >>> U, S, V = torch.svd(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        >>> S
        tensor([4., 3.]))",
          "U, S, V");
});

}  // namespace rl::ops
