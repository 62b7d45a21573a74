// Matrices so small that their routines are a few loops over the stack.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cpu/linalg/lapack.h"

namespace rl::cpu {

constexpr int kTiny = 8;
template <class T> struct Tiny {
  T at[kTiny][kTiny];
  int pivots[kTiny];

  Tiny(const T* from, int64_t rs, int64_t cs, int n) {
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) at[i][j] = from[i * rs + j * cs];
  }
  void put(T* to, int64_t rs, int64_t cs, int n) const {
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) to[i * rs + j * cs] = at[i][j];
  }
  // Gauss's elimination with exchanges of rows, as LAPACK's getrf.
  int lu(int n) {
    int info = 0;
    for (int k = 0; k < n; ++k) {
      int best = k;
      auto size = [&](int i) {
        if constexpr (lapack::is_complex<T>) return std::fabs(at[i][k].real()) + std::fabs(at[i][k].imag());
        else return std::fabs(at[i][k]);
      };
      // No branches: which row is the best, and whether it is another one, cannot be foreseen.
      auto most = size(k);
      for (int i = k + 1; i < n; ++i) {
        const auto next = size(i);
        best = next > most ? i : best;
        most = next > most ? next : most;
      }
      pivots[k] = best + 1;
      for (int j = 0; j < n; ++j) std::swap(at[k][j], at[best][j]);
      if (at[k][k] == T(0)) {
        if (!info) info = k + 1;
        continue;
      }
      const T by = T(1) / at[k][k];
      for (int i = k + 1; i < n; ++i) {
        const T factor = at[i][k] * by;
        at[i][k] = factor;
        for (int j = k + 1; j < n; ++j) at[i][j] -= factor * at[k][j];
      }
    }
    return info;
  }
  // The lower half becomes L of A = L L^H, and zeros stand above it. Returns the first minor that is not positive.
  int cholesky(int n) {
    int info = 0;
    for (int j = 0; j < n && !info; ++j) {
      auto d = std::real(at[j][j]);
      for (int p = 0; p < j; ++p) d -= std::norm(at[j][p]);
      if (!(d > 0)) {
        info = j + 1;
        break;
      }
      d = std::sqrt(d);
      at[j][j] = T(d);
      for (int i = j + 1; i < n; ++i) {
        T x = at[i][j];
        for (int p = 0; p < j; ++p) x -= at[i][p] * conjugate(at[j][p]);
        at[i][j] = x / d;
      }
    }
    for (int i = 0; i < n; ++i)
      for (int j = i + 1; j < n; ++j) at[i][j] = T(0);
    return info;
  }
  void conjugate_all(int n) {
    if constexpr (lapack::is_complex<T>)
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) at[i][j] = std::conj(at[i][j]);
  }
  static T conjugate(T x) {
    if constexpr (lapack::is_complex<T>) return std::conj(x);
    else return x;
  }
  // X of A X = B for B with n rows, k columns and any strides, in place; trans as getrs's.
  void solve(int n, int k, T* b, int64_t rs, int64_t cs, char trans) const {
    int c = 0;
    for (; c + kSides <= k; c += kSides) solve_sides<kSides>(n, b + c * cs, rs, cs, trans);
    for (; c + 4 <= k; c += 4) solve_sides<4>(n, b + c * cs, rs, cs, trans);
    for (; c < k; ++c) solve_sides<1>(n, b + c * cs, rs, cs, trans);
  }

 private:
  static constexpr int kSides = 8;  // columns that go side by side through vectors
  template <int S> void solve_sides(int n, T* b, int64_t rs, int64_t cs, char trans) const {
    T x[kTiny][S];
    auto get = [&](int i, int j) {
      if constexpr (lapack::is_complex<T>)
        return trans == 'N' ? at[i][j] : trans == 'T' ? at[j][i] : std::conj(at[j][i]);
      else return trans == 'N' ? at[i][j] : at[j][i];
    };
    auto each = [](auto f) {
      for (int s = 0; s < S; ++s) f(s);
    };
    auto take_off = [&](int i, int j) {
      const T by = get(i, j);
      each([&](int s) { x[i][s] -= by * x[j][s]; });
    };
    auto divide = [&](int i) {
      const T by = get(i, i);
      each([&](int s) { x[i][s] /= by; });
    };
    auto exchange = [&](int i) {
      const int with = pivots[i] - 1;
      each([&](int s) { std::swap(x[i][s], x[with][s]); });
    };
    for (int i = 0; i < n; ++i) each([&](int s) { x[i][s] = b[i * rs + s * cs]; });
    if (trans == 'N')
      for (int i = 0; i < n; ++i) exchange(i);
    // L is unit; transposed, U comes first.
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) take_off(i, j);
      if (trans != 'N') divide(i);
    }
    for (int i = n - 1; i >= 0; --i) {
      for (int j = i + 1; j < n; ++j) take_off(i, j);
      if (trans == 'N') divide(i);
    }
    if (trans != 'N')
      for (int i = n - 1; i >= 0; --i) exchange(i);
    for (int i = 0; i < n; ++i) each([&](int s) { b[i * rs + s * cs] = x[i][s]; });
  }
};

// f(n), with the sizes that batches mostly have known to the compiler.
template <class F> auto with_size(int n, F f) {
  switch (n) {
    case 2: return f(std::integral_constant<int, 2>{});
    case 3: return f(std::integral_constant<int, 3>{});
    case 4: return f(std::integral_constant<int, 4>{});
    default: return f(n);
  }
}

// Reflections of real columns of at most kTiny elements, as LAPACK's geqrf and orgqr keep them. Squares are taken in
// double, so that those of floats need no scaling.
template <class T> struct TinyColumns {
  T at[kTiny][kTiny];  // column by column
  T tau[kTiny];

  // Returns false for values whose squares are too large or too small.
  bool factor(int m, int n) {
    for (int j = 0; j < m && j < n; ++j) {
      double sum = 0;
      for (int i = j + 1; i < m; ++i) sum += static_cast<double>(at[j][i]) * static_cast<double>(at[j][i]);
      const double alpha = static_cast<double>(at[j][j]), all = sum + alpha * alpha;
      tau[j] = T(0);
      if (sum == 0) {
        for (int i = j + 1; i < m; ++i)
          if (at[j][i] != T(0)) return false;
        continue;
      }
      if (!(sum > 1e-290 && all < 1e290)) return false;
      const double beta = std::copysign(std::sqrt(all), -alpha), by = 1 / (alpha - beta);
      tau[j] = static_cast<T>((beta - alpha) / beta);
      for (int i = j + 1; i < m; ++i) at[j][i] = static_cast<T>(static_cast<double>(at[j][i]) * by);
      at[j][j] = static_cast<T>(beta);
      for (int c = j + 1; c < n; ++c) reflect(j, m, at[c]);
    }
    return true;
  }
  // The first n columns of the product of k reflections.
  void expand(int m, int n, int k) {
    for (int c = k; c < n; ++c)
      for (int i = 0; i < m; ++i) at[c][i] = T(i == c);
    for (int j = k - 1; j >= 0; --j) {
      for (int c = j + 1; c < n; ++c) reflect(j, m, at[c]);
      for (int i = j + 1; i < m; ++i) at[j][i] *= -tau[j];
      at[j][j] = T(1) - tau[j];
      for (int i = 0; i < j; ++i) at[j][i] = T(0);
    }
  }

 private:
  void reflect(int j, int m, T* c) const {
    T sum = c[j];
    for (int i = j + 1; i < m; ++i) sum += at[j][i] * c[i];
    sum *= tau[j];
    c[j] -= sum;
    for (int i = j + 1; i < m; ++i) c[i] -= sum * at[j][i];
  }
};

}  // namespace rl::cpu
