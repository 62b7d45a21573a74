#include <limits>

#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

static Tensor sum_all(const Tensor& x) { return sum_to(x, Ints()); }
static Tensor reduced(const Tensor& loss, int64_t reduction) {
  if (reduction == kNone) return loss;
  return reduction == kSum ? sum_all(loss) : mean(loss);  // a mean of halves does not overflow as their sum does
}
static DType compute_dtype(DType t) { return is_half(t) ? DType::Float32 : t; }

// dy of a loss, which is one number or one for each element of x, so that it broadcasts to x behind dy's rows.
static Tensor per_element(const Node& node, const Tensor& dy, const Tensor& x) {
  return node.lead(dy) && node.results[0].sizes.empty() ? reshape(dy, node.led(dy, Ints(x.dim(), 1))) : dy;
}

// mse_loss: y = mean or sum of (x - t)^2        dx = 2 (x - t) dy [/ n]
struct MseLossBackward : Node {
  static constexpr const char* kName = "MseLossBackward0";
  static constexpr bool kStacks = true;
  Saved self, target;
  int64_t reduction = kMean;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    double factor = reduction == kMean ? 2.0 / static_cast<double>(x.numel()) : 2.0;
    Tensor t = target.unpack(*this), g = per_element(*this, dy[0], x), d;
    if (grad_enabled() || !is_float(x.dtype()) || x.dtype() != t.dtype()) {
      d = mul(sub(x, t), mul(g, factor));
    } else {
      Value operands[] = {g, x, t};
      d = pointwise("mse_loss_backward", Pointwise::HuberGrad, operands, 3,
                    with_numbers(Rule::Same, std::numeric_limits<double>::infinity(), factor));
    }
    return {d, needs(1) ? neg(d) : Tensor()};
  }
  FIELDS(self, target, reduction)
};
static Tensor mse_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
  CHECK(input.sizes() == target.sizes(), Runtime, "mse_loss: expected input and target of one shape, got ",
        to_text(input.sizes()), " and ", to_text(target.sizes()));
  Tensor y;
  {
    NoGrad raw;
    const bool one = reduction == kNone && is_float(input.dtype()) && input.dtype() == target.dtype();
    Tensor d = one ? Tensor() : sub(input, target);
    if (one) {
      y = binary("mse_loss", Pointwise::SquaredDifference, input, target, {});
    } else if (reduction == kNone) {
      y = mul(d, d);
    } else if (is_float(d.dtype())) {
      const DType type = d.dtype(), wide = is_half(type) && reduction == kMean ? DType::Float32 : type;
      d = cast(d, wide);
      Tensor total = empty(Ints(d.dim(), 1), wide, d.device());
      backend(total.device()).reduce->reduce(Reduce::SumSquares, total.view(), d.view(), 0);
      y = reshape(total, Ints());
      if (reduction == kMean) y = div(y, static_cast<double>(d.numel()));
      y = cast(y, type);
    } else {
      y = reduced(mul(d, d), reduction);
    }
  }
  return record<MseLossBackward>(y, {input, target}, [&](auto& n) {
    n.self = save(input);
    n.target = save(target);
    n.reduction = reduction;
  });
}

// smooth_l1_loss, huber_loss: mean, sum or each of scale d^2 / 2, d = x - t, and scale limit (|d| - limit / 2) from
// |d| = limit on        dx = dy [/ n] scale clamp(d, -limit, limit)
struct HuberBackward : Node {
  static constexpr bool kStacks = true;
  Saved self, target;
  double limit = 1, scale = 1;
  int64_t reduction = kMean;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), t = target.unpack(*this), g = per_element(*this, dy[0], x), d;
    double factor = reduction == kMean ? scale / static_cast<double>(x.numel()) : scale;
    if (grad_enabled()) {
      d = mul(clamp(sub(x, t), Scalar(-limit), Scalar(limit)), mul(g, factor));
    } else {
      Value operands[] = {g, x, t};
      d = pointwise("smooth_l1_loss_backward", Pointwise::HuberGrad, operands, 3,
                    with_numbers(Rule::Same, limit, factor));
    }
    return {d, needs(1) ? neg(d) : Tensor()};
  }
  FIELDS(self, target, limit, scale, reduction)
};
struct SmoothL1LossBackward : HuberBackward {
  static constexpr const char* kName = "SmoothL1LossBackward0";
};
struct HuberLossBackward : HuberBackward {
  static constexpr const char* kName = "HuberLossBackward0";
};
template <class N> static Tensor clipped_square(const char* name, const Tensor& input, const Tensor& target,
                                                int64_t reduction, double limit, double scale) {
  CHECK(input.sizes() == target.sizes(), Runtime, name, ": expected input and target of one shape, got ",
        to_text(input.sizes()), " and ", to_text(target.sizes()));
  Tensor y;
  {
    NoGrad raw;
    y = reduced(binary(name, Pointwise::Huber, input, target, with_numbers(Rule::Same, limit, scale)), reduction);
  }
  return record<N>(y, {input, target}, [&](auto& n) {
    n.self = save(input);
    n.target = save(target);
    n.limit = limit;
    n.scale = scale;
    n.reduction = reduction;
  });
}
static Tensor smooth_l1(const Tensor& input, const Tensor& target, int64_t reduction, double beta) {
  CHECK(beta > 0, Runtime, "smooth_l1_loss: expected beta above 0, got ", beta);
  return clipped_square<SmoothL1LossBackward>("smooth_l1_loss", input, target, reduction, beta, 1 / beta);
}
static Tensor huber(const Tensor& input, const Tensor& target, int64_t reduction, double delta) {
  CHECK(delta > 0, Runtime, "huber_loss does not support non-positive values for delta.");
  return clipped_square<HuberLossBackward>("huber_loss", input, target, reduction, delta, 1);
}

// binary_cross_entropy of probabilities: l = -(t log x + (1 - t) log(1 - x)), logarithms not below -100
//   dx = (x - t) / max(x (1 - x), 1e-12), dt = log(1 - x) - log x
struct BinaryCrossEntropyBackward : Node {
  static constexpr const char* kName = "BinaryCrossEntropyBackward0";
  static constexpr bool kStacks = true;
  Saved self, target, weight;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), t = target.unpack(*this), g = dy[0];
    if (weight.defined()) g = mul(g, weight.unpack(*this));
    Grads d(2);
    if (needs(0)) d[0] = mul(g, div(sub(x, t), clamp(mul(x, sub(Scalar(1), x)), Scalar(1e-12), std::nullopt)));
    if (needs(1)) d[1] = mul(g, sub(log1p(neg(x)), log(x)));
    return d;
  }
  FIELDS(self, target, weight)
};
static Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const OptTensor& weight,
                                   int64_t reduction) {
  CHECK(input.dtype() == target.dtype(), Runtime, "Found dtype ", info(target.dtype()).legacy, " but expected ",
        info(input.dtype()).legacy);
  CHECK(is_float(input.dtype()), NotImplemented, "\"binary_cross_entropy\" not implemented for '",
        info(input.dtype()).legacy, "'");
  Tensor loss;
  {
    NoGrad raw;
    if (input.has_values() && input.numel()) {
      Tensor x = contiguous(input);
      Tensor low = empty(Ints(x.dim(), 1), x.dtype(), x.device()), high = empty_like(low);
      backend(low.device()).reduce->aminmax(low.view(), high.view(), x.view());
      double least = item(low).to_double(), most = item(high).to_double();
      CHECK(!(least < 0) && !(most > 1), Runtime, "all elements of input should be between 0 and 1: the smallest is ",
            least, ", the largest ", most, " (apply sigmoid first, or use binary_cross_entropy_with_logits)");
    }
    Tensor one = clamp(log(input), Scalar(-100.0), std::nullopt),
           other = clamp(log1p(neg(input)), Scalar(-100.0), std::nullopt);
    loss = sub(mul(sub(target, Scalar(1)), other), mul(target, one));
    if (weight) loss = mul(loss, weight);
  }
  loss = record<BinaryCrossEntropyBackward>(loss, {input, target}, [&](auto& n) {
    n.self = save(input);
    n.target = save(target);
    if (weight) n.weight = save(weight);
  });
  return reduced(loss, reduction);
}

// binary_cross_entropy_with_logits: l = (1 - t) x - f log sigmoid(x), f = 1 + (w - 1) t, for each element; w is 1 or
// the weight of positives
//   dx = dy (1 - t - f sigmoid(-x)), without w dy (sigmoid(x) - t), dt = -dy (x + (w - 1) log sigmoid(x)),
//   dw = -dy t log sigmoid(x)
struct LogitsLossBackward : Node {
  static constexpr const char* kName = "BinaryCrossEntropyWithLogitsBackward0";
  static constexpr bool kStacks = true;
  Saved self, target, pos_weight;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), t = target.unpack(*this);
    Grads d(edges.size());
    if (pos_weight.defined()) {
      Tensor w = pos_weight.unpack(*this), more = sub(w, Scalar(1)), g = dy[0];
      if (needs(0)) d[0] = mul(g, sub(sub(Scalar(1), t), mul(add(mul(more, t), Scalar(1)), sigmoid(neg(x)))));
      if (needs(1) || needs(2)) {
        Tensor z = neg(softplus(neg(x), Scalar(1), Scalar(40)));  // log sigmoid(x)
        if (needs(1)) d[1] = neg(mul(g, add(x, mul(more, z))));
        if (needs(2)) d[2] = neg(mul(g, mul(t, z)));
      }
      return d;
    }
    if (needs(0) && grad_enabled()) {
      d[0] = mul(dy[0], sub(sigmoid(x), t));
    } else if (needs(0)) {
      Value operands[] = {dy[0], x, t};
      d[0] = pointwise("binary_cross_entropy_with_logits", Pointwise::LogitsLossGrad, operands, 3, {.cost = 12});
    }
    if (needs(1)) d[1] = mul(dy[0], neg(x));
    return d;
  }
  FIELDS(self, target, pos_weight)
};
static Tensor logits_loss(const Tensor& input, const Tensor& target, const OptTensor& pos_weight) {
  const char* name = "binary_cross_entropy_with_logits";
  auto fill = [&](auto& n) {
    n.self = save(input);
    n.target = save(target);
    if (pos_weight) n.pos_weight = save(pos_weight);
  };
  if (!pos_weight)
    return record<LogitsLossBackward>(binary(name, Pointwise::LogitsLoss, input, target, {.cost = 20}), {input, target},
                                      fill);
  Value operands[] = {input, target, Tensor(pos_weight)};
  return record<LogitsLossBackward>(pointwise(name, Pointwise::BCEWithLogits, operands, 3, {.cost = 20}),
                                    {input, target, Tensor(pos_weight)}, fill);
}

// cross_entropy of scores x (N, C, ...) and classes t: l = w[t] (log sum e^(x - m) - (x[t] - m)), m = max x
//   dx = w[t] dy [/ sum of the weights] (softmax(x) - [class is t])
struct CrossEntropyBackward : Node {
  static constexpr const char* kName = "NllLossBackward0";
  Saved self, target, factor;  // factor: w[t], 0 where ignored; (N, inner)
  Saved lse;                   // m and log sum e^(x - m), (2, N, inner)
  LossShape shape{};
  double scale = 1;    // 1 / sum of the weights for the mean
  bool each = false;   // no reduction: dy has the targets' shape
  bool scores = true;  // x are scores; else log probabilities, without lse
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), f = mul(factor.unpack(*this), scale);
    Tensor g = each ? reshape(cast(dy[0], f.dtype()), f.sizes()) : cast(dy[0], f.dtype());
    f = mul(f, g);
    Ints wide{shape.batch, shape.classes, shape.inner}, thin{shape.batch, 1, shape.inner};
    if (!scores) {
      Tensor t = target.unpack(*this), inside = logical_and(ge(t, Scalar(0)), lt(t, Scalar(shape.classes)));
      Tensor at = reshape(where(inside, t, Scalar(0)), thin);  // ignored ones write their 0 somewhere
      return {reshape(scatter(zeros(wide, f.dtype(), x.device()), 1, at, reshape(neg(f), thin)), x.sizes())};
    }
    if (grad_enabled()) {
      // Written with ops, so that it can be differentiated again.
      Tensor x3 = cast(reshape(x, wide), f.dtype()), top = reshape(select(detach(lse.unpack(*this)), 0, 0), thin);
      Tensor e = exp(sub(x3, top)), p = div(e, sum_to(e, thin));
      Tensor t = target.unpack(*this);
      Tensor index = reshape(where(lt(t, Scalar(0)), Scalar(0), t), thin), f3 = reshape(f, thin);
      Tensor one_hot = scatter(zeros(wide, f.dtype(), x.device()), 1,
                               where(ge(index, Scalar(shape.classes)), Scalar(0), index), Value(Scalar(1.0)));
      return {reshape(mul(sub(p, one_hot), f3), x.sizes())};
    }
    Tensor dx = empty(x.sizes(), x.dtype(), x.device()), xc = contiguous(x), fc = contiguous(f);
    if (dx.numel())
      backend(dx.device())
          .loss->cross_entropy_grad(shape, dx.view(), xc.view(), lse.unpack(*this).view(), target.unpack(*this).view(),
                                    fc.view());
    return {dx};
  }
  // dx is dy times what it is for dy = 1.
  Grads stacked(const Grads& dy) {
    Tensor x = self.unpack(*this), one = full(results[0].sizes, Scalar(1), results[0].dtype, results[0].device);
    Tensor g = each ? unsqueeze(dy[0], x.dim() > 1 ? 2 : 1) : reshape(dy[0], led(dy[0], Ints(x.dim(), 1)));
    return {mul(g, backward({one})[0])};
  }
  FIELDS(self, target, factor, lse)
};

static void check_classes(const Tensor& x, const Tensor& t) {
  CHECK(x.dim() >= 1, Value, "Expected 1 or more dimensions (got 0)");
  CHECK(x.dim() == 1 || t.dim() == 0 || x.sizes()[0] == t.sizes()[0], Value, "Expected input batch_size (",
        x.sizes()[0], ") to match target batch_size (", t.sizes()[0], ").");
  if (x.dim() <= 2) {
    CHECK(t.dim() <= 1, Runtime, "0D or 1D target tensor expected, multi-target not supported: got scores of shape ",
          to_text(x.sizes()), " and a target of shape ", to_text(t.sizes()),
          "\n  write one class number per sample: target.squeeze(1) if it is (N, 1), target.argmax(1) if its rows are "
          "one-hot; "
          "probabilities of classes, of the scores' shape and float, go to cross_entropy");
    CHECK(x.dim() == 1 ? t.dim() == 0 || t.numel() == 1 : t.dim() == 1, Value, "Expected input batch_size (",
          x.dim() == 1 ? 1 : x.sizes()[0], ") to match target batch_size (", t.numel(), ").");
  } else {
    CHECK(x.dim() != 4 || t.dim() == 3, Runtime,
          "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", t.dim());
    Ints wanted(x.sizes());
    for (int64_t i = 1; i + 1 < wanted.size(); ++i) wanted[i] = wanted[i + 1];
    wanted.resize(wanted.size() - 1);
    if (x.dim() == 4)
      CHECK(IntSpan(wanted) == t.sizes(), Runtime, "size mismatch (got input: ", to_text(x.sizes()),
            " , target: ", to_text(t.sizes()));
    CHECK(IntSpan(wanted) == t.sizes(), Runtime, "Expected target size ", to_text(wanted), ", got ",
          to_text(t.sizes()));
  }
  CHECK(t.dtype() == DType::Int64 || t.dtype() == DType::UInt8, Runtime,
        "expected target dtype to be Long or Byte, but got ", info(t.dtype()).legacy,
        "\n  the target holds class numbers: target.long(); probabilities of classes need the shape of the scores, ",
        to_text(x.sizes()));
}

static Tensor class_loss(bool scores, const Tensor& input, const Tensor& target, const OptTensor& weight,
                         int64_t reduction, int64_t ignore_index) {
  CHECK(is_float(input.dtype()), NotImplemented,
        scores ? "\"log_softmax_lastdim_kernel_impl\"" : "\"nll_loss_out_frame\"", " not implemented for '",
        info(input.dtype()).legacy, "'");
  check_classes(input, target);
  LossShape s{1, input.sizes()[input.dim() == 1 ? 0 : 1], 1};
  if (input.dim() > 1) s.batch = input.sizes()[0];
  for (int64_t i = 2; i < input.dim(); ++i) s.inner *= input.sizes()[i];
  CHECK(!weight || (weight.dim() == 1 && weight.numel() == s.classes), Runtime,
        "weight tensor should be defined either for all ", s.classes,
        " classes or no classes but got weight tensor of shape: ", weight ? to_text(weight.sizes()) : "");
  CHECK(!weight || weight.dtype() == input.dtype(), Runtime, "expected scalar type ", info(input.dtype()).legacy,
        " but found ", weight ? info(weight.dtype()).legacy : "");
  DType compute = compute_dtype(input.dtype());
  Device device = input.device();
  Ints wide{s.batch, s.classes, s.inner}, thin{s.batch, 1, s.inner}, flat{s.batch, s.inner};
  double used = 0;
  Tensor losses = zeros(flat, compute, device), lse, classes, y;
  {
    NoGrad raw;
    classes = contiguous(reshape(cast(target, DType::Int64), flat));
    if (losses.numel()) {
      Tensor x = contiguous(reshape(input, wide));
      if (scores) lse = empty({2, s.batch, s.inner}, compute, device);
      Tensor w = weight ? contiguous(cast(weight, compute)) : Tensor();
      View wv = w ? w.view() : View();
      backend(losses.device())
          .loss->cross_entropy(s, losses.view(), &used, x.view(), lse ? lse.view() : View(), classes.view(),
                               w ? &wv : nullptr, ignore_index);
    }
    if (reduction == kNone) y = reshape(losses, target.sizes());
    else y = reduction == kMean ? div(sum_all(losses), used) : sum_all(losses);
    y = cast(y, input.dtype());
  }
  return record<CrossEntropyBackward>(y, {input}, [&](auto& n) {
    NoGrad raw;
    n.self = save(input);
    n.target = save(classes);
    n.lse = save(lse ? lse : losses);
    Tensor keep = cast(ne(classes, Scalar(ignore_index)), compute);
    if (weight && losses.numel()) {
      Tensor at = where(ne(classes, Scalar(ignore_index)), classes, Scalar(0));
      keep = mul(keep, reshape(index_select(cast(weight, compute), 0, reshape(at, Ints{at.numel()})), flat));
    }
    n.factor = save(contiguous(keep));
    n.shape = s;
    n.scores = scores;
    n.each = reduction == kNone;
    n.scale = reduction == kMean ? 1 / used : 1;
  });
}

static Tensor cross_entropy(const Tensor& input, const Tensor& target, const OptTensor& weight, int64_t reduction,
                            int64_t ignore_index) {
  return class_loss(true, input, target, weight, reduction, ignore_index);
}
static Tensor nll_loss(const Tensor& input, const Tensor& target, const OptTensor& weight, int64_t reduction,
                       int64_t ignore_index) {
  return class_loss(false, input, target, weight, reduction, ignore_index);
}

static const Register registered([](Ops& ops) {
  ops.def("_nn.nll_loss_nd", nll_loss, "input, target, weight=None, reduction=1, ignore_index=-100", kNoOut | kCastFull,
          "The negative log likelihood of classes.");
  ops.def("_nn.mse_loss", mse_loss, "input, target, reduction=1", kNoOut | kCastFull,
          "The mean (1), sum (2) or each (0) of the squared differences.");
  ops.def("_nn.smooth_l1", smooth_l1, "input, target, reduction=1, beta=1.0", kNoOut | kCastFull,
          "Differences, squared up to beta and linear beyond, divided by beta.");
  ops.def("_nn.huber", huber, "input, target, reduction=1, delta=1.0", kNoOut | kCastFull,
          "Differences, squared up to delta and linear beyond.");
  ops.def("_nn.logits_loss", logits_loss, "input, target, pos_weight=None", 0,
          "(1 - target) * input - (1 + (pos_weight - 1) * target) * log(sigmoid(input)).");
  ops.def("_nn.binary_cross_entropy", binary_cross_entropy, "input, target, weight=None, reduction=1",
          kNoOut | kCastFull, "Cross entropy of probabilities and targets in [0, 1].");
  ops.def("_nn.cross_entropy", cross_entropy, "input, target, weight=None, reduction=1, ignore_index=-100",
          kNoOut | kCastFull, "Cross entropy of scores and classes.");
});

}  // namespace rl::ops
