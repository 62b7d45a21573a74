// The table of reductions, and the choice of a type's group.
#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/reduce_ops.h"
#include "cpu/reduce_table.h"

namespace rl::RL_ISA {
namespace {

void reduce(Reduce op, const View& out, const View& in, double p) {
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
