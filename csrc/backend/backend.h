// A backend is a table of kernels, one group per family. Ops ask for the backend of a device and call it; they know no
// device themselves. csrc/cpu registers the CPU's, which computes; `meta`, whose kernels do nothing, is meta.cpp.
// docs/adding_a_backend.md says what a new one has to bring.
#pragma once
#include "backend/attention.h"
#include "backend/conv.h"
#include "backend/copy.h"
#include "backend/distances.h"
#include "backend/fft.h"
#include "backend/index.h"
#include "backend/linalg.h"
#include "backend/loss.h"
#include "backend/matmul.h"
#include "backend/memory.h"
#include "backend/norm.h"
#include "backend/optim.h"
#include "backend/pointwise.h"
#include "backend/pool.h"
#include "backend/random.h"
#include "backend/reduce.h"
#include "backend/resample.h"
#include "backend/rnn.h"
#include "backend/sort.h"
#include "base/device.h"

namespace rl {

// Pointers to tables of function pointers, and nothing else: tables.h makes all of them by one rule.
struct BackendTables {
  const MemoryKernels* memory;
  const PointwiseKernels* pointwise;
  const CopyKernels* copy;
  const IndexKernels* index;
  const ReduceKernels* reduce;
  const SortKernels* sort;
  const MatmulKernels* matmul;
  const LinalgKernels* linalg;
  const FftKernels* fft;
  const RandomKernels* random;
  const ConvKernels* conv;
  const PoolKernels* pool;
  const NormKernels* norm;
  const OptimKernels* optim;
  const LossKernels* loss;
  const RnnKernels* rnn;
  const AttentionKernels* attention;
  const ResampleKernels* resample;
  const DistanceKernels* distances;
};

struct Backend : BackendTables {
  const char* name;  // what it runs on: "avx512", "avx2" or "baseline" for the CPU's
  // Whether ops may call the loops of `pointwise` themselves, as functions of the host, on this backend's memory: that
  // is quicker for a few elements. Else a Loop is a name that means something to the backend alone, and goes to `run`.
  bool host_loops;
};

// The backends by type of device; null where there is none. Written before any tensor is made, or by who holds the GIL
// and runs no kernel.
extern constinit const Backend* g_backends[kDeviceTypes];
// Makes it the backend of these devices and returns the one before, so that a backend that watches another can call it
// and put it back. The backend must live as long as it is registered.
const Backend* register_backend(DeviceType type, const Backend* backend);
[[noreturn, gnu::cold]] void fail_without_backend(Device device);

// The backend of a device; an error naming the device if it has none.
inline const Backend& backend(Device device) {
  const Backend* found = g_backends[static_cast<int>(device.type)];
  if (__builtin_expect(!found, 0)) fail_without_backend(device);
  return *found;
}
inline bool has_backend(Device device) { return g_backends[static_cast<int>(device.type)] != nullptr; }

// Whether two devices are one: "cuda" is "cuda:0".
inline bool same_device(Device a, Device b) {
  return a.type == b.type && (a.index < 0 ? 0 : a.index) == (b.index < 0 ? 0 : b.index);
}

}  // namespace rl
