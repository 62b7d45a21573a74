// GEMMs of float16 and bfloat16: sums in float, rounded once to the result. Where there is neither an AMX unit nor
// AVX-512, the operands are widened to float first.
#include "cpu/isa.h"
//
#include "cpu/gemm/amx.h"
#include "cpu/gemm/dot.h"
#include "cpu/gemm/half_avx512.h"
#include "cpu/gemm/matmul.h"
#include "cpu/gemm/transposed.h"

namespace rl::RL_ISA {
namespace {

// The matrices of an operand as contiguous floats, with the strides that its view then has.
template <class T> struct Widened {
  Scratch<float> data;
  int64_t strides[kMaxDims];
  View view;

  explicit Widened(const View& v) {
    const View* views[kOperands] = {&v, nullptr, nullptr, nullptr};
    Matrix<T> m = matrix<T>(v);
    // Transposed matrices are widened in their own order: contiguous reads, and BLAS transposes for free.
    bool transposed = m.rs == 1 && m.cs != 1;
    if (transposed) m = m.transposed();
    int64_t area = checked_mul(m.rows, m.cols), count = 1;
    for (int d = v.ndim - 3; d >= 0; --d) {
      strides[d] = v.strides[d] == 0 ? 0 : area * count;
      if (v.strides[d] != 0) count = checked_mul(count, v.sizes[d]);
    }
    strides[v.ndim - 2] = transposed ? 1 : m.cols;
    strides[v.ndim - 1] = transposed ? m.cols : 1;
    Batch batch(views, v.ndim);
    if (batch.count > 0 && area > 0) pack_batch(m, batch, 0, data);
    view = {data.get(), v.sizes, strides, v.ndim, DType::Float32};
  }
};

// GEMMs on AMX tiles, where the processor has them and they are profitable.
template <class T> bool on_amx(const View& out, const View& a, const View& b, float alpha) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    Matrix<float> c = matrix<float>(out);
    Matrix<T> x = matrix<T>(a), y = matrix<T>(b);
    const View* views[kOperands] = {&out, &a, &b, nullptr};
    Batch batch(views, out.ndim);
    for (int64_t i = 0; i < batch.count; ++i) {
      int64_t o[kOperands];
      batch.offsets(i, o);
      amx::tile_gemm(cpu::Gemm<float, bfloat16>{.m = c.rows,
                                                .n = c.cols,
                                                .k = x.cols,
                                                .a = x.data + o[1],
                                                .ars = x.rs,
                                                .acs = x.cs,
                                                .b = y.data + o[2],
                                                .brs = y.rs,
                                                .bcs = y.cs,
                                                .c = c.data + o[0],
                                                .crs = c.rs,
                                                .ccs = 1,
                                                .alpha = alpha,
                                                .beta = 0,
                                                .d = nullptr,
                                                .drs = 0,
                                                .dcs = 0});
    }
    return true;
  }
  return false;
}

// GEMMs on vectors, without a copy of either operand.
template <class T> void on_vectors(const View& out, const View& a, const View& b, const MatmulParams* params) {
  const Matrix<T> c = matrix<T>(out), x = matrix<T>(a), y = matrix<T>(b);
  const View* addend = params && params->beta.get<float>() != 0 ? params->addend : nullptr;
  const View* views[kOperands] = {&out, &a, &b, addend};
  Batch batch(views, out.ndim);
  cpu::HalfGemm<T> g = {.m = c.rows,
                        .n = c.cols,
                        .k = x.cols,
                        .a = x.data,
                        .ars = x.rs,
                        .acs = x.cs,
                        .b = y.data,
                        .brs = y.rs,
                        .bcs = y.cs,
                        .c = c.data,
                        .crs = c.rs,
                        .ccs = c.cs};
  g.alpha = params ? params->alpha.get<float>() : 1.0f;
  g.beta = addend ? params->beta.get<float>() : 0.0f;
  g.d = addend ? addend->as<T>() : nullptr;
  g.drs = addend ? addend->strides[out.ndim - 2] : 0;
  g.dcs = addend ? addend->strides[out.ndim - 1] : 0;
  // One matrix b for all of a: a single taller GEMM, if the rows of a follow each other.
  if (batch.ndim > 0 && batch.strides[2][batch.ndim - 1] == 0) {
    const int last = batch.ndim - 1;
    auto follows = [&](int o, int64_t rs) { return g.m == 1 || batch.strides[o][last] == g.m * rs; };
    if (follows(0, g.crs) && follows(1, g.ars) && (!addend || follows(3, g.drs))) {
      if (g.m == 1) {
        g.crs = batch.strides[0][last];
        g.ars = batch.strides[1][last];
        g.drs = batch.strides[3][last];
      }
      g.m *= batch.sizes[last];
      batch.count /= batch.sizes[last];
      --batch.ndim;
    }
  }
  const bool swapped = g.ccs != 1 && g.crs == 1;
  if (swapped) g = cpu::transposed(g);
  auto body = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      int64_t o[kOperands];
      batch.offsets(i, o);
      cpu::HalfGemm<T> one = g;
      one.a += o[swapped ? 2 : 1];
      one.b += o[swapped ? 1 : 2];
      one.c += o[0];
      if (one.d) one.d += o[3];
      cpu::half_gemm(one);
    }
  };
  // A few large GEMMs are cut up one after the other, many small ones are dealt out whole.
  const double macs = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (batch.count == 1 || macs > 6e7) body(0, batch.count);
  else parallel_for(0, batch.count, std::max<int64_t>(1, static_cast<int64_t>(5e5 / (macs + 4000))), body);
}

template <class T> void run(const View& out, const View& a, const View& b, const MatmulParams* params) {
  blas::single_threaded();
  if (out.numel() == 0) return;
  const int64_t k = a.sizes[a.ndim - 1];
  const bool amx =
      std::is_same_v<T, bfloat16> && cpu::amx_profitable(out.sizes[out.ndim - 2], out.sizes[out.ndim - 1], k);
  if (!amx && k > 0 && cpu::half_gemm_available()) return on_vectors<T>(out, a, b, params);
  int64_t strides[kMaxDims], total = out.numel();
  int n = out.ndim;
  for (int d = n - 1, step = 1; d >= 0; step = 0, --d)
    strides[d] = step ? 1 : checked_mul(strides[d + 1], out.sizes[d + 1]);
  Scratch<float> sums(total);
  View sums_view{sums.get(), out.sizes, strides, n, DType::Float32};
  const float alpha = params ? params->alpha.get<float>() : 1.0f;
  if (!amx || !on_amx<T>(sums_view, a, b, alpha)) {
    Widened<T> wa(a), wb(b);
    matmul_as<float>(sums_view, wa.view, wb.view, alpha, 0.0f, nullptr);
  }
  const View* addend = params && params->beta.get<float>() != 0 ? params->addend : nullptr;
  float beta = addend ? params->beta.get<float>() : 0.0f;
  int64_t cols = out.sizes[n - 1], rows = total / cols, rs = out.strides[n - 1],
          as = addend ? addend->strides[n - 1] : 0;
  parallel_for(0, rows, std::max<int64_t>(1, 65536 / cols), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      int64_t to = 0, from = 0;
      for (int64_t d = n - 2, i = r; d >= 0; i /= out.sizes[d--]) {
        int64_t at = i % out.sizes[d];
        to += at * out.strides[d];
        if (addend) from += at * addend->strides[d];
      }
      T* y = out.as<T>() + to;
      const float* s = sums.get() + r * cols;
      if (addend) {
        const T* x = addend->as<T>() + from;
        for (int64_t j = 0; j < cols; ++j) y[j * rs] = T(s[j] + beta * static_cast<float>(x[j * as]));
      } else if (rs == 1) {
        for (int64_t j = 0; j < cols; ++j) y[j] = T(s[j]);
      } else {
        for (int64_t j = 0; j < cols; ++j) y[j * rs] = T(s[j]);
      }
    }
  });
}

}  // namespace

DTypeMatmul half_matmul(DType dtype) {
  switch (dtype) {
    case DType::Float16: return {run<float16>, dot<float16>};
    case DType::BFloat16: return {run<bfloat16>, dot<bfloat16>};
    default: return {nullptr, nullptr};
  }
}

}  // namespace rl::RL_ISA
