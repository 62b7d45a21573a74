// Sums, means and products of complex numbers; their norms are taken as those of real ones.
#include "cpu/isa.h"
#include "cpu/reduce_real.h"

namespace rl::RL_ISA {

// A block as twice as many real numbers: lanes of a vector keep their parity.
template <class T>
std::complex<T> reduce_block(const SumOp<std::complex<T>>&, const std::complex<T>* from, int64_t count) {
  constexpr int L = kLanes<T>;
  const T* p = reinterpret_cast<const T*>(from);
  const int64_t n = 2 * count;
  Vec<T> a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a += load_vec(p + i), b += load_vec(p + i + L), c += load_vec(p + i + 2 * L), d += load_vec(p + i + 3 * L);
  }
  for (; i + L <= n; i += L) a += load_vec(p + i);
  alignas(32) T lane[L];
  store_vec(lane, (a + b) + (c + d));
  for (int half = L / 2; half > 1; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] += lane[j + half];
  std::complex<T> sum(lane[0], lane[1]);
  for (; i < n; i += 2) sum += from[i / 2];
  return sum;
}

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
