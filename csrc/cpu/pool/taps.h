// Windows of any size along rows, evenly spaced: a vector of neighbouring outputs takes one element of its windows
// after the other. Where outputs are more than one position from each other, each row is first dealt out: every step-th
// element together.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/small_vector.h"
#include "cpu/loops/bytes.h"
#include "cpu/loops/scratch.h"
#include "cpu/pool/pool.h"
#include "cpu/pool/rows.h"

namespace rl::RL_ISA {
namespace {

// The windows of outputs [run.first, run.end) of a row: element q of the i-th of these is at_[q][i].
template <class T> class Taps {
 public:
  Taps(const PoolWindows& w, const EvenRun& run, int64_t step) : w_(w), run_(run), step_(step) {}

  int64_t count() const { return run_.end - run_.first; }
  // Of row (a, b) of the plane at x.
  void seek(int64_t a, int64_t b, const T* x) {
    at_.clear(), index_.clear();
    const int64_t begin = run_.begin + run_.first * step_, reach = w_.end[2][run_.first] - w_.start[2][run_.first] - 1;
    const int64_t jump = w_.dilation[2];
    // The elements of a row that its windows have at each position within a step.
    auto dealt = [&](int64_t q) { return count() + (reach - q) / step_; };
    int64_t rows = 0, capacity = 0;
    for (int64_t i = w_.start[0][a]; i < w_.end[0][a]; i += w_.dilation[0])
      for (int64_t j = w_.start[1][b]; j < w_.end[1][b]; j += w_.dilation[1]) ++rows;
    for (int64_t q = 0; q < step_ && q <= reach; ++q) capacity += dealt(q);
    if (step_ > 1 && rows * capacity > held_) memory_.reset(held_ = rows * capacity);
    T* free = memory_.get();
    for (int64_t i = w_.start[0][a]; i < w_.end[0][a]; i += w_.dilation[0])
      for (int64_t j = w_.start[1][b]; j < w_.end[1][b]; j += w_.dilation[1]) {
        const int64_t first = (i * w_.in[1] + j) * w_.in[2] + begin;
        if (step_ > 1) {
          starts_.clear();
          for (int64_t q = 0; q < step_ && q <= reach; ++q) {
            starts_.push_back(free);
            gather_items<T>(reinterpret_cast<char*>(free), reinterpret_cast<const char*>(x + first + q),
                            step_ * static_cast<int64_t>(sizeof(T)), dealt(q));
            free += dealt(q);
          }
        }
        for (int64_t k = 0; k <= reach; k += jump) {
          at_.push_back(step_ == 1 ? x + first + k : starts_[k % step_] + k / step_);
          index_.push_back(first + k);
        }
      }
  }

  void sums(T by, T* y) const {
    constexpr int64_t kBlock = 64;
    for (int64_t c = 0; c < count(); c += kBlock) {
      const int64_t n = std::min(kBlock, count() - c);
      alignas(64) T sum[kBlock] = {};
      for (const T* tap : at_)
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) sum[j] += tap[c + j];
      for (int64_t j = 0; j < n; ++j) y[c + j] = sum[j] / by;
    }
  }
  // The first maxima (NaN wins), and their positions unless `positions` is null. At least a vector's lanes of outputs.
  void maxima(T* y, int64_t* indices) const {
    constexpr int L = kLanes<T>;
    for (int64_t c = 0; c < count(); c += L) {
      c = std::min(c, count() - L);  // the last vector overlaps the one before
      Vec<T> best = load_vec(at_[0] + c);
      Vec<IndexOf<T>> which{};
      for (int64_t q = 1; q < at_.size(); ++q) {
        const Vec<T> v = load_vec(at_[q] + c);
        const auto better = ~(v <= best) & (best == best);
        best = better ? v : best;
        which = better ? Vec<IndexOf<T>>{} + static_cast<IndexOf<T>>(q) : which;
      }
      store_vec(y + c, best);
      if (indices)
        for (int j = 0; j < L; ++j) indices[c + j] = index_[which[j]] + (c + j) * step_;
    }
  }

 private:
  const PoolWindows& w_;
  const EvenRun& run_;
  int64_t step_, held_ = 0;
  Scratch<T> memory_;
  SmallVector<const T*, 8> starts_;
  SmallVector<const T*, 32> at_;
  SmallVector<int64_t, 32> index_;  // of the first output's elements, in the plane
};

}  // namespace
}  // namespace rl::RL_ISA
