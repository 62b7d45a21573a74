// The driver: runs a Loop over operands of any shape, and the block routines behind strided and half loops.
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/pointwise.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace rl::RL_ISA {
namespace {

constexpr int kBlock = 256;  // elements gathered at a time; with all operands well inside the first-level cache

template <class T> void gather_as(char* to, const char* from, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    __builtin_memcpy(to + i * static_cast<int64_t>(sizeof(T)), from + i * stride, sizeof(T));
}
template <class T> void scatter_as(char* to, int64_t stride, const char* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    __builtin_memcpy(to + i * stride, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
}
struct Bytes16 {
  uint64_t low, high;
};
void gather(char* to, const char* from, int64_t stride, int64_t n, int itemsize) {
  switch (itemsize) {
    case 1: return gather_as<uint8_t>(to, from, stride, n);
    case 2: return gather_as<uint16_t>(to, from, stride, n);
    case 4: return gather_as<uint32_t>(to, from, stride, n);
    case 8: return gather_as<uint64_t>(to, from, stride, n);
    default: return gather_as<Bytes16>(to, from, stride, n);
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

template <bool kBrain> void widen(float* to, const char* from, int64_t stride, int64_t n) {
  using H = std::conditional_t<kBrain, bfloat16, float16>;
  int64_t i = 0;
  if (stride == 2) {
    auto* in = reinterpret_cast<const H*>(from);
#ifdef __F16C__
    if constexpr (!kBrain) {
      for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
      }
    }
#endif
    for (; i < n; ++i) to[i] = static_cast<float>(in[i]);
    return;
  }
  for (; i < n; ++i) {
    H h;
    __builtin_memcpy(&h, from + i * stride, 2);
    to[i] = static_cast<float>(h);
  }
}
template <bool kBrain> void narrow(char* to, int64_t stride, const float* from, int64_t n) {
  using H = std::conditional_t<kBrain, bfloat16, float16>;
  int64_t i = 0;
  if (stride == 2) {
    auto* out = reinterpret_cast<H*>(to);
#ifdef __F16C__
    if constexpr (!kBrain) {
      for (; i + 8 <= n; i += 8) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
      }
    }
#endif
    for (; i < n; ++i) out[i] = H(from[i]);
    return;
  }
  for (; i < n; ++i) {
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

void run_half(Loop loop, bool brain, bool half_result, int inputs, char* const* data, const int64_t* strides, int64_t n,
              const LoopParams& params) {
  alignas(64) float buffer[4][kBlock];
  char* at[4];
  int64_t steps[4];
  for (int k = 1; k <= inputs; ++k) {
    at[k] = reinterpret_cast<char*>(buffer[k]);
    steps[k] = strides[k] == 0 ? 0 : static_cast<int64_t>(sizeof(float));
    if (strides[k] == 0 && n > 0)
      brain ? widen<true>(buffer[k], data[k], 0, 1) : widen<false>(buffer[k], data[k], 0, 1);
  }
  steps[0] = half_result ? static_cast<int64_t>(sizeof(float)) : strides[0];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t m = n - first < kBlock ? n - first : kBlock;
    for (int k = 1; k <= inputs; ++k) {
      if (strides[k] == 0) continue;
      const char* from = data[k] + first * strides[k];
      brain ? widen<true>(buffer[k], from, strides[k], m) : widen<false>(buffer[k], from, strides[k], m);
    }
    char* to = data[0] + first * strides[0];
    at[0] = half_result ? reinterpret_cast<char*>(buffer[0]) : to;
    loop(at, steps, m, params);
    if (half_result) brain ? narrow<true>(to, strides[0], buffer[0], m) : narrow<false>(to, strides[0], buffer[0], m);
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

namespace {

const LoopTable& table() {
  static const LoopTable* filled = [] {
    static LoopTable t;
    put_copy(t);
    put_arith(t);
    put_compare(t);
    put_math(t);
    put_trig(t);
    put_divide(t);
    put_misc(t);
    put_complex(t);
    put_special(t);
    put_activation(t);
    return &t;
  }();
  return *filled;
}
Loop find_loop(Pointwise op, DType dtype) { return table().get(op, dtype); }

// The dimensions of one run, outermost first, and each operand's strides in bytes.
struct Shape {
  int ndim = 0, count = 0;
  int64_t sizes[kMaxDims + 2];
  int64_t strides[kMaxOperands][kMaxDims + 2];
};

// Pieces hold about 30 microseconds of work.
int64_t grain_of(int cost) {
  const int64_t grain = 131072 / (cost < 1 ? 1 : cost);
  return grain < 2048 ? 2048 : grain & ~int64_t(63);
}

void run_flat(Loop loop, char* const* data, const int64_t* steps, int count, int64_t n, const LoopParams& params,
              int cost) {
  const int64_t grain = grain_of(cost);
  if (n <= grain) return loop(data, steps, n, params);
  parallel_for(0, n, grain, [&](int64_t first, int64_t last) {
    char* at[kMaxOperands];
    for (int k = 0; k < count; ++k) at[k] = data[k] + first * steps[k];
    loop(at, steps, last - first, params);
  });
}

// Elements [first, last) in the order of the dimensions.
void run_range(Loop loop, const Shape& s, char* const* data, int64_t first, int64_t last, const LoopParams& params) {
  const int inner = s.ndim - 1;
  int64_t index[kMaxDims + 2], rest = first;
  for (int d = inner; d >= 0; --d) {
    index[d] = rest % s.sizes[d];
    rest /= s.sizes[d];
  }
  char* at[kMaxOperands];
  int64_t steps[kMaxOperands];
  for (int k = 0; k < s.count; ++k) {
    at[k] = data[k];
    for (int d = 0; d <= inner; ++d) at[k] += index[d] * s.strides[k][d];
    steps[k] = s.strides[k][inner];
  }
  while (first < last) {
    int64_t n = s.sizes[inner] - index[inner];
    if (n > last - first) n = last - first;
    loop(at, steps, n, params);
    first += n;
    if (first >= last) return;
    // The row ended: back to its start, then on by one in the next dimension that has room.
    for (int k = 0; k < s.count; ++k) at[k] -= index[inner] * steps[k];
    index[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      if (++index[d] < s.sizes[d]) {
        for (int k = 0; k < s.count; ++k) at[k] += s.strides[k][d];
        break;
      }
      for (int k = 0; k < s.count; ++k) at[k] -= (s.sizes[d] - 1) * s.strides[k][d];
      index[d] = 0;
    }
  }
}

void run_shape(Loop loop, const Shape& s, char* const* data, const LoopParams& params, int cost) {
  int64_t total = 1;
  for (int d = 0; d < s.ndim; ++d) total *= s.sizes[d];
  const int64_t grain = grain_of(cost);
  if (total <= grain) return run_range(loop, s, data, 0, total, params);
  parallel_for(0, total, grain, [&](int64_t first, int64_t last) { run_range(loop, s, data, first, last, params); });
}

// Is dimension a outside of b in memory? The result decides; inputs only where it does not.
bool outside(const Shape& s, int a, int b) {
  for (int k = 0; k < s.count; ++k) {
    const int64_t x = s.strides[k][a], y = s.strides[k][b];
    if (x != y && x != 0 && y != 0) return x > y;
  }
  return false;
}
void swap_dims(Shape& s, int a, int b) {
  const int64_t size = s.sizes[a];
  s.sizes[a] = s.sizes[b];
  s.sizes[b] = size;
  for (int k = 0; k < s.count; ++k) {
    const int64_t stride = s.strides[k][a];
    s.strides[k][a] = s.strides[k][b];
    s.strides[k][b] = stride;
  }
}

constexpr int64_t kTile = 128;

// Dimension d becomes the inner one, in tiles: a tile of it is walked for all of what was inner before the next
// tile starts, so that lines of memory touched along one dimension are still cached when the other comes back.
void run_tiled(Loop loop, Shape& s, int d, char* const* data, const LoopParams& params, int cost) {
  const int64_t tiles = s.sizes[d] / kTile, left = s.sizes[d] % kTile;
  Shape t = s;
  t.ndim = s.ndim + 1;
  t.sizes[d] = tiles;
  t.sizes[s.ndim] = kTile;
  for (int k = 0; k < s.count; ++k) {
    t.strides[k][s.ndim] = s.strides[k][d];
    t.strides[k][d] = s.strides[k][d] * kTile;
  }
  if (tiles > 0) run_shape(loop, t, data, params, cost);
  if (left == 0) return;
  char* at[kMaxOperands];
  t.sizes[d] = 1;
  t.sizes[s.ndim] = left;
  for (int k = 0; k < s.count; ++k) at[k] = data[k] + tiles * kTile * s.strides[k][d];
  run_shape(loop, t, at, params, cost);
}

void run(Loop loop, const View* operands, int count, const LoopParams& params, int cost) {
  const int ndim = operands[0].ndim;
  const int64_t* sizes = operands[0].sizes;
  char* data[kMaxOperands];
  int64_t steps[kMaxOperands];
  bool flat = true;
  int64_t n = 1;
  for (int d = 0; d < ndim; ++d) n *= sizes[d];
  if (n == 0) return;
  for (int k = 0; k < count; ++k) {
    data[k] = static_cast<char*>(operands[k].data);
    steps[k] = itemsize(operands[k].dtype);
    flat = flat && operands[k].contiguous();
  }
  if (flat || n == 1) return run_flat(loop, data, steps, count, n, params, cost);

  // Dimensions of size 1 go; the others are sorted by where they lie in memory, and neighbours that continue
  // each other in all operands become one.
  Shape s;
  s.count = count;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == 1) continue;
    s.sizes[s.ndim] = sizes[d];
    for (int k = 0; k < count; ++k) s.strides[k][s.ndim] = operands[k].strides[d] * steps[k];
    for (int e = s.ndim; e > 0 && outside(s, e, e - 1); --e) swap_dims(s, e, e - 1);
    ++s.ndim;
  }
  int last = 0;
  for (int d = 1; d < s.ndim; ++d) {
    bool joins = true;
    for (int k = 0; k < count; ++k) joins = joins && s.strides[k][last] == s.strides[k][d] * s.sizes[d];
    if (joins) {
      s.sizes[last] *= s.sizes[d];
    } else {
      s.sizes[++last] = s.sizes[d];
    }
    for (int k = 0; k < count; ++k) s.strides[k][last] = s.strides[k][d];
  }
  s.ndim = last + 1;
  const int inner = last;
  if (s.ndim == 1) {
    for (int k = 0; k < count; ++k) steps[k] = s.strides[k][0];
    return run_flat(loop, data, steps, count, n, params, cost);
  }
  // A short inner dimension would cost a call per few elements: a long one goes in instead.
  if (s.sizes[inner] < 16) {
    int longest = inner - 1;
    for (int d = inner - 2; d >= 0; --d) {
      if (s.sizes[d] > 4 * s.sizes[longest]) longest = d;
    }
    if (s.sizes[longest] > 2 * s.sizes[inner]) return run_tiled(loop, s, longest, data, params, cost);
  } else {
    // An input that jumps a line per element along the inner dimension, and steps within lines along another.
    for (int k = 1; k < count; ++k) {
      if (s.strides[k][inner] < 64) continue;
      for (int d = 0; d < inner; ++d) {
        if (s.strides[k][d] > 0 && s.strides[k][d] < 64 && s.sizes[d] >= 8) {
          swap_dims(s, d, inner);  // the inner dimension stays inner, but in tiles that are repeated along d
          return run_tiled(loop, s, d, data, params, cost);
        }
      }
    }
  }
  run_shape(loop, s, data, params, cost);
}

}  // namespace

extern const PointwiseKernels pointwise_kernels;
const PointwiseKernels pointwise_kernels = {&find_loop, &run};

}  // namespace rl::RL_ISA
