// Layer, group, instance and root-mean-square normalisation.
#include <algorithm>
#include <cmath>

#include "backend/norm.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/norm.h"
#include "cpu/norm_sums.h"
#include "cpu/scratch.h"

namespace rl::RL_ISA {

void norm_rows(const NormRows& s, bool rms, double eps, const View& y, const View* mean, const View& rstd,
               const View& x, const View* weight, const View* bias) {
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C *pw = data_or_null<C>(weight), *pb = data_or_null<C>(bias);
    C *pm = data_or_null<C>(mean), *pr = rstd.as<C>();
    int64_t n = s.length, per = n / s.inner;
    parallel_for(0, s.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n)), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* __restrict in = x.as<T>() + r * n;
        T* __restrict out = y.as<T>() + r * n;
        C m = 0, q;
        if (rms) {
          double square = sum_of<C>(n,
                                    [&](int64_t i) {
                                      C v = static_cast<C>(in[i]);
                                      return v * v;
                                    }) /
                          n;
          q = static_cast<C>(1.0 / std::sqrt(square + eps));
        } else {
          m = static_cast<C>(sum_of<C>(n, [&](int64_t i) { return static_cast<C>(in[i]); }) / n);
          double var = sum_of<C>(n,
                                 [&](int64_t i) {
                                   C v = static_cast<C>(in[i]) - m;
                                   return v * v;
                                 }) /
                       n;
          q = static_cast<C>(1.0 / std::sqrt(var + eps));
          if (pm) pm[r] = m;
        }
        pr[r] = q;
        if (s.inner == 1) {
          const C *w = pw ? pw + r % s.groups * per : nullptr, *b = pb ? pb + r % s.groups * per : nullptr;
          if (w && b)
            for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>((static_cast<C>(in[i]) - m) * q * w[i] + b[i]);
          else if (w)
            for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>((static_cast<C>(in[i]) - m) * q * w[i]);
          else
            for (int64_t i = 0; i < n; ++i)
              out[i] = static_cast<T>((static_cast<C>(in[i]) - m) * q + (b ? b[i] : C(0)));
        } else {
          for (int64_t c = 0; c < per; ++c) {
            int64_t p = r % s.groups * per + c;
            C scale = pw ? q * pw[p] : q, shift = (pb ? pb[p] : C(0)) - m * scale;
            const T* from = in + c * s.inner;
            T* to = out + c * s.inner;
            for (int64_t i = 0; i < s.inner; ++i) to[i] = static_cast<T>(static_cast<C>(from[i]) * scale + shift);
          }
        }
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
    for (int64_t r = first; r < last; ++r)
      if (s.inner == 1) row(r, dw, db);
      else planes(r, dw, db);
  }

  void row(int64_t r, C* dw, C* db) const {
    int64_t n = s.length, at = r % s.groups * n;
    const T* __restrict d = dy + r * n;
    const T* __restrict v = x + r * n;
    const C* __restrict w = weight ? weight + at : nullptr;
    C m = mean ? mean[r] : C(0), q = rstd[r];
    if (dx) {
      double sum, product;
      if (w)
        two_sums_of<C>(
            n,
            [&](int64_t i, C& a, C& b) {
              C g = static_cast<C>(d[i]) * w[i];
              a += g, b += g * (static_cast<C>(v[i]) - m);
            },
            &sum, &product);
      else
        two_sums_of<C>(
            n,
            [&](int64_t i, C& a, C& b) {
              C g = static_cast<C>(d[i]);
              a += g, b += g * (static_cast<C>(v[i]) - m);
            },
            &sum, &product);
      C shift = rms ? C(0) : static_cast<C>(sum / n), slope = static_cast<C>(product * q * q / n);
      T* __restrict to = dx + r * n;
      if (w)
        for (int64_t i = 0; i < n; ++i)
          to[i] = static_cast<T>(q * (static_cast<C>(d[i]) * w[i] - shift - (static_cast<C>(v[i]) - m) * slope));
      else
        for (int64_t i = 0; i < n; ++i)
          to[i] = static_cast<T>(q * (static_cast<C>(d[i]) - shift - (static_cast<C>(v[i]) - m) * slope));
    }
    if (dw) {
      C* __restrict sums = dw + at;
      for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<C>(d[i]) * (static_cast<C>(v[i]) - m) * q;
    }
    if (db) {
      C* __restrict sums = db + at;
      for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<C>(d[i]);
    }
  }

  // The sums of d and of d (v - m), each in a loop of its own: together they would not become vectors.
  static void plane_sums(const T* d, const T* v, C m, int64_t n, double* sum, double* product) {
    *sum = *product = 0;
    for (int64_t i = 0; i < n;) {
      const int64_t end = n - i > 4096 ? i + 4096 : n;
      C a[kSums] = {}, b[kSums] = {};
      for (; i + kSums <= end; i += kSums) {
        for (int l = 0; l < kSums; ++l) a[l] += static_cast<C>(d[i + l]);
        for (int l = 0; l < kSums; ++l) b[l] += static_cast<C>(d[i + l]) * (static_cast<C>(v[i + l]) - m);
      }
      for (int l = 0; i < end; ++i, ++l) {
        a[l] += static_cast<C>(d[i]);
        b[l] += static_cast<C>(d[i]) * (static_cast<C>(v[i]) - m);
      }
      *sum += fold(a), *product += fold(b);
    }
  }

  // Rows made of channels with a weight each: the sums over a channel serve both.
  void planes(int64_t r, C* dw, C* db) const {
    int64_t n = s.length, inner = s.inner, per = n / inner, at = r % s.groups * per;
    const T *d = dy + r * n, *v = x + r * n;
    C m = mean ? mean[r] : C(0), q = rstd[r];
    double sum = 0, product = 0;
    for (int64_t c = 0; c < per; ++c) {
      const T *dc = d + c * inner, *vc = v + c * inner;
      double a, b;
      plane_sums(dc, vc, m, inner, &a, &b);
      if (dw) dw[at + c] += static_cast<C>(b * q);
      if (db) db[at + c] += static_cast<C>(a);
      double w = weight ? static_cast<double>(weight[at + c]) : 1.0;
      sum += w * a, product += w * b;
    }
    if (!dx) return;
    C shift = rms ? C(0) : static_cast<C>(sum / n), slope = static_cast<C>(product * q * q / n);
    for (int64_t c = 0; c < per; ++c) {
      const T* __restrict dc = d + c * inner;
      const T* __restrict vc = v + c * inner;
      T* __restrict to = dx + r * n + c * inner;
      C w = weight ? weight[at + c] : C(1);
      for (int64_t i = 0; i < inner; ++i)
        to[i] = static_cast<T>(q * (static_cast<C>(dc[i]) * w - shift - (static_cast<C>(vc[i]) - m) * slope));
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
