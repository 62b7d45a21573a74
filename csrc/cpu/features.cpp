#include "cpu/features.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace rl::cpu {

namespace {

#ifdef __x86_64__
bool has_avx512_bf16() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}
#endif

// AMX with bfloat16. Linux gives the tiles' registers to processes that ask for them.
bool detects_amx() {
#if defined(__x86_64__) && defined(__linux__)
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  if (!(d & kBf16) || !(d & kTile)) return false;
  constexpr int kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

Instructions of_processor() {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    return Instructions::Baseline;
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!wide) return Instructions::Avx2;
  if (!has_avx512_bf16()) return Instructions::Avx512;
  return detects_amx() ? Instructions::Amx : Instructions::Bf16;
#else
  return Instructions::Baseline;
#endif
}

Instructions allowed() {
  const char* value = std::getenv("RUSHLIGHT_ISA");
  std::string_view name = value ? value : "";
#ifdef RL_BASELINE  // builds for work on the project leave those kernels out
  if (name == "baseline") return Instructions::Baseline;
#endif
  if (name == "avx2") return Instructions::Avx2;
  if (name == "avx512") return Instructions::Avx512;
  return name == "bf16" ? Instructions::Bf16 : Instructions::Amx;
}

}  // namespace

Instructions instructions() {
  static const Instructions found = std::min(of_processor(), allowed());
  return found;
}

}  // namespace rl::cpu
