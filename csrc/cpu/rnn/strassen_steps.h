// The states of a step times weights that all steps share, by Note [Strassen-Winograd].
// Included once per register width: see layer.h.
#pragma once
#include "cpu/rnn/operands.h"
#include "cpu/rnn/strassen.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int64_t kStrassenRows = 16;  // of a block of states: eight above eight

// Whether a layer's shape gains: (rows, k) times (k, columns) in panels of `width` columns, for many steps.
inline bool strassen_profitable(const RnnShape& shape, int64_t k, int64_t columns, int64_t width) {
  // Two threads find a block of rows each; other numbers of threads share columns.
  const bool fits = shape.rows % (2 * kStrassenRows) == 0 && k % 4 == 0 && columns % (2 * width) == 0;
  // Larger weights come from memory, where nearly twice as many of them take longer than the multiplications saved.
  constexpr int64_t kMost = 1 << 20;  // elements
  const bool faster = shape.steps >= 8 && k >= 128 && k * columns <= kMost;
  return fits && strassen_chosen(faster);
}

template <int V> inline constexpr int kStrassenColumns = V == 3 ? 3 : 2;  // registers at once, of a panel's V

#if RL_RNN_BYTES == 64
// Weights [panel][part][2 k][kStrassenColumns registers], each panel paired with the one half the matrix further on,
// and sums of their blocks.
template <int V, class T> class Strassen {
  static constexpr int H = kStrassenColumns<V>, kParts = V / H;
  static constexpr int64_t kWidth = V * W<T>, kStep = H * W<T>;

 public:
  Strassen(const T* panels, int64_t sum, int64_t count)
      : panels_(panels), k_(sum / 2), pairs_(count / 2), mixed_(pairs_ * kParts * 4 * block()), alike_(pairs_) {
    parallel_for(0, pairs_, std::max<int64_t>(1, 65536 / (sum * kWidth + 1)), [&](int64_t p0, int64_t p1) {
      for (int64_t p = p0; p < p1; ++p) mix(p);
    });
  }

  // What the multiplications need of a step's rows `a`, in whole blocks of kStrassenRows; others have nothing to be
  // prepared.
  class States {
   public:
    States(const Strassen& weights, int64_t rows, const T* a, int64_t lda)
        : a_(a),
          lda_(lda),
          lds_(weights.k_ + kPadding),
          sums_(rows / kStrassenRows * 4 * 8 * lds_),
          alike_(rows / kStrassenRows) {
      for (int64_t b = 0; b < rows / kStrassenRows; ++b) prepare(weights.k_, b);
    }

   private:
    friend class Strassen;
    StrassenRows<T> block(int64_t k, int64_t b) const {
      const T *upper = a_ + b * kStrassenRows * lda_, *lower = upper + 8 * lda_;
      const T* s = sums_.get() + b * 4 * 8 * lds_;
      return {upper, upper + k, lower, lower + k, {s, s + 8 * lds_, s + 16 * lds_, s + 24 * lds_}, lda_, lds_};
    }
    void prepare(int64_t k, int64_t b) {
      const StrassenRows<T> rows = block(k, b);
      T* s = sums_.get() + b * 4 * 8 * lds_;
      Sizes sizes;
      for (int64_t r = 0; r < 8; ++r) {
        __m512i largest[4] = {};
        for (int64_t q = 0; q < k; q += W<T>) {
          auto wanted = static_cast<__mmask16>(k - q >= 16 ? 0xffffu : (1u << (k - q)) - 1);
          auto at = [&](const T* p) -> Lanes<T> { return _mm512_maskz_loadu_ps(wanted, p + r * lda_ + q); };
          const Lanes<T> a[4] = {at(rows.a11), at(rows.a12), at(rows.a21), at(rows.a22)};
          const Lanes<T> s1 = a[2] + a[3], s2 = s1 - a[0], mixed[4] = {s1, s2, a[0] - a[2], a[1] - s2};
          for (int i = 0; i < 4; ++i) {
            put(s + (i * 8 + r) * lds_ + q, mixed[i]);  // the rows' padding takes what is too much
            largest[i] = _mm512_max_epu32(largest[i], magnitude(a[i]));
          }
        }
        for (__m512i l : largest) sizes.add(_mm512_reduce_max_epu32(l));
      }
      alike_[b] = sizes.alike();
    }
    const T* a_;
    int64_t lda_, lds_;
    Scratch<T> sums_;  // [block of rows][s1 s2 s3 s4][8][lds]
    Scratch<char> alike_;
  };

  // left, right (rows, V registers) += rows `from` to from + rows of the states times panels `pair` and `pair` + the
  // number of pairs. `wanted` is asked for meanwhile.
  void multiply(int64_t pair, const States& states, int64_t from, int64_t rows, T* left, T* right,
                Wanted& wanted) const {
    wanted.begin(rows / kStrassenRows * kParts * StrassenTile<H, true, T>::kSlots * (k_ / 2));
    for (int part = 0; part < kParts; ++part) {
      const int64_t column = part * kStep;
      const T *left_part = panel(pair, part), *right_part = panel(pair + pairs_, part),
              *t = mixed_.get() + (pair * kParts + part) * 4 * block();
      const StrassenColumns<T> columns{left_part,
                                       right_part,
                                       left_part + block(),
                                       right_part + block(),
                                       {t, t + block(), t + 2 * block(), t + 3 * block()}};
      int64_t r = 0;
      for (; r + kStrassenRows <= rows; r += kStrassenRows) {
        int64_t b = (from + r) / kStrassenRows, upper = r * kWidth + column, lower = upper + 8 * kWidth;
        const StrassenRows<T> mixed = states.block(k_, b);
        const StrassenTile<H, true, T> tile(k_, mixed, columns, left + upper, right + upper, left + lower,
                                            right + lower, kWidth, wanted);
        if (alike_[pair] && states.alike_[b]) tile.strassen();
        else tile.eight();
      }
    }
    if (int64_t whole = rows / kStrassenRows * kStrassenRows; whole < rows) {
      const T* a = states.a_ + (from + whole) * states.lda_;
      plain(pair, rows - whole, a, states.lda_, left + whole * kWidth);
      plain(pair + pairs_, rows - whole, a, states.lda_, right + whole * kWidth);
    }
    wanted.rest();
  }

  // c (rows, V registers) += a (rows, 2 k) times a panel; at most kRowsAtOnce rows
  void plain(int64_t number, int64_t rows, const T* a, int64_t lda, T* c) const {
    for (int part = 0; part < kParts; ++part) {
      alignas(64) T sums[kRowsAtOnce * kStep] = {};
      panel_gemm<H, T>(rows, 2 * k_, a, lda, panel(number, part), sums);
      for (int64_t r = 0; r < rows; ++r)
        for (int v = 0; v < H; ++v) {
          T* to = c + r * kWidth + part * kStep + v * W<T>;
          put(to, get(to) + get(sums + r * kStep + v * W<T>));
        }
    }
  }

 private:
  int64_t block() const { return k_ * kStep; }
  const T* panel(int64_t number, int64_t part) const { return panels_ + (number * kParts + part) * 2 * block(); }
  void mix(int64_t pair) {
    Sizes sizes;
    for (int v = 0; v < V; ++v) {
      const T *left = panel(pair, v / H) + v % H * W<T>, *right = panel(pair + pairs_, v / H) + v % H * W<T>;
      T* to = mixed_.get() + (pair * kParts + v / H) * 4 * block() + v % H * W<T>;
      __m512i largest[4] = {};
      for (int64_t q = 0; q < k_; ++q) {
        const int64_t upper = q * kStep, lower = upper + block();
        const Lanes<T> b[4] = {get(left + upper), get(right + upper), get(left + lower), get(right + lower)};
        put_mixed(to + upper, block(), b);
        for (int i = 0; i < 4; ++i) largest[i] = _mm512_max_epu32(largest[i], magnitude(b[i]));
      }
      for (__m512i l : largest) sizes.add_lanes(l);
    }
    alike_[pair] = sizes.alike();
  }

  const T* panels_;
  int64_t k_, pairs_;
  Scratch<T> mixed_;  // [pair][part][t1 t2 t3 t4][k][H registers]
  Scratch<char> alike_;
};
template <int V, class T> using StrassenStates = typename Strassen<V, T>::States;
#else
template <int V, class T> struct Strassen {};
template <int V, class T> struct StrassenStates {};
#endif

}  // namespace
}  // namespace rl::RL_ISA
