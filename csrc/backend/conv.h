// Convolutions over one, two or three spatial dimensions, and their two gradients. A transposed convolution is the
// gradient wrt the input of a plain one, so three passes serve all of them, to any order of derivative.
#pragma once
#include <cstdint>
#include <string_view>

#include "backend/view.h"

namespace rl {

// Spatial sizes are (depth, height, width); missing leading dimensions have size, kernel and stride 1 and no padding.
struct ConvShape {
  int64_t batch, groups;
  int64_t in_channels, out_channels;  // of all groups together
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
  // Whether x, y and their gradients are NHWC, (N, ...in, C), and whether filters are: (O, ...kernel, C / groups).
  bool channels_last = false, filters_last = false;
  void* workspace = nullptr;  // of ConvChoice::workspace bytes; without it the kernel takes its own

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

enum class ConvPass : uint8_t { Forward, Input, Weight };
enum class ConvLayout : uint8_t { NCHW, NHWC };
enum class ConvIsa : uint8_t { Any, Avx512, Bf16 };

// A convolution as far as the choice of its algorithm depends on it.
struct ConvProblem {
  ConvShape shape;
  DType dtype;
  ConvPass pass;
  bool wants_nhwc = false;     // some tensor is NHWC, so that is the layout of the result
  bool operands_nhwc = false;  // every image that is read is
  bool has_bias = false;
};

// out, a, b are y, x, w (Forward), dx, dy, w (Input) or dw, dy, x (Weight); bias is (channels of out) or null.
struct ConvArguments {
  const ConvShape& shape;
  DType dtype;
  void* out;
  const void *a, *b, *bias;
};

// One row of the table of algorithms (csrc/cpu/conv/table.cpp), for one pass and one layout.
struct ConvAlgorithm {
  const char* name;
  ConvIsa isa = ConvIsa::Any;
  uint32_t dtypes;  // bits by DType; float16 and bfloat16 are converted for rows of Float32
  ConvPass pass;
  ConvLayout layout = ConvLayout::NCHW;
  bool adds_bias = true;                               // run() adds the bias itself
  bool (*applicable)(const ConvProblem& p);            // run() is right for p
  bool (*profitable)(const ConvProblem& p) = nullptr;  // it is also the fastest of the rows from here on; null: always
  int64_t (*workspace)(const ConvProblem& p) = nullptr;  // bytes worth keeping from call to call; null: none
  bool (*run)(const ConvArguments& arguments);  // false, with an unfinished result: the values need another row
};

struct ConvTable {
  const ConvAlgorithm *begin, *end;
};
struct ConvChoice {
  const ConvAlgorithm* algorithm;
  int64_t workspace;
  bool nhwc() const { return algorithm->layout == ConvLayout::NHWC; }
};

// All tensors are dense and of one type: x (N, C, ...in), w (O, C / groups, ...kernel), y (N, O, ...out), row-major
// unless the shape says otherwise. dw is always row-major.
// Types: floats, complex and int64. Sizes have been checked; none is 0 except the batch, the channels or the output.
struct ConvKernels {
  // The algorithm, the layout that it works in (p.shape.channels_last, too) and the workspace that it would like.
  ConvChoice (*choose)(ConvProblem& p);
  // Computes p, whose shape has the layouts and the workspace by now.
  void (*run)(const ConvChoice& choice, const ConvProblem& p, const View& out, const View& a, const View& b,
              const View* bias);
  // The table in order of priority, by passes, and whether a row can compute p.
  ConvTable (*table)();
  bool (*applicable)(const ConvAlgorithm& algorithm, const ConvProblem& p);
  // Takes the algorithm of this name wherever it is applicable; none for an empty name. False if there is none of this
  // name. RUSHLIGHT_CONV in the environment is the first.
  bool (*force)(std::string_view name);
  const char* (*forced)();  // its name, or ""
};

}  // namespace rl
