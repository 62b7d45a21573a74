#include "backend/named_kernel.h"

#include <string>
#include <vector>

#include "base/check.h"

namespace rl {

Pointwise named_kernel(const char* name) {
  static auto* names = new std::vector<std::string>;
  size_t at = 0;
  while (at < names->size() && (*names)[at] != name) ++at;
  if (at == names->size()) names->push_back(name);
  CHECK(at < kNamedKernels, Runtime, "more named kernels than kNamedKernels: ", name);
  return static_cast<Pointwise>(static_cast<size_t>(Pointwise::Count) + at);
}

}  // namespace rl
