// Kernels that move, convert and generate elements.
#pragma once
#include <complex>
#include <cstdint>

#include "backend/view.h"

namespace rl {

struct CopyKernels {
  // out = in, cast to out's type. Same sizes, any strides, any two types. Floats are truncated towards zero
  // on the way to integers, complex numbers lose their imaginary part on the way to reals, and only zero
  // becomes false. The two must not overlap, unless they are the same view. `in` alone may have negative strides:
  // that is how flips are made.
  void (*copy)(const View& out, const View& in);
  // out = value; `value` points to one element of out's type.
  void (*fill)(const View& out, const void* value);
  void (*zero)(const View& out);
  // out[i] = start + i * step, for a one-dimensional out. Integer types use the integers, the others the floating-point
  // ones.
  void (*range)(const View& out, std::complex<double> start, std::complex<double> step, int64_t int_start,
                int64_t int_step);
  // out[i] goes from start to end in equal steps, both included; exactly `end` at the end. One-dimensional out.
  // With a base it is logspace: base to the power of that.
  void (*linspace)(const View& out, std::complex<double> start, std::complex<double> end,
                   const std::complex<double>* base);
  // out (..., m, n) = in where on or below (`upper`: on or above) the given diagonal, else 0. Same types.
  // `in` may be `out` itself.
  void (*triangle)(const View& out, const View& in, int64_t diagonal, bool upper);
  // Joins `count` tensors along `dim`: out.sizes[dim] is the sum of theirs, other sizes are equal. Types may differ.
  void (*cat)(const View& out, const View* inputs, int64_t count, int dim);
  // out at (i, j, ...) = in at (indices[0][i], indices[1][j], ...), where a null list stands for i itself. Both
  // contiguous and of one type; indices are inside. Those of the last dimension count up by one in [inner, inner +
  // length).
  void (*spread)(const View& out, const View& in, const int64_t* const* indices, int64_t inner, int64_t length);
};

}  // namespace rl
