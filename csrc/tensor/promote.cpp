#include "tensor/promote.h"

#include "base/check.h"

namespace rl {
namespace {

int kind(DType t) { return is_complex(t) ? 3 : is_float(t) ? 2 : is_integral(t) ? 1 : 0; }

DType complex_of(DType float_or_complex) {
  switch (float_or_complex) {
    case DType::Float64:
    case DType::Complex128: return DType::Complex128;
    case DType::Float16:
    case DType::Complex32: return DType::Complex32;
    default: return DType::Complex64;
  }
}

}  // namespace

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  CHECK(!is_float8(a) && !is_float8(b), Runtime, "Promotion for Float8 Types is not supported, attempted to promote ",
        info(a).legacy, " and ", info(b).legacy, "\n  Convert one of them first: x.to(torch.float32).");
  CHECK(has_cpp_type(a) && has_cpp_type(b), Runtime, "Promotion of ", info(a).legacy, " and ", info(b).legacy,
        " is not supported");
  int ka = kind(a), kb = kind(b);
  if (ka < kb) {
    std::swap(a, b);
    std::swap(ka, kb);
  }
  if (ka == 3) {  // complex with anything: as wide as the wider
    if (kb < 2) return a;
    if (kb == 2) return b == DType::BFloat16 ? promote_types(a, DType::Complex64) : promote_types(a, complex_of(b));
    return itemsize(a) >= itemsize(b) ? a : b;
  }
  if (ka == 2) {
    if (kb < 2) return a;
    if (itemsize(a) == itemsize(b)) return DType::Float32;  // float16 with bfloat16
    return itemsize(a) > itemsize(b) ? a : b;
  }
  if (kb == 0) return a;
  // Two integer types.
  bool sa = info(a).is_signed, sb = info(b).is_signed;
  int64_t wa = itemsize(a), wb = itemsize(b);
  if (sa == sb) return wa >= wb ? a : b;
  DType s = sa ? a : b, u = sa ? b : a;
  if (itemsize(s) > itemsize(u)) return s;
  switch (itemsize(u)) {  // the next wider signed type
    case 1: return DType::Int16;
    case 2: return DType::Int32;
    case 4: return DType::Int64;
    default: return default_dtype();
  }
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_float(from) && !is_float(to) && !is_complex(to)) return false;
  return from == DType::Bool || to != DType::Bool;
}

void ResultType::add(const Tensor& t) {
  if (t->wrapped_number) {
    DType d = t.is_complex() ? to_complex(default_dtype()) : t.is_float() ? default_dtype() : t.dtype();
    number_ = has_number_ ? promote_types(number_, d) : d;
    has_number_ = true;
  } else if (t.dim() == 0) {
    zero_ = has_zero_ ? promote_types(zero_, t.dtype()) : t.dtype();
    has_zero_ = true;
  } else {
    dim_ = has_dim_ ? promote_types(dim_, t.dtype()) : t.dtype();
    has_dim_ = true;
  }
}
void ResultType::add(const Scalar& s) {
  DType d = s.dtype(default_dtype());
  number_ = has_number_ ? promote_types(number_, d) : d;
  has_number_ = true;
}

DType ResultType::get() const {
  // A lower class changes the result only if it is of a higher kind.
  auto combine = [](bool has_high, DType high, bool has_low, DType low) {
    if (!has_high) return low;
    if (!has_low) return high;
    if (kind(low) <= kind(high)) return high;
    // A complex number among longer tensors says only that the result is complex; those say how wide.
    if (kind(low) == 3 && kind(high) == 2) return complex_of(high);
    return promote_types(high, low);
  };
  DType tensors = combine(has_dim_, dim_, has_zero_, zero_);
  return combine(has_dim_ || has_zero_, tensors, has_number_, number_);
}

}  // namespace rl
