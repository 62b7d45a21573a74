// Mixed precision: inside a region, an op that is registered with kCastLow, kCastFull or kCastWidest gets its float
// arguments in another type. Tensors that change type do so with history, so gradients come back in the old one.
#pragma once
#include "schema/registry.h"

namespace rl {

extern int g_autocast_regions;  // threads inside a region: an op outside pays for one test of this

// The arguments of one call, cast in place; new tensors live as long as this.
class Recast {
 public:
  Recast() = default;
  ~Recast();
  void apply(uint32_t flags, PyObject** slots, int count);
  Recast(const Recast&) = delete;
  Recast& operator=(const Recast&) = delete;

 private:
  PyObject* cast(PyObject* o, DType to);
  SmallVector<PyObject*, 8> made_;
};

}  // namespace rl
