// Sums, means and products of complex numbers; their norms are taken as those of real ones.
#include "cpu/isa.h"
#include "cpu/reduce_real.h"

namespace rl::RL_ISA {
namespace {

template <class T> bool reduce_one(Reduce what, const View& out, const View& in) {
  auto n_inputs = static_cast<typename T::value_type>(reduced_count(out, in));
  auto finish = [&](T* acc, int64_t n, char* to, int64_t stride) {
    if (what == Reduce::Mean)
      for (int64_t j = 0; j < n; ++j) acc[j] /= n_inputs;
    store_as<T, T>(acc, n, to, stride);
  };
  Source<T> source{in.as<char>(), sizeof(T), nullptr, nullptr};
  switch (what) {
    case Reduce::Sum:
    case Reduce::Mean: return reduce_into(SumOp<T>{}, out, in, source, finish), true;
    case Reduce::Prod: return reduce_into(ProdOp<T>{}, out, in, source, finish), true;
    default: return false;
  }
}

}  // namespace

bool reduce_complex(Reduce op, const View& out, const View& in) {
  return in.dtype == DType::Complex64 ? reduce_one<std::complex<float>>(op, out, in)
                                      : reduce_one<std::complex<double>>(op, out, in);
}

}  // namespace rl::RL_ISA
