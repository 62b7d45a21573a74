#include "ops/matmul.h"

#include <algorithm>
#include <cstring>

#include "autograd/apart.h"
#include "backend/backend.h"
#include "ops/ops.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "tensor/promote.h"

namespace rl::ops {
namespace {

[[noreturn, gnu::cold]] void fail_dtypes(const char* name, DType a, DType b) {
  auto spoken = [](DType t) { return t == DType::Float32 ? "float" : t == DType::Float64 ? "double" : info(t).name; };
  std::string hint = text("\n  ", name, ": the first operand is ", info(a).name, ", the second ", info(b).name,
                          "; convert one of them, x.to(y.dtype), x.float() or x.double()");
  if (std::strcmp(name, "linear") == 0 || std::strcmp(name, "addmm") == 0)
    fail(ErrorKind::Runtime, "mat1 and mat2 must have the same dtype, but got ", info(a).legacy, " and ",
         info(b).legacy, hint);
  fail(ErrorKind::Runtime, "expected m1 and m2 to have the same dtype, but got: ", spoken(a), " != ", spoken(b), hint);
}

// The last size of a and the one before the last of b must be equal; a transposition may make them so.
[[gnu::cold]] std::string product_hint(IntSpan a, IntSpan b) {
  int64_t m = a[a.size() - 2], k = a[a.size() - 1], l = b[b.size() - 2], n = b[b.size() - 1];
  std::string s = text("\n  the first has ", k, " columns, the second ", l, " rows: they must be as many");
  if (k == n) return s + "; a @ b.mT would fit";
  if (m == l) return s + "; a.mT @ b would fit";
  return s;
}

// Where there is nothing to multiply, any type will do.
bool nothing_to_multiply(const Tensor& a, const Tensor& b) { return a.numel() == 0 || b.numel() == 0; }

void check_same(const char* name, const Tensor& a, const Tensor& b, bool empty_ok = false) {
  if (a.dtype() != b.dtype()) fail_dtypes(name, a.dtype(), b.dtype());
  CHECK(a.device() == b.device(), Runtime,
        "Expected all tensors to be on the same device, but found at least two devices, ", to_text(a.device()), " and ",
        to_text(b.device()), "! (", name, ")");
  if (empty_ok && nothing_to_multiply(a, b)) return;
  if (a.dtype() == DType::Bool || static_cast<int>(a.dtype()) >= kComputeDTypes) no_kernel(name, a.dtype());
}

void check_weight(const char* name, const char* argument, const Scalar& s, DType dtype) {
  CHECK(is_float(dtype) || is_complex(dtype) || s.is_integral(), Runtime, name,
        ": for integral input tensors, argument ", argument, " must not be a floating point number.");
}

// (..., m, n) = (..., m, k) @ (..., k, n); leading sizes agree. With an addend: alpha * product + beta * addend.
Tensor product(const Tensor& a, const Tensor& b, const Tensor& addend = {}, const Scalar& beta = Scalar(1),
               const Scalar& alpha = Scalar(1)) {
  Ints sizes(a.sizes());
  sizes[sizes.size() - 1] = b.sizes()[b.dim() - 1];
  Tensor y = empty(sizes, a.dtype(), a.device());
  if (a.device().is_meta()) return y;
  if (!addend.defined() && nothing_to_multiply(a, b)) {
    if (y.numel()) g_cpu->copy->zero(y.view());
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
    view = {addend.data(), sizes.data(), strides.data(), static_cast<int32_t>(sizes.size()), addend.dtype()};
    params.addend = &view;
  }
  kernels.addmm(y.view(), a.view(), b.view(), params);
  return y;
}

Tensor times(const Tensor& x, const Scalar& s) {
  return s.equals(1) ? x : mul(x, s.is_complex() ? Scalar(std::conj(s.to_complex128())) : s);
}

}  // namespace

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
  if (!a.device().is_meta() && nothing_to_multiply(a, x)) {
    if (y.numel()) g_cpu->copy->zero(y.view());
  } else if (!a.device().is_meta()) {
    int64_t out_sizes[] = {y.numel(), 1}, out_strides[] = {1, 1}, x_sizes[] = {x.numel(), 1},
            x_strides[] = {x.strides()[0], 1};
    backend(a.device())
        .matmul->matmul({y.data(), out_sizes, out_strides, 2, y.dtype()}, a.view(),
                        {x.data(), x_sizes, x_strides, 2, x.dtype()});
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
template <bool Conjugate> static Tensor inner_product(const Tensor& a, const Tensor& b) {
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
  if (!a.device().is_meta()) backend(a.device()).matmul->dot(y.view(), a.view(), b.view(), Conjugate);
  return record<DotBackward<Conjugate>>(y, {a, b}, [&](auto& n) {
    if (n.needs(1)) n.self = save(a);
    if (n.needs(0)) n.tensor = save(b);
  });
}
Tensor dot(const Tensor& a, const Tensor& b) { return inner_product<false>(a, b); }
static Tensor vdot(const Tensor& a, const Tensor& b) { return inner_product<true>(a, b); }

Tensor outer(const Tensor& a, const Tensor& b) {
  CHECK(a.dim() == 1 && b.dim() == 1, Runtime, "outer: Expected 1-D argument self and vec2, but got ", a.dim(),
        "-D and ", b.dim(), "-D");
  return mul(unsqueeze(a, 1), b);
}

// A batch of vectors as the rows of one matrix. The number of rows is counted: where vectors are empty, -1 says
// nothing.
static Tensor as_rows(const Tensor& t) {
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < t.dim(); ++d) rows = checked_mul(rows, t.sizes()[d]);
  return reshape(t, {rows, t.sizes()[t.dim() - 1]});
}
static Tensor rows_led(const Node& node, const Tensor& dy) {  // (gradients, rows, columns)
  int64_t columns = dy.sizes()[dy.dim() - 1], rows = 1;
  for (int64_t d = 1; d + 1 < dy.dim(); ++d) rows *= dy.sizes()[d];
  return reshape(dy, node.led(dy, Ints{rows, columns}));
}

// dy w, where each of the vectors of dy that lie in one place (a stack of gradients for every sample) is multiplied
// once.
static Tensor times_matrix(const Tensor& dy, const Tensor& w) {
  Ints sizes(dy.sizes());
  Tensor once = dy;
  for (int64_t d = 0; d + 1 < dy.dim(); ++d)
    if (dy.strides()[d] == 0 && sizes[d] > 1) once = narrow(once, d, 0, 1);
  if (once.is(dy)) return matmul(dy, w);
  sizes[dy.dim() - 1] = w.sizes()[1];
  return expand(matmul(once, w), sizes);
}

// matmul of batches: y = a b, batch dimensions broadcast        da = dy b^H, db = a^H dy
// A matrix b shared by the whole batch gets its gradient in one product over all rows.
struct MatmulBackward : Node {
  static constexpr const char* kName = "MatmulBackward0";
  static constexpr bool kStacks = true, kEndsInView = true;
  Saved self, other;
  bool shared = false;  // b is a matrix, and the same for the whole batch
  Grads backward(const Grads& dy) {
    Grads dx(2);
    auto matrix = [&](Saved& s, int64_t dim) {  // a vector was kept as it is
      Tensor t = s.unpack(*this);
      return t.dim() == 1 ? unsqueeze(t, dim) : t;
    };
    if (needs(0)) dx[0] = matmul(dy[0], mH(matrix(other, -1)));
    if (needs(1)) {
      Tensor a = matrix(self, 0);
      if (shared && lead(dy[0])) dx[1] = matmul(mH(as_rows(a)), rows_led(*this, dy[0]));
      else if (shared) dx[1] = mm(mH(as_rows(a)), as_rows(dy[0]));
      else dx[1] = matmul(mH(a), dy[0]);
    }
    return dx;
  }
  FIELDS(self, other)
};
// Whether the first dimensions of a tensor could be one, as they lie in memory.
static bool mergeable(IntSpan sizes, IntSpan strides, int64_t count) {
  int64_t run = -1;  // the stride of what comes before
  for (int64_t d = count - 1; d >= 0; --d) {
    if (sizes[d] == 1) continue;
    if (run >= 0 && strides[d] != run) return false;
    run = strides[d] * sizes[d];
  }
  return true;
}
// Whether PyTorch multiplies a rearranged copy of operand `first` or of the other, given both as batches: of the rows
// of a batch times one matrix (of the columns of one, from the left) it makes one matrix, and else one batch dimension.
static bool rearranged(const Tensor (&batches)[2], const Tensor (&given)[2], bool first) {
  const bool short_batches = given[0].dim() == 3 && given[1].dim() == 3;
  auto alone = [&](const Tensor& t) { return t.dim() == 2 || (short_batches && t.sizes()[0] == 1); };
  const Tensor &batch = batches[!first], &own = given[!first];
  if (!alone(given[first])) return !mergeable(batch.sizes(), batch.strides(), batch.dim() - 2);
  if (alone(own)) return false;
  const int64_t lead = own.dim() - 2;
  Ints sizes(own.sizes()), strides(own.strides());
  if (!first) std::swap(sizes[lead], sizes[lead + 1]), std::swap(strides[lead], strides[lead + 1]);
  return !mergeable(sizes, strides, lead + 1);
}
// Of a batch, and of a matrix on the left of one, PyTorch multiplies, and keeps, a view; a vector, given as a matrix
// here, and a matrix on the right it keeps as they are.
static Tensor batched(const Tensor& a, const Tensor& b, const Tensor& given_a, const Tensor& given_b) {
  IntSpan as = a.sizes(), bs = b.sizes();
  int64_t k = as[a.dim() - 1];
  CHECK(k == bs[b.dim() - 2], Runtime, "mat1 and mat2 shapes cannot be multiplied (", as[a.dim() - 2], "x", k, " and ",
        bs[b.dim() - 2], "x", bs[b.dim() - 1], "): matmul of ", to_text(as), " and ", to_text(bs),
        product_hint(as, bs));
  check_same("matmul", a, b);
  Ints batch = broadcast_sizes({as.data(), as.size() - 2}, {bs.data(), bs.size() - 2});
  Tensor wide[2];
  for (int i = 0; i < 2; ++i) {
    const Tensor& t = i ? b : a;
    Ints sizes = batch;
    sizes.push_back(t.sizes()[t.dim() - 2]);
    sizes.push_back(t.sizes()[t.dim() - 1]);
    wide[i] = alias(t, sizes, broadcast_strides(t, sizes), t->offset);
  }
  return record<MatmulBackward>(product(wide[0], wide[1]), {a, b}, [&](auto& n) {
    if (n.needs(1))
      n.self = rearranged(wide, {a, b}, true) ? save_apart(n, a) : given_a.dim() == 1 ? save(given_a) : save_view(a);
    if (n.needs(0))
      n.other = rearranged(wide, {a, b}, false) ? save_apart(n, b) : given_b.dim() <= 2 ? save(given_b) : save_view(b);
    n.shared = b.dim() == 2 && a.dim() > 2;
  });
}
// A view from outside the graph of a tensor that is part of it asks for gradients and leads nowhere. PyTorch multiplies
// views of batches and of what they are multiplied by from the left: views of such a view are steps of the graph, and
// so the other operand is kept for a gradient that nobody takes, and may not be written to. A vector, and a matrix on
// the right, are multiplied as they are.
static bool leads_nowhere(const Tensor& t) {
  return grad_enabled() && !t->requires_grad && t->wants_grad() && !t->grad_fn;
}
static Tensor as_step(const Tensor& t) { return leads_nowhere(t) ? expand(t, t.sizes()) : t; }
static Tensor vector_as_matrix(const Tensor& t, int64_t dim) {
  NoGrad outside(grad_enabled() && !leads_nowhere(t));
  return unsqueeze(t, dim);
}
Tensor matmul(const Tensor& a, const Tensor& b) {
  int64_t m = a.dim(), n = b.dim();
  CHECK(m > 0 && n > 0, Runtime, "both arguments to matmul need to be at least 1D, but they are ", m, "D and ", n, "D");
  if (m == 2 && n == 2) return mm(a, b);
  if (m == 1 && n == 1) return dot(a, b);
  if (m == 2 && n == 1) return mv(a, b);
  if (m == 1 && n == 2) return without_dim(mm(unsqueeze(a, 0), b), 0);
  if (m == 1) return without_dim(batched(vector_as_matrix(a, 0), as_step(b), a, b), -2);
  if (n == 1) return without_dim(batched(as_step(a), vector_as_matrix(b, -1), a, b), -1);
  return batched(as_step(a), n == 2 ? b : as_step(b), a, b);
}

// linear: y = x W^T + b        dx = dy W, dW = dy^T x, db = dy
struct LinearBackward : Node {
  static constexpr const char* kName = "LinearBackward0";
  static constexpr bool kStacks = true;
  Saved input, weight;
  Grads backward(const Grads& dy) {
    Grads dx(3);
    if (needs(0)) dx[0] = times_matrix(dy[0], conj(weight.unpack(*this)));
    if (needs(1)) {
      Tensor x = input.unpack(*this);
      if (lead(dy[0])) dx[1] = matmul(transpose(rows_led(*this, dy[0]), 1, 2), conj(as_rows(x)));
      else dx[1] = mm(transpose(as_rows(dy[0]), 0, 1), conj(as_rows(x)));
    }
    if (needs(2)) dx[2] = dy[0];
    return dx;
  }
  FIELDS(input, weight)
};
// Of matrices, torch's linear is a product of theirs, and is named so.
struct LinearMmBackward : LinearBackward {
  static constexpr const char* kName = "MmBackward0";
};
struct LinearAddmmBackward : LinearBackward {
  static constexpr const char* kName = "AddmmBackward0";
};
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  CHECK(x.dim() >= 1, Runtime, "linear: expected an input of at least one dimension, got a 0-dim tensor");
  CHECK(weight.dim() == 1 || weight.dim() == 2, Runtime,
        "linear: expected a weight of one or two dimensions, got shape ", to_text(weight.sizes()));
  if (weight.dim() == 1 || (bias.defined() && bias.dim() > 1)) {  // no fused form
    Tensor y = weight.dim() == 1 ? matmul(x, weight) : linear(x, weight, {});
    return bias.defined() ? add(y, bias) : y;
  }
  int64_t k = x.sizes()[x.dim() - 1], n = weight.sizes()[0];
  CHECK(k == weight.sizes()[1], Runtime, "mat1 and mat2 shapes cannot be multiplied (", k ? x.numel() / k : 0, "x", k,
        " and ", weight.sizes()[1], "x", n, "): linear takes inputs of ", weight.sizes()[1], " features, got shape ",
        to_text(x.sizes()));
  CHECK(!bias.defined() || bias.numel() == n || bias.numel() == 1, Runtime, "linear: expected a bias of size [", n,
        "], got ", to_text(bias.sizes()));
  check_same("linear", x, weight);
  if (bias.defined()) check_same("linear", x, bias);
  Ints out_sizes(x.sizes());
  out_sizes[x.dim() - 1] = n;
  Tensor y = empty(out_sizes, x.dtype(), x.device());
  if (!x.device().is_meta() && y.numel()) {
    // Views of two or more dimensions: (..., rows, k) @ (..., k, n), the weight and the bias the same for all.
    int64_t lead = std::max<int64_t>(1, x.dim() - 1);
    Ints xs, xt, ws(lead + 1, 0), wt(lead + 1, 0), ys, yt, bt(lead + 1, 0);
    if (x.dim() == 1) xs.push_back(1), xt.push_back(k), ys.push_back(1), yt.push_back(n);
    xs.append(x.sizes().data(), x.dim()), xt.append(x.strides().data(), x.dim());
    ys.append(y.sizes().data(), y.dim()), yt.append(y.strides().data(), y.dim());
    for (int64_t i = 0; i < lead - 1; ++i) ws[i] = xs[i];
    ws[lead - 1] = k, ws[lead] = n;
    wt[lead - 1] = weight.strides()[1], wt[lead] = weight.strides()[0];
    int32_t dims = static_cast<int32_t>(lead + 1);
    View out{y.data(), ys.data(), yt.data(), dims, y.dtype()}, in{x.data(), xs.data(), xt.data(), dims, x.dtype()};
    View w{weight.data(), ws.data(), wt.data(), dims, x.dtype()};
    if (bias.defined()) {
      bt[lead] = bias.numel() == 1 ? 0 : bias.strides()[0];
      View add_view{bias.data(), ys.data(), bt.data(), dims, x.dtype()};
      MatmulParams params;
      write_compute(params.alpha, Scalar(1), x.dtype());
      write_compute(params.beta, Scalar(1), x.dtype());
      params.addend = &add_view;
      backend(x.device()).matmul->addmm(out, in, w, params);
    } else {
      backend(x.device()).matmul->matmul(out, in, w);
    }
  }
  auto keep = [&](auto& node) {
    if (node.needs(1)) node.input = save(x);
    if (node.needs(0)) node.weight = save(weight);
  };
  if (x.dim() != 2) return record<LinearBackward>(y, {x, weight, bias}, keep);
  if (bias.defined()) return record<LinearAddmmBackward>(y, {x, weight, bias}, keep);
  return record<LinearMmBackward>(y, {x, weight, bias}, keep);
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
template <bool Batched>
static Tensor add_product(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  const char* name = Batched ? "baddbmm" : "addmm";
  int64_t dims = Batched ? 3 : 2;
  CHECK(a.dim() == dims && b.dim() == dims, Runtime, name, ": expected ", dims, "-d tensors to multiply, got shapes ",
        to_text(a.sizes()), " and ", to_text(b.sizes()));
  CHECK(a.sizes()[dims - 1] == b.sizes()[dims - 2] && (!Batched || a.sizes()[0] == b.sizes()[0]), Runtime,
        "mat1 and mat2 shapes cannot be multiplied (", to_text(a.sizes()), " and ", to_text(b.sizes()), ")");
  check_same(name, a, b);
  CHECK(c.dtype() == a.dtype(), Runtime, name,
        ": expected input and the matrices to have the same dtype, but got: ", info(c.dtype()).name,
        " != ", info(a.dtype()).name);
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
  return add_product<false>(c, a, b, beta, alpha);
}
static Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return add_product<true>(c, a, b, beta, alpha);
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
using AddProduct = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&);
template <AddProduct F> struct OldForms {
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

static Tensor linear_op(const Tensor& x, const Tensor& w, const OptTensor& b) { return linear(x, w, b); }
static Tensor matmul_swapped(const Tensor& a, const Tensor& b) { return matmul(b, a); }

static const Register registered([](Ops& ops) {
  ops.def("mm", mm, "input, mat2", kMethod | kCastLow | kExactOut | kFreeOut, "The product of two matrices.");
  ops.def("bmm", bmm, "input, mat2", kMethod | kCastLow | kExactOut | kFreeOut | kOverlapOk,
          "The products of two batches of matrices.");
  ops.def("mv", mv, "input, vec", kMethod | kExactOut | kFreeOut | kOverlapOk, "The product of a matrix and a vector.");
  ops.def("dot", dot, "input, tensor", kMethod | kExactOut | kFreeOut,
          "The sum of the products of two vectors' elements.");
  ops.def("vdot", vdot, "input, other", kMethod | kExactOut | kFreeOut, "As dot, with the first vector conjugated.");
  ops.def("outer", outer, "input, vec2", kMethod, "The products of all pairs of two vectors' elements.");
  ops.alias("ger", "outer");
  ops.def("matmul", matmul, "input, other", kMethod | kCastLow | kExactOut | kFreeOut,
          "The product of matrices, vectors or broadcast batches of them.");
  ops.alias("linalg.matmul", "matmul");
  ops.def("__rmatmul__", matmul_swapped, "input, other", kMethod | kNoFunction | kNoOut | kCastLow);
  ops.def("nn.functional.linear", linear_op, "input, weight, bias=None", kExactOut | kCastLow,
          "input @ weight^T + bias.");
  ops.def("addmm", addmm, "input, mat1, mat2, *, beta=1, alpha=1", kMethod | kInplace | kCastLow | kExactOut | kFreeOut,
          "beta * input + alpha * mat1 @ mat2.");
  ops.def("baddbmm", baddbmm, "input, batch1, batch2, *, beta=1, alpha=1",
          kMethod | kInplace | kCastLow | kExactOut | kFreeOut, "beta * input + alpha * batch1 @ batch2.");
  ops.def("addbmm", addbmm, "input, batch1, batch2, *, beta=1, alpha=1",
          kMethod | kInplace | kCastLow | kExactOut | kFreeOut,
          "beta * input + alpha * the sum of batch1 @ batch2 over the batch.");
  ops.def("addmv", addmv, "input, mat, vec, *, beta=1, alpha=1", kMethod | kInplace | kExactOut | kFreeOut,
          "beta * input + alpha * mat @ vec.");
  ops.def("addr", addr, "input, vec1, vec2, *, beta=1, alpha=1", kMethod | kInplace,
          "beta * input + alpha * the outer product of the vectors.");
  OldForms<addmm>::define(ops, "addmm", kCastLow);
  OldForms<baddbmm>::define(ops, "baddbmm", kCastLow);
  OldForms<addbmm>::define(ops, "addbmm", kCastLow);
  OldForms<addmv>::define(ops, "addmv", 0);
  OldForms<addr>::define(ops, "addr", 0);
});

}  // namespace rl::ops
