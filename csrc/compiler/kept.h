// How an argument of a kernel is kept on a tape. Kept<A>(recorder, argument) copies it, with all that it points to, and
// tells the recorder of each pointer into memory of tensors; get() is what the kernel is given in a replay. A type
// without a Kept makes a kernel that is not recorded.
#pragma once
#include <complex>
#include <type_traits>

#include "compiler/recorder.h"

namespace rl::compiler {

template <class A> struct Kept;

template <class A>
  requires(std::is_arithmetic_v<A> || std::is_enum_v<A>)
struct Kept<A> {
  A value;
  Kept(Recorder& r, A a) : value(a) { r.note_bytes(&value, sizeof value); }
  A get() const { return value; }
};

template <> struct Kept<std::complex<double>> {
  std::complex<double> value;
  Kept(Recorder& r, std::complex<double> z) : value(z) { r.note_bytes(&value, sizeof value); }
  std::complex<double> get() const { return value; }
};

template <> struct Kept<const View&> {
  View view;
  Kept(Recorder& r, const View& v) : view(v) { r.view(view); }
  const View& get() const { return view; }
};

// To one, or null.
template <> struct Kept<const View*> {
  View view;
  bool there;
  Kept(Recorder& r, const View* v) : view(v ? *v : View()), there(v != nullptr) {
    r.note(there);
    if (there) r.view(view);
  }
  const View* get() const { return there ? &view : nullptr; }
};

// A copy of several of anything in the tape's memory.
template <class T> T* copy_of(Recorder& r, const T* items, int64_t count) {
  r.note(static_cast<uint64_t>(count));
  auto* copy = reinterpret_cast<T*>(r.tape().buffer(static_cast<size_t>(count) * sizeof(T)));
  for (int64_t i = 0; i < count; ++i) copy[i] = items[i];
  return copy;
}
template <class T> const T* noted_copy(Recorder& r, const T* items, int64_t count) {
  T* copy = copy_of(r, items, count);
  for (int64_t i = 0; i < count; ++i) r.note_bytes(&copy[i], sizeof(T));
  return copy;
}
inline View* views_of(Recorder& r, const View* views, int64_t count) {
  View* copy = copy_of(r, views, count);
  for (int64_t i = 0; i < count; ++i) r.view(copy[i]);
  return copy;
}

template <> struct Kept<const IndexSpec&> {
  IndexSpec spec;
  Kept(Recorder& r, const IndexSpec& s) : spec(s) {
    spec.indices = views_of(r, s.indices, s.count);
    spec.sizes = noted_copy(r, s.sizes, s.count);
    spec.strides = noted_copy(r, s.strides, s.count);
    spec.dims = noted_copy(r, s.dims, s.count);
    r.note(static_cast<uint64_t>(s.error) << 1 | s.wrap);
    r.can_fail();
  }
  const IndexSpec& get() const { return spec; }
};

template <> struct Kept<const MatmulParams&> {
  MatmulParams params;
  View addend;
  Kept(Recorder& r, const MatmulParams& p) : params(p), addend(p.addend ? *p.addend : View()) {
    r.note_bytes(&p.alpha, sizeof p.alpha);
    r.note_bytes(&p.beta, sizeof p.beta);
    r.note(p.addend != nullptr);
    if (p.addend) r.view(addend);
  }
  const MatmulParams& get() {
    params.addend = params.addend ? &addend : nullptr;
    return params;
  }
};

template <> struct Kept<const NormRows&> {
  NormRows shape;
  Kept(Recorder& r, const NormRows& s) : shape(s) { r.note_bytes(&s, sizeof s); }
  const NormRows& get() const { return shape; }
};
template <> struct Kept<const NormChannels&> {
  NormChannels shape;
  Kept(Recorder& r, const NormChannels& s) : shape(s) { r.note_bytes(&s, sizeof s); }
  const NormChannels& get() const { return shape; }
};
template <> struct Kept<const LossShape&> {
  LossShape shape;
  Kept(Recorder& r, const LossShape& s) : shape(s) {
    r.note_bytes(&s, sizeof s);
    r.can_fail();
  }
  const LossShape& get() const { return shape; }
};

template <> struct Kept<const PoolWindows&> {
  PoolWindows windows;
  Kept(Recorder& r, const PoolWindows& w) : windows(w) {
    r.note_bytes(&w.divisor, sizeof w.divisor);
    for (int64_t n : {w.planes, w.channels}) r.note(static_cast<uint64_t>(n));
    for (int d = 0; d < 3; ++d) {
      for (int64_t n : {w.in[d], w.out[d], w.dilation[d]}) r.note(static_cast<uint64_t>(n));
      windows.start[d] = noted_copy(r, w.start[d], w.out[d]);
      windows.end[d] = noted_copy(r, w.end[d], w.out[d]);
      if (w.share[d]) windows.share[d] = noted_copy(r, w.share[d], w.out[d]);
    }
  }
  const PoolWindows& get() const { return windows; }
};

template <> struct Kept<const ConvProblem&> {
  ConvProblem problem;
  Kept(Recorder& r, const ConvProblem& p) : problem(p) {
    const ConvShape& s = p.shape;
    for (int64_t n : {s.batch, s.groups, s.in_channels, s.out_channels}) r.note(static_cast<uint64_t>(n));
    for (int d = 0; d < 3; ++d)
      for (int64_t n : {s.in[d], s.kernel[d], s.out[d], s.stride[d], s.padding[d], s.dilation[d]})
        r.note(static_cast<uint64_t>(n));
    r.note(static_cast<uint64_t>(p.dtype) << 16 | static_cast<uint64_t>(p.pass) << 8 |
           static_cast<uint64_t>(s.channels_last) << 4 | static_cast<uint64_t>(s.filters_last) << 3 |
           static_cast<uint64_t>(p.wants_nhwc) << 2 | static_cast<uint64_t>(p.operands_nhwc) << 1 | p.has_bias);
    r.pointer(reinterpret_cast<char**>(&problem.shape.workspace));
  }
  const ConvProblem& get() const { return problem; }
};
template <> struct Kept<const ConvChoice&> {
  ConvChoice choice;
  Kept(Recorder& r, const ConvChoice& c) : choice(c) {
    r.note(reinterpret_cast<uint64_t>(c.algorithm));
    r.note(static_cast<uint64_t>(c.workspace));
  }
  const ConvChoice& get() const { return choice; }
};

template <> struct Kept<Generator&> {
  Generator* generator;
  Kept(Recorder& r, Generator& g) : generator(&g) { r.generator(g); }
  Generator& get() const { return *generator; }
};

// All arguments of a kernel, in order.
template <class... A> struct KeptAll;
template <class A, class... Rest> struct KeptAll<A, Rest...> {
  Kept<A> first;
  KeptAll<Rest...> rest;
  KeptAll(Recorder& r, A a, Rest... others) : first(r, a), rest(r, static_cast<Rest>(others)...) {}
  template <class F, class... Done> auto apply(const F& f, Done&&... done) {
    return rest.apply(f, static_cast<Done&&>(done)..., first.get());
  }
};
template <> struct KeptAll<> {
  explicit KeptAll(Recorder&) {}
  template <class F, class... Done> auto apply(const F& f, Done&&... done) { return f(static_cast<Done&&>(done)...); }
};

template <class A>
concept Keepable = requires { sizeof(Kept<A>); };

}  // namespace rl::compiler
