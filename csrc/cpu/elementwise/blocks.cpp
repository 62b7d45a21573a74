// The routines behind strided and half loops: blocks of operands are gathered or widened, run, and scattered or
// narrowed again.
#include "cpu/elementwise/pointwise.h"
#include "cpu/isa.h"
#include "cpu/loops/bytes.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

constexpr int kBlock = 256;  // elements gathered at a time; with all operands well inside the first-level cache

template <class T> void scatter_as(char* to, int64_t stride, const char* from, int64_t n) {
#pragma GCC unroll 8
  for (int64_t i = 0; i < n; ++i)
    __builtin_memcpy(to + i * stride, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
}
struct Bytes16 {
  uint64_t low, high;
};
void gather(char* to, const char* from, int64_t stride, int64_t n, int itemsize) {
  switch (itemsize) {
    case 1: return gather_items<uint8_t>(to, from, stride, n);
    case 2: return gather_items<uint16_t>(to, from, stride, n);
    case 4: return gather_items<uint32_t>(to, from, stride, n);
    case 8: return gather_items<uint64_t>(to, from, stride, n);
    default: return gather_items<Bytes16>(to, from, stride, n);
  }
}
void scatter(char* to, int64_t stride, const char* from, int64_t n, int itemsize) {
  switch (itemsize) {
    case 1: return scatter_as<uint8_t>(to, stride, from, n);
    case 2: return scatter_as<uint16_t>(to, stride, from, n);
    case 4: return scatter_as<uint32_t>(to, stride, from, n);
    case 8: return scatter_as<uint64_t>(to, stride, from, n);
    default: return scatter_as<Bytes16>(to, stride, from, n);
  }
}

template <bool kBfloat> void widen(float* to, const char* from, int64_t stride, int64_t n) {
  using H = std::conditional_t<kBfloat, bfloat16, float16>;
  if (stride == 2) return RL_ISA::widen(reinterpret_cast<const H*>(from), to, n);
  for (int64_t i = 0; i < n; ++i) {
    H h;
    __builtin_memcpy(&h, from + i * stride, 2);
    to[i] = static_cast<float>(h);
  }
}
template <bool kBfloat> void narrow(char* to, int64_t stride, const float* from, int64_t n) {
  using H = std::conditional_t<kBfloat, bfloat16, float16>;
  if (stride == 2) return RL_ISA::narrow(from, reinterpret_cast<H*>(to), n);
  for (int64_t i = 0; i < n; ++i) {
    H h(from[i]);
    __builtin_memcpy(to + i * stride, &h, 2);
  }
}

}  // namespace

void run_blocks(FlatLoop flat, const uint8_t* itemsizes, int count, char* const* data, const int64_t* strides,
                int64_t n, const LoopParams& params) {
  alignas(64) char buffer[4][kBlock * 16];
  char* at[4];
  for (int k = 1; k < count; ++k) {
    if (strides[k] == 0) gather(buffer[k], data[k], 0, n < kBlock ? n : kBlock, itemsizes[k]);
  }
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t m = n - first < kBlock ? n - first : kBlock;
    for (int k = 0; k < count; ++k) {
      char* from = data[k] + first * strides[k];
      at[k] = strides[k] == itemsizes[k] ? from : buffer[k];
      if (k > 0 && strides[k] != 0 && at[k] == buffer[k]) gather(buffer[k], from, strides[k], m, itemsizes[k]);
    }
    flat(at, m, params);
    if (at[0] == buffer[0]) scatter(data[0] + first * strides[0], strides[0], buffer[0], m, itemsizes[0]);
  }
}

void run_half(Loop loop, bool bfloat, bool half_result, int inputs, char* const* data, const int64_t* strides,
              int64_t n, const LoopParams& params) {
  constexpr int kBlock = 512;
  alignas(64) float buffer[4][kBlock];
  char* at[4];
  int64_t steps[4];
  for (int k = 1; k <= inputs; ++k) {
    at[k] = reinterpret_cast<char*>(buffer[k]);
    steps[k] = strides[k] == 0 ? 0 : static_cast<int64_t>(sizeof(float));
    if (strides[k] == 0 && n > 0)
      bfloat ? widen<true>(buffer[k], data[k], 0, 1) : widen<false>(buffer[k], data[k], 0, 1);
  }
  steps[0] = half_result ? static_cast<int64_t>(sizeof(float)) : strides[0];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t m = n - first < kBlock ? n - first : kBlock;
    for (int k = 1; k <= inputs; ++k) {
      if (strides[k] == 0) continue;
      const char* from = data[k] + first * strides[k];
      bfloat ? widen<true>(buffer[k], from, strides[k], m) : widen<false>(buffer[k], from, strides[k], m);
    }
    char* to = data[0] + first * strides[0];
    at[0] = half_result ? reinterpret_cast<char*>(buffer[0]) : to;
    loop(at, steps, m, params);
    if (half_result) bfloat ? narrow<true>(to, strides[0], buffer[0], m) : narrow<false>(to, strides[0], buffer[0], m);
  }
}

void run_as_double(Loop loop, int inputs, char* const* data, const int64_t* strides, int64_t n,
                   const LoopParams& params) {
  alignas(64) double buffer[4][kBlock];
  char* at[4];
  int64_t steps[4];
  for (int k = 0; k <= inputs; ++k) {
    at[k] = reinterpret_cast<char*>(buffer[k]);
    steps[k] = k > 0 && strides[k] == 0 ? 0 : static_cast<int64_t>(sizeof(double));
  }
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t m = n - first < kBlock ? n - first : kBlock;
    for (int k = 1; k <= inputs; ++k) {
      if (steps[k] == 0 && first > 0) continue;
      const char* from = data[k] + first * strides[k];
      const int64_t count = steps[k] == 0 ? 1 : m;
      if (strides[k] == sizeof(float)) {
        for (int64_t i = 0; i < count; ++i) buffer[k][i] = reinterpret_cast<const float*>(from)[i];
      } else {
        for (int64_t i = 0; i < count; ++i) buffer[k][i] = *reinterpret_cast<const float*>(from + i * strides[k]);
      }
    }
    loop(at, steps, m, params);
    char* to = data[0] + first * strides[0];
    if (strides[0] == sizeof(float)) {
      for (int64_t i = 0; i < m; ++i) reinterpret_cast<float*>(to)[i] = static_cast<float>(buffer[0][i]);
    } else {
      for (int64_t i = 0; i < m; ++i) *reinterpret_cast<float*>(to + i * strides[0]) = static_cast<float>(buffer[0][i]);
    }
  }
}

void run_complex_half(Loop loop, int parts, int inputs, char* const* data, const int64_t* strides, int64_t n,
                      const LoopParams& params) {
  alignas(64) float buffer[4][2 * kBlock];
  char* at[4];
  int64_t steps[4] = {parts ? parts * 4 : strides[0], 8, 8, 8};
  for (int k = 0; k < 4; ++k) at[k] = reinterpret_cast<char*>(buffer[k]);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t m = n - first < kBlock ? n - first : kBlock;
    for (int k = 1; k <= inputs; ++k) {
      for (int64_t i = 0; i < m; ++i) widen<false>(buffer[k] + 2 * i, data[k] + (first + i) * strides[k], 2, 2);
    }
    char* to = data[0] + first * strides[0];
    if (parts == 0) at[0] = to;
    loop(at, steps, m, params);
    for (int64_t i = 0; i < m && parts; ++i) narrow<false>(to + i * strides[0], 2, buffer[0] + parts * i, parts);
  }
}

}  // namespace rl::RL_ISA
