// Sums, means and products of complex numbers; their norms are taken as those of real ones.
#include "cpu/isa.h"
#include "cpu/reduce/real.h"

namespace rl::RL_ISA {

// Blocks run as twice as many real numbers, n of them: lanes of a vector keep their parity. The order is that of
// reduce_block in run.h.
template <class T> static Vec<T> merged_pairs(const T* p, int64_t n, const auto& merge, const auto& last) {
  constexpr int L = kLanes<T>, K = 8;
  Vec<T> r = load_vec(p);
  int64_t i = L;
  if (n >= K * L) {
    Vec<T> side[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) side[k] = load_vec(p + k * L);
    for (i = K * L; i + K * L <= n; i += K * L)
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k) side[k] = merge(side[k], load_vec(p + i + k * L));
#pragma GCC unroll 8
    for (int gap = 1; gap < K; gap *= 2)
#pragma GCC unroll 8
      for (int k = 0; k < K; k += 2 * gap) side[k] = merge(side[k], side[k + gap]);
    r = side[0];
  }
  for (; i + L <= n; i += L) r = merge(r, load_vec(p + i));
  if (i < n) r = merge(r, last(load_vec(p + n - L), n - i));
  return r;
}
template <class Op, class T> static std::complex<T> merged_lanes(const Op& op, const Vec<T>& lanes) {
  std::complex<T> lane[kLanes<T> / 2];
  __builtin_memcpy(static_cast<void*>(lane), &lanes, sizeof lanes);
  for (int half = kLanes<T> / 4; half; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] = op.merge(lane[j], lane[j + half]);
  return lane[0];
}
template <class Op, class T> static std::complex<T> merged_few(const Op& op, const std::complex<T>* p, int64_t n) {
  std::complex<T> r = p[0];
  for (int64_t i = 1; i < n; ++i) r = op.merge(r, p[i]);
  return r;
}

template <class T>
std::complex<T> reduce_block(const SumOp<std::complex<T>>& op, const std::complex<T>* from, int64_t count) {
  if (2 * count < kLanes<T>) return merged_few(op, from, count);
  return merged_lanes<SumOp<std::complex<T>>, T>(
      op, merged_pairs(
              reinterpret_cast<const T*>(from), 2 * count, [](Vec<T> a, Vec<T> b) { return a + b; },
              [](Vec<T> x, int64_t n) { return last_lanes(SumOp<T>{}, x, n); }));
}

// Pairs (re, im) side by side, multiplied.
template <class T> [[gnu::always_inline]] inline Vec<T> times_pairs(const Vec<T>& x, const Vec<T>& y) {
  Vec<T> sign;
  for (int j = 0; j < kLanes<T>; ++j) sign[j] = j & 1 ? T(1) : T(-1);
  const Vec<T> re = simd::permute<[](int lane) { return lane & ~1; }>(x);
  const Vec<T> im = simd::permute<[](int lane) { return lane | 1; }>(x);
  return re * y + sign * (im * simd::permute<[](int lane) { return lane ^ 1; }>(y));
}
template <class T>
std::complex<T> reduce_block(const ProdOp<std::complex<T>>& op, const std::complex<T>* from, int64_t count) {
  if (2 * count < kLanes<T>) return merged_few(op, from, count);
  auto ones_before = [](Vec<T> x, int64_t n) {  // the last n lanes of x
    for (int j = 0; j < kLanes<T> - n; ++j) x[j] = j & 1 ? T(0) : T(1);
    return x;
  };
  return merged_lanes<ProdOp<std::complex<T>>, T>(
      op, merged_pairs(
              reinterpret_cast<const T*>(from), 2 * count,
              [](const Vec<T>& a, const Vec<T>& b) { return times_pairs<T>(a, b); }, ones_before));
}

// Rows of n elements, as many at once as a register has pairs where they are short, each in the order of reduce_block;
// false where they are longer or shorter than that suits.
template <class T> bool short_pair_rows(const SumOp<std::complex<T>>& op, const std::complex<T>* from,
                                        int64_t row_stride, int64_t rows, int64_t n, std::complex<T>* acc) {
  constexpr int L = kLanes<T>, R = L / 2;
  constexpr int64_t kLong = 64;
  if (n < R || n >= kLong) return false;
  int64_t j = 0;
  for (; n < 8 * R && j + R <= rows; j += R) {
    Vec<T> sums[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const T* p = reinterpret_cast<const T*>(from + (j + r) * row_stride);
      sums[r] = load_vec(p);
      int64_t i = L;
      for (; i + L <= 2 * n; i += L) sums[r] += load_vec(p + i);
      if (i < 2 * n) sums[r] += last_lanes(SumOp<T>{}, load_vec(p + 2 * n - L), 2 * n - i);
    }
    store_vec(reinterpret_cast<T*>(acc + j), merge_lanes<L / 2, SumOp<T>, T, 2>(SumOp<T>{}, sums));
  }
  for (; j < rows; ++j) acc[j] = reduce_block(op, from + j * row_stride, n);
  return true;
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
