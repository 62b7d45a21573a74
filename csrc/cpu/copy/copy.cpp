#include "backend/copy.h"

#include <cstring>

#include "cpu/copy/fill.h"
#include "cpu/isa.h"
#include "cpu/loops/bytes.h"
#include "cpu/loops/nest.h"
#include "cpu/simd/cast.h"
#include "cpu/simd/transpose.h"

namespace rl::RL_ISA {

namespace {

// One run of n elements between any strides (in bytes).
template <class U> void move_run(char* out, int64_t out_step, const char* in, int64_t in_step, int64_t n) {
  if (out_step == sizeof(U) && in_step == sizeof(U)) {
    copy_bytes(out, in, n * static_cast<int64_t>(sizeof(U)));
  } else if (in_step == 0) {
    U v;
    __builtin_memcpy(&v, in, sizeof v);
    if (out_step == sizeof(U)) {
      repeat_item(out, v, n);
    } else {
      for (int64_t i = 0; i < n; ++i) *reinterpret_cast<U*>(out + i * out_step) = v;
    }
  } else if (out_step == sizeof(U) && in_step == -static_cast<int64_t>(sizeof(U))) {  // a flip
    U* __restrict o = reinterpret_cast<U*>(out);
    const U* __restrict x = reinterpret_cast<const U*>(in);
    for (int64_t i = 0; i < n; ++i) o[i] = x[-i];
  } else if (out_step == sizeof(U)) {
    gather_items<U>(out, in, in_step, n);
  } else {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<U*>(out + i * out_step) = *reinterpret_cast<const U*>(in + i * in_step);
  }
}
using Move = void (*)(char*, int64_t, const char*, int64_t, int64_t);
Move move_of(int64_t size) {
  Move m = nullptr;
  visit_size(size, [&](auto u) { m = &move_run<decltype(u)>; });
  return m;
}

// The dimension along which the source is contiguous while the result is not, or 0.
int crossed_dimension(const Nest<2>& nest, int64_t out_size, int64_t in_size) {
  if (nest.ndim < 2 || nest.strides[0][0] != out_size || nest.strides[0][1] == in_size || nest.strides[0][1] == 0)
    return 0;
  for (int d = 1; d < nest.ndim; ++d)
    if (nest.strides[d][1] == in_size) return d;
  return 0;
}

// Tiles are a cache line or two wide on both sides, so that every line fetched is used whole.
// Bands of rows of out are the pieces of work.
template <class U> void transpose_planes(const Nest<2>& nest, int d, Cast cast, int64_t out_size) {
  constexpr int64_t kTile = sizeof(U) == 1 ? 64 : 128 / sizeof(U) < 32 ? 128 / sizeof(U) : 32;
  int64_t rows = nest.sizes[d], columns = nest.sizes[0];
  int64_t out_row = nest.strides[d][0], in_row = nest.strides[0][1];
  int64_t bands = (rows + kTile - 1) / kTile, planes = nest.total / (rows * columns);
  int64_t band_bytes = (rows < kTile ? rows : kTile) * columns * static_cast<int64_t>(sizeof(U));
  int64_t grain = kPieceBytes / 2 / (band_bytes + 1) + 1;
  // Rows a power of two apart compete for the same cache lines: finish whole lines in a buffer first.
  bool buffered = cast || (sizeof(U) < 16 && out_row % 1024 == 0);
  parallel_for(0, planes * bands, grain, [&](int64_t first, int64_t last) {
    alignas(64) U tile[kTile * kTile];
    for (; first < last; ++first) {
      int64_t plane = first / bands, row = first % bands * kTile;
      char* out = nest.data[0] + row * out_row;
      const char* in = nest.data[1] + row * static_cast<int64_t>(sizeof(U));
      for (int k = 1; k < nest.ndim; ++k) {
        if (k == d) continue;
        int64_t at = plane % nest.sizes[k];
        plane /= nest.sizes[k];
        out += at * nest.strides[k][0], in += at * nest.strides[k][1];
      }
      int64_t height = rows - row < kTile ? rows - row : kTile;
      for (int64_t column = 0; column < columns; column += kTile) {
        int64_t width = columns - column < kTile ? columns - column : kTile;
        const char* source = in + column * in_row;
        if (!buffered) {
          transpose_tile<U>(out + column * out_size, out_row, source, in_row, height, width);
          continue;
        }
        transpose_tile<U>(reinterpret_cast<char*>(tile), kTile * sizeof(U), source, in_row, height, width);
        for (int64_t r = 0; r < height; ++r) {
          char* target = out + r * out_row + column * out_size;
          if (cast) cast(target, tile + r * kTile, width);
          else if (width == kTile) __builtin_memcpy(target, tile + r * kTile, kTile * sizeof(U));
          else std::memcpy(target, tile + r * kTile, width * sizeof(U));
        }
      }
    }
  });
}

// The same for two or three columns, such as the colours of an image: each is one strided loop over a band of rows.
template <class U> void interleave_planes(const Nest<2>& nest, int d) {
  constexpr int64_t kBand = 2048;
  int64_t rows = nest.sizes[d], columns = nest.sizes[0], bands = (rows + kBand - 1) / kBand;
  int64_t out_row = nest.strides[d][0], in_row = nest.strides[0][1];
  auto piece = [&](int64_t first, int64_t last) {
    for (; first < last; ++first) {
      int64_t plane = first / bands, row = first % bands * kBand, height = rows - row < kBand ? rows - row : kBand;
      char* out = nest.data[0] + row * out_row;
      const char* in = nest.data[1] + row * static_cast<int64_t>(sizeof(U));
      for (int k = 1; k < nest.ndim; ++k) {
        if (k == d) continue;
        int64_t at = plane % nest.sizes[k];
        plane /= nest.sizes[k];
        out += at * nest.strides[k][0], in += at * nest.strides[k][1];
      }
      for (int64_t j = 0; j < columns; ++j) {
        const U* x = reinterpret_cast<const U*>(in + j * in_row);
        char* o = out + j * static_cast<int64_t>(sizeof(U));
        for (int64_t i = 0; i < height; ++i) *reinterpret_cast<U*>(o + i * out_row) = x[i];
      }
    }
  };
  int64_t planes = nest.total / (rows * columns), grain = rows < kBand ? kBand / rows * 8 : 8;
  if (planes * bands <= grain) return piece(0, planes * bands);
  parallel_for(0, planes * bands, grain, piece);
}

// Each of n elements kTimes, one after another: shuffles of whole registers.
template <int kTimes, class U> void repeat_each(char* out, const char* in, int64_t n) {
  U* __restrict o = reinterpret_cast<U*>(out);
  const U* __restrict x = reinterpret_cast<const U*>(in);
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 4
    for (int k = 0; k < kTimes; ++k) o[kTimes * i + k] = x[i];
}

// Rows of a few elements: instead of a run per row, one per element of a row, along a band of rows.
template <class U> void copy_short_rows(const Nest<2>& nest) {
  constexpr int64_t kBand = 1024;
  const int64_t width = nest.sizes[0], rows = nest.sizes[1], bands = (rows + kBand - 1) / kBand;
  const int64_t* step = nest.strides[0];
  const int64_t* row = nest.strides[1];
  constexpr auto kSize = static_cast<int64_t>(sizeof(U));
  const bool repeats = step[0] == kSize && step[1] == 0 && row[0] == width * kSize && row[1] == kSize;
  auto piece = [&](int64_t first, int64_t last) {
    for (; first < last; ++first) {
      const int64_t top = first % bands * kBand, height = rows - top < kBand ? rows - top : kBand;
      int64_t plane = first / bands;
      char* out = nest.data[0] + top * row[0];
      const char* in = nest.data[1] + top * row[1];
      for (int k = 2; k < nest.ndim; ++k) {
        const int64_t at = plane % nest.sizes[k];
        plane /= nest.sizes[k];
        out += at * nest.strides[k][0], in += at * nest.strides[k][1];
      }
      if (repeats && width == 2) repeat_each<2, U>(out, in, height);
      else if (repeats && width == 3) repeat_each<3, U>(out, in, height);
      else if (repeats && width == 4) repeat_each<4, U>(out, in, height);
      else
        for (int64_t j = 0; j < width; ++j) move_run<U>(out + j * step[0], row[0], in + j * step[1], row[1], height);
    }
  };
  const int64_t pieces = nest.total / (rows * width) * bands, one = (rows < kBand ? rows : kBand) * width;
  const int64_t grain = kPieceBytes / 4 / (one * kSize + 1) + 1;
  if (pieces <= grain) return piece(0, pieces);
  parallel_for(0, pieces, grain, piece);
}

// A run with a conversion: strided sides pass through small contiguous buffers.
void cast_strided(char* out, int64_t out_step, Move out_move, int64_t out_size, const char* in, int64_t in_step,
                  Move in_move, int64_t in_size, int64_t n, Cast cast) {
  if (out_step == out_size && in_step == in_size) return cast(out, in, n);
  constexpr int64_t kChunk = 256;
  alignas(64) char packed_in[kChunk * 16], packed_out[kChunk * 16];
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t m = n - i < kChunk ? n - i : kChunk;
    const char* source = in + i * in_step;
    if (in_step != in_size) in_move(packed_in, in_size, source, in_step, m), source = packed_in;
    char* target = out + i * out_step;
    if (out_step == out_size) {
      cast(target, source, m);
    } else {
      cast(packed_out, source, m);
      out_move(target, out_step, packed_out, out_size, m);
    }
  }
}

void copy_contiguous(char* out, int64_t out_size, const char* in, int64_t in_size, int64_t n, Cast cast) {
  int64_t grain = kPieceBytes / out_size;
  auto piece = [&](int64_t first, int64_t last) {
    if (cast) cast(out + first * out_size, in + first * in_size, last - first);
    else copy_bytes(out + first * out_size, in + first * in_size, (last - first) * out_size);
  };
  if (n <= grain) return piece(0, n);
  parallel_for(0, n, even_grain(n, grain), piece);
}

void copy(const View& out, const View& in) {
  if (out.numel() == 0) return;
  int64_t out_size = itemsize(out.dtype), in_size = itemsize(in.dtype);
  Cast cast = cast_between(out.dtype, in.dtype);
  if (out.contiguous() && in.contiguous())
    return copy_contiguous(out.as<char>(), out_size, in.as<char>(), in_size, out.numel(), cast);
  Nest<2> nest({&out, &in});
  int64_t out_step = nest.strides[0][0], in_step = nest.strides[0][1];
  if (nest.ndim == 1 && out_step == out_size && in_step == in_size)
    return copy_contiguous(out.as<char>(), out_size, in.as<char>(), in_size, nest.total, cast);
  if (int d = crossed_dimension(nest, out_size, in_size); d && nest.sizes[d] > 3) {
    if (nest.sizes[0] > 3)
      return visit_size(in_size, [&](auto u) { transpose_planes<decltype(u)>(nest, d, cast, out_size); });
    if (!cast) return visit_size(in_size, [&](auto u) { interleave_planes<decltype(u)>(nest, d); });
  }
  if (!cast && nest.ndim > 1 && nest.sizes[0] <= 4 && nest.sizes[1] >= 32)
    return visit_size(in_size, [&](auto u) { copy_short_rows<decltype(u)>(nest); });
  if (!cast && nest.ndim > 1 && out_step == out_size && in_step == in_size && nest.sizes[0] * out_size <= 256) {
    const int64_t bytes = nest.sizes[0] * out_size;
    const Nest<2> rows = nest.rows();
    return rows.parallel_runs(kPieceBytes / 4 / bytes, [&](char* const* at, int64_t n) {
      copy_byte_rows(at[0], rows.strides[0][0], at[1], rows.strides[0][1], n, bytes);
    });
  }
  Move in_move = move_of(in_size), out_move = move_of(out_size);
  nest.parallel_runs(kPieceBytes / 4 / out_size, [&](char* const* at, int64_t n) {
    if (cast) cast_strided(at[0], out_step, out_move, out_size, at[1], in_step, in_move, in_size, n, cast);
    else out_move(at[0], out_step, at[1], in_step, n);
  });
}

void cat(const View& out, const View* inputs, int64_t count, int dim) {
  if (out.numel() == 0) return;
  int64_t start = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t part = inputs[i].sizes[dim];
    if (part == 0) continue;
    View target{out.as<char>() + start * out.strides[dim] * itemsize(out.dtype), inputs[i].sizes, out.strides, out.ndim,
                out.dtype};
    copy(target, inputs[i]);
    start += part;
  }
}

// Row by row of the result.
template <class U>
void spread_rows(const View& out, const View& in, const int64_t* const* offsets, int64_t inner, int64_t length) {
  const int last_dim = out.ndim - 1;
  const int64_t width = out.sizes[last_dim], narrow = in.sizes[last_dim];
  const int64_t* at = offsets[last_dim];
  int64_t rows = 1;
  for (int d = 0; d < last_dim; ++d) rows *= out.sizes[d];
  const int64_t grain = 1 + kPieceBytes / (width * static_cast<int64_t>(sizeof(U)) + 1);
  parallel_for(0, rows, even_grain(rows, grain), [&](int64_t first, int64_t last) {
    int64_t index[kMaxDims], steps[kMaxDims];
    int64_t rest = first, step = narrow;
    for (int d = last_dim - 1; d >= 0; --d) {
      index[d] = rest % out.sizes[d];
      rest /= out.sizes[d];
      steps[d] = step;
      step *= in.sizes[d];
    }
    const U* plane = nullptr;  // of the rows that follow each other
    for (int64_t r = first; r < last; ++r) {
      if (!plane) {
        plane = static_cast<const U*>(in.data);
        for (int d = 0; d < last_dim - 1; ++d) plane += (offsets[d] ? offsets[d][index[d]] : index[d]) * steps[d];
      }
      const U* x = plane;
      if (const int d = last_dim - 1; d >= 0) x += (offsets[d] ? offsets[d][index[d]] : index[d]) * steps[d];
      U* y = static_cast<U*>(out.data) + r * width;
      for (int64_t i = 0; i < inner; ++i) y[i] = x[at[i]];
      const U* middle = x + (at && length ? at[inner] : inner);
      if (length < 24) {
        for (int64_t i = 0; i < length; ++i) y[inner + i] = middle[i];
      } else {
        copy_bytes(reinterpret_cast<char*>(y + inner), reinterpret_cast<const char*>(middle),
                   length * static_cast<int64_t>(sizeof(U)));
      }
      for (int64_t i = inner + length; i < width; ++i) y[i] = x[at[i]];
      for (int d = last_dim - 1; d >= 0 && ++index[d] == out.sizes[d]; --d) index[d] = 0, plane = nullptr;
    }
  });
}
void spread(const View& out, const View& in, const int64_t* const* offsets, int64_t inner, int64_t length) {
  visit_size(itemsize(out.dtype), [&](auto u) { spread_rows<decltype(u)>(out, in, offsets, inner, length); });
}

}  // namespace

extern const CopyKernels copy_kernels;
const CopyKernels copy_kernels = {copy, fill, zero, range, linspace, triangle, cat, spread};

}  // namespace rl::RL_ISA
