#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "base/parallel.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

Tensor constant_pad(const Tensor& input, const Ints& pad, const Scalar& value);  // ops/shape/pad.cpp

// Tables of windows for each dimension, kept by the node for backward.
struct Windows {
  Ints in, out;  // three sizes each
  Ints start[3], end[3], share[3];
  int64_t dilation[3] = {1, 1, 1};
  double divisor = 0;

  PoolWindows table(int64_t planes, int64_t channels = 1) const {
    PoolWindows w{planes,
                  {in[0], in[1], in[2]},
                  {out[0], out[1], out[2]},
                  {},
                  {},
                  {},
                  {dilation[0], dilation[1], dilation[2]},
                  divisor,
                  channels};
    for (int d = 0; d < 3; ++d) w.start[d] = start[d].data(), w.end[d] = end[d].data(), w.share[d] = share[d].data();
    return w;
  }
};

static bool skipped(const Tensor& out) { return out.numel() == 0; }

// The sizes of a result: those of x with the last n replaced.
static Ints result_sizes(const Tensor& x, const Windows& w, int64_t n) {
  Ints sizes(x.sizes());
  for (int64_t i = 0; i < n; ++i) sizes[x.dim() - n + i] = w.out[3 - n + i];
  return sizes;
}
static int64_t planes_of(const Tensor& x, int64_t n) {
  int64_t planes = 1;
  for (int64_t i = 0; i < x.dim() - n; ++i) planes *= x.sizes()[i];
  return planes;
}

// Whether images or volumes are worked on with their channels last, as they are.
static bool works_last(const Tensor& x, int64_t n) {
  return x.dim() == n + 2 && n >= 2 && is_float(x.dtype()) && x.numel() && x.sizes()[1] > 1 && channels_last(x);
}
static MemoryFormat order_for(int64_t n, bool last) {
  return !last ? MemoryFormat::Contiguous : n == 2 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}
// Note [Pairs of adjoint maps]
// Max pooling's gradient scatters dy to the maxima; the derivative of that picks values at their indices, and so
// on: put and pick are each other's derivative. The same holds for averaging and its spreading of dy.

static Tensor put(const Tensor& dy, const Tensor& argmax, const Ints& sizes, int64_t n);
// The indices, for each row of a stacked dy.
static Tensor argmax_for(Node& node, const Saved& argmax, const Tensor& dy) {
  Tensor at = argmax.unpack(node);
  return node.lead(dy) ? contiguous(expand(at, node.led(dy, at.sizes()))) : at;
}

// pick: y = x[argmax]        dx = dy put at these indices
struct PoolPickBackward : Node {
  static constexpr const char* kName = "MaxPoolWithIndicesBackwardBackward0";
  static constexpr bool kStacks = true;
  Saved argmax;
  Ints sizes;
  int64_t n = 0;
  Grads backward(const Grads& dy) { return {put(dy[0], argmax_for(*this, argmax, dy[0]), led(dy[0], sizes), n)}; }
  FIELDS(argmax)
};
static Tensor pick(const Tensor& x, const Tensor& argmax, int64_t n) {
  Tensor y = empty(argmax.sizes(), x.dtype(), x.device());
  if (!skipped(y) && y.has_values()) {
    const Tensor from = to_host(contiguous(x)), indices = to_host(contiguous(argmax)), own = to_host(y);
    int64_t planes = planes_of(x, n), in = x.numel() / planes, out = argmax.numel() / planes, item = x.item_size();
    const int64_t* at = indices.data<int64_t>();
    const char* src = from.data<char>();
    char* dst = own.data<char>();
    for (int64_t p = 0; p < planes; ++p)
      for (int64_t i = 0; i < out; ++i)
        __builtin_memcpy(dst + (p * out + i) * item, src + (p * in + at[p * out + i]) * item,
                         static_cast<size_t>(item));
    if (!own.is(y)) copy_into(y, own);
  }
  return record<PoolPickBackward>(y, {x}, [&](auto& node) {
    node.argmax = save(argmax);
    node.sizes = Ints(x.sizes());
    node.n = n;
  });
}

// put: zeros with dy added at these indices        d(dy) = g picked at these indices
struct PoolPutBackward : Node {
  static constexpr const char* kName = "MaxPoolWithIndicesBackwardBackward0";
  static constexpr bool kStacks = true;
  Saved argmax;
  int64_t n = 0;
  Grads backward(const Grads& dy) { return {pick(dy[0], argmax_for(*this, argmax, dy[0]), n)}; }
  FIELDS(argmax)
};
template <class T>
static void add_at(T* dx, const T* dy, const int64_t* argmax, int64_t planes, int64_t in, int64_t out) {
  parallel_for(0, planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, in)), [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      std::fill(dx + p * in, dx + (p + 1) * in, T(0));
      for (int64_t i = 0; i < out; ++i) {
        T& to = dx[p * in + argmax[p * out + i]];
        to = static_cast<T>(static_cast<compute_t<T>>(to) + static_cast<compute_t<T>>(dy[p * out + i]));
      }
    }
  });
}
// The same with channels last, some of them at a time.
template <class T> static void add_at_last(T* dx, const T* dy, const int64_t* argmax, int64_t samples, int64_t channels,
                                           int64_t in, int64_t out) {
  constexpr int64_t kSome = 64;
  const int64_t parts = (channels + kSome - 1) / kSome;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, in * std::min(kSome, channels)));
  parallel_for(0, samples * parts, grain, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t c0 = task % parts * kSome, n = std::min(kSome, channels - c0);
      T* to = dx + task / parts * in * channels + c0;
      const int64_t from = task / parts * out * channels + c0;
      if (n == channels) std::fill_n(to, in * channels, T(0));
      else
        for (int64_t i = 0; i < in; ++i) std::fill_n(to + i * channels, n, T(0));
      for (int64_t i = 0; i < out; ++i)
        for (int64_t c = 0; c < n; ++c) {
          T& at = to[argmax[from + i * channels + c] * channels + c];
          at = static_cast<T>(static_cast<compute_t<T>>(at) + static_cast<compute_t<T>>(dy[from + i * channels + c]));
        }
    }
  });
}
static Tensor put(const Tensor& dy, const Tensor& argmax, const Ints& sizes, int64_t n) {
  bool adds = dy.numel() && is_float(dy.dtype()) && dy.has_values();  // into memory that it clears itself
  const bool last = adds && works_last(dy, n) && channels_last(argmax);
  Tensor dx = adds ? empty_ordered(sizes, dy.dtype(), dy.device(), last) : zeros(sizes, dy.dtype(), dy.device());
  const Tensor own = adds ? to_host(dx) : dx;
  if (last && dx.numel()) {
    Tensor from = to_host(contiguous(dy, order_for(n, true))),
           indices = to_host(contiguous(argmax, order_for(n, true)));
    const int64_t samples = sizes[0], channels = sizes[1], each = samples * channels;
    visit_compute(dy.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (is_floating_v<T>)
        add_at_last<T>(own.data<T>(), from.data<T>(), indices.data<int64_t>(), samples, channels, dx.numel() / each,
                       dy.numel() / each);
    });
  } else if (adds && dx.numel()) {
    Tensor from = to_host(contiguous(dy)), indices = to_host(contiguous(argmax));
    int64_t planes = planes_of(dx, n), in = dx.numel() / planes, out = dy.numel() / planes;
    visit_compute(dy.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (is_floating_v<T>)
        add_at<T>(own.data<T>(), from.data<T>(), indices.data<int64_t>(), planes, in, out);
    });
  }
  if (!own.is(dx)) copy_into(dx, own);
  return record<PoolPutBackward>(dx, {dy}, [&](auto& node) {
    node.argmax = save(argmax);
    node.n = n;
  });
}

static bool no_windows(const Windows& w) { return w.out[0] == 0 || w.out[1] == 0 || w.out[2] == 0; }
static void check_grad(bool empty, const Tensor& dy) {
  CHECK(!empty, Runtime, "Expected grad_output to have non-zero size for non-batch dimensions, but got ",
        to_text(dy.sizes()), ": a result of output_size 0 has no gradient");
}

// max pooling: y = the maximum of each window, and its index        dx = dy put at these indices
struct MaxPoolBackward : Node {
  static constexpr const char* kName = "MaxPool2DWithIndicesBackward0";
  static constexpr bool kStacks = true;
  Saved result1;
  Ints sizes;
  int64_t n = 0;
  bool empty = false;
  Grads backward(const Grads& dy) {
    check_grad(empty, dy[0]);
    return {put(dy[0], argmax_for(*this, result1, dy[0]), led(dy[0], sizes), n), Tensor()};
  }
  FIELDS(result1)
};
static std::tuple<Tensor, Tensor> max_windows(const Tensor& input, const Windows& w, int64_t n, bool with_argmax) {
  Ints sizes = result_sizes(input, w, n);
  const bool last = works_last(input, n);
  Tensor y = empty_ordered(sizes, input.dtype(), input.device(), last), argmax;
  if (with_argmax || will_record({input})) argmax = empty_ordered(sizes, DType::Int64, input.device(), last);
  if (!skipped(y)) {
    Tensor x = contiguous(input, order_for(n, last));
    const View at = argmax ? argmax.view() : View{};
    backend(y.device())
        .pool->max(last ? w.table(sizes[0], sizes[1]) : w.table(planes_of(x, n)), y.view(), argmax ? &at : nullptr,
                   x.view());
  }
  if (!last && input.dim() == n + 2 && channels_last(input)) {
    y = ordered(std::move(y), true);
    if (argmax) argmax = ordered(std::move(argmax), true);
  }
  y = record<MaxPoolBackward>(std::move(y), {input}, [&](auto& node) {
    node.result1 = save(argmax);
    node.sizes = Ints(input.sizes());
    node.n = n;
    node.empty = no_windows(w);
  });
  return {y, argmax};
}

static Tensor spread(const Tensor& dy, const Windows& w, const Ints& sizes, int64_t n);

// average pooling: y = the mean of each window        dx = dy spread over the windows
struct AvgPoolBackward : Node {
  static constexpr const char* kName = "AvgPool2DBackward0";
  static constexpr bool kStacks = true;
  Windows windows;
  Ints sizes;
  int64_t n = 0;
  Grads backward(const Grads& dy) {
    check_grad(no_windows(windows), dy[0]);
    return {spread(dy[0], windows, led(dy[0], sizes), n)};
  }
};
static Tensor average(const Tensor& input, const Windows& w, int64_t n) {
  const bool last = n == 2 && works_last(input, n);  // of volumes, PyTorch's are row-major
  const Ints sizes = result_sizes(input, w, n);
  Tensor y = empty_ordered(sizes, input.dtype(), input.device(), last);
  if (!skipped(y)) {
    Tensor x = contiguous(input, order_for(n, last));
    backend(y.device())
        .pool->average(last ? w.table(sizes[0], sizes[1]) : w.table(planes_of(x, n)), y.view(), x.view());
  }
  if (!last) y = ordered(std::move(y), n == 2 && input.dim() == 4 && channels_last(input));
  return record<AvgPoolBackward>(y, {input}, [&](auto& node) {
    node.windows = w;
    node.sizes = Ints(input.sizes());
    node.n = n;
  });
}
// its adjoint        d(dy) = the means of g
struct SpreadBackward : Node {
  static constexpr const char* kName = "AvgPool2DBackwardBackward0";
  static constexpr bool kStacks = true;
  Windows windows;
  int64_t n = 0;
  Grads backward(const Grads& dy) { return {average(dy[0], windows, n)}; }
};
static Tensor spread(const Tensor& dy, const Windows& w, const Ints& sizes, int64_t n) {
  const bool last = n == 2 && works_last(dy, n);
  Tensor dx = empty_ordered(sizes, dy.dtype(), dy.device(), last);
  if (!skipped(dx)) {
    Tensor from = contiguous(dy, order_for(n, last));
    backend(dx.device())
        .pool->average_grad(last ? w.table(sizes[0], sizes[1]) : w.table(planes_of(dx, n)), dx.view(), from.view());
  }
  return record<SpreadBackward>(dx, {dy}, [&](auto& node) {
    node.windows = w;
    node.n = n;
  });
}

// Arguments

static std::string dims_text(int64_t n) { return text(n + 1, "D or ", n + 2, "D (batch mode)"); }

static void check_input(const char* name, const Tensor& x, int64_t n) {
  bool right = x.dim() == n + 1 || x.dim() == n + 2;
  // The batch may be empty, the channels and the space may not.
  for (int64_t i = x.dim() == n + 2 ? 1 : 0; right && i < x.dim(); ++i) right = x.sizes()[i] > 0;
  CHECK(right, Runtime, name, ": Expected ", dims_text(n),
        " tensor with optional 0 dim batch size for input, but got: ", to_text(x.sizes()));
}
static Ints each(const char* name, const char* what, IntSpan v, int64_t n) {
  CHECK(v.size() == 1 || v.size() == n, Runtime, name, ": ", what, " must either be a single int, or a tuple of ", n,
        " ints");
  return v.size() == 1 ? Ints(n, v[0]) : Ints(v);
}

// The windows of plain pooling over the last n dimensions of x.
static Windows windows_of(const char* name, const Tensor& x, int64_t n, IntSpan kernel_size, IntSpan stride_or_none,
                          IntSpan padding_size, IntSpan dilation_size, bool ceil_mode, bool count_pad) {
  Ints kernel = each(name, "kernel_size", kernel_size, n);
  CHECK(stride_or_none.size() == 0 || stride_or_none.size() == 1 || stride_or_none.size() == n, Runtime, name,
        ": stride must either be omitted, a single int, or a tuple of ", n, " ints");
  Ints stride = stride_or_none.size() == 0 ? kernel : each(name, "stride", stride_or_none, n);
  Ints padding = each(name, "padding", padding_size, n), dilation = each(name, "dilation", dilation_size, n);
  check_input(name, x, n);
  Windows w;
  w.in = w.out = Ints(3, 1);
  for (int d = 0; d < 3; ++d) w.start[d] = Ints(1, 0), w.end[d] = w.share[d] = Ints(1, 1);
  for (int64_t i = 0; i < n; ++i) {
    int64_t k = kernel[i], s = stride[i], p = padding[i], dil = dilation[i], in = x.sizes()[x.dim() - n + i],
            d = 3 - n + i;
    CHECK(k > 0, Runtime, name, ": kernel size should be greater than zero, but got ", to_text(kernel));
    CHECK(s > 0, Runtime, "stride should not be zero, or negative: got ", to_text(stride));
    CHECK(dil > 0, Runtime, "dilation should be greater than zero, but got ", to_text(dilation));
    CHECK(p >= 0, Runtime, "pad must be non-negative, but got pad: ", p);
    CHECK(p <= checked_add(checked_mul(k - 1, dil), 1) / 2, Runtime,
          "pad should be at most half of effective kernel size, but got pad=", p, ", kernel_size=", k,
          " and dilation=", dil);
    int64_t reach = checked_mul(dil, k - 1);
    int64_t extent = checked_add(in, checked_mul(2, p)) - reach - 1;
    int64_t out = extent < 0 ? (extent - s + 1) / s + 1 : (extent + (ceil_mode ? s - 1 : 0)) / s + 1;
    if (ceil_mode && extent < 0) out = (extent + s - 1) >= 0 ? 1 : out;
    if (ceil_mode && (out - 1) * s >= in + p) --out;  // the last window must start inside the input or its left padding
    CHECK(out >= 1, Runtime, "Given input size per channel: ", in, ". Calculated output size: ", out,
          ". Output size is too small");
    w.in[d] = in;
    w.out[d] = out;
    w.dilation[d] = dil;
    w.start[d] = w.end[d] = w.share[d] = Ints(out);
    for (int64_t o = 0; o < out; ++o) {
      int64_t start = o * s - p, end = std::min(start + reach + 1, in + p);
      int64_t whole = end - start;
      end = std::min(end, in);
      while (start < 0) start += dil;
      w.start[d][o] = dil > 1 ? start : std::min(start, in - 1);
      w.end[d][o] = end;
      w.share[d][o] = count_pad ? whole : std::max<int64_t>(end - std::max<int64_t>(start, 0), 0);
    }
  }
  return w;
}

// The windows of adaptive pooling: out of them in each dimension, as equal as possible. with_channels: channels may not
// be empty either, as PyTorch has it for all but the means of 1 and 2 dimensions.
static Windows adaptive_windows(const char* name, const Tensor& x, int64_t n, IntSpan output_size, bool with_channels) {
  CHECK(output_size.size() == n || output_size.size() == 1, Runtime, name, ": output_size must be ", n,
        " numbers, got ", to_text(output_size));
  CHECK(x.dim() == n + 1 || x.dim() == n + 2, Runtime, name, "(): Expected ", n + 1, "D or ", n + 2,
        "D tensor, but got ", to_text(x.sizes()));
  for (int64_t i = with_channels ? 1 : x.dim() - n; i < x.dim(); ++i)
    CHECK(x.sizes()[i] > 0, Runtime, name,
          "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", to_text(x.sizes()),
          " with dimension ", i, " being empty");
  CHECK(is_float(x.dtype()), NotImplemented, "\"", name, "\" not implemented for '", info(x.dtype()).legacy,
        "': convert it with x.float()");
  Windows w;
  w.in = w.out = Ints(3, 1);
  for (int d = 0; d < 3; ++d) w.start[d] = Ints(1, 0), w.end[d] = w.share[d] = Ints(1, 1);
  for (int64_t i = 0; i < n; ++i) {
    int64_t in = x.sizes()[x.dim() - n + i], out = output_size.size() == 1 ? output_size[0] : output_size[i],
            d = 3 - n + i;
    CHECK(out >= 0, Runtime, name, ": elements of output_size must be greater than or equal to 0 but received {",
          to_text(output_size), "}");
    checked_mul(in, std::max<int64_t>(out, 1));
    w.in[d] = in;
    w.out[d] = out;
    w.start[d] = w.end[d] = w.share[d] = Ints(out);
    for (int64_t o = 0; o < out; ++o) {
      w.start[d][o] = o * in / out;
      w.end[d][o] = ((o + 1) * in + out - 1) / out;
      w.share[d][o] = w.end[d][o] - w.start[d][o];
    }
  }
  return w;
}

// Note [Windows of padding alone]
// With a dilation a window may miss the input: its maximum is the padding, -inf, and it has no gradient. The kernels
// expect an element in every window, so such an input is padded in memory first.
static bool misses_input(const Windows& w) {
  for (int d = 0; d < 3; ++d)
    for (int64_t o = 0; o < w.out[d]; ++o)
      if (w.dilation[d] > 1 && w.start[d][o] >= w.end[d][o]) return true;
  return false;
}
static std::tuple<Tensor, Tensor> max_of_padded(const Tensor& input, Windows w, int64_t n, IntSpan kernel,
                                                IntSpan stride, IntSpan padding) {
  Ints pad(2 * n, 0), in = w.in, before(3, 0);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t d = 3 - n + i, p = padding[i];
    pad[2 * (n - 1 - i)] = pad[2 * (n - 1 - i) + 1] = before[d] = p;
    w.in[d] = in[d] + 2 * p;
    for (int64_t o = 0; o < w.out[d]; ++o) {
      w.start[d][o] = o * stride[i];
      w.end[d][o] = std::min(o * stride[i] + w.dilation[d] * (kernel[i] - 1) + 1, w.in[d]);
    }
  }
  Scalar lowest(-std::numeric_limits<double>::infinity());
  if (!is_float(input.dtype()))
    visit_compute(input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) lowest = Scalar(static_cast<int64_t>(std::numeric_limits<T>::lowest()));
    });
  auto [y, argmax] = max_windows(constant_pad(input, pad, lowest), w, n, true);
  if (!y.has_values()) return {y, argmax};
  Tensor inside = to_host(contiguous(argmax)), out = empty(inside.sizes(), DType::Int64);
  for (int64_t i = 0; i < inside.numel(); ++i) {  // as indices of the input
    int64_t at = inside.data<int64_t>()[i], index = 0, step = 1;
    for (int d = 2; d >= 0; --d) {
      index += std::clamp<int64_t>(at % w.in[d] - before[d], 0, in[d] - 1) * step;
      at /= w.in[d], step *= in[d];
    }
    out.data<int64_t>()[i] = index;
  }
  return {y, to_device(out, y.device())};
}
template <int N> static std::tuple<Tensor, Tensor> plain_max(const Tensor& input, const Ints& kernel_size,
                                                             const std::optional<Ints>& stride, const Ints& padding,
                                                             const Ints& dilation, bool ceil_mode, bool with_argmax) {
  constexpr const char* kName = N == 1 ? "max_pool1d" : N == 2 ? "max_pool2d" : "max_pool3d";
  const IntSpan step = stride ? IntSpan(*stride) : IntSpan(nullptr, 0);
  Windows w = windows_of(kName, input, N, kernel_size, step, padding, dilation, ceil_mode, false);
  if (misses_input(w)) {
    const Ints kernel = each(kName, "kernel_size", kernel_size, N), pad = each(kName, "padding", padding, N);
    return max_of_padded(input, w, N, kernel, step.size() ? each(kName, "stride", step, N) : kernel, pad);
  }
  return max_windows(input, w, N, with_argmax);
}
template <int N> static std::tuple<Tensor, Tensor> max_pool_with_indices(const Tensor& input, const Ints& kernel_size,
                                                                         const std::optional<Ints>& stride,
                                                                         const Ints& padding, const Ints& dilation,
                                                                         bool ceil_mode, bool) {
  return plain_max<N>(input, kernel_size, stride, padding, dilation, ceil_mode, true);
}
template <int N> static Tensor max_pool(const Tensor& input, const Ints& kernel_size, const std::optional<Ints>& stride,
                                        const Ints& padding, const Ints& dilation, bool ceil_mode) {
  return std::get<0>(plain_max<N>(input, kernel_size, stride, padding, dilation, ceil_mode, false));
}
template <int N> static Tensor avg_pool(const Tensor& input, const Ints& kernel_size, const std::optional<Ints>& stride,
                                        const Ints& padding, bool ceil_mode, bool count_include_pad,
                                        std::optional<int64_t> divisor_override) {
  constexpr const char* kName = N == 1 ? "avg_pool1d" : N == 2 ? "avg_pool2d" : "avg_pool3d";
  CHECK(!divisor_override || *divisor_override != 0, Runtime, "divisor must be not zero");
  Windows w = windows_of(kName, input, N, kernel_size, stride ? IntSpan(*stride) : IntSpan(nullptr, 0), padding,
                         Ints{1}, ceil_mode, count_include_pad);
  if (divisor_override) w.divisor = static_cast<double>(*divisor_override);
  return average(input, w, N);
}
static Tensor avg_pool1d(const Tensor& input, const Ints& kernel_size, const std::optional<Ints>& stride,
                         const Ints& padding, bool ceil_mode, bool count_include_pad) {
  return avg_pool<1>(input, kernel_size, stride, padding, ceil_mode, count_include_pad, std::nullopt);
}
template <int N> static Tensor adaptive_avg(const Tensor& input, const Ints& output_size) {
  constexpr const char* kName = N == 1 ? "adaptive_avg_pool1d" : N == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d";
  return average(input, adaptive_windows(kName, input, N, output_size, N == 3), N);
}
template <int N> static std::tuple<Tensor, Tensor> adaptive_max(const Tensor& input, const Ints& output_size) {
  constexpr const char* kName = N == 1 ? "adaptive_max_pool1d" : N == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d";
  return max_windows(input, adaptive_windows(kName, input, N, output_size, true), N, true);
}

// Fractional pooling: the windows of each plane start at pseudo-random steps, drawn by the caller.
// T is the input's type: rounding decides where a window starts.
template <class T>
static void fractional_starts(T sample, int64_t in, int64_t out, int64_t kernel, Ints& start, Ints& end) {
  start = end = Ints(out);
  if (out > 1) {
    T alpha = static_cast<T>(in - kernel) / static_cast<T>(out - 1);
    for (int64_t i = 0; i < out - 1; ++i)
      start[i] = static_cast<int64_t>((static_cast<T>(i) + sample) * alpha) - static_cast<int64_t>(sample * alpha);
  }
  if (out > 0) start[out - 1] = in - kernel;
  for (int64_t i = 0; i < out; ++i) end[i] = start[i] + kernel;
}
template <int N> static std::tuple<Tensor, Tensor> fractional(const Tensor& input, const Ints& kernel_size,
                                                              const Ints& output_size, const Tensor& samples) {
  constexpr const char* kName = N == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d";
  CHECK(kernel_size.size() == N, Runtime, kName, ": kernel_size must either be a single int, or a tuple of ", N,
        " ints");
  CHECK(output_size.size() == N, Runtime, kName, ": output_size must either be a single int, or a tuple of ", N,
        " ints");
  CHECK(input.dim() == N + 1 || input.dim() == N + 2, Runtime, kName, "(): Expected ", dims_text(N),
        " tensor, but got: ", to_text(input.sizes()));
  for (int64_t i = input.dim() - N - 1; i < input.dim(); ++i)
    CHECK(input.sizes()[i] > 0, Runtime, kName,
          "(): Expected input to have non-zero size for non-batch dimensions, but got ", to_text(input.sizes()),
          " with dimension ", i, " being empty.");
  int64_t planes = planes_of(input, N);
  const int64_t batch = input.dim() == N + 2 ? input.sizes()[0] : 1;
  CHECK(samples.dim() == 3 && samples.dtype() == input.dtype(), Runtime, kName,
        "(): Expect _random_samples to have 3 dimensions and the input's dtype, got ", to_text(samples.sizes()));
  CHECK(samples.sizes()[0] >= batch, Runtime, "Expect _random_samples.size(0) no less then input batch size.");
  CHECK(samples.sizes()[1] == input.sizes()[input.dim() - N - 1], Runtime,
        "Expect _random_samples.size(1) equals to input channel size.");
  CHECK(samples.sizes()[2] == N, Runtime, "Expect _random_samples.size(2) equals to ", int64_t{N}, ", got ",
        samples.sizes()[2], ".");
  Windows w;
  w.in = w.out = Ints(3, 1);
  Ints kernel(3, 1);
  for (int d = 0; d < 3; ++d) w.start[d] = Ints(1, 0), w.end[d] = w.share[d] = Ints(1, 1);
  for (int64_t i = 0; i < N; ++i) {
    int64_t d = 3 - N + i;
    w.in[d] = input.sizes()[input.dim() - N + i];
    w.out[d] = output_size[i];
    kernel[d] = kernel_size[i];
    CHECK(kernel[d] > 0 && w.out[d] >= 0, Runtime, kName,
          "(): kernel_size should be greater than zero and output_size not negative, got ", to_text(kernel_size),
          " and ", to_text(output_size));
    constexpr const char* kSides[] = {"time", "height", "width"};
    CHECK(checked_add(w.out[d], kernel[d]) - 1 <= w.in[d], Runtime, kName, "(): pool ", kSides[d], " ", kernel[d],
          " too large relative to input ", kSides[d], " ", w.in[d]);
  }
  Ints sizes = result_sizes(input, w, N);
  Tensor y = empty(sizes, input.dtype(), input.device()), argmax = empty(sizes, DType::Int64, input.device());
  if (!skipped(y) && y.has_values()) {
    NoGrad raw;
    Tensor x = contiguous(input), s = to_host(contiguous(cast(samples, DType::Float64)));
    int64_t in_plane = x.numel() / planes, out_plane = y.numel() / planes, one = 1;
    View vx = x.view(), vy = y.view(), vp = argmax.view();
    const PoolKernels& kernels = *backend(y.device()).pool;
    parallel_for(0, planes, std::max<int64_t>(1, 8192 / out_plane), [&](int64_t first, int64_t last) {
      Windows own = w;
      for (int64_t p = first; p < last; ++p) {
        // Of images, the last sample belongs to the first dimension; of volumes, the first one.
        for (int64_t i = 0; i < N; ++i) {
          int64_t d = 3 - N + i;
          double sample = s.data<double>()[p * N + (N == 2 ? N - 1 - i : i)];
          if (input.dtype() == DType::Float64)
            fractional_starts<double>(sample, w.in[d], w.out[d], kernel[d], own.start[d], own.end[d]);
          else
            fractional_starts<float>(static_cast<float>(sample), w.in[d], w.out[d], kernel[d], own.start[d],
                                     own.end[d]);
        }
        View px{static_cast<char*>(vx.data) + p * in_plane * x.item_size(), &in_plane, &one, 1, x.dtype()};
        View py{static_cast<char*>(vy.data) + p * out_plane * y.item_size(), &out_plane, &one, 1, y.dtype()};
        View pp{static_cast<char*>(vp.data) + p * out_plane * 8, &out_plane, &one, 1, DType::Int64};
        kernels.max(own.table(1), py, &pp, px);
      }
    });
  }
  y = record<MaxPoolBackward>(y, {input}, [&](auto& node) {
    node.result1 = save(argmax);
    node.sizes = Ints(input.sizes());
    node.n = N;
  });
  return {y, argmax};
}

template <int N>
static void define(Ops& ops, const char* max_name, const char* indices_name, const char* avg_max_name) {
  const uint32_t flags = kNoOut | (N == 3 ? uint32_t{kCastFull} : 0u);
  const char* args = "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False";
  ops.def(max_name, max_pool<N>, args, flags, "The maximum of each window over the last dimensions.");
  ops.def(indices_name, max_pool_with_indices<N>,
          "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False", flags,
          "The maximum of each window, and its flat index in the input's plane.");
  ops.def(avg_max_name, adaptive_max<N>, "input, output_size", flags,
          "Maxima over windows that give output_size, and their flat indices in the input's plane.");
}

static const Register registered([](Ops& ops) {
  define<1>(ops, "max_pool1d", "max_pool1d_with_indices", "adaptive_max_pool1d");
  define<2>(ops, "max_pool2d", "_nn.max_pool2d_with_indices", "_nn.adaptive_max_pool2d");
  define<3>(ops, "max_pool3d", "_nn.max_pool3d_with_indices", "_nn.adaptive_max_pool3d");
  ops.document("max_pool1d", R"(
    Takes the maximum of each window of the last dimension.

    Args:
        input: signals (N, C, L) or (C, L).
        kernel_size: the length of a window.
        stride: the step from window to window; None takes kernel_size.
        padding: -inf before and after, at most half of kernel_size.
        dilation: the distance of a window's elements.
        ceil_mode: whether a last window that is not full counts too.

    Gradient:
        To the first of equal maxima of a window.

    Example:
        >>> torch.max_pool1d(torch.tensor([[[1.0, 3.0, 5.0, 2.0]]]), 2)
        tensor([[[3., 5.]]]))");
  ops.document("max_pool2d", R"(
    Takes the maximum of each window of the last two dimensions.

    Args:
        input: images (N, C, H, W) or (C, H, W).
        kernel_size: the sizes of a window, or one for both.
        stride: the step from window to window; None takes kernel_size.
        padding: -inf on each side, at most half of kernel_size.
        dilation: the distance of a window's elements.
        ceil_mode: whether last windows that are not full count too.

    Gradient:
        To the first of equal maxima of a window.

    Example:
        >>> torch.max_pool2d(torch.arange(16.0).reshape(1, 1, 4, 4), 2)
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]]))");
  ops.document("max_pool3d", R"(
    Takes the maximum of each window of the last three dimensions.

    Args:
        input: volumes (N, C, D, H, W) or (C, D, H, W).
        kernel_size: the sizes of a window, or one for all.
        stride: the step from window to window; None takes kernel_size.
        padding: -inf on each side, at most half of kernel_size.
        dilation: the distance of a window's elements.
        ceil_mode: whether last windows that are not full count too.

    Gradient:
        To the first of equal maxima of a window.

    Example:
        >>> torch.max_pool3d(torch.arange(8.0).reshape(1, 1, 2, 2, 2), 2)
        tensor([[[[[7.]]]]]))");
  ops.document("max_pool1d_with_indices", R"(
    Takes the maximum of each window of the last dimension, and its index there.

    Args:
        input: signals (N, C, L) or (C, L).
        kernel_size: the length of a window.
        stride: the step from window to window; None takes kernel_size.
        padding: -inf before and after, at most half of kernel_size.
        dilation: the distance of a window's elements.
        ceil_mode: whether a last window that is not full counts too.
        return_indices: taken for compatibility: the indices are always returned.

    Returns:
        A tuple (maxima, indices).

    Example:
        >>> torch.max_pool1d_with_indices(torch.tensor([[[1.0, 3.0, 5.0, 2.0]]]), 2)
        (tensor([[[3., 5.]]]), tensor([[[1, 2]]])))");
  ops.document("adaptive_max_pool1d", R"(
    Takes the maxima of windows that are chosen so that the last dimension gets a given size, and their indices.

    Args:
        input: signals (N, C, L) or (C, L).
        output_size: the size.

    Returns:
        A tuple (maxima, their indices in the last dimension).

    Example:
        >>> torch.adaptive_max_pool1d(torch.tensor([[[1.0, 3.0, 7.0, 5.0]]]), 2)
        (tensor([[[3., 7.]]]), tensor([[[1, 2]]])))");
  ops.def("avg_pool1d", avg_pool1d,
          "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True", kNoOut, R"(
    Averages windows of the last dimension.

    Args:
        input: signals (N, C, L) or (C, L).
        kernel_size: the length of a window.
        stride: the step from window to window; None takes kernel_size.
        padding: zeros before and after, at most half of kernel_size.
        ceil_mode: whether a last window that is not full counts too.
        count_include_pad: whether the zeros of padding count in the mean.

    Example:
        >>> torch.avg_pool1d(torch.tensor([[[1.0, 3.0, 5.0, 7.0]]]), 2)
        tensor([[[2., 6.]]]))");
  const char* args =
      "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None";
  ops.def("nn.functional.avg_pool2d", avg_pool<2>, args, kExactOut, R"(
    Averages windows of the last two dimensions.

    Args:
        input: images (N, C, H, W) or (C, H, W).
        kernel_size: the sizes of a window, or one for both.
        stride: the step from window to window; None takes kernel_size.
        padding: zeros on each side, at most half of kernel_size.
        ceil_mode: whether last windows that are not full count too.
        count_include_pad: whether the zeros of padding count in the mean.
        divisor_override: what to divide by; None takes the size of the window.

    Example:
        >>> F.avg_pool2d(torch.arange(16.0).reshape(1, 1, 4, 4), 2)
        tensor([[[[ 2.5000,  4.5000],
                  [10.5000, 12.5000]]]]))");
  ops.def("nn.functional.avg_pool3d", avg_pool<3>, args, kExactOut | kCastFull, R"(
    Averages windows of the last three dimensions.

    Args:
        input: volumes (N, C, D, H, W) or (C, D, H, W).
        kernel_size: the sizes of a window, or one for all.
        stride: the step from window to window; None takes kernel_size.
        padding: zeros on each side, at most half of kernel_size.
        ceil_mode: whether last windows that are not full count too.
        count_include_pad: whether the zeros of padding count in the mean.
        divisor_override: what to divide by; None takes the size of the window.

    Example:
        >>> F.avg_pool3d(torch.arange(8.0).reshape(1, 2, 2, 2), 2)
        tensor([[[[3.5000]]]]))");
  ops.def("adaptive_avg_pool1d", adaptive_avg<1>, "input, output_size", kNoOut, R"(
    Averages windows that are chosen so that the last dimension gets a given size.

    Args:
        input: signals (N, C, L) or (C, L).
        output_size: the size.

    Example:
        >>> torch.adaptive_avg_pool1d(torch.tensor([[[1.0, 3.0, 5.0, 7.0]]]), 2)
        tensor([[[2., 6.]]]))");
  ops.def("_nn.adaptive_avg_pool2d", adaptive_avg<2>, "input, output_size", kNoOut,
          "Means over windows that give output_size.");
  ops.def("_nn.adaptive_avg_pool3d", adaptive_avg<3>, "input, output_size", kNoOut | kCastFull,
          "Means over windows that give output_size.");
  ops.def("_nn.fractional_max_pool2d", fractional<2>, "input, kernel_size, output_size, random_samples",
          kNoOut | kCastFull, "Max pooling with windows at given pseudo-random steps.");
  ops.def("_nn.fractional_max_pool3d", fractional<3>, "input, kernel_size, output_size, random_samples",
          kNoOut | kCastFull, "Max pooling with windows at given pseudo-random steps.");
});

}  // namespace rl::ops
