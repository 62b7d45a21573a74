// Distances between the rows of two matrices. The second one is turned first, so that the loop over its rows is
// vectors.
#include "backend/distances.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/scratch.h"
#include "cpu/simd_math.h"

namespace rl::RL_ISA {
namespace {

enum class Kind : uint8_t { Count, Sum, Squares, Largest, Powers };  // of the differences: p = 0, 1, 2, inf, others

template <Kind kKind, class T> RL_INLINE T joined(T sum, T size, T p) {
  switch (kKind) {
    case Kind::Count: return sum + (size != T(0) ? T(1) : T(0));
    case Kind::Sum: return sum + size;
    case Kind::Squares: return fma(size, size, sum);
    case Kind::Largest: return (size > sum) | (size != size) ? size : sum;
    default: return sum + exp(p * log(size));
  }
}
template <Kind kKind, class T> RL_INLINE T finished(T sum, T p) {
  if (kKind == Kind::Squares) return sqrt_(sum);
  return kKind == Kind::Powers ? exp(log(sum) / p) : sum;
}

template <class T> inline constexpr int64_t kLanes = 128 / sizeof(T);  // distances that run side by side

// out[0 .. n) = the distances of row a (m numbers) from the first W columns of b, whose rows lie `step` apart.
template <int64_t W, Kind kKind, class T> [[gnu::always_inline]] inline void some_distances(const T* a, const T* b,
                                                                                            int64_t step, int64_t m,
                                                                                            int64_t n, T p, T* out) {
  T sum[W] = {};
  for (int64_t k = 0; k < m; ++k) {
    const T x = a[k], *row = b + k * step;
    for (int64_t l = 0; l < W; ++l) sum[l] = joined<kKind>(sum[l], abs_(x - row[l]), p);
  }
  for (int64_t l = 0; l < W; ++l) sum[l] = finished<kKind>(sum[l], p);
  if (n == W) std::copy(sum, sum + W, out);
  else std::copy(sum, sum + n, out);
}
// out[j] = the distance of row a from column j of b; n of them, and room to read kLanes more.
template <Kind kKind, class T>
[[gnu::flatten]] void distances_from(const T* a, const T* b, int64_t step, int64_t m, int64_t n, T p, T* out) {
  constexpr int64_t W = kLanes<T>;
  int64_t j = 0;
  for (; j + W <= n; j += W) some_distances<W, kKind>(a, b + j, step, m, W, p, out + j);
  const int64_t left = n - j;
  if (left == 0) return;
  if (left > W / 2) some_distances<W, kKind>(a, b + j, step, m, left, p, out + j);
  else if (left > W / 4) some_distances<W / 2, kKind>(a, b + j, step, m, left, p, out + j);
  else some_distances<W / 4, kKind>(a, b + j, step, m, left, p, out + j);
}

template <class T> void distances_of(const View& out, const View& a, const View& b, double p, bool upper) {
  const int64_t batch = a.sizes[0], rows = a.sizes[1], m = a.sizes[2], n = b.sizes[1];
  const int64_t step = (n + kLanes<T> - 1) / kLanes<T> * kLanes<T> + kLanes<T>;
  auto* from = p == 0          ? &distances_from<Kind::Count, T>
               : p == 1        ? &distances_from<Kind::Sum, T>
               : p == 2        ? &distances_from<Kind::Squares, T>
               : p == HUGE_VAL ? &distances_from<Kind::Largest, T>
                               : &distances_from<Kind::Powers, T>;
  const int64_t work = std::max<int64_t>(1, n * (m + 1) / (p == 0 || p == 1 || p == 2 || p == HUGE_VAL ? 8 : 1));
  const int64_t grain = std::max<int64_t>(1, 16384 / work), batches = 16384 / std::max<int64_t>(1, work * rows);
  parallel_for(0, batch, std::max<int64_t>(1, batches), [&](int64_t first, int64_t last) {
    Scratch<T> turned(m * step);
    for (int64_t s = first; s < last; ++s) {
      const T *x = a.as<T>() + s * rows * m, *y = b.as<T>() + s * n * m;
      for (int64_t k = 0; k < m; ++k) {
        T* row = turned.get() + k * step;
        for (int64_t j = 0; j < n; ++j) row[j] = y[j * m + k];
        std::fill(row + n, row + step, T(0));
      }
      parallel_for(0, rows, grain, [&](int64_t i0, int64_t i1) {
        for (int64_t i = i0; i < i1; ++i) {
          // The upper triangle without its diagonal lies row behind row.
          const int64_t skip = upper ? i + 1 : 0;
          T* to = out.as<T>() + (upper ? i * n - i * (i + 1) / 2 : (s * rows + i) * n);
          from(x + i * m, turned.get() + skip, step, m, n - skip, static_cast<T>(p), to);
        }
      });
    }
  });
}

void distances(const View& out, const View& a, const View& b, double p, bool upper) {
  if (out.dtype == DType::Float32) distances_of<float>(out, a, b, p, upper);
  else distances_of<double>(out, a, b, p, upper);
}

}  // namespace

extern const DistanceKernels distance_kernels;
const DistanceKernels distance_kernels = {distances};

}  // namespace rl::RL_ISA
