// The kernels of a layer, once per register width and for pairs of bfloat16: rnn.cpp, rnn_wide.cpp and rnn_pairs.cpp
// include rnn_layers.h, which includes
//   rnn_lanes.h         registers of units and the cell's functions
//   rnn_words.h         numbers as steps of a sum, products of a few rows with packed weights
//   rnn_walk.h          the steps, and how threads share them
//   rnn_layer.h         a layer; rnn_layer_grad.h its gradient
//   rnn_seven.h         seven products for eight; rnn_seven_steps.h in the steps, rnn_seven_weights.h for the weights
#pragma once
#include "backend/rnn.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

struct RnnLayerKernels {
  int64_t (*workspace)(const RnnShape& shape, DType dtype);
  void (*layer)(const RnnShape& shape, const RnnForward& f);
  void (*layer_grad)(const RnnShape& shape, const RnnBackward& b);
  bool (*weight_grad)(const View& dw, const View& deltas, const View& states, int64_t gate, const RnnGroupSums* sums);
};
const RnnLayerKernels* wide_rnn_layers();  // null where the processor has no 512-bit registers
const RnnLayerKernels* pair_rnn_layers();  // of bfloat16; null where it does not multiply pairs of them

}  // namespace rl::RL_ISA
