#include "compiler/recording.h"

#include <cstring>

#include "backend/tables.h"
#include "base/parallel.h"
#include "compiler/kept.h"

namespace rl::compiler {
namespace {

const Backend* g_real = nullptr;        // the CPU's own
thread_local bool t_in_kernel = false;  // what a kernel calls is part of it

struct InKernel {
  InKernel() { t_in_kernel = true; }
  ~InKernel() { t_in_kernel = false; }
};

// A call of a kernel of one signature: its arguments, kept, and how it is called with them.
template <class Signature> struct Call;

template <class R, class... A> struct Call<R(A...)> {
  static constexpr bool kKept = (Keepable<A> && ...) && (std::is_void_v<R> || std::is_same_v<R, bool>);
  std::conditional_t<kKept, KeptAll<A...>, KeptAll<>> kept;
  Call(Recorder& r, A... a) : kept(r, a...) {}
  void go(R (*kernel)(A...)) { kept.apply(kernel); }
};

// cat
template <> struct Call<void(const View&, const View*, int64_t, int)> {
  static constexpr bool kKept = true;
  Kept<const View&> out;
  const View* inputs;
  int64_t count;
  int dim;
  Call(Recorder& r, const View& o, const View* in, int64_t n, int d)
      : out(r, o), inputs(views_of(r, in, n)), count(n), dim(d) {
    r.note(static_cast<uint64_t>(d));
  }
  void go(void (*kernel)(const View&, const View*, int64_t, int)) { kernel(out.get(), inputs, count, dim); }
};

// Views of elementwise operands: scalars lie on the stack of the op.
View* operands_of(Recorder& r, const View* views, int64_t count) {
  View* copy = copy_of(r, views, count);
  for (int64_t i = 0; i < count; ++i) {
    auto** data = reinterpret_cast<char**>(&copy[i].data);
    if (i && r.scalar(data, copy[i].strides, copy[i].ndim, static_cast<size_t>(itemsize(copy[i].dtype)))) {
      char* number = *data;
      copy[i].data = nullptr;
      r.view(copy[i]);
      copy[i].data = number;
    } else {
      r.view(copy[i]);
    }
  }
  return copy;
}

// run
template <> struct Call<void(Loop, const View*, int, const LoopParams&, int)> {
  static constexpr bool kKept = true;
  Loop loop;
  const View* operands;
  int count, cost;
  LoopParams params;
  Call(Recorder& r, Loop l, const View* views, int n, const LoopParams& p, int c)
      : loop(l), operands(operands_of(r, views, n)), count(n), cost(c), params(p) {
    r.note(reinterpret_cast<uint64_t>(l));
    r.note_bytes(&p, sizeof p);
    r.tape().pointwise.push_back({static_cast<int>(r.tape().steps.size()), loop, operands, count, &params, cost});
  }
  void go(void (*kernel)(Loop, const View*, int, const LoopParams&, int)) {
    kernel(loop, operands, count, params, cost);
  }
};

// run_program
template <> struct Call<void(Span<ProgramStep>, Span<View>, Span<int>, int)> {
  static constexpr bool kKept = true;
  Span<ProgramStep> steps;
  Span<View> operands;
  Span<int> register_bytes;
  int cost;
  Call(Recorder& r, Span<ProgramStep> s, Span<View> views, Span<int> bytes, int c)
      : steps(copy_of(r, s.data(), s.size()), s.size()),
        operands(operands_of(r, views.data(), views.size()), views.size()),
        register_bytes(noted_copy(r, bytes.data(), bytes.size()), bytes.size()),
        cost(c) {
    for (const ProgramStep& step : steps) {
      r.note(reinterpret_cast<uint64_t>(step.loop));
      r.note_bytes(&step.params, sizeof step.params);
      for (int i = 0; i < step.count; ++i) r.note(static_cast<uint64_t>(step.values[i]));
    }
  }
  void go(void (*kernel)(Span<ProgramStep>, Span<View>, Span<int>, int)) {
    kernel(steps, operands, register_bytes, cost);
  }
};

// fill, masked_fill: the last argument is an element of the first one's type.
struct Element {
  LoopScalar value;
  Element(Recorder& r, const View& of, const void* element) {
    std::memcpy(value.bytes, element, static_cast<size_t>(itemsize(of.dtype)));
    r.note_bytes(&value, sizeof value);
  }
};
template <> struct Call<void(const View&, const void*)> {
  static constexpr bool kKept = true;
  Kept<const View&> out;
  Element element;
  Call(Recorder& r, const View& o, const void* value) : out(r, o), element(r, o, value) {}
  void go(void (*kernel)(const View&, const void*)) { kernel(out.get(), element.value.bytes); }
};
template <> struct Call<void(const View&, const View&, const void*)> {
  static constexpr bool kKept = true;
  Kept<const View&> out, mask;
  Element element;
  Call(Recorder& r, const View& o, const View& m, const void* value) : out(r, o), mask(r, m), element(r, o, value) {}
  void go(void (*kernel)(const View&, const View&, const void*)) { kernel(out.get(), mask.get(), element.value.bytes); }
};

// cross_entropy: the host divides by the sum of the weights, which must be what it was.
template <>
struct Call<void(const LossShape&, const View&, double*, const View&, const View&, const View&, const View*, int64_t)> {
  static constexpr bool kKept = true;
  using Kernel = void (*)(const LossShape&, const View&, double*, const View&, const View&, const View&, const View*,
                          int64_t);
  KeptAll<const LossShape&, const View&> first;
  KeptAll<const View&, const View&, const View&, const View*, int64_t> rest;
  double used = 0;
  Call(Recorder& r, const LossShape& s, const View& loss, double*, const View& x, const View& lse, const View& target,
       const View* weight, int64_t ignore)
      : first(r, s, loss), rest(r, x, lse, target, weight, ignore) {}
  void after(Recorder& r, const LossShape&, const View&, double* result, const View&, const View&, const View&,
             const View*, int64_t) {
    used = *result;
    r.note_bytes(&used, sizeof used);
    if (!r.tape().segments.empty()) r.refuse("a loss after the optimizer's step");
  }
  void go(Kernel kernel) {
    double now = 0;
    first.apply([&](const LossShape& s, const View& loss) {
      rest.apply([&](auto&&... others) { kernel(s, loss, &now, others...); });
    });
    if (now != used) throw Mismatch();
  }
};

template <class Signature> void replay(const Step& s) {
  reinterpret_cast<Call<Signature>*>(s.arguments)->go(reinterpret_cast<Signature*>(s.kernel));
}

template <class T> constexpr bool is_view = std::is_same_v<std::remove_cvref_t<std::remove_pointer_t<T>>, View>;

// The recorder of a call of a kernel; null if it is not of this thread, or within another kernel.
[[gnu::noinline]] Recorder* recorder_of_call() {
  if (in_parallel() && recording()) abandon_in_parallel();
  return t_in_kernel ? nullptr : Recorder::current();
}
[[gnu::noinline]] void refuse_kernel() {
  if (Recorder* r = recorder_of_call()) r->refuse_here("a kernel that cannot be replayed");
}

// One function for each signature, and none for each kernel.
template <class R, class... A> [[gnu::noinline]] R record(R (*kernel)(A...), A... a) {
  Recorder* r = recorder_of_call();
  if (!r) return kernel(a...);
  InKernel inside;
  using C = Call<R(A...)>;
  auto* c = new (r->tape().buffer(sizeof(C))) C(*r, a...);
  r->begin_kernel(reinterpret_cast<void (*)()>(kernel));
  const Step step = {replay<R(A...)>, reinterpret_cast<void (*)()>(kernel), reinterpret_cast<char*>(c)};
  if constexpr (std::is_void_v<R>) {
    kernel(a...);
    if constexpr (requires { c->after(*r, a...); }) c->after(*r, a...);
    r->add(step);
  } else {
    const R result = kernel(a...);
    r->note(result);
    r->add(step);
    return result;
  }
}

// Families that steps of training seldom use, or whose work depends on values.
template <class K> constexpr bool kSeldom = false;
template <class Table, size_t family, size_t entry, class R, class... A>
constexpr bool kSeldom<tables::Kernel<Table, family, entry, R, A...>> =
    std::is_same_v<Table, LinalgKernels> || std::is_same_v<Table, FftKernels> || std::is_same_v<Table, RnnKernels> ||
    std::is_same_v<Table, ResampleKernels> || std::is_same_v<Table, DistanceKernels>;

// A kernel that writes is recorded; a question of types or sizes has the same answer in each replay; what counts
// elements, or takes something that has no Kept, cannot be replayed.
struct Recording {
  template <class K, class R, class... A> static R call(A... a) {
    R (*const kernel)(A...) = K::of(*g_real);
    if constexpr (!std::is_void_v<R> && !(is_view<A> || ...)) {
      return kernel(a...);
    } else if constexpr (!kSeldom<K> && Call<R(A...)>::kKept) {
      return record<R, A...>(kernel, a...);
    } else {
      refuse_kernel();
      return kernel(a...);
    }
  }
};

}  // namespace

void lay_recording_backend(bool on) {
  static Backend layer = {tables_of<Recording>(), "recording", false};
  if (on) {
    g_real = register_backend(DeviceType::Cpu, &layer);
    layer.name = g_real->name;
  } else {
    register_backend(DeviceType::Cpu, g_real);
  }
}

}  // namespace rl::compiler
