// Memory shared by DLPack capsules, in both directions. The structures are those of the DLPack specification.
#include <algorithm>
#include <cstring>

#include "python/errors.h"
#include "schema/registry.h"

namespace rl {
namespace {

struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct Managed {  // before version 1.0
  DLTensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
constexpr uint64_t kIsCopied = 2;
constexpr int32_t kCpu = 1;
template <class M> constexpr const char* kName = "dltensor";
template <> constexpr const char* kName<ManagedVersioned> = "dltensor_versioned";
template <class M> constexpr const char* kUsed = "used_dltensor";
template <> constexpr const char* kUsed<ManagedVersioned> = "used_dltensor_versioned";

struct TypeRow {
  DType dtype;
  uint8_t code, bits;
};
constexpr TypeRow kTypes[] = {
    {DType::Int8, 0, 8},
    {DType::Int16, 0, 16},
    {DType::Int32, 0, 32},
    {DType::Int64, 0, 64},
    {DType::UInt8, 1, 8},
    {DType::UInt16, 1, 16},
    {DType::UInt32, 1, 32},
    {DType::UInt64, 1, 64},
    {DType::Float16, 2, 16},
    {DType::Float32, 2, 32},
    {DType::Float64, 2, 64},
    {DType::BFloat16, 4, 16},
    {DType::Complex32, 5, 32},
    {DType::Complex64, 5, 64},
    {DType::Complex128, 5, 128},
    {DType::Bool, 6, 8},
    {DType::Float8_e4m3fn, 10, 8},
    {DType::Float8_e4m3fnuz, 11, 8},
    {DType::Float8_e5m2, 12, 8},
    {DType::Float8_e5m2fnuz, 13, 8},
    {DType::Float8_e8m0fnu, 14, 8},
    {DType::Float4_e2m1fn_x2, 17, 4},
};

[[noreturn]] void buffer_error(const std::string& message) {
  PyErr_SetString(PyExc_BufferError, message.c_str());
  python_error();
}

// What a consumer holds: the structure, the geometry and the tensor's memory.
template <class M> struct Export {
  M managed;
  Storage* storage;
  int64_t shape[kMaxDims], strides[kMaxDims];
};

template <class M> void release_export(M* managed) {  // by any thread
  const PyGILState_STATE state = PyGILState_Ensure();
  auto* e = static_cast<Export<M>*>(managed->context);
  e->storage->unref();
  delete e;
  PyGILState_Release(state);
}

template <class M> void release_capsule(PyObject* capsule) {  // nobody took it
  if (!PyCapsule_IsValid(capsule, kName<M>)) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  if (managed->deleter) managed->deleter(managed);
}

template <class M> PyObject* make_capsule(const Tensor& t, const TypeRow& type) {
  auto* e = new Export<M>{};
  M& m = e->managed;
  m.context = e;
  m.deleter = release_export<M>;
  for (int i = 0; i < t.dim(); ++i) {
    e->shape[i] = t.sizes()[i];
    e->strides[i] = t.sizes()[i] < 2 ? 1 : t.strides()[i];  // no consumer has to know what such a stride means
  }
  t.storage()->materialize();
  m.tensor = {t.storage()->data ? t.data() : nullptr,
              {kCpu, 0},
              static_cast<int32_t>(t.dim()),
              {type.code, type.bits, static_cast<uint16_t>(type.bits == 4 ? 2 : 1)},
              e->shape,
              e->strides,
              0};
  e->storage = t.storage();
  e->storage->ref();
  PyObject* capsule = PyCapsule_New(&m, kName<M>, release_capsule<M>);
  if (!capsule) {
    m.deleter(&m);
    python_error();
  }
  return capsule;
}

NewObject to_dlpack(const Tensor& input, bool versioned, bool copied) {
  CHECK(input.device().is_cpu(), Runtime, "Cannot pack tensors on ", input.device().name());
  const TypeRow* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) { return r.dtype == input.dtype(); });
  if (type == std::end(kTypes)) buffer_error(text(info(input.dtype()).legacy, " types are not supported by dlpack"));
  if (!versioned) return {make_capsule<Managed>(input, *type)};
  PyObject* capsule = make_capsule<ManagedVersioned>(input, *type);
  auto* m = static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule, kName<ManagedVersioned>));
  m->major = 1;
  m->minor = 0;
  m->flags = copied ? kIsCopied : 0;
  return {capsule};
}

template <class M> void release_import(Storage* s) {
  auto* managed = static_cast<M*>(s->owner);
  if (managed->deleter) managed->deleter(managed);
}

template <class M> Tensor take_capsule(PyObject* capsule) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  if (!managed) python_error();
  const DLTensor& d = managed->tensor;
  CHECK(d.device.type == kCpu || d.device.type == 3, Runtime, "from_dlpack: the memory is on a device (DLPack type ",
        static_cast<int64_t>(d.device.type), ") that is not there; copy it to the CPU first");
  const TypeRow* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) {
    return r.code == d.dtype.code && r.bits == d.dtype.bits && d.dtype.lanes == (r.bits == 4 ? 2 : 1);
  });
  if (type == std::end(kTypes))
    buffer_error(text("Unsupported DLPack type: code ", static_cast<int64_t>(d.dtype.code), ", ",
                      static_cast<int64_t>(d.dtype.bits), " bits, ", static_cast<int64_t>(d.dtype.lanes), " lanes"));
  CHECK(d.ndim >= 0 && d.ndim <= kMaxDims, Runtime, "from_dlpack: too many dimensions");
  const Ints sizes(IntSpan(d.shape, d.ndim));
  const Ints strides = d.strides ? Ints(IntSpan(d.strides, d.ndim)) : contiguous_strides(sizes);
  for (int64_t n : sizes) CHECK(n >= 0, Runtime, "from_dlpack: a size is negative");
  for (int64_t n : strides) CHECK(n >= 0, Runtime, "from_dlpack: negative strides are not supported: copy the array");
  const int64_t elements = checked_numel(sizes) ? checked_extent(sizes, strides) : 0;
  const int64_t bytes = checked_mul(elements, itemsize(type->dtype));
  Storage* s = Storage::borrow(static_cast<char*>(d.data) + d.byte_offset, bytes, release_import<M>, managed);
  Tensor t = tensor_over(s, sizes, strides, 0, type->dtype);
  PyCapsule_SetName(capsule, kUsed<M>);
  PyCapsule_SetDestructor(capsule, nullptr);
  return t;
}

Tensor from_dlpack(Object capsule) {
  CHECK(PyCapsule_CheckExact(capsule.p), Runtime, "from_dlpack received an invalid capsule: not a DLPack capsule");
  if (PyCapsule_IsValid(capsule.p, kName<ManagedVersioned>)) return take_capsule<ManagedVersioned>(capsule.p);
  CHECK(PyCapsule_IsValid(capsule.p, kName<Managed>), Runtime,
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
        "have already constructed a tensor from it once.");
  return take_capsule<Managed>(capsule.p);
}

static const Register registered([](Ops& ops) {
  ops.def("_to_dlpack", to_dlpack, "input, versioned, copied", kNoOut | kAnyType, "A DLPack capsule of the memory.");
  ops.def("_from_dlpack", from_dlpack, "capsule", kNoOut | kAnyType, "A tensor on the memory of a DLPack capsule.");
});

}  // namespace
}  // namespace rl
