// A backend is a table of kernels, one group per family. Ops ask for the backend of a device and call it; they know no
// device themselves. `cpu` computes, `meta` does nothing.
#pragma once
#include "backend/attention.h"
#include "backend/conv.h"
#include "backend/copy.h"
#include "backend/fft.h"
#include "backend/index.h"
#include "backend/linalg.h"
#include "backend/loss.h"
#include "backend/matmul.h"
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

struct Backend {
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
};

// The backend of a device; an error naming the device if it has none.
const Backend& backend(Device device);
extern const Backend* g_cpu;
const char* cpu_isa();  // "avx512", "avx2" or "baseline": what was chosen at import

}  // namespace rl
