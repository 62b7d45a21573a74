// Reductions that compute in float or in double, shared by float.cpp and double.cpp.
#pragma once
#include "cpu/reduce/ops.h"

namespace rl::RL_ISA {

// The last step of a reduction of real numbers.
template <class C> void finish_real(Reduce what, double count, double p, C* acc, int64_t n) {
  switch (what) {
    case Reduce::Mean:
      for (int64_t j = 0; j < n; ++j) acc[j] /= static_cast<C>(count);
      break;
    case Reduce::Norm2:
      for (int64_t j = 0; j < n; ++j) acc[j] = std::sqrt(acc[j]);
      break;
    case Reduce::NormP:
      for (int64_t j = 0; j < n; ++j) acc[j] = std::pow(acc[j], static_cast<C>(1 / p));
      break;
    default: break;
  }
}

inline Map map_of(Reduce what) {
  switch (what) {
    case Reduce::NanSum: return Map::NanToZero;
    case Reduce::Norm0: return Map::Nonzero;
    case Reduce::Norm1:
    case Reduce::NormInf:
    case Reduce::NormNegInf: return Map::Abs;
    case Reduce::NormP: return Map::Power;
    default: return Map::None;
  }
}

// source_of(map) gives the elements; store(acc, n, out, stride) writes results in out's type.
template <class C, class SourceOf, class StoreAs> bool reduce_real(Reduce what, const View& out, const View& in,
                                                                   double p, const SourceOf& source_of,
                                                                   const StoreAs& store) {
  double count = what == Reduce::Mean ? reduced_count(out, in) : 1;
  auto finish = [&](C* acc, int64_t n, char* to, int64_t stride) {
    finish_real(what, count, p, acc, n);
    store(acc, n, to, stride);
  };
  switch (what) {
    case Reduce::Norm2:
    case Reduce::SumSquares:
      if (is_complex(in.dtype)) return reduce_into(SumOp<C>{}, out, in, source_of(Map::Square), finish), true;
      return reduce_into(SquaresOp<C>{}, out, in, source_of(Map::None), finish), true;
    case Reduce::Prod: return reduce_into(ProdOp<C>{}, out, in, source_of(Map::None), finish), true;
    case Reduce::Min:
    case Reduce::NormNegInf: return reduce_into(MinOp<C>{}, out, in, source_of(map_of(what)), finish), true;
    case Reduce::Max:
    case Reduce::NormInf: return reduce_into(MaxOp<C>{}, out, in, source_of(map_of(what)), finish), true;
    case Reduce::Sum:
    case Reduce::NanSum:
    case Reduce::Mean:
    case Reduce::Norm0:
    case Reduce::Norm1:
    case Reduce::NormP: return reduce_into(SumOp<C>{}, out, in, source_of(map_of(what)), finish), true;
    default: return false;
  }
}

template <class A, class O> void store_as(const A* acc, int64_t n, char* out, int64_t stride) {
  O* o = reinterpret_cast<O*>(out);
  for (int64_t j = 0; j < n; ++j) o[j * stride] = static_cast<O>(acc[j]);
}

}  // namespace rl::RL_ISA
