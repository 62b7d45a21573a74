// Products added to something: addmm and its relatives.
#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/mm.h"
#include "ops/ops.h"
#include "schema/registry.h"
#include "tensor/promote.h"

namespace rl::ops {

static void check_weight(const char* name, const char* argument, const Scalar& s, DType dtype) {
  CHECK(is_float(dtype) || is_complex(dtype) || s.is_integral(), Runtime, name,
        ": for integral input tensors, argument ", argument, " must not be a floating point number.");
}

static Tensor times(const Tensor& x, const Scalar& s) {
  return s.equals(1) ? x : mul(x, s.is_complex() ? Scalar(std::conj(s.to_complex128())) : s);
}

// addmm, baddbmm: y = beta c + alpha a b        dc = beta dy, da = alpha dy b^H, db = alpha a^H dy
template <bool Batched> struct AddProductBackward : Node {
  static constexpr const char* kName = Batched ? "BaddbmmBackward0" : "AddmmBackward0";
  static constexpr bool kStacks = true;
  Saved mat1, mat2;
  Scalar beta = Scalar(1), alpha = Scalar(1);
  Grads backward(const Grads& dy) {
    auto product = lead(dy[0]) ? matmul : Batched ? bmm : mm;
    Grads dx(3);
    if (needs(0)) dx[0] = times(dy[0], beta);
    if (needs(1)) dx[1] = times(product(dy[0], mH(mat2.unpack(*this))), alpha);
    if (needs(2)) dx[2] = times(product(mH(mat1.unpack(*this)), dy[0]), alpha);
    return dx;
  }
  FIELDS(mat1, mat2)
};
// 2x3, as errors about products write the sizes of a matrix.
static std::string by_x(const Tensor& t) {
  std::string s;
  for (int64_t n : t.sizes()) s += (s.empty() ? "" : "x") + std::to_string(n);
  return s;
}
template <bool Batched>
static Tensor add_matmul(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  const char* name = Batched ? "baddbmm" : "addmm";
  int64_t dims = Batched ? 3 : 2;
  CHECK(a.dim() == dims && b.dim() == dims, Runtime, name, ": expected ", dims, "-d tensors to multiply, got shapes ",
        to_text(a.sizes()), " and ", to_text(b.sizes()));
  CHECK(a.sizes()[dims - 1] == b.sizes()[dims - 2] && (!Batched || a.sizes()[0] == b.sizes()[0]), Runtime,
        "mat1 and mat2 shapes cannot be multiplied (", by_x(a), " and ", by_x(b), ")");
  check_same(name, a, b);
  CHECK(c.dtype() == a.dtype(), Runtime, name,
        ": expected input and the matrices to have the same dtype, but got: ", info(c.dtype()).name,
        " != ", info(a.dtype()).name, ". Input dtypes must be the same");
  CHECK(c.device() == a.device(), Runtime,
        "Expected all tensors to be on the same device, but found at least two devices, ", to_text(c.device()), " and ",
        to_text(a.device()), "! (", name, ")");
  Ints sizes(a.sizes());
  sizes[dims - 1] = b.sizes()[dims - 1];
  CHECK(c.dim() <= dims && IntSpan(broadcast_sizes(c.sizes(), sizes)) == IntSpan(sizes), Runtime, name,
        ": input of shape ", to_text(c.sizes()), " cannot be broadcast to the product's shape ", to_text(sizes));
  Tensor y = product(a, b, c, beta, alpha);
  return record<AddProductBackward<Batched>>(y, {c, a, b}, [&](auto& n) {
    if (n.needs(2)) n.mat1 = save(a);
    if (n.needs(1)) n.mat2 = save(b);
    n.beta = beta;
    n.alpha = alpha;
  });
}
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return add_matmul<false>(c, a, b, beta, alpha);
}
static Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return add_matmul<true>(c, a, b, beta, alpha);
}
// A batch of products summed is one product along the batch and the sum.
static Tensor addbmm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  CHECK(a.dim() == 3 && b.dim() == 3, Runtime, "addbmm: batch1 and batch2 must be 3D tensors, got shapes ",
        to_text(a.sizes()), " and ", to_text(b.sizes()));
  CHECK(a.sizes()[0] == b.sizes()[0], Runtime, "batch1 and batch2 must have same number of batches, got ", a.sizes()[0],
        " and ", b.sizes()[0]);
  CHECK(a.sizes()[2] == b.sizes()[1], Runtime, "Incompatible matrix sizes for bmm (", a.sizes()[1], "x", a.sizes()[2],
        " and ", b.sizes()[1], "x", b.sizes()[2], ")");
  int64_t k = a.sizes()[0] * a.sizes()[2];
  return addmm(c, reshape(permute(a, {1, 0, 2}), {a.sizes()[1], k}), reshape(b, {k, b.sizes()[2]}), beta, alpha);
}
static Tensor addmv(const Tensor& c, const Tensor& a, const Tensor& x, const Scalar& beta, const Scalar& alpha) {
  CHECK(a.dim() == 2 && x.dim() == 1 && c.dim() <= 1, Runtime, "vector + matrix @ vector expected, got ", c.dim(), ", ",
        a.dim(), ", ", x.dim());
  CHECK(a.sizes()[1] == x.sizes()[0] && (c.numel() == 1 || c.numel() == a.sizes()[0]), Runtime,
        "size mismatch, got input (", c.numel(), "), mat (", a.sizes()[0], "x", a.sizes()[1], "), vec (", x.sizes()[0],
        ")");
  check_holds(alpha, a.dtype());
  check_holds(beta, a.dtype());
  Tensor column = c.dim() == 1 ? unsqueeze(c, 1) : c;
  return without_dim(addmm(column, a, unsqueeze(x, 1), beta, alpha), 1);
}
// addr: y = beta c + alpha a b^T, by elementwise ops: any type, promoted
static Tensor addr(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  CHECK(a.dim() == 1 && b.dim() == 1, Runtime, "addr: Expected 1-D argument vec1 and vec2, but got ", a.dim(),
        "-D and ", b.dim(), "-D");
  check_weight("addr", "beta", beta, c.dtype());
  check_weight("addr", "alpha", alpha, c.dtype());
  Tensor ab = outer(a, b);
  CHECK(c.dim() <= 2 && IntSpan(broadcast_sizes(c.sizes(), ab.sizes())) == ab.sizes(), Runtime, "addr: input of shape ",
        to_text(c.sizes()), " cannot be broadcast to the product's shape ", to_text(ab.sizes()));
  DType common = promote_types(c.dtype(), ab.dtype());
  for (auto& [name, weight] : {std::pair("alpha", &alpha), std::pair("beta", &beta)})
    CHECK(weight->kind() != Scalar::Kind::Bool || common == DType::Bool, Runtime, "Boolean ", name,
          " only supported for Boolean results.");
  check_holds(alpha, common);
  check_holds(beta, common);
  if (common == DType::Bool) {
    CHECK(beta.kind() == Scalar::Kind::Bool || beta.is_integral(), Runtime,
          "Boolean beta only supported for Boolean results.");
    Tensor scaled = alpha.to_bool() ? ab : mul(ab, Scalar(false));
    return beta.to_bool() ? add(scaled, c) : scaled;
  }
  Tensor scaled = cast(alpha.equals(1) ? ab : mul(ab, alpha), common);
  if (beta.equals(0)) return scaled;
  return add(scaled, beta.equals(1) ? c : mul(c, beta));
}

// The factors where programs of PyTorch 1.4 and before have them: as functions beta first of all, as methods after
// self.
using AddMatmul = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&);
template <AddMatmul F> struct OldForms {
  static Tensor function(const Scalar& beta, const Tensor& c, const Tensor& a, const Tensor& b) {
    return F(c, a, b, beta, Scalar(1));
  }
  static Tensor function_both(const Scalar& beta, const Tensor& c, const Scalar& alpha, const Tensor& a,
                              const Tensor& b) {
    return F(c, a, b, beta, alpha);
  }
  static Tensor method(const Tensor& c, const Scalar& beta, const Tensor& a, const Tensor& b) {
    return F(c, a, b, beta, Scalar(1));
  }
  static Tensor method_both(const Tensor& c, const Scalar& beta, const Scalar& alpha, const Tensor& a,
                            const Tensor& b) {
    return F(c, a, b, beta, alpha);
  }
  static void define(Ops& ops, const char* name, uint32_t flags) {
    ops.def(name, function, "beta, input, a, b", flags | kOld);
    ops.def(name, function_both, "beta, input, alpha, a, b", flags | kOld);
    ops.def(name, method, "input, beta, a, b", kMethod | kInplace | flags | kOld);
    ops.def(name, method_both, "input, beta, alpha, a, b", kMethod | kInplace | flags | kOld);
  }
};

static const Register registered([](Ops& ops) {
  ops.def("addmm", addmm, "input, mat1, mat2, *, beta=1, alpha=1", kMethod | kInplace | kCastLow | kExactOut | kFreeOut,
          R"(
    Computes beta * input + alpha * (mat1 @ mat2).

    Args:
        input: what is added; it broadcasts to the result. With beta 0 its values are not read.
        mat1: a matrix (N, M).
        mat2: a matrix (M, P).
        beta: the factor of input.
        alpha: the factor of the product.

    Example:
        >>> torch.addmm(torch.tensor([1.0, 2.0]), torch.ones(2, 3), torch.ones(3, 2))
        tensor([[4., 5.],
                [4., 5.]]))");
  ops.def("baddbmm", baddbmm, "input, batch1, batch2, *, beta=1, alpha=1",
          kMethod | kInplace | kCastLow | kExactOut | kFreeOut, R"(
    Computes beta * input + alpha * (batch1 @ batch2), matrix by matrix.

    Args:
        input: what is added; it broadcasts to the result. With beta 0 its values are not read.
        batch1: matrices (B, N, M).
        batch2: matrices (B, M, P).
        beta: the factor of input.
        alpha: the factor of the products.

    Example:
        >>> torch.baddbmm(torch.ones(1, 1, 2), torch.ones(3, 2, 4), torch.ones(3, 4, 2)).shape
        torch.Size([3, 2, 2]))");
  ops.def("addbmm", addbmm, "input, batch1, batch2, *, beta=1, alpha=1",
          kMethod | kInplace | kCastLow | kExactOut | kFreeOut, R"(
    Computes beta * input + alpha * the sum of the products batch1[i] @ batch2[i].

    Args:
        input: what is added; it broadcasts to the result. With beta 0 its values are not read.
        batch1: matrices (B, N, M).
        batch2: matrices (B, M, P).
        beta: the factor of input.
        alpha: the factor of the products.

    Example:
        >>> torch.addbmm(torch.zeros(2, 2), torch.ones(3, 2, 4), torch.ones(3, 4, 2))
        tensor([[12., 12.],
                [12., 12.]]))");
  ops.def("addmv", addmv, "input, mat, vec, *, beta=1, alpha=1", kMethod | kInplace | kExactOut | kFreeOut, R"(
    Computes beta * input + alpha * (mat @ vec).

    Args:
        input: what is added; it broadcasts to the result. With beta 0 its values are not read.
        mat: a matrix (N, M).
        vec: a vector (M).
        beta: the factor of input.
        alpha: the factor of the product.

    Example:
        >>> torch.addmv(torch.zeros(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2))
        tensor([3., 7.]))");
  ops.def("addr", addr, "input, vec1, vec2, *, beta=1, alpha=1", kMethod | kInplace, R"(
    Computes beta * input + alpha * the outer product of two vectors.

    Args:
        input: what is added; it broadcasts to the result. With beta 0 its values are not read.
        vec1: a vector (N).
        vec2: a vector (M).
        beta: the factor of input.
        alpha: the factor of the product.

    Example:
        >>> torch.addr(torch.zeros(2, 3), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0, 100.0]))
        tensor([[  1.,  10., 100.],
                [  2.,  20., 200.]]))");
  OldForms<addmm>::define(ops, "addmm", kCastLow);
  OldForms<baddbmm>::define(ops, "baddbmm", kCastLow);
  OldForms<addbmm>::define(ops, "addbmm", kCastLow);
  OldForms<addmv>::define(ops, "addmv", 0);
  OldForms<addr>::define(ops, "addr", 0);
});

}  // namespace rl::ops
