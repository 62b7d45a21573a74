#include "backend/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/parallel.h"
#include "cpu/attention/attention.h"
#include "cpu/gemm/blas.h"
#include "cpu/gemm/gemm.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/simd/math.h"

namespace rl::RL_ISA {
namespace {

// Queries that one GEMM takes together.
constexpr int64_t kBlock = 64;

using cpu::Head;

template <class T> void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                             const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  auto i = [](int64_t v) { return static_cast<int>(v); };
  if (m && n)
    blas::gemm(ta, tb, i(m), i(n), i(k), alpha, a, i(std::max<int64_t>(lda, 1)), b, i(std::max<int64_t>(ldb, 1)), beta,
               c, i(std::max<int64_t>(ldc, 1)));
}

// Keys that the queries [q0, q1) can see.
int64_t seen(bool causal, int64_t q1, int64_t keys) { return causal ? std::min(q1, keys) : keys; }

// What is added to the scores of one head; of a boolean mask, -inf where it is false.
template <class T> void apply_mask(const View* mask, int64_t head, int64_t query, int64_t count, T* row) {
  if (!mask) return;
  int64_t step = mask->strides[3], at = head / mask->sizes[1] * mask->strides[0] +
                                        head % mask->sizes[1] * mask->strides[1] + query * mask->strides[2];
  if (mask->dtype == DType::Bool) {
    const bool* m = mask->as<bool>() + at;
    for (int64_t j = 0; j < count; ++j)
      if (!m[j * step]) row[j] = -std::numeric_limits<T>::infinity();
  } else {
    const T* m = mask->as<T>() + at;
    for (int64_t j = 0; j < count; ++j) row[j] += m[j * step];
  }
}

// In place: e^(x - max) of a row, 0 beyond `count`; returns max and the sum.
template <class T> void exponentials(T* __restrict row, int64_t count, int64_t width, T* top, T* sum) {
  T lanes[16];
  for (T& l : lanes) l = -std::numeric_limits<T>::infinity();
  int64_t j = 0;
  for (; j + 16 <= count; j += 16)
    for (int l = 0; l < 16; ++l) lanes[l] = row[j + l] > lanes[l] ? row[j + l] : lanes[l];
  T m = -std::numeric_limits<T>::infinity();
  for (; j < count; ++j) m = row[j] > m ? row[j] : m;
  for (T l : lanes) m = l > m ? l : m;
  T shift = m == -std::numeric_limits<T>::infinity() ? T(0) : m;
  T sums[16] = {};
  for (j = 0; j + 16 <= count; j += 16)
    for (int l = 0; l < 16; ++l) {
      T e = exp(row[j + l] - shift);
      row[j + l] = e;
      sums[l] += e;
    }
  T total = 0;
  for (; j < count; ++j) total += row[j] = exp(row[j] - shift);
  for (T l : sums) total += l;
  std::fill(row + count, row + width, T(0));
  *top = shift;
  *sum = total;
}

template <class T> void forward_of(bool causal, T scale, const View& out, const View& lse, const View& q, const View& k,
                                   const View& v, const View* mask) {
  int64_t heads = q.sizes[0] * q.sizes[1], queries = q.sizes[2], keys = k.sizes[2],
          blocks = (queries + kBlock - 1) / kBlock;
  double work = static_cast<double>(kBlock) * keys * (q.sizes[3] + v.sizes[3]) + 1;
  parallel_for(
      0, heads * blocks, std::max<int64_t>(1, static_cast<int64_t>(1e6 / work)), [&](int64_t first, int64_t last) {
        Scratch<T> scores(kBlock * std::max<int64_t>(keys, 1));
        for (int64_t t = first; t < last; ++t) {
          int64_t h = t / blocks, q0 = t % blocks * kBlock, q1 = std::min(queries, q0 + kBlock),
                  width = seen(causal, q1, keys);
          const int64_t all = q.sizes[1];
          Head<T> hq(q, h, all), hk(k, h, all), hv(v, h, all), ho(out, h, all);
          T* s = scores.get();
          gemm(false, true, q1 - q0, width, hq.width, scale, hq.data + q0 * hq.step, hq.step, hk.data, hk.step, T(0), s,
               width);
          T inverse[kBlock];
          for (int64_t r = 0; r < q1 - q0; ++r) {
            T top, sum;
            const int64_t count = causal ? std::min(q0 + r + 1, keys) : keys;
            apply_mask(mask, h, q0 + r, count, s + r * width);
            exponentials(s + r * width, count, width, &top, &sum);
            inverse[r] = sum == T(0) ? T(0) : T(1) / sum;  // a query that sees nothing gets nothing
            lse.as<T>()[h * queries + q0 + r] = sum == T(0) ? std::numeric_limits<T>::infinity() : top + std::log(sum);
          }
          T* o = ho.data + q0 * ho.step;
          gemm(false, false, q1 - q0, hv.width, width, T(1), s, width, hv.data, hv.step, T(0), o, ho.step);
          for (int64_t r = 0; r < q1 - q0; ++r)
            for (int64_t c = 0; c < hv.width; ++c) o[r * ho.step + c] *= inverse[r];
        }
      });
}

// P = e^(S - lse), dV = P' dO, dP = dO V', dS = P (dP - row sums of dO O), dQ = scale dS K, dK = scale dS' Q
template <class T> void backward_of(bool causal, T scale, const View& dq, const View& dk, const View& dv,
                                    const View& dout, const View& out, const View& lse, const View& q, const View& k,
                                    const View& v, const View* mask) {
  int64_t heads = q.sizes[0] * q.sizes[1], queries = q.sizes[2], keys = k.sizes[2];
  parallel_for(0, heads, 1, [&](int64_t first, int64_t last) {
    int64_t buffer = kBlock * std::max<int64_t>(keys, 1);
    Scratch<T> weights(buffer), grads(buffer);
    for (int64_t h = first; h < last; ++h) {
      const int64_t all = q.sizes[1];
      Head<T> hq(q, h, all), hk(k, h, all), hv(v, h, all), ho(out, h, all), gq(dq, h, all), gk(dk, h, all),
          gv(dv, h, all), go(dout, h, all);
      for (int64_t r = 0; r < keys; ++r) {
        std::fill(gk.data + r * gk.step, gk.data + r * gk.step + gk.width, T(0));
        std::fill(gv.data + r * gv.step, gv.data + r * gv.step + gv.width, T(0));
      }
      for (int64_t q0 = 0; q0 < queries; q0 += kBlock) {
        int64_t n = std::min(queries - q0, kBlock), width = seen(causal, q0 + n, keys);
        T *p = weights.get(), *g = grads.get();
        const T* d = go.data + q0 * go.step;
        gemm(false, true, n, width, hq.width, scale, hq.data + q0 * hq.step, hq.step, hk.data, hk.step, T(0), p, width);
        gemm(false, true, n, width, hv.width, T(1), d, go.step, hv.data, hv.step, T(0), g, width);
        for (int64_t r = 0; r < n; ++r) {
          const T* o = ho.data + (q0 + r) * ho.step;
          T shift = lse.as<T>()[h * queries + q0 + r], dot = 0;
          for (int64_t c = 0; c < hv.width; ++c) dot += d[r * go.step + c] * o[c];
          int64_t count = causal ? std::min(q0 + r + 1, keys) : keys;
          T* __restrict pr = p + r * width, * __restrict gr = g + r * width;
          apply_mask(mask, h, q0 + r, count, pr);
          for (int64_t j = 0; j < count; ++j) {
            T w = exp(pr[j] - shift);
            pr[j] = w;
            gr[j] = w * (gr[j] - dot);
          }
          std::fill(pr + count, pr + width, T(0));
          std::fill(gr + count, gr + width, T(0));
        }
        gemm(true, false, width, hv.width, n, T(1), p, width, d, go.step, T(1), gv.data, gv.step);
        gemm(false, false, n, hk.width, width, scale, g, width, hk.data, hk.step, T(0), gq.data + q0 * gq.step,
             gq.step);
        gemm(true, false, width, hq.width, n, scale, g, width, hq.data + q0 * hq.step, hq.step, T(1), gk.data, gk.step);
      }
    }
  });
}

void forward(bool causal, double scale, const View& out, const View& lse, const View& q, const View& k, const View& v,
             const View* mask) {
  if (cpu::gemm_available()) return avx512::attention_forward(causal, scale, out, lse, q, k, v, mask);
  CHECK(q.dtype == DType::Float32 || q.dtype == DType::Float64, NotImplemented,
        "attention: fp16 and bf16 need AVX-512");
  blas::single_threaded();
  if (q.dtype == DType::Float32) forward_of<float>(causal, static_cast<float>(scale), out, lse, q, k, v, mask);
  else forward_of<double>(causal, scale, out, lse, q, k, v, mask);
}
void backward(bool causal, double scale, const View& dq, const View& dk, const View& dv, const View& dout,
              const View& out, const View& lse, const View& q, const View& k, const View& v, const View* mask) {
  if (cpu::gemm_available())
    return avx512::attention_backward(causal, scale, dq, dk, dv, dout, out, lse, q, k, v, mask);
  blas::single_threaded();
  if (q.dtype == DType::Float32)
    backward_of<float>(causal, static_cast<float>(scale), dq, dk, dv, dout, out, lse, q, k, v, mask);
  else backward_of<double>(causal, scale, dq, dk, dv, dout, out, lse, q, k, v, mask);
}

}  // namespace

extern const AttentionKernels attention_kernels;
const AttentionKernels attention_kernels = {cpu::gemm_available, forward, backward};

}  // namespace rl::RL_ISA
