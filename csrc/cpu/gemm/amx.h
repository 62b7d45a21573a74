// GEMMs on AMX tiles: of bfloat16, or of floats with fewer bits than they have.
#pragma once
#include "base/half.h"
#include "cpu/gemm/gemm.h"

namespace rl::cpu {

// Whether there is AMX, and it is the faster algorithm: smaller ones are packed for longer than they are multiplied.
inline bool amx_profitable(int64_t m, int64_t n, int64_t k) { return m >= 32 && n >= 32 && k >= 32 && has_amx(); }

}  // namespace rl::cpu

namespace rl::amx {
void tile_gemm(const cpu::Gemm<float>& g, int parts);  // 1 or 2 bf16 parts of each element (amx_tiles.h), 8 or 16 bits
void tile_gemm(const cpu::Gemm<float, bfloat16>& g);
}  // namespace rl::amx
