#include "base/crc32.h"

#include <array>
#include <cstring>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#define RL_CRC_FOLDS
#endif

namespace rl {
namespace {

// Note [Reflected polynomials]
// Bit 31 of a word is the coefficient of x^0, bit 0 that of x^31, as the bits of a file come. kPolynomial is the
// generator without its x^32. A message M has the checksum ~((M * x^32 + ~0 * x^(bits of M)) mod P).
constexpr uint32_t kPolynomial = 0xEDB88320;

constexpr uint32_t times_x(uint32_t a) { return (a >> 1) ^ (a & 1 ? kPolynomial : 0); }

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t result = 0;
  for (; b; b <<= 1) {
    if (b & 0x80000000u) result ^= a;
    a = times_x(a);
  }
  return result;
}

constexpr uint32_t power_of_x(uint64_t n) {
  uint32_t result = 0x80000000u, square = 0x40000000u;  // 1 and x
  for (; n; n >>= 1, square = multiply(square, square))
    if (n & 1) result = multiply(result, square);
  return result;
}

// rows[k][b]: what byte b adds to the checksum when k bytes follow it.
struct Table {
  uint32_t rows[8][256];
  constexpr Table() : rows() {
    for (uint32_t b = 0; b < 256; b++) {
      uint32_t c = b;
      for (int i = 0; i < 8; i++) c = times_x(c);
      rows[0][b] = c;
    }
    for (int k = 1; k < 8; k++)
      for (uint32_t b = 0; b < 256; b++) rows[k][b] = (rows[k - 1][b] >> 8) ^ rows[0][rows[k - 1][b] & 255];
  }
};
constexpr Table kTable;

uint32_t by_table(uint32_t c, const unsigned char* p, size_t n) {
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--) word = word << 8 | p[i];
    word ^= c;
    c = 0;
    for (int i = 0; i < 8; i++) c ^= kTable.rows[7 - i][word >> (8 * i) & 255];
  }
  for (; n; p++, n--) c = (c >> 8) ^ kTable.rows[0][(c ^ *p) & 255];
  return c;
}

#ifdef RL_CRC_FOLDS
// Note [Folding]
// 128 bits that stand n bits before other 128 bits may be replaced by their product with x^n, added to those: the low
// half (which comes first in the file) is multiplied by x^(n+32), the high half by x^(n-32), each constant being a
// reflected remainder moved by one, as a product of reflected 64-bit polynomials has 127 bits. Four such accumulators
// run side by side over 64 bytes at a time; what is left at the end is 16 bytes with the same remainder.
constexpr long long fold_constant(unsigned n) { return static_cast<long long>(uint64_t{power_of_x(n)} << 1); }

__attribute__((target("pclmul,sse4.1"))) inline __m128i folded(__m128i a, __m128i constants, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(a, constants, 0x00), high = _mm_clmulepi64_si128(a, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse4.1"))) uint32_t by_folding(uint32_t c, const unsigned char*& p, size_t& n) {
  const __m128i by512 = _mm_set_epi64x(fold_constant(512 - 32), fold_constant(512 + 32));
  const __m128i by128 = _mm_set_epi64x(fold_constant(128 - 32), fold_constant(128 + 32));
  auto load = [&](int i) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i);
  };
  __m128i a0 = _mm_xor_si128(load(0), _mm_cvtsi32_si128(static_cast<int>(c))), a1 = load(1), a2 = load(2), a3 = load(3);
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
    a0 = folded(a0, by512, load(0));
    a1 = folded(a1, by512, load(1));
    a2 = folded(a2, by512, load(2));
    a3 = folded(a3, by512, load(3));
  }
  __m128i a = folded(folded(folded(a0, by128, a1), by128, a2), by128, a3);
  for (; n >= 16; p += 16, n -= 16) a = folded(a, by128, load(0));
  unsigned char rest[16];
  std::memcpy(rest, &a, 16);
  return by_table(0, rest, 16);
}

const bool folds = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif

}  // namespace

uint32_t crc32(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint32_t c = ~0u;
#ifdef RL_CRC_FOLDS
  if (folds && bytes >= 64) c = by_folding(c, p, bytes);
#endif
  return ~by_table(c, p, bytes);
}

// The complements at both ends cancel: crc(AB) = crc(A) * x^(bits of B) + crc(B).
uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return multiply(first, power_of_x(8 * second_bytes)) ^ second;
}

}  // namespace rl
