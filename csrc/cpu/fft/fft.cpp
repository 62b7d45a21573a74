// Fourier transforms of any dimensions: one pass over signals per dimension.
#include "backend/fft.h"

#include "cpu/fft/complex.h"
#include "cpu/fft/multi_dim.h"
#include "cpu/fft/real.h"

namespace rl::RL_ISA {
namespace {

// Passes over dims[first .. last), reading `in` once and then working on `out`.
template <class T>
void c2c_passes(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale) {
  for (int i = 0; i < ndims; ++i)
    c2c_pass<T>(out, i ? out : in, dims[i], forward, i + 1 == ndims ? static_cast<T>(scale) : T(1));
}

template <class F> void visit_real(DType t, F f) {
  switch (to_real(t)) {
    case DType::Float32: return f(float{});
    case DType::Float64: return f(double{});
    default: fail(ErrorKind::Runtime, "fft: there is no transform for '", info(t).legacy, "'");
  }
}

// Of a real input's transform the half up to n / 2 along the last of dims is known; X[-k] = conj X[k] gives the rest.
template <class T> void fill_mirrored(const View& out, const int* dims, int ndims) {
  const int last = dims[ndims - 1];
  const int64_t n = out.sizes[last], step = out.strides[last];
  bool flipped[kMaxDims] = {};
  for (int i = 0; i + 1 < ndims; ++i) flipped[dims[i]] = true;
  auto* data = out.as<std::complex<T>>();
  parallel_for(0, out.numel() / n, std::max<int64_t>(1, 16384 / n), [&](int64_t first, int64_t end) {
    int64_t index[kMaxDims], rest = first;
    for (int d = out.ndim - 1; d >= 0; --d) {
      index[d] = d == last ? 0 : rest % out.sizes[d];
      if (d != last) rest /= out.sizes[d];
    }
    for (int64_t signal = first; signal < end; ++signal) {
      int64_t to = 0, from = 0;
      for (int d = 0; d < out.ndim; ++d) {
        to += index[d] * out.strides[d];
        from += (flipped[d] && index[d] ? out.sizes[d] - index[d] : index[d]) * out.strides[d];
      }
      for (int d = out.ndim - 1; d >= 0; --d) {
        if (d == last) continue;
        if (++index[d] < out.sizes[d]) break;
        index[d] = 0;
      }
      if constexpr (sizeof(T) == 4)
        if (step == 1 && cpu::has_avx512() &&
            avx512::fft_mirror(reinterpret_cast<T*>(data + to + n / 2 + 1),
                               reinterpret_cast<const T*>(data + from + n - (n / 2 + 1)), n - n / 2 - 1))
          continue;
      if (step == 1 && sizeof(T) == 4) {  // both parts as one number, whose sign is that of the imaginary one
        typedef uint64_t Both __attribute__((may_alias));
        Both* row = reinterpret_cast<Both*>(data + to);
        const Both* half = reinterpret_cast<const Both*>(data + from);
#pragma GCC ivdep
        for (int64_t k = n / 2 + 1; k < n; ++k) row[k] = half[n - k] ^ (uint64_t{1} << 63);
        continue;
      }
      for (int64_t k = n / 2 + 1; k < n; ++k) data[to + k * step] = std::conj(data[from + (n - k) * step]);
    }
  });
}

template <class T>
void r2c_passes(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale) {
  r2c_pass<T>(out, in, dims[ndims - 1], forward, ndims == 1 ? static_cast<T>(scale) : T(1));
  if (ndims > 1) c2c_passes<T>(out, out, dims, ndims - 1, forward, scale);
}

template <class T>
void c2r_passes(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale) {
  if (ndims == 1) return c2r_pass<T>(out, in, dims[0], forward, static_cast<T>(scale));
  // the other dimensions first, in complex scratch memory
  int64_t strides[kMaxDims], total = 1;
  for (int d = in.ndim - 1; d >= 0; --d) strides[d] = total, total = checked_mul(total, in.sizes[d]);
  Scratch<std::complex<T>> scratch(total);
  View middle{scratch.get(), in.sizes, strides, in.ndim, in.dtype};
  c2c_passes<T>(middle, in, dims, ndims - 1, forward, 1.0);
  c2r_pass<T>(out, middle, dims[ndims - 1], forward, static_cast<T>(scale));
}

// The dimensions that are more than one number long, which is its own transform; the last one stays if it is the only
// one, or if `whole` says that it is not transformed as the others are.
struct Lengthy {
  int dims[kMaxDims], count = 0;
  Lengthy(const View& v, const int* all, int ndims, bool whole) {
    for (int i = 0; i < ndims; ++i) {
      const bool last = i + 1 == ndims;
      if (v.sizes[all[i]] > 1 || (last && (whole || count == 0))) dims[count++] = all[i];
    }
  }
};

void c2c(const View& out, const View& in, const int* given, int given_count, bool forward, double scale) {
  if (out.numel() == 0) return;
  const Lengthy some(out, given, given_count, !is_complex(in.dtype));
  const int *dims = some.dims, ndims = some.count;
  visit_real(out.dtype, [&](auto x) {
    using T = decltype(x);
    for_parts(out, in, dims, ndims, [&](const View& to, const View& from) {
      if (is_complex(in.dtype)) return c2c_passes<T>(to, from, dims, ndims, forward, scale);
      int64_t sizes[kMaxDims];
      for (int d = 0; d < to.ndim; ++d) sizes[d] = to.sizes[d];
      sizes[dims[ndims - 1]] = sizes[dims[ndims - 1]] / 2 + 1;
      r2c_passes<T>(View{to.data, sizes, to.strides, to.ndim, to.dtype}, from, dims, ndims, forward, scale);
      fill_mirrored<T>(to, dims, ndims);
    });
  });
}

void r2c(const View& out, const View& in, const int* given, int given_count, bool forward, double scale) {
  if (out.numel() == 0) return;
  const Lengthy some(out, given, given_count, true);
  const int *dims = some.dims, ndims = some.count;
  visit_real(out.dtype, [&](auto x) {
    for_parts(out, in, dims, ndims, [&](const View& to, const View& from) {
      r2c_passes<decltype(x)>(to, from, dims, ndims, forward, scale);
    });
  });
}

void c2r(const View& out, const View& in, const int* given, int given_count, bool forward, double scale) {
  if (out.numel() == 0) return;
  const Lengthy some(in, given, given_count, true);
  const int *dims = some.dims, ndims = some.count;
  visit_real(out.dtype, [&](auto x) {
    for_parts(out, in, dims, ndims, [&](const View& to, const View& from) {
      c2r_passes<decltype(x)>(to, from, dims, ndims, forward, scale);
    });
  });
}

}  // namespace

extern const FftKernels fft_kernels;
const FftKernels fft_kernels = {c2c, r2c, c2r};

}  // namespace rl::RL_ISA
