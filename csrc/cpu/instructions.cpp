#include "cpu/instructions.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace rl::cpu {

namespace {

Instructions of_processor() {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    return Instructions::Baseline;
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? Instructions::Avx512 : Instructions::Avx2;
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
  return name == "avx2" ? Instructions::Avx2 : Instructions::Avx512;
}

}  // namespace

Instructions instructions() {
  static const Instructions found = std::min(of_processor(), allowed());
  return found;
}

}  // namespace rl::cpu
