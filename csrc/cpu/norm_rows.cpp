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

// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * weight; without mean(g) for the root mean square.
template <class T, class C = compute_t<T>> void row_dx(const NormRows& s, bool rms, int64_t r, T* __restrict dx,
                                                       const T* __restrict dy, const T* __restrict x, C m, C q,
                                                       const C* pw, C* __restrict g) {
  int64_t n = s.length, per = n / s.inner;
  for (int64_t c = 0; c < per; ++c) {
    int64_t base = c * s.inner;
    if (s.inner == 1) {
      const C* w = pw ? pw + r % s.groups * per : nullptr;
      if (w)
        for (int64_t i = 0; i < n; ++i) g[i] = static_cast<C>(dy[i]) * w[i];
      else
        for (int64_t i = 0; i < n; ++i) g[i] = static_cast<C>(dy[i]);
      break;
    }
    C w = pw ? pw[r % s.groups * per + c] : C(1);
    for (int64_t i = 0; i < s.inner; ++i) g[base + i] = static_cast<C>(dy[base + i]) * w;
  }
  double sum, product;
  two_sums_of<C>(n, [&](int64_t i, C& a, C& b) { a += g[i], b += g[i] * (static_cast<C>(x[i]) - m); }, &sum, &product);
  C shift = rms ? C(0) : static_cast<C>(sum / n), slope = static_cast<C>(product * q * q / n);
  for (int64_t i = 0; i < n; ++i) dx[i] = static_cast<T>(q * (g[i] - shift - (static_cast<C>(x[i]) - m) * slope));
}

// dw and db of rows [first, last), added to sums
template <class T, class C = compute_t<T>> void params_of(const NormRows& s, int64_t first, int64_t last, C* dw, C* db,
                                                          const T* dy, const T* x, const C* mean, const C* rstd) {
  int64_t n = s.length, per = n / s.inner;
  for (int64_t r = first; r < last; ++r) {
    C m = mean ? mean[r] : C(0), q = rstd[r];
    const T* __restrict pd = dy + r * n, * __restrict px = x + r * n;
    int64_t at = r % s.groups * per;
    if (s.inner == 1) {
      if (dw) {
        C* __restrict w = dw + at;
        for (int64_t i = 0; i < n; ++i) w[i] += static_cast<C>(pd[i]) * (static_cast<C>(px[i]) - m) * q;
      }
      if (db) {
        C* __restrict b = db + at;
        for (int64_t i = 0; i < n; ++i) b[i] += static_cast<C>(pd[i]);
      }
      continue;
    }
    for (int64_t c = 0; c < per; ++c) {
      const T *d = pd + c * s.inner, *v = px + c * s.inner;
      double sum, product;
      two_sums_of<C>(
          s.inner,
          [&](int64_t i, C& a, C& b) {
            C g = static_cast<C>(d[i]);
            a += g, b += g * (static_cast<C>(v[i]) - m);
          },
          &sum, &product);
      if (dw) dw[at + c] += static_cast<C>(product * q);
      if (db) db[at + c] += static_cast<C>(sum);
    }
  }
}

}  // namespace

void norm_rows_grad(const NormRows& s, bool rms, const View* dx, const View* dw, const View* db, const View& dy,
                    const View& x, const View* mean, const View& rstd, const View* weight) {
  visit_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C *pm = data_or_null<C>(mean), *pr = rstd.as<C>(), *pw = data_or_null<C>(weight);
    int64_t n = s.length;
    if (dx)
      parallel_for(0, s.rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, n)), [&](int64_t first, int64_t last) {
        Scratch<C> g(n);
        for (int64_t r = first; r < last; ++r)
          row_dx<T>(s, rms, r, dx->as<T>() + r * n, dy.as<T>() + r * n, x.as<T>() + r * n, pm ? pm[r] : C(0), pr[r], pw,
                    g.get());
      });
    if (!dw && !db) return;
    // Blocks of rows have sums of their own, added in order.
    int64_t params = s.params(),
            block = std::max<int64_t>(1, std::max<int64_t>(65536 / std::max<int64_t>(1, n), (s.rows + 31) / 32));
    int64_t blocks = std::max<int64_t>(1, (s.rows + block - 1) / block);
    Scratch<C> sums(2 * blocks * params);
    std::fill(sums.get(), sums.get() + 2 * blocks * params, C(0));
    parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t k = first; k < last; ++k)
        params_of<T>(s, k * block, std::min(s.rows, (k + 1) * block), dw ? sums.get() + 2 * k * params : nullptr,
                     db ? sums.get() + (2 * k + 1) * params : nullptr, dy.as<T>(), x.as<T>(), pm, pr);
    });
    for (int64_t i = 0; i < params; ++i) {
      C a = 0, b = 0;
      for (int64_t k = 0; k < blocks; ++k) a += sums[2 * k * params + i], b += sums[(2 * k + 1) * params + i];
      if (dw) dw->as<C>()[i] = a;
      if (db) db->as<C>()[i] = b;
    }
  });
}

extern const NormKernels norm_kernels;
const NormKernels norm_kernels = {norm_rows, norm_rows_grad, channel_stats, norm_channels, norm_channels_grad};

}  // namespace rl::RL_ISA
