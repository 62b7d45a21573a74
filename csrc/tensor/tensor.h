// The tensor. A tensor is a Python object from birth: one allocation, one reference count, identity and garbage
// collection for free. `Tensor` is the handle that C++ code passes around. All of it needs the GIL.
#pragma once
#include <Python.h>

#include <string>
#include <utility>

#include "backend/view.h"
#include "base/device.h"
#include "base/dtype.h"
#include "base/scalar.h"
#include "base/small_vector.h"
#include "tensor/storage.h"

namespace rl {

struct Node;
struct TensorExtra;  // autograd/meta.h: hooks and other rare things
struct AccumulateGrad;
struct Cut;

// How a view came to be: decides whether writing to it in place may be differentiated.
enum class ViewOrigin : uint8_t { Plain, MultiOutput, NoGrad, InsideFunction, Inference };

struct TensorObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  Storage* storage;
  int64_t offset;  // in elements
  int64_t numel;
  int64_t* sizes;  // ndim sizes, then ndim strides (in elements); points at `inline_geometry` up to kInlineDims
  Version* version;
  Node* grad_fn;  // owned; null for leaves
  TensorObject* grad;
  TensorObject* base;           // owned; the tensor that this one is a differentiable view of
  AccumulateGrad* accumulator;  // not owned; the node clears it when it dies
  TensorExtra* extra;
  Cut* cut;  // owned; why there is no history, null if nothing is known
  uint32_t output_nr;
  uint32_t view_version;  // the version at which grad_fn was right, for views
  int16_t ndim;
  DType dtype;
  bool requires_grad : 1;  // a leaf that asks for gradients, or a result with a grad_fn
  bool contiguous : 1;
  bool inference : 1;
  bool wrapped_number : 1;  // a Python number in tensor's clothes: yields to tensors in type promotion
  bool conj : 1;            // its values are the conjugates of what lies in memory (ops/elementwise/lazy_view.h)
  bool neg : 1;             // ... the negatives
  ViewOrigin view_origin;
  Device device;
  static constexpr int kInlineDims = 5;
  int64_t inline_geometry[2 * kInlineDims];

  const int64_t* strides() const { return sizes + ndim; }
  // A view asks for gradients whenever its base does.
  bool wants_grad() const { return requires_grad || (base && base->requires_grad); }
  bool lazy() const { return conj || neg; }
};
extern bool g_lazy_views;  // whether this process ever made a conjugate or negative view: until then nobody looks

// The device whose memory the host may touch unnoticed: the CPU, but none while a recording wants to know of each
// access (g_host_access, csrc/compiler).
inline constexpr DeviceType kNoDevice = static_cast<DeviceType>(255);
extern constinit DeviceType g_readable;
extern void (*g_host_access)(const char* how);
// Told of an element that the host reads, and of the bytes read.
extern void (*g_element_read)(const View& element, const void* bytes);

extern PyTypeObject* g_tensor_type;  // the class rushlight.Tensor
inline bool is_tensor(PyObject* o) {
  return Py_TYPE(o) == g_tensor_type || PyType_IsSubtype(Py_TYPE(o), g_tensor_type);
}

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& o) : p_(o.p_) { Py_XINCREF(p_); }
  Tensor(Tensor&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Tensor& operator=(const Tensor& o) {
    Tensor copy(o);
    std::swap(p_, copy.p_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) noexcept {
    if (this != &o) {
      TensorObject* old = std::exchange(p_, std::exchange(o.p_, nullptr));
      Py_XDECREF(old);
    }
    return *this;
  }
  ~Tensor() { Py_XDECREF(p_); }
  static Tensor own(TensorObject* p) {
    Tensor t;
    t.p_ = p;
    return t;
  }
  static Tensor borrow(TensorObject* p) {
    Py_XINCREF(p);
    return own(p);
  }
  static Tensor borrow(PyObject* o) { return borrow(reinterpret_cast<TensorObject*>(o)); }
  TensorObject* get() const { return p_; }
  PyObject* object() const { return reinterpret_cast<PyObject*>(p_); }
  PyObject* release() { return reinterpret_cast<PyObject*>(std::exchange(p_, nullptr)); }
  TensorObject* operator->() const { return p_; }

  bool defined() const { return p_ != nullptr; }
  explicit operator bool() const { return p_ != nullptr; }
  bool is(const Tensor& o) const { return p_ == o.p_; }
  int64_t dim() const { return p_->ndim; }
  int64_t numel() const { return p_->numel; }
  IntSpan sizes() const { return {p_->sizes, p_->ndim}; }
  IntSpan strides() const { return {p_->strides(), p_->ndim}; }
  int64_t size(int64_t dim) const;  // negative dims wrap; checked
  int64_t stride(int64_t dim) const;
  DType dtype() const { return p_->dtype; }
  Device device() const { return p_->device; }
  int64_t item_size() const { return itemsize(p_->dtype); }
  bool is_contiguous() const { return p_->contiguous; }
  bool is_float() const { return rl::is_float(p_->dtype); }
  bool is_complex() const { return rl::is_complex(p_->dtype); }
  bool requires_grad() const { return p_->wants_grad(); }
  uint32_t version() const { return p_->version->value; }
  Storage* storage() const { return p_->storage; }

  // The elements, for the host to read and write. Those of a meta tensor are nowhere, and those of other devices are
  // copied by ops::to_host first: an error says who did not.
  void* data() const {
    char* p = p_->storage->data;
    if (__builtin_expect((!p || p_->device.type != g_readable) && p_->numel != 0, 0)) note_host_access();
    return p + p_->offset * itemsize(p_->dtype);
  }
  template <class T> T* data() const { return static_cast<T*>(data()); }
  // Their address for the kernels of the tensor's device, which the host must not follow: null for a meta tensor.
  void* memory() const {
    char* p = p_->storage->data;
    if (__builtin_expect(!p, 0)) return no_memory();
    return p + p_->offset * itemsize(p_->dtype);
  }
  View view() const { return {memory(), p_->sizes, p_->strides(), p_->ndim, p_->dtype}; }
  // Whether there are values at all. Ask where an op looks at them, to check or to find a size; kernels need no asking.
  bool has_values() const { return !p_->device.is_meta(); }
  // Whether the host may look at the values where they lie: data() is right.
  bool on_host() const { return p_->device.is_cpu(); }

 private:
  [[noreturn]] void fail_without_data() const;
  void note_host_access() const;
  void* no_memory() const;
  TensorObject* p_ = nullptr;
};

using Tensors = SmallVector<Tensor, 4>;

// Uninitialised memory in row-major order. Sizes are checked (negative, overflow).
Tensor empty(IntSpan sizes, DType dtype, Device device = {});
Tensor empty_strided(IntSpan sizes, IntSpan strides, DType dtype, Device device = {});
// Same sizes, and the same order of dimensions in memory where `like` is dense.
Tensor empty_like(const Tensor& like);
Tensor empty_like(const Tensor& like, DType dtype);

// Another tensor on the same memory, without history: shares storage and version counter. See ops/shape/view.h for the
// differentiable views.
Tensor alias(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset);
Tensor alias(const Tensor& t);
Tensor alias_as(const Tensor& t, DType dtype, IntSpan sizes, IntSpan strides,
                int64_t offset);  // reinterprets the bytes
// A tensor over memory that somebody else owns.
Tensor tensor_over(Storage* owned, IntSpan sizes, IntSpan strides, int64_t offset, DType dtype);
// A new object of Python class `type` (Tensor or a subclass) on t's memory.
Tensor alias_of_type(const Tensor& t, PyTypeObject* type);

// Gives t other geometry on its own storage (resize_, set_).
void set_geometry(TensorObject* t, IntSpan sizes, IntSpan strides, int64_t offset);
void set_storage(TensorObject* t, Storage* storage);  // shares; takes a reference
void set_version(TensorObject* t, Version* version);  // shares; takes a reference
void release_version(TensorObject* t);                // of a tensor that dies
Version* new_version(uint32_t value);                 // a counter of its own, with one reference

// Copies the only element of t, as it lies in memory, to the host.
void read_element(const Tensor& t, void* to);

// To be called after each write in place: counts it and remembers the line and, if given, the op.
void bump_version(const Tensor& t, const char* op = nullptr);
inline constexpr const char* kOptimizerStep = "an optimizer's step";

Ints contiguous_strides(IntSpan sizes);
bool strides_contiguous(IntSpan sizes, IntSpan strides);
int64_t checked_numel(IntSpan sizes);
// Elements from the first to one past the last that sizes and strides can reach.
int64_t checked_extent(IntSpan sizes, IntSpan strides);
Ints dense_strides_like(const Tensor& t);  // t's own order of dimensions without gaps
// The strides of a result computed from operands with these strides (0 where one is broadcast): the order of dimensions
// in the first operand that has one. As in torch, ties go to the larger dimension, and what is left to the order of the
// sizes.
Ints result_strides(IntSpan sizes, const IntSpan* operands, int count);
bool is_channels_last(IntSpan sizes, IntSpan strides);
bool non_overlapping_and_dense(IntSpan sizes, IntSpan strides);

// Wraps a negative dimension; IndexError "Dimension out of range (...)" otherwise. A 0-dim tensor counts as 1-dim.
int64_t wrap_dim(int64_t dim, int64_t ndim);
std::string to_text(IntSpan sizes);  // [2, 3]
inline std::string to_text(const Ints& sizes) { return to_text(IntSpan(sizes)); }

// The object machinery (tensor/object.cpp).
TensorObject* new_tensor_object(PyTypeObject* type);
DType default_dtype();
void set_default_dtype(DType t);

}  // namespace rl
