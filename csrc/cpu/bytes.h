// Copies of bytes: of few, whose length is not known to the compiler (a call of memcpy would cost more than they do),
// and of elements that lie apart.
#pragma once
#include <cstdint>
#include <cstring>

#include "cpu/isa.h"

namespace rl::RL_ISA {

[[gnu::always_inline]] inline void copy_bytes(char* to, const char* from, int64_t n) {
  if (n > 256) {
    std::memcpy(to, from, static_cast<size_t>(n));
    return;
  }
  for (; n >= 32; n -= 32, to += 32, from += 32) __builtin_memcpy(to, from, 32);
  if (n & 16) __builtin_memcpy(to, from, 16), to += 16, from += 16;
  if (n & 8) __builtin_memcpy(to, from, 8), to += 8, from += 8;
  if (n & 4) __builtin_memcpy(to, from, 4), to += 4, from += 4;
  if (n & 2) __builtin_memcpy(to, from, 2), to += 2, from += 2;
  if (n & 1) *to = *from;
}

// n elements that lie `stride` bytes apart, to one place without gaps.
template <class T> inline void gather_items(char* to, const char* from, int64_t stride, int64_t n) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  if (stride == 2 * kSize) {  // every second one: shuffles of whole registers
    for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * kSize, from + 2 * i * kSize, sizeof(T));
    return;
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * kSize, from + i * stride, sizeof(T));
}

// Rows of `bytes` bytes, each as kCount chunks of which the last two may overlap.
template <class U, int kCount>
inline void copy_chunks(char* to, int64_t to_jump, const char* from, int64_t from_jump, int64_t rows, int64_t bytes) {
  constexpr int kSize = sizeof(U);
  for (int64_t r = 0; r < rows; ++r, to += to_jump, from += from_jump) {
    U held[kCount];
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i)
      __builtin_memcpy(&held[i], from + (i + 1 < kCount ? i * kSize : bytes - kSize), kSize);
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i)
      __builtin_memcpy(to + (i + 1 < kCount ? i * kSize : bytes - kSize), &held[i], kSize);
  }
}
inline void copy_byte_rows(char* to, int64_t to_jump, const char* from, int64_t from_jump, int64_t rows,
                           int64_t bytes) {
  typedef char Half __attribute__((vector_size(16)));
  typedef char Whole __attribute__((vector_size(32)));
  switch (bytes > 16 ? (bytes + 31) / 32 + (bytes >= 32) : 0) {
    case 0:
      if (bytes >= 8) return copy_chunks<uint64_t, 2>(to, to_jump, from, from_jump, rows, bytes);
      if (bytes >= 4) return copy_chunks<uint32_t, 2>(to, to_jump, from, from_jump, rows, bytes);
      break;
    case 1: return copy_chunks<Half, 2>(to, to_jump, from, from_jump, rows, bytes);
    case 2: return copy_chunks<Whole, 1>(to, to_jump, from, from_jump, rows, bytes);
    case 3: return copy_chunks<Whole, 2>(to, to_jump, from, from_jump, rows, bytes);
    case 4: return copy_chunks<Whole, 3>(to, to_jump, from, from_jump, rows, bytes);
    case 5: return copy_chunks<Whole, 4>(to, to_jump, from, from_jump, rows, bytes);
    default: break;
  }
  for (int64_t r = 0; r < rows; ++r, to += to_jump, from += from_jump) copy_bytes(to, from, bytes);
}

}  // namespace rl::RL_ISA
