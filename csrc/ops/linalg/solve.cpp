// Systems of equations: inverse, solve, triangular systems, least squares, the pseudo-inverse.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// inv: Y = A^-1        dA = -Y^H dY Y^H
struct InvBackward : Node {
  static constexpr const char* kName = "LinalgInvExBackward0";
  static constexpr bool kStacks = true;
  Saved inverse;
  Grads backward(const Grads& dy) {
    Tensor yh = mH(inverse.unpack(*this));
    return {neg(matmul(matmul(yh, dy[0]), yh))};
  }
  FIELDS(inverse)
};
static std::tuple<Tensor, Tensor> inverse_of(const char* name, const Tensor& a, bool check_errors) {
  check_square(name, a);
  check_linalg_type(name, a);
  Tensor y = column_copy(a), info = empty(batch_of(a), DType::Int32, a.device());
  backend(y.device()).linalg->inverse(y.view(), info.view());
  if (check_errors) check_info(name, info);
  return {record<InvBackward>(y, {a}, [&](auto& n) { n.inverse = save_output(n, y); }), info};
}
static std::tuple<Tensor, Tensor> inv_ex(const Tensor& a, bool check_errors) {
  return inverse_of("linalg.inv_ex", a, check_errors);
}
Tensor inv(const Tensor& a) { return std::get<0>(inverse_of("linalg.inv", a, true)); }

// solve: A X = B        dB = A^-H dX, dA = -dB X^H
struct SolveBackward : Node {
  static constexpr const char* kName = "LinalgSolveExBackward0";
  static constexpr bool kStacks = true;
  Saved A, result;
  Grads backward(const Grads& dx) {
    Grads d(2);
    d[1] = solve(mH(A.unpack(*this)), dx[0]);
    if (needs(0)) d[0] = neg(matmul(d[1], mH(result.unpack(*this))));
    return d;
  }
  FIELDS(A, result)
};
static std::tuple<Tensor, Tensor, Tensor, Tensor> solve_matrices(const char* name, const Tensor& a, const Tensor& b,
                                                                 bool check_errors) {
  CHECK(rows(a) == rows(b), Runtime, name, ": Incompatible shapes of A and B for the equation AX = B (", rows(a), "x",
        cols(a), " and ", rows(b), "x", cols(b), ")");
  Ints batch = broadcast_sizes(batch_of(a), batch_of(b));
  Tensor lu = lu_copy(a), pivots = empty(with(batch_of(a), {rows(a)}), DType::Int32, a.device());
  Tensor info = empty(batch_of(a), DType::Int32, a.device());
  Tensor x = column_copy(b, batch);
  backend(lu.device()).linalg->lu_factor(lu.view(), pivots.view(), info.view(), true);
  if (check_errors) check_info(name, info);
  backend(x.device())
      .linalg->lu_solve(broadcast_batch(lu, batch).view(), broadcast_batch(pivots, batch, 1).view(), x.view(), 'N');
  Tensor y = record<SolveBackward>(x, {a, b}, [&](auto& n) {
    n.A = save(a);
    n.result = save_output(n, x);
  });
  return {y, lu, pivots, info};
}
static bool is_vector_of(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sizes() == IntSpan(a.sizes().data(), a.dim() - 1));
}
static std::tuple<Tensor, Tensor, Tensor, Tensor> solve_full(const char* name, const Tensor& a, const Tensor& b,
                                                             bool left, bool check_errors) {
  check_square(name, a);
  check_linalg_type(name, a);
  check_same_type(name, a, b);
  CHECK(b.dim() >= 1, Runtime, name, ": The input tensor B must have at least 1 dimension");
  bool vector = is_vector_of(a, b);
  CHECK(left || !vector, Runtime, name,
        ": Vector broadcasting of the left hand side is not supported for left=False. In this case "
        "linalg.solve is equivalent to B / A.squeeze(-1)");
  Tensor b2 = vector ? unsqueeze(b, -1) : b;
  auto [x, lu, pivots, info] =
      left ? solve_matrices(name, a, b2, check_errors) : solve_matrices(name, mT(a), mT(b2), check_errors);
  if (!left) x = mT(x);
  return {vector ? squeeze(x, -1) : x, lu, pivots, info};
}
Tensor solve(const Tensor& a, const Tensor& b) { return std::get<0>(solve_full("linalg.solve", a, b, true, true)); }
static Tensor solve_op(const Tensor& a, const Tensor& b, bool left) {
  return std::get<0>(solve_full("linalg.solve", a, b, left, true));
}
static std::tuple<Tensor, Tensor> solve_ex(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  auto [x, lu, pivots, info] = solve_full("linalg.solve_ex", a, b, left, check_errors);
  return {x, info};
}

// solve_triangular: A X = B (left) or X A = B, A a triangle
// left: dB = A^-H dX, dA = -dB X^H; right: dB = dX A^-H, dA = -X^H dB; dA within the triangle
struct SolveTriangularBackward : Node {
  static constexpr const char* kName = "LinalgSolveTriangularBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  bool upper = false, left = true, unitriangular = false;
  Grads backward(const Grads& dx) {
    Grads d(2);
    d[1] = solve_triangular(mH(self.unpack(*this)), dx[0], !upper, left, unitriangular);
    if (needs(0)) {
      Tensor xh = mH(result.unpack(*this)), whole = neg(left ? matmul(d[1], xh) : matmul(xh, d[1]));
      d[0] = upper ? triu(whole, unitriangular) : tril(whole, -static_cast<int64_t>(unitriangular));
    }
    return d;
  }
  FIELDS(self, result, upper, left, unitriangular)
};
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  const char* name = "linalg.solve_triangular";
  check_square(name, a);
  check_matrix(name, b, "B");
  check_linalg_type(name, a);
  check_same_type(name, a, b);
  CHECK(cols(a) == (left ? rows(b) : cols(b)), Runtime, name, ": Incompatible shapes of A and B for the equation ",
        left ? "AX = B" : "XA = B", " (", rows(a), "x", cols(a), " and ", rows(b), "x", cols(b), ")");
  Ints batch = broadcast_sizes(batch_of(a), batch_of(b));
  Tensor x = column_copy(b, batch);
  backend(x.device()).linalg->triangular_solve(broadcast_batch(a, batch).view(), x.view(), left, upper, 'N', unit);
  return record<SolveTriangularBackward>(x, {a, b}, [&](auto& n) {
    n.self = save(a);
    n.result = save_output(n, x);
    n.upper = upper;
    n.left = left;
    n.unitriangular = unit;
  });
}
static Tensor solve_triangular_op(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  return solve_triangular(a, b, upper, left, unit);
}
// torch's older form: op(A) X = b
static std::tuple<Tensor, Tensor> triangular_solve(const Tensor& b, const Tensor& a, bool upper, bool transpose,
                                                   bool unit) {
  check_square("triangular_solve", a);
  check_matrix("triangular_solve", b, "b");
  check_linalg_type("triangular_solve", a);
  CHECK(rows(a) == rows(b), Runtime, "triangular_solve: Incompatible matrix sizes for A and b: ", to_text(a.sizes()),
        " and ", to_text(b.sizes()));
  Tensor x = transpose ? solve_triangular(mT(a), b, !upper, true, unit) : solve_triangular(a, b, upper, true, unit);
  Ints batch = broadcast_sizes(batch_of(a), batch_of(b));
  return {x, clone(expand(a, with(batch, {rows(a), cols(a)})))};
}

// pinv: P = A^+        dA = -P^H dP P^H + (I - A P) dP^H P P^H + P^H P dP^H (I - P A)
static Tensor pinv_gradient(const Tensor& a, const Tensor& p, const Tensor& dp) {
  Tensor ph = mH(p), dph = mH(dp);
  Tensor first = neg(matmul(matmul(ph, dp), ph));
  Tensor t = matmul(dph, matmul(p, ph)), s = matmul(matmul(ph, p), dph);
  Tensor second = sub(t, matmul(a, matmul(p, t))), third = sub(s, matmul(matmul(s, p), a));
  return add(first, add(second, third));
}
struct PinvBackward : Node {
  static constexpr const char* kName = "LinalgPinvBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  SavedValue atol, rtol;
  bool hermitian = false;
  Grads backward(const Grads& dp);
  FIELDS(self, atol, rtol)
};
// The tolerance of each matrix: the larger of atol and rtol times its largest value.
static double tolerance_at(const Tensor& t, int64_t index, IntSpan batch) {
  Ints strides = broadcast_strides(t, batch);
  int64_t at = 0;
  for (int64_t d = batch.size() - 1; d >= 0; index /= batch[d--]) at += index % batch[d] * strides[d];
  return t.data<double>()[at];
}
static Tensor pinv_of(const Tensor& a, const std::optional<Value>& atol, const std::optional<Value>& rtol,
                      bool hermitian) {
  const char* name = "linalg.pinv";
  check_matrix(name, a);
  check_linalg_type(name, a);
  if (hermitian) check_square(name, a);
  int64_t m = rows(a), n = cols(a), k = std::min(m, n);
  Tensor tolerances[2];
  bool given[2] = {atol.has_value(), rtol.has_value()};
  NoGrad raw;
  for (int i = 0; i < 2; ++i) {
    const std::optional<Value>& v = i ? rtol : atol;
    if (!v) continue;
    CHECK(!v->is_tensor() || !v->tensor.is_complex(), Runtime, name, ": ", i ? "rtol" : "atol",
          " tensor of complex type is not supported. Got ", info(v->tensor.dtype()).legacy);
    CHECK(!v->is_tensor() || IntSpan(broadcast_sizes(v->tensor.sizes(), batch_of(a))) == batch_of(a), Runtime, name,
          ": a tolerance of shape ", to_text(v->tensor.sizes()), " does not broadcast to the batch ",
          to_text(batch_of(a)));
    tolerances[i] = v->is_tensor() ? cast(v->tensor, DType::Float64) : full({}, v->number, DType::Float64);
  }
  Tensor y = empty(with(batch_of(a), {n, m}), a.dtype(), a.device());
  if (y.numel() == 0 || !a.has_values()) return y;
  DType real = to_real(a.dtype());
  double epsilon =
      real == DType::Float32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  // Values of each matrix, then their inverses where they exceed the tolerance.
  Tensor u, s, vh;
  if (hermitian) {
    std::tie(s, u) = eigh(a, "L");
    vh = mH(u);
  } else {
    std::tie(u, s, vh) = svd(a, false, std::nullopt);
  }
  for (Tensor& t : tolerances)
    if (t.defined()) t = to_host(t);
  Tensor values = to_host(clone(cast(s, DType::Float64), MemoryFormat::Contiguous));
  double* v = values.data<double>();
  for (int64_t i = 0; i < values.numel() / k; ++i) {
    double largest = 0;
    for (int64_t j = 0; j < k; ++j) largest = std::max(largest, std::abs(v[i * k + j]));
    double absolute = given[0] ? tolerance_at(tolerances[0], i, batch_of(a)) : 0;
    double relative = given[1]       ? tolerance_at(tolerances[1], i, batch_of(a))
                      : absolute > 0 ? 0
                                     : epsilon * static_cast<double>(std::max(m, n));
    double cut = std::max(absolute, relative * largest);
    for (int64_t j = 0; j < k; ++j) v[i * k + j] = std::abs(v[i * k + j]) > cut ? 1 / v[i * k + j] : 0;
  }
  Tensor inverses = to_device(cast(values, a.dtype()), a.device());
  return matmul(scale_columns(mH(vh), inverses), mH(u));
}
static Tensor pinv_tolerances(const Tensor& a, const std::optional<Value>& atol, const std::optional<Value>& rtol,
                              bool hermitian) {
  Tensor y = pinv_of(a, atol, rtol, hermitian);
  return record<PinvBackward>(y, {a}, [&](auto& n) {
    n.self = save(a);
    if (atol) n.atol = save(*atol);
    if (rtol) n.rtol = save(*rtol);
    n.hermitian = hermitian;
  });
}
Grads PinvBackward::backward(const Grads& dp) {
  Tensor a = self.unpack(*this);
  // Recomputed rather than saved, so that its own derivative is known.
  std::optional<Value> at, rt;
  if (atol.is_tensor || !atol.number.equals(0)) at = atol.unpack(*this);
  if (rtol.is_tensor || !rtol.number.equals(0)) rt = rtol.unpack(*this);
  return {pinv_gradient(a, pinv_tolerances(a, at, rt, hermitian), dp[0])};
}
Tensor pinv(const Tensor& a) { return pinv_tolerances(a, std::nullopt, std::nullopt, false); }
static Tensor pinv_rcond(const Tensor& a, const Value& rcond, bool hermitian) {
  return pinv_tolerances(a, Value(0.0), rcond, hermitian);
}
static Tensor pinverse(const Tensor& a, double rcond) { return pinv_tolerances(a, Value(0.0), Value(rcond), false); }

// lstsq: X = A^+ B, L = the sums of |A X - B|^2 over rows. With r = A X - B:
// dB = (A^+)^H dX - 2 r diag(dL), dA as of the pseudo-inverse with dP = dX B^H, and 2 r diag(dL) X^H
struct LstsqBackward : Node {
  static constexpr const char* kName = "LinalgLstsqBackward0";
  static constexpr bool kUndefinedOk = true;
  static constexpr bool kStacks = true;
  Saved self, B;
  Grads backward(const Grads& dy) {
    Grads d(2);
    Tensor a = self.unpack(*this), b = B.unpack(*this), p = pinv(a);
    if (dy[0].defined()) {
      if (needs(0)) d[0] = pinv_gradient(a, p, matmul(dy[0], mH(b)));
      if (needs(1)) d[1] = matmul(mH(p), dy[0]);
    }
    if (dy[1].defined() && dy[1].numel() > 0) {
      Tensor x = matmul(p, b), r = mul(sub(matmul(a, x), b), mul(cast(unsqueeze(dy[1], -2), a.dtype()), Scalar(2)));
      if (needs(0)) d[0] = d[0].defined() ? add(d[0], matmul(r, mH(x))) : matmul(r, mH(x));
      if (needs(1)) d[1] = d[1].defined() ? sub(d[1], r) : neg(r);
    }
    return d;
  }
  FIELDS(self, B)
};
static std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& a, const Tensor& b_in,
                                                        std::optional<double> rcond,
                                                        const std::optional<std::string>& driver) {
  const char* name = "torch.linalg.lstsq";
  check_linalg_type(name, a);
  CHECK(a.dim() >= 2, Runtime, name, ": input must have at least 2 dimensions.");
  CHECK(b_in.dim() >= 1, Runtime, name, ": other must have at least 1 dimension.");
  CHECK(a.dim() - b_in.dim() <= 1 && a.dim() >= b_in.dim(), Runtime, name,
        ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  check_same_type(name, a, b_in);
  std::string kind = driver.value_or("gelsy");
  CHECK(kind == "gels" || kind == "gelsy" || kind == "gelsd" || kind == "gelss", Runtime, name,
        ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  bool vector = a.dim() - 1 == b_in.dim() && b_in.sizes() == IntSpan(a.sizes().data(), a.dim() - 1);
  Tensor b = vector ? unsqueeze(b_in, -1) : b_in;
  CHECK(b.dim() == a.dim() && rows(a) == rows(b), Runtime, name,
        vector || a.dim() - 1 == b_in.dim() ? ": input.size(-2) should match other.size(-1)"
                                            : ": input.size(-2) should match other.size(-2)");
  Ints batch = broadcast_sizes(batch_of(a), batch_of(b));
  int64_t m = rows(a), n = cols(a), k = cols(b), least = std::min(m, n), most = std::max(m, n);
  Device device = a.device();
  bool knows_rank = kind != "gels", knows_values = kind == "gelsd" || kind == "gelss";
  Tensor work = column_major(with(batch, {most, k}), a.dtype(), device), info = empty(batch, DType::Int32, device);
  Tensor rank = empty(knows_rank ? batch : Ints{0}, DType::Int64, device);
  Tensor values = empty(knows_values ? with(batch, {least}) : Ints{0}, to_real(a.dtype()), device);
  DType real = to_real(a.dtype());
  double epsilon =
      real == DType::Float32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  double cut = rcond.value_or(epsilon * static_cast<double>(most));
  {
    NoGrad raw;
    fill_raw(work, Scalar(0));
    copy_into(narrow(work, -2, 0, m), broadcast_batch(b, batch));
    if (least > 0 && work.numel() > 0) {
      View rank_view = rank.view(), values_view = values.view();
      LstsqDriver which = kind == "gels"    ? LstsqDriver::Gels
                          : kind == "gelsy" ? LstsqDriver::Gelsy
                          : kind == "gelsd" ? LstsqDriver::Gelsd
                                            : LstsqDriver::Gelss;
      backend(work.device())
          .linalg->lstsq(broadcast_batch(a, batch).view(), work.view(), knows_rank ? &rank_view : nullptr,
                         knows_values ? &values_view : nullptr, info.view(), cut, which);
      check_info(name, info);
    } else {
      fill_raw(work, Scalar(0));
      if (knows_rank) fill_raw(rank, Scalar(0));
    }
  }
  Tensor x, residuals = empty({0}, real, device);
  {
    NoGrad raw;
    const Tensor ranks = rank.has_values() ? to_host(rank) : rank;
    x = clone(narrow(work, -2, 0, n));
    bool full = m > n && kind != "gelsy";
    if (full && knows_rank && rank.has_values())
      for (int64_t i = 0; i < rank.numel(); ++i) full = full && ranks.data<int64_t>()[i] == n;
    if (full) {
      Tensor rest = narrow(work, -2, n, m - n), squares = real_of(mul(rest, conj(rest)));
      Ints summed = with(batch, {1, k});
      residuals = squeeze(sum_to(squares, summed), -2);
    }
  }
  Tensor results[] = {x, residuals};
  record_all<LstsqBackward>({results, 2}, {a, b}, [&](auto& node) {
    node.self = save(a);
    node.B = save(b);
  });
  return {vector ? squeeze(x, -1) : x, residuals, rank, values};
}

static const Register registered([](Ops& ops) {
  ops.def("linalg.inv", inv, "A", kCastFull | kExactOut | kFreeOut, R"(
    Computes the inverse of square matrices. To multiply with it, solve() is faster and more precise.

    Raises:
        LinAlgError: a matrix is singular; inv_ex() tells instead.

    Example:
        >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]]))");
  ops.def("inverse", inv, "input", kMethod | kCastFull | kExactOut | kFreeOut, R"(
    Computes the inverse of square matrices; see torch.linalg.inv().

    Args:
        input: a square matrix, or a batch of them.

    Example:
        >>> torch.inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]]))");
  ops.def("linalg.inv_ex", inv_ex, "A, *, check_errors=False", kCastFull, R"(
    Computes the inverse as inv(), and tells which matrices are singular instead of raising.

    Returns:
        A named tuple: inverse, and info: 0, or the index of a zero on the diagonal of U.

    Example:
        >>> torch.linalg.inv_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32))",
          "inverse, info");
  ops.def("linalg.solve", solve_op, "A, B, *, left=True", kCastFull | kExactOut | kFreeOut, R"(
    Solves A X = B for square matrices, by LU with exchanges of rows.

    Args:
        A: square matrices (..., N, N).
        B: right-hand sides (..., N, K), or vectors (..., N).

    Raises:
        LinAlgError: a matrix is singular.

    Example:
        >>> A = torch.tensor([[3.0, 1.0], [1.0, 2.0]])
        >>> torch.linalg.solve(A, torch.tensor([9.0, 8.0]))
        tensor([2., 3.]))");
  ops.def("linalg.solve_ex", solve_ex, "A, B, *, left=True, check_errors=False", 0, R"(
    Solves as solve(), and tells which matrices are singular instead of raising.

    Args:
        A: square matrices (..., N, N).
        B: right-hand sides (..., N, K), or vectors (..., N).

    Returns:
        A named tuple: result, and info: 0, or the index of a zero on the diagonal of U.

    Example:
        >>> torch.linalg.solve_ex(torch.zeros(2, 2), torch.ones(2)).info
        tensor(1, dtype=torch.int32))",
          "result, info");
  ops.def("linalg.solve_triangular", solve_triangular_op, "input, B, *, upper, left=True, unitriangular=False",
          kExactOut | kFreeOut, R"(
    Solves A X = B for a triangular A, of which one triangle is read.

    Args:
        input: A, (..., N, N).
        B: the right-hand sides (..., N, K).
        upper: whether A is upper triangular.
        unitriangular: whether its diagonal counts as ones, and is not read.

    Example:
        >>> A = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
        >>> torch.linalg.solve_triangular(A, torch.tensor([[4.0], [8.0]]), upper=True)
        tensor([[1.],
                [2.]]))");
  ops.def("triangular_solve", triangular_solve, "input, A, upper=True, transpose=False, unitriangular=False",
          kMethod | kCastFull, R"(
    Solves A X = input for a triangular A; the old name of torch.linalg.solve_triangular().

    Args:
        input: the right-hand sides (..., N, K).
        A: triangular matrices (..., N, N).
        upper: whether A is upper triangular.
        transpose: whether to solve with A^T.
        unitriangular: whether its diagonal counts as ones, and is not read.

    Returns:
        A named tuple: solution, and cloned_coefficient, a copy of A.

    Example:
        >>> A = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
        >>> torch.linalg.solve_triangular(A, torch.tensor([[4.0], [8.0]]), upper=True)
        tensor([[1.],
                [2.]]))",
          "solution, cloned_coefficient");
  ops.def("linalg.pinv", pinv_tolerances, "input, *, atol=None, rtol=None, hermitian=False", kFreeOut, R"(
    Computes the pseudo-inverse by singular values.

    Args:
        input: a matrix, or a batch of matrices (..., M, N).
        atol: singular values up to this count as 0; None is 0.
        rtol: those up to rtol times the largest do; None takes max(M, N) times the type's precision.
        rcond: the old name of rtol.
        hermitian: whether the matrices are symmetric (Hermitian), which is faster.

    Example:
        >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
        tensor([[0.5000, 0.0000, 0.0000],
                [0.0000, 0.0000, 0.0000]]))");
  ops.def("linalg.pinv", pinv_rcond, "input, rcond, hermitian=False", kFreeOut);
  ops.def("pinverse", pinverse, "input, rcond=1e-15", kMethod | kNoOut, R"(
    Computes the pseudo-inverse; see torch.linalg.pinv().

    Args:
        input: a matrix, or a batch of matrices.
        rcond: singular values up to rcond times the largest count as 0.

    Example:
        >>> torch.pinverse(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.0000]]))");
  ops.def("linalg.lstsq", lstsq, "input, B, rcond=None, *, driver=None", kCastFull | kFreeOut, R"(
    Finds the X that minimises the norm of A X - B.

    Args:
        input: A, (..., M, N).
        rcond: singular values below rcond times the largest count as 0; None takes the type's precision.
        driver: the method of LAPACK: 'gelsy' (the default), 'gelsd', 'gelss', or 'gels' for full rank.

    Returns:
        A named tuple: solution; residuals, the squared norms, where M > N and the rank is full; rank;
        and singular_values, of the methods that compute them.

    Gradient:
        Of the solution, for full rank.

    Example:
        >>> A = torch.tensor([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
        >>> torch.linalg.lstsq(A, torch.tensor([[1.0], [2.0], [3.0]])).solution.abs().round(decimals=3)
        tensor([[0.],
                [1.]]))",
          "solution, residuals, rank, singular_values");
});

}  // namespace rl::ops
