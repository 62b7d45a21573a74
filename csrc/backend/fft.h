// Discrete Fourier transforms.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// `dims` are the transformed dimensions, each named once, `ndims` >= 1 of them; every transformed length is at least 1.
// forward has exp(-2 pi i j k / n) in its sum, otherwise exp(+...). The result is multiplied by `scale`.
// Views may have any strides; the result shares no memory with the input, except that c2c may work in place.
struct FftKernels {
  // complex, or real, to complex of equal sizes
  void (*c2c)(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale);
  // real to complex: the last of dims keeps n / 2 + 1 of its n values
  void (*r2c)(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale);
  // complex to real: the last of dims has n values in the result and n / 2 + 1 in the input
  void (*c2r)(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale);
};

}  // namespace rl
