// Layers of recurrent networks on AVX-512 registers.
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/parallel.h"
#include "cpu/gemm/gemm.h"
#include "cpu/loops/scratch.h"
#include "cpu/rnn/rnn.h"
#include "cpu/simd/math.h"

#if defined(__x86_64__) && defined(__AVX2__)
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define RL_RNN_BYTES 64
#include "cpu/rnn/layers.h"
namespace rl::RL_ISA {
const RnnLayerKernels* rnn_layers_avx512() {
  static const RnnLayerKernels kernels = {workspace_of, layer_any, layer_grad_any, weight_grad_any};
  return cpu::gemm_available() ? &kernels : nullptr;
}
}  // namespace rl::RL_ISA
#pragma GCC pop_options
#else
namespace rl::RL_ISA {
const RnnLayerKernels* rnn_layers_avx512() { return nullptr; }
}  // namespace rl::RL_ISA
#endif
