// matmul by all its rules, and linear.
#include "ops/linalg/matmul.h"

#include <algorithm>

#include "autograd/copy_on_write.h"
#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/mm.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

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
      n.self = rearranged(wide, {a, b}, true) ? save_copy_on_write(n, a)
               : given_a.dim() == 1           ? save(given_a)
                                              : save_view(a);
    if (n.needs(0))
      n.other = rearranged(wide, {a, b}, false) ? save_copy_on_write(n, b)
                : given_b.dim() <= 2            ? save(given_b)
                                                : save_view(b);
    n.shared = b.dim() == 2 && a.dim() > 2;
  });
}
// A view from outside the graph of a tensor that is part of it asks for gradients and leads nowhere. PyTorch multiplies
// views of batches and of what they are multiplied by from the left: views of such a view are steps of the graph, and
// so the other operand is kept for a gradient that nobody takes, and may not be written to. A vector, and a matrix on
// the right, are multiplied as they are. Of a view whose base was written to since, grad_fn_of refuses to tell.
static bool leads_nowhere(const Tensor& t) {
  return grad_enabled() && !t->requires_grad && t->wants_grad() && !grad_fn_of(t.get());
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
  CHECK(x.dim() >= 1, Runtime, "both arguments to linear need to be at least 1D, but they are ", x.dim(), "D and ",
        weight.dim(), "D: give the input a dimension with x.unsqueeze(0)");
  CHECK(weight.dim() == 1 || weight.dim() == 2, Runtime,
        "linear: expected a weight of one or two dimensions, got shape ", to_text(weight.sizes()));
  if (weight.dim() == 1 || (bias.defined() && bias.dim() > 1)) {  // no fused form
    Tensor y = weight.dim() == 1 ? matmul(x, weight) : linear(x, weight, {});
    return bias.defined() ? add(y, bias) : y;
  }
  // As in PyTorch, which multiplies such inputs first and adds then, the bias may be of another type.
  if (bias.defined() && x.dim() >= 3 && !x.is_contiguous() && bias.dtype() != x.dtype() && is_float(bias.dtype()) &&
      is_float(x.dtype()))
    return linear(x, weight, cast(bias, x.dtype()));
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
  if (y.numel()) {
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
    View out{y.memory(), ys.data(), yt.data(), dims, y.dtype()}, in{x.memory(), xs.data(), xt.data(), dims, x.dtype()};
    View w{weight.memory(), ws.data(), wt.data(), dims, x.dtype()};
    if (bias.defined()) {
      bt[lead] = bias.numel() == 1 ? 0 : bias.strides()[0];
      View add_view{bias.memory(), ys.data(), bt.data(), dims, x.dtype()};
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

static Tensor linear_op(const Tensor& x, const Tensor& w, const OptTensor& b) { return linear(x, w, b); }
static Tensor matmul_swapped(const Tensor& a, const Tensor& b) { return matmul(b, a); }

static NewObject not_a_matrix(const Tensor&, Object) { return {Py_NewRef(Py_NotImplemented)}; }

static const Register registered([](Ops& ops) {
  ops.def("matmul", matmul, "input, other", kMethod | kCastLow | kExactOut | kFreeOut, R"(
    Multiplies matrices, vectors, or batches of matrices: input @ other.

    Args:
        input: a vector (M), a matrix (N, M), or batches (..., N, M).
        other: a vector (M), a matrix (M, P), or batches (..., M, P).

    Shape:
        (..., N, M) and (..., M, P) give (..., N, P); the dimensions in front broadcast, and that of a
        vector is gone from the result.

    Example:
        >>> A = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.matmul(A, torch.tensor([1.0, 10.0]))
        tensor([21., 43.])
        >>> (torch.ones(5, 2, 3) @ torch.ones(3, 4)).shape
        torch.Size([5, 2, 4]))");
  ops.alias("linalg.matmul", "matmul");
  ops.def("__rmatmul__", matmul_swapped, "input, other", kMethod | kNoFunction | kNoOut | kCastLow);
  ops.def("__rmatmul__", not_a_matrix, "input, other", kMethod | kNoFunction | kNoOut);
  ops.def("nn.functional.linear", linear_op, "input, weight, bias=None", kExactOut | kCastLow, R"(
    Applies a linear map to the last dimension: input @ weight^T + bias.

    Args:
        weight: the matrix (out, in).
        bias: the vector (out) that is added; None for nothing.

    Shape:
        (*, in) gives (*, out).

    Example:
        >>> F.linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 1.0], [0.0, 3.0]]), torch.tensor([10.0, 0.0]))
        tensor([[13.,  6.]]))");
});

}  // namespace rl::ops
