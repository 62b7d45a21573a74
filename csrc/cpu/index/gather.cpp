#include "cpu/index/index.h"
#include "cpu/index/offsets.h"
#include "cpu/loops/bytes.h"
#include "cpu/simd/transpose.h"

namespace rl::RL_ISA {

namespace {

// memcpy without the call for the short rows of embeddings.
inline void move_bytes(char* out, const char* in, int64_t bytes) {
  if (bytes > 256 || bytes < 16) return copy_bytes(out, in, bytes);
  int64_t i = 0;
  for (; i + 32 <= bytes; i += 32) __builtin_memcpy(out + i, in + i, 32);
  if (i == bytes) return;
  if (bytes - i > 16) __builtin_memcpy(out + i, in + i, 16);
  __builtin_memcpy(out + bytes - 16, in + bytes - 16, 16);
}

template <class U> void copy_row(char* out, int64_t out_step, const char* in, int64_t in_step, int64_t n) {
  if (out_step == sizeof(U) && in_step == sizeof(U)) {
    copy_bytes(out, in, n * static_cast<int64_t>(sizeof(U)));
  } else {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<U*>(out + i * out_step) = *reinterpret_cast<const U*>(in + i * in_step);
  }
}

template <class U>
void copy_each(char* out, int64_t out_step, const char* in, int64_t in_step, const int64_t* offsets, int64_t n) {
  if (out_step == sizeof(U) && in_step == 0) {
    U* o = reinterpret_cast<U*>(out);
    for (int64_t i = 0; i < n; ++i) o[i] = *reinterpret_cast<const U*>(in + offsets[i]);
  } else {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<U*>(out + i * out_step) = *reinterpret_cast<const U*>(in + offsets[i] + i * in_step);
  }
}

// `count` rows of kVecs registers, written with stride `step`, from wherever they are; the next ones are asked for
// ahead.
template <int kVecs>
void copy_vec_rows(char* to, int64_t step, const char* from, int64_t jump, const int64_t* offsets, int64_t count) {
  constexpr int64_t kAhead = 4;
  for (int64_t j = 0; j < count; ++j, to += step) {
    if (j + kAhead < count) __builtin_prefetch(from + offsets[j + kAhead] + (j + kAhead) * jump);
    const char* row = from + offsets[j] + j * jump;
    ByteVec held[kVecs];
#pragma GCC unroll 8
    for (int k = 0; k < kVecs; ++k) __builtin_memcpy(&held[k], row + k * sizeof(ByteVec), sizeof(ByteVec));
#pragma GCC unroll 8
    for (int k = 0; k < kVecs; ++k) __builtin_memcpy(to + k * sizeof(ByteVec), &held[k], sizeof(ByteVec));
  }
}
using VecRows = void (*)(char*, int64_t, const char*, int64_t, const int64_t*, int64_t);
inline VecRows vec_rows(int64_t bytes) {
  if (bytes % static_cast<int64_t>(sizeof(ByteVec))) return nullptr;
  switch (bytes / static_cast<int64_t>(sizeof(ByteVec))) {
    case 1: return &copy_vec_rows<1>;
    case 2: return &copy_vec_rows<2>;
    case 3: return &copy_vec_rows<3>;
    case 4: return &copy_vec_rows<4>;
    case 6: return &copy_vec_rows<6>;
    case 8: return &copy_vec_rows<8>;
    default: return nullptr;
  }
}

// Rows of `bytes` bytes, or of `strided` elements with steps when that is not 0.
template <class U, int K> void copy_rows(const Nest<2 + K>& nest, const OffsetSet<K>& set, int64_t bytes,
                                         int64_t strided, int64_t out_step, int64_t in_step) {
  const int64_t* step = nest.strides[0];
  const VecRows by_registers = vec_rows(bytes);
  nest.parallel_runs(kPieceBytes * 2 / (bytes + 16) + 1, [&](char* const* at, int64_t n) {
    int64_t offsets[kChunk];
    char* from[K];
    for (int64_t i = 0; i < n; i += kChunk) {
      int64_t m = n - i < kChunk ? n - i : kChunk;
      for (int k = 0; k < K; ++k) from[k] = at[2 + k] + i * step[2 + k];
      set.resolve(from, step + 2, m, offsets);
      char* o = at[0] + i * step[0];
      const char* x = at[1] + i * step[1];
      if (strided) {
        for (int64_t j = 0; j < m; ++j)
          copy_row<U>(o + j * step[0], out_step, x + offsets[j] + j * step[1], in_step, strided);
      } else if (by_registers) {
        by_registers(o, step[0], x, step[1], offsets, m);
      } else if (bytes == 16) {
        for (int64_t j = 0; j < m; ++j) __builtin_memcpy(o + j * step[0], x + offsets[j] + j * step[1], 16);
      } else {
        for (int64_t j = 0; j < m; ++j) {
          if (j + 4 < m) __builtin_prefetch(x + offsets[j + 4] + (j + 4) * step[1]);
          move_bytes(o + j * step[0], x + offsets[j] + j * step[1], bytes);
        }
      }
    }
  });
}

template <class U, int K> void get_at(const View& out, const View& in, const IndexSpec& spec) {
  const View* views[2 + K] = {&out, &in};
  for (int k = 0; k < K; ++k) views[2 + k] = &spec.indices[k];
  Nest<2 + K> nest(views);
  OffsetSet<K> set(spec, sizeof(U));
  const int64_t* step = nest.strides[0];
  bool rows = true;
  for (int k = 0; k < K; ++k) rows &= step[2 + k] == 0;
  if (rows && nest.sizes[0] > 1) {
    int64_t n = nest.sizes[0], bytes = n * static_cast<int64_t>(sizeof(U));
    if (bytes > kPieceBytes / 4) {  // few long rows: cut them too
      nest.parallel_runs(kPieceBytes / static_cast<int64_t>(sizeof(U)), [&](char* const* at, int64_t m) {
        copy_row<U>(at[0], step[0], at[1] + set.resolve_one(at + 2), step[1], m);
      });
    } else {
      bool dense = step[0] == sizeof(U) && step[1] == sizeof(U);
      copy_rows<U, K>(nest.rows(), set, bytes, dense ? 0 : n, step[0], step[1]);
    }
    return;
  }
  constexpr int64_t grain = 16384;
  nest.parallel_runs(grain, [&](char* const* at, int64_t n) {
    int64_t offsets[kChunk];
    char* from[K];
    for (int64_t i = 0; i < n; i += kChunk) {
      int64_t m = n - i < kChunk ? n - i : kChunk;
      for (int k = 0; k < K; ++k) from[k] = at[2 + k] + i * step[2 + k];
      set.resolve(from, step + 2, m, offsets);
      copy_each<U>(at[0] + i * step[0], step[0], at[1] + i * step[1], step[1], offsets, m);
    }
  });
}

}  // namespace

void get(const View& out, const View& in, const IndexSpec& spec) {
  if (out.numel() == 0) return;
  visit_size(itemsize(out.dtype), [&](auto u) {
    using U = decltype(u);
    if (spec.count == 1) return get_at<U, 1>(out, in, spec);
    if (spec.count == 2) return get_at<U, 2>(out, in, spec);
    Folded folded(spec, sizeof(U));
    get_at<U, 1>(out, in, folded.spec());
  });
}

}  // namespace rl::RL_ISA
