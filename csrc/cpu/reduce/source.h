// Where a reduction reads: elements of any type, seen as runs of the few types that reductions compute in (float,
// double, int64, uint8 for truth, complex). Keeping the types separate from the operations keeps the code small.
#pragma once
#include "base/dtype.h"
#include "cpu/isa.h"
#include "cpu/reduce/plan.h"

namespace rl::RL_ISA {

// What is done to each element before it is merged.
enum class Map : uint8_t { None, NanToZero, Abs, Square, Nonzero, Power };

template <class C> struct Source {
  const char* data;
  int64_t size;                                                     // bytes of an element
  void (*fetch)(const char* p, int64_t stride, int64_t n, C* out);  // stride in elements; null: elements are C
  void (*map)(const C* in, C* out, int64_t n, double power);        // null: none
  double power = 0;
  DType half = DType::Float32;  // BFloat16 or Float16, where elements are such as they are: loops may widen themselves

  bool direct() const { return !fetch && !map; }
  const C* at(int64_t offset) const { return reinterpret_cast<const C*>(data + offset * size); }

  // n <= kBlock elements as a contiguous run; `buffer` holds kBlock.
  [[gnu::always_inline]] const C* run(int64_t offset, int64_t stride, int64_t n, C* buffer) const {
    if (stride == 1 && direct()) return at(offset);
    return gather(offset, stride, n, buffer);
  }
  [[gnu::noinline]] const C* gather(int64_t offset, int64_t stride, int64_t n, C* buffer) const {
    const C* x = buffer;
    if (fetch) {
      fetch(data + offset * size, stride, n, buffer);
    } else if (stride == 1) {
      x = at(offset);
    } else {
      const C* p = at(offset);
      if (stride == 2) {  // every second one, in vectors
        for (int64_t i = 0; i < n; ++i) buffer[i] = p[2 * i];
      } else {
        for (int64_t i = 0; i < n; ++i) buffer[i] = p[i * stride];
      }
    }
    if (map) map(x, buffer, n, power), x = buffer;
    return x;
  }
};

// Sources of a view; the view's type must be one that reads as C. Complex views read as float or double by their
// magnitude (Map::Abs, Power, Nonzero) or its square (Map::Square).
Source<float> float_source(const View& in, Map map, double power = 0);
Source<double> double_source(const View& in, Map map, double power = 0);
Source<int64_t> int_source(const View& in);
Source<uint8_t> truth_source(const View& in);  // 1 where an element is not 0

// A run buffer without initialisation.
template <class C> struct RunBuffer {
  alignas(64) char bytes[kBlock * sizeof(C)];
  C* get() { return reinterpret_cast<C*>(bytes); }
};

}  // namespace rl::RL_ISA
