#include <climits>

#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// The tensor itself if its rows have unit stride and do not overlap, else a copy.
static Tensor with_rows(const Tensor& t) {
  bool fits = (t.strides()[3] == 1 || t.sizes()[3] <= 1) && (t.strides()[2] >= t.sizes()[3] || t.sizes()[2] <= 1) &&
              t.strides()[2] <= INT_MAX;
  return fits ? t : contiguous(t);
}

// A tensor of these sizes (batch, heads, length, width) whose heads lie side by side in memory, as they do in the
// layers around attention: joining them afterwards copies nothing.
static Tensor empty_joined(IntSpan sizes, const Tensor& like) {
  int64_t step = checked_mul(sizes[1], sizes[3]);
  return empty_strided(sizes, Ints{checked_mul(sizes[2], step), sizes[3], step, 1}, like.dtype(), like.device());
}

// attention: o = softmax(scale q k' + mask) v over (batch, heads, length, width); causal: each query sees the keys up
// to its own position; mask: booleans that say which keys a query sees, or values that are added; it gets no gradient
struct AttentionBackward : Node {
  static constexpr const char* kName = "ScaledDotProductFlashAttentionForCpuBackward0";
  static constexpr bool kStacks = true;
  Saved query, key, value, output, logsumexp, attn_mask;
  bool causal = false;
  double scale = 1;
  Grads backward(const Grads& dy) {
    Tensor q = query.unpack(*this), k = key.unpack(*this), v = value.unpack(*this);
    if (grad_enabled() || lead(dy[0])) return composed(q, k, v, dy[0]);
    Tensor d = with_rows(dy[0]), qc = with_rows(q), kc = with_rows(k), vc = with_rows(v), o = output.unpack(*this);
    Tensor dq = empty_joined(q.sizes(), q), dk = empty_joined(k.sizes(), q), dv = empty_joined(v.sizes(), q);
    Tensor mask = attn_mask.defined() ? attn_mask.unpack(*this) : Tensor();
    View seen = mask.defined() ? mask.view() : View();
    backend(dq.device())
        .attention->backward(causal, scale, dq.view(), dk.view(), dv.view(), d.view(), o.view(),
                             logsumexp.unpack(*this).view(), qc.view(), kc.view(), vc.view(),
                             mask.defined() ? &seen : nullptr);
    return {dq, dk, dv};
  }
  // Written with ops, so that it can be differentiated again, and of stacked gradients.
  Grads composed(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g) {
    Tensor s = mul(matmul(q, transpose(k, 2, 3)), scale);
    if (causal) {
      Tensor seen = tril(full(Ints{q.sizes()[2], k.sizes()[2]}, Scalar(true), DType::Bool, q.device()));
      s = where(seen, s, Scalar(-std::numeric_limits<double>::infinity()));
    }
    if (attn_mask.defined()) {
      Tensor mask = attn_mask.unpack(*this);
      s = mask.dtype() == DType::Bool ? where(mask, s, Scalar(-std::numeric_limits<double>::infinity())) : add(s, mask);
    }
    Ints kept(s.sizes());
    kept[3] = 1;
    Tensor e = exp(sub(s, unsqueeze(detach(logsumexp.unpack(*this)), 3))), total = sum_to(e, kept);
    Tensor p = div(e, attn_mask.defined() ? where(eq(total, Scalar(0)), Scalar(1), total) : total);
    Tensor dp = matmul(g, transpose(v, 2, 3)), ds = mul(mul(p, sub(dp, sum(mul(p, dp), Ints{-1}, true))), scale);
    return {matmul(ds, k), matmul(transpose(ds, -2, -1), q), matmul(transpose(p, 2, 3), g)};
  }
  FIELDS(query, key, value, output, logsumexp, attn_mask)
};
static Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, double scale,
                        const OptTensor& given_mask) {
  const bool half = q.dtype() == DType::BFloat16 || q.dtype() == DType::Float16;
  const bool recorded = grad_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  if (half && (recorded || !backend(q.device()).attention->takes_half())) {
    auto wide = [](const Tensor& t) { return cast(t, DType::Float32); };
    return cast(attention(wide(q), wide(k), wide(v), causal, scale, given_mask), q.dtype());
  }
  bool right = q.dim() == 4 && k.dim() == 4 && v.dim() == 4 && q.dtype() == k.dtype() && q.dtype() == v.dtype() &&
               (half || q.dtype() == DType::Float32 || q.dtype() == DType::Float64);
  right = right && q.sizes()[0] == k.sizes()[0] && k.sizes()[0] == v.sizes()[0] && k.sizes()[1] == v.sizes()[1];
  // Heads of keys and values may be shared by several of the queries' where no gradient is wanted.
  const bool shared = right && q.sizes()[1] != k.sizes()[1];
  if (shared) right = k.sizes()[1] > 0 && q.sizes()[1] % k.sizes()[1] == 0 && !recorded;
  CHECK(right && q.sizes()[3] == k.sizes()[3] && k.sizes()[2] == v.sizes()[2] && k.sizes()[2] > 0, Runtime,
        "attention: expected query (N, H, L, E), key (N, H, S, E) and value (N, H, S, F) of one type, got ",
        to_text(q.sizes()), ", ", to_text(k.sizes()), " and ", to_text(v.sizes()));
  CHECK(q.sizes()[2] <= INT_MAX && k.sizes()[2] <= INT_MAX && q.sizes()[3] <= INT_MAX && v.sizes()[3] <= INT_MAX,
        Runtime, "attention: the sizes are too large: ", to_text(q.sizes()), ", ", to_text(v.sizes()));
  Tensor mask = given_mask;
  const DType number = half ? DType::Float32 : q.dtype();
  if (mask.defined()) {
    CHECK((mask.dtype() == DType::Bool || mask.dtype() == number) && mask.device() == q.device() &&
              !(mask.requires_grad() && grad_enabled()),
          Runtime, "attention: expected a mask of booleans or of ", info(number).name, " without gradient, got ",
          info(mask.dtype()).name);
    mask = expand(detach(mask), Ints{q.sizes()[0], q.sizes()[1], q.sizes()[2], k.sizes()[2]});
  }
  Ints sizes(q.sizes());
  sizes[3] = v.sizes()[3];
  bool joined = q.strides()[1] < q.strides()[2] && sizes[3] == q.sizes()[3];
  Tensor y = joined ? empty_joined(sizes, q) : empty(sizes, q.dtype(), q.device()),
         lse = empty(Ints{sizes[0], sizes[1], sizes[2]}, number, q.device());
  if (lse.numel()) {
    NoGrad raw;
    Tensor qc = with_rows(q), kc = with_rows(k), vc = with_rows(v);
    View seen = mask.defined() ? mask.view() : View();
    backend(y.device())
        .attention->forward(causal, scale, y.view(), lse.view(), qc.view(), kc.view(), vc.view(),
                            mask.defined() ? &seen : nullptr);
  }
  return record<AttentionBackward>(y, {q, k, v}, [&](auto& n) {
    n.query = save(q);
    n.key = save(k);
    n.value = save(v);
    n.output = save_output(n, y);
    n.logsumexp = save(lse);
    if (mask.defined()) n.attn_mask = save(mask);
    n.causal = causal;
    n.scale = scale;
  });
}

static const Register registered([](Ops& ops) {
  ops.def("_nn.attention", attention, "query, key, value, is_causal, scale, attn_mask=None", kNoOut | kCastLow,
          "softmax(scale query key' + attn_mask) value, for (N, H, length, width).");
});

}  // namespace rl::ops
