// Layer, group, instance and root-mean-square normalisation.
#include <algorithm>
#include <cmath>

#include "backend/norm.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/norm/norm.h"
#include "cpu/reduce/pairwise_sum.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {

namespace {

// What rows are made of; mean, weight and bias may be null.
template <class C> struct Norm {
  const NormRows& s;
  bool rms;
  double eps;
  C *mean, *rstd;
  const C *weight, *bias;

  void row(int64_t r, const C* __restrict in, C* __restrict out) const {
    const int64_t n = s.length, per = n / s.inner;
    C m = 0, q;
    if (rms) {
      double square = sum_of<C>(n, [&](int64_t i) { return in[i] * in[i]; }) / n;
      q = static_cast<C>(1.0 / std::sqrt(square + eps));
    } else {
      m = static_cast<C>(sum_of<C>(n, [&](int64_t i) { return in[i]; }) / n);
      double var = sum_of<C>(n,
                             [&](int64_t i) {
                               C v = in[i] - m;
                               return v * v;
                             }) /
                   n;
      q = static_cast<C>(1.0 / std::sqrt(var + eps));
      if (mean) mean[r] = m;
    }
    rstd[r] = q;
    if (s.inner == 1) {
      const C *w = weight ? weight + r % s.groups * per : nullptr, *b = bias ? bias + r % s.groups * per : nullptr;
      if (w && b)
        for (int64_t i = 0; i < n; ++i) out[i] = (in[i] - m) * q * w[i] + b[i];
      else if (w)
        for (int64_t i = 0; i < n; ++i) out[i] = (in[i] - m) * q * w[i];
      else
        for (int64_t i = 0; i < n; ++i) out[i] = (in[i] - m) * q + (b ? b[i] : C(0));
      return;
    }
    for (int64_t c = 0; c < per; ++c) {
      int64_t p = r % s.groups * per + c;
      C scale = weight ? q * weight[p] : q, shift = (bias ? bias[p] : C(0)) - m * scale;
      const C* from = in + c * s.inner;
      C* to = out + c * s.inner;
      for (int64_t i = 0; i < s.inner; ++i) to[i] = from[i] * scale + shift;
    }
  }
};

}  // namespace

// Rows of reduced-precision types are computed as floats, beside them.
void norm_rows(const NormRows& s, bool rms, double eps, const View& y, const View* mean, const View& rstd,
               const View& x, const View* weight, const View* bias) {
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Norm<C> norm{
        s, rms, eps, data_or_null<C>(mean), rstd.as<C>(), data_or_null<C>(weight), data_or_null<C>(bias)};
    const int64_t n = s.length;
    parallel_for(0, s.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n)), [&](int64_t first, int64_t last) {
      const T* in = x.as<T>();
      T* out = y.as<T>();
      if constexpr (is_half_v<T>) {
        Scratch<C> buffer(2 * n);
        for (int64_t r = first; r < last; ++r) {
          widen(in + r * n, buffer.get(), n);
          norm.row(r, buffer.get(), buffer.get() + n);
          narrow(buffer.get() + n, out + r * n, n);
        }
      } else {
        for (int64_t r = first; r < last; ++r) norm.row(r, in + r * n, out + r * n);
      }
    });
  });
}

namespace {

// What the gradient of rows reads and writes; dx, dw, db, mean and weight may be null.
template <class T, class C> struct RowsGrad {
  const NormRows& s;
  bool rms;
  T* dx;
  const T *dy, *x;
  const C *mean, *rstd, *weight;

  // dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * weight; without mean(g) for the root mean square.
  // dw = dy * xhat and db = dy, added to the sums of a block of rows.
  void rows(int64_t first, int64_t last, C* dw, C* db) const {
    const int64_t n = s.length;
    if constexpr (is_half_v<T>) {
      Scratch<C> buffer(3 * n);
      C *d = buffer.get(), *v = d + n, *to = v + n;
      for (int64_t r = first; r < last; ++r) {
        widen(dy + r * n, d, n);
        widen(x + r * n, v, n);
        any_row(r, d, v, dx ? to : nullptr, dw, db);
        if (dx) narrow(to, dx + r * n, n);
      }
    } else {
      for (int64_t r = first; r < last; ++r) any_row(r, dy + r * n, x + r * n, dx ? dx + r * n : nullptr, dw, db);
    }
  }
  void any_row(int64_t r, const C* d, const C* v, C* to, C* dw, C* db) const {
    if (s.inner == 1) row(r, d, v, to, dw, db);
    else planes(r, d, v, to, dw, db);
  }

  void row(int64_t r, const C* __restrict d, const C* __restrict v, C* __restrict to, C* dw, C* db) const {
    int64_t n = s.length, at = r % s.groups * n;
    const C* __restrict w = weight ? weight + at : nullptr;
    C m = mean ? mean[r] : C(0), q = rstd[r];
    if (to) {
      double sum, product;
      auto add = [&](int64_t i, auto& a, auto& b) {
        using U = std::remove_reference_t<decltype(a)>;
        const U g = w ? read_as<U>(d + i) * read_as<U>(w + i) : read_as<U>(d + i);
        a += g, b += g * (read_as<U>(v + i) - m);
      };
      two_sums_of<C>(n, add, &sum, &product);
      C shift = rms ? C(0) : static_cast<C>(sum / n), x_scale = static_cast<C>(product * q * q / n);
      if (w)
        for (int64_t i = 0; i < n; ++i) to[i] = q * (d[i] * w[i] - shift - (v[i] - m) * x_scale);
      else
        for (int64_t i = 0; i < n; ++i) to[i] = q * (d[i] - shift - (v[i] - m) * x_scale);
    }
    if (dw) {
      C* __restrict sums = dw + at;
      for (int64_t i = 0; i < n; ++i) sums[i] += d[i] * (v[i] - m) * q;
    }
    if (db) {
      C* __restrict sums = db + at;
      for (int64_t i = 0; i < n; ++i) sums[i] += d[i];
    }
  }

  // Rows made of channels with a weight each: the sums over a channel serve both.
  void planes(int64_t r, const C* d, const C* v, C* out, C* dw, C* db) const {
    int64_t n = s.length, inner = s.inner, per = n / inner, at = r % s.groups * per;
    C m = mean ? mean[r] : C(0), q = rstd[r];
    double sum = 0, product = 0;
    for (int64_t c = 0; c < per; ++c) {
      const C *dc = d + c * inner, *vc = v + c * inner;
      double a, b;
      auto add = [&](int64_t i, auto& x, auto& y) {
        using U = std::remove_reference_t<decltype(x)>;
        const U g = read_as<U>(dc + i);
        x += g, y += g * (read_as<U>(vc + i) - m);
      };
      two_sums_of<C>(inner, add, &a, &b);
      if (dw) dw[at + c] += static_cast<C>(b * q);
      if (db) db[at + c] += static_cast<C>(a);
      double w = weight ? static_cast<double>(weight[at + c]) : 1.0;
      sum += w * a, product += w * b;
    }
    if (!out) return;
    C shift = rms ? C(0) : static_cast<C>(sum / n), x_scale = static_cast<C>(product * q * q / n);
    for (int64_t c = 0; c < per; ++c) {
      const C* __restrict dc = d + c * inner;
      const C* __restrict vc = v + c * inner;
      C* __restrict to = out + c * inner;
      C w = weight ? weight[at + c] : C(1);
      for (int64_t i = 0; i < inner; ++i) to[i] = q * (dc[i] * w - shift - (vc[i] - m) * x_scale);
    }
  }
};

}  // namespace

void norm_rows_grad(const NormRows& s, bool rms, const View* dx, const View* dw, const View* db, const View& dy,
                    const View& x, const View* mean, const View& rstd, const View* weight) {
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    RowsGrad<T, C> work{s,
                        rms,
                        data_or_null<T>(dx),
                        dy.as<T>(),
                        x.as<T>(),
                        data_or_null<C>(mean),
                        rstd.as<C>(),
                        data_or_null<C>(weight)};
    int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, s.length));
    if (!dw && !db)
      return parallel_for(0, s.rows, grain,
                          [&](int64_t first, int64_t last) { work.rows(first, last, nullptr, nullptr); });
    // Blocks of rows have sums of their own, added in order.
    int64_t params = s.params(), block = std::max<int64_t>(2 * grain, (s.rows + 31) / 32);
    int64_t blocks = std::max<int64_t>(1, (s.rows + block - 1) / block);
    Scratch<C> sums(checked_mul(2 * blocks, params));
    std::fill(sums.get(), sums.get() + 2 * blocks * params, C(0));
    parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t k = first; k < last; ++k)
        work.rows(k * block, std::min(s.rows, (k + 1) * block), dw ? sums.get() + 2 * k * params : nullptr,
                  db ? sums.get() + (2 * k + 1) * params : nullptr);
    });
    C* __restrict total = sums.get();
    for (int64_t k = 1; k < blocks; ++k) {
      const C* __restrict more = sums.get() + 2 * k * params;
#pragma GCC ivdep
      for (int64_t i = 0; i < 2 * params; ++i) total[i] += more[i];
    }
    if (dw) std::copy(total, total + params, dw->as<C>());
    if (db) std::copy(total + params, total + 2 * params, db->as<C>());
  });
}

extern const NormKernels norm_kernels;
const NormKernels norm_kernels = {norm_rows, norm_rows_grad, channel_stats, norm_channels, norm_channels_grad};

}  // namespace rl::RL_ISA
