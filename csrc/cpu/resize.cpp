// Resizing of one dimension: every result is a weighted sum of a few elements.
#include <algorithm>

#include "backend/resample.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/norm_sums.h"
#include "cpu/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kWork = 16384;  // products worth a piece

// One row of `inner` neighbours: out = sum of w[k] * row[place[k]].
template <int K, class T, class C>
void mix_row(T* __restrict out, const T* in, const int64_t* place, const C* w, int64_t inner) {
  const T* row[K];
  for (int k = 0; k < K; ++k) row[k] = in + place[k] * inner;
#pragma GCC ivdep
  for (int64_t i = 0; i < inner; ++i) {
    C sum = static_cast<C>(row[0][i]) * w[0];
    for (int k = 1; k < K; ++k) sum += static_cast<C>(row[k][i]) * w[k];
    out[i] = static_cast<T>(sum);
  }
}

template <int K, class T, class C>
void mix(const ResizeTable& s, T* out, const T* in, const C* weights, int64_t first, int64_t last) {
  for (int64_t o = first; o < last; ++o) {
    const T* from = in + o * s.n_in * s.inner;
    T* to = out + o * s.n_out * s.inner;
    if (s.inner > 1) {
      for (int64_t j = 0; j < s.n_out; ++j)
        mix_row<K, T, C>(to + j * s.inner, from, s.places + j * K, weights + j * K, s.inner);
      continue;
    }
    for (int64_t j = 0; j < s.n_out; ++j) {
      C sum = static_cast<C>(from[s.places[j * K]]) * weights[j * K];
      for (int k = 1; k < K; ++k) sum += static_cast<C>(from[s.places[j * K + k]]) * weights[j * K + k];
      to[j] = static_cast<T>(sum);
    }
  }
}

// The same for any number of taps: rows [first, last) of the result, of all outer ones.
template <class T, class C>
void mix_many(const ResizeTable& s, T* out, const T* in, const C* weights, int64_t first, int64_t last) {
  constexpr int64_t kBlock = 256;
  const int taps = s.taps;
  for (int64_t r = first; r < last; ++r) {
    const int64_t j = r % s.n_out;
    const T* from = in + r / s.n_out * s.n_in * s.inner;
    const int64_t* place = s.places + j * taps;
    const C* w = weights + j * taps;
    if (s.inner == 1) {
      C sum = 0;
      for (int k = 0; k < taps; ++k) sum += static_cast<C>(from[place[k]]) * w[k];
      out[r] = static_cast<T>(sum);
      continue;
    }
    for (int64_t i = 0; i < s.inner; i += kBlock) {
      const int64_t n = std::min(kBlock, s.inner - i);
      C sums[kBlock] = {};
      for (int k = 0; k < taps; ++k) {
        const T* row = from + place[k] * s.inner + i;
        const C by = w[k];
        for (int64_t l = 0; l < n; ++l) sums[l] += static_cast<C>(row[l]) * by;
      }
      T* line = out + r * s.inner + i;
      for (int64_t l = 0; l < n; ++l) line[l] = static_cast<T>(sums[l]);
    }
  }
}

// The weights in the type of the computation.
template <class C> struct Weights : Scratch<C> {
  explicit Weights(const ResizeTable& s) : Scratch<C>(s.n_out * s.taps) {
    for (int64_t i = 0; i < s.n_out * s.taps; ++i) (*this)[i] = static_cast<C>(s.weights[i]);
  }
};
int64_t grain_of(const ResizeTable& s) {
  return std::max<int64_t>(1, kWork / std::max<int64_t>(1, s.n_out * s.inner * s.taps));
}

}  // namespace

void resize(const ResizeTable& s, const View& out, const View& in) {
  visit_float(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    Weights<C> w(s);
    if (s.taps != 2 && s.taps != 4) {
      const int64_t grain = std::max<int64_t>(1, kWork / (s.inner * s.taps));
      return parallel_for(0, s.outer * s.n_out, grain, [&](int64_t first, int64_t last) {
        mix_many<T, C>(s, out.as<T>(), in.as<T>(), w.get(), first, last);
      });
    }
    parallel_for(0, s.outer, grain_of(s), [&](int64_t first, int64_t last) {
      if (s.taps == 2) mix<2, T, C>(s, out.as<T>(), in.as<T>(), w.get(), first, last);
      else mix<4, T, C>(s, out.as<T>(), in.as<T>(), w.get(), first, last);
    });
  });
}

void resize_grad(const ResizeTable& s, const View& dx, const View& dy) {
  visit_float(dx.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    Weights<C> w(s);
    const int64_t plane = s.n_in * s.inner;
    parallel_for(0, s.outer, grain_of(s), [&](int64_t first, int64_t last) {
      Scratch<C> sums(is_half_v<T> ? plane : 1);  // half types are summed in float
      for (int64_t o = first; o < last; ++o) {
        T* to = dx.as<T>() + o * plane;
        const T* from = dy.as<T>() + o * s.n_out * s.inner;
        C* sum;
        if constexpr (is_half_v<T>) sum = sums.get();
        else sum = to;
        std::fill(sum, sum + plane, C(0));
        for (int64_t j = 0; j < s.n_out; ++j)
          for (int k = 0; k < s.taps; ++k) {
            C* __restrict row = sum + s.places[j * s.taps + k] * s.inner;
            const T* __restrict g = from + j * s.inner;
            const C by = w[j * s.taps + k];
            for (int64_t i = 0; i < s.inner; ++i) row[i] += static_cast<C>(g[i]) * by;
          }
        if constexpr (is_half_v<T>)
          for (int64_t i = 0; i < plane; ++i) to[i] = static_cast<T>(sum[i]);
      }
    });
  });
}

}  // namespace rl::RL_ISA
