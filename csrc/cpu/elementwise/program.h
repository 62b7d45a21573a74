#pragma once
#include "backend/pointwise.h"

namespace rl::cpu {

void run_program(Span<ProgramStep> steps, Span<View> operands, Span<int> register_bytes, int cost);

}  // namespace rl::cpu
