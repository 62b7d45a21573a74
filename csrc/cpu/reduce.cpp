// The table of reductions, and the choice of a type's group.
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

void aminmax(const View& smallest, const View& largest, const View& in) {
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
