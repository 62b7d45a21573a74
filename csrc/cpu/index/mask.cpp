// Masks: work is cut into blocks of elements; a first pass counts each block, a second one knows where its
// elements go.
#include <cstring>
#include <vector>

#include "base/parallel.h"
#include "cpu/features.h"
#include "cpu/index/compress_avx512.h"
#include "cpu/index/index.h"
#include "cpu/loops/nest.h"
#include "cpu/simd/cast.h"
#include "cpu/simd/transpose.h"

namespace rl::RL_ISA {

namespace {

// value where `set`, without a branch: masks are often random.
template <class U> inline U blended(U there, U value, uint8_t set) {
  if constexpr (sizeof(U) == 16) {
    return {blended(there.lo, value.lo, set), blended(there.hi, value.hi, set)};
  } else {
    U all = static_cast<U>(-static_cast<U>(set != 0));
    return static_cast<U>((there & ~all) | (value & all));
  }
}

constexpr int64_t kBlock = 16384;

int64_t count_run(const char* bools, int64_t step, int64_t n) {
  int64_t count = 0;
  if (step == 0) return *bools ? n : 0;
  if (step == 1) {
    const uint8_t* b = reinterpret_cast<const uint8_t*>(bools);
    for (int64_t i = 0; i < n; i += 128) {  // 128 fit a byte sum per lane
      int64_t m = n - i < 128 ? n - i : 128;
      uint32_t sum = 0;
      for (int64_t j = 0; j < m; ++j) sum += b[i + j] != 0;
      count += sum;
    }
    return count;
  }
  for (int64_t i = 0; i < n; ++i) count += bools[i * step] != 0;
  return count;
}

// Writes the positions of what is set among n bools, from `base` on, and returns their number; `at` has room for n
// + 16. Without a branch for each element: masks are often random.
int64_t positions_of(const char* bools, int64_t n, int32_t base, int32_t* at) {
  if (has_avx512()) return avx512::true_positions(bools, n, base, at);
  int64_t count = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t bits;
    std::memcpy(&bits, bools + i, 8);
    if (!bits) continue;
    for (int64_t j = i; j < i + 8; ++j) {
      at[count] = static_cast<int32_t>(base + j);
      count += bools[j] != 0;
    }
  }
  for (; i < n; ++i) {
    at[count] = static_cast<int32_t>(base + i);
    count += bools[i] != 0;
  }
  return count;
}
// hit(at, count): the positions of what is set among n bools, some at a time.
template <class Hit> void for_hits(const char* bools, int64_t step, int64_t n, Hit&& hit) {
  constexpr int64_t kSome = 1024;
  int32_t at[kSome + 16];
  char packed[kSome];
  for (int64_t i = 0; i < n; i += kSome) {
    const int64_t some = n - i < kSome ? n - i : kSome;
    const char* from = bools + i * step;
    if (step != 1) {
      for (int64_t j = 0; j < some; ++j) packed[j] = from[j * step];
      from = packed;
    }
    const int64_t count = positions_of(from, some, static_cast<int32_t>(i), at);
    if (count) hit(at, count);
  }
}

// The elements [first, first + n) in row-major order as n <= kBlock bools.
const char* as_bools(const Nest<1>& nest, int64_t first, int64_t n, DType dtype, char* buffer) {
  int64_t step = nest.strides[0][0], size = itemsize(dtype);
  if (dtype == DType::Bool && nest.ndim == 1 && step == 1) return nest.data[0] + first;
  Cast cast = cast_between(DType::Bool, dtype);
  char* out = buffer;
  nest.for_runs(first, first + n, [&](char* const* at, int64_t count) {
    if (step == size) {
      if (cast) cast(out, at[0], count);
      else std::memcpy(out, at[0], count);
    } else {
      visit_size(size, [&](auto u) {
        using U = decltype(u);
        U packed[256];
        for (int64_t i = 0; i < count; i += 256) {
          int64_t m = count - i < 256 ? count - i : 256;
          for (int64_t j = 0; j < m; ++j) packed[j] = *reinterpret_cast<const U*>(at[0] + (i + j) * step);
          if (cast) cast(out + i, packed, m);
          else std::memcpy(out + i, packed, m);
        }
      });
    }
    out += count;
  });
  return buffer;
}

// body(block, first, last) over blocks of the elements, in parallel when there are several.
template <class Body> void for_blocks(int64_t total, Body&& body) {
  int64_t blocks = (total + kBlock - 1) / kBlock;
  auto piece = [&](int64_t from, int64_t to) {
    for (; from < to; ++from)
      body(from, from * kBlock, from * kBlock + kBlock < total ? from * kBlock + kBlock : total);
  };
  if (blocks <= 1) return piece(0, blocks);
  parallel_for(0, blocks, 4, piece);
}

// starts[b] = how many are set before block b; one more entry holds their number.
std::vector<int64_t> block_starts(const View& in, Order order) {
  Nest<1> nest({&in}, order);
  std::vector<int64_t> starts((nest.total + kBlock - 1) / kBlock + 1, 0);
  for_blocks(nest.total, [&](int64_t block, int64_t first, int64_t last) {
    char buffer[kBlock];
    starts[block + 1] = count_run(as_bools(nest, first, last - first, in.dtype, buffer), 1, last - first);
  });
  for (size_t b = 1; b < starts.size(); ++b) starts[b] += starts[b - 1];
  return starts;
}

}  // namespace

int64_t count_nonzero(const View& in) {
  if (in.numel() == 0) return 0;
  return block_starts(in, Order::Memory).back();
}

void masked_fill(const View& target, const View& mask, const void* value) {
  if (target.numel() == 0) return;
  Nest<2> nest({&target, &mask});
  const int64_t* step = nest.strides[0];
  visit_size(itemsize(target.dtype), [&](auto u) {
    using U = decltype(u);
    U v;
    std::memcpy(&v, value, sizeof v);
    nest.parallel_runs(kPieceBytes / 2 / static_cast<int64_t>(sizeof(U)), [&](char* const* at, int64_t n) {
      const U value = v;  // bytes written could be those of what is captured
      if (step[1] == 1 && step[0] == static_cast<int64_t>(sizeof(U))) {
        U* __restrict t = reinterpret_cast<U*>(at[0]);
        const uint8_t* __restrict m = reinterpret_cast<const uint8_t*>(at[1]);
        for (int64_t i = 0; i < n; ++i) t[i] = blended(t[i], value, m[i]);
      } else if (step[1] != 0 || *at[1]) {
        const int64_t strided = step[0], mask_strided = step[1];
        for (int64_t i = 0; i < n; ++i) {
          U* t = reinterpret_cast<U*>(at[0] + i * strided);
          *t = blended(*t, value, static_cast<uint8_t>(at[1][i * mask_strided]));
        }
      }
    });
  });
}

void masked_select(const View& out, const View& in, const View& mask) {
  if (in.numel() == 0) return;
  std::vector<int64_t> starts = block_starts(mask, Order::RowMajor);
  Nest<2> nest({&in, &mask}, Order::RowMajor);
  int64_t step = nest.strides[0][0], mask_step = nest.strides[0][1];
  CHECK(starts.back() == out.numel(), Runtime, "masked_select: the mask changed while it was read");
  visit_size(itemsize(in.dtype), [&](auto u) {
    using U = decltype(u);
    for_blocks(nest.total, [&](int64_t block, int64_t first, int64_t last) {
      U *o = out.as<U>() + starts[block], *end = out.as<U>() + starts[block + 1];
      nest.for_runs(first, last, [&](char* const* at, int64_t n) {
        for_hits(at[1], mask_step, n, [&](const int32_t* positions, int64_t count) {
          if (count > end - o) return;
          for (int64_t j = 0; j < count; ++j) o[j] = *reinterpret_cast<const U*>(at[0] + positions[j] * step);
          o += count;
        });
      });
    });
  });
}

void masked_scatter(const View& target, const View& mask, const View& source) {
  if (target.numel() == 0) return;
  std::vector<int64_t> starts = block_starts(mask, Order::RowMajor);
  Nest<2> nest({&target, &mask}, Order::RowMajor);
  int64_t step = nest.strides[0][0], mask_step = nest.strides[0][1];
  CHECK(starts.back() <= source.numel(), Runtime,
        "Number of elements of source < number of ones in mask: masked_scatter got ", source.numel(), " and ",
        starts.back());
  visit_size(itemsize(target.dtype), [&](auto u) {
    using U = decltype(u);
    for_blocks(nest.total, [&](int64_t block, int64_t first, int64_t last) {
      const U *x = source.as<U>() + starts[block], *end = source.as<U>() + starts[block + 1];
      nest.for_runs(first, last, [&](char* const* at, int64_t n) {
        for_hits(at[1], mask_step, n, [&](const int32_t* positions, int64_t count) {
          if (count > end - x) return;
          for (int64_t j = 0; j < count; ++j) *reinterpret_cast<U*>(at[0] + positions[j] * step) = x[j];
          x += count;
        });
      });
    });
  });
}

void nonzero(const View& out, const View& in) {
  int64_t limit = out.sizes[0];
  if (in.numel() == 0 || limit == 0 || in.ndim == 0) return;
  std::vector<int64_t> starts = block_starts(in, Order::RowMajor);
  Nest<1> nest({&in}, Order::RowMajor);
  const int ndim = in.ndim;
  const int64_t inner = in.sizes[ndim - 1], row_step = out.strides[0], column_step = out.strides[1];
  for_blocks(nest.total, [&](int64_t block, int64_t first, int64_t last) {
    if (starts[block] == starts[block + 1]) return;
    char buffer[kBlock];
    const char* bools = as_bools(nest, first, last - first, in.dtype, buffer);
    int64_t position = starts[block], stop = starts[block + 1] < limit ? starts[block + 1] : limit;
    // The coordinates of the row that holds the current element; `origin` is its first element.
    int64_t outer[kMaxDims], rest = first / inner, origin = rest * inner;
    for (int d = ndim - 2; d >= 0; --d) outer[d] = rest % in.sizes[d], rest /= in.sizes[d];
    for_hits(bools, 1, last - first, [&](const int32_t* positions, int64_t count) {
      count = count < stop - position ? count : stop - position;
      int64_t* o = out.as<int64_t>() + position * row_step;
      position += count;
      for (int64_t j = 0; j < count;) {
        for (; first + positions[j] - origin >= inner; origin += inner) {
          for (int d = ndim - 2; d >= 0 && ++outer[d] == in.sizes[d]; --d) outer[d] = 0;
        }
        int64_t same = j;  // up to where they lie in this row
        for (; same < count && first + positions[same] - origin < inner; ++same) {
          o[same * row_step + (ndim - 1) * column_step] = first + positions[same] - origin;
        }
        for (int d = 0; d < ndim - 1; ++d) {
          for (int64_t k = j; k < same; ++k) o[k * row_step + d * column_step] = outer[d];
        }
        j = same;
      }
    });
  });
}

}  // namespace rl::RL_ISA
