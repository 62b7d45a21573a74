// Kernels that draw random numbers. Streams are those of torch on the CPU, bit for bit: the same generator state gives
// the same elements and the same state afterwards.
//
// Order of drawing: elements are filled in the order of their addresses, so a transposed tensor is filled as its
// memory lies. Outputs have no dimension of stride 0 (ops check), and are not empty or are left alone.
//
// What the op layer composes, as torch does:
//   complex      uniform and normal fill view_as_real(out); normal with std / sqrt(2)
//   normal       with tensor mean or std: normal(0, 1) (or normal(0, std) for a number std), then mul_(std), add_(mean)
//   multinomial  without replacement, or one sample: q = empty_like(p); exponential(q, 1); argmax or topk of p / q
//   dirichlet    g = gamma(alpha) into float64; g / g.sum(-1, keepdim), cast, clamped to [min normal, nextafter(1, 0)]
//   binomial, poisson, gamma   take contiguous inputs and fill a contiguous output
#pragma once
#include <cstdint>

#include "backend/view.h"
#include "base/generator.h"

namespace rl {

struct RandomKernels {
  // For the four floating types.
  void (*uniform)(const View& out, double from, double to, Generator& generator);  // in [from, to)
  // From 16 elements on, a contiguous `out` takes Box-Muller in blocks of 16, and the last block is drawn anew when
  // the size is no multiple of 16; other tensors draw pairs of doubles, the second kept in the generator.
  void (*normal)(const View& out, double mean, double std, Generator& generator);
  void (*log_normal)(const View& out, double mean, double std, Generator& generator);
  void (*cauchy)(const View& out, double median, double sigma, Generator& generator);
  void (*exponential)(const View& out, double lambda, Generator& generator);

  // For the floating types and the integers of up to 64 bits that compute; 0 < p < 1.
  void (*geometric)(const View& out, double p, Generator& generator);

  // Integers, for every type but the complex ones. random_any: [0, max] of the type (floating types: [0, 2^digits]).
  // random_range: [base, base + range), range > 0; from a range of 2^28 on each number takes 64 bits of the stream.
  // random_bits: all 2^64 integers, for int64 and floating types.
  void (*random_any)(const View& out, Generator& generator);
  void (*random_range)(const View& out, uint64_t range, int64_t base, Generator& generator);
  void (*random_bits)(const View& out, Generator& generator);

  // 1 with probability p, else 0, for every type but the complex ones. 0 <= p <= 1 is checked by the op for the number
  // and by the kernel for the tensor, which is of a floating type and of the sizes of `out` (stride 0 where it is
  // broadcast).
  void (*bernoulli)(const View& out, double p, Generator& generator);
  void (*bernoulli_each)(const View& out, const View& p, Generator& generator);

  // mask = bernoulli(keep), out = x * (mask ? scale : 0): dropout in one pass, on the stream of `bernoulli`. All dense
  // with the same strides; out and x of one floating type, mask bool.
  void (*dropout)(const View& out, const View& mask, const View& x, double keep, double scale, Generator& generator);
  // Its gradient: out = dy * (mask ? scale : 0), dense with the same strides.
  void (*dropout_grad)(const View& out, const View& dy, const View& mask, double scale);

  // 0 .. n-1 in random order into a vector of n elements, any stride, for every type but bool and the complex ones.
  void (*permutation)(const View& out, Generator& generator);

  // Indices drawn with replacement: out (rows, samples) int64, weights (rows, categories) of a floating type; both of
  // two dimensions, any strides. Weights are checked: finite, not negative, of positive sum.
  void (*multinomial)(const View& out, const View& weights, Generator& generator);

  // Contiguous, of equal sizes and one floating type. Values are checked (a Poisson rate must not be negative).
  void (*poisson)(const View& out, const View& rate, Generator& generator);
  void (*binomial)(const View& out, const View& count, const View& probability, Generator& generator);
  // Gamma(alpha, 1), at least the smallest normal number. `out` may be float64 whatever the type of alpha, and then
  // all is computed in double.
  void (*gamma)(const View& out, const View& alpha, Generator& generator);
  // How samples move with their parameters, for reparametrised gradients. Contiguous, of one type, float32 or float64.
  void (*gamma_grad)(const View& out, const View& alpha, const View& sample);
  void (*dirichlet_grad)(const View& out, const View& sample, const View& alpha, const View& total);
};

}  // namespace rl
