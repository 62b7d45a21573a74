#include "cpu/rnn/rnn.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/parallel.h"
#include "cpu/features.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/reduce/pairwise_sum.h"
#include "cpu/simd/math.h"
#ifdef __FMA__
#include <immintrin.h>
#endif
#ifdef __AVX__
#define RL_RNN_BYTES 32
#else
#define RL_RNN_BYTES 16
#endif
#include "cpu/rnn/layers.h"

namespace rl::RL_ISA {
namespace {

int64_t row_grain(int64_t hidden) { return std::max<int64_t>(1, 2048 / std::max<int64_t>(1, hidden)); }

void lstm(int64_t rows, int64_t hidden, const View& h, const View& c, const View& active, const View& gates,
          const View& c0) {
  visit_float(h.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    parallel_for(0, rows, row_grain(hidden), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* __restrict g = gates.as<T>() + r * 4 * hidden;
        const T* __restrict from = c0.as<T>() + r * hidden;
        T* __restrict a = active.as<T>() + r * 4 * hidden, * __restrict ch = h.as<T>() + r * hidden, * __restrict cc = c.as<T>() + r * hidden;
#pragma GCC ivdep
        for (int64_t j = 0; j < hidden; ++j) {
          C i = sigmoid(static_cast<C>(g[j])), f = sigmoid(static_cast<C>(g[hidden + j]));
          C u = tanh(static_cast<C>(g[2 * hidden + j])), o = sigmoid(static_cast<C>(g[3 * hidden + j]));
          C v = f * static_cast<C>(from[j]) + i * u;
          a[j] = static_cast<T>(i), a[hidden + j] = static_cast<T>(f), a[2 * hidden + j] = static_cast<T>(u),
          a[3 * hidden + j] = static_cast<T>(o);
          cc[j] = static_cast<T>(v);
          ch[j] = static_cast<T>(o * tanh(v));
        }
      }
    });
  });
}

void lstm_grad(int64_t rows, int64_t hidden, const View& dgates, const View& dc0, const View& dh, const View& dc,
               const View& active, const View& c, const View& c0) {
  visit_float(dh.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    parallel_for(0, rows, row_grain(hidden), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* __restrict a = active.as<T>() + r * 4 * hidden;
        T* __restrict d = dgates.as<T>() + r * 4 * hidden, * __restrict d0 = dc0.as<T>() + r * hidden;
        const T* __restrict ph = dh.as<T>() + r * hidden, * __restrict pc = dc.as<T>() + r * hidden;
        const T* __restrict now = c.as<T>() + r * hidden, * __restrict before = c0.as<T>() + r * hidden;
#pragma GCC ivdep
        for (int64_t j = 0; j < hidden; ++j) {
          C i = a[j], f = a[hidden + j], u = a[2 * hidden + j], o = a[3 * hidden + j], t = tanh(static_cast<C>(now[j])),
            g = ph[j];
          C v = static_cast<C>(pc[j]) + g * o * (C(1) - t * t);
          d[j] = static_cast<T>(v * u * i * (C(1) - i));
          d[hidden + j] = static_cast<T>(v * static_cast<C>(before[j]) * f * (C(1) - f));
          d[2 * hidden + j] = static_cast<T>(v * i * (C(1) - u * u));
          d[3 * hidden + j] = static_cast<T>(g * t * o * (C(1) - o));
          d0[j] = static_cast<T>(v * f);
        }
      }
    });
  });
}

void gru(int64_t rows, int64_t hidden, const View& h, const View& active, const View& x, const View& y,
         const View& h0) {
  visit_float(h.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    parallel_for(0, rows, row_grain(hidden), [&](int64_t first, int64_t last) {
      for (int64_t k = first; k < last; ++k) {
        const T* __restrict px = x.as<T>() + k * 3 * hidden, * __restrict py = y.as<T>() + k * 3 * hidden, * __restrict p0 = h0.as<T>() + k * hidden;
        T* __restrict a = active.as<T>() + k * 3 * hidden, * __restrict out = h.as<T>() + k * hidden;
#pragma GCC ivdep
        for (int64_t j = 0; j < hidden; ++j) {
          C r = sigmoid(static_cast<C>(px[j]) + static_cast<C>(py[j]));
          C z = sigmoid(static_cast<C>(px[hidden + j]) + static_cast<C>(py[hidden + j]));
          C n = tanh(static_cast<C>(px[2 * hidden + j]) + r * static_cast<C>(py[2 * hidden + j]));
          a[j] = static_cast<T>(r), a[hidden + j] = static_cast<T>(z), a[2 * hidden + j] = static_cast<T>(n);
          out[j] = static_cast<T>(n + z * (static_cast<C>(p0[j]) - n));
        }
      }
    });
  });
}

void gru_grad(int64_t rows, int64_t hidden, const View& dx, const View& dy, const View& dh0, const View& dh,
              const View& active, const View& y, const View& h0) {
  visit_float(dh.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    parallel_for(0, rows, row_grain(hidden), [&](int64_t first, int64_t last) {
      for (int64_t k = first; k < last; ++k) {
        const T* __restrict a = active.as<T>() + k * 3 * hidden, * __restrict py =
                                                                     y.as<T>() + k * 3 * hidden + 2 * hidden;
        const T* __restrict p0 = h0.as<T>() + k * hidden, * __restrict pg = dh.as<T>() + k * hidden;
        T* __restrict gx = dx.as<T>() + k * 3 * hidden, * __restrict gy = dy.as<T>() + k * 3 * hidden, * __restrict g0 = dh0.as<T>() + k * hidden;
#pragma GCC ivdep
        for (int64_t j = 0; j < hidden; ++j) {
          C r = a[j], z = a[hidden + j], n = a[2 * hidden + j], g = pg[j];
          C dn = g * (C(1) - z) * (C(1) - n * n), dr = dn * static_cast<C>(py[j]) * r * (C(1) - r);
          C dz = g * (static_cast<C>(p0[j]) - n) * z * (C(1) - z);
          gx[j] = gy[j] = static_cast<T>(dr);
          gx[hidden + j] = gy[hidden + j] = static_cast<T>(dz);
          gx[2 * hidden + j] = static_cast<T>(dn);
          gy[2 * hidden + j] = static_cast<T>(dn * r);
          g0[j] = static_cast<T>(g * z);
        }
      }
    });
  });
}

const RnnLayerKernels* layers_of(DType dtype) {
  static const RnnLayerKernels own = {workspace_of, by_strassen_any, layer_any, layer_grad_any, weight_grad_any};
  if (dtype == DType::BFloat16) return has_bf16() ? &bf16::rnn_layers : nullptr;
  if (dtype == DType::Float16) return nullptr;
  return has_avx512() ? &avx512::rnn_layers : &own;
}
bool has_layers(DType dtype) { return layers_of(dtype) != nullptr; }
int64_t workspace(const RnnShape& shape, DType dtype) { return layers_of(dtype)->workspace(shape, dtype); }
bool by_strassen(const RnnShape& shape, DType dtype) { return layers_of(dtype)->by_strassen(shape, dtype); }
void layer(const RnnShape& shape, const RnnForward& f) { layers_of(f.out.dtype)->layer(shape, f); }
void layer_grad(const RnnShape& shape, const RnnBackward& b) { layers_of(b.dgates.dtype)->layer_grad(shape, b); }
bool weight_grad(const View& dw, const View& deltas, const View& states, int64_t gate, const RnnGroupSums* sums) {
  return layers_of(dw.dtype)->weight_grad(dw, deltas, states, gate, sums);
}

void joined(const RnnShape& shape, const View& joined, const View& x, const View& out, const View& h0) {
  Walk walk(shape);
  int64_t size = itemsize(out.dtype), state = shape.hidden * size, input = shape.input * size;
  int64_t back = shape.reverse ? 1 : -1;
  auto body = [&](int64_t t0, int64_t t1) {
    for (int64_t t = t0; t < t1; ++t)
      for (int64_t r = 0; r < walk.count(t); ++r) {
        int64_t from = t + back, row = walk.row(t, r);
        bool inside = from >= 0 && from < shape.steps && walk.count(from) > r;
        char* to = joined.as<char>() + row * (input + state);
        std::memcpy(to, x.as<char>() + row * input, static_cast<size_t>(input));
        std::memcpy(to + input, inside ? out.as<char>() + walk.row(from, r) * state : h0.as<char>() + r * state,
                    static_cast<size_t>(state));
      }
  };
  parallel_for(0, shape.steps, std::max<int64_t>(1, (1 << 18) / (shape.rows * (input + state) + 1)), body);
}

uint64_t row_hash(const char* row, int64_t bytes) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15u;
  uint64_t lanes[4] = {1, 2, 3, 4};
  auto word = [](const char* p) {
    uint64_t w;
    std::memcpy(&w, p, sizeof w);
    return w;
  };
  int64_t at = 0;
  for (; at + 32 <= bytes; at += 32)
    for (int i = 0; i < 4; ++i) lanes[i] = (lanes[i] ^ word(row + at + 8 * i)) * kFactor;
  for (; at + 8 <= bytes; at += 8) lanes[0] = (lanes[0] ^ word(row + at)) * kFactor;
  if (at < bytes) {  // part of a word
    uint64_t w = 0;
    std::memcpy(&w, row + at, static_cast<size_t>(bytes - at));
    lanes[1] = (lanes[1] ^ w) * kFactor;
  }
  uint64_t all = 0;
  for (uint64_t lane : lanes) all = (all ^ lane ^ (lane >> 29)) * kFactor;
  return all >> 32;
}

int64_t groups(const View& x, int64_t most, int64_t* group, int64_t* first) {
  int64_t rows = x.sizes[0], bytes = x.sizes[1] * itemsize(x.dtype), slots = 2, found = 0;
  while (slots < 4 * most) slots *= 2;
  constexpr int kProbes = 64;  // rows made to meet in one slot are not worth a search
  Scratch<int64_t> table(slots);
  std::fill_n(table.get(), slots, int64_t{-1});
  for (int64_t r = 0; r < rows; ++r) {
    const char* row = x.as<char>() + r * bytes;
    auto slot = static_cast<int64_t>(row_hash(row, bytes)) & (slots - 1);
    for (int probe = 0;; ++probe, slot = (slot + 1) & (slots - 1)) {
      if (probe == kProbes) return 0;
      int64_t known = table[slot];
      if (known < 0) {
        if (found == most) return 0;
        first[found] = r;
        known = table[slot] = found++;
      } else if (std::memcmp(row, x.as<char>() + first[known] * bytes, static_cast<size_t>(bytes)) != 0) {
        continue;
      }
      group[r] = known;
      break;
    }
  }
  return found;
}

}  // namespace

extern const RnnKernels rnn_kernels;
const RnnKernels rnn_kernels = {lstm,        lstm_grad, gru,        gru_grad,    has_layers, workspace,
                                by_strassen, layer,     layer_grad, weight_grad, joined,     groups};

}  // namespace rl::RL_ISA
