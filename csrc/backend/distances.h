// Distances between all rows of two matrices. Apart from Backend, so that few files depend on it.
#pragma once
#include "backend/view.h"
#include "base/device.h"

namespace rl {

struct DistanceKernels {
  // The p-norms of a's rows (batch, P, m) minus b's (batch, R, m): (batch, P, R). `upper`: batch = 1, P = R, and of
  // each row only what is behind the diagonal, all in one row. Contiguous, float or double, p >= 0.
  void (*distances)(const View& out, const View& a, const View& b, double p, bool upper);
};
// Those of a device, as backend() of backend.h.
const DistanceKernels& distance_kernels(Device device);

}  // namespace rl
