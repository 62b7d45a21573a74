// LU decompositions and determinants.
#include <algorithm>
#include <complex>
#include <limits>
#include <numeric>
#include <vector>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

// The permutation matrices that LAPACK's exchanges of rows amount to: A = P L U.
Tensor permutation(const Tensor& pivots, int64_t m, DType dtype) {
  if (!pivots.has_values() || m == 0) return zeros(with(batch_of(pivots, 1), {m, m}), dtype, pivots.device());
  Tensor p = zeros(with(batch_of(pivots, 1), {m, m}), dtype), flat = to_host(contiguous(pivots));
  int64_t k = pivots.sizes()[pivots.dim() - 1];
  const int32_t* swaps = flat.data<int32_t>();
  std::vector<int64_t> order(m);
  visit_compute(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = p.template data<T>();
    for (int64_t b = 0; b < p.numel() / (m * m); ++b) {
      std::iota(order.begin(), order.end(), 0);
      for (int64_t i = 0; i < k; ++i) {
        int32_t with = swaps[b * k + i];
        CHECK(
            with >= 1 && with <= m, Runtime,
            "lu_unpack: pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. Did you properly pass "
            "the result of lu_factor?");
        std::swap(order[i], order[with - 1]);
      }
      for (int64_t i = 0; i < m; ++i) out[b * m * m + order[i] * m + i] = T(1);
    }
  });
  return to_device(p, pivots.device());
}

}  // namespace

// lu_unpack: L, U of a packed LU, linear in it
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots, bool unpack_data,
                                             bool unpack_pivots) {
  check_matrix("torch.lu_unpack", lu, "LU_data");
  CHECK(!unpack_pivots || pivots.dtype() == DType::Int32, Runtime,
        "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. Note: this function is "
        "intended to be used with the output "
        "produced by torch.linalg.lu_factor");
  int64_t m = rows(lu), n = cols(lu), k = std::min(m, n);
  Tensor p = empty({0}, lu.dtype(), lu.device()), l = p, u = p;
  if (unpack_pivots) {
    CHECK(pivots.dim() == lu.dim() - 1 && pivots.sizes()[pivots.dim() - 1] == k && batch_of(pivots, 1) == batch_of(lu),
          Runtime, "torch.lu_unpack: LU_pivots of shape ", to_text(pivots.sizes()), " does not fit LU_data of shape ",
          to_text(lu.sizes()));
    p = permutation(pivots, m, lu.dtype());
  }
  if (unpack_data) {
    l = add(tril(narrow(lu, -1, 0, k), -1), identity(m, k, lu.dtype(), lu.device()));
    u = triu(narrow(lu, -2, 0, k));
  }
  return {p, l, u};
}

// lu_factor: A = P L U, L and U packed
// square: dA = P L^-H (tril(L^H dL, -1) + triu(dU U^H)) U^-H
// wide, U = (U1 U2): dA2 = P L^-H dU2, and L^H dL loses dU2 U2^H; tall, L = (L1; L2): dA2 = dL2 U^-H, and dU U^H loses
// L2^H dL2
static Tensor lu_gradient(const Tensor& lu, const Tensor& pivots, const Tensor& d) {
  auto [p, l, u] = lu_unpack(lu, pivots, true, true);
  int64_t m = rows(lu), n = cols(lu), k = std::min(m, n);
  Tensor dl = tril(narrow(d, -1, 0, k), -1), du = triu(narrow(d, -2, 0, k));
  Tensor l1 = narrow(l, -2, 0, k), u1 = narrow(u, -1, 0, k);
  Tensor low = matmul(mH(l1), narrow(dl, -2, 0, k)), up = matmul(narrow(du, -1, 0, k), mH(u1));
  if (n > k) low = sub(low, matmul(narrow(du, -1, k, n - k), mH(narrow(u, -1, k, n - k))));
  if (m > k) up = sub(up, matmul(mH(narrow(l, -2, k, m - k)), narrow(dl, -2, k, m - k)));
  Tensor inner = solve_triangular(mH(l1), add(tril(low, -1), triu(up)), true, true, true);
  Tensor first = solve_triangular(mH(u1), inner, false, false, false);  // (k, k)
  if (n > k) first = cat({first, solve_triangular(mH(l1), narrow(du, -1, k, n - k), true, true, true)}, -1);
  if (m > k) first = cat({first, solve_triangular(mH(u1), narrow(dl, -2, k, m - k), false, false, false)}, -2);
  return matmul(p, first);
}
struct LuFactorBackward : Node {
  static constexpr const char* kName = "LinalgLuFactorExBackward0";
  static constexpr bool kStacks = true;
  Saved LU, pivots;
  Grads backward(const Grads& dy) { return {lu_gradient(LU.unpack(*this), pivots.unpack(*this), dy[0])}; }
  FIELDS(LU, pivots)
};
static std::tuple<Tensor, Tensor, Tensor> lu_factor_of(const char* name, const Tensor& a, bool pivot,
                                                       bool check_errors) {
  check_matrix(name, a);
  check_linalg_type(name, a);
  // Tiny ones are not worth the way back into LAPACK's order.
  Tensor lu = pivot && rows(a) * cols(a) > 64 ? lu_copy(a) : column_copy(a);
  Tensor pivots = empty(with(batch_of(a), {std::min(rows(a), cols(a))}), DType::Int32, a.device());
  Tensor info = empty(batch_of(a), DType::Int32, a.device());
  backend(lu.device()).linalg->lu_factor(lu.view(), pivots.view(), info.view(), pivot);
  if (lu.strides()[lu.dim() - 2] != 1) lu = column_copy(lu);  // users are given LAPACK's order
  if (check_errors) check_info(name, info);
  Tensor results[] = {lu, pivots};
  record_all<LuFactorBackward>({results, 2}, {a}, [&](auto& n) {
    n.LU = save_output(n, lu);
    n.pivots = save_output(n, pivots, 1);
  });
  return {lu, pivots, info};
}
static std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& a, bool pivot, bool check_errors) {
  return lu_factor_of("linalg.lu_factor_ex", a, pivot, check_errors);
}
static std::tuple<Tensor, Tensor> lu_factor(const Tensor& a, bool pivot) {
  auto [lu, pivots, info] = lu_factor_of("linalg.lu_factor", a, pivot, true);
  return {lu, pivots};
}
static std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& a, bool pivot) {
  auto [packed, pivots, info] = lu_factor_of("linalg.lu", a, pivot, false);
  auto [p, l, u] = lu_unpack(packed, pivots, true, pivot);
  return {p, l, u};
}

// lu_solve: A X = B (or X A = B, or with A^H) by A's LU. Composed where the LU wants a gradient.
struct LuSolveBackward : Node {
  static constexpr const char* kName = "LinalgLuSolveBackward0";
  static constexpr bool kStacks = true;
  Saved LU, pivots;
  bool left = true, adjoint = false;
  Grads backward(const Grads& dx);
  FIELDS(LU, pivots, left, adjoint)
};
static Tensor linalg_lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  const char* name = "linalg.lu_solve";
  check_square(name, lu, "LU");
  check_matrix(name, b, "B");
  check_linalg_type(name, lu);
  check_same_type(name, lu, b);
  CHECK(pivots.dtype() == DType::Int32, Runtime, name, ": pivots should be a Tensor of scalar type torch.int32");
  CHECK(cols(lu) == (left ? rows(b) : cols(b)), Runtime, name, ": Incompatible shapes of A and B for the equation ",
        left ? "AX = B" : "XA = B", " (", rows(lu), "x", cols(lu), " and ", rows(b), "x", cols(b), ")");
  CHECK(pivots.dim() == lu.dim() - 1 && pivots.sizes() == IntSpan(lu.sizes().data(), lu.dim() - 1), Runtime, name,
        ": Number of pivots per batch should be same as the dimension of the matrix");
  Ints batch = broadcast_sizes(batch_of(lu), batch_of(b));
  if (grad_enabled() && lu.requires_grad()) {
    auto [p, l, u] = lu_unpack(lu, pivots, true, true);
    if (!left) return mH(linalg_lu_solve(lu, pivots, mH(b), true, !adjoint));
    if (adjoint)
      return matmul(p, solve_triangular(mH(l), solve_triangular(mH(u), b, false, true, false), true, true, true));
    return solve_triangular(u, solve_triangular(l, matmul(mT(p), b), false, true, true), true, true, false);
  }
  if (!left) return mH(linalg_lu_solve(lu, pivots, mH(b), true, !adjoint));
  Tensor x = column_copy(b, batch);
  backend(x.device())
      .linalg->lu_solve(broadcast_batch(lu, batch).view(), broadcast_batch(pivots, batch, 1).view(), x.view(),
                        adjoint ? (b.is_complex() ? 'C' : 'T') : 'N');
  return record<LuSolveBackward>(x, {b}, [&](auto& n) {
    n.LU = save(lu);
    n.pivots = save(pivots);
    n.left = left;
    n.adjoint = adjoint;
  });
}
Grads LuSolveBackward::backward(const Grads& dx) {
  return {linalg_lu_solve(LU.unpack(*this), pivots.unpack(*this), dx[0], left, !adjoint)};
}
static Tensor lu_solve(const Tensor& b, const Tensor& lu, const Tensor& pivots) {
  return linalg_lu_solve(lu, pivots, b, true, false);
}

namespace {

// The distance of the rows or columns of a square matrix that lu_copy made.
int64_t long_stride(const Tensor& lu) { return std::max(lu.strides()[lu.dim() - 2], lu.strides()[lu.dim() - 1]); }

// The factors of U's diagonal and the sign of the exchanges.
struct Determinants {
  Tensor lu, pivots, det, sign, logabs;
};
Determinants determinants(const char* name, const Tensor& a, bool product_only = false) {
  check_square(name, a);
  check_linalg_type(name, a);
  Determinants d;
  int64_t n = cols(a);
  Device device = a.device();
  if (a.has_values() && !a.on_host()) {
    d = determinants(name, to_host(a), product_only);
    for (Tensor* t : {&d.lu, &d.pivots, &d.det, &d.sign, &d.logabs}) *t = to_device(*t, device);
    return d;
  }
  d.lu = lu_copy(a);
  d.pivots = empty(with(batch_of(a), {n}), DType::Int32, device);
  Tensor info = empty(batch_of(a), DType::Int32, device);
  d.det = empty(batch_of(a), a.dtype(), device);
  d.sign = empty(batch_of(a), a.dtype(), device);
  d.logabs = empty(batch_of(a), to_real(a.dtype()), device);
  backend(d.lu.device()).linalg->lu_factor(d.lu.view(), d.pivots.view(), info.view(), true);
  if (!a.has_values()) return d;
  visit_compute(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>) {
      using R = decltype(std::abs(T()));
      const T* lu = d.lu.template data<T>();
      const int64_t ld = long_stride(d.lu);
      const int32_t* p = d.pivots.template data<int32_t>();
      for (int64_t b = 0; b < d.det.numel(); ++b) {
        T product(1), sign(1);
        R logs(0);
        for (int64_t i = 0; i < n; ++i) {
          T u = lu[(b * n + i) * ld + i];
          bool swapped = p[b * n + i] != i + 1;
          product *= swapped ? -u : u;
          if (product_only) continue;
          R size = std::abs(u);
          sign *= size == R(0) ? T(0) : u / T(size);
          if (swapped) sign = -sign;
          logs += std::log(size);
        }
        d.det.template data<T>()[b] = product;
        d.sign.template data<T>()[b] = sign;
        d.logabs.template data<R>()[b] = logs;
      }
    }
  });
  return d;
}

// A^-H times `scale`, from the LU; zeros on U's diagonal are replaced by `tiny` where it is not 0.
Tensor scaled_inverse(const Tensor& lu, const Tensor& pivots, const Tensor& scale) {
  int64_t n = cols(lu);
  Tensor x = column_copy(mul(identity(n, n, lu.dtype(), lu.device()), unsqueeze(unsqueeze(scale, -1), -1)));
  backend(lu.device()).linalg->lu_solve(lu.view(), pivots.view(), x.view(), lu.is_complex() ? 'C' : 'T');
  return x;
}

}  // namespace

// det: y = det A        dA = dy conj(y) A^-H
struct DetBackward : Node {
  static constexpr const char* kName = "LinalgDetBackward0";
  Saved A, LU, pivots, result;
  Grads backward(const Grads& dy) {
    Tensor a = A.unpack(*this), y = result.unpack(*this);
    if ((grad_enabled() && a.requires_grad()) || !a.has_values()) {
      Tensor scale = mul(dy[0], conj(y));
      return {mul(unsqueeze(unsqueeze(scale, -1), -1), mH(inv(a)))};
    }
    // The determinant is smooth where the inverse is not: a zero pivot is taken as a tiny one, which cancels.
    Determinants d{
        to_host(LU.unpack(*this)), to_host(pivots.unpack(*this)), clone(to_host(y), MemoryFormat::Contiguous), {}, {}};
    int64_t n = cols(a);
    bool own = false;
    visit_compute(a.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (is_complex_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>) {
        using R = decltype(std::abs(T()));
        const int32_t* p = d.pivots.template data<int32_t>();
        for (int64_t b = 0; b < d.det.numel(); ++b) {
          if (d.det.template data<T>()[b] != T(0)) continue;
          if (!own) d.lu = lu_copy(d.lu), own = true;
          T* lu = d.lu.template data<T>();
          const int64_t ld = long_stride(d.lu);
          T product(1);
          for (int64_t i = 0; i < n; ++i) {
            T& u = lu[(b * n + i) * ld + i];
            if (u == T(0)) u = T(std::numeric_limits<R>::epsilon());
            product *= p[b * n + i] != i + 1 ? -u : u;
          }
          d.det.template data<T>()[b] = product;
        }
      }
    });
    return {to_device(scaled_inverse(d.lu, d.pivots, mul(to_host(dy[0]), conj(d.det))), a.device())};
  }
  Grads stacked(const Grads& dy) {
    Tensor one = full(results[0].sizes, Scalar(1), results[0].dtype, results[0].device);
    return {mul(unsqueeze(unsqueeze(dy[0], -1), -1), backward({one})[0])};
  }
  FIELDS(A, LU, pivots, result)
};
static Tensor det(const Tensor& a) {
  Determinants d = determinants("linalg.det", a, true);
  Tensor y = d.det;
  return record<DetBackward>(y, {a}, [&](auto& n) {
    n.A = save(a);
    n.LU = save(d.lu);
    n.pivots = save(d.pivots);
    n.result = save_output(n, y);
  });
}

// slogdet: sign = det / |det|, logabsdet = log |det|        dA = (dlog + i Im(conj(sign) dsign)) A^-H
struct SlogdetBackward : Node {
  static constexpr const char* kName = "LinalgSlogdetBackward0";
  static constexpr bool kStacks = true;
  Saved A, LU, pivots, sign;
  Grads backward(const Grads& dy) {
    Tensor a = A.unpack(*this), g = dy[1];
    if (a.is_complex()) {
      Tensor phase = mul(conj(sign.unpack(*this)), dy[0]);
      g = add(as_complex(g), sub(phase, as_complex(real_of(phase))));
    }
    if (lead(dy[0]) || (grad_enabled() && a.requires_grad())) return {mul(unsqueeze(unsqueeze(g, -1), -1), mH(inv(a)))};
    return {scaled_inverse(LU.unpack(*this), pivots.unpack(*this), g)};
  }
  FIELDS(A, LU, pivots, sign)
};
static std::tuple<Tensor, Tensor> slogdet(const Tensor& a) {
  Determinants d = determinants("linalg.slogdet", a);
  Tensor results[] = {d.sign, d.logabs};
  record_all<SlogdetBackward>({results, 2}, {a}, [&](auto& n) {
    n.A = save(a);
    n.LU = save(d.lu);
    n.pivots = save(d.pivots);
    n.sign = save_output(n, d.sign);
  });
  return {d.sign, d.logabs};
}

static const Register registered([](Ops& ops) {
  ops.def("linalg.lu_factor", lu_factor, "A, *, pivot=True", kExactOut | kFreeOut, R"(
    Factors matrices as lu(), in the packed form that lu_solve() takes.

    Args:
        pivot: must be True: rows are exchanged for accuracy.

    Returns:
        A named tuple: LU, both factors in one matrix, and pivots, counted from 1.

    Example:
        >>> torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        torch.return_types.linalg_lu_factor(
        LU=tensor([[3.0000, 4.0000],
                [0.3333, 0.6667]]),
        pivots=tensor([2, 2], dtype=torch.int32)))",
          "LU, pivots");
  ops.def("linalg.lu_factor_ex", lu_factor_ex, "A, *, pivot=True, check_errors=False", 0, R"(
    Factors as lu_factor(), and tells which matrices are singular instead of raising.

    Args:
        pivot: must be True: rows are exchanged for accuracy.

    Returns:
        A named tuple with the fields LU, pivots and info: 0, or the index of a zero on the diagonal of U.

    Example:
        >>> torch.linalg.lu_factor_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32))",
          "LU, pivots, info");
  ops.def("linalg.lu", lu, "A, *, pivot=True", kExactOut | kFreeOut, R"(
    Factors matrices: A = P L U with a permutation, a unit lower and an upper triangular matrix.

    Args:
        pivot: must be True: rows are exchanged for accuracy.

    Returns:
        A named tuple with the fields P, L and U.

    Example:
        >>> P, L, U = torch.linalg.lu(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> L, U
        (tensor([[1.0000, 0.0000],
                [0.3333, 1.0000]]), tensor([[3.0000, 4.0000],
                [0.0000, 0.6667]])))",
          "P, L, U");
  ops.def("lu_unpack", lu_unpack, "LU_data, LU_pivots, unpack_data=True, unpack_pivots=True", 0, R"(
    Unpacks what torch.linalg.lu_factor() returns: A = P L U.

    Args:
        LU_data: the factors.
        LU_pivots: the exchanges of rows.
        unpack_data: whether to return L and U; they are empty otherwise.
        unpack_pivots: whether to return P; it is empty otherwise.

    Returns:
        A named tuple with the fields P, L and U.

    Example:
        >>> A = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> P, L, U = torch.lu_unpack(*torch.linalg.lu_factor(A))
        >>> P @ L @ U
        tensor([[1., 2.],
                [3., 4.]]))",
          "P, L, U");
  ops.def("linalg.lu_solve", linalg_lu_solve, "LU, pivots, B, *, left=True, adjoint=False", 0, R"(
    Solves A X = B with the factors of lu_factor().

    Args:
        LU: the factors.
        pivots: the exchanges of rows.
        adjoint: whether to solve with A^H instead.

    Example:
        >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[5.0], [11.0]]))
        tensor([[1.],
                [2.]]))");
  ops.def("lu_solve", lu_solve, "input, LU_data, LU_pivots", kMethod | kCastFull, R"(
    Solves A X = input with the factors of A; the old name of torch.linalg.lu_solve().

    Args:
        input: the right-hand sides, (..., N, K).
        LU_data: the factors, from torch.linalg.lu_factor().
        LU_pivots: the exchanges of rows.

    Example:
        >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[5.0], [11.0]]))
        tensor([[1.],
                [2.]]))");
  ops.def("linalg.det", det, "A", kExactOut | kFreeOut, R"(
    Computes the determinant of square matrices.

    Gradient:
        dy * det(A) * inv(A)^H, also for singular matrices, where it is computed without the inverse.

    Example:
        >>> torch.linalg.det(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
        tensor(5.))");
  ops.def("det", det, "input", kMethod | kNoOut, R"(
    Computes the determinant of square matrices; see torch.linalg.det().

    Args:
        input: a square matrix, or a batch of them.

    Example:
        >>> torch.det(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
        tensor(5.))");
  ops.def("linalg.slogdet", slogdet, "A", kExactOut | kFreeOut, R"(
    Computes sign and logarithm of |det(A)|, where the determinant itself would overflow.

    Returns:
        A named tuple: sign, and logabsdet, which is -inf for singular matrices.

    Example:
        >>> torch.linalg.slogdet(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        torch.return_types.linalg_slogdet(
        sign=tensor(-1.),
        logabsdet=tensor(0.6931)))",
          "sign, logabsdet");
  ops.def("slogdet", slogdet, "input", kMethod, R"(
    Computes sign and logarithm of the determinant; see torch.linalg.slogdet().

    Args:
        input: a square matrix, or a batch of them.

    Returns:
        A named tuple: sign, and logabsdet, which is -inf for singular matrices.

    Example:
        >>> torch.slogdet(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        torch.return_types.slogdet(
        sign=tensor(-1.),
        logabsdet=tensor(0.6931)))",
          "sign, logabsdet");
});

}  // namespace rl::ops
