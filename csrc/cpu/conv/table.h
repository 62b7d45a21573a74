// The table of convolution algorithms.
#pragma once
#include "backend/conv.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

// The rows of all passes, pass after pass, in order of priority.
struct ConvTable {
  const ConvAlgorithm* begin;
  const ConvAlgorithm* end;
};
ConvTable conv_table();
ConvTable conv_table(ConvPass pass);

}  // namespace rl::RL_ISA
