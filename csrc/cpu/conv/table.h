// The table of convolution algorithms.
#pragma once
#include "backend/conv.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

// The rows of all passes, pass after pass, in order of priority; those of one pass.
ConvTable conv_table();
ConvTable conv_table(ConvPass pass);

}  // namespace rl::RL_ISA
