#include "tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "backend/backend.h"
#include "tensor/no_grad_reason.h"

namespace rl {
namespace {

DType g_default_dtype = DType::Float32;

// Room for ndim sizes and strides.
void make_room(TensorObject* t, int64_t ndim) {
  if (ndim == t->ndim) return;
  if (t->sizes != t->inline_geometry) PyMem_Free(t->sizes);
  t->sizes = t->inline_geometry;
  if (ndim > TensorObject::kInlineDims) {
    t->sizes = static_cast<int64_t*>(PyMem_Malloc(static_cast<size_t>(2 * ndim) * sizeof(int64_t)));
    if (!t->sizes) {
      t->sizes = t->inline_geometry;
      t->ndim = 0;
      fail(ErrorKind::OutOfMemory, "out of memory for a shape");
    }
  }
  t->ndim = static_cast<int16_t>(ndim);
}

Tensor make(PyTypeObject* type, Storage* owned, DType dtype) {
  Tensor t = Tensor::own(new_tensor_object(type));
  t->storage = owned;
  t->version = &owned->version;
  t->dtype = dtype;
  t->device = owned->device;
  return t;
}

Tensor share(const Tensor& from, PyTypeObject* type, DType dtype) {
  from.storage()->ref();
  Tensor t = make(type, from.storage(), dtype);
  set_version(t.get(), from->version);
  t->inference = from->inference;
  if (dtype == from.dtype()) t->conj = from->conj, t->neg = from->neg;
  if (from->cut) inherit_cut(t.get(), from.get());
  return t;
}

}  // namespace

bool g_lazy_views = false;
constinit DeviceType g_readable = DeviceType::Cpu;
void (*g_host_access)(const char* how) = nullptr;
void (*g_element_read)(const View& element, const void* bytes) = nullptr;

DType default_dtype() { return g_default_dtype; }
void set_default_dtype(DType t) { g_default_dtype = t; }

int64_t wrap_dim(int64_t dim, int64_t ndim) {
  int64_t n = ndim > 0 ? ndim : 1;
  CHECK(dim >= -n && dim < n, Index, "Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
        "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

int64_t Tensor::size(int64_t dim) const {
  CHECK(p_->ndim > 0, Index, "Dimension specified as ", dim, " but tensor has no dimensions");
  return p_->sizes[wrap_dim(dim, p_->ndim)];
}
void Tensor::fail_without_data() const {
  if (device().is_meta())
    fail(ErrorKind::NotImplemented, "Cannot copy out of meta tensor; no data! A tensor of shape ", to_text(sizes()),
         " on the meta device was given to a call that reads or writes values.");
  if (!on_host())
    fail(ErrorKind::Type, "can't read a tensor of shape ", to_text(sizes()), " where it lies, on device ",
         to_text(device()), ". Use Tensor.cpu() to copy the tensor to host memory first.");
  fail(ErrorKind::Runtime, "a tensor of shape ", to_text(sizes()), " whose storage is empty was given to a call that ",
       "reads or writes values");
}
void Tensor::note_host_access() const {
  if (!p_->storage->data || !on_host()) fail_without_data();
  g_host_access("the host reads or writes values");
}
void* Tensor::no_memory() const {
  if (numel() != 0 && has_values()) fail_without_data();
  return nullptr;
}
int64_t Tensor::stride(int64_t dim) const {
  CHECK(p_->ndim > 0, Index, "Dimension specified as ", dim, " but tensor has no dimensions");
  return p_->strides()[wrap_dim(dim, p_->ndim)];
}

std::string to_text(IntSpan sizes) {
  std::string s = "[";
  for (int64_t i = 0; i < sizes.size(); ++i) s += (i ? ", " : "") + std::to_string(sizes[i]);
  return s + "]";
}

void read_element(const Tensor& t, void* to) {
  if (t.on_host() && g_element_read && g_readable == kNoDevice) {
    std::memcpy(to, t.memory(), static_cast<size_t>(t.item_size()));
    g_element_read(t.view(), to);
  } else if (t.on_host()) std::memcpy(to, t.data(), static_cast<size_t>(t.item_size()));
  else backend(t.device()).memory->to_host(t.device(), to, t.memory(), t.item_size());
}

namespace {

// The product of sizes; nothing if it does not fit 64 bits.
std::optional<int64_t> numel_of(IntSpan sizes) {
  CHECK(sizes.size() <= kMaxDims, Runtime, "a tensor can have at most ", kMaxDims, " dimensions, got ", sizes.size());
  int64_t n = 1;
  bool zero = false;
  for (int64_t s : sizes) {
    CHECK(s >= 0, Runtime, "Trying to create tensor with negative dimension ", s, ": ", to_text(sizes));
    zero |= s == 0;
  }
  if (zero) return 0;
  for (int64_t s : sizes)
    if (__builtin_mul_overflow(n, s, &n)) return std::nullopt;
  return n;
}

int64_t next_stride(int64_t stride, int64_t size) {
  int64_t r;
  CHECK(!__builtin_mul_overflow(stride, std::max<int64_t>(size, 1), &r), Runtime,
        "Stride calculation overflowed: ", stride, " times ", size, " does not fit 64 bits");
  return r;
}

[[noreturn]] void fail_storage_size(IntSpan sizes, const IntSpan* strides, DType dtype) {
  fail(ErrorKind::Runtime, "Storage size calculation overflowed with sizes=", to_text(sizes),
       strides ? " and strides=" + to_text(*strides) : "", ": so many elements of ", itemsize(dtype),
       " bytes cannot be counted in 64 bits");
}

}  // namespace

int64_t checked_numel(IntSpan sizes) {
  std::optional<int64_t> n = numel_of(sizes);
  CHECK(n, Runtime, "numel: integer multiplication overflow: the number of elements of sizes ", to_text(sizes),
        " does not fit 64 bits");
  return *n;
}

static std::optional<int64_t> extent_of(IntSpan sizes, IntSpan strides) {
  int64_t last = 1, step;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return last;
}
int64_t checked_extent(IntSpan sizes, IntSpan strides) {
  std::optional<int64_t> extent = extent_of(sizes, strides);
  CHECK(extent, Runtime, "Storage size calculation overflowed with sizes=", to_text(sizes),
        " and strides=", to_text(strides), ": the last element's place does not fit 64 bits");
  return *extent;
}

Ints contiguous_strides(IntSpan sizes) {
  Ints strides(sizes.size());
  int64_t step = 1;
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    strides[i] = step;
    if (i) step = next_stride(step, sizes[i]);
  }
  return strides;
}

bool strides_contiguous(IntSpan sizes, IntSpan strides) {
  int64_t expected = 1;
  bool ok = true;
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != expected) ok = false;
    if (ok) expected *= sizes[i];
  }
  return ok;
}

bool is_channels_last(IntSpan sizes, IntSpan strides) {
  int64_t n = sizes.size();
  if (n != 4 && n != 5) return false;
  // Memory order: batch, spatial, channels.
  int64_t expected = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t d = k == 0 ? 1 : k == n - 1 ? 0 : n - k;
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool non_overlapping_and_dense(IntSpan sizes, IntSpan strides) {
  Ints order;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (int64_t i : order) {
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

Ints result_strides(IntSpan sizes, const IntSpan* operands, int count) {
  // Which of two dimensions is the outer one, where an operand can tell: 1 if a, -1 if b.
  auto outer = [&](int64_t a, int64_t b) {
    for (int k = 0; k < count; ++k) {
      const int64_t x = operands[k][a], y = operands[k][b];
      if (x == 0 || y == 0) continue;
      if (x != y) return x > y ? 1 : -1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  Ints order(sizes.size());  // innermost first
  for (int64_t i = 0; i < sizes.size(); ++i) order[i] = sizes.size() - 1 - i;
  for (int64_t i = 1; i < sizes.size(); ++i)
    for (int64_t at = i, k = i - 1; k >= 0; --k) {
      const int found = outer(order[k], order[at]);
      if (found < 0) break;
      if (found > 0) std::swap(order[k], order[at]), at = k;
    }
  Ints strides(sizes.size());
  int64_t step = 1;
  for (int64_t d : order) {
    strides[d] = step;
    step = next_stride(step, sizes[d]);
  }
  return strides;
}

Ints dense_strides_like(const Tensor& t) {
  if (t.is_contiguous() || t.dim() == 0) return contiguous_strides(t.sizes());
  if (non_overlapping_and_dense(t.sizes(), t.strides())) return Ints(t.strides());
  const IntSpan strides = t.strides();  // gaps or broadcast dimensions
  return result_strides(t.sizes(), &strides, 1);
}

void set_geometry(TensorObject* t, IntSpan sizes, IntSpan strides, int64_t offset) {
  int64_t numel = checked_numel(sizes);
  make_room(t, sizes.size());
  std::copy(sizes.begin(), sizes.end(), t->sizes);
  std::copy(strides.begin(), strides.end(), t->sizes + t->ndim);
  t->offset = offset;
  t->numel = numel;
  t->contiguous = strides_contiguous(sizes, strides);
}

Tensor empty(IntSpan sizes, DType dtype, Device device) {
  std::optional<int64_t> numel = numel_of(sizes);
  int64_t bytes;
  if (!numel || __builtin_mul_overflow(*numel, itemsize(dtype), &bytes)) fail_storage_size(sizes, nullptr, dtype);
  if (*numel == 0) contiguous_strides(sizes);  // strides can overflow although there is no element
  Tensor t = make(g_tensor_type, Storage::make(bytes, device), dtype);
  make_room(t.get(), sizes.size());
  int64_t step = 1;
  int64_t* strides = t->sizes + t->ndim;
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    t->sizes[i] = sizes[i];
    strides[i] = step;
    step *= sizes[i] > 1 ? sizes[i] : 1;
  }
  t->numel = *numel;
  t->contiguous = true;
  return t;
}

Tensor empty_strided(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  CHECK(sizes.size() == strides.size(), Runtime, "dimensionality of sizes (", sizes.size(),
        ") must match dimensionality of strides (", strides.size(), ")");
  for (int64_t s : strides)
    CHECK(s >= 0, Runtime,
          "as_strided: Negative strides are not supported at the moment, got strides: ", to_text(strides));
  int64_t bytes = 0;
  std::optional<int64_t> numel = numel_of(sizes), extent = extent_of(sizes, strides);
  if (!numel || !extent || __builtin_mul_overflow(*extent, itemsize(dtype), &bytes))
    fail_storage_size(sizes, &strides, dtype);
  Tensor t = make(g_tensor_type, Storage::make(bytes, device), dtype);
  set_geometry(t.get(), sizes, strides, 0);
  return t;
}

Tensor empty_like(const Tensor& like, DType dtype) {
  if (like.is_contiguous()) return empty(like.sizes(), dtype, like.device());
  return empty_strided(like.sizes(), dense_strides_like(like), dtype, like.device());
}
Tensor empty_like(const Tensor& like) { return empty_like(like, like.dtype()); }

Tensor alias_as(const Tensor& t, DType dtype, IntSpan sizes, IntSpan strides, int64_t offset) {
  Tensor r = share(t, g_tensor_type, dtype);
  set_geometry(r.get(), sizes, strides, offset);
  return r;
}
Tensor alias(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset) {
  return alias_as(t, t.dtype(), sizes, strides, offset);
}
Tensor alias(const Tensor& t) { return alias_of_type(t, g_tensor_type); }
Tensor alias_of_type(const Tensor& t, PyTypeObject* type) {
  Tensor r = share(t, type, t.dtype());
  make_room(r.get(), t.dim());
  std::copy(t->sizes, t->sizes + 2 * t->ndim, r->sizes);
  r->offset = t->offset;
  r->numel = t->numel;
  r->contiguous = t->contiguous;
  return r;
}

Tensor tensor_over(Storage* owned, IntSpan sizes, IntSpan strides, int64_t offset, DType dtype) {
  Tensor t = make(g_tensor_type, owned, dtype);
  set_geometry(t.get(), sizes, strides, offset);
  return t;
}

// Whether a tensor counts in a storage that it does not hold.
static bool counts_elsewhere(const TensorObject* t, const Version* v) { return v->owner && v->owner != t->storage; }

void release_version(TensorObject* t) {
  Version* v = t->version;
  if (!v->owner && --v->refs == 0) delete v;
  else if (counts_elsewhere(t, v)) v->owner->unhold();
}

void set_version(TensorObject* t, Version* version) {
  if (!version->owner) ++version->refs;
  else if (counts_elsewhere(t, version)) ++version->owner->holders;
  if (t->version) release_version(t);
  t->version = version;
}

Version* new_version(uint32_t value) {
  Version* v = new Version;
  v->value = value;
  v->refs = 1;
  return v;
}

void set_storage(TensorObject* t, Storage* storage) {
  storage->ref();
  Storage* old = std::exchange(t->storage, storage);
  // The counter stays, shared with the views and with what was saved for backward.
  if (Storage* owner = t->version->owner) {
    if (owner != storage && owner == old) ++owner->holders;
    if (owner == storage && owner != old) owner->unhold();
  }
  old->unref();
}

void bump_version(const Tensor& t, const char* op) {
  Version* v = t->version;
  ++v->value;
  v->last_write = Site::here();
  v->last_op = op;
}

}  // namespace rl
