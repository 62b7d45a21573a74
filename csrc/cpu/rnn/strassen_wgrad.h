// The gradient of a recurrent layer's weights, a GEMM over all steps, by Note [Strassen-Winograd].
// Included once per register width: see layer.h.
#pragma once
#include "cpu/rnn/strassen.h"

namespace rl::RL_ISA {
namespace {

#if RL_RNN_BYTES == 64 && !defined(RL_RNN_PAIRS)
// dw (m, n) = deltas' (m, length) @ states (length, n). Rows are paired with those half a gate further on, which are of
// the same kind, columns with those half the matrix further on, and the sum is cut into chunks with paired halves.
class WeightGrad {
  static constexpr int H = 2;                                // registers of states at once
  static constexpr int64_t kStrip = 16, kColumns = H * 16;   // of deltas and of states, in each half
  static constexpr int64_t kHalf = 128, kChunk = 2 * kHalf;  // of the sum
  static constexpr int kOperands = 8;                        // four blocks and four sums of them
  static constexpr int64_t kKept = 1 << 20;                  // elements of packed states
  const View &dw_, &deltas_, &states_;
  int64_t gate_;  // rows of dw
  const RnnGroupSums* sums_;
  int64_t length_ = deltas_.sizes[0], m_ = deltas_.sizes[1], n_ = states_.sizes[1];

 public:
  WeightGrad(const View& dw, const View& deltas, const View& states, int64_t gate, const RnnGroupSums* sums)
      : dw_(dw), deltas_(deltas), states_(states), gate_(gate), sums_(sums) {}

  bool profitable() const {
    auto rows = [](const View& v) { return v.dtype == DType::Float32 && v.ndim == 2 && v.strides[1] == 1; };
    const bool fits = rows(dw_) && rows(deltas_) && rows(states_) && length_ > 0 && gate_ % (2 * kStrip) == 0 &&
                      n_ > 0 && n_ % (2 * kColumns) == 0;
    return fits && strassen_chosen(length_ >= 4 * kChunk && m_ >= 128 && n_ >= 128);
  }
  void run() const {
    const int64_t groups = n_ / (2 * kColumns), strips = m_ / (2 * kStrip), threads = num_threads();
    const int64_t group = kOperands * kHalf * kColumns, chunks = (length_ + kChunk - 1) / kChunk;
    const int64_t at_once = std::clamp<int64_t>(kKept / (groups * group), 1, chunks);
    Scratch<float> blocks(at_once * groups * group);
    Scratch<char> alike(at_once * groups);
    // Sums of a strip's deltas are held together: [strip][group][columns in each half]
    const int64_t table = sums_ ? sums_->sums.sizes[0] * 2 * kStrip : 0;
    Scratch<float> tables(strips * table);
    for (int64_t c0 = 0; c0 < chunks; c0 += at_once) {
      const int64_t c1 = std::min(chunks, c0 + at_once);
      parallel_for(c0 * groups, c1 * groups, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          const int64_t slot = i - c0 * groups;
          alike[slot] = pack_states(i / groups, i % groups, blocks.get() + slot * group);
        }
      });
      parallel_for(0, strips, (strips + 4 * threads - 1) / (4 * threads), [&](int64_t first, int64_t last) {
        Scratch<float> rows(kOperands * kHalf * kStrip);
        for (int64_t c = c0; c < c1; ++c)
          for (int64_t s = first; s < last; ++s) {
            float* own = tables.get() + s * table;
            if (c == 0) clear(s), std::fill_n(own, table, 0.0f);
            const bool strip_alike = pack_deltas(c, s, rows.get(), own);
            if (c == chunks - 1 && sums_) add_sums(s, own);
            Wanted wanted(4 * kHalf);
            if (s + 1 < last) want_deltas(c, s + 1, wanted);
            else if (c + 1 < c1) want_deltas(c + 1, first, wanted);
            wanted.begin(groups * 2 * StrassenTile<H, false, float>::kSlots * (half(c) / 2));
            for (int64_t g = 0; g < groups; ++g) {
              const int64_t slot = (c - c0) * groups + g;
              multiply(half(c), s, g, rows.get(), blocks.get() + slot * group, strip_alike && alike[slot], wanted);
            }
          }
      });
    }
  }

 private:
  // Of a chunk's sum: both halves are as long, and even; what is missing at the end counts as zeros.
  int64_t half(int64_t chunk) const {
    return (chunk + 1) * kChunk <= length_ ? kHalf : up((length_ - chunk * kChunk + 1) / 2, 2);
  }
  float* result(int64_t row) const { return dw_.as<float>() + row * dw_.strides[0]; }
  int64_t first_row(int64_t strip) const {
    const int64_t of_gate = gate_ / (2 * kStrip);
    return strip / of_gate * gate_ + strip % of_gate * kStrip;
  }
  void clear(int64_t strip) const {
    for (int64_t r = 0; r < kStrip; ++r)
      for (int64_t half = 0; half < 2; ++half) std::fill_n(result(first_row(strip) + half * gate_ / 2 + r), n_, 0.0f);
  }
  // A register of each block of v, whose columns from `column` on meet those `right` further on: 11, 12, 21, 22 with
  // the halves of the sum as rows.
  struct Four {
    Lanes<float> x[4];
  };
  Four four(const View& v, int64_t from, int64_t k, int64_t q, int64_t column, int64_t right) const {
    const float* upper = v.as<float>() + (from + q) * v.strides[0] + column;
    if (from + k + q >= length_) {
      if (from + q >= length_) return {};
      return {{get(upper), get(upper + right)}};
    }
    const float* lower = upper + k * v.strides[0];
    __builtin_prefetch(upper + 8 * v.strides[0]), __builtin_prefetch(upper + right + 8 * v.strides[0]);
    __builtin_prefetch(lower + 8 * v.strides[0]), __builtin_prefetch(lower + right + 8 * v.strides[0]);
    return {{get(upper), get(upper + right), get(lower), get(lower + right)}};
  }
  bool pack_states(int64_t chunk, int64_t group, float* to) const {
    const int64_t from = chunk * kChunk, k = half(chunk);
    Sizes sizes;
    for (int v = 0; v < H; ++v) {
      __m512i largest[4] = {};
      for (int64_t q = 0; q < k; ++q) {
        const Four b = four(states_, from, k, q, group * kColumns + v * 16, n_ / 2);
        float* at = to + (q * H + v) * 16;
        for (int i = 0; i < 4; ++i) {
          put(at + i * k * kColumns, b.x[i]);
          largest[i] = _mm512_max_epu32(largest[i], magnitude(b.x[i]));
        }
        put_mixed(at + 4 * k * kColumns, k * kColumns, b.x);
      }
      for (__m512i l : largest) sizes.add_lanes(l);
    }
    return sizes.alike();
  }
  void want_deltas(int64_t chunk, int64_t strip, Wanted& wanted) const {
    const float* column = deltas_.as<float>() + first_row(strip);
    for (int64_t q = chunk * kChunk; q < std::min(length_, (chunk + 1) * kChunk); ++q)
      for (int64_t side = 0; side < 2; ++side) wanted.add(column + q * deltas_.strides[0] + side * gate_ / 2, 1);
  }
  // The deltas stand as the columns of a: its rows are theirs.
  bool pack_deltas(int64_t chunk, int64_t strip, float* to, float* sums) const {
    const int64_t from = chunk * kChunk, k = half(chunk);
    auto add_to_sums = [&](int64_t row, Lanes<float> left, Lanes<float> right) {
      if (!sums_ || row >= length_) return;
      float* at = sums + sums_->group[row] * 2 * kStrip;
      put(at, get(at) + left), put(at + kStrip, get(at + kStrip) + right);
    };
    __m512i largest[4] = {};
    for (int64_t q = 0; q < k; ++q) {
      const Four d = four(deltas_, from, k, q, first_row(strip), gate_ / 2);
      const Lanes<float> a11 = d.x[0], a21 = d.x[1], a12 = d.x[2], a22 = d.x[3], s1 = a21 + a22, s2 = s1 - a11;
      const Lanes<float> all[kOperands] = {a11, a12, a21, a22, s1, s2, a11 - a21, a12 - s2};
      for (int i = 0; i < kOperands; ++i) put(to + (i * k + q) * kStrip, all[i]);
      for (int i = 0; i < 4; ++i) largest[i] = _mm512_max_epu32(largest[i], magnitude(d.x[i]));
      add_to_sums(from + q, a11, a21);
    }
    for (int64_t q = 0; q < k; ++q)
      add_to_sums(from + k + q, get(to + (k + q) * kStrip), get(to + (3 * k + q) * kStrip));
    Sizes sizes;
    for (__m512i l : largest) sizes.add_lanes(l);
    return sizes.alike();
  }
  void add_sums(int64_t strip, const float* own) const {
    for (int64_t g = 0; g < sums_->sums.sizes[0]; ++g)
      for (int64_t side = 0; side < 2; ++side) {
        float* to = sums_->sums.as<float>() + g * sums_->sums.strides[0] + first_row(strip) + side * gate_ / 2;
        put(to, get(to) + get(own + (g * 2 + side) * kStrip));
      }
  }
  void multiply(int64_t k, int64_t strip, int64_t group, const float* rows, const float* blocks, bool alike,
                Wanted& wanted) const {
    auto block = [&](int i) { return blocks + i * k * kColumns; };
    const StrassenColumns<float> columns{
        block(0), block(1), block(2), block(3), {block(4), block(5), block(6), block(7)}};
    for (int64_t r = 0; r < kStrip; r += 8) {
      auto at = [&](int i) { return rows + i * k * kStrip + r; };
      const StrassenRows<float> eight_rows{at(0), at(1), at(2), at(3), {at(4), at(5), at(6), at(7)}, kStrip, kStrip};
      float *upper = result(first_row(strip) + r) + group * kColumns, *lower = upper + gate_ / 2 * dw_.strides[0];
      const StrassenTile<H, false, float> tile(k, eight_rows, columns, upper, upper + n_ / 2, lower, lower + n_ / 2,
                                               dw_.strides[0], wanted);
      if (alike) tile.strassen();
      else tile.eight();
    }
  }
};
bool weight_grad_any(const View& dw, const View& deltas, const View& states, int64_t gate, const RnnGroupSums* sums) {
  const WeightGrad grad(dw, deltas, states, gate, sums);
  if (!grad.profitable()) return false;
  grad.run();
  return true;
}
#else
bool weight_grad_any(const View&, const View&, const View&, int64_t, const RnnGroupSums*) { return false; }
#endif

}  // namespace
}  // namespace rl::RL_ISA
