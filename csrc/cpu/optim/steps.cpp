// Optimizer steps: a formula for one element of each algorithm, run over pieces of all parameters.
#include "cpu/optim/steps.h"

#include "backend/optim.h"
#include "cpu/isa.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

// The formulas. `decayed` gives g its sign and the L2 term; state is changed through references. C computes.
template <class C> struct Values {
  C c0, c1, c2, s0, s1, s2, s3, s4, sign, weight_decay, decoupled_decay;
  Values(const OptimGroup& g, const OptimRow& r)
      : c0(C(r.c[0])),
        c1(C(r.c[1])),
        c2(C(r.c[2])),
        s0(C(g.s[0])),
        s1(C(g.s[1])),
        s2(C(g.s[2])),
        s3(C(g.s[3])),
        s4(C(g.s[4])),
        sign(C(g.sign)),
        weight_decay(C(g.weight_decay)),
        decoupled_decay(C(g.decoupled_decay)) {}
  template <bool kL2> C decayed(C g, C p) const {
    g *= sign;
    if constexpr (kL2) g = mul_add(p, weight_decay, g);
    return g;
  }
};

// buf = momentum * buf + (1 - dampening) * g; p -= lr * buf
template <bool kL2, bool kBuffer, bool kAhead> struct SgdFormula {
  static constexpr int kState = kBuffer ? 1 : 0;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    g = n.template decayed<kL2>(g, p);
    if constexpr (kBuffer) {
      s[0] = mul_add(g, n.c1, s[0] * n.c0);
      g = kAhead ? mul_add(s[0], n.s1, g) : s[0];
    }
    p = mul_add(g, -n.s0, p);
  }
};

// m, v: running means of g and g^2; p -= rate * m / (sqrt(v) / c1 + eps)
template <bool kL2, bool kLargest> struct AdamFormula {
  static constexpr int kState = kLargest ? 3 : 2;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    p *= n.decoupled_decay;
    g = n.template decayed<kL2>(g, p);
    s[0] = towards(s[0], g, n.s0);
    s[1] = mul_add(n.s3 * g, g, s[1] * n.s1);
    C v = s[1];
    if constexpr (kLargest) v = s[2] = largest(s[2], v);
    p -= n.c0 * s[0] / (root(v) / n.c1 + n.s2);
  }
};

template <bool kL2> struct AdamaxFormula {
  static constexpr int kState = 2;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    g = n.template decayed<kL2>(g, p);
    s[0] = towards(s[0], g, n.s0);
    s[1] = largest(s[1] * n.s1, magnitude(g) + n.s2);
    p -= n.c0 * s[0] / s[1];
  }
};

template <bool kL2> struct NAdamFormula {
  static constexpr int kState = 2;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    p *= n.decoupled_decay;
    g = n.template decayed<kL2>(g, p);
    s[0] = towards(s[0], g, n.s0);
    s[1] = mul_add(n.s3 * g, g, s[1] * n.s1);
    C denom = root(s[1] / n.c2) + n.s2;
    p -= n.c0 * g / denom;
    p -= n.c1 * s[0] / denom;
  }
};

template <bool kL2> struct RAdamFormula {
  static constexpr int kState = 2;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    p *= n.decoupled_decay;
    g = n.template decayed<kL2>(g, p);
    s[0] = towards(s[0], g, n.s0);
    s[1] = mul_add(n.s3 * g, g, s[1] * n.s1);
    C update = s[0] / n.c0 * n.c2;
    p -= n.c1 == 0 ? update : update * (n.c1 / (root(s[1]) + n.s2));
  }
};

template <bool kL2> struct AdagradFormula {
  static constexpr int kState = 1;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    g = n.template decayed<kL2>(g, p);
    s[0] = mul_add(g, g, s[0]);
    p -= n.c0 * g / (root(s[0]) + n.s0);
  }
};

template <bool kL2> struct AdadeltaFormula {
  static constexpr int kState = 2;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    g = n.template decayed<kL2>(g, p);
    s[0] = mul_add(n.s3 * g, g, s[0] * n.s0);
    C delta = root(s[1] + n.s1) / root(s[0] + n.s1) * g;
    s[1] = mul_add(n.s3 * delta, delta, s[1] * n.s0);
    p = mul_add(delta, -n.s2, p);
  }
};

// State: v, then the mean where centered, then the buffer where there is momentum.
template <bool kL2, bool kMean, bool kBuffer> struct RmspropFormula {
  static constexpr int kState = 1 + kMean + kBuffer;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    g = n.template decayed<kL2>(g, p);
    s[0] = mul_add(n.s4 * g, g, s[0] * n.s0);
    C spread = s[0];
    if constexpr (kMean) {
      s[1] = towards(s[1], g, n.s4);
      spread = mul_add(-s[1], s[1], spread);
    }
    C denom = root(spread) + n.s1;
    if constexpr (kBuffer) {
      C& buffer = s[1 + kMean];
      buffer = buffer * n.s3 + g / denom;
      p = mul_add(buffer, -n.s2, p);
    } else {
      p -= n.s2 * g / denom;
    }
  }
};

struct RpropFormula {
  static constexpr int kState = 2;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    g *= n.sign;
    C agree = g * s[0];
    C factor = agree > 0 ? n.s1 : agree < 0 ? n.s0 : C(1);
    C size = s[1] * factor;
    size = size < n.s2 ? n.s2 : size;
    size = size > n.s3 ? n.s3 : size;
    g = agree < 0 ? C(0) : g;
    p -= g > 0 ? size : g < 0 ? -size : g;  // a gradient that is not a number spoils its parameter
    s[0] = g;
    s[1] = size;
  }
};

template <bool kL2> struct AsgdFormula {
  static constexpr int kState = 1;
  template <class C> static void apply(const Values<C>& n, C& p, C g, C* s) {
    g = n.template decayed<kL2>(g, p);
    p *= n.c0;
    p = mul_add(g, -n.c1, p);
    s[0] = n.c2 == 1 ? p : s[0] + (p - s[0]) * n.c2;
  }
};

template <class F, class T> void run_piece(const OptimGroup& group, const OptimRow& row, int64_t begin, int64_t end) {
  const Values<T> n(group, row);
  T* __restrict p = static_cast<T*>(row.data[0]);
  const T* __restrict g = static_cast<const T*>(row.data[1]);
  T* __restrict a = static_cast<T*>(row.data[2]);
  T* __restrict b = static_cast<T*>(row.data[3]);
  T* __restrict c = static_cast<T*>(row.data[4]);
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    T value = p[i], s[3] = {};
    if constexpr (F::kState > 0) s[0] = a[i];
    if constexpr (F::kState > 1) s[1] = b[i];
    if constexpr (F::kState > 2) s[2] = c[i];
    F::apply(n, value, g[i], s);
    p[i] = value;
    if constexpr (F::kState > 0) a[i] = s[0];
    if constexpr (F::kState > 1) b[i] = s[1];
    if constexpr (F::kState > 2) c[i] = s[2];
  }
}

using Piece = void (*)(const OptimGroup&, const OptimRow&, int64_t, int64_t);

template <class T> Piece choose(const OptimGroup& g) {
  const bool l2 = g.flags & kWeightDecay;
#define RL_PICK(formula, ...)                                   \
  (l2 ? &run_piece<formula<true __VA_OPT__(, ) __VA_ARGS__>, T> \
      : &run_piece<formula<false __VA_OPT__(, ) __VA_ARGS__>, T>)
  switch (g.step) {
    case OptimStep::Sgd:
      if (!(g.flags & kMomentum)) return RL_PICK(SgdFormula, false, false);
      return g.flags & kNesterov ? RL_PICK(SgdFormula, true, true) : RL_PICK(SgdFormula, true, false);
    case OptimStep::Adam: return g.flags & kAmsgrad ? RL_PICK(AdamFormula, true) : RL_PICK(AdamFormula, false);
    case OptimStep::Adamax: return RL_PICK(AdamaxFormula);
    case OptimStep::NAdam: return RL_PICK(NAdamFormula);
    case OptimStep::RAdam: return RL_PICK(RAdamFormula);
    case OptimStep::Adagrad: return RL_PICK(AdagradFormula);
    case OptimStep::Adadelta: return RL_PICK(AdadeltaFormula);
    case OptimStep::RMSprop:
      if (g.flags & kCentered)
        return g.flags & kMomentum ? RL_PICK(RmspropFormula, true, true) : RL_PICK(RmspropFormula, true, false);
      return g.flags & kMomentum ? RL_PICK(RmspropFormula, false, true) : RL_PICK(RmspropFormula, false, false);
    case OptimStep::Rprop: return &run_piece<RpropFormula, T>;
    case OptimStep::Asgd: return RL_PICK(AsgdFormula);
  }
#undef RL_PICK
  return nullptr;
}

// Blocks of reduced-precision types are computed as floats, beside them.
template <class H>
void run_half(Piece piece, const OptimGroup& group, const OptimRow& row, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 1024;
  alignas(64) float buffer[OptimRow::kTensors][kBlock];
  OptimRow wide = row;
  for (int k = 0; k < OptimRow::kTensors; ++k)
    if (row.data[k]) wide.data[k] = buffer[k];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    for (int k = 0; k < OptimRow::kTensors; ++k)
      if (row.data[k]) widen(static_cast<const H*>(row.data[k]) + at, buffer[k], n);
    piece(group, wide, 0, n);
    for (int k = 0; k < OptimRow::kTensors; ++k)
      if (row.data[k] && k != 1) narrow(buffer[k], static_cast<H*>(row.data[k]) + at, n);
  }
}

void step(DType dtype, const OptimGroup& group, const OptimRow* rows, int64_t count) {
  Piece piece = dtype == DType::Float64 ? choose<double>(group) : choose<float>(group);
  over_rows(rows, count, [&](const OptimRow& row, int64_t begin, int64_t end) {
    if (dtype == DType::Float16) run_half<float16>(piece, group, row, begin, end);
    else if (dtype == DType::BFloat16) run_half<bfloat16>(piece, group, row, begin, end);
    else piece(group, row, begin, end);
  });
}

}  // namespace

extern const OptimKernels optim_kernels;
const OptimKernels optim_kernels = {step, powers, scale, adafactor};

}  // namespace rl::RL_ISA
