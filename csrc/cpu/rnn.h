// The kernels of a layer, once per register width.
#pragma once
#include "backend/rnn.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

struct RnnLayerKernels {
  int64_t (*workspace)(const RnnShape& shape, DType dtype);
  void (*layer)(const RnnShape& shape, const RnnForward& f);
  void (*layer_grad)(const RnnShape& shape, const RnnBackward& b);
};
const RnnLayerKernels* wide_rnn_layers();  // null where the processor has no 512-bit registers

}  // namespace rl::RL_ISA
