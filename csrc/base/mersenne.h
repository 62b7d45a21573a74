// The Mersenne twister of Matsumoto and Nishimura (1998), in steps that a compiler can vectorise.
// Functions are static on purpose: kernels include this file once per instruction set.
#pragma once
#include <cstdint>

namespace rl {

inline constexpr int kMersenneWords = 624;

struct Mersenne {
  uint32_t words[kMersenneWords];
  int32_t left;   // draws until the words run out, plus one: 1 when all are used
  uint32_t next;  // the word to draw next
};

static inline uint32_t mersenne_mix(uint32_t high, uint32_t low) {
  uint32_t joined = (high & 0x80000000u) | (low & 0x7fffffffu);
  return (joined >> 1) ^ ((0u - (low & 1u)) & 0x9908b0dfu);
}

// Replaces all words by the next 624 of the sequence.
static inline void mersenne_twist(uint32_t* w) {
  constexpr int n = kMersenneWords, m = 397;
  for (int i = 0; i < n - m; ++i) w[i] = w[i + m] ^ mersenne_mix(w[i], w[i + 1]);
#pragma GCC ivdep
  for (int i = n - m; i < n - 1; ++i) w[i] = w[i + m - n] ^ mersenne_mix(w[i], w[i + 1]);  // words at distance 227
  w[n - 1] = w[m - 1] ^ mersenne_mix(w[n - 1], w[0]);
}

static inline uint32_t mersenne_temper(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

// The next n values of the sequence. `out` may be memory that is read as wider integers later.
typedef uint32_t MersenneWord __attribute__((may_alias));
static inline void mersenne_draw(Mersenne& engine, MersenneWord* __restrict out, int64_t n) {
  while (n > 0) {
    if (engine.left == 1) {
      mersenne_twist(engine.words);
      engine.next = 0;
      engine.left = kMersenneWords + 1;
    }
    int64_t count = n < engine.left - 1 ? n : engine.left - 1;
    const uint32_t* words = engine.words + engine.next;
    for (int64_t i = 0; i < count; ++i) out[i] = mersenne_temper(words[i]);
    engine.next += static_cast<uint32_t>(count);
    engine.left -= static_cast<int32_t>(count);
    out += count;
    n -= count;
  }
}

}  // namespace rl
