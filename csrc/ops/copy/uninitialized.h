// What new memory holds where programs ask for determinism (use_deterministic_algorithms): NaN, or the largest integer.
#pragma once
#include "tensor/tensor.h"

namespace rl::ops {

extern bool g_fill_uninitialized;
void fill_known(const Tensor& t);

inline Tensor known(Tensor t) {
  if (g_fill_uninitialized) fill_known(t);
  return t;
}

}  // namespace rl::ops
