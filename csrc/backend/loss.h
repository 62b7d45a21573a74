// Cross entropy of scores and classes, in one pass forward and one backward.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// Scores x are contiguous (batch, classes, inner) floats; targets int64, losses and `factor` of x's computing type
// (batch, inner). `lse` is log sum e^x as two summands, (2, batch, inner): the maxima m and l = log sum e^(x - m).
struct LossShape {
  int64_t batch, classes, inner;
};

// Connectionist temporal classification: log probabilities (steps, batch, classes), contiguous floats or doubles.
// Sample n has input_length[n] steps and the target labels [start[n], start[n] + target_length[n]). alpha is (batch,
// steps, 2 * longest + 1).
struct CtcShape {
  int64_t steps, batch, classes, blank, longest;
  const int64_t *labels, *start, *input_length, *target_length;
};

struct LossKernels {
  // Writes lse; loss = weight[t] (l - (x[t] - m)), 0 where t is `ignore`; used = the sum of the weights. Without lse's
  // data x are log probabilities, m = l = 0. Other t than 0 ... classes - 1: IndexError. weight (classes) may be null.
  void (*cross_entropy)(const LossShape& s, const View& loss, double* used, const View& x, const View& lse,
                        const View& target, const View* weight, int64_t ignore);
  // dx = factor * (e^(x - m - l) - [the class is t]); factor is 0 where t is ignored.
  void (*cross_entropy_grad)(const LossShape& s, const View& dx, const View& x, const View& lse, const View& target,
                             const View& factor);
  // loss (batch) = -log of the probability of all alignments; alpha is kept for the gradient.
  void (*ctc)(const CtcShape& s, const View& loss, const View& alpha, const View& log_probs);
  // The gradient by the scores before log_softmax, times factor (batch); 0 for samples of infinite loss if
  // `zero_infinity`.
  void (*ctc_grad)(const CtcShape& s, bool zero_infinity, const View& grad, const View& factor, const View& loss,
                   const View& alpha, const View& log_probs);
};

}  // namespace rl
