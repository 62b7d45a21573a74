#include "base/check.h"

#include <cstdio>

namespace rl {

std::string to_text(int64_t v) { return std::to_string(v); }
std::string to_text(uint64_t v) { return std::to_string(v); }
std::string to_text(double v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", v);
  return buffer;
}

}  // namespace rl
