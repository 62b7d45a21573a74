#include "backend/isolated.h"

#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <optional>

#include "backend/tables.h"
#include "base/check.h"
#include "base/small_vector.h"

namespace rl {
namespace {

// Note [An isolated device]
// Ops must be right on a device whose memory the host cannot reach. Here such a device is made of the host's own
// memory: an address on it is the host's with its highest bit turned over, to which no page can belong, so that an op
// which follows one stops there. Kernels are the CPU's, called with the addresses turned back. What is not on the
// device (scalars, tables of indices, null) has an address of the host's, and stays as it is.

constexpr uintptr_t kElsewhere = uintptr_t{1} << 63;

template <class T> T* on_host(T* address) {
  const auto bits = std::bit_cast<uintptr_t>(address);
  return bits & kElsewhere ? std::bit_cast<T*>(bits ^ kElsewhere) : address;
}
void* on_device(void* address) { return std::bit_cast<void*>(std::bit_cast<uintptr_t>(address) ^ kElsewhere); }

View on_host(View v) {
  v.data = on_host(v.data);
  return v;
}

// Copies of what an argument of type A points to, with the host's addresses. `get` is what the CPU's kernel is given.
template <class A> struct OnHost {
  A argument;
  A get() { return argument; }
};
template <> struct OnHost<const View&> {
  View copy;
  OnHost(const View& v) : copy(on_host(v)) {}
  const View& get() { return copy; }
};
template <class T> struct Pointed {  // to one, or null
  std::optional<T> copy;
  Pointed(const T* p) {
    if (p) copy = *p;
  }
  T* get() { return copy ? &*copy : nullptr; }
};
template <> struct OnHost<const View*> : Pointed<View> {
  OnHost(const View* v) : Pointed(v) {
    if (copy) *copy = on_host(*copy);
  }
};
struct Views {
  SmallVector<View, 8> copies;
  Views(const View* views, int64_t count) {
    for (int64_t i = 0; i < count; ++i) copies.push_back(on_host(views[i]));
  }
  const View* get() { return copies.data(); }
};
template <> struct OnHost<Span<View>> : Views {
  OnHost(Span<View> views) : Views(views.data(), views.size()) {}
  Span<View> get() { return {copies.data(), copies.size()}; }
};
template <> struct OnHost<const IndexSpec&> : Views {
  IndexSpec copy;
  OnHost(const IndexSpec& s) : Views(s.indices, s.count), copy(s) { copy.indices = copies.data(); }
  const IndexSpec& get() { return copy; }
};
template <> struct OnHost<const MatmulParams&> {
  OnHost<const View*> addend;
  MatmulParams copy;
  OnHost(const MatmulParams& p) : addend(p.addend), copy(p) { copy.addend = addend.get(); }
  const MatmulParams& get() { return copy; }
};
template <> struct OnHost<const ConvProblem&> {
  ConvProblem copy;
  OnHost(const ConvProblem& p) : copy(p) { copy.shape.workspace = on_host(copy.shape.workspace); }
  const ConvProblem& get() { return copy; }
};
template <> struct OnHost<const RnnForward&> {
  OnHost<const View*> workspace, x, gates, b_ih, b_hh;
  RnnForward copy;
  OnHost(const RnnForward& f) : workspace(f.workspace), x(f.x), gates(f.gates), b_ih(f.b_ih), b_hh(f.b_hh), copy(f) {
    for (View* v : {&copy.out, &copy.hn, &copy.cn, &copy.w_ih, &copy.w_hh, &copy.h0, &copy.c0}) *v = on_host(*v);
    copy.workspace = workspace.get();
    copy.x = x.get();
    copy.gates = gates.get();
    copy.b_ih = b_ih.get();
    copy.b_hh = b_hh.get();
  }
  const RnnForward& get() { return copy; }
};
template <> struct OnHost<const RnnBackward&> {
  OnHost<const View*> dout, dhn, dcn, workspace;
  RnnBackward copy;
  OnHost(const RnnBackward& b) : dout(b.dout), dhn(b.dhn), dcn(b.dcn), workspace(b.workspace), copy(b) {
    for (View* v : {&copy.dgates, &copy.dh0, &copy.dc0, &copy.out, &copy.w_hh, &copy.h0, &copy.dx, &copy.w_ih})
      *v = on_host(*v);
    copy.dout = dout.get();
    copy.dhn = dhn.get();
    copy.dcn = dcn.get();
    copy.workspace = workspace.get();
  }
  const RnnBackward& get() { return copy; }
};
template <> struct OnHost<const RnnGroupSums*> : Pointed<RnnGroupSums> {
  OnHost(const RnnGroupSums* s) : Pointed(s) {
    if (copy) copy->sums = on_host(copy->sums);
  }
};

OptimRow on_host(OptimRow row) {
  for (void*& data : row.data) data = on_host(data);
  return row;
}
FactorRow on_host(FactorRow row) {
  row.p = on_host(row.p);
  row.g = on_host(row.g);
  row.row = on_host(row.row);
  row.col = on_host(row.col);
  return row;
}
template <class Row> SmallVector<Row, 8> rows_on_host(const Row* rows, int64_t count) {
  SmallVector<Row, 8> copies;
  for (int64_t i = 0; i < count; ++i) copies.push_back(on_host(rows[i]));
  return copies;
}

// A kernel K of the signature; those with a list behind a pointer and a count have a form of their own.
template <class K, class Signature> struct Forward;
template <class K, class R, class... A> struct Forward<K, R(A...)> {
  static R call(A... arguments) { return K::of(backend(Device()))(OnHost<A>{arguments}.get()...); }
};
template <class K> struct Forward<K, void(const View&, const View*, int64_t, int)> {  // cat
  static void call(const View& out, const View* inputs, int64_t count, int dim) {
    K::of(backend(Device()))(on_host(out), Views(inputs, count).get(), count, dim);
  }
};
template <class K> struct Forward<K, void(Loop, const View*, int, const LoopParams&, int)> {  // run
  static void call(Loop loop, const View* operands, int count, const LoopParams& params, int cost) {
    K::of(backend(Device()))(loop, Views(operands, count).get(), count, params, cost);
  }
};
template <class K, class How, class Row, class... Rest>
struct Forward<K, void(DType, How, const Row*, int64_t, Rest...)> {
  static void call(DType dtype, How how, const Row* rows, int64_t count, Rest... rest) {  // optimizers
    K::of(backend(Device()))(dtype, how, rows_on_host(rows, count).data(), count, rest...);
  }
};
// Memory: whatever device it is, blocks are the host's.
template <class K> struct Forward<K, void*(Device, int64_t)> {
  static void* call(Device, int64_t bytes) {
    constexpr size_t kAlignment = 64;
    void* block = ::operator new(static_cast<size_t>(bytes), std::align_val_t(kAlignment), std::nothrow);
    if (!block) fail(ErrorKind::OutOfMemory, "out of memory: tried to allocate ", bytes, " bytes");
    return on_device(block);
  }
};
template <class K> struct Forward<K, void(Device, void*, int64_t)> {
  static void call(Device, void* memory, int64_t) { ::operator delete(on_host(memory), std::align_val_t(64)); }
};
template <class K> struct Forward<K, void(Device, void*, const void*, int64_t)> {  // each of the three copies
  static void call(Device, void* to, const void* from, int64_t bytes) {
    std::memcpy(on_host(to), on_host(from), static_cast<size_t>(bytes));
  }
};

struct Isolated {
  template <class K, class R, class... A> static R call(A... arguments) {
    return Forward<K, R(A...)>::call(arguments...);
  }
};

constinit const Backend isolated = {tables_of<Isolated>(), "isolated", false};

}  // namespace

void register_isolated_backend(bool present) {
  register_backend(DeviceType::PrivateUse1, present ? &isolated : nullptr);
}

}  // namespace rl
