// Reductions of complex numbers.
#include "cpu/isa.h"

#include "cpu/reduce_ops.h"

namespace rl::RL_ISA {
namespace {

template <class T> bool reduce_one(Reduce what, const View& out, const View& in, double p) {
  using R = typename T::value_type;
  auto complex = [&](const auto& op) {
    reduce_into<std::remove_cvref_t<decltype(op)>, T>(op, out, in, store_results<T, T>);
    return true;
  };
  auto real = [&](const auto& op) {
    reduce_into<std::remove_cvref_t<decltype(op)>, T>(op, out, in, store_real<R>(out.dtype));
    return true;
  };
  switch (what) {
    case Reduce::Sum: return complex(SumOp<T>{});
    case Reduce::Mean: return complex(MeanOp<T>(reduced_count(out, in)));
    case Reduce::Prod: return complex(ProdOp<T>{});
    case Reduce::Any: reduce_into<AnyOp, T>({}, out, in, store_bool(out.dtype)); return true;
    case Reduce::All: reduce_into<AllOp, T>({}, out, in, store_bool(out.dtype)); return true;
    case Reduce::CountNonzero: reduce_into<CountOp, T>({}, out, in, store_int64(out.dtype)); return true;
    case Reduce::Norm0: return real(Norm0Op<R>{});
    case Reduce::Norm1: return real(Norm1Op<R, false>{});
    case Reduce::Norm2: return real(Norm2Op<R, false>{});
    case Reduce::NormInf: return real(NormInfOp<R, false>{});
    case Reduce::NormNegInf: return real(NormNegInfOp<R, false>{});
    case Reduce::NormP: return real(NormPOp<R>(p));
    case Reduce::SumSquares: return real(SquaresOp<R, false>{});
    default: return false;
  }
}

}  // namespace

bool reduce_complex(Reduce op, const View& out, const View& in, double p) {
  return in.dtype == DType::Complex64 ? reduce_one<std::complex<float>>(op, out, in, p)
                                      : reduce_one<std::complex<double>>(op, out, in, p);
}

}  // namespace rl::RL_ISA
