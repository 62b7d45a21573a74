// Distances between all rows of two matrices.
#pragma once
#include "backend/view.h"

namespace rl {

struct DistanceKernels {
  // The p-norms of a's rows (batch, P, m) minus b's (batch, R, m): (batch, P, R). `upper`: batch = 1, P = R, and of
  // each row only what is behind the diagonal, all in one row. Contiguous, float or double, p >= 0.
  void (*distances)(const View& out, const View& a, const View& b, double p, bool upper);
  // The gradient of a's rows: for each row the sum over b's of dy times the derivative of the distance y,
  // which is 0 where rows are equal. `transposed`: y and dy are (batch, R, P). `upper` as above, b being a. p is 1, 2
  // or inf.
  void (*gradient)(const View& da, const View& a, const View& b, const View& y, const View& dy, double p,
                   bool transposed, bool upper);
};

}  // namespace rl
