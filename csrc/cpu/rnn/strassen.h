// Strassen-Winograd multiplication, seven block products instead of eight: what a recurrent layer's steps and its
// weights' gradients have in common. Included once per register width: see layer.h.
#pragma once

namespace rl::RL_ISA {
namespace {

// Note [Strassen-Winograd]
// A matrix of 2 x 2 blocks is multiplied with another by seven block multiplications instead of eight (Strassen 1969,
// with Winograd's sums). The GEMMs of a recurrent layer run at the speed of the multipliers, so fewer of them is all
// that makes it faster. Sums of the weights' blocks are made once for all steps, sums of a step's states are short, and
// those of the results happen in registers between two block products:
//
//   c11 = a11 b11 + a12 b21          s1 = a21 + a22   s2 = s1 - a11   s3 = a11 - a21   s4 = a12 - s2
//   u2 = a11 b11 + s2 t2             t1 = b12 - b11   t2 = b22 - t1   t3 = b22 - b12   t4 = b21 - t2
//   u3 = u2 + s3 t3
//   c12 = u2 + s1 t1 + s4 b22        c21 = u3 + a22 t4        c22 = u3 + s1 t1
//
// The error stays within a small multiple of that of plain sums, but it follows the largest of the rows and columns
// that are mixed: a row that is tiny beside the others, or zero, would get their error, and a NaN would spread. So rows
// of a and columns of b must be alike in size in each half of the sum; where they are not, eight products are taken.
// What is combined with what depends on its index alone, never on the number of threads.
inline constexpr float kAlike = 64;  // largest over smallest

// For a shape that allows it, whether the caller or the speed asks for it.
inline bool strassen_chosen(bool faster) {
  const RnnGemm wanted = g_rnn_gemm.load(std::memory_order_relaxed);
  return wanted == RnnGemm::Fastest ? faster : wanted == RnnGemm::Strassen;
}

template <class T> inline constexpr bool kHasStrassen = kBytes == 64 && std::is_same_v<T, float>;  // enough registers
template <class T> inline constexpr int kMostSides = kHasStrassen<T> ? 2 : 1;                      // panels at a time

// Lines of memory that are touched after a block product. They are asked for one by one within it: all at once they
// would be waited for, and long before they would be gone again.
class Wanted {
 public:
  explicit Wanted(int64_t most) : cache_lines_(most + 1) { begin(0); }
  template <class T> void add(const T* from, int64_t count) {
    for (int64_t j = 0; j < count; j += 64 / static_cast<int64_t>(sizeof(T))) cache_lines_[count_++] = from + j;
  }
  // Of `slots` prefetch slots in the product to come the last ones are taken.
  void begin(int64_t slots) {
    cache_lines_[count_] = cache_lines_.get();  // what is asked for where there is nothing to ask for
    idle_ = std::max<int64_t>(0, slots - count_);
    at_ = cache_lines_.get(), end_ = at_ + count_;
  }
  // For the next `slots`: the first line, and how many lines further each slot goes.
  std::pair<const void**, int64_t> next(int64_t slots) {
    idle_ -= slots;
    if (idle_ >= 0 || end_ - at_ < slots) return {cache_lines_.get() + count_, 0};
    return {std::exchange(at_, at_ + slots), 1};
  }
  void rest() {
    for (; at_ < end_; ++at_) __builtin_prefetch(*at_, 0, 2);
  }

 private:
  Scratch<const void*> cache_lines_;
  int64_t count_ = 0, idle_ = 0;
  const void **at_ = nullptr, **end_ = nullptr;
};

#if RL_RNN_BYTES == 64
// Magnitudes as whole numbers, which are ordered as the floats are, infinity and NaN above all.
inline __m512i magnitude(Lanes<float> x) {
  return _mm512_and_si512(reinterpret_cast<__m512i>(x), _mm512_set1_epi32(0x7fffffff));
}
// The largest magnitudes of rows or columns, one after the other, and whether they are alike.
struct Sizes {
  uint32_t smallest = ~0u, largest = 0;
  void add_lanes(__m512i lanes) {
    smallest = std::min(smallest, _mm512_reduce_min_epu32(lanes));
    largest = std::max(largest, _mm512_reduce_max_epu32(lanes));
  }
  void add(uint32_t size) { smallest = std::min(smallest, size), largest = std::max(largest, size); }
  bool alike() const {
    constexpr float kMost = 0x1p50f;  // sums of products of such values do not overflow
    return largest < std::bit_cast<uint32_t>(kMost) &&
           std::bit_cast<float>(smallest) * kAlike >= std::bit_cast<float>(largest);
  }
};

// Eight rows of each block of a and of their sums: with stride `ld` where kAlong the sum they are dense, else side by
// side, with steps of the sum with stride `ld`.
template <class T> struct StrassenRows {
  const T *a11, *a12, *a21, *a22, *s[4];
  int64_t lda, lds;  // of a and of s
};
// The blocks of b that meet them, each [k][H registers].
template <class T> struct StrassenColumns {
  const T *b11, *b12, *b21, *b22, *t[4];
};
// to[i * step]: the register of block t[i]
template <class T> [[gnu::always_inline]] inline void put_mixed(T* to, int64_t step, const Lanes<T> (&b)[4]) {
  const Lanes<T> t1 = b[1] - b[0], t2 = b[3] - t1;
  put(to, t1), put(to + step, t2), put(to + 2 * step, b[3] - b[1]), put(to + 3 * step, b[2] - t2);
}

// c11, c12, c21, c22 (8, H registers), rows with stride ldc, += the products of rows and columns.
template <int H, bool kAlong, class T> class StrassenTile {
  using Sums = Lanes<T>[8][H];
  int64_t k_;
  const StrassenRows<T>& rows_;
  const StrassenColumns<T>& columns_;
  T *c11_, *c12_, *c21_, *c22_;
  int64_t ldc_;
  Wanted& wanted_;

 public:
  StrassenTile(int64_t k, const StrassenRows<T>& rows, const StrassenColumns<T>& columns, T* c11, T* c12, T* c21,
               T* c22, int64_t ldc, Wanted& wanted)
      : k_(k), rows_(rows), columns_(columns), c11_(c11), c12_(c12), c21_(c21), c22_(c22), ldc_(ldc), wanted_(wanted) {}

  static constexpr int64_t kSlots = 7;  // times k / 2: of a call of strassen(), for Wanted

  [[gnu::noinline]] void strassen() const {
    alignas(64) T m1[8 * H * W<T>], u2[8 * H * W<T>], u3[8 * H * W<T>];
    Sums x = {};
    auto store_to = [&](T* to) { each(x, [&](Lanes<T>& sum, int i, int64_t) { put(to + i, sum); }); };
    auto load_from = [&](const T* from) { each(x, [&](Lanes<T>& sum, int i, int64_t) { sum = get(from + i); }); };
    const auto& [a11, a12, a21, a22, s, lda, lds] = rows_;
    const auto& [b11, b12, b21, b22, t] = columns_;
    times(x, a11, lda, b11);
    store_to(m1);
    times(x, a12, lda, b21);
    add_to(c11_, x);
    load_from(m1);
    times(x, s[1], lds, t[1]);
    store_to(u2);
    times(x, s[2], lds, t[2]);
    store_to(u3);
    clear(x);
    times(x, s[0], lds, t[0]);
    each(x, [&](Lanes<T>& sum, int i, int64_t at) {
      put(c22_ + at, get(c22_ + at) + (get(u3 + i) + sum));
      sum += get(u2 + i);
    });
    times(x, s[3], lds, b22);
    add_to(c12_, x);
    load_from(u3);
    times(x, a22, lda, t[3]);
    add_to(c21_, x);
  }
  [[gnu::noinline]] void eight() const {
    const auto& [a11, a12, a21, a22, s, lda, lds] = rows_;
    const auto& [b11, b12, b21, b22, t] = columns_;
    struct {
      T* to;
      const T *first, *second, *upper, *lower;
    } const all[4] = {
        {c11_, a11, a12, b11, b21}, {c12_, a11, a12, b12, b22}, {c21_, a21, a22, b11, b21}, {c22_, a21, a22, b12, b22}};
    for (const auto& c : all) {
      Sums x = {};
      times(x, c.first, lda, c.upper);
      times(x, c.second, lda, c.lower);
      add_to(c.to, x);
    }
  }

 private:
  // f(sum, its offset in a block of its own, its offset in the result)
  template <class F> [[gnu::always_inline]] void each(Sums& sums, F&& f) const {
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r)
#pragma GCC unroll 3
      for (int v = 0; v < H; ++v) f(sums[r][v], (r * H + v) * W<T>, r * ldc_ + v * W<T>);
  }
  [[gnu::always_inline]] void clear(Sums& x) const {
    each(x, [](Lanes<T>& sum, int, int64_t) { sum = Lanes<T>{}; });
  }
  [[gnu::always_inline]] void add_to(T* c, Sums& x) const {
    each(x, [&](Lanes<T>& sum, int, int64_t at) { put(c + at, get(c + at) + sum); });
  }
  // x += a @ b
  [[gnu::always_inline]] void times(Sums& x, const T* a, int64_t ld, const T* b) const {
    constexpr int64_t kAhead = 1024;  // elements of b
    const T* lower = a + 4 * ld;
    auto [cache_line, further] = wanted_.next(k_ / 2);
    for (int64_t p = 0; p < k_; p += 2) {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i, b += H * W<T>) {
        Lanes<T> y[H];
#pragma GCC unroll 3
        for (int v = 0; v < H; ++v) {
          y[v] = get(b + v * W<T>);
          __builtin_prefetch(b + kAhead + v * W<T>);
        }
#pragma GCC unroll 8
        for (int r = 0; r < 8; ++r) {
          T z = !kAlong ? a[r] : r < 4 ? a[r * ld] : lower[(r - 4) * ld];
#pragma GCC unroll 3
          for (int v = 0; v < H; ++v) x[r][v] = fma_lanes(z, y[v], x[r][v]);
        }
        if (kAlong) ++a, ++lower;
        else a += ld;
      }
      __builtin_prefetch(*cache_line, 0, 2);
      cache_line += further;
    }
  }
};
#endif

}  // namespace
}  // namespace rl::RL_ISA
