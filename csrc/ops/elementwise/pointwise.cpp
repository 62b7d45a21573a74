#include "ops/elementwise/pointwise.h"

#include <algorithm>

#include "autograd/destination.h"
#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "tensor/overlap.h"
#include "tensor/promote.h"

namespace rl {

Ints broadcast_sizes(IntSpan a, IntSpan b) {
  if (a == b) return Ints(a);
  int64_t n = std::max(a.size(), b.size());
  Ints out(n);
  for (int64_t i = 1; i <= n; ++i) {
    int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    CHECK(x == y || x == 1 || y == 1, Runtime, "The size of tensor a (", x, ") must match the size of tensor b (", y,
          ") at non-singleton dimension ", n - i, "\n  the shapes are ", to_text(a), " and ", to_text(b),
          ": they are compared from the last dimension on, and sizes must be equal or 1; unsqueeze(dim) adds a "
          "dimension of size 1 (unsqueeze(-1) at the end)");
    out[n - i] = x == 1 ? y : x;
  }
  return out;
}

Ints broadcast_strides(const Tensor& t, IntSpan sizes) {
  Ints out(sizes.size(), 0);
  int64_t shift = sizes.size() - t.dim();
  for (int64_t i = 0; i < t.dim(); ++i)
    out[shift + i] = t.sizes()[i] == 1 && sizes[shift + i] != 1 ? 0 : t.strides()[i];
  return out;
}

void no_kernel(const char* name, DType dtype) {
  fail(ErrorKind::NotImplemented, "\"", name, "_cpu\" not implemented for '", info(dtype).legacy, "'");
}

Device common_device(const char* name, const Value* operands, int count) {
  const Tensor* first = nullptr;
  for (int i = 0; i < count; ++i) {
    const Tensor& t = operands[i].tensor;
    if (!t.defined() || (t.dim() == 0 && t.on_host() && count > 1)) continue;
    if (!first) first = &t;
    CHECK(t.device() == first->device(), Runtime,
          "Expected all tensors to be on the same device, but found at least two devices, ", to_text(first->device()),
          " and ", to_text(t.device()), "! (", name, ")\n  Bring them together first: x.to(y.device).");
  }
  return first ? first->device() : Device();
}

namespace {

bool to_float_first(Rule r) { return r == Rule::Float || r == Rule::RealFloat || r == Rule::FloatBool; }

DType result_dtype(const PointwiseOptions& o, DType common) {
  switch (o.rule) {
    case Rule::Bool:
    case Rule::FloatBool: return DType::Bool;
    case Rule::Real:
    case Rule::RealFloat: return to_real(common);
    default: return o.complex_result ? to_complex(common) : common;
  }
}

// Strides of a row-major tensor, also where a size is 1 and every stride is as good as another.
bool row_major_strides(const Tensor& t) {
  int64_t expected = 1;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    if (t.strides()[d] != expected) return false;
    expected *= std::max<int64_t>(t.sizes()[d], 1);
  }
  return true;
}

// The strides of a result whose operands are not all row-major. Operands of one shape (no scalars among them) that are
// all channels-last, or that share the strides of a dense order, hand these on as they are, also where a size is 1.
Ints strides_from(const Tensor* operands, int count, IntSpan sizes, bool one_shape, const IntSpan* given, int tensors) {
  if (!one_shape) return result_strides(sizes, given, tensors);
  bool images = sizes.size() == 4, alike = non_overlapping_and_dense(sizes, operands[0].strides());
  for (int i = 0; i < count; ++i) {
    images = images && is_channels_last(sizes, operands[i].strides());
    alike = alike && operands[i].strides() == operands[0].strides();
  }
  if (images) {
    const int64_t row = checked_mul(sizes[1], sizes[3]);
    return {checked_mul(row, sizes[2]), 1, row, sizes[1]};
  }
  return alike ? Ints(operands[0].strides()) : result_strides(sizes, given, tensors);
}

bool recorded(const Value* operands, int count) {
  if (!grad_enabled()) return false;
  for (int i = 0; i < count; ++i)
    if (operands[i].requires_grad()) return true;
  return false;
}

}  // namespace

// A write in place that reads the same memory through another view would see its own results.
void check_overlap(const TensorObject* target, const Value* operands, int count) {
  Tensor out = Tensor::borrow(const_cast<TensorObject*>(target));
  for (int i = 0; i < count; ++i)
    if (operands[i].is_tensor()) check_no_partial_overlap(out, operands[i].tensor);
}

Tensor pointwise(const char* name, Pointwise op, const Value* operands, int count, const PointwiseOptions& options,
                 void (*fill_params)(LoopParams&, DType, const void*), const void* context) {
  // Where masks come first, the mask stays bool.
  int first = op == Pointwise::Where ? 1 : 0;
  auto* write = op == Pointwise::Where ? write_single : write_operand;  // where() stores its scalars
  ResultType types;
  const Tensor& lead = operands[first].tensor;
  bool same = lead.defined(), numbers_too = false;
  for (int i = first; i < count; ++i) {
    const Value& v = operands[i];
    if (v.is_tensor()) {
      types.add(v.tensor);
      same = same && v.tensor.dtype() == lead.dtype() && v.tensor.is_contiguous() && v.tensor.sizes() == lead.sizes() &&
             v.tensor.device() == lead.device();
    } else {
      types.add(v.number);
      numbers_too = true;
    }
  }
  // Operands of one shape that are all row-major give a row-major result; otherwise the strides of dimensions of size 1
  // are kept too, as PyTorch keeps them (a number is an operand of another shape).
  same = same && (!numbers_too || !lead.is_contiguous() || row_major_strides(lead));
  DType common = types.get();
  if (to_float_first(options.rule) && is_integral(common, true)) common = default_dtype();
  DType out_dtype = result_dtype(options, common);
  Device device = common_device(name, operands, count);
  const Backend& own = backend(device);
  const PointwiseKernels& kernels = *own.pointwise;
  Loop loop = kernels.loop(op, common);
  if (!loop) {
    if (t_destination.wanted) {
      DType wanted = t_destination.wanted->dtype;
      CHECK(can_cast(out_dtype, wanted), Runtime, "result type ", info(out_dtype).legacy,
            " can't be cast to the desired output type ", info(wanted).legacy);
    }
    no_kernel(name, common);
  }
  LoopParams params = options.params;
  if (fill_params) fill_params(params, common, context);
  bool will_be_recorded = recorded(operands, count);
  if (t_destination.wanted) check_overlap(t_destination.wanted, operands, count);

  // Equal types and shapes, row-major: no strides to think about.
  if (same && first == 0 && lead.dtype() == common) {
    Tensor out = take_destination(lead.sizes(), out_dtype, will_be_recorded);
    bool direct = !out.defined() || out.is_contiguous();
    if (!out.defined()) out = empty(lead.sizes(), out_dtype, device);
    if (direct) {
      char* data[kMaxOperands];
      int64_t strides[kMaxOperands];
      LoopScalar numbers[kMaxOperands];
      data[0] = static_cast<char*>(out.memory());
      strides[0] = itemsize(out_dtype);
      for (int i = 0; i < count; ++i) {
        const Value& v = operands[i];
        if (v.is_tensor()) {
          data[i + 1] = static_cast<char*>(v.tensor.memory());
          strides[i + 1] = itemsize(common);
        } else {
          write(numbers[i].bytes, v.number, common);
          data[i + 1] = numbers[i].bytes;
          strides[i + 1] = 0;
        }
      }
      if (own.host_loops && lead.numel() * options.cost < 16384) {
        loop(data, strides, lead.numel(), params);
        return out;
      }
      int64_t size = lead.numel(), one[1] = {1}, zero[1] = {0};
      View views[kMaxOperands];
      views[0] = {data[0], &size, one, 1, out_dtype};
      for (int i = 0; i < count; ++i) views[i + 1] = {data[i + 1], &size, strides[i + 1] ? one : zero, 1, common};
      kernels.run(loop, views, count + 1, params, options.cost);
      return out;
    }
    t_destination.taken = nullptr;
  }

  Ints sizes;
  bool any = false;
  for (int i = 0; i < count; ++i)
    if (operands[i].is_tensor()) {
      sizes = any ? broadcast_sizes(sizes, operands[i].tensor.sizes()) : Ints(operands[i].tensor.sizes());
      any = true;
    }
  // Cast what has another type; 0-dim tensors become scalars in place.
  Tensor converted[kMaxOperands];
  LoopScalar numbers[kMaxOperands];
  for (int i = 0; i < count; ++i) {
    const Value& v = operands[i];
    if (!v.is_tensor()) continue;
    DType wanted = i < first ? DType::Bool : common;
    NoGrad raw;
    converted[i] = v.tensor.dtype() == wanted ? v.tensor : ops::cast(v.tensor, wanted);
    if (!same_device(device, v.tensor.device())) converted[i] = ops::to_device(converted[i], device);
  }
  Ints strides[kMaxOperands];
  IntSpan given[kMaxOperands];
  int tensors = 0;
  bool ordered = true, one_shape = true;  // row-major, all of them; also in dimensions of size 1
  bool plain = true;
  for (int i = 0; i < count; ++i) {
    one_shape = one_shape && converted[i].defined() && converted[i].sizes() == IntSpan(sizes);
    if (!converted[i].defined()) continue;
    strides[i] = broadcast_strides(converted[i], sizes);
    given[tensors++] = strides[i];
    ordered = ordered && converted[i].is_contiguous();
    plain = plain && ordered && row_major_strides(converted[i]);
  }
  ordered = ordered && (one_shape || plain);
  Tensor out = take_destination(sizes, out_dtype, will_be_recorded);
  if (!out.defined())
    out = ordered ? empty(sizes, out_dtype, device)
                  : empty_strided(sizes, strides_from(converted, count, sizes, one_shape, given, tensors), out_dtype,
                                  device);
  if (out.numel() == 0) return out;
  View views[kMaxOperands];
  views[0] = out.view();
  for (int i = 0; i < count; ++i) {
    DType d = i < first ? DType::Bool : common;
    if (converted[i].defined()) {
      views[i + 1] = {converted[i].memory(), sizes.data(), strides[i].data(), static_cast<int32_t>(sizes.size()), d};
    } else {
      write(numbers[i].bytes, operands[i].number, d);
      strides[i] = Ints(sizes.size(), 0);
      views[i + 1] = {numbers[i].bytes, sizes.data(), strides[i].data(), static_cast<int32_t>(sizes.size()), d};
    }
  }
  kernels.run(loop, views, count + 1, params, options.cost);
  return out;
}

Tensor pointwise_scaled(const char* name, Pointwise op, const Value* operands, int count, const Scalar& s0,
                        const PointwiseOptions& options) {
  return pointwise(
      name, op, operands, count, options,
      [](LoopParams& p, DType d, const void* c) { write_compute(p.s0, *static_cast<const Scalar*>(c), d); }, &s0);
}

}  // namespace rl
