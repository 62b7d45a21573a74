#include "cpu/gemm/half_blocked.h"

namespace rl::RL_ISA {

void vector_gemm(const HalfGemm<bfloat16>& g) { run<Floats<bfloat16>>(g); }
void vector_gemm(const HalfGemm<float16>& g) { run<Floats<float16>>(g); }

}  // namespace rl::RL_ISA
