// The kernels of a layer, once per register width and for pairs of bfloat16: rnn.cpp, layers_avx512.cpp and
// layers_bf16.cpp include layers.h, which includes
//   lanes.h         registers of units and the cell's functions
//   operands.h         operands as dwords (bf16 pairs), small-M GEMMs with packed weights
//   steps.h          the steps, and how threads share them
//   layer.h         a layer; layer_backward.h its gradient
//   strassen.h         Strassen-Winograd, seven multiplications for eight; strassen_steps.h in the steps,
//   strassen_wgrad.h for the weights
#pragma once
#include "backend/rnn.h"

namespace rl {
namespace cpu {

struct RnnLayerKernels {
  int64_t (*workspace)(const RnnShape& shape, DType dtype);
  bool (*by_strassen)(const RnnShape& shape, DType dtype);
  void (*layer)(const RnnShape& shape, const RnnForward& f);
  void (*layer_grad)(const RnnShape& shape, const RnnBackward& b);
  bool (*weight_grad)(const View& dw, const View& deltas, const View& states, int64_t gate, const RnnGroupSums* sums);
};

}  // namespace cpu
namespace avx512 {
extern const cpu::RnnLayerKernels rnn_layers;
}
namespace bf16 {
extern const cpu::RnnLayerKernels rnn_layers;  // of bfloat16
}
}  // namespace rl
