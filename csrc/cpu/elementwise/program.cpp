// Several elementwise loops as one pass: a chunk of elements goes through all steps before the next one is read.
#include "cpu/elementwise/program.h"

#include <algorithm>

#include "base/parallel.h"
#include "cpu/loops/scratch.h"

namespace rl::cpu {
namespace {

constexpr int64_t kCacheBytes = 32 << 10;  // for the chunks of all values: the first cache
constexpr int64_t kLeastChunk = 256, kMostChunk = 2048;

// Dimensions, outermost first, without those of size 1, and with neighbours that continue each other made one.
struct Grid {
  int ndim = 0;
  int64_t sizes[kMaxDims + 1], total = 1;
  SmallVector<int64_t, 64> strides;  // [dimension][operand], in bytes
  int64_t count;

  explicit Grid(Span<View> operands) : count(operands.size()) {
    const View& lead = operands[0];
    auto at = [this](int d) { return strides.data() + d * count; };
    for (int d = 0; d < lead.ndim; ++d) {
      total *= lead.sizes[d];
      if (lead.sizes[d] == 1) continue;
      strides.resize((ndim + 1) * count, 0);
      bool joins = ndim > 0;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t stride = operands[k].strides[d] * itemsize(operands[k].dtype);
        joins = joins && at(ndim - 1)[k] == stride * lead.sizes[d];
        at(ndim)[k] = stride;
      }
      if (joins) {
        sizes[ndim - 1] *= lead.sizes[d];
        for (int64_t k = 0; k < count; ++k) at(ndim - 1)[k] = at(ndim)[k];
      } else {
        sizes[ndim++] = lead.sizes[d];
      }
    }
    if (ndim == 0) {
      sizes[ndim++] = 1;
      strides.resize(count, 0);
    }
  }
  const int64_t* along(int d) const { return strides.data() + d * count; }
};

// Rows of `width` elements packed, without gaps; `jump` and `stride` are in bytes.
template <class T> void gather(char* to, const char* from, int64_t rows, int64_t jump, int64_t width, int64_t stride) {
  T* out = reinterpret_cast<T*>(to);
  for (int64_t r = 0; r < rows; ++r, from += jump, out += width) {
    if (stride == sizeof(T)) {
      __builtin_memcpy(out, from, static_cast<size_t>(width) * sizeof(T));
    } else {
      const char* at = from;
      for (int64_t i = 0; i < width; ++i, at += stride) out[i] = *reinterpret_cast<const T*>(at);
    }
  }
}

// A thread's iteration over the elements.
struct Walk {
  const Grid& grid;
  Span<ProgramStep> steps;
  Span<View> operands;
  const int inner = grid.ndim - 1;
  int64_t chunk;
  SmallVector<char*, 24> start, at;   // of each value: the address of its row or rows, and of the chunk
  SmallVector<int64_t, 24> stride;    // in bytes
  SmallVector<char*, 8> gathered;     // where rows that do not continue each other come together; null for others
  SmallVector<const char*, 8> holds;  // whose rows are there
  Scratch<char> memory;

  Walk(const Grid& g, Span<ProgramStep> s, Span<View> o, Span<int> register_bytes, int64_t chunk_)
      : grid(g),
        steps(s),
        operands(o),
        chunk(chunk_),
        start(o.size() + register_bytes.size(), nullptr),
        at(o.size() + register_bytes.size(), nullptr),
        stride(o.size() + register_bytes.size(), 0),
        gathered(o.size(), nullptr),
        holds(o.size(), nullptr) {
    auto continues = [&](int64_t k) {
      return inner == 0 || grid.along(inner - 1)[k] == grid.along(inner)[k] * grid.sizes[inner];
    };
    int64_t bytes = 0;
    for (int b : register_bytes) bytes += b * chunk;
    for (int64_t k = 0; k < o.size(); ++k) bytes += continues(k) ? 0 : itemsize(o[k].dtype) * chunk;
    memory.reset(bytes);
    char* free = memory.get();
    for (int64_t k = 0; k < o.size(); ++k) {
      stride[k] = grid.along(inner)[k];
      if (continues(k) || rows() == 1) continue;
      gathered[k] = free;
      stride[k] = itemsize(o[k].dtype);
      free += stride[k] * chunk;
    }
    for (int64_t k = 0; k < register_bytes.size(); ++k) {
      at[o.size() + k] = free;
      stride[o.size() + k] = register_bytes[k];
      free += register_bytes[k] * chunk;
    }
  }
  // How many rows go through the steps together.
  int64_t rows() const { return inner == 0 ? 1 : std::max<int64_t>(1, chunk / grid.sizes[inner]); }

  void go(int64_t n) {
    for (const ProgramStep& step : steps) {
      char* data[4];
      int64_t strides[4];
      for (int i = 0; i < step.count; ++i) data[i] = at[step.values[i]], strides[i] = stride[step.values[i]];
      step.loop(data, strides, n, step.params);
    }
  }
  // Rows from `row` on, as many as go together, or fewer.
  int64_t go_rows(int64_t row, int64_t end) {
    const int64_t width = grid.sizes[inner];
    int64_t count = std::min(rows(), end - row), rest = row, left = count;
    for (int64_t k = 0; k < operands.size(); ++k) start[k] = static_cast<char*>(operands[k].data);
    for (int d = inner - 1; d >= 0; --d) {
      const int64_t index = rest % grid.sizes[d];
      if (d == inner - 1) count = std::min(left, grid.sizes[d] - index);
      rest /= grid.sizes[d];
      for (int64_t k = 0; k < operands.size(); ++k) start[k] += index * grid.along(d)[k];
    }
    if (count == 1 && rows() == 1) {
      for (int64_t done = 0; done < width; done += chunk) {
        for (int64_t k = 0; k < operands.size(); ++k) at[k] = start[k] + done * stride[k];
        go(std::min(chunk, width - done));
      }
      return 1;
    }
    for (int64_t k = 0; k < operands.size(); ++k) {
      at[k] = gathered[k] ? gathered[k] : start[k];
      if (!gathered[k] || (holds[k] == start[k] && count == held)) continue;
      const int64_t jump = grid.along(inner - 1)[k], step = grid.along(inner)[k];
      if (itemsize(operands[k].dtype) == 4) gather<uint32_t>(gathered[k], start[k], count, jump, width, step);
      else gather<uint64_t>(gathered[k], start[k], count, jump, width, step);
      holds[k] = start[k];
    }
    held = count;
    go(count * width);
    return count;
  }
  int64_t held = 0;  // rows in `gathered`
};

}  // namespace

void run_program(Span<ProgramStep> steps, Span<View> operands, Span<int> register_bytes, int cost) {
  const Grid grid(operands);
  if (grid.total == 0) return;
  const int inner = grid.ndim - 1;
  int64_t bytes = 0;  // of one element of all values
  for (int64_t k = 0; k < operands.size(); ++k) bytes += grid.along(inner)[k] ? itemsize(operands[k].dtype) : 0;
  for (int b : register_bytes) bytes += b;
  const int64_t chunk = std::clamp(kCacheBytes / (bytes + 1) / 64 * 64, kLeastChunk, kMostChunk);
  const int64_t grain = std::max<int64_t>(2048, 32768 / std::max(1, cost));
  const int64_t piece = even_grain(grid.total, std::clamp(grid.total / 8, grain, 8 * grain));

  if (inner == 0) {
    auto run = [&](int64_t first, int64_t last) {
      Walk walk(grid, steps, operands, register_bytes, chunk);
      for (; first < last; first += chunk) {
        for (int64_t k = 0; k < operands.size(); ++k)
          walk.at[k] = static_cast<char*>(operands[k].data) + first * walk.stride[k];
        walk.go(std::min(chunk, last - first));
      }
    };
    return grid.total <= grain ? run(0, grid.total) : parallel_for(0, grid.total, piece, run);
  }
  const int64_t rows = grid.total / grid.sizes[inner];
  auto run = [&](int64_t first, int64_t last) {
    Walk walk(grid, steps, operands, register_bytes, chunk);
    while (first < last) first += walk.go_rows(first, last);
  };
  if (grid.total <= grain) run(0, rows);
  else parallel_for(0, rows, std::max<int64_t>(1, piece / grid.sizes[inner]), run);
}

}  // namespace rl::cpu
