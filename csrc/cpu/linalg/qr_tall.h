// QR of a matrix that is much taller than wide.
//
// Note [TSQR]
// A tall matrix does not fit a cache, and its reflections read all of it again and again. Cut into pieces of rows, each
// becomes a triangular factor while it is in the cache of one thread; these, one below the other, are a matrix of far
// fewer rows, whose triangular factor is R. Q is the reflections of the pieces times those of the triangular factors.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/parallel.h"
#include "cpu/linalg/dense.h"
#include "cpu/loops/scratch.h"

namespace rl::cpu {

template <class T> class TallQr {
 public:
  static bool fits(int64_t m, int64_t n) {
    return gemm_available() && n > 0 && m * n >= 16384 && m >= 2 * height_of(m, n);
  }
  // A (m, n) of any strides.
  TallQr(int64_t m, int64_t n, const T* a, int64_t rs, int64_t cs)
      : m_(m),
        n_(n),
        a_(a),
        rs_(rs),
        cs_(cs),
        height_(height_of(m, n)),
        count_(m / height_),
        ld_(padded_ld<T>(2 * height_)) {}

  // R, and Q^T B in the columns right of it, come to stand in `r_factor`, for B (m, k) column by column. `rest`: all of
  // Q^T B is wanted, in B, but for its first n rows.
  void reflect(T* b, int64_t k, int64_t ldb, bool rest) { factor(b, k, ldb, rest, false); }
  // R alone.
  void reflect() { factor(nullptr, 0, 0, false, false); }
  // R, with the signs that reflections of whole columns would give its rows, and Q, for `expand`.
  void decompose() {
    factor(nullptr, 0, 0, false, true);
    Scratch<T> top(checked_mul(n_, n_));
    std::fill_n(top.get(), n_ * n_, T(0));
    for (int64_t j = 0; j < n_; ++j) top[j * (n_ + 1)] = T(1);
    reflect_top(count_ * n_, n_, stack_.get(), lds_, stack_tau_.get(), top.get(), n_);
    reflect_top(height_, n_, packed_.get(), ld_, tau_.get(), top.get(), n_);
    signs_.reset(n_);
    reflection_signs(n_, top.get(), n_, signs_.get());
    for (int64_t j = 0; j < n_; ++j)
      for (int64_t i = 0; i <= j; ++i) stack_[j * lds_ + i] *= signs_[i];
  }
  T* r_factor() const { return stack_.get(); }
  int64_t ld() const { return lds_; }

  // to (m, k) = Q c for c (n, k), all column by column; after `decompose`.
  void expand(const T* c, int64_t k, int64_t ldc, T* to, int64_t ldt) const {
    const int64_t stacked = count_ * n_;
    Scratch<T> tops(checked_mul(lds_, k));
    for (int64_t j = 0; j < k; ++j) {
      for (int64_t i = 0; i < n_; ++i) tops[j * lds_ + i] = signs_[i] * c[j * ldc + i];
      std::fill_n(tops.get() + j * lds_ + n_, stacked - n_, T(0));
    }
    reflect_columns(false, stacked, k, n_, stack_.get(), lds_, stack_tau_.get(), tops.get(), lds_);
    parallel_for(0, count_, 1, [&](int64_t first, int64_t last) {
      Scratch<T> x(checked_mul(ld_, k));
      for (int64_t piece = first; piece < last; ++piece) {
        const int64_t rows = rows_of_piece(piece);
        for (int64_t j = 0; j < k; ++j) {
          std::copy_n(tops.get() + j * lds_ + piece * n_, n_, x.get() + j * ld_);
          std::fill_n(x.get() + j * ld_ + n_, rows - n_, T(0));
        }
        reflect_columns(false, rows, k, n_, reflections(piece), ld_, tau_.get() + piece * n_, x.get(), ld_);
        move_matrix(rows, k, x.get(), 1, ld_, to + piece * height_, 1, ldt);
      }
    });
  }

 private:
  // So many rows that a piece fits the second cache, but several pieces; at least as many as make their triangular
  // factor profitable.
  static int64_t height_of(int64_t m, int64_t n) {
    const int64_t cached = (1 << 19) / static_cast<int64_t>(sizeof(T)) / n;
    return std::max({8 * n, int64_t{256}, std::min(cached, m / 8)});
  }
  void factor(T* b, int64_t k, int64_t ldb, bool rest, bool again) {
    const int64_t width = n_ + k, stacked = count_ * n_;
    lds_ = padded_ld<T>(stacked);
    stack_.reset(checked_mul(lds_, width));
    stack_tau_.reset(n_);
    if (again) packed_.reset(checked_mul(count_ * ld_, n_)), tau_.reset(stacked);
    const int64_t grain = std::max<int64_t>(1, 40000 / (height_ * n_ * width));
    parallel_for(0, count_, grain, [&](int64_t first, int64_t last) {
      Scratch<T> own(again ? 1 : checked_mul(ld_, width)), taus(n_);
      for (int64_t piece = first; piece < last; ++piece) {
        const int64_t i = piece * height_, rows = rows_of_piece(piece);
        T *x = again ? reflections(piece) : own.get(), *to = stack_.get() + piece * n_;
        T* tau = again ? tau_.get() + piece * n_ : taus.get();
        move_matrix(rows, n_, a_ + i * rs_, rs_, cs_, x, 1, ld_);
        if (k) move_matrix(rows, k, b + i, 1, ldb, x + n_ * ld_, 1, ld_);
        qr_columns(rows, again ? n_ : width, n_, x, ld_, tau);
        for (int64_t j = 0; j < width; ++j) {
          const int64_t used = std::min(j + 1, n_);
          std::copy_n(x + j * ld_, used, to + j * lds_);
          std::fill(to + j * lds_ + used, to + j * lds_ + n_, T(0));
        }
        if (rest) move_matrix(rows - n_, k, x + n_ * (ld_ + 1), 1, ld_, b + i + n_, 1, ldb);
      }
    });
    qr_columns(stacked, width, n_, stack_.get(), lds_, stack_tau_.get());
    for (int64_t piece = 1; rest && piece < count_; ++piece)
      move_matrix(n_, k, stack_.get() + n_ * lds_ + piece * n_, 1, lds_, b + piece * height_, 1, ldb);
  }
  int64_t rows_of_piece(int64_t piece) const { return piece + 1 < count_ ? height_ : m_ - piece * height_; }
  T* reflections(int64_t piece) const { return packed_.get() + piece * ld_ * n_; }

  int64_t m_, n_;
  const T* a_;
  int64_t rs_, cs_, height_, count_, ld_, lds_ = 0;  // the last piece has the rest: less than twice the height
  Scratch<T> packed_, tau_, stack_, stack_tau_, signs_;
};

}  // namespace rl::cpu
