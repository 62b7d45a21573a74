// Products on the processor's matrix unit: of bfloat16 numbers, or of floats with fewer bits than they have.
#pragma once
#include "base/half.h"
#include "cpu/gemm/gemm.h"

namespace rl::cpu {

bool unit_pays(int64_t m, int64_t n, int64_t k);  // whether there is such a unit, and it is the faster way
void unit_gemm(const Gemm<float>& g, int parts);  // 1 or 2 parts of the numbers (amx_tiles.h), 8 or 16 bits
void unit_gemm(const Gemm<float, bfloat16>& g);

}  // namespace rl::cpu
