// GEMMs on AMX tiles: of bfloat16, or of floats with fewer bits than they have.
#pragma once
#include "base/half.h"
#include "cpu/gemm/gemm.h"

namespace rl::cpu {

bool amx_profitable(int64_t m, int64_t n, int64_t k);  // whether there is AMX, and it is the faster algorithm
void amx_gemm(const Gemm<float>& g, int parts);        // 1 or 2 bf16 parts of each element (amx_tiles.h), 8 or 16 bits
void amx_gemm(const Gemm<float, bfloat16>& g);

}  // namespace rl::cpu
