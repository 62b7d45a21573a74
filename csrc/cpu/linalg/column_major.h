// Batches of matrices in the order LAPACK wants: column-major, in place where the view already is.
#pragma once
#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <utility>

#include "backend/linalg.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/gemm/blas.h"
#include "cpu/linalg/dense.h"
#include "cpu/linalg/lapack.h"
#include "cpu/loops/scratch.h"

namespace rl::cpu {

// Position of batch item `index` in a view whose last `inner` dimensions belong to the item.
inline int64_t batch_offset(const View& v, int64_t index, int inner) {
  int64_t offset = 0;
  for (int d = v.ndim - inner - 1; d >= 0; --d) {
    if (d == 0) return offset + index * v.strides[0];
    offset += index % v.sizes[d] * v.strides[d];
    index /= v.sizes[d];
  }
  return offset;
}
inline int64_t batch_count(const View& v, int inner) {
  int64_t n = 1;
  for (int d = 0; d < v.ndim - inner; ++d) n *= v.sizes[d];
  return n;
}
inline int rows_of(const View& v) {
  CHECK(v.sizes[v.ndim - 2] <= INT_MAX / 2, Runtime, "linalg: a matrix of ", v.sizes[v.ndim - 2], " rows is too large");
  return static_cast<int>(v.sizes[v.ndim - 2]);
}
inline int cols_of(const View& v) {
  CHECK(v.sizes[v.ndim - 1] <= INT_MAX / 2, Runtime, "linalg: a matrix of ", v.sizes[v.ndim - 1],
        " columns is too large");
  return static_cast<int>(v.sizes[v.ndim - 1]);
}

// to (rows, cols) = from, by registers where there is enough of it for them.
template <class T>
void copy_matrix(int64_t rows, int64_t cols, const T* from, int64_t frs, int64_t fcs, T* to, int64_t trs, int64_t tcs) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    if (std::min(rows, cols) >= 16 && gemm_available()) return move_matrix(rows, cols, from, frs, fcs, to, trs, tcs);
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t i = 0; i < rows; ++i) to[i * trs + j * tcs] = from[i * frs + j * fcs];
}

enum class Access { Read, Write, ReadWrite };

// One matrix of a batch, column-major. Results reach the view when the object ends, unless it is Read.
// Read matrices that a routine overwrites are copied always (`own`).
template <class T> class ColMajor {
 public:
  ColMajor(const View& v, int64_t index, Access access, bool own = false)
      : rows_(rows_of(v)), cols_(cols_of(v)), rs_(v.strides[v.ndim - 2]), cs_(v.strides[v.ndim - 1]), access_(access) {
    view_ = v.as<T>() + batch_offset(v, index, 2);
    bool in_order = (rs_ == 1 || rows_ <= 1) && (cols_ <= 1 || (cs_ >= std::max(rows_, 1) && cs_ <= INT_MAX));
    if (in_order && !own) {
      data_ = view_;
      ld_ = cols_ <= 1 ? std::max(rows_, 1) : static_cast<int>(cs_);
      access_ = Access::Read;
      return;
    }
    ld_ = std::max(rows_, 1);
    scratch_.reset(checked_mul(rows_, cols_));
    data_ = scratch_.get();
    if (access != Access::Write) copy_matrix(rows_, cols_, view_, rs_, cs_, data_, 1, ld_);
  }
  ~ColMajor() {
    if (access_ != Access::Read) copy_matrix(rows_, cols_, data_, 1, ld_, view_, rs_, cs_);
  }
  ColMajor(const ColMajor&) = delete;
  ColMajor& operator=(const ColMajor&) = delete;
  T* data() const { return data_; }
  int ld() const { return ld_; }
  T& at(int64_t i, int64_t j) const { return data_[j * ld_ + i]; }

 private:
  int rows_, cols_, ld_;
  int64_t rs_, cs_;
  Access access_;
  T *view_, *data_;
  Scratch<T> scratch_;
};

// One vector of a batch, contiguous.
template <class T> class Column {
 public:
  Column(const View& v, int64_t index, Access access)
      : n_(v.sizes[v.ndim - 1]), stride_(v.strides[v.ndim - 1]), access_(access), scratch_(n_) {
    view_ = v.as<T>() + batch_offset(v, index, 1);
    if (access != Access::Write)
      for (int64_t i = 0; i < n_; ++i) scratch_[i] = view_[i * stride_];
  }
  ~Column() {
    if (access_ == Access::Read) return;
    for (int64_t i = 0; i < n_; ++i) view_[i * stride_] = scratch_[i];
  }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;
  T* data() const { return scratch_.get(); }

 private:
  int64_t n_, stride_;
  Access access_;
  T* view_;
  Scratch<T> scratch_;
};

// A view with its last two dimensions exchanged.
struct Transposed {
  int64_t sizes[kMaxDims], strides[kMaxDims];
  View view;
  explicit Transposed(const View& v) : view(v) {
    std::copy_n(v.sizes, v.ndim, sizes);
    std::copy_n(v.strides, v.ndim, strides);
    std::swap(sizes[v.ndim - 1], sizes[v.ndim - 2]);
    std::swap(strides[v.ndim - 1], strides[v.ndim - 2]);
    view.sizes = sizes;
    view.strides = strides;
  }
  Transposed(const Transposed&) = delete;
};

// One matrix of a batch, row by row: in place where the view's rows are, else in memory of its own, which `put` writes
// back. For the routines of dense.h.
template <class T> class RowMajor {
 public:
  RowMajor(const View& v, int64_t index)
      : rows_(v.sizes[v.ndim - 2]),
        cols_(v.sizes[v.ndim - 1]),
        rs_(v.strides[v.ndim - 2]),
        cs_(v.strides[v.ndim - 1]),
        view_(v.as<T>() + batch_offset(v, index, 2)),
        in_place_((cs_ == 1 || cols_ == 1) && rs_ >= cols_) {
    if (in_place_) return;
    data_.reset(checked_mul(rows_, ld()));
    move_matrix(rows_, cols_, view_, rs_, cs_, data_.get(), ld(), 1);
  }
  void put() const {
    if (!in_place_) move_matrix(rows_, cols_, data_.get(), ld(), 1, view_, rs_, cs_);
  }
  // The view becomes a matrix (rows, cols) that stands elsewhere.
  void put(const T* from, int64_t ld) const { move_matrix(rows_, cols_, from, ld, 1, view_, rs_, cs_); }
  T* data() const { return in_place_ ? view_ : data_.get(); }
  int64_t ld() const { return in_place_ ? rs_ : cols_ == 1 ? 1 : padded_ld<T>(cols_); }

 private:
  int64_t rows_, cols_, rs_, cs_;
  T* view_;
  bool in_place_;
  Scratch<T> data_;
};
constexpr int64_t kDense = 48;      // columns from which on blocked decompositions (GEMM) are profitable
constexpr int64_t kEliminated = 9;  // the same of elimination, whose small blocks stay in registers
// Whether a matrix of n columns goes to them, of which those from `from` on should.
template <class T> bool is_dense(int64_t n, int64_t from = kDense) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) return n >= from && gemm_available();
  return false;
}

// What iterations of LAPACK may never return from, or refuse.
enum class Outlier : uint8_t { None, Inf, NaN };
// The worst number of matrix i of a batch.
template <class T> Outlier outlier(const View& v, int64_t i) {
  using R = lapack::real_t<T>;
  const T* p = v.as<T>() + batch_offset(v, i, 2);
  const int64_t rows = v.sizes[v.ndim - 2], cols = v.sizes[v.ndim - 1], rs = v.strides[v.ndim - 2],
                cs = v.strides[v.ndim - 1];
  R sum = 0;  // x - x is 0, or NaN
  bool nan = false;
  auto look = [&](R x) { sum += x - x, nan |= x != x; };
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      const T x = p[r * rs + c * cs];
      look(std::real(x));
      if constexpr (lapack::is_complex<T>) look(std::imag(x));
    }
  return nan ? Outlier::NaN : sum == 0 ? Outlier::None : Outlier::Inf;
}

// Whether a matrix (m, n), column by column, can be reflected as they are: finite, and with squares that a T holds.
// Those above the diagonal do not count if only the `lower` half is asked about.
template <class T> bool moderate(int64_t m, int64_t n, const T* a, int64_t ld, bool lower = false) {
  using R = lapack::real_t<T>;
  R largest = 0;
  bool finite = true;
  auto look = [&](R size) {
    finite &= size <= std::numeric_limits<R>::max();
    largest = std::max(largest, size);
  };
  for (int64_t j = 0; j < n; ++j) {
    const int64_t first = lower ? j : 0;
    if constexpr (!lapack::is_complex<T>)
      if (gemm_available()) {
        look(largest_of(m - first, a + j * ld + first));
        continue;
      }
    for (int64_t i = first; i < m; ++i) look(std::abs(a[j * ld + i]));
  }
  const R limit = sizeof(R) == 4 ? R(1e12) : R(1e120);
  return finite && largest < limit && largest > 1 / limit;
}

template <class T> T& item(const View& v, int64_t index) { return v.as<T>()[batch_offset(v, index, 0)]; }

// f(index) over the batch, in parallel when an item's work (in floating-point operations) leaves enough of it.
template <class F> void for_batch(int64_t count, double flops, F f) {
  blas::single_threaded();
  int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(5e4 / std::max(flops, 500.0)));
  parallel_for(0, count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) f(i);
  });
}

// Calls f(type_tag<T>) for the four types LAPACK knows.
template <class F> void visit_lapack(DType t, F f) {
  switch (t) {
    case DType::Float32: return f(type_tag<float>{});
    case DType::Float64: return f(type_tag<double>{});
    case DType::Complex64: return f(type_tag<std::complex<float>>{});
    case DType::Complex128: return f(type_tag<std::complex<double>>{});
    default: fail(ErrorKind::Runtime, "linalg: there is no decomposition for '", info(t).legacy, "'");
  }
}

// The optimal workspace that a query (lwork = -1) wrote.
template <class T> int work_size(T query) { return std::max(1, static_cast<int>(std::real(query))); }
// f(work, lwork) is asked for its best size first.
template <class T, class F> void with_work(F f) {
  T query;
  f(&query, -1);
  int size = work_size(query);
  Scratch<T> work(size);
  f(work.get(), size);
}

}  // namespace rl::cpu
