// Cross entropy of scores and classes, in one pass each way.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// Scores x are contiguous (batch, classes, inner) floats; targets int64, losses, `lse` (log of the sum of e^x) and `factor`
// of x's computing type are contiguous (batch, inner).
struct LossShape {
  int64_t batch, classes, inner;
};

struct LossKernels {
  // loss = weight[t] * (lse - x[t]), and 0 where t is `ignore`; used = the sum of the weights. Other classes than
  // 0 ... classes - 1 are an IndexError. weight (classes, of the computing type) may be null.
  void (*cross_entropy)(const LossShape& s, const View& loss, double* used, const View& x, const View& lse, const View& target,
                        const View* weight, int64_t ignore);
  // dx = factor * (e^(x - lse) - [the class is t]); factor is 0 where t is ignored.
  void (*cross_entropy_grad)(const LossShape& s, const View& dx, const View& x, const View& lse, const View& target, const View& factor);
};

}  // namespace rl
