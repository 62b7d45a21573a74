// The table of reductions, and the choice of a type's group.
#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/loops/nest.h"
#include "cpu/reduce/kernels.h"
#include "cpu/reduce/ops.h"

namespace rl::RL_ISA {
namespace {

void reduce_elements(Reduce op, const View& out, const View& in, double p) {
  bool done = false, norm = op >= Reduce::Norm0 && op <= Reduce::SumSquares;
  if (op == Reduce::Any || op == Reduce::All || op == Reduce::CountNonzero) return void(reduce_truth(op, out, in));
  switch (in.dtype) {
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16: done = reduce_float(op, out, in, p); break;
    case DType::Float64: done = reduce_double(op, out, in, p); break;
    case DType::Complex64: done = norm ? reduce_float(op, out, in, p) : reduce_complex(op, out, in); break;
    case DType::Complex128: done = norm ? reduce_double(op, out, in, p) : reduce_complex(op, out, in); break;
    case DType::Complex32: break;
    default: done = reduce_int(op, out, in); break;
  }
  CHECK(done, NotImplemented, "this reduction is not defined for ", info(in.dtype).name);
}

void multiply(const View& out, int64_t times) {
  visit_compute(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_half_v<T> && !__is_same(T, bool)) {
      T factor;
      if constexpr (is_complex_v<T>) factor = T(static_cast<typename T::value_type>(times));
      else factor = static_cast<T>(times);
      const Nest<1> nest({&out});
      nest.for_runs(0, nest.total, [&](char* const* at, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          T& x = *reinterpret_cast<T*>(at[0] + i * nest.strides[0][0]);
          x = wrap_mul(x, factor);
        }
      });
    }
  });
}

// Dimensions along which all elements are one and the same, as in the gradient of a sum: it is read once, and a sum
// multiplied by their number.
void reduce(Reduce op, const View& out, const View& in, double p) {
  int64_t sizes[kMaxDims], times = 1;
  const bool sum = op == Reduce::Sum && out.dtype != DType::Float16 && out.dtype != DType::BFloat16;
  if (sum || op == Reduce::Mean || op == Reduce::Min || op == Reduce::Max || op == Reduce::Any || op == Reduce::All) {
    for (int d = 0; d < in.ndim; ++d) {
      sizes[d] = in.sizes[d];
      if (in.strides[d] == 0 && in.sizes[d] > 1 && out.sizes[d] == 1) times *= in.sizes[d], sizes[d] = 1;
    }
  }
  if (times == 1) return reduce_elements(op, out, in, p);
  View once = in;
  once.sizes = sizes;
  reduce_elements(op, out, once, p);
  if (sum) multiply(out, times);
}

// Both extremes of all integers in one pass.
template <class T> void both_extremes(const T* x, int64_t n, T* least, T* most) {
  constexpr int64_t kPiece = 1 << 16;
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  std::vector<T> low(static_cast<size_t>(pieces)), high(static_cast<size_t>(pieces));
  parallel_for(0, pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      const int64_t end = std::min(n, (piece + 1) * kPiece);
      T a = x[piece * kPiece], b = a;
      for (int64_t i = piece * kPiece; i < end; ++i) {
        a = x[i] < a ? x[i] : a;
        b = x[i] > b ? x[i] : b;
      }
      low[static_cast<size_t>(piece)] = a, high[static_cast<size_t>(piece)] = b;
    }
  });
  *least = *std::min_element(low.begin(), low.end());
  *most = *std::max_element(high.begin(), high.end());
}

void aminmax(const View& smallest, const View& largest, const View& in) {
  if (smallest.numel() == 1 && in.contiguous() && in.numel()) {
    auto run = [&](auto tag) {
      using T = typename decltype(tag)::type;
      both_extremes(in.as<T>(), in.numel(), smallest.as<T>(), largest.as<T>());
    };
    switch (in.dtype) {
      case DType::UInt8: return run(type_tag<uint8_t>{});
      case DType::Int8: return run(type_tag<int8_t>{});
      case DType::Int16: return run(type_tag<int16_t>{});
      case DType::Int32: return run(type_tag<int32_t>{});
      case DType::Int64: return run(type_tag<int64_t>{});
      default: break;
    }
  }
  reduce(Reduce::Min, smallest, in, 0);
  reduce(Reduce::Max, largest, in, 0);
}

}  // namespace

extern const ReduceKernels reduce_kernels;
const ReduceKernels reduce_kernels{
    .reduce = reduce,
    .variance = variance,
    .extremum = extremum,
    .aminmax = aminmax,
    .select = select,
    .softmax = softmax,
    .softmax_grad = softmax_grad,
    .logsumexp = logsumexp,
    .scan = scan,
    .scan_extremum = scan_extremum,
    .histogram = histogram,
    .bincount = bincount,
};

}  // namespace rl::RL_ISA
