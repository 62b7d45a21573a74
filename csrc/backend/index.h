// Kernels that read and write at computed positions: gather, scatter, advanced indexing, masks, nonzero.
#pragma once
#include <cstdint>

#include "backend/view.h"
#include "base/check.h"

namespace rl {

// How `put` combines the value with what is there.
enum class Combine : uint8_t { Set, Sum, Prod, Amin, Amax };

// Note [Index specs]
// `get` and `put` see a dense operand (the values) and an indexed one, both with the dense operand's sizes. The
// indexed operand has stride 0 along the dimensions that the indices replace; the position of an element is its
// ordinary strided position plus, for each index k, index_k * strides[k]. The index tensors are broadcast to the dense
// operand's sizes by strides of 0. So all of these are one kernel:
//   gather(x, d, i)        dense sizes i.sizes   x without stride d                 indices {i},     strides
//   {x.stride(d)} index_select(x, d, i)  ... len(i) at d       x without stride d                 {i along d},
//   {x.stride(d)} x[i, :, j]             broadcast + slices    x's kept dims, 0 at broadcast dims {i, j}, {x.stride(0),
//   x.stride(2)} embedding(w, i)        i.sizes + (D)         (0..., w.stride(1))                {i}, {w.stride(0)}
struct IndexSpec {
  const View* indices;                 // Int64 or Int32
  int count;                           // at least 1
  const int64_t* sizes;                // of the indexed dimensions, for the bounds check
  const int64_t* strides;              // in elements of the indexed operand
  const int* dims;                     // for the message
  ErrorKind error = ErrorKind::Index;  // raised as "index 5 is out of bounds for dimension 0 with size 3"
  bool wrap = true;                    // negative indices count from the end
};

struct IndexKernels {
  // out = in at the positions. Same types.
  void (*get)(const View& out, const View& in, const IndexSpec& spec);
  // target at the positions = combine(target, values). Same types. Equal positions are combined in the order of the
  // dense operand, whatever the number of threads; the last one stays for Set. A scalar is a `values` of strides 0. All
  // but Set need a type that computes; Amin and Amax a real one, and they hand NaN on.
  void (*put)(const View& target, const View& values, const IndexSpec& spec, Combine combine);
  // target at the positions += values, of reduced-precision types: every sum is taken in float and rounded once. False,
  // and nothing done, where the positions are not rows of a table, one after the other in memory, and rows added to
  // them.
  bool (*add_half_rows)(const View& target, const View& values, const IndexSpec& spec);
  // target = value where mask (Bool, same sizes); `value` points to one element of target's type.
  void (*masked_fill)(const View& target, const View& mask, const void* value);
  // How many elements are not zero; any type, any strides.
  int64_t (*count_nonzero)(const View& in);
  // The elements of `in` where mask (Bool, same sizes) in row-major order. out: contiguous, count_nonzero(mask) of
  // them.
  void (*masked_select)(const View& out, const View& in, const View& mask);
  // The inverse: target where mask = the next element of source, which is contiguous, of target's type and long enough.
  void (*masked_scatter)(const View& target, const View& mask, const View& source);
  // out (count, ndim), Int64, any strides: the coordinates of the elements that are not zero, in row-major order;
  // the first out.sizes[0] of them.
  void (*nonzero)(const View& out, const View& in);
  // out (contiguous, Int64, the sum of repeats) = i repeated repeats[i] times. repeats: Int64 or Int32, one dimension,
  // checked here: none may be negative and their sum must be out's size.
  void (*repeat_indices)(const View& out, const View& repeats);
  // out (2, n), Int64 or Int32: rows and columns of the elements on and below (`upper`: above) a diagonal, row by row.
  void (*triangle_indices)(const View& out, int64_t rows, int64_t columns, int64_t diagonal, bool upper);
};

// How many there are: the n of triangle_indices.
inline int64_t triangle_count(int64_t rows, int64_t columns, int64_t diagonal, bool upper) {
  if (rows <= 0 || columns <= 0) return 0;
  int64_t all = checked_mul(rows, columns);
  if (upper) {
    if (diagonal <= -rows) return all;
    return all - triangle_count(rows, columns, diagonal - 1, false);
  }
  if (diagonal <= -rows) return 0;
  if (diagonal >= columns - 1) return all;
  // Rows [first, full) hold row + diagonal + 1 elements, the rows after them are full.
  int64_t first = diagonal < 0 ? -diagonal : 0, full = columns - diagonal - 1;
  int64_t end = full < rows ? full : rows;
  __int128 partial = static_cast<__int128>(end - first) * (first + end + 1 + 2 * diagonal) / 2;
  return static_cast<int64_t>(partial + static_cast<__int128>(rows - end) * columns);
}

}  // namespace rl
