#include <cmath>
#include <limits>
#include <vector>

#include "backend/backend.h"
#include "base/parallel.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// Note [Two ways through a norm]
// Forward and first derivative are fused kernels. When the derivative is itself to be differentiated (create_graph), or
// dy is a stack of rows, it is written with ops instead, on x and dy as (batch, groups, per, inner) or (batch,
// channels, inner), and so has every order.

// inverse root: y = x^(-1/2)        dx = -dy y^3 / 2
struct InverseRootBackward : Node {
  static constexpr const char* kName = "RsqrtBackward0";
  static constexpr bool kStacks = true;
  Saved result;
  Grads backward(const Grads& dy) {
    Tensor y = result.unpack(*this);
    return {mul(mul(dy[0], -0.5), mul(y, mul(y, y)))};
  }
  FIELDS(result)
};
static Tensor inverse_root(const Tensor& x) {
  Tensor y = unary("rsqrt", Pointwise::Rsqrt, x, {.rule = Rule::Float, .cost = 4});
  return record<InverseRootBackward>(y, {x}, [&](auto& n) { n.result = save_output(n, y); });
}

static Tensor mean_to(const Tensor& x, IntSpan kept) {
  int64_t ratio = 1;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (kept[i] == 1) ratio *= x.sizes()[i];
  return div(sum_to(x, kept), static_cast<double>(ratio));
}

enum class Stats : uint8_t { Own, RootMeanSquare, Given };

// The derivative written with ops. x, dy have the shape of Note [Two ways through a norm]; w (or undefined) and the
// mean and rstd of `Given` broadcast to it; statistics are over the dimensions where `kept` is 1. Results: dx, dw, db
// as x's shape summed to w's.
static Grads composed(Stats stats, const Tensor& x, const Tensor& dy, const Tensor& w, IntSpan kept, IntSpan params,
                      double eps, const Tensor& mean, const Tensor& rstd, bool need_x, bool need_w, bool need_b) {
  Grads d(3);
  auto of_dy = [&](IntSpan sizes) {  // behind the rows of a stacked dy
    Ints all(IntSpan(dy.sizes().data(), dy.dim() - x.dim()));
    for (int64_t n : sizes) all.push_back(n);
    return all;
  };
  Tensor xhat, r = rstd;
  if (stats == Stats::Given) {
    xhat = mul(sub(x, mean), r);
  } else {
    Tensor centred = stats == Stats::Own ? sub(x, mean_to(x, kept)) : x;
    r = inverse_root(add(mean_to(mul(centred, centred), kept), eps));
    xhat = mul(centred, r);
  }
  if (need_x) {
    Tensor g = w ? mul(dy, w) : dy;
    if (stats == Stats::Given) {
      d[0] = mul(g, r);
    } else {
      Tensor inner = sub(g, mul(xhat, mean_to(mul(g, xhat), of_dy(kept))));
      d[0] = mul(r, stats == Stats::Own ? sub(inner, mean_to(g, of_dy(kept))) : inner);
    }
  }
  if (need_w) d[1] = sum_to(mul(dy, xhat), of_dy(params));
  if (need_b) d[2] = sum_to(dy, of_dy(params));
  return d;
}

static DType compute_dtype(DType t) { return is_half(t) ? DType::Float32 : t; }

// A parameter in the computing type, contiguous and without history.
static Tensor raw_param(const char* name, const char* what, const Tensor& p, const Tensor& x) {
  if (!p) return {};
  CHECK(p.dtype() == x.dtype() || (is_half(x.dtype()) && p.dtype() == DType::Float32), Runtime, name, ": expected ",
        what, " to have scalar type ", info(x.dtype()).legacy, " but found ", info(p.dtype()).legacy);
  NoGrad raw;
  return contiguous(cast(p, compute_dtype(x.dtype())));
}
struct OptView {
  View view{};
  bool present = false;
  explicit OptView(const Tensor& t) : present(t.defined()) {
    if (present) view = t.view();
  }
  const View* get() const { return present ? &view : nullptr; }
};
static void check_float(const char* name, const Tensor& x) {
  CHECK(is_float(x.dtype()), NotImplemented, "\"", name, "\" not implemented for '", info(x.dtype()).legacy, "'");
}

// rows: layer, group, instance and root-mean-square norm.  y = (x - mean) rstd w + b over rows
struct NormRowsBackward : Node {
  static constexpr const char* kName = "NativeLayerNormBackward0";
  static constexpr bool kStacks = true;
  Saved input, weight, result1, result2;  // result1 = mean, result2 = rstd
  NormRows rows{};
  bool rms = false;
  double eps = 0;
  Grads backward(const Grads& dy) {
    Tensor x = input.unpack(*this), w = weight.defined() ? weight.unpack(*this) : Tensor();
    Grads d(3);
    if (x.numel() == 0) {
      if (needs(0)) d[0] = zeros(led(dy[0], x.sizes()), x.dtype(), x.device());
      for (int i = 1; i < 3; ++i)
        if (needs(i)) d[i] = zeros(led(dy[0], param_sizes), compute_dtype(x.dtype()), x.device());
      return d;
    }
    int64_t per = rows.length / rows.inner;
    if (grad_enabled() || lead(dy[0])) {
      Ints shape{rows.rows / rows.groups, rows.groups, per, rows.inner}, kept{shape[0], shape[1], 1, 1},
          params{1, rows.groups, per, 1};
      Tensor w4 = w ? reshape(w, params) : Tensor();
      d = composed(rms ? Stats::RootMeanSquare : Stats::Own, reshape(x, shape), reshape(dy[0], led(dy[0], shape)), w4,
                   kept, params, eps, {}, {}, needs(0), needs(1), needs(2));
      if (d[0]) d[0] = reshape(d[0], led(dy[0], x.sizes()));
    } else {
      DType compute = compute_dtype(x.dtype());
      Tensor xc = contiguous(x), g = contiguous(dy[0]), wc = raw_param("norm", "weight", w, x);
      if (needs(0)) d[0] = empty(x.sizes(), x.dtype(), x.device());
      if (needs(1)) d[1] = empty(Ints{rows.groups, per}, compute, x.device());
      if (needs(2)) d[2] = empty(Ints{rows.groups, per}, compute, x.device());
      Tensor mean = result1.defined() ? result1.unpack(*this) : Tensor(), rstd = result2.unpack(*this);
      backend(g.device())
          .norm->rows_grad(rows, rms, OptView(d[0]).get(), OptView(d[1]).get(), OptView(d[2]).get(), g.view(),
                           xc.view(), OptView(mean).get(), rstd.view(), OptView(wc).get());
    }
    for (int i = 1; i < 3; ++i)
      if (d[i]) d[i] = reshape(d[i], led(dy[0], param_sizes));
    return d;
  }
  Ints param_sizes;
  FIELDS(input, weight, result1, result2)
};
// Groups of channels that lie last: the statistics of single channels of an image are put together to those of its
// groups, so that every pass is over whole pixels.
static void norm_groups_last(const NormRows& s, double eps, const Tensor& y, const Tensor& mean, const Tensor& rstd,
                             const Tensor& x, const Tensor& w, const Tensor& b) {
  const int64_t per = s.length / s.inner, channels = s.groups * per, images = s.rows / s.groups;
  const int64_t image = channels * s.inner * itemsize(x.dtype()), sizes[] = {s.inner, channels},
                strides[] = {channels, 1};
  const NormChannels columns{s.inner, channels, 1};
  const int64_t params[] = {channels}, one[] = {1};
  auto view = [&](void* data, int64_t n) {
    return View{static_cast<char*>(data) + n * image, sizes, strides, 2, x.dtype()};
  };
  void *from = x.data(), *to = y.data();
  const NormKernels& kernels = *backend(y.device()).norm;
  const OptView weight(w), bias(b);
  auto run = [&]<class C>(C* group_mean, C* group_rstd) {
    // Few images: the kernels cut each of them.
    parallel_for(
        0, images, images < 4 ? images : std::max<int64_t>(1, 65536 / (image + 1)), [&](int64_t first, int64_t last) {
          std::vector<C> means(channels), spreads(channels);
          const View m{means.data(), params, one, 1, mean.dtype()}, v{spreads.data(), params, one, 1, mean.dtype()};
          for (int64_t n = first; n < last; ++n) {
            kernels.channel_stats(columns, m, v, view(from, n));
            for (int64_t g = 0; g < s.groups; ++g) {
              const auto begin = g * per, end = begin + per;
              double sum = 0, squares = 0;
              for (int64_t c = begin; c < end; ++c) sum += means[c];
              const double middle = sum / static_cast<double>(per);
              for (int64_t c = begin; c < end; ++c) squares += spreads[c] + (means[c] - middle) * (means[c] - middle);
              const C mid = group_mean[n * s.groups + g] = static_cast<C>(middle);
              const C scale = group_rstd[n * s.groups + g] =
                  static_cast<C>(1 / std::sqrt(squares / static_cast<double>(per) + eps));
              std::fill(means.begin() + begin, means.begin() + end, mid);
              std::fill(spreads.begin() + begin, spreads.begin() + end, scale);
            }
            kernels.channels(columns, view(to, n), view(from, n), m, v, weight.get(), bias.get());
          }
        });
  };
  if (mean.dtype() == DType::Float64) run(mean.data<double>(), rstd.data<double>());
  else run(mean.data<float>(), rstd.data<float>());
}
static Tensor norm_rows(const char* name, const Tensor& input, const Tensor& weight, const Tensor& bias, NormRows rows,
                        bool rms, double eps, Tensor* mean_out, Tensor* rstd_out, bool channels_last = false) {
  check_float(name, input);
  DType compute = compute_dtype(input.dtype());
  Tensor y = empty_ordered(Ints(input.sizes()), input.dtype(), input.device(), channels_last);
  Tensor mean = rms ? Tensor() : empty(Ints{rows.rows}, compute, input.device()),
         rstd = empty(Ints{rows.rows}, compute, input.device());
  Tensor w = raw_param(name, "weight", weight, input), b = raw_param(name, "bias", bias, input);
  if (rows.rows > 0 && rows.length > 0) {
    const bool in_place = channels_last && y.on_host();  // as it lies, which takes a hand on the statistics
    Tensor x = contiguous(input, !in_place          ? MemoryFormat::Contiguous
                                 : input.dim() == 4 ? MemoryFormat::ChannelsLast
                                                    : MemoryFormat::ChannelsLast3d);
    if (in_place) {
      norm_groups_last(rows, eps, y, mean, rstd, x, w, b);
    } else {
      Tensor to = channels_last ? empty(input.sizes(), input.dtype(), input.device()) : y;
      backend(y.device())
          .norm->rows(rows, rms, eps, to.view(), OptView(mean).get(), rstd.view(), x.view(), OptView(w).get(),
                      OptView(b).get());
      if (channels_last) copy_into(y, to);
    }
  }
  if (mean_out) *mean_out = mean;
  if (rstd_out) *rstd_out = rstd;
  return record<NormRowsBackward>(y, {input, weight, bias}, [&](auto& n) {
    n.input = save(input);
    if (weight) n.weight = save(weight);
    if (mean) n.result1 = save(mean);
    n.result2 = save(rstd);
    n.rows = rows;
    n.rms = rms;
    n.eps = eps;
    n.param_sizes = weight ? Ints(weight.sizes()) : bias ? Ints(bias.sizes()) : Ints();
  });
}

// The rows of a norm over the last dimensions.
static NormRows trailing_rows(const char* name, const Tensor& x, IntSpan shape, const Tensor& weight,
                              const Tensor& bias) {
  CHECK(shape.size() >= 1, Runtime, name,
        ": Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
        "normalized_shape = ",
        to_text(shape));
  for (auto [p, what] : {std::pair(&weight, "weight"), std::pair(&bias, "bias")})
    CHECK(!*p || p->sizes() == shape, Runtime, "Expected ", what, " to be of same shape as normalized_shape, but got ",
          what, " of shape ", to_text(p->sizes()), " and normalized_shape = ", to_text(shape));
  int64_t n = shape.size();
  bool fits = x.dim() >= n;
  for (int64_t i = 1; fits && i <= n; ++i) fits = x.sizes()[x.dim() - i] == shape[n - i];
  std::string wanted = to_text(shape);
  CHECK(fits, Runtime, "Given normalized_shape=", wanted, ", expected input with shape [*, ", wanted.substr(1),
        ", but got input of size", to_text(x.sizes()));
  int64_t length = 1, rows = 1;
  for (int64_t v : shape) length *= v;
  for (int64_t i = 0; i < x.dim() - n; ++i) rows *= x.sizes()[i];
  return {rows, length, 1, 1};
}

static Tensor layer_norm(const Tensor& input, const Ints& normalized_shape, const OptTensor& weight,
                         const OptTensor& bias, double eps, bool) {
  NormRows rows = trailing_rows("layer_norm", input, normalized_shape, weight, bias);
  return norm_rows("LayerNormKernelImpl", input, weight, bias, rows, false, eps, nullptr, nullptr);
}
static std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, const Ints& normalized_shape,
                                                            const OptTensor& weight, const OptTensor& bias,
                                                            double eps) {
  NormRows rows = trailing_rows("native_layer_norm", input, normalized_shape, weight, bias);
  Tensor mean, rstd;
  Tensor y = norm_rows("LayerNormKernelImpl", input, weight, bias, rows, false, eps, &mean, &rstd);
  Ints stats(input.sizes());
  for (int64_t i = 1; i <= normalized_shape.size(); ++i) stats[stats.size() - i] = 1;
  return {y, reshape(mean, stats), reshape(rstd, stats)};
}
static Tensor rms_norm(const Tensor& input, const Ints& normalized_shape, const OptTensor& weight,
                       std::optional<double> eps) {
  NormRows rows = trailing_rows("rms_norm", input, normalized_shape, weight, OptTensor());
  double tiny =
      input.dtype() == DType::Float64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return norm_rows("rms_norm", input, weight, Tensor(), rows, true, eps ? *eps : tiny, nullptr, nullptr);
}

static void check_channels(const Tensor& p, const char* what, int64_t channels, const Tensor& x) {
  CHECK(!p || (p.dim() == 1 && p.numel() == channels), Runtime, "Expected ", what,
        " to be a vector of size equal to the number of channels in input, but got ", what, " of shape ",
        p ? to_text(p.sizes()) : "", " and input of shape ", to_text(x.sizes()));
}
static NormRows group_rows(const Tensor& x, int64_t groups) {
  int64_t inner = 1;
  for (int64_t i = 2; i < x.dim(); ++i) inner *= x.sizes()[i];
  int64_t channels = x.sizes()[1];
  return {x.sizes()[0] * groups, groups ? channels / groups * inner : 0, groups, std::max<int64_t>(inner, 1)};
}
static Tensor group_norm(const Tensor& input, int64_t num_groups, const OptTensor& weight, const OptTensor& bias,
                         double eps, bool) {
  CHECK(input.dim() >= 2, Runtime, "Expected at least 2 dimensions for input tensor but received ", input.dim());
  CHECK(num_groups > 0, Runtime, "Expected num groups to be greater than 0, got ", num_groups);
  CHECK(input.sizes()[1] % num_groups == 0, Runtime,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
        to_text(input.sizes()), " and num_groups=", num_groups);
  check_channels(weight, "weight", input.sizes()[1], input);
  check_channels(bias, "bias", input.sizes()[1], input);
  return norm_rows("GroupNormKernelImpl", input, weight, bias, group_rows(input, num_groups), false, eps, nullptr,
                   nullptr, channels_last(input));
}

// batch norm: y = (x - mean) rstd w + b over channels of (N, C, ...)
struct BatchNormBackward : Node {
  static constexpr const char* kName = "NativeBatchNormBackward0";
  static constexpr bool kStacks = true;
  Saved input, weight, result1, result2;  // result1 = mean, result2 = rstd; those of the batch, or the running ones
  bool training = false;
  double eps = 0;
  Grads backward(const Grads& dy) {
    Tensor x = input.unpack(*this), w = weight.defined() ? weight.unpack(*this) : Tensor(),
           mean = result1.unpack(*this), rstd = result2.unpack(*this);
    NormChannels s = channels_of(x);
    Grads d(3);
    if (grad_enabled() || lead(dy[0])) {
      Ints shape{s.batch, s.channels, s.inner}, params{1, s.channels, 1};
      Tensor m, r;
      if (!training) m = reshape(mean, params), r = reshape(rstd, params);
      d = composed(training ? Stats::Own : Stats::Given, reshape(x, shape), reshape(dy[0], led(dy[0], shape)),
                   w ? reshape(w, params) : Tensor(), params, params, eps, m, r, needs(0), needs(1), needs(2));
      if (d[0]) d[0] = reshape(d[0], led(dy[0], x.sizes()));
    } else {
      DType compute = compute_dtype(x.dtype());
      const MemoryFormat order = order_of(x);
      if (order != MemoryFormat::Contiguous) s = {s.batch * s.inner, s.channels, 1};
      Tensor xc = contiguous(x, order), g = contiguous(dy[0], order), wc = raw_param("batch_norm", "weight", w, x);
      if (needs(0)) d[0] = empty_strided(x.sizes(), strides_for(x, order), x.dtype(), x.device());
      if (needs(1)) d[1] = empty(Ints{s.channels}, compute, x.device());
      if (needs(2)) d[2] = empty(Ints{s.channels}, compute, x.device());
      backend(g.device())
          .norm->channels_grad(s, training, OptView(d[0]).get(), OptView(d[1]).get(), OptView(d[2]).get(), g.view(),
                               xc.view(), mean.view(), rstd.view(), OptView(wc).get());
    }
    for (int i = 1; i < 3; ++i)
      if (d[i]) d[i] = reshape(d[i], led(dy[0], Ints{s.channels}));
    return d;
  }
  // Images with their channels last are rows of channels as they are.
  static MemoryFormat order_of(const Tensor& x) {
    if (!channels_last(x) && (x.is_contiguous() || !is_channels_last(x.sizes(), x.strides())))
      return MemoryFormat::Contiguous;
    return x.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  }
  static NormChannels channels_of(const Tensor& x) {
    int64_t inner = 1;
    for (int64_t i = 2; i < x.dim(); ++i) inner *= x.sizes()[i];
    return {x.sizes()[0], x.sizes()[1], inner};
  }
  FIELDS(input, weight, result1, result2)
};

// running = (1 - momentum) * running + momentum * value, in place; values are of the computing type
static void update_running(const Tensor& running, const Tensor& value, double momentum, double factor) {
  NoGrad raw;
  copy_into(running,
            cast(add(mul(cast(running, value.dtype()), 1 - momentum), mul(value, momentum * factor)), running.dtype()));
  bump_version(running);
}
static void check_count(const Tensor& p, const char* what, int64_t channels) {
  CHECK(!p || p.numel() == channels, Runtime, what, " should contain ", channels, " elements not ", p ? p.numel() : 0);
}

static std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const OptTensor& weight,
                                                            const OptTensor& bias, const OptTensor& running_mean,
                                                            const OptTensor& running_var, bool training,
                                                            double momentum, double eps) {
  CHECK(input.dim() >= 2, Runtime, "batch_norm: expected an input of at least 2 dimensions, got ",
        to_text(input.sizes()));
  check_float("batch_norm", input);
  NormChannels s = BatchNormBackward::channels_of(input);
  check_count(running_mean, "running_mean", s.channels);
  check_count(running_var, "running_var", s.channels);
  check_count(weight, "weight", s.channels);
  check_count(bias, "bias", s.channels);
  CHECK(training || (running_mean && running_var), Runtime, running_mean ? "running_var" : "running_mean",
        " must be defined in evaluation mode");
  DType compute = compute_dtype(input.dtype());
  const MemoryFormat order = BatchNormBackward::order_of(input);
  Tensor y = empty_strided(input.sizes(), strides_for(input, order), input.dtype(), input.device());
  Tensor w = raw_param("batch_norm", "weight", weight, input), b = raw_param("batch_norm", "bias", bias, input), mean,
         var, rstd;
  bool runs = input.numel() > 0;
  Tensor x = contiguous(input, order);
  if (order != MemoryFormat::Contiguous) s = {s.batch * s.inner, s.channels, 1};
  {
    NoGrad raw;
    if (training) {
      mean = zeros(Ints{s.channels}, compute, input.device());
      var = zeros(Ints{s.channels}, compute, input.device());
      if (runs) backend(mean.device()).norm->channel_stats(s, mean.view(), var.view(), x.view());
      double count = static_cast<double>(s.batch) * static_cast<double>(s.inner);
      if (running_mean && runs) update_running(running_mean, mean, momentum, 1);
      if (running_var && runs) update_running(running_var, var, momentum, count / (count - 1));
    } else {
      mean = contiguous(cast(running_mean, compute));
      var = cast(running_var, compute);
      if (mean.is(running_mean)) mean = clone(mean);  // a later write to the running mean is not a write to this one
    }
    rstd = contiguous(inverse_root(add(var, eps)));
  }
  if (runs)
    backend(y.device())
        .norm->channels(s, y.view(), x.view(), mean.view(), rstd.view(), OptView(w).get(), OptView(b).get());
  y = record<BatchNormBackward>(std::move(y), {input, weight, bias}, [&](auto& n) {
    n.input = save(input);
    if (weight) n.weight = save(weight);
    n.result1 = save(mean);
    n.result2 = save(rstd);
    n.training = training;
    n.eps = eps;
  });
  return {y, mean, rstd};
}
static Tensor batch_norm(const Tensor& input, const OptTensor& weight, const OptTensor& bias,
                         const OptTensor& running_mean, const OptTensor& running_var, bool training, double momentum,
                         double eps, bool) {
  if (input.dim() == 1 && input.numel() == 0) return clone(input);  // nothing to normalise
  return std::get<0>(native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

// instance norm: each channel of each sample by its own statistics; running ones are the means over samples
static Tensor instance_norm(const Tensor& input, const OptTensor& weight, const OptTensor& bias,
                            const OptTensor& running_mean, const OptTensor& running_var, bool use_input_stats,
                            double momentum, double eps, bool) {
  CHECK(input.dim() >= 2, Runtime, "instance_norm: expected an input of at least 2 dimensions, got ",
        to_text(input.sizes()));
  CHECK(use_input_stats || (running_mean && running_var), Runtime,
        "Expected running_mean and running_var to be defined when use_input_stats is false");
  if (!use_input_stats) return batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps, false);
  int64_t channels = input.sizes()[1];
  check_count(running_mean, "running_mean", channels);
  check_count(running_var, "running_var", channels);
  check_count(weight, "weight", channels);
  check_count(bias, "bias", channels);
  Tensor mean, rstd;
  NormRows rows = group_rows(input, channels);
  Tensor y = norm_rows("instance_norm", input, weight, bias, rows, false, eps, &mean, &rstd);
  if ((running_mean || running_var) && input.numel() > 0) {
    NoGrad raw;
    Ints by_sample{input.sizes()[0], channels}, one{1, channels};
    double samples = static_cast<double>(input.sizes()[0]), count = static_cast<double>(rows.length);
    if (running_mean)
      update_running(running_mean, reshape(sum_to(reshape(mean, by_sample), one), Ints{channels}), momentum,
                     1 / samples);
    if (running_var) {
      Tensor var = sub(div(Scalar(1.0), mul(rstd, rstd)), eps);
      update_running(running_var, reshape(sum_to(reshape(var, by_sample), one), Ints{channels}), momentum,
                     count / (count - 1) / samples);
    }
  }
  return y;
}

static const Register registered([](Ops& ops) {
  ops.def("layer_norm", layer_norm, "input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True",
          kNoOut, R"(
    Normalises over the last dimensions, then scales and shifts: (x - mean) / sqrt(var + eps) * weight + bias.

    Args:
        normalized_shape: the sizes of the last dimensions, as a sequence.
        weight: the scale, of these sizes, or None for 1.
        bias: the shift, of these sizes, or None for 0.
        eps: what is added to the variance.
        cudnn_enable: taken for compatibility, without effect.

    Example:
        >>> torch.layer_norm(torch.tensor([[1.0, 3.0], [10.0, 30.0]]), (2,))
        tensor([[-1.0000,  1.0000],
                [-1.0000,  1.0000]]))");
  ops.def("native_layer_norm", native_layer_norm, "input, normalized_shape, weight, bias, eps", kNoOut, R"(
    Normalises as layer_norm(), and returns the statistics too.

    Args:
        normalized_shape: the sizes of the last dimensions, as a sequence.
        weight: the scale, of these sizes, or None for 1.
        bias: the shift, of these sizes, or None for 0.
        eps: what is added to the variance.

    Returns:
        A tuple (result, means, 1 / sqrt(var + eps)).

    Example:
        >>> torch.native_layer_norm(torch.tensor([[1.0, 3.0]]), (2,), None, None, 1e-5)
        (tensor([[-1.0000,  1.0000]]), tensor([[2.]]), tensor([[1.0000]])))");
  ops.def("rms_norm", rms_norm, "input, normalized_shape, weight=None, eps=None", kNoOut, R"(
    Divides by the root of the mean square over the last dimensions, then scales.

    Args:
        normalized_shape: the sizes of the last dimensions, as a sequence.
        weight: the scale, of these sizes, or None for 1.
        eps: what is added to the mean square; None takes the type's precision.

    Example:
        >>> torch.rms_norm(torch.tensor([[1.0, 7.0]]), (2,))
        tensor([[0.2000, 1.4000]]))");
  ops.def("group_norm", group_norm, "input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True", kNoOut,
          R"(
    Normalises groups of channels of each sample, then scales and shifts.

    Args:
        num_groups: into how many groups the channels (dimension 1) fall.
        weight: the scale of each channel (C), or None for 1.
        bias: the shift of each channel (C), or None for 0.
        eps: what is added to the variance.
        cudnn_enabled: taken for compatibility, without effect.

    Example:
        >>> torch.group_norm(torch.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]]))");
  ops.def("batch_norm", batch_norm,
          "input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled", kNoOut, R"(
    Normalises each channel over the batch, or by running statistics, then scales and shifts.

    y = (x - mean) / sqrt(var + eps) * weight + bias. F.batch_norm() is the usual way to call it.

    Args:
        weight: the scale of each channel (C), or None for 1.
        bias: the shift of each channel (C), or None for 0.
        running_mean: the running means (C), which training updates, or None.
        running_var: the running variances (C), which training updates, or None.
        training: whether the statistics are those of the batch.
        momentum: the share of the batch in the running statistics.
        eps: what is added to the variance.
        cudnn_enabled: taken for compatibility, without effect.

    Example:
        >>> x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
        >>> torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
        tensor([[-1.0000, -1.0000],
                [ 1.0000,  1.0000]]))");
  ops.def("native_batch_norm", native_batch_norm,
          "input, weight, bias, running_mean, running_var, training, momentum, eps", kNoOut, R"(
    Normalises as batch_norm(), and returns the statistics too.

    Args:
        weight: the scale of each channel (C), or None for 1.
        bias: the shift of each channel (C), or None for 0.
        running_mean: the running means (C), which training updates, or None.
        running_var: the running variances (C), which training updates, or None.
        training: whether the statistics are those of the batch.
        momentum: the share of the batch in the running statistics.
        eps: what is added to the variance.

    Returns:
        A tuple (result, means, 1 / sqrt(var + eps)).

    Example:
        >>> x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
        >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[1]
        tensor([ 2., 20.]))");
  ops.def("instance_norm", instance_norm,
          "input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled", kNoOut, R"(
    Normalises each channel of each sample, then scales and shifts.

    Args:
        weight: the scale of each channel (C), or None for 1.
        bias: the shift of each channel (C), or None for 0.
        running_mean: the running means (C), or None.
        running_var: the running variances (C), or None.
        use_input_stats: whether the statistics are those of the sample, instead of the running ones.
        momentum: the share of the batch in the running statistics.
        eps: what is added to the variance.
        cudnn_enabled: taken for compatibility, without effect.

    Example:
        >>> x = torch.tensor([[[1.0, 3.0], [10.0, 30.0]]])
        >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]]))");
});

}  // namespace rl::ops
