// Copies of bytes: of few, whose length is not known to the compiler (a call of memcpy would cost more than they do),
// and of strided elements.
#pragma once
#include <cstdint>
#include <cstring>

#include "cpu/isa.h"
#include "cpu/simd/vector.h"

namespace rl::RL_ISA {

using ByteVec = simd::Vec<char, 32>::Reg;

// More than a register of bytes, with aligned stores. C libraries copy some thousands of bytes by `rep movsb`, which
// AMD's processors run at a fifteenth of its speed where the target begins shortly behind the source within its page.
[[gnu::noinline]] inline void copy_long(char* to, const char* from, int64_t n) {
  constexpr int64_t kSize = sizeof(ByteVec);
  ByteVec first, last;
  __builtin_memcpy(&first, from, sizeof first);
  __builtin_memcpy(&last, from + n - kSize, sizeof last);
  auto move = [&](int64_t i) {
    ByteVec x;
    __builtin_memcpy(&x, from + i, sizeof x);
    *reinterpret_cast<ByteVec*>(to + i) = x;
  };
  int64_t i = kSize - static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kSize);
  for (; i + 4 * kSize <= n; i += 4 * kSize) move(i), move(i + kSize), move(i + 2 * kSize), move(i + 3 * kSize);
  for (; i + kSize <= n; i += kSize) move(i);
  __builtin_memcpy(to, &first, sizeof first);
  __builtin_memcpy(to + n - kSize, &last, sizeof last);
}

[[gnu::always_inline]] inline void copy_bytes(char* to, const char* from, int64_t n) {
  if (n > 256) return copy_long(to, from, n);
  for (; n >= 32; n -= 32, to += 32, from += 32) __builtin_memcpy(to, from, 32);
  if (n & 16) __builtin_memcpy(to, from, 16), to += 16, from += 16;
  if (n & 8) __builtin_memcpy(to, from, 8), to += 8, from += 8;
  if (n & 4) __builtin_memcpy(to, from, 4), to += 4, from += 4;
  if (n & 2) __builtin_memcpy(to, from, 2), to += 2, from += 2;
  if (n & 1) *to = *from;
}

// n elements, all equal; with aligned stores where they are many.
template <class T> inline void repeat_item(char* to, T item, int64_t n) {
  constexpr int64_t kSize = sizeof(ByteVec), kItems = kSize / static_cast<int64_t>(sizeof(T));
  const auto bits = reinterpret_cast<uintptr_t>(to);
  if (n < 4 * kItems || bits % sizeof(T)) {
    for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * static_cast<int64_t>(sizeof(T)), &item, sizeof(T));
    return;
  }
  alignas(32) T items[kItems];
  for (int64_t i = 0; i < kItems; ++i) items[i] = item;
  ByteVec x;
  __builtin_memcpy(&x, items, sizeof x);
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
  __builtin_memcpy(to, &x, sizeof x);
  int64_t i = kSize - static_cast<int64_t>(bits % kSize);
  for (; i + 4 * kSize <= bytes; i += 4 * kSize)
    for (int64_t j = 0; j < 4; ++j) *reinterpret_cast<ByteVec*>(to + i + j * kSize) = x;
  for (; i + kSize <= bytes; i += kSize) *reinterpret_cast<ByteVec*>(to + i) = x;
  __builtin_memcpy(to + bytes - kSize, &x, sizeof x);
}

// n elements of stride `stride` bytes, packed.
template <class T> inline void gather_items(char* to, const char* from, int64_t stride, int64_t n) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  if (stride == 2 * kSize) {  // every second one: shuffles of whole registers
    for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * kSize, from + 2 * i * kSize, sizeof(T));
    return;
  }
  if (stride == 4 * kSize) {
    for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * kSize, from + 4 * i * kSize, sizeof(T));
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
  using Half = simd::Vec<char, 16>::Reg;
  using Whole = ByteVec;
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
