#include "ops/nn/conv.h"

#include <climits>

#include "backend/backend.h"
#include "ops/elementwise/scalar_cast.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// Note [Three maps]
// A convolution y(x, w) is linear in both arguments. Its gradients dx(dy, w) and dw(dy, x) are linear in both of
// theirs, and the derivative of any of the three is made of the other two. So these three ops serve every order of
// derivative, and the transposed convolution is dx(dy, w) under another name.

struct Geometry {
  ConvShape shape;
  Ints x, w, y;  // sizes of the input, the filters and the result

  // For a stack of rows: all of them in the batch, or in the channels of the input or the result (of one group).
  Geometry with_batches(int64_t rows) const {
    Geometry g = *this;
    g.shape.batch = checked_mul(g.shape.batch, rows);
    g.x[0] = g.y[0] = g.shape.batch;
    return g;
  }
  Geometry with_inputs(int64_t rows) const {
    Geometry g = *this;
    g.shape.in_channels = g.x[1] = g.w[1] = checked_mul(g.shape.in_channels, rows);
    return g;
  }
  Geometry with_results(int64_t rows) const {
    Geometry g = *this;
    g.shape.out_channels = g.y[1] = g.w[0] = checked_mul(g.shape.out_channels, rows);
    return g;
  }
};

// (rows, ...) with the rows joined to dimension `dim` of the rest, and back.
static Tensor joined(const Tensor& t, int64_t dim) {
  Tensor moved = dim ? movedim(t, Ints{0}, Ints{dim}) : t;
  Ints sizes(moved.sizes());
  sizes[dim] *= sizes[dim + 1];
  sizes.erase(dim + 1);
  return reshape(moved, sizes);
}
static Tensor split_rows(const Tensor& t, int64_t dim, int64_t rows) {
  Ints sizes(t.sizes());
  sizes[dim] /= rows;
  sizes.insert(dim, rows);
  Tensor y = reshape(t, sizes);
  return dim ? movedim(y, Ints{dim}, Ints{0}) : y;
}

static Tensor conv_result(const Tensor& x, const Tensor& w, const OptTensor& bias, const Geometry& g,
                          bool channels_last = false);
static Tensor conv_input(const Tensor& dy, const Tensor& w, const Geometry& g);
static Tensor conv_weight(const Tensor& dy, const Tensor& x, const Geometry& g);

static MemoryFormat last_of(const Tensor& t) {
  return t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

// One pass with the algorithm that is chosen for it: out, a, b are y, x, w or dx, dy, w or dw, dy, x.
struct Pass {
  ConvProblem problem;
  ConvChoice choice{};
  bool runs = false;  // whether there is something to compute here

  // `wants_nhwc`: some tensor is NHWC; `operands_nhwc`: all images that are read are.
  Pass(const Geometry& g, ConvPass pass, const Tensor& a, const Tensor& b, bool wants_nhwc, bool operands_nhwc,
       bool has_bias)
      : problem{.shape = g.shape,
                .dtype = a.dtype(),
                .pass = pass,
                .wants_nhwc = wants_nhwc && a.dim() >= 4,
                .operands_nhwc = operands_nhwc,
                .has_bias = has_bias} {
    runs = a.numel() && b.numel();
    if (runs) choice = backend(a.device()).conv->choose(problem);
  }
  bool nhwc() const { return runs && choice.nhwc(); }

  void run(const Tensor& out, const Tensor& a, const Tensor& b, const OptTensor& bias) {
    if (!runs || out.numel() == 0) return;
    NoGrad raw;
    Tensor memory;
    ConvShape& s = problem.shape;
    if (choice.workspace) {
      memory = empty(Ints{choice.workspace}, DType::UInt8, out.device());
      s.workspace = memory.memory();
    }
    const bool filters = problem.pass != ConvPass::Weight;  // b is w: filters are read in either order
    s.filters_last = s.channels_last && filters && channels_last(b);
    const bool b_last = filters ? s.filters_last : s.channels_last;
    Tensor ca = contiguous(a, s.channels_last ? last_of(a) : MemoryFormat::Contiguous);
    Tensor cb = contiguous(b, b_last ? last_of(b) : MemoryFormat::Contiguous);
    Tensor shift = bias ? contiguous(bias) : Tensor();
    const View shifts = shift ? shift.view() : View();
    backend(out.device()).conv->run(choice, problem, out.view(), ca.view(), cb.view(), shift ? &shifts : nullptr);
  }
};

// A result whose every sum is over nothing (an empty batch, no pixels): the bias, or zeros.
static Tensor without_sums(const Ints& sizes, const Tensor& like, const OptTensor& bias) {
  if (!bias || checked_numel(sizes) == 0) return zeros(sizes, like.dtype(), like.device());
  NoGrad raw;
  Ints shape(sizes.size(), 1);
  shape[1] = sizes[1];
  return clone(expand(reshape(bias, shape), sizes), MemoryFormat::Contiguous);
}
static Tensor channel_sums(const Tensor& dy) {
  Ints kept(dy.dim(), 1);
  kept[1] = dy.sizes()[1];
  return reshape(sum_to(dy, kept), Ints{dy.sizes()[1]});
}
static Tensor stacked_channel_sums(const Tensor& dy) {
  Ints kept(dy.dim(), 1);
  kept[0] = dy.sizes()[0], kept[2] = dy.sizes()[2];
  return reshape(sum_to(dy, kept), Ints{kept[0], kept[2]});
}

// Note [Inputs without channels]
// PyTorch's convolution of an input with no channels has no channels either, whatever number of filters and biases
// there are; their gradients are zeros. (A transposed one cannot be asked for: its filters would have no rows.)
static bool without_channels(const Geometry& g) { return g.y[1] != g.shape.out_channels; }

// convolution: y = x * w + bias        dx = dx(dy, w), dw = dw(dy, x), dbias = sums of dy
struct ConvolutionBackward : Node {
  static constexpr const char* kName = "ConvolutionBackward0";
  Saved input, weight;
  Geometry geometry;
  Grads backward(const Grads& dy) {
    Grads d(3);
    if (needs(0)) d[0] = conv_input(dy[0], conj(weight.unpack(*this)), geometry);
    if (needs(1)) d[1] = conv_weight(dy[0], conj(input.unpack(*this)), geometry);
    if (needs(2) && without_channels(geometry))
      d[2] = zeros(Ints{geometry.shape.out_channels}, dy[0].dtype(), dy[0].device());
    else if (needs(2)) d[2] = channel_sums(dy[0]);
    return d;
  }
  Grads stacked(const Grads& dy) {
    if ((needs(1) && geometry.shape.groups != 1) || without_channels(geometry)) return backward_by_rows(*this, dy);
    int64_t rows = dy[0].sizes()[0];
    Grads d(3);
    if (needs(0))
      d[0] = split_rows(conv_input(joined(dy[0], 0), conj(weight.unpack(*this)), geometry.with_batches(rows)), 0, rows);
    if (needs(1))
      d[1] = split_rows(conv_weight(joined(dy[0], 1), conj(input.unpack(*this)), geometry.with_results(rows)), 0, rows);
    if (needs(2)) d[2] = stacked_channel_sums(dy[0]);
    return d;
  }
  FIELDS(input, weight)
};
static Tensor conv_result(const Tensor& x, const Tensor& w, const OptTensor& bias, const Geometry& g,
                          bool channels_last) {
  Pass pass(g, ConvPass::Forward, x, w, channels_last, channels_last, static_cast<bool>(bias));
  const bool sums = x.numel() && w.numel();
  Tensor y = sums ? empty_ordered(g.y, x.dtype(), x.device(), pass.nhwc()) : without_sums(g.y, x, bias);
  pass.run(y, x, w, bias);
  if (!pass.nhwc()) y = ordered(std::move(y), channels_last);
  return record<ConvolutionBackward>(y, {x, w, bias}, [&](auto& n) {
    if (n.needs(1)) n.input = save(x);
    if (n.needs(0)) n.weight = save(w);
    n.geometry = g;
  });
}

// its gradient wrt the input: dx = dx(dy, w)        d(dy) = y(g, w), dw = dw(dy, g)
struct ConvolutionInputBackward : Node {
  static constexpr const char* kName = "ConvolutionBackward0";
  Saved input, weight;  // dy plays the input of a transposed convolution
  Geometry geometry;
  bool has_bias = false;
  Grads backward(const Grads& dy) {
    Grads d(3);
    if (needs(0)) {
      Tensor w = conj(weight.unpack(*this));
      d[0] = conv_result(dy[0], w, OptTensor(), geometry, channels_last(dy[0]) || channels_last(w));
    }
    if (needs(1)) d[1] = conv_weight(conj(input.unpack(*this)), dy[0], geometry);
    if (needs(2)) d[2] = channel_sums(dy[0]);
    return d;
  }
  Grads stacked(const Grads& dy) {
    if (needs(1) && geometry.shape.groups != 1) return backward_by_rows(*this, dy);
    int64_t rows = dy[0].sizes()[0];
    Grads d(3);
    if (needs(0)) {
      Tensor w = conj(weight.unpack(*this));
      d[0] = split_rows(conv_result(joined(dy[0], 0), w, OptTensor(), geometry.with_batches(rows)), 0, rows);
    }
    if (needs(1))
      d[1] = split_rows(conv_weight(conj(input.unpack(*this)), joined(dy[0], 1), geometry.with_inputs(rows)), 1, rows);
    if (needs(2)) d[2] = stacked_channel_sums(dy[0]);
    return d;
  }
  FIELDS(input, weight)
};
static Tensor conv_input_with_bias(const Tensor& dy, const Tensor& w, const OptTensor& bias, const Geometry& g,
                                   bool channels_last) {
  const bool nhwc = ops::channels_last(dy);
  Pass pass(g, ConvPass::Input, dy, w, channels_last || nhwc, nhwc, static_cast<bool>(bias));
  const bool sums = dy.numel() && w.numel();
  Tensor dx = sums ? empty_ordered(g.x, dy.dtype(), dy.device(), pass.nhwc()) : without_sums(g.x, dy, bias);
  pass.run(dx, dy, w, bias);
  if (!pass.nhwc()) dx = ordered(std::move(dx), channels_last);
  return record<ConvolutionInputBackward>(dx, {dy, w, bias}, [&](auto& n) {
    if (n.needs(1)) n.input = save(dy);
    if (n.needs(0)) n.weight = save(w);
    n.geometry = g;
  });
}
static Tensor conv_input(const Tensor& dy, const Tensor& w, const Geometry& g) {
  return conv_input_with_bias(dy, w, OptTensor(), g, false);
}

// its gradient wrt the weight: dw = dw(dy, x)        d(dy) = y(x, g), dx = dx(dy, g)
struct ConvolutionWeightBackward : Node {
  static constexpr const char* kName = "ConvolutionBackwardBackward0";
  Saved grad_output, input;
  Geometry geometry;
  Grads backward(const Grads& dy) {
    Grads d(2);
    if (needs(0)) d[0] = conv_result(conj(input.unpack(*this)), dy[0], OptTensor(), geometry);
    if (needs(1)) d[1] = conv_input(conj(grad_output.unpack(*this)), dy[0], geometry);
    return d;
  }
  Grads stacked(const Grads& dy) {
    if (geometry.shape.groups != 1) return backward_by_rows(*this, dy);
    int64_t rows = dy[0].sizes()[0];
    Grads d(2);
    if (needs(0)) {
      Tensor x = conj(input.unpack(*this));
      d[0] = split_rows(conv_result(x, joined(dy[0], 0), OptTensor(), geometry.with_results(rows)), 1, rows);
    }
    if (needs(1))
      d[1] = split_rows(conv_input(conj(grad_output.unpack(*this)), joined(dy[0], 1), geometry.with_inputs(rows)), 1,
                        rows);
    return d;
  }
  FIELDS(grad_output, input)
};
static Tensor conv_weight(const Tensor& dy, const Tensor& x, const Geometry& g) {
  const bool sums = dy.numel() && x.numel();
  Tensor dw = sums ? empty(g.w, dy.dtype(), dy.device()) : zeros(g.w, dy.dtype(), dy.device());
  const bool dy_nhwc = channels_last(dy), x_nhwc = channels_last(x);
  Pass pass(g, ConvPass::Weight, dy, x, dy_nhwc || x_nhwc, dy_nhwc && x_nhwc, false);
  pass.run(dw, dy, x, OptTensor());
  return record<ConvolutionWeightBackward>(dw, {dy, x}, [&](auto& n) {
    if (n.needs(1)) n.grad_output = save(dy);
    if (n.needs(0)) n.input = save(x);
    n.geometry = g;
  });
}

// Arguments

// One value for each of n dimensions.
static Ints each(IntSpan values, int64_t n, const char* name, const char* what) {
  if (values.size() == 1) return Ints(n, values[0]);
  CHECK(values.size() == n, Runtime, name, ": expected ", what, " to be a single integer value or a list of ", n,
        " values to match the convolution dimensions, but got ", what, "=", to_text(values));
  return Ints(values);
}

static void check_types(const Tensor& x, const Tensor& w, const OptTensor& bias) {
  auto type_of = [](const Tensor& t) {
    return text("torch.", t.on_host() ? "" : t.device().name(), t.on_host() ? "" : ".", info(t.dtype()).legacy,
                "Tensor");
  };
  CHECK(x.dtype() == w.dtype() && x.device() == w.device(), Runtime, "Input type (", type_of(x), ") and weight type (",
        type_of(w), ") should be the same");
  if (bias)
    CHECK(x.dtype() == bias.dtype() && x.device() == bias.device(), Runtime, "Input type (", type_of(x),
          ") and bias type (", type_of(bias), ") should be the same");
}

static std::string by(IntSpan v) {  // 3 x 4
  std::string s;
  for (int64_t i = 0; i < v.size(); ++i) s += (i ? " x " : "") + to_text(v[i]);
  return s;
}

enum class Pad : uint8_t { Given, Same };

// Checks everything and fills the geometry of a convolution of x (batched) by w.
static Geometry geometry_of(const char* name, const Tensor& x, const Tensor& w, const OptTensor& bias,
                            const Ints& stride, const Ints& padding, const Ints& dilation, bool transposed,
                            const Ints& output_padding, int64_t groups, Pad pad) {
  int64_t n = x.dim() - 2;
  for (int64_t v : padding) CHECK(v >= 0, Runtime, "negative padding is not supported");
  for (int64_t v : output_padding) CHECK(v >= 0, Runtime, "negative output_padding is not supported");
  for (int64_t v : stride) CHECK(v > 0, Runtime, "non-positive stride is not supported");
  for (int64_t v : dilation) CHECK(v > 0, Runtime, "dilation should be greater than zero");
  CHECK(groups > 0, Runtime, "non-positive groups is not supported");
  CHECK(w.sizes()[0] >= groups, Runtime, "Given groups=", groups, ", expected weight to be at least ", groups,
        " at dimension 0, but got weight of size ", to_text(w.sizes()), " instead");
  CHECK(w.sizes()[0] % groups == 0, Runtime, "Given groups=", groups, ", expected weight to be divisible by ", groups,
        " at dimension 0, but got weight of size ", to_text(w.sizes()), " instead");
  int64_t in_channels = transposed ? w.sizes()[0] : checked_mul(w.sizes()[1], groups);
  int64_t out_channels = transposed ? checked_mul(w.sizes()[1], groups) : w.sizes()[0];
  CHECK(x.sizes()[1] == in_channels, Runtime, "Given ", transposed ? "transposed=1" : text("groups=", groups),
        ", weight of size ", to_text(w.sizes()), ", expected input", to_text(x.sizes()), " to have ", in_channels,
        " channels, but got ", x.sizes()[1], " channels instead");
  if (bias)
    CHECK(bias.dim() == 1 && bias.numel() == out_channels, Runtime, "Given ",
          transposed ? "transposed=1" : "transposed=0", ", weight of size ", to_text(w.sizes()),
          ", expected bias to be 1-dimensional with ", out_channels, " elements, but got bias of size ",
          to_text(bias.sizes()), " instead");
  Geometry g;
  ConvShape& s = g.shape;
  s = {x.sizes()[0],
       groups,
       transposed ? out_channels : in_channels,
       transposed ? in_channels : out_channels,
       {1, 1, 1},
       {1, 1, 1},
       {1, 1, 1},
       {1, 1, 1},
       {0, 0, 0},
       {1, 1, 1},
       false,
       false,
       nullptr};
  Ints out(n), padded(n);
  bool too_small = false;
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = 3 - n + i, k = w.sizes()[i + 2], in = x.sizes()[i + 2];
    CHECK(k > 0, Runtime, name, ": expected filters with a size of at least 1 in each dimension, got weight of size ",
          to_text(w.sizes()));
    int64_t reach = checked_mul(dilation[i], k - 1);
    if (transposed) {
      CHECK(output_padding[i] < stride[i] || output_padding[i] < dilation[i], Runtime,
            "output padding must be smaller than either stride or dilation, but got output_padding=",
            to_text(output_padding), ", stride=", to_text(stride), ", dilation=", to_text(dilation));
      out[i] = checked_add(checked_add(checked_mul(in - 1, stride[i]), reach),
                           checked_add(output_padding[i], 1) - checked_mul(2, padding[i]));
      too_small = too_small || out[i] < 0 || in <= 0;
    } else if (pad == Pad::Same) {
      out[i] = in;
    } else {
      padded[i] = checked_add(in, checked_mul(2, padding[i]));
      CHECK(
          padded[i] > reach, Runtime, "Calculated padded input size per channel: (",
          [&] {
            Ints all(n);
            for (int64_t j = 0; j < n; ++j) all[j] = x.sizes()[j + 2] + 2 * padding[j];
            return by(all);
          }(),
          "). Kernel size: (",
          [&] {
            Ints all(n);
            for (int64_t j = 0; j < n; ++j) all[j] = dilation[j] * (w.sizes()[j + 2] - 1) + 1;
            return by(all);
          }(),
          "). Kernel size can't be greater than actual input size");
      out[i] = (padded[i] - reach - 1) / stride[i] + 1;
    }
    s.kernel[d] = k;
    s.stride[d] = stride[i];
    s.dilation[d] = dilation[i];
    s.padding[d] = pad == Pad::Same ? reach / 2 : padding[i];
    s.in[d] = transposed ? out[i] : in;
    s.out[d] = transposed ? in : out[i];
  }
  CHECK(!too_small, Runtime, "Given input size per channel: (", by(IntSpan(x.sizes().data() + 2, n)),
        "). Calculated output size per channel: (", by(out), "). Output size is too small");
  g.w = Ints(w.sizes());
  Ints result{x.sizes()[0], in_channels ? out_channels : 0};  // Note [Inputs without channels]
  for (int64_t v : out) result.push_back(v);
  (transposed ? g.y : g.x) = Ints(x.sizes());
  (transposed ? g.x : g.y) = result;
  int64_t rows = checked_mul(s.in_channels / groups, checked_mul(s.kernel[0], checked_mul(s.kernel[1], s.kernel[2])));
  CHECK(rows <= INT_MAX && s.in_channels <= INT_MAX && s.out_channels <= INT_MAX && checked_numel(result) >= 0 &&
            s.out_plane() <= INT_MAX && s.in_plane() <= INT_MAX,
        Runtime, name, ": the sizes are too large: input ", to_text(x.sizes()), ", weight ", to_text(w.sizes()));
  return g;
}

static Tensor run(const char* name, int64_t n, const Tensor& input, const Tensor& weight, const OptTensor& bias,
                  IntSpan stride, IntSpan padding, IntSpan dilation, bool transposed, IntSpan output_padding,
                  int64_t groups, Pad pad) {
  CHECK(input.dim() == n + 1 || input.dim() == n + 2, Runtime, "Expected ", n + 1, "D (unbatched) or ", n + 2,
        "D (batched) input to ", name, ", but got input of size: ", to_text(input.sizes()));
  CHECK(weight.dim() == n + 2, Runtime, "Expected ", n + 2, "-dimensional weight for ", n + 2,
        "-dimensional input, but got weight of size ", to_text(weight.sizes()), " instead");
  check_types(input, weight, bias);
  bool batched = input.dim() == n + 2;
  Tensor x = batched ? input : unsqueeze(input, 0);
  Geometry g = geometry_of(name, x, weight, bias, each(stride, n, name, "stride"), each(padding, n, name, "padding"),
                           each(dilation, n, name, "dilation"), transposed,
                           each(output_padding, n, name, "output_padding"), groups, pad);
  const bool last = channels_last(x) || channels_last(weight);
  Tensor y = transposed ? conv_input_with_bias(x, weight, bias, g, last) : conv_result(x, weight, bias, g, last);
  return batched ? y : squeeze(y, 0);
}

template <int N> constexpr const char* kConvName = N == 1 ? "conv1d" : N == 2 ? "conv2d" : "conv3d";
template <int N> constexpr const char* kTransposedName = N == 1   ? "conv_transpose1d"
                                                         : N == 2 ? "conv_transpose2d"
                                                                  : "conv_transpose3d";

template <int N> static Tensor conv(const Tensor& input, const Tensor& weight, const OptTensor& bias,
                                    const Ints& stride, const Ints& padding, const Ints& dilation, int64_t groups) {
  return run(kConvName<N>, N, input, weight, bias, stride, padding, dilation, false, Ints{0}, groups, Pad::Given);
}
template <int N> static Tensor conv_padded(const Tensor& input, const Tensor& weight, const OptTensor& bias,
                                           const Ints& stride, const std::string& padding, const Ints& dilation,
                                           int64_t groups) {
  CHECK(padding == "valid" || padding == "same", Runtime, "Invalid padding string: '", padding, "'");
  if (padding == "same")
    for (int64_t v : stride) CHECK(v == 1, Runtime, "padding='same' is not supported for strided convolutions");
  return run(kConvName<N>, N, input, weight, bias, stride, Ints{0}, dilation, false, Ints{0}, groups,
             padding == "same" ? Pad::Same : Pad::Given);
}
template <int N> static Tensor conv_transpose(const Tensor& input, const Tensor& weight, const OptTensor& bias,
                                              const Ints& stride, const Ints& padding, const Ints& output_padding,
                                              int64_t groups, const Ints& dilation) {
  return run(kTransposedName<N>, N, input, weight, bias, stride, padding, dilation, true, output_padding, groups,
             Pad::Given);
}

Tensor convolution(const Tensor& input, const Tensor& weight, const OptTensor& bias, IntSpan stride, IntSpan padding,
                   IntSpan dilation, bool transposed, IntSpan output_padding, int64_t groups) {
  CHECK(weight.dim() >= 3 && weight.dim() <= 5, Runtime, "convolution: expected a weight of 3 to 5 dimensions, got ",
        to_text(weight.sizes()));
  return run("convolution", weight.dim() - 2, input, weight, bias, stride, padding, dilation, transposed,
             output_padding, groups, Pad::Given);
}
static Tensor convolution_op(const Tensor& input, const Tensor& weight, const OptTensor& bias, const Ints& stride,
                             const Ints& padding, const Ints& dilation, bool transposed, const Ints& output_padding,
                             int64_t groups) {
  return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

// conv_tbc: a conv1d of (time, batch, channels) by filters (width, channels, out)
static Tensor conv_tbc(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t pad) {
  CHECK(input.dim() == 3 && weight.dim() == 3 && bias.dim() == 1, Runtime,
        "conv_tbc: expected input (time, batch, channels), weight (width, "
        "channels, out) and bias (out), got ",
        to_text(input.sizes()), ", ", to_text(weight.sizes()), " and ", to_text(bias.sizes()));
  Tensor y =
      conv<1>(permute(input, Ints{1, 2, 0}), permute(weight, Ints{2, 1, 0}), bias, Ints{1}, Ints{pad}, Ints{1}, 1);
  return permute(y, Ints{2, 0, 1});
}

// The table of algorithms as text, for rushlight.backends.cpu: fields apart by tabs, rows by lines.
static constexpr const char* kPassNames[] = {"forward", "input", "weight"};
static std::string conv_table() {
  static constexpr const char* kIsaNames[] = {"any", "avx512", "avx512_bf16"};
  std::string all;
  const ConvTable table = backend(Device()).conv->table();
  for (const ConvAlgorithm* row = table.begin; row < table.end; ++row) {
    all += text(row->name, "\t", kPassNames[static_cast<int>(row->pass)], "\t",
                row->layout == ConvLayout::NHWC ? "NHWC" : "NCHW", "\t", kIsaNames[static_cast<int>(row->isa)], "\t");
    for (int t = 0; t < 32; ++t)
      if (row->dtypes >> t & 1) all += text(info(static_cast<DType>(t)).name, " ");
    all += "\n";
  }
  return all;
}
// The algorithm that would run, and those that could, by lines.
static std::string conv_choices(const Tensor& input, const Tensor& weight, const Ints& stride, const Ints& padding,
                                const Ints& dilation, int64_t groups, const std::string& pass_name, bool nhwc,
                                bool has_bias) {
  const int64_t n = weight.dim() - 2;
  CHECK(n >= 1 && n <= 3 && input.dim() == n + 2, Runtime,
        "conv_algorithm: expected an input and a weight of 3 to 5 dimensions, got ", to_text(input.sizes()), " and ",
        to_text(weight.sizes()));
  int pass = 0;
  while (pass < 3 && pass_name != kPassNames[pass]) ++pass;
  CHECK(pass < 3, Value, "conv_algorithm: pass is 'forward', 'input' or 'weight', got '", pass_name, "'");
  check_types(input, weight, OptTensor());
  const Geometry g = geometry_of("conv_algorithm", input, weight, OptTensor(), each(stride, n, "conv", "stride"),
                                 each(padding, n, "conv", "padding"), each(dilation, n, "conv", "dilation"), false,
                                 Ints(n, 0), groups, Pad::Given);
  nhwc = nhwc && n >= 2;
  ConvProblem p{.shape = g.shape,
                .dtype = input.dtype(),
                .pass = static_cast<ConvPass>(pass),
                .wants_nhwc = nhwc,
                .operands_nhwc = nhwc,
                .has_bias = has_bias};
  const ConvKernels& conv = *backend(input.device()).conv;
  const ConvChoice choice = conv.choose(p);
  std::string all = text(choice.algorithm->name, "\t", choice.nhwc() ? "NHWC" : "NCHW", "\n");
  const ConvTable table = conv.table();
  for (const ConvAlgorithm* row = table.begin; row < table.end; ++row)
    if (conv.applicable(*row, p)) all += text(row->name, "\t", row->layout == ConvLayout::NHWC ? "NHWC" : "NCHW", "\n");
  return all;
}
static std::string conv_forced() { return backend(Device()).conv->forced(); }
static void force_conv(const std::string& name) {
  CHECK(backend(Device()).conv->force(name), Value, "there is no convolution algorithm '", name,
        "'\n  rushlight.backends.cpu.conv_table() lists them");
}

template <int N> static void define(Ops& ops) {
  const char* args = "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1";
  ops.def(kConvName<N>, conv<N>, args, kNoOut | kCastLow);
  ops.def(kConvName<N>, conv_padded<N>, "input, weight, bias=None, stride=1, padding='valid', dilation=1, groups=1",
          kNoOut | kCastLow);
  ops.def(kTransposedName<N>, conv_transpose<N>,
          "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1", kNoOut | kCastLow);
}

static const Register registered([](Ops& ops) {
  define<1>(ops);
  define<2>(ops);
  define<3>(ops);
  ops.document("conv1d", R"(
    Convolves signals with filters: sums of products of the filters with every window.

    Args:
        input: signals (N, C, L) or (C, L).
        weight: the filters (O, C / groups, K).
        bias: what is added to each output channel, (O); None for nothing.
        stride: the step of the filters.
        padding: zeros before and after; 'valid' is none, 'same' as many as keep the length.
        dilation: the distance of the filters' elements.
        groups: into how many groups the channels fall.

    Shape:
        (N, C, L) gives (N, O, (L + 2 padding - dilation (K - 1) - 1) // stride + 1).

    Example:
        >>> x = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
        >>> F.conv1d(x, torch.tensor([[[1.0, -1.0]]]))
        tensor([[[-1., -1., -1.]]]))");
  ops.document("conv2d", R"(
    Convolves images with filters: sums of products of the filters with every window.

    Args:
        input: images (N, C, H, W) or (C, H, W).
        weight: the filters (O, C / groups, KH, KW).
        bias: what is added to each output channel, (O); None for nothing.
        stride: the step of the filters, one number or (rows, columns).
        padding: zeros on each side; 'valid' is none, 'same' as many as keep the sizes.
        dilation: the distance of the filters' elements.
        groups: into how many groups the channels fall.

    Shape:
        H gives (H + 2 padding - dilation (KH - 1) - 1) // stride + 1, and W likewise.

    Example:
        >>> images, filters = torch.randn(8, 3, 32, 32), torch.randn(16, 3, 5, 5)
        >>> F.conv2d(images, filters).shape
        torch.Size([8, 16, 28, 28])
        >>> F.conv2d(images, filters, stride=2, padding=2).shape
        torch.Size([8, 16, 16, 16])
        >>> F.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
        tensor([[[[4., 4.],
                  [4., 4.]]]]))");
  ops.document("conv3d", R"(
    Convolves volumes with filters: sums of products of the filters with every window.

    Args:
        input: volumes (N, C, D, H, W) or (C, D, H, W).
        weight: the filters (O, C / groups, KD, KH, KW).
        bias: what is added to each output channel, (O); None for nothing.
        stride: the step of the filters, one number or three.
        padding: zeros on each side; 'valid' is none, 'same' as many as keep the sizes.
        dilation: the distance of the filters' elements.
        groups: into how many groups the channels fall.

    Shape:
        D gives (D + 2 padding - dilation (KD - 1) - 1) // stride + 1, and H and W likewise.

    Example:
        >>> F.conv3d(torch.randn(2, 3, 8, 8, 8), torch.randn(4, 3, 3, 3, 3)).shape
        torch.Size([2, 4, 6, 6, 6]))");
  ops.document("conv_transpose1d", R"(
    Applies the transpose of conv1d(): each element of the input adds a multiple of the filter to the result.

    Args:
        input: signals (N, C, L) or (C, L).
        weight: the filters (C, O / groups, K).
        bias: what is added to each output channel, (O); None for nothing.
        stride: the step from one element's filter to the next one's.
        padding: how much is cut off before and after.
        output_padding: how much is added at the end, which several lengths of conv1d's input make possible.
        groups: into how many groups the channels fall.
        dilation: the distance of the filters' elements.

    Shape:
        L gives (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1.

    Example:
        >>> F.conv_transpose1d(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[1.0, 10.0]]]), stride=2)
        tensor([[[ 1., 10.,  2., 20.]]]))");
  ops.document("conv_transpose2d", R"(
    Applies the transpose of conv2d(): each pixel of the input adds a multiple of the filter to the result.

    Args:
        input: images (N, C, H, W) or (C, H, W).
        weight: the filters (C, O / groups, KH, KW).
        bias: what is added to each output channel, (O); None for nothing.
        stride: the step from one pixel's filter to the next one's.
        padding: how much is cut off on each side.
        output_padding: how much is added at the end of each dimension.
        groups: into how many groups the channels fall.
        dilation: the distance of the filters' elements.

    Shape:
        H gives (H - 1) stride - 2 padding + dilation (KH - 1) + output_padding + 1, and W likewise.

    Example:
        >>> F.conv_transpose2d(torch.randn(1, 4, 8, 8), torch.randn(4, 3, 2, 2), stride=2).shape
        torch.Size([1, 3, 16, 16]))");
  ops.document("conv_transpose3d", R"(
    Applies the transpose of conv3d(): each element of the input adds a multiple of the filter to the result.

    Args:
        input: volumes (N, C, D, H, W) or (C, D, H, W).
        weight: the filters (C, O / groups, KD, KH, KW).
        bias: what is added to each output channel, (O); None for nothing.
        stride: the step from one element's filter to the next one's.
        padding: how much is cut off on each side.
        output_padding: how much is added at the end of each dimension.
        groups: into how many groups the channels fall.
        dilation: the distance of the filters' elements.

    Example:
        >>> F.conv_transpose3d(torch.randn(1, 2, 4, 4, 4), torch.randn(2, 3, 2, 2, 2), stride=2).shape
        torch.Size([1, 3, 8, 8, 8]))");
  ops.def("convolution", convolution_op,
          "input, weight, bias, stride, padding, dilation, transposed, output_padding, groups", kNoOut | kCastLow, R"(
    Convolves over one to three dimensions, plain or transposed; conv2d() and its kin call it.

    Args:
        weight: the filters: (O, C / groups, ...), transposed (C, O / groups, ...).
        bias: what is added to each output channel, or None.
        stride: the step of the filters in each dimension.
        padding: zeros before and after in each dimension.
        dilation: the distance of the filters' elements in each dimension.
        transposed: whether to transpose the map.
        output_padding: how much larger the result is, if transposed.
        groups: into how many groups the channels fall.

    Example:
        >>> x, w = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
        >>> torch.convolution(x, w, None, (1,), (0,), (1,), False, (0,), 1)
        tensor([[[2., 2.]]]))");
  ops.def("_conv_table", conv_table, "", kNoOut);
  ops.def("_conv_choices", conv_choices, "input, weight, stride, padding, dilation, groups, pass_name, nhwc, has_bias",
          kNoOut);
  ops.def("_conv_forced", conv_forced, "", kNoOut);
  ops.def("_force_conv", force_conv, "name", kNoOut);
  ops.def("conv_tbc", conv_tbc, "input, weight, bias, pad=0", kNoOut | kCastLow, R"(
    Convolves signals whose first dimension is time: (time, batch, channels).

    Args:
        weight: the filters (width, channels, out).
        bias: what is added to each output channel, (out).
        pad: zeros before and after each signal.

    Example:
        >>> x = torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1)
        >>> torch.conv_tbc(x, torch.ones(2, 1, 1), torch.zeros(1)).flatten()
        tensor([3., 5.]))");
});

}  // namespace rl::ops
