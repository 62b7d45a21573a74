// From index tensors to byte offsets. See Note [Index specs] in backend/index.h.
#pragma once
#include <cstdint>
#include <memory>

#include "backend/index.h"
#include "cpu/isa.h"
#include "cpu/loops/nest.h"

namespace rl::RL_ISA {

inline constexpr int64_t kChunk = 512;  // positions resolved at a time

// One index as the inner loops see it.
struct Index {
  bool padded;   // Int64, else Int32
  bool checked;  // false: the values are byte offsets already
  bool wrap;
  int64_t size;
  int64_t stride;  // bytes
};

[[noreturn, gnu::cold]] void fail_at(const Index& index, int dim, ErrorKind kind, const char* at, int64_t step,
                                     int64_t n);

// offsets[i] (+)= index[i] * stride, false when an index is out of bounds. Strides that are powers of two are
// shifts, which vectorise where 64-bit products do not.
template <class I, bool kFirst>
inline bool add_offsets(const Index& index, const char* at, int64_t step, int64_t n, int64_t* __restrict offsets) {
  const int64_t last = index.size - 1, stride = index.stride, shift = index.wrap ? index.size : 0;
  const bool power = stride > 0 && (stride & (stride - 1)) == 0;
  const int bits = power ? __builtin_ctzll(stride) : 0;
  int64_t bad = 0;  // its sign is set once an index or its distance to the end is negative
  auto loop = [&](auto get, auto scale) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      int64_t v = get(i);
      v += shift & (v >> 63);
      bad |= v | (last - v);
      offsets[i] = scale(v) + (kFirst ? 0 : offsets[i]);
    }
  };
  auto shifted = [=](int64_t v) { return static_cast<int64_t>(static_cast<uint64_t>(v) << bits); };
  auto multiplied = [=](int64_t v) { return v * stride; };
  auto dense = [=](int64_t i) -> int64_t { return reinterpret_cast<const I*>(at)[i]; };
  auto strided = [=](int64_t i) -> int64_t { return *reinterpret_cast<const I*>(at + i * step); };
  if (step == sizeof(I)) power ? loop(dense, shifted) : loop(dense, multiplied);
  else power ? loop(strided, shifted) : loop(strided, multiplied);
  return bad >= 0;
}

template <int K> struct OffsetSet {
  Index index[K];
  int dims[K];
  ErrorKind error;

  OffsetSet(const IndexSpec& spec, int64_t item) : error(spec.error) {
    for (int k = 0; k < K; ++k) {
      index[k] = {spec.indices[k].dtype == DType::Int64, spec.strides != nullptr, spec.wrap,
                  spec.strides ? spec.sizes[k] : 0, spec.strides ? spec.strides[k] * item : 1};
      dims[k] = spec.strides ? spec.dims[k] : 0;
    }
  }
  // The offsets of n <= kChunk elements whose indices start at at[k] and have stride step[k] bytes.
  void resolve(char* const* at, const int64_t* step, int64_t n, int64_t* offsets) const {
    for (int k = 0; k < K; ++k) {
      if (!index[k].checked) {
        for (int64_t i = 0; i < n; ++i) offsets[i] = *reinterpret_cast<const int64_t*>(at[k] + i * step[k]);
        continue;
      }
      bool good = index[k].padded ? k ? add_offsets<int64_t, false>(index[k], at[k], step[k], n, offsets)
                                      : add_offsets<int64_t, true>(index[k], at[k], step[k], n, offsets)
                  : k             ? add_offsets<int32_t, false>(index[k], at[k], step[k], n, offsets)
                                  : add_offsets<int32_t, true>(index[k], at[k], step[k], n, offsets);
      if (!good) fail_at(index[k], dims[k], error, at[k], step[k], n);
    }
  }
  int64_t resolve_one(char* const* at) const {
    int64_t offset = 0;
    for (int k = 0; k < K; ++k) {
      int64_t v = index[k].padded ? *reinterpret_cast<const int64_t*>(at[k]) : *reinterpret_cast<const int32_t*>(at[k]);
      if (index[k].checked) {
        if (v < 0 && index[k].wrap) v += index[k].size;
        if (static_cast<uint64_t>(v) >= static_cast<uint64_t>(index[k].size))
          fail_at(index[k], dims[k], error, at[k], 0, 1);
      }
      offset += v * index[k].stride;
    }
    return offset;
  }
};

// Many indices become one of byte offsets: the elements of their joint broadcast.
class Folded {
 public:
  Folded(const IndexSpec& spec, int64_t item);
  IndexSpec spec() const { return IndexSpec{&view_, 1, nullptr, nullptr, nullptr}; }

 private:
  std::unique_ptr<int64_t[]> offsets_;
  int64_t strides_[kMaxDims];
  View view_;
};

}  // namespace rl::RL_ISA
