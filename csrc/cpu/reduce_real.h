// Reductions of one floating type, shared by reduce_float.cpp and reduce_half.cpp.
#pragma once
#include "cpu/reduce_ops.h"

namespace rl::RL_ISA {

template <class T> bool reduce_real(Reduce what, const View& out, const View& in, double p) {
  using C = compute_t<T>;
  auto run = [&](const auto& op) {
    using A = typename std::remove_cvref_t<decltype(op)>::Acc;
    if constexpr (__is_same(A, uint8_t))
      reduce_into<std::remove_cvref_t<decltype(op)>, T>(op, out, in, store_bool(out.dtype));
    else if constexpr (__is_same(A, int64_t))
      reduce_into<std::remove_cvref_t<decltype(op)>, T>(op, out, in, store_int64(out.dtype));
    else reduce_into<std::remove_cvref_t<decltype(op)>, T>(op, out, in, store_real<A>(out.dtype));
    return true;
  };
  switch (what) {
    case Reduce::Sum: return run(SumOp<C>{});
    case Reduce::NanSum: return run(NanSumOp<C>{});
    case Reduce::Mean: return run(MeanOp<C>(reduced_count(out, in)));
    case Reduce::Prod: return run(ProdOp<C>{});
    case Reduce::Min: return run(MinOp<C>{});
    case Reduce::Max: return run(MaxOp<C>{});
    case Reduce::Any: return run(AnyOp{});
    case Reduce::All: return run(AllOp{});
    case Reduce::CountNonzero: return run(CountOp{});
    case Reduce::Norm0: return run(Norm0Op<C>{});
    case Reduce::Norm1: return run(Norm1Op<C, true>{});
    case Reduce::Norm2: return run(Norm2Op<C, true>{});
    case Reduce::NormInf: return run(NormInfOp<C, true>{});
    case Reduce::NormNegInf: return run(NormNegInfOp<C, true>{});
    case Reduce::NormP: return run(NormPOp<C>(p));
    case Reduce::SumSquares: return run(SquaresOp<C, true>{});
    default: return false;
  }
}

}  // namespace rl::RL_ISA
