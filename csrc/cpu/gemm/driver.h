// One GEMM of any strides and batch, cut into tiles of the result. The cut depends on the sizes alone.
#pragma once
#include <algorithm>
#include <climits>
#include <cstring>

#include "backend/matmul.h"
#include "base/parallel.h"
#include "cpu/gemm/blas.h"
#include "cpu/gemm/complex.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/int.h"
#include "cpu/gemm/tiny.h"
#include "cpu/gemm/tuning.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

namespace tuning = gemm_tuning;

template <class T> struct Matrix {
  T* data;
  int64_t rows, cols, rs, cs;
  Matrix transposed() const { return {data, cols, rows, cs, rs}; }
};

// Whether BLAS can read the matrix in place: rows with unit stride and a leading dimension that fits its int.
template <class T> bool row_major(const Matrix<T>& x) {
  return (x.cs == 1 || x.cols <= 1) && (x.rows <= 1 || (x.rs >= std::max<int64_t>(x.cols, 1) && x.rs <= INT_MAX)) &&
         x.cols <= INT_MAX;
}
template <class T> int leading(const Matrix<T>& x) {
  return static_cast<int>(x.rows <= 1 ? std::max<int64_t>(x.cols, 1) : x.rs);
}

inline constexpr int kOperands = 4;  // out, a, b, addend
inline constexpr int64_t kSliceK = int64_t{1} << 28;

// The batch dimensions, with those of size 1 dropped and neighbours merged where all operands allow it.
struct Batch {
  int ndim = 0;
  int64_t sizes[kMaxDims];
  int64_t strides[kOperands][kMaxDims];
  int64_t count = 1;

  Batch(const View* const* views, int n) {
    for (int i = 0; i < n - 2; ++i) {
      int64_t size = views[0]->sizes[i];
      count *= size;
      if (size == 1) continue;
      bool merge = ndim > 0;
      for (int o = 0; o < kOperands && merge; ++o)
        merge = !views[o] || strides[o][ndim - 1] == size * views[o]->strides[i];
      if (merge) {
        sizes[ndim - 1] *= size;
        for (int o = 0; o < kOperands; ++o)
          if (views[o]) strides[o][ndim - 1] = views[o]->strides[i];
      } else {
        sizes[ndim] = size;
        for (int o = 0; o < kOperands; ++o) strides[o][ndim] = views[o] ? views[o]->strides[i] : 0;
        ++ndim;
      }
    }
  }
  void offsets(int64_t index, int64_t* result) const {
    for (int o = 0; o < kOperands; ++o) result[o] = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      int64_t i = index;
      if (d) i = index % sizes[d], index /= sizes[d];
      for (int o = 0; o < kOperands; ++o) result[o] += i * strides[o][d];
    }
  }
};

template <class From, class To> void pack(const Matrix<From>& from, To* to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    const From* row = from.data + i * from.rs;
    To* out = to + i * from.cols;
    if (from.cs == 1)
      for (int64_t j = 0; j < from.cols; ++j) out[j] = static_cast<To>(row[j]);
    else
      for (int64_t j = 0; j < from.cols; ++j) out[j] = static_cast<To>(row[j * from.cs]);
  }
}

// Copies an operand, all of its batch, to contiguous matrices of To. Broadcast batch dimensions stay broadcast.
template <class From, class To>
Matrix<To> pack_batch(const Matrix<From>& from, Batch& batch, int operand, Scratch<To>& scratch) {
  int64_t area = checked_mul(from.rows, from.cols), count = 1;
  int64_t sizes[kMaxDims], old[kMaxDims];
  int ndim = 0;
  for (int d = batch.ndim - 1; d >= 0; --d) {
    int64_t& stride = batch.strides[operand][d];
    if (stride == 0) continue;
    sizes[ndim] = batch.sizes[d];
    old[ndim++] = stride;
    stride = area * count;
    count = checked_mul(count, batch.sizes[d]);
  }
  scratch.reset(checked_mul(area, count));
  int64_t row_count = count * from.rows;
  parallel_for(
      0, row_count, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, from.cols)), [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last;) {
          int64_t item = r / from.rows, row = r % from.rows, rows = std::min(from.rows - row, last - r), offset = 0;
          for (int64_t d = 0, i = item; d < ndim; i /= sizes[d++]) offset += i % sizes[d] * old[d];
          pack(Matrix<From>{from.data + offset + row * from.rs, rows, from.cols, from.rs, from.cs},
               scratch.get() + item * area + row * from.cols);
          r += rows;
        }
      });
  return {scratch.get(), from.rows, from.cols, from.cols, 1};
}

template <class T> Matrix<T> matrix(const View& v) {
  int n = v.ndim;
  return {v.as<T>(), v.sizes[n - 2], v.sizes[n - 1], v.strides[n - 2], v.strides[n - 1]};
}

// c = beta * d; c and d have the same sizes. beta is 0 where d is absent.
template <class T> void scaled_copy(const Matrix<T>& c, const T* d, int64_t drs, int64_t dcs, T beta) {
  for (int64_t i = 0; i < c.rows; ++i) {
    T* row = c.data + i * c.rs;
    if (!d) {
      for (int64_t j = 0; j < c.cols; ++j) row[j * c.cs] = T(0);
    } else if (c.cs == 1 && dcs == 1 && beta == T(1)) {
      std::memcpy(static_cast<void*>(row), d + i * drs, static_cast<size_t>(c.cols) * sizeof(T));
    } else {
      for (int64_t j = 0; j < c.cols; ++j) row[j * c.cs] = times(beta, d[i * drs + j * dcs]);
    }
  }
}

// Whether our own GEMM is the faster one: OpenBLAS is better at small ones without a transposed b, unless they are
// one of `many` that the first cache holds.
template <class T>
bool own_gemm_profitable(const Matrix<T>& c, const Matrix<T>& a, const Matrix<T>& b, bool many = false) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (c.cs != 1 && c.cols > 1) return false;
    bool small =
        static_cast<double>(c.rows) * static_cast<double>(c.cols) * static_cast<double>(a.cols) < tuning::kOpenBlasMacs;
    bool plain = row_major(b) && (row_major(a) || row_major(a.transposed()));
    many =
        many && c.rows > tuning::kCachedSide && c.cols > tuning::kCachedSide && a.cols <= tuning::kCachedDepth &&
        static_cast<double>(c.rows) * static_cast<double>(c.cols) * static_cast<double>(a.cols) < tuning::kCachedMacs;
    return (many || !(small && plain)) && cpu::gemm_available();
  }
  if constexpr (is_complex_v<T>)
    return (c.cs == 1 || c.cols == 1) && complex_gemm_profitable<typename T::value_type>(c.rows, c.cols, a.cols);
  return false;
}
template <class T> void own_multiply(const Matrix<T>& c, const Matrix<T>& a, const Matrix<T>& b, T alpha, T beta,
                                     const T* d, int64_t drs, int64_t dcs) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    cpu::gemm(cpu::Gemm<T>{.m = c.rows,
                           .n = c.cols,
                           .k = a.cols,
                           .a = a.data,
                           .ars = a.rs,
                           .acs = a.cs,
                           .b = b.data,
                           .brs = b.rs,
                           .bcs = b.cs,
                           .c = c.data,
                           .crs = c.rs,
                           .ccs = 1,
                           .alpha = alpha,
                           .beta = beta,
                           .d = d,
                           .drs = drs,
                           .dcs = dcs});
  if constexpr (is_complex_v<T>) {
    if (beta == T(0)) d = nullptr;
    if (d && (beta.imag() != 0 || (dcs != 1 && c.cols > 1))) {  // a real GEMM adds what is scaled by a real number
      scaled_copy(c, d, drs, dcs, beta);
      d = c.data;
      drs = c.rs;
      beta = T(1);
    }
    complex_gemm(c.rows, c.cols, a.cols, c.data, c.rs, a.data, a.rs, a.cs, b.data, b.rs, b.cs, alpha, beta.real(), d,
                 drs);
  }
}

// c = alpha * a @ b + beta * c, all rows unit-stride or their transposes
template <class T> void multiply(const Matrix<T>& c, const Matrix<T>& a, const Matrix<T>& b, T alpha, T beta) {
  if (own_gemm_profitable(c, a, b)) return own_multiply(c, a, b, alpha, beta, c.data, c.rs, int64_t{1});
  bool ta = !row_major(a), tb = !row_major(b);
  for (int64_t p = 0; p < a.cols; p += kSliceK) {
    int64_t k = std::min(kSliceK, a.cols - p);
    auto call = [&](auto gemm) {
      gemm(ta, tb, static_cast<int>(c.rows), static_cast<int>(c.cols), static_cast<int>(k), alpha, a.data + p * a.cs,
           leading(ta ? a.transposed() : a), b.data + p * b.rs, leading(tb ? b.transposed() : b), p ? T(1) : beta,
           c.data, leading(c));
    };
    if constexpr (blas::has<T>) call([](auto... x) { blas::gemm(x...); });
    else call([](auto... x) { int_gemm<T>(x...); });
  }
}

// The result's tiles: (rows, cols) for GEMMs.
struct Tiles {
  int64_t rows, cols;
};
inline Tiles choose_tiles(int64_t m, int64_t n, int64_t k) {
  double macs = static_cast<double>(m) * n * k;
  if (macs <= tuning::kOneTileMacs && m <= INT_MAX && n <= INT_MAX) return {m, n};
  int64_t edge = 512;
  if (macs < tuning::kEdge64Macs) edge = 64;
  else if (macs < tuning::kEdge128Macs) edge = 128;
  else if (macs < tuning::kEdge256Macs) edge = 256;
  int64_t area = edge * edge;
  int64_t rows = std::min(m, edge), cols = std::min(n, edge);
  if (rows < edge) cols = std::min(n, area / rows / tuning::kTileMultiple * tuning::kTileMultiple);
  if (cols < edge) rows = std::min(m, area / cols / tuning::kTileMultiple * tuning::kTileMultiple);
  return {rows, cols};
}

// GEMMs whose result is small and whose sum is long: slices of the sum in parallel, added in order.
template <class T> bool sliceable(const Matrix<T>& c, const Matrix<T>& a, const Matrix<T>&) {
  int64_t area = c.rows * c.cols, k = a.cols;
  return c.rows <= tuning::kSlicedSide && c.cols <= tuning::kSlicedSide && k >= tuning::kSlicedDepth &&
         static_cast<double>(area) * static_cast<double>(k) >= tuning::kSlicedMacs &&
         k >= tuning::kSlicedAspect * std::max(c.rows, c.cols);
}
template <class T> bool sliced(const Matrix<T>& c, const Matrix<T>& a, const Matrix<T>& b, T alpha, T beta) {
  if (!sliceable(c, a, b)) return false;
  int64_t area = c.rows * c.cols, k = a.cols;
  int64_t slice = std::max<int64_t>(
      {tuning::kSliceLeast, (k + tuning::kMostSlices - 1) / tuning::kMostSlices, tuning::kSliceMacs / area});
  int64_t slices = (k + slice - 1) / slice;
  if (slices < 2) return false;
  Scratch<T> parts(slices * area);
  parallel_for(0, slices, 1, [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) {
      int64_t p = s * slice, len = std::min(slice, k - p);
      Matrix<T> as{a.data + p * a.cs, a.rows, len, a.rs, a.cs}, bs{b.data + p * b.rs, len, b.cols, b.rs, b.cs};
      multiply(Matrix<T>{parts.get() + s * area, c.rows, c.cols, c.cols, 1}, as, bs, T(1), T(0));
    }
  });
  for (int64_t s = 1; s < slices; ++s)
    for (int64_t i = 0; i < area; ++i) parts[i] = plus(parts[i], parts[s * area + i]);
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.cols; ++j) {
      T& out = c.data[i * c.rs + j * c.cs];
      T sum = times(alpha, parts[i * c.cols + j]);
      out = beta == T(0) ? sum : plus(sum, times(beta, out));
    }
  return true;
}

template <class T> struct GemmPlan {
  Matrix<T> c, a, b;
  const T* d = nullptr;  // the addend, null when absent or when it is c itself
  int64_t drs = 0, dcs = 0;
  T alpha, beta;

  // The tile at (i, j) of the result. The addend goes in first: the GEMM is added while the tile is in cache.
  void tile(const int64_t* offsets, int64_t i, int64_t rows, int64_t j, int64_t cols) const {
    Matrix<T> ct{c.data + offsets[0] + i * c.rs + j * c.cs, rows, cols, c.rs, c.cs};
    Matrix<T> at{a.data + offsets[1] + i * a.rs, rows, a.cols, a.rs, a.cs};
    Matrix<T> bt{b.data + offsets[2] + j * b.cs, b.rows, cols, b.rs, b.cs};
    const T* dt = d ? d + offsets[3] + i * drs + j * dcs : nullptr;
    bool direct = row_major(ct);
    Scratch<T> scratch;
    Matrix<T> target = ct;
    T weight = beta;
    if (!direct) {
      scratch.reset(rows * cols);
      target = {scratch.get(), rows, cols, cols, 1};
      if (!d && beta != T(0)) scaled_copy(target, ct.data, ct.rs, ct.cs, beta), weight = T(1);
    }
    if (d) scaled_copy(target, dt, drs, dcs, beta), weight = T(1);
    multiply(target, at, bt, alpha, weight);
    if (!direct) scaled_copy(ct, target.data, target.rs, target.cs, T(1));
  }

  // The longer side of a tiny result goes along the vectors, which have its length.
  bool is_tiny() const {
    const int64_t longer = std::max(c.rows, c.cols);
    return a.cols <= kTinySum && (longer == 2 || longer == 3 || longer == 4 || longer == 8);
  }
  void tiny(const int64_t* offsets) const {
    T* to = c.data + offsets[0];
    const T *add = beta == T(0) ? nullptr
                   : d          ? d + offsets[3]
                                : to,
            *xa = a.data + offsets[1], *xb = b.data + offsets[2];
    const int64_t rs = d ? drs : c.rs, cs = d ? dcs : c.cs;
    auto call = [&](auto run) {
      if (c.rows > c.cols)  // c^T = b^T @ a^T
        run(c.cols, a.cols, xb, b.cs, b.rs, xa, a.cs, a.rs, to, c.cs, c.rs, add, cs, rs, alpha, beta);
      else run(c.rows, a.cols, xa, a.rs, a.cs, xb, b.rs, b.cs, to, c.rs, c.cs, add, rs, cs, alpha, beta);
    };
    switch (std::max(c.rows, c.cols)) {
      case 2: return call(tiny_gemm<2, T>);
      case 3: return call(tiny_gemm<3, T>);
      case 4: return call(tiny_gemm<4, T>);
      default: return call(tiny_gemm<8, T>);
    }
  }

  // One element: sums of every sixteenth or eighth product, then their sum.
  bool is_inner() const { return c.rows == 1 && c.cols == 1 && a.cols <= kInnerSum && a.cs == 1 && b.rs == 1; }
  void inner(const int64_t* offsets) const {
    constexpr int64_t kSums = 64 / sizeof(T);
    const T *x = a.data + offsets[1], *y = b.data + offsets[2];
    T sums[kSums] = {}, rest = T(0);
    int64_t i = 0;
    for (; i + kSums <= a.cols; i += kSums)
      for (int64_t j = 0; j < kSums; ++j) sums[j] += x[i + j] * y[i + j];
    for (; i < a.cols; ++i) rest += x[i] * y[i];
    for (int64_t half = kSums / 2; half; half /= 2)
      for (int64_t j = 0; j < half; ++j) sums[j] += sums[j + half];
    T* to = c.data + offsets[0];
    const T addend = beta == T(0) ? T(0) : beta * (d ? d[offsets[3]] : *to);
    *to = alpha * (sums[0] + rest) + addend;
  }

  // A row or column of the result: y = matrix @ x.
  void gemv_range(const int64_t* offsets, int64_t first, int64_t count) const {
    bool column = c.cols == 1;
    Matrix<T> m = column ? a : b.transposed();
    int64_t ys = column ? c.rs : c.cs, xs = column ? b.rs : a.cs, ds = column ? drs : dcs;
    T* y = c.data + offsets[0] + first * ys;
    const T* x = column ? b.data + offsets[2] : a.data + offsets[1];
    m.data += offsets[column ? 1 : 2] + first * m.rs;
    m.rows = count;
    if (d) scaled_copy(Matrix<T>{y, 1, count, 0, ys}, d + offsets[3] + first * ds, 0, ds, beta);
    else scaled_copy(Matrix<T>{y, 1, count, 0, ys}, beta == T(0) ? nullptr : y, 0, ys, beta);
    if constexpr (blas::has<T>) {
      bool trans = !row_major(m);
      Matrix<T> stored = trans ? m.transposed() : m;
      for (int64_t p = 0; p < m.cols; p += kSliceK) {
        int64_t k = std::min(kSliceK, m.cols - p);
        int r = static_cast<int>(trans ? k : count), q = static_cast<int>(trans ? count : k);
        blas::gemv(trans, r, q, alpha, m.data + p * m.cs, leading(stored), x + p * xs, static_cast<int>(xs), T(1), y,
                   static_cast<int>(ys));
      }
    }
  }
};

// A batch of GEMMs, brought step by step into the form that an algorithm takes. Each `run_*` says whether it was its.
template <class T> struct GemmBatch {
  GemmPlan<T> p;
  Batch batch;
  Scratch<T> packed_a, packed_b;

  int64_t rows() const { return p.c.rows; }
  int64_t cols() const { return p.c.cols; }
  int64_t depth() const { return p.a.cols; }
  double macs() const {
    return static_cast<double>(rows()) * static_cast<double>(cols()) * static_cast<double>(depth());
  }

  // body(offsets of the operands) of each GEMM in [first, last)
  template <class Body> void each(int64_t first, int64_t last, Body body) const {
    for (int64_t t = first; t < last; ++t) {
      int64_t offsets[kOperands];
      batch.offsets(t, offsets);
      body(offsets);
    }
  }

  // Nothing is summed: c = beta * addend.
  bool run_without_sum() const {
    if (depth() != 0 && p.alpha != T(0)) return false;
    each(0, batch.count, [&](const int64_t* o) {
      Matrix<T> c = p.c;
      c.data += o[0];
      const T* d = p.d ? p.d + o[3] : p.beta == T(0) ? nullptr : c.data;
      scaled_copy(c, d, p.d ? p.drs : c.rs, p.d ? p.dcs : c.cs, p.beta);
    });
    return true;
  }

  // One matrix b for a whole batch of a: a single taller GEMM, if the rows of a follow each other. Where they do
  // not, as after a transpose, copying a costs less than many GEMMs of few rows.
  void pack_rows_of_one_b() {
    for (int d = 0; d < batch.ndim; ++d)
      if (batch.strides[2][d] != 0) return;
    const bool wide = cols() >= tuning::kPackSide && depth() >= tuning::kPackSide;
    if (batch.ndim == 0 || rows() >= tuning::kPackRows || !wide || p.c.cs != 1) return;
    int64_t expected = rows() * p.a.rs;
    bool follows = true;
    for (int d = batch.ndim - 1; d >= 0; expected *= batch.sizes[d--])
      follows = follows && batch.strides[1][d] == expected;
    if (!follows) p.a = pack_batch(p.a, batch, 1, packed_a);
  }
  void join_rows() {
    if (batch.ndim == 0 || batch.strides[2][batch.ndim - 1] != 0) return;
    const int last = batch.ndim - 1;
    const int64_t m = rows(), size = batch.sizes[last];
    auto follows = [&](int o, int64_t rs) { return m == 1 || batch.strides[o][last] == m * rs; };
    if (!follows(0, p.c.rs) || !follows(1, p.a.rs) || (p.d && !follows(3, p.drs))) return;
    if (m == 1) {
      p.c.rs = batch.strides[0][last];
      p.a.rs = batch.strides[1][last];
      if (p.d) p.drs = batch.strides[3][last];
    }
    p.c.rows = p.a.rows = m * size;
    batch.count /= size;
    --batch.ndim;
  }
  // A column-major result is the row-major one of out^T = b^T @ a^T.
  void make_row_major() {
    if (p.c.cs != 1 && cols() > 1 && row_major(p.c.transposed())) {
      Matrix<T> a = p.a;
      p.c = p.c.transposed();
      p.a = p.b.transposed();
      p.b = a.transposed();
      std::swap(p.drs, p.dcs);
      for (int d = 0; d < batch.ndim; ++d) std::swap(batch.strides[1][d], batch.strides[2][d]);
    }
    // Strides of dimensions of size 1 say nothing.
    if (rows() == 1 && cols() == 1) p.c.rs = p.c.cs = 1;
    if (depth() == 1) {
      if (rows() == 1) p.a.rs = p.a.cs = 1;
      if (cols() == 1) p.b.rs = p.b.cs = 1;
    }
  }

  bool run_tiny() const {
    if (batch.count < tuning::kBatchOfTiny) return false;
    const int64_t m = rows(), n = cols(), k = depth();
    auto deal = [&](auto body) {
      parallel_for(0, batch.count, tuning::kTinyMacsPerTask / (m * n * k + tuning::kTinyMacsPerCall),
                   [&](int64_t first, int64_t last) { each(first, last, body); });
      return true;
    };
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      if (p.is_inner()) return deal([&](const int64_t* o) { p.inner(o); });
      if (p.is_tiny()) return deal([&](const int64_t* o) { p.tiny(o); });
    } else if constexpr (is_integer<T> && !std::is_same_v<T, bool>) {
      if (m * n <= kTinyMacs && m * n * k <= kTinyMacs)
        return deal([&](const int64_t* o) {
          T* to = p.c.data + o[0];
          const T* add = p.beta == T(0) ? nullptr : p.d ? p.d + o[3] : to;
          int_tiny<T>(m, n, k, p.alpha, p.a.data + o[1], p.a.rs, p.a.cs, p.b.data + o[2], p.b.rs, p.b.cs, to, p.c.rs,
                      p.c.cs, p.beta, add, p.d ? p.drs : p.c.rs, p.d ? p.dcs : p.c.cs);
        });
    }
    return false;
  }

  static bool fits(int64_t stride) { return stride >= 1 && stride <= INT_MAX; }
  bool is_gemv() const {
    const bool one_row = rows() == 1, one_col = cols() == 1;
    if (!blas::has<T> || !(one_row || one_col) || !fits(one_col ? p.c.rs : p.c.cs)) return false;
    // A large matrix with rows along the sum: our dot products ask for the next rows ahead.
    const Matrix<T> matrix = one_col ? p.a : p.b.transposed();
    const bool along = matrix.cs == 1 && matrix.rs > 1;
    return !(p.c.cs == 1 && one_row != one_col && macs() >= tuning::kOwnGemvMacs && along &&
             own_gemm_profitable(p.c, p.a, p.b));
  }

  bool run_own() const {
    if (!own_gemm_profitable(p.c, p.a, p.b, batch.count > 1)) return false;
    if (batch.count == 1 && !p.d && sliceable(p.c, p.a, p.b)) return false;
    auto body = [&](int64_t first, int64_t last) {
      each(first, last, [&](const int64_t* o) {
        Matrix<T> c = p.c, a = p.a, b = p.b;
        c.data += o[0];
        a.data += o[1];
        b.data += o[2];
        const T* d = p.d ? p.d + o[3] : c.data;
        own_multiply(c, a, b, p.alpha, p.beta, d, p.d ? p.drs : c.rs, p.d ? p.dcs : int64_t{1});
      });
    };
    // A few large GEMMs are cut up one after the other, many small ones are dealt out whole.
    const double work = macs() * (is_complex_v<T> ? 4 : 1);
    if (batch.count == 1 || work > tuning::kMacsToSplit) body(0, batch.count);
    else
      parallel_for(0, batch.count,
                   std::max<int64_t>(1, static_cast<int64_t>(tuning::kMacsPerTask / (work + tuning::kMacsPerCall))),
                   body);
    return true;
  }

  // What BLAS cannot read in place is copied; x of a matrix-vector product needs only a stride that fits.
  void pack_for_blas(bool gemv) {
    auto readable = [](const Matrix<T>& x) { return row_major(x) || row_major(x.transposed()); };
    const bool x_is_b = gemv && cols() == 1, x_is_a = gemv && cols() != 1;
    if (x_is_a ? !fits(p.a.cs) : !readable(p.a)) p.a = pack_batch(p.a, batch, 1, packed_a);
    if (x_is_b ? !fits(p.b.rs) : !readable(p.b)) p.b = pack_batch(p.b, batch, 2, packed_b);
  }

  void run_gemv() const {
    constexpr int64_t multiple = tuning::kGemvMultiple;
    const int64_t length = cols() == 1 ? rows() : cols(), k = depth();
    int64_t block = std::min<int64_t>(
        length, std::max(multiple, (tuning::kGemvMacsPerBlock / k + multiple - 1) / multiple * multiple));
    block = std::min<int64_t>(block, INT_MAX / 2);
    const int64_t blocks = (length + block - 1) / block;
    const int64_t grain = std::max<int64_t>(1, tuning::kGemvMacsPerTask / std::max<int64_t>(1, block * k));
    auto body = [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        int64_t o[kOperands], start = t % blocks * block;
        batch.offsets(t / blocks, o);
        p.gemv_range(o, start, std::min(block, length - start));
      }
    };
    if (batch.count * blocks == 1) body(0, 1);
    else parallel_for(0, batch.count * blocks, grain, body);
  }

  void run_tiles() const {
    const int64_t m = rows(), n = cols(), k = depth();
    if (batch.count == 1 && !p.d && batch.ndim == 0 && sliced(p.c, p.a, p.b, p.alpha, p.beta)) return;
    const Tiles size = choose_tiles(m, n, k);
    const int64_t tm = (m + size.rows - 1) / size.rows, tn = (n + size.cols - 1) / size.cols, tiles = tm * tn;
    if (tiles * batch.count == 1) {
      int64_t o[kOperands];
      batch.offsets(0, o);
      return p.tile(o, 0, m, 0, n);
    }
    const double work = static_cast<double>(size.rows) * size.cols * k;
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(tuning::kMacsPerTask / work));
    parallel_for(0, checked_mul(tiles, batch.count), grain, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        int64_t o[kOperands], i = t % tiles / tn * size.rows, j = t % tn * size.cols;
        batch.offsets(t / tiles, o);
        p.tile(o, i, std::min(size.rows, m - i), j, std::min(size.cols, n - j));
      }
    });
  }
};

// out = alpha * a @ b + beta * addend
template <class T>
void matmul_as(const View& out, const View& va, const View& vb, T alpha, T beta, const View* addend) {
  const bool in_place = addend && addend->data == out.data;
  if (!addend) beta = T(0);
  if (beta == T(0)) addend = nullptr;
  if (in_place) addend = &out;
  const View* views[kOperands] = {&out, &va, &vb, addend};
  GemmBatch<T> g{.p = {.c = matrix<T>(out), .a = matrix<T>(va), .b = matrix<T>(vb), .alpha = alpha, .beta = beta},
                 .batch = Batch(views, out.ndim)};
  if (g.batch.count == 0 || g.rows() == 0 || g.cols() == 0) return;
  if (addend && !in_place) {
    g.p.d = addend->as<T>();
    g.p.drs = addend->strides[out.ndim - 2];
    g.p.dcs = addend->strides[out.ndim - 1];
  }
  if (g.run_without_sum()) return;
  g.pack_rows_of_one_b();
  g.join_rows();
  g.make_row_major();
  if (g.run_tiny()) return;
  const bool gemv = g.is_gemv();
  if (!gemv && g.run_own()) return;
  g.pack_for_blas(gemv);
  if (gemv) g.run_gemv();
  else g.run_tiles();
}

}  // namespace
}  // namespace rl::RL_ISA
