// Products of two matrices, two vectors, or one of each.
#include "ops/linalg/mm.h"

#include <cstring>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

[[noreturn, gnu::cold]] static void fail_dtypes(const char* name, DType a, DType b) {
  auto spoken = [](DType t) { return t == DType::Float32 ? "float" : t == DType::Float64 ? "double" : info(t).name; };
  std::string hint = text("\n  ", name, ": the first operand is ", info(a).name, ", the second ", info(b).name,
                          "; convert one of them, x.to(y.dtype), x.float() or x.double()");
  if (std::strcmp(name, "linear") == 0 || std::strcmp(name, "addmm") == 0)
    fail(ErrorKind::Runtime, "mat1 and mat2 must have the same dtype, but got ", info(a).legacy, " and ",
         info(b).legacy, hint);
  fail(ErrorKind::Runtime, "expected m1 and m2 to have the same dtype, but got: ", spoken(a), " != ", spoken(b), hint);
}

[[gnu::cold]] std::string product_hint(IntSpan a, IntSpan b) {
  int64_t m = a[a.size() - 2], k = a[a.size() - 1], l = b[b.size() - 2], n = b[b.size() - 1];
  std::string s = text("\n  the first has ", k, " columns, the second ", l, " rows: they must be as many");
  if (k == n) return s + "; a @ b.mT would fit";
  if (m == l) return s + "; a.mT @ b would fit";
  return s;
}

void check_same(const char* name, const Tensor& a, const Tensor& b, bool empty_ok) {
  if (a.dtype() != b.dtype()) fail_dtypes(name, a.dtype(), b.dtype());
  CHECK(a.device() == b.device(), Runtime,
        "Expected all tensors to be on the same device, but found at least two devices, ", to_text(a.device()), " and ",
        to_text(b.device()), "! (", name, ")");
  if (empty_ok && nothing_to_multiply(a, b)) return;
  if (a.dtype() == DType::Bool || static_cast<int>(a.dtype()) >= kComputeDTypes) no_kernel(name, a.dtype());
}

Tensor product(const Tensor& a, const Tensor& b, const Tensor& addend, const Scalar& beta, const Scalar& alpha) {
  Ints sizes(a.sizes());
  sizes[sizes.size() - 1] = b.sizes()[b.dim() - 1];
  Tensor y = empty(sizes, a.dtype(), a.device());
  if (!addend.defined() && nothing_to_multiply(a, b)) {
    if (y.numel()) backend(y.device()).copy->zero(y.view());
    return y;
  }
  const MatmulKernels& kernels = *backend(a.device()).matmul;
  if (!addend.defined() && alpha.equals(1)) {
    kernels.matmul(y.view(), a.view(), b.view());
    return y;
  }
  MatmulParams params;
  write_compute(params.alpha, alpha, a.dtype());
  write_compute(params.beta, beta, a.dtype());
  Ints strides;
  View view;
  if (addend.defined()) {
    strides = broadcast_strides(addend, sizes);
    view = {addend.memory(), sizes.data(), strides.data(), static_cast<int32_t>(sizes.size()), addend.dtype()};
    params.addend = &view;
  }
  kernels.addmm(y.view(), a.view(), b.view(), params);
  return y;
}

Tensor mT(const Tensor& x) { return transpose(x, -2, -1); }
Tensor mH(const Tensor& x) { return conj(transpose(x, -2, -1)); }

// mm, bmm: y = a b        da = dy b^H, db = a^H dy
template <bool Batched> struct ProductBackward : Node {
  static constexpr const char* kName = Batched ? "BmmBackward0" : "MmBackward0";
  static constexpr bool kStacks = true;
  Saved self, mat2;
  Grads backward(const Grads& dy) {
    auto times = lead(dy[0]) ? matmul : Batched ? bmm : mm;
    return {needs(0) ? times(dy[0], mH(mat2.unpack(*this))) : Tensor(),
            needs(1) ? times(mH(self.unpack(*this)), dy[0]) : Tensor()};
  }
  FIELDS(self, mat2)
};
Tensor mm(const Tensor& a, const Tensor& b) {
  CHECK(a.dim() == 2, Runtime, "mm: self must be a matrix, got shape ", to_text(a.sizes()));
  CHECK(b.dim() == 2, Runtime, "mm: mat2 must be a matrix, got shape ", to_text(b.sizes()));
  CHECK(a.sizes()[1] == b.sizes()[0], Runtime, "mat1 and mat2 shapes cannot be multiplied (", a.sizes()[0], "x",
        a.sizes()[1], " and ", b.sizes()[0], "x", b.sizes()[1], ")", product_hint(a.sizes(), b.sizes()));
  check_same("mm", a, b, true);
  return record<ProductBackward<false>>(product(a, b), {a, b}, [&](auto& n) {
    if (n.needs(1)) n.self = save(a);
    if (n.needs(0)) n.mat2 = save(b);
  });
}
Tensor bmm(const Tensor& a, const Tensor& b) {
  CHECK(a.dim() == 3, Runtime, "batch1 must be a 3D tensor, got shape ", to_text(a.sizes()));
  CHECK(b.dim() == 3, Runtime, "batch2 must be a 3D tensor, got shape ", to_text(b.sizes()));
  CHECK(a.sizes()[0] == b.sizes()[0] && a.sizes()[2] == b.sizes()[1], Runtime,
        "Expected size for first two dimensions of batch2 tensor to be: [", a.sizes()[0], ", ", a.sizes()[2],
        "] but got: [", b.sizes()[0], ", ", b.sizes()[1], "].");
  check_same("bmm", a, b, true);
  return record<ProductBackward<true>>(product(a, b), {a, b}, [&](auto& n) {
    if (n.needs(1)) n.self = save(a);
    if (n.needs(0)) n.mat2 = save(b);
  });
}

// mv: y = A x        dA = dy x^H, dx = A^H dy
struct MvBackward : Node {
  static constexpr const char* kName = "MvBackward0";
  static constexpr bool kStacks = true;
  Saved self, vec;
  Grads backward(const Grads& dy) {
    const bool rows = lead(dy[0]);
    Grads dx(2);
    if (needs(0)) {
      Tensor v = conj(vec.unpack(*this));
      dx[0] = rows ? mul(unsqueeze(dy[0], -1), v) : outer(dy[0], v);
    }
    if (needs(1)) {
      Tensor a = self.unpack(*this);
      dx[1] = rows ? mm(dy[0], conj(a)) : mv(mH(a), dy[0]);
    }
    return dx;
  }
  FIELDS(self, vec)
};
Tensor mv(const Tensor& a, const Tensor& x) {
  CHECK(a.dim() == 2 && x.dim() == 1, Runtime, "vector + matrix @ vector expected, got ", a.dim(), ", ", x.dim());
  CHECK(a.sizes()[1] == x.sizes()[0], Runtime, "size mismatch, got input (", a.sizes()[0], "), mat (", a.sizes()[0],
        "x", a.sizes()[1], "), vec (", x.sizes()[0], ")");
  check_same("mv", a, x, true);
  Tensor y = empty({a.sizes()[0]}, a.dtype(), a.device());
  if (nothing_to_multiply(a, x)) {
    if (y.numel()) backend(y.device()).copy->zero(y.view());
  } else {
    int64_t out_sizes[] = {y.numel(), 1}, out_strides[] = {1, 1}, x_sizes[] = {x.numel(), 1},
            x_strides[] = {x.strides()[0], 1};
    backend(a.device())
        .matmul->matmul({y.memory(), out_sizes, out_strides, 2, y.dtype()}, a.view(),
                        {x.memory(), x_sizes, x_strides, 2, x.dtype()});
  }
  return record<MvBackward>(y, {a, x}, [&](auto& n) {
    if (n.needs(1)) n.self = save(a);
    if (n.needs(0)) n.vec = save(x);
  });
}

// dot: y = sum a_i b_i        da = dy conj(b), db = dy conj(a)
// vdot: y = sum conj(a_i) b_i        da = conj(dy) b, db = dy a
template <bool Conjugate> struct DotBackward : Node {
  static constexpr const char* kName = Conjugate ? "VdotBackward0" : "DotBackward0";
  static constexpr bool kStacks = true;
  Saved self, tensor;
  Grads backward(const Grads& dy) {
    Tensor g = lead(dy[0]) ? unsqueeze(dy[0], -1) : dy[0];
    if constexpr (Conjugate)
      return {needs(0) ? mul(conj(g), tensor.unpack(*this)) : Tensor(),
              needs(1) ? mul(g, self.unpack(*this)) : Tensor()};
    else
      return {needs(0) ? mul(g, conj(tensor.unpack(*this))) : Tensor(),
              needs(1) ? mul(g, conj(self.unpack(*this))) : Tensor()};
  }
  FIELDS(self, tensor)
};
template <bool Conjugate> static Tensor vector_dot(const Tensor& a, const Tensor& b) {
  const char* name = Conjugate ? "vdot" : "dot";
  CHECK(a.dim() == 1 && b.dim() == 1, Runtime, "1D tensors expected, but got ", a.dim(), "D and ", b.dim(),
        "D tensors");
  CHECK(a.dtype() == b.dtype(), Runtime, name, " : expected both vectors to have same dtype, but found ",
        info(a.dtype()).legacy, " and ", info(b.dtype()).legacy);
  CHECK(a.numel() == b.numel(), Runtime, "inconsistent tensor size, expected tensor [", a.numel(), "] and src [",
        b.numel(), "] to have the same number of elements, but got ", a.numel(), " and ", b.numel(),
        " elements respectively");
  check_same(name, a, b);
  Tensor y = empty({}, a.dtype(), a.device());
  backend(a.device()).matmul->dot(y.view(), a.view(), b.view(), Conjugate);
  return record<DotBackward<Conjugate>>(y, {a, b}, [&](auto& n) {
    if (n.needs(1)) n.self = save(a);
    if (n.needs(0)) n.tensor = save(b);
  });
}
Tensor dot(const Tensor& a, const Tensor& b) { return vector_dot<false>(a, b); }
static Tensor vdot(const Tensor& a, const Tensor& b) { return vector_dot<true>(a, b); }

Tensor outer(const Tensor& a, const Tensor& b) {
  CHECK(a.dim() == 1 && b.dim() == 1, Runtime, "outer: Expected 1-D argument self and vec2, but got ", a.dim(),
        "-D and ", b.dim(), "-D");
  return mul(unsqueeze(a, 1), b);
}

static const Register registered([](Ops& ops) {
  ops.def("mm", mm, "input, mat2", kMethod | kCastLow | kExactOut | kFreeOut, R"(
    Multiplies two matrices.

    Args:
        input: a matrix (N, M).
        mat2: a matrix (M, P).

    Example:
        >>> torch.mm(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 0], [0, 10]]))
        tensor([[ 1, 20],
                [ 3, 40]]))");
  ops.def("bmm", bmm, "input, mat2", kMethod | kCastLow | kExactOut | kFreeOut | kOverlapOk, R"(
    Multiplies two batches of matrices, pair by pair, without broadcasting.

    Args:
        input: matrices (B, N, M).
        mat2: matrices (B, M, P).

    Example:
        >>> torch.bmm(torch.ones(10, 2, 3), torch.ones(10, 3, 4)).shape
        torch.Size([10, 2, 4]))");
  ops.def("mv", mv, "input, vec", kMethod | kExactOut | kFreeOut | kOverlapOk, R"(
    Multiplies a matrix with a vector.

    Args:
        input: a matrix (N, M).
        vec: a vector (M).

    Example:
        >>> torch.mv(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10]))
        tensor([21, 43]))");
  ops.def("dot", dot, "input, tensor", kMethod | kExactOut | kFreeOut, R"(
    Adds up the products of two vectors' elements.

    Args:
        input: a vector.
        tensor: a vector of the same length.

    Example:
        >>> torch.dot(torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6]))
        tensor(32))");
  ops.def("vdot", vdot, "input, other", kMethod | kExactOut | kFreeOut, R"(
    Adds up the products of two vectors' elements, those of the first conjugated.

    Args:
        input: a vector.
        other: a vector of the same length.

    Example:
        >>> torch.vdot(torch.tensor([1j, 2.0]), torch.tensor([1j, 3.0]))
        tensor(7.+0.j))");
  ops.def("outer", outer, "input, vec2", kMethod, R"(
    Multiplies all pairs of two vectors' elements: y[i][j] = input[i] * vec2[j].

    Args:
        input: a vector (N).
        vec2: a vector (M).

    Example:
        >>> torch.outer(torch.tensor([1, 2]), torch.tensor([1, 10, 100]))
        tensor([[  1,  10, 100],
                [  2,  20, 200]]))");
  ops.alias("ger", "outer");
});

}  // namespace rl::ops
