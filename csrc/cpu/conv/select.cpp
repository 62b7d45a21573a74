// Runs a convolution by the first row of the table that is applicable and profitable, or by the one asked for.
#include <atomic>
#include <cstdlib>
#include <string>

#include "backend/matmul.h"
#include "backend/precision.h"
#include "cpu/conv/algorithms.h"
#include "cpu/features.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

constexpr uint32_t bit(DType t) { return uint32_t{1} << static_cast<int>(t); }
bool is_low(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
// Rows that do not know fp16 and bf16 get their floats.
bool is_native(const ConvAlgorithm& row, DType t) { return row.dtypes & bit(t); }
bool takes_dtype(const ConvAlgorithm& row, DType t) {
  return is_native(row, t) || (is_low(t) && is_native(row, DType::Float32));
}
const bool g_has_isa[] = {true, rl::cpu::has_avx512(), rl::cpu::has_bf16()};  // by ConvIsa

// p.shape has the layout of the row.
bool applicable_here(const ConvAlgorithm& row, const ConvProblem& p) {
  return takes_dtype(row, p.dtype) && g_has_isa[static_cast<int>(row.isa)] && row.applicable(p);
}
bool applicable(const ConvAlgorithm& row, const ConvProblem& problem) {
  const bool nhwc = row.layout == ConvLayout::NHWC;
  if (row.pass != problem.pass || (nhwc && !problem.wants_nhwc)) return false;
  ConvProblem p = problem;
  p.shape.channels_last = nhwc;
  return applicable_here(row, p);
}

// The algorithm that is asked for, null for none: first RUSHLIGHT_CONV, which may be no name of the table.
std::atomic<const char*> g_forced{[] {
  const char* name = std::getenv("RUSHLIGHT_CONV");
  return name && *name ? name : nullptr;
}()};
const char* known_name(std::string_view name) {
  const ConvTable all = conv_table();
  for (const ConvAlgorithm* row = all.begin; row < all.end; ++row)
    if (name == row->name) return row->name;
  return nullptr;
}
bool force(std::string_view name) {
  const char* known = name.empty() ? nullptr : known_name(name);
  if (!known && !name.empty()) return false;
  g_forced.store(known, std::memory_order_relaxed);
  return true;
}
const char* forced() {
  const char* name = g_forced.load(std::memory_order_relaxed);
  return name ? name : "";
}

// The first row for the layouts of p that suits; NHWC is one of them if wanted. p.shape gets its layout.
template <class F> const ConvAlgorithm* first_row(ConvProblem& p, F&& suits) {
  const ConvTable rows = conv_table(p.pass);
  for (const ConvAlgorithm* row = rows.begin; row < rows.end; ++row) {
    const bool nhwc = row->layout == ConvLayout::NHWC;
    if (nhwc && !p.wants_nhwc) continue;
    p.shape.channels_last = nhwc;
    if (suits(*row)) return row;
  }
  return nullptr;
}

// Null where the algorithm is not applicable: then the usual choice is made.
const ConvAlgorithm* forced_row(ConvProblem& p, std::string_view name) {
  CHECK(known_name(name), Runtime, "RUSHLIGHT_CONV=", std::string(name),
        ": there is no convolution algorithm of this name\n  rushlight.backends.cpu.conv_table() lists them");
  return first_row(p, [&](const ConvAlgorithm& row) { return row.name == name && applicable_here(row, p); });
}

bool is_profitable(const ConvAlgorithm& row, const ConvProblem& p) { return !row.profitable || row.profitable(p); }

ConvChoice choose(ConvProblem& p) {
  const char* name = g_forced.load(std::memory_order_relaxed);
  const ConvAlgorithm* row = name ? forced_row(p, name) : nullptr;
  if (!row) row = first_row(p, [&](const ConvAlgorithm& r) { return applicable_here(r, p) && is_profitable(r, p); });
  CHECK(row, NotImplemented, "convolution: there is no kernel for '", info(p.dtype).legacy, "'");
  return {row, row->workspace ? row->workspace(p) : 0};
}

// GEMMs of reduced precision are not for convolutions that must be plain sums.
struct PlainSums {
  const FloatPrecision before = g_float_precision;
  PlainSums() {
    if (g_plain_convolutions) g_float_precision = FloatPrecision::Highest;
  }
  ~PlainSums() {
    if (g_plain_convolutions) g_float_precision = before;
  }
};

void add_bias(const ConvShape& s, DType dtype, void* dx, const void* bias) {
  auto add = [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(dx);
    const T* shifts = static_cast<const T*>(bias);
    const int64_t plane = s.in_plane();
    parallel_for(0, s.batch * s.in_channels, std::max<int64_t>(1, 32768 / plane), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        for (T *p = to + i * plane, *end = p + plane, shift = shifts[i % s.in_channels]; p < end; ++p) *p += shift;
    });
  };
  switch (dtype) {
    case DType::Float64: return add(type_tag<double>{});
    case DType::Complex64: return add(type_tag<std::complex<float>>{});
    case DType::Complex128: return add(type_tag<std::complex<double>>{});
    case DType::Int64: return add(type_tag<int64_t>{});
    default: return add(type_tag<float>{});
  }
}

bool run_row(const ConvAlgorithm& row, const ConvArguments& c) {
  if (!row.run(c)) return false;
  if (c.bias && !row.adds_bias) add_bias(c.shape, c.dtype, c.out, c.bias);
  return true;
}

// The chosen row, or if it declines the next one of its layout that is applicable and profitable. The last is always.
void run_from(const ConvAlgorithm* row, const ConvProblem& problem, ConvArguments c) {
  if (run_row(*row, c)) return;
  ConvProblem p = problem;
  p.dtype = c.dtype;
  p.shape.workspace = nullptr;  // was that of the chosen row
  const ConvArguments own{.shape = p.shape, .dtype = c.dtype, .out = c.out, .a = c.a, .b = c.b, .bias = c.bias};
  const ConvLayout layout = row->layout;
  for (const ConvTable rows = conv_table(p.pass); ++row < rows.end;)
    if (row->layout == layout && is_native(*row, p.dtype) && applicable_here(*row, p) && is_profitable(*row, p) &&
        run_row(*row, own))
      return;
  CHECK(false, Assertion, "convolution: no algorithm was able to compute it");
}

template <class H> void to_floats(const View& v, Scratch<float>& to) {
  int64_t n = v.numel();
  to.reset(n);
  parallel_for(0, n, 1 << 16, [&](int64_t a, int64_t b) { widen(v.as<H>() + a, to.get() + a, b - a); });
}
template <class H> void from_floats(const float* from, const View& v) {
  parallel_for(0, v.numel(), 1 << 16, [&](int64_t a, int64_t b) { narrow(from + a, v.as<H>() + a, b - a); });
}
template <class H> void run_in_float(const ConvAlgorithm* row, const ConvProblem& p, const View& out, const View& a,
                                     const View& b, const View* bias) {
  Scratch<float> float_out(out.numel()), float_a, float_b, float_bias;
  to_floats<H>(a, float_a);
  to_floats<H>(b, float_b);
  if (bias) to_floats<H>(*bias, float_bias);
  run_from(row, p,
           {.shape = p.shape,
            .dtype = DType::Float32,
            .out = float_out.get(),
            .a = float_a.get(),
            .b = float_b.get(),
            .bias = bias ? float_bias.get() : nullptr});
  from_floats<H>(float_out.get(), out);
}

void run(const ConvChoice& choice, const ConvProblem& p, const View& out, const View& a, const View& b,
         const View* bias) {
  const PlainSums plain;
  if (out.numel() == 0) return;
  blas::single_threaded();
  const ConvAlgorithm* row = choice.algorithm;
  if (is_native(*row, p.dtype))
    return run_from(row, p,
                    {.shape = p.shape,
                     .dtype = p.dtype,
                     .out = out.data,
                     .a = a.data,
                     .b = b.data,
                     .bias = bias ? bias->data : nullptr});
  if (p.dtype == DType::Float16) return run_in_float<float16>(row, p, out, a, b, bias);
  run_in_float<bfloat16>(row, p, out, a, b, bias);
}

}  // namespace

extern const ConvKernels conv_kernels;
const ConvKernels conv_kernels = {
    .choose = choose, .run = run, .table = conv_table, .applicable = applicable, .force = force, .forced = forced};

}  // namespace rl::RL_ISA
