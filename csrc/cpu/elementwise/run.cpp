// The driver: runs a Loop over operands of any shape.
#include <vector>

#include "base/parallel.h"
#include "cpu/elementwise/pointwise.h"
#include "cpu/elementwise/program.h"
#include "cpu/isa.h"
#include "cpu/loops/bytes.h"
#include "cpu/simd/transpose.h"

namespace rl::RL_ISA {

namespace {

using Put = void (*)(LoopTable& t);
std::vector<Put>& puts() {
  static auto* all = new std::vector<Put>;
  return *all;
}
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
    put_gamma(t);
    put_activation(t);
    if (has_avx512()) avx512::put_loops(t);
    for (Put put : puts()) put(t);
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

// How many elements are worth a second thread, some five microseconds of work.
int64_t grain_of(int cost) {
  const int64_t grain = 32768 / (cost < 1 ? 1 : cost);
  return grain < 2048 ? 2048 : grain;
}
// Eight pieces as long as they are not too large: more would only be claimed for nothing.
int64_t piece_of(int64_t n, int64_t grain) {
  const int64_t eighth = n / 8;
  return even_grain(n, eighth < grain ? grain : eighth > 8 * grain ? 8 * grain : eighth);
}

void run_flat(Loop loop, char* const* data, const int64_t* steps, int count, int64_t n, const LoopParams& params,
              int cost) {
  const int64_t grain = grain_of(cost);
  if (n <= grain) return loop(data, steps, n, params);
  parallel_for(0, n, piece_of(n, grain), [&](int64_t first, int64_t last) {
    char* at[kMaxOperands];
    for (int k = 0; k < count; ++k) at[k] = data[k] + first * steps[k];
    loop(at, steps, last - first, params);
  });
}

// Elements [first, last) in the order of the dimensions.
template <class Run> void run_range(const Run& loop, const Shape& s, char* const* data, int64_t first, int64_t last,
                                    const LoopParams& params) {
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
  parallel_for(0, total, piece_of(total, grain),
               [&](int64_t first, int64_t last) { run_range(loop, s, data, first, last, params); });
}

// Inputs that are one element for a whole row: the operation is done once for it, and its result repeated.
bool repeats(const Shape& s, int64_t itemsize) {
  const int inner = s.ndim - 1;
  for (int k = 1; k < s.count; ++k)
    if (s.strides[k][inner] != 0) return false;
  return s.count > 1 && s.sizes[inner] >= 16 && s.strides[0][inner] == itemsize;
}
template <class T> void repeat_first(char* row, int64_t n) {
  T item;
  __builtin_memcpy(&item, row, sizeof item);
  repeat_item(row, item, n);
}
void run_repeated(Loop loop, const Shape& s, char* const* data, int64_t itemsize, const LoopParams& params) {
  int64_t total = 1;
  for (int d = 0; d < s.ndim; ++d) total *= s.sizes[d];
  auto once = [&](char* const* at, const int64_t* steps, int64_t n, const LoopParams& p) {
    loop(at, steps, 1, p);
    switch (itemsize) {
      case 1: return repeat_first<uint8_t>(at[0], n);
      case 2: return repeat_first<uint16_t>(at[0], n);
      case 4: return repeat_first<uint32_t>(at[0], n);
      case 8: return repeat_first<uint64_t>(at[0], n);
      default:
        for (int64_t i = 1; i < n; ++i) __builtin_memcpy(at[0] + i * itemsize, at[0], static_cast<size_t>(itemsize));
    }
  };
  const int64_t grain = grain_of(1);
  if (total <= grain) return run_range(once, s, data, 0, total, params);
  parallel_for(0, total, piece_of(total, grain),
               [&](int64_t first, int64_t last) { run_range(once, s, data, first, last, params); });
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

// Operands that are contiguous along dimension d, and jump a line or more along the inner one, are transposed in small
// squares: each line and page of theirs is touched once per square instead of once per element.
constexpr int64_t kSquareInner = 64, kSquareOuter = 16, kSquare = kSquareInner * kSquareOuter;

template <class T> void transpose(T* to, const char* from, int64_t inner_stride, int64_t inner, int64_t outer) {
  transpose_tile<T>(reinterpret_cast<char*>(to), kSquareInner * sizeof(T), from, inner_stride, outer, inner);
}
void transpose_item(char* to, const char* from, int64_t inner_stride, int64_t inner, int64_t outer, int64_t itemsize) {
  switch (itemsize) {
    case 1: return transpose(reinterpret_cast<uint8_t*>(to), from, inner_stride, inner, outer);
    case 2: return transpose(reinterpret_cast<uint16_t*>(to), from, inner_stride, inner, outer);
    case 4: return transpose(reinterpret_cast<uint32_t*>(to), from, inner_stride, inner, outer);
    default: return transpose(reinterpret_cast<uint64_t*>(to), from, inner_stride, inner, outer);
  }
}
bool transposed(const Shape& s, int k, int d, int64_t itemsize) {
  return k > 0 && itemsize <= 8 && s.strides[k][d] == itemsize && s.strides[k][s.ndim - 1] >= 64;
}
void run_squares(Loop loop, const Shape& s, int d, char* const* data, const int64_t* itemsizes,
                 const LoopParams& params, int cost) {
  const int inner = s.ndim - 1;
  const int64_t across = (s.sizes[inner] + kSquareInner - 1) / kSquareInner;
  const int64_t down = (s.sizes[d] + kSquareOuter - 1) / kSquareOuter;
  int64_t total = across * down;
  for (int e = 0; e < inner; ++e) total *= e == d ? 1 : s.sizes[e];
  const int64_t grain = grain_of(cost) / kSquare;
  parallel_for(0, total, grain < 1 ? 1 : grain, [&](int64_t first, int64_t last) {
    alignas(64) char buffer[3][kSquare * 8];
    for (int64_t b = first; b < last; ++b) {
      const int64_t i0 = b % across * kSquareInner, j0 = b / across % down * kSquareOuter;
      const int64_t ni = s.sizes[inner] - i0 < kSquareInner ? s.sizes[inner] - i0 : kSquareInner;
      const int64_t nj = s.sizes[d] - j0 < kSquareOuter ? s.sizes[d] - j0 : kSquareOuter;
      char* at[kMaxOperands];
      int64_t steps[kMaxOperands], jumps[kMaxOperands];
      for (int k = 0; k < s.count; ++k) {
        at[k] = data[k] + i0 * s.strides[k][inner] + j0 * s.strides[k][d];
        int64_t rest = b / across / down;
        for (int e = inner - 1; e >= 0; --e) {
          if (e == d) continue;
          at[k] += rest % s.sizes[e] * s.strides[k][e];
          rest /= s.sizes[e];
        }
        steps[k] = s.strides[k][inner];
        jumps[k] = s.strides[k][d];
        if (!transposed(s, k, d, itemsizes[k])) continue;
        transpose_item(buffer[k - 1], at[k], steps[k], ni, nj, itemsizes[k]);
        at[k] = buffer[k - 1];
        steps[k] = itemsizes[k];
        jumps[k] = kSquareInner * itemsizes[k];
      }
      for (int64_t j = 0; j < nj; ++j) {
        loop(at, steps, ni, params);
        for (int k = 0; k < s.count; ++k) at[k] += jumps[k];
      }
    }
  });
}

// Rows of few elements, of which several run as one: operands that do not continue from row to row (a bias, the two
// sides of a table of pairs) are first put into a buffer in the result's order, unless it holds the same already.
constexpr int64_t kShortRow = 64, kBlock = 512;  // elements

// `rows` steps of dimension d, of `width` elements each, are a block.
struct Blocks {
  int d;
  int64_t rows, width;

  bool joins(const Shape& s, int k) const {  // are operand k's elements of a block evenly spaced?
    for (int e = d; e < s.ndim - 1; ++e)
      if (s.strides[k][e] != s.strides[k][e + 1] * s.sizes[e + 1]) return false;
    return true;
  }
};
bool in_blocks(const Shape& s, Blocks& b) {
  const int inner = s.ndim - 1;
  if (s.count > 4 || s.sizes[inner] >= kShortRow) return false;
  b.d = inner - 1;
  b.width = s.sizes[inner];
  while (b.d > 0 && b.width * s.sizes[b.d] * 2 <= kBlock) b.width *= s.sizes[b.d--];
  const int64_t fit = kBlock / b.width;
  b.rows = fit < s.sizes[b.d] ? fit : s.sizes[b.d];
  return b.rows > 1 && b.joins(s, 0);
}

template <class T> void copy_items(char* to, const char* from, int64_t stride, int64_t n) {
  T* out = reinterpret_cast<T*>(to);
  if (stride == 0) {
    const T x = *reinterpret_cast<const T*>(from);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = x;
    return;
  }
  for (int64_t i = 0; i < n; ++i, from += stride) out[i] = *reinterpret_cast<const T*>(from);
}
// `rows` rows of n elements, `jump` bytes from each other, packed.
void copy_rows(char* to, const char* from, int64_t rows, int64_t jump, int64_t n, int64_t stride, int64_t size) {
  if (stride == size) return copy_byte_rows(to, n * size, from, jump, rows, n * size);
  for (int64_t r = 0; r < rows; ++r, to += n * size, from += jump) {
    if (size == 4) copy_items<uint32_t>(to, from, stride, n);
    else if (size == 8) copy_items<uint64_t>(to, from, stride, n);
    else
      for (int64_t i = 0; i < n; ++i) copy_bytes(to + i * size, from + i * stride, size);
  }
}
void fill_block(char* to, const char* from, const Shape& s, int k, int d, int64_t rows, int64_t size) {
  const int inner = s.ndim - 1;
  const int64_t jump = s.strides[k][d];
  int64_t row = size;  // bytes
  for (int e = d + 1; e <= inner; ++e) row *= s.sizes[e];
  if (d == inner - 1 && (jump != 0 || rows < 4))
    return copy_rows(to, from, rows, jump, s.sizes[inner], s.strides[k][inner], size);
  const int64_t made = jump == 0 ? 1 : rows;
  for (int64_t r = 0; r < made; ++r) {
    if (d == inner - 1) copy_rows(to, from, 1, 0, s.sizes[inner], s.strides[k][inner], size);
    else fill_block(to + r * row, from + r * jump, s, k, d + 1, s.sizes[d + 1], size);
  }
  for (int64_t done = made; done < rows; done *= 2)
    __builtin_memcpy(to + done * row, to, static_cast<size_t>((rows - done < done ? rows - done : done) * row));
}
void run_in_blocks(Loop loop, const Shape& s, const Blocks& b, char* const* data, const int64_t* itemsizes,
                   const LoopParams& params, int cost) {
  const int inner = s.ndim - 1;
  const int64_t across = (s.sizes[b.d] + b.rows - 1) / b.rows, grain = grain_of(cost) / (b.rows * b.width);
  int64_t total = across;
  for (int e = 0; e < b.d; ++e) total *= s.sizes[e];
  parallel_for(0, total, grain < 1 ? 1 : grain, [&](int64_t first, int64_t last) {
    alignas(64) char buffer[3][kBlock * 16];
    const char* held[kMaxOperands] = {};
    int64_t held_rows = 0, steps[kMaxOperands];
    bool joins[kMaxOperands];
    for (int k = 0; k < s.count; ++k) {
      joins[k] = b.joins(s, k);
      steps[k] = joins[k] ? s.strides[k][inner] : itemsizes[k];
    }
    for (int64_t at_block = first; at_block < last; ++at_block) {
      const int64_t r = at_block % across * b.rows, rows = s.sizes[b.d] - r < b.rows ? s.sizes[b.d] - r : b.rows;
      char* at[kMaxOperands];
      for (int k = 0; k < s.count; ++k) {
        at[k] = data[k] + r * s.strides[k][b.d];
        int64_t rest = at_block / across;
        for (int e = b.d - 1; e >= 0; --e) {
          at[k] += rest % s.sizes[e] * s.strides[k][e];
          rest /= s.sizes[e];
        }
        if (joins[k]) continue;
        if (at[k] != held[k] || rows > held_rows) fill_block(buffer[k - 1], at[k], s, k, b.d, rows, itemsizes[k]);
        held[k] = at[k];
        at[k] = buffer[k - 1];
      }
      held_rows = rows;
      loop(at, steps, rows * b.width, params);
    }
  });
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
  if (repeats(s, steps[0])) return run_repeated(loop, s, data, steps[0], params);
  if (Blocks b; in_blocks(s, b)) return run_in_blocks(loop, s, b, data, steps, params, cost);
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
      for (int d = 0; d < inner && count <= 4; ++d) {
        if (transposed(s, k, d, steps[k])) return run_squares(loop, s, d, data, steps, params, cost);
      }
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
Loops::Loops(Put put) { puts().push_back(put); }

const PointwiseKernels pointwise_kernels = {&find_loop, &run, &cpu::run_program};

}  // namespace rl::RL_ISA
