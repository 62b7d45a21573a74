// How a reduction walks its input: dimensions sorted, merged and split into kept and reduced ones.
#pragma once
#include <algorithm>

#include "backend/view.h"
#include "base/parallel.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

inline constexpr int64_t kBlock = 1024;       // elements of a row summed by one block kernel
inline constexpr int64_t kWidth = 512;        // outputs computed side by side
inline constexpr int64_t kPieceWork = 32768;  // elements worth a piece of a parallel loop
inline constexpr int64_t kMaxChunks = 64;     // pieces one output's elements are cut into

// How many rows of n < 32 columns run as one: they are a whole number of registers, 64 to 248 columns.
inline int64_t rows_in_group(int64_t n) { return 8 * std::max<int64_t>(1, 16 / n); }

// Dimensions of size 1 are dropped, neighbours that can be walked as one are merged; in each group the
// dimension with the smallest input stride comes first.
struct ReducePlan {
  int kept = 0, reduced = 0;
  int64_t outputs = 1, count = 1;
  bool columns = false;  // outputs side by side in memory: accumulate whole rows of them
  int64_t ksize[kMaxDims], kin[kMaxDims], kout[kMaxDims], kout2[kMaxDims];
  int64_t rsize[kMaxDims], rin[kMaxDims];

  // One reduced dimension, whose elements have stride `stride`; nothing is known of the kept ones.
  explicit ReducePlan(int64_t stride) : reduced(1) { rin[0] = stride; }
  // `out2` is a second result of the same shape, or null.
  ReducePlan(const View& out, const View& in, const View* out2 = nullptr) {
    for (int i = in.ndim - 1; i >= 0; --i) {
      int64_t n = in.sizes[i], s = in.strides[i];
      if (n == 1) continue;
      if (out.sizes[i] == 1) {
        count *= n;
        int j = reduced++;
        for (; j > 0 && reach(rin[j - 1]) > reach(s); --j) rsize[j] = rsize[j - 1], rin[j] = rin[j - 1];
        rsize[j] = n, rin[j] = s;
      } else {
        outputs *= n;
        int j = kept++;
        for (; j > 0 && reach(kin[j - 1]) > reach(s); --j) move_kept(j, j - 1);
        ksize[j] = n, kin[j] = s, kout[j] = out.strides[i], kout2[j] = out2 ? out2->strides[i] : 0;
      }
    }
    if (reduced > 1) {
      int last = 0;
      for (int i = 1; i < reduced; ++i) {
        if (rin[i] == rin[last] * rsize[last]) {
          rsize[last] *= rsize[i];
        } else {
          ++last, rsize[last] = rsize[i], rin[last] = rin[i];
        }
      }
      reduced = last + 1;
    }
    if (kept > 1) {
      int last = 0;
      for (int i = 1; i < kept; ++i) {
        if (kin[i] == kin[last] * ksize[last] && kout[i] == kout[last] * ksize[last] &&
            kout2[i] == kout2[last] * ksize[last]) {
          ksize[last] *= ksize[i];
        } else {
          move_kept(++last, i);
        }
      }
      kept = last + 1;
    }
    if (reduced == 0) rsize[0] = 1, rin[0] = 1, reduced = 1;
    if (kept == 0) ksize[0] = 1, kin[0] = 0, kout[0] = 0, kout2[0] = 0, kept = 1;
    columns = ksize[0] > 1 && (reach(kin[0]) < reach(rin[0]) || count < 12) && count > 0;
    if (!columns) width = std::clamp<int64_t>(kPieceWork / std::max<int64_t>(count, 1), 1, kWidth);
  }

  // How far steps of a stride lead; what an expanded dimension repeats counts as furthest, so that others are walked
  // inside it.
  static int64_t reach(int64_t stride) { return stride ? stride : INT64_MAX; }
  void move_kept(int to, int from) {
    ksize[to] = ksize[from], kin[to] = kin[from], kout[to] = kout[from], kout2[to] = kout2[from];
  }

  // A unit is some outputs along the first kept dimension: kWidth columns, or as many rows as make a piece.
  int64_t width = kWidth;
  int64_t units_per_line() const { return (ksize[0] + width - 1) / width; }
  struct Unit {
    int64_t in, out, out2, n;  // offsets in elements; number of outputs
  };
  Unit unit(int64_t index) const {
    int64_t per_line = units_per_line(), first = (index % per_line) * width;
    Unit u{first * kin[0], first * kout[0], first * kout2[0], std::min(width, ksize[0] - first)};
    int64_t line = index / per_line;
    for (int d = 1; d < kept && line; ++d) {
      int64_t i = line % ksize[d];
      line /= ksize[d];
      u.in += i * kin[d], u.out += i * kout[d], u.out2 += i * kout2[d];
    }
    return u;
  }

  // f(offset, n): runs of the reduced elements numbered [r0, r1), each along the first reduced dimension.
  template <class F> void runs(int64_t r0, int64_t r1, F&& f) const {
    if (reduced == 1) {
      f(r0 * rin[0], r1 - r0);
      return;
    }
    int64_t index[kMaxDims], offset = 0, rest = r0;
    for (int d = 0; d < reduced; ++d) {
      index[d] = rest % rsize[d];
      rest /= rsize[d];
      offset += index[d] * rin[d];
    }
    while (r0 < r1) {
      int64_t n = std::min(rsize[0] - index[0], r1 - r0);
      f(offset, n);
      r0 += n;
      offset -= index[0] * rin[0];
      index[0] = 0;
      for (int d = 1; d < reduced; ++d) {
        offset += rin[d];
        if (++index[d] < rsize[d]) break;
        offset -= rsize[d] * rin[d];
        index[d] = 0;
      }
    }
  }

  // Do `rows` rows of n columns follow each other in memory, too narrow to fill registers one by one?
  bool narrow_rows(int64_t n, int64_t rows) const {
    return columns && reduced == 1 && kin[0] == 1 && rin[0] == n && n < 32 && rows >= 4 * rows_in_group(n);
  }

  // Lines of outputs, each of a few rows one after the other: a small dimension in the middle or in front. Not so if
  // the outputs do not follow each other.
  bool short_lines() const {
    if (!columns || kept > 2 || reduced > 1 || count > 32 || kin[0] != 1 || kout[0] != 1 || rin[0] < ksize[0])
      return false;
    return kept == 1 || (kout[1] == ksize[0] && kin[1] >= (count - 1) * rin[0] + ksize[0]);
  }

  // How the work is cut: by outputs, and when there are few of them also by reduced elements.
  int64_t lines() const { return ksize[0] ? outputs / ksize[0] : 0; }
  int64_t chunks(int64_t units) const {
    int64_t total = outputs * count;
    if (units >= 16 || total <= 2 * kPieceWork) return 1;
    return std::max<int64_t>(1, std::min({total / units / kPieceWork, kMaxChunks, count}));
  }
};

// The cut of short lines: some of them at once, or pieces of one. f(in, out, lines, columns, safe) gets offsets, and
// how many of its lines may be read a register beyond their end because the input goes on there.
struct ShortLines {
  static constexpr int64_t kMost = kWidth - 64;  // so many results, and room for a register
  int64_t n, rows, lines, line, group, width;
  // `dense`: what a unit reads must lie in one run of at most kBlock, room for a register included.
  ShortLines(const ReducePlan& plan, bool dense)
      : n(plan.ksize[0]),
        rows(plan.count),
        lines(plan.kept == 2 ? plan.ksize[1] : 1),
        line(plan.kept == 2 ? plan.kin[1] : n * rows),
        width(std::min(n, kMost)) {
    group = dense ? std::min(kMost / width, (kBlock - 64) / (n * rows)) : kMost / width;
    if (dense && (plan.rin[0] != n || line != n * rows)) group = 0;
  }
  bool fits() const { return group > 0; }
  // What a unit of `some` lines reads, from its first element to its last: of rows wider than a unit, a part.
  int64_t span(int64_t some, int64_t n, int64_t stride) const { return (some - 1) * line + (rows - 1) * stride + n; }
  template <class F> void each(int lanes, const F& f) const {
    const int64_t pieces = (n + width - 1) / width, beyond = (std::max<int64_t>(0, lanes - n) + line - 1) / line;
    const int64_t units = (lines + group - 1) / group * pieces;
    parallel_for(0, units, std::max<int64_t>(1, kPieceWork / (group * width * rows)), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t l = i / pieces * group, j = i % pieces * width, some = std::min(group, lines - l);
        const int64_t safe = std::clamp<int64_t>(lines - beyond - l, 0, some);
        f(l * line + j, l * n + j, some, std::min(width, n - j), pieces == 1 ? safe : 0);
      }
    });
  }
};

// Partial results combined as a balanced tree, whatever their number: rounding errors grow with its logarithm.
template <class A, class Combine> class Tree {
 public:
  explicit Tree(Combine combine) : combine_(combine) {}
  void push(A x) {
    int level = 0;
    for (uint64_t bits = count_++; bits & 1; bits >>= 1) x = combine_(stack_[level++], x);
    stack_[level] = x;
  }
  A result(A empty) const {
    if (!count_) return empty;
    int level = __builtin_ctzll(count_);
    A x = stack_[level];
    for (uint64_t bits = count_ >> (level + 1); bits; bits >>= 1) {
      ++level;
      if (bits & 1) x = combine_(stack_[level], x);
    }
    return x;
  }

 private:
  Combine combine_;
  uint64_t count_ = 0;
  A stack_[54];
};

}  // namespace rl::RL_ISA
