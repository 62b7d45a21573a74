// Copies of few bytes, whose length is not known to the compiler: a call of memcpy would cost more than they do.
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

}  // namespace rl::RL_ISA
