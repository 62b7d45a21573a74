// Loops that move elements without looking inside: they are made once per item size.
#include "cpu/elementwise/pointwise.h"
#include "cpu/isa.h"
#include "cpu/loops/bytes.h"

namespace rl::RL_ISA {
namespace {

struct Bytes16 {
  uint64_t low, high;
};

template <class T> void copy_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams&) {
  constexpr int64_t kSize = sizeof(T);
  char* out = data[0];
  const char* in = data[1];
  if (strides[0] == kSize && strides[1] == kSize) {
    const int64_t bytes = n * kSize;
    if (bytes <= 0) return;
    if (out + bytes <= in || in + bytes <= out) copy_bytes(out, in, bytes);
    else __builtin_memmove(out, in, static_cast<size_t>(bytes));
    return;
  }
  const int64_t so = strides[0], si = strides[1];
  for (int64_t i = 0; i < n; ++i) {
    T v;
    __builtin_memcpy(&v, in + i * si, sizeof v);
    __builtin_memcpy(out + i * so, &v, sizeof v);
  }
}

template <class T, unsigned kScalars> void where_flat(char* const* data, int64_t n, const LoopParams&) {
  auto* out = reinterpret_cast<T*>(data[0]);
  auto* cond = reinterpret_cast<const uint8_t*>(data[1]);
  auto* x = reinterpret_cast<const T*>(data[2]);
  auto* y = reinterpret_cast<const T*>(data[3]);
  const T x0 = *x, y0 = *y;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T a = kScalars & 1 ? x0 : x[i], b = kScalars & 2 ? y0 : y[i];
    out[i] = cond[i] ? a : b;
  }
}
template <class T> void where_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (n < 1) return;
  constexpr int64_t kSize = sizeof(T);
  static constexpr uint8_t kSizes[] = {kSize, 1, kSize, kSize};
  if (n == 1) return where_flat<T, 0>(data, n, params);
  if (strides[0] == kSize && strides[1] == 1) {
    bool x = strides[2] == kSize, y = strides[3] == kSize, x0 = strides[2] == 0, y0 = strides[3] == 0;
    if (x && y) return where_flat<T, 0>(data, n, params);
    if (x0 && y) return where_flat<T, 1>(data, n, params);
    if (x && y0) return where_flat<T, 2>(data, n, params);
    if (x0 && y0) return where_flat<T, 3>(data, n, params);
  }
  run_blocks(&where_flat<T, 0>, kSizes, 4, data, strides, n, params);
}

}  // namespace

void put_copy(LoopTable& t) {
  for (int i = 0; i < kDTypes; ++i) {
    const DType d = static_cast<DType>(i);
    Loop& copy = t.at(Pointwise::Copy, d);
    Loop& where = t.at(Pointwise::Where, d);
    switch (itemsize(d)) {
      case 1: copy = &copy_loop<uint8_t>, where = &where_loop<uint8_t>; break;
      case 2: copy = &copy_loop<uint16_t>, where = &where_loop<uint16_t>; break;
      case 4: copy = &copy_loop<uint32_t>, where = &where_loop<uint32_t>; break;
      case 8: copy = &copy_loop<uint64_t>, where = &where_loop<uint64_t>; break;
      default: copy = &copy_loop<Bytes16>, where = &where_loop<Bytes16>; break;
    }
  }
}

}  // namespace rl::RL_ISA
