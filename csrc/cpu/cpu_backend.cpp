// The CPU's backend: kernels of the best instruction set that this machine has.
#include <cstring>

#include "backend/backend.h"
#include "base/allocator.h"
#include "cpu/features.h"

namespace rl {
namespace {

// The host's memory is the CPU's: of one device, whatever its index.
void* allocate_host(Device, int64_t bytes) { return allocate(static_cast<size_t>(bytes)); }
void release_host(Device, void* memory, int64_t bytes) { deallocate(memory, static_cast<size_t>(bytes)); }
void copy_host(Device, void* to, const void* from, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }
const MemoryKernels memory_kernels = {allocate_host, release_host, copy_host, copy_host, copy_host};

}  // namespace

#define RL_TABLES(isa)                                                                                                 \
  namespace isa {                                                                                                      \
  extern const PointwiseKernels pointwise_kernels;                                                                     \
  extern const CopyKernels copy_kernels;                                                                               \
  extern const IndexKernels index_kernels;                                                                             \
  extern const ReduceKernels reduce_kernels;                                                                           \
  extern const SortKernels sort_kernels;                                                                               \
  extern const MatmulKernels matmul_kernels;                                                                           \
  extern const FftKernels fft_kernels;                                                                                 \
  extern const RandomKernels random_kernels;                                                                           \
  extern const ConvKernels conv_kernels;                                                                               \
  extern const PoolKernels pool_kernels;                                                                               \
  extern const NormKernels norm_kernels;                                                                               \
  extern const OptimKernels optim_kernels;                                                                             \
  extern const LossKernels loss_kernels;                                                                               \
  extern const RnnKernels rnn_kernels;                                                                                 \
  extern const AttentionKernels attention_kernels;                                                                     \
  extern const ResampleKernels resample_kernels;                                                                       \
  extern const DistanceKernels distance_kernels;                                                                       \
  static const BackendTables tables = {&memory_kernels,    &pointwise_kernels, &copy_kernels,    &index_kernels,       \
                                       &reduce_kernels,    &sort_kernels,      &matmul_kernels,  &cpu::linalg_kernels, \
                                       &fft_kernels,       &random_kernels,    &conv_kernels,    &pool_kernels,        \
                                       &norm_kernels,      &optim_kernels,     &loss_kernels,    &rnn_kernels,         \
                                       &attention_kernels, &resample_kernels,  &distance_kernels};                     \
  }
#ifdef RL_BASELINE
RL_TABLES(baseline)
#endif
#ifdef __x86_64__
RL_TABLES(avx2)
#endif

namespace {

// Nothing for a processor that no kernels were built for.
bool register_cpu() {
  static Backend chosen;
  auto choose = [](const BackendTables& tables, const char* name) {
    chosen = {tables, name, true};
    register_backend(DeviceType::Cpu, &chosen);
    return true;
  };
#ifdef __x86_64__
  if (cpu::has_amx()) return choose(avx2::tables, "amx");
  if (cpu::has_bf16()) return choose(avx2::tables, "bf16");
  if (cpu::has_avx512()) return choose(avx2::tables, "avx512");
  if (cpu::instructions() == cpu::Instructions::Avx2) return choose(avx2::tables, "avx2");
#endif
#ifdef RL_BASELINE
  return choose(baseline::tables, "baseline");
#else
  return false;
#endif
}
const bool g_registered = register_cpu();

}  // namespace
}  // namespace rl
