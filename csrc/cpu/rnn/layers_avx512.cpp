// Layers of recurrent networks on AVX-512 registers.
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/parallel.h"
#include "cpu/gemm/gemm.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/rnn/rnn.h"
#include "cpu/simd/math.h"

#define RL_RNN_BYTES 64
#include "cpu/rnn/layers.h"

namespace rl::RL_ISA {
const RnnLayerKernels rnn_layers = {workspace_of, by_strassen_any, layer_any, layer_grad_any, weight_grad_any};
}  // namespace rl::RL_ISA
