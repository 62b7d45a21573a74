// The CPU's backend: kernels of the best instruction set that this machine has.

#include "backend/backend.h"
#include "backend/distances.h"
#include "cpu/features.h"

namespace rl {

#define RL_TABLES(isa)                                                                                             \
  namespace isa {                                                                                                  \
  extern const PointwiseKernels pointwise_kernels;                                                                 \
  extern const CopyKernels copy_kernels;                                                                           \
  extern const IndexKernels index_kernels;                                                                         \
  extern const ReduceKernels reduce_kernels;                                                                       \
  extern const SortKernels sort_kernels;                                                                           \
  extern const MatmulKernels matmul_kernels;                                                                       \
  extern const FftKernels fft_kernels;                                                                             \
  extern const RandomKernels random_kernels;                                                                       \
  extern const ConvKernels conv_kernels;                                                                           \
  extern const PoolKernels pool_kernels;                                                                           \
  extern const NormKernels norm_kernels;                                                                           \
  extern const OptimKernels optim_kernels;                                                                         \
  extern const LossKernels loss_kernels;                                                                           \
  extern const RnnKernels rnn_kernels;                                                                             \
  extern const AttentionKernels attention_kernels;                                                                 \
  extern const ResampleKernels resample_kernels;                                                                   \
  extern const DistanceKernels distance_kernels;                                                                   \
  static const Backend backend = {                                                                                 \
      &pointwise_kernels,   &copy_kernels, &index_kernels,  &reduce_kernels,    &sort_kernels,    &matmul_kernels, \
      &cpu::linalg_kernels, &fft_kernels,  &random_kernels, &conv_kernels,      &pool_kernels,    &norm_kernels,   \
      &optim_kernels,       &loss_kernels, &rnn_kernels,    &attention_kernels, &resample_kernels};                \
  }
#ifdef RL_BASELINE
RL_TABLES(baseline)
#endif
#ifdef __x86_64__
RL_TABLES(avx2)
#endif

namespace {

struct Choice {
  const char* name;
  const Backend* backend;
  const DistanceKernels* distances;
};

Choice choose() {
#ifdef __x86_64__
  if (cpu::has_amx()) return {"amx", &avx2::backend, &avx2::distance_kernels};
  if (cpu::has_bf16()) return {"bf16", &avx2::backend, &avx2::distance_kernels};
  if (cpu::has_avx512()) return {"avx512", &avx2::backend, &avx2::distance_kernels};
  if (cpu::instructions() == cpu::Instructions::Avx2) return {"avx2", &avx2::backend, &avx2::distance_kernels};
#endif
#ifdef RL_BASELINE
  return {"baseline", &baseline::backend, &baseline::distance_kernels};
#else
  return {"none", nullptr, nullptr};
#endif
}
const Choice g_choice = choose();

}  // namespace

const Backend* g_cpu = g_choice.backend;
const char* cpu_isa() { return g_choice.name; }

const Backend& backend(Device device) {
  CHECK(device.is_cpu() || device.is_meta(), Assertion,
        device.type == DeviceType::Cuda ? "Torch not compiled with CUDA enabled" : "rushlight has no backend for ",
        device.type == DeviceType::Cuda ? "" : device.name(),
        "\n  There is no GPU here. Ask first: device = \"cuda\" if torch.cuda.is_available() else \"cpu\"");
  return *g_cpu;
}
const DistanceKernels& distance_kernels(Device device) {
  backend(device);
  return *g_choice.distances;
}

}  // namespace rl
