// Positive-definite and symmetric matrices: Cholesky's factor, LDL.
#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// cholesky: A = L L^H        dA = sym(L^-H phi(L^H dL) L^-1), phi: lower triangle, diagonal halved
struct CholeskyBackward : Node {
  static constexpr const char* kName = "LinalgCholeskyExBackward0";
  static constexpr bool kStacks = true;
  Saved L;
  bool upper = false;
  Grads backward(const Grads& dy) {
    Tensor l = L.unpack(*this), d = dy[0];
    if (upper) l = mH(l), d = mH(d);
    Tensor product = matmul(mH(l), d);
    Tensor phi = mul(add(tril(product), tril(product, -1)), Scalar(0.5));
    Tensor left = solve_triangular(mH(l), phi, true, true, false);
    Tensor s = solve_triangular(l, left, false, false, false);
    return {mul(add(s, mH(s)), Scalar(0.5))};
  }
  FIELDS(L, upper)
};
static std::tuple<Tensor, Tensor> cholesky_of(const char* name, const Tensor& a, bool upper, bool check_errors) {
  check_square(name, a);
  check_linalg_type(name, a);
  Tensor l = column_copy(a), info = empty(batch_of(a), DType::Int32, a.device());
  backend(l.device()).linalg->cholesky(l.view(), info.view(), upper);
  if (check_errors) check_info(name, info);
  Tensor y = record<CholeskyBackward>(l, {a}, [&](auto& n) {
    n.L = save_output(n, l);
    n.upper = upper;
  });
  return {y, info};
}
static std::tuple<Tensor, Tensor> cholesky_ex(const Tensor& a, bool upper, bool check_errors) {
  return cholesky_of("linalg.cholesky_ex", a, upper, check_errors);
}
static Tensor linalg_cholesky(const Tensor& a, bool upper) {
  return std::get<0>(cholesky_of("linalg.cholesky", a, upper, true));
}
static Tensor cholesky(const Tensor& a, bool upper) { return std::get<0>(cholesky_of("cholesky", a, upper, true)); }

// cholesky_solve: A X = B with A = L L^H (or U^H U)        dB = A^-1 dX, dA = -dB X^H, dL = (dA + dA^H) L (or U (dA +
// dA^H))
static Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper);
struct CholeskySolveBackward : Node {
  static constexpr const char* kName = "CholeskySolveBackward0";
  static constexpr bool kStacks = true;
  Saved input2, result;
  bool upper = false;
  Grads backward(const Grads& dx) {
    Tensor l = input2.unpack(*this);
    Grads d(2);
    d[0] = cholesky_solve(dx[0], l, upper);
    if (needs(1)) {
      Tensor da = neg(matmul(d[0], mH(result.unpack(*this)))), both = add(da, mH(da));
      d[1] = upper ? matmul(l, both) : matmul(both, l);
    }
    return d;
  }
  FIELDS(input2, result, upper)
};
static Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper) {
  const char* name = "cholesky_solve";
  check_matrix(name, b, "input");
  check_square(name, l, "input2");
  check_linalg_type(name, l);
  check_same_type(name, b, l);
  CHECK(rows(b) == rows(l), Runtime, name, ": Incompatible matrix sizes for ", name, ": each A matrix is ", rows(l),
        " by ", cols(l), " but each b matrix is ", rows(b), " by ", cols(b));
  Ints batch = broadcast_sizes(batch_of(l), batch_of(b));
  Tensor x = column_copy(b, batch);
  backend(x.device()).linalg->cholesky_solve(broadcast_batch(l, batch).view(), x.view(), upper);
  return record<CholeskySolveBackward>(x, {b, l}, [&](auto& n) {
    n.input2 = save(l);
    n.result = save_output(n, x);
    n.upper = upper;
  });
}

// cholesky_inverse: (L L^H)^-1. Composed where somebody wants a gradient.
static Tensor cholesky_inverse(const Tensor& l, bool upper) {
  const char* name = "cholesky_inverse";
  check_square(name, l);
  check_linalg_type(name, l);
  if (will_record({l})) {
    Tensor one = identity(rows(l), rows(l), l.dtype(), l.device());
    Tensor half = solve_triangular(upper ? mH(l) : l, one, false, true, false);
    return matmul(mH(half), half);
  }
  Tensor y = column_copy(l), info = empty(batch_of(l), DType::Int32, l.device());
  backend(y.device()).linalg->cholesky_inverse(y.view(), info.view(), upper);
  check_info("cholesky_inverse", info);
  return y;
}

static std::tuple<Tensor, Tensor, Tensor> ldl_factor_of(const char* name, const Tensor& a, bool hermitian,
                                                        bool check_errors) {
  check_square(name, a);
  check_linalg_type(name, a);
  Tensor ld = column_copy(a), pivots = empty(with(batch_of(a), {rows(a)}), DType::Int32, a.device());
  Tensor info = empty(batch_of(a), DType::Int32, a.device());
  backend(ld.device()).linalg->ldl_factor(ld.view(), pivots.view(), info.view(), hermitian && a.is_complex());
  if (check_errors) check_info(name, info);
  {
    NoGrad raw;
    ld = tril(ld);
  }
  return {record_not_differentiable(name, ld, {a}), pivots, info};
}
static std::tuple<Tensor, Tensor, Tensor> ldl_factor_ex(const Tensor& a, bool hermitian, bool check_errors) {
  return ldl_factor_of("linalg.ldl_factor_ex", a, hermitian, check_errors);
}
static std::tuple<Tensor, Tensor> ldl_factor(const Tensor& a, bool hermitian) {
  auto [ld, pivots, info] = ldl_factor_of("linalg.ldl_factor", a, hermitian, true);
  return {ld, pivots};
}
static Tensor ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  const char* name = "linalg.ldl_solve";
  check_square(name, ld, "LD");
  check_matrix(name, b, "B");
  check_linalg_type(name, ld);
  check_same_type(name, ld, b);
  CHECK(rows(ld) == rows(b), Runtime, name, ": Incompatible shapes of LD and B (", to_text(ld.sizes()), " and ",
        to_text(b.sizes()), ")");
  CHECK(pivots.dtype() == DType::Int32, Runtime, name, ": Expected pivots to be integers of torch.int32 type. Got ",
        info(pivots.dtype()).legacy);
  CHECK(pivots.sizes() == IntSpan(ld.sizes().data(), ld.dim() - 1), Runtime, name,
        ": Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape ", to_text(pivots.sizes()),
        " instead");
  Ints batch = broadcast_sizes(batch_of(ld), batch_of(b));
  Tensor x = column_copy(b, batch);
  backend(x.device())
      .linalg->ldl_solve(broadcast_batch(ld, batch).view(), broadcast_batch(pivots, batch, 1).view(), x.view(),
                         hermitian && b.is_complex());
  return record_not_differentiable(name, x, {ld, b});
}

static const Register registered([](Ops& ops) {
  ops.def("linalg.cholesky", linalg_cholesky, "input, *, upper=False", kCastFull | kExactOut | kFreeOut, R"(
    Factors symmetric (Hermitian) positive-definite matrices: A = L L^H with a lower triangular L.

    Args:
        upper: whether the factor is R of A = R^H R, upper triangular, instead.

    Raises:
        LinAlgError: a matrix is not positive-definite; cholesky_ex() tells instead.

    Example:
        >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]]))");
  ops.def("cholesky", cholesky, "input, upper=False", kMethod | kCastFull, R"(
    Factors A = L L^H; the old name of torch.linalg.cholesky().

    Args:
        input: symmetric (Hermitian) positive-definite matrices.
        upper: whether the factor is R of A = R^H R instead.

    Example:
        >>> A = torch.tensor([[4.0, 2.0], [2.0, 5.0]])
        >>> torch.linalg.cholesky(A)
        tensor([[2., 0.],
                [1., 2.]]))");
  ops.def("linalg.cholesky_ex", cholesky_ex, "input, *, upper=False, check_errors=False", kCastFull, R"(
    Factors as cholesky(), and tells which matrices are not positive-definite instead of raising.

    Args:
        upper: whether the factor is R of A = R^H R instead.

    Returns:
        A named tuple: L, and info: 0, or the order of the first leading minor that is not positive.

    Example:
        >>> torch.linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [2.0, 1.0]])).info
        tensor(2, dtype=torch.int32))",
          "L, info");
  ops.def("cholesky_solve", cholesky_solve, "input, input2, upper=False", kMethod | kCastFull, R"(
    Solves A X = input with the Cholesky factor of A.

    Args:
        input: the right-hand sides, (..., N, K).
        input2: the factor, (..., N, N).
        upper: whether it is R of A = R^H R instead of L of A = L L^H.

    Example:
        >>> L = torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
        >>> torch.cholesky_solve(torch.tensor([[8.0], [12.0]]), L)
        tensor([[1.],
                [2.]]))");
  ops.def("cholesky_inverse", cholesky_inverse, "input, upper=False", kMethod | kCastFull, R"(
    Computes the inverse of A from its Cholesky factor.

    Args:
        input: the factor, (..., N, N).
        upper: whether it is R of A = R^H R instead of L of A = L L^H.

    Example:
        >>> A = torch.tensor([[4.0, 2.0], [2.0, 5.0]])
        >>> torch.cholesky_inverse(torch.linalg.cholesky(A))
        tensor([[ 0.3125, -0.1250],
                [-0.1250,  0.2500]]))");
  ops.def("linalg.ldl_factor", ldl_factor, "input, *, hermitian=False", kExactOut | kFreeOut, R"(
    Factors symmetric matrices, also indefinite ones: A = L D L^T.

    Returns:
        A named tuple: LD, both factors in one matrix, and pivots; ldl_solve() takes them.

    Example:
        >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
        >>> LD, pivots
        (tensor([[2.0000, 0.0000],
                [0.5000, 2.5000]]), tensor([1, 2], dtype=torch.int32)))",
          "LD, pivots");
  ops.def("linalg.ldl_factor_ex", ldl_factor_ex, "input, *, hermitian=False, check_errors=False", 0, R"(
    Factors as ldl_factor(), and tells which matrices are singular instead of raising.

    Returns:
        A named tuple with the fields LD, pivots and info: 0, or the index of a zero on the diagonal of D.

    Example:
        >>> torch.linalg.ldl_factor_ex(torch.tensor([[2.0, 1.0], [1.0, 3.0]])).info
        tensor(0, dtype=torch.int32))",
          "LD, pivots, info");
  ops.def("linalg.ldl_solve", ldl_solve, "LD, pivots, B, *, hermitian=False", 0, R"(
    Solves A X = B with the factors of ldl_factor().

    Args:
        LD: the factors.
        pivots: the exchanges of rows.
        hermitian: whether LD belongs to a Hermitian matrix, instead of a symmetric one.

    Gradient:
        For B only.

    Example:
        >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
        >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[3.0], [4.0]]))
        tensor([[1.],
                [1.]]))");
});

}  // namespace rl::ops
