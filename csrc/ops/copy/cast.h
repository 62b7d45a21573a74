// Copies: to another type, to another memory order, into another tensor.
#pragma once
#include "autograd/record.h"
#include "schema/arguments.h"

namespace rl::ops {

Tensor cast(const Tensor& input, DType dtype);  // the same tensor if it has that type
Tensor clone(const Tensor& input, std::optional<MemoryFormat> format = std::nullopt);
Ints strides_for(const Tensor& t, MemoryFormat format);  // strides of t's sizes in that memory order
Tensor contiguous(const Tensor& input, MemoryFormat format = MemoryFormat::Contiguous);
// Whether a batch of images or volumes has its channels last by choice: where sizes of 1 leave the order open, it is
// row-major. What layers make of such an input has them last, too.
bool channels_last(const Tensor& t);
// Memory for a result, in that order if it is wanted (of images and volumes).
Tensor empty_ordered(const Ints& sizes, DType dtype, Device device, bool channels_last);
// A new result, not recorded yet, with its channels last in memory if that is wanted.
Tensor ordered(Tensor y, bool channels_last);
// The tensor itself if its elements follow one another along the last dimension, as those of a row-major result do;
// else a copy without history. For kernels that read neighbours together, whichever dimension they run along.
Tensor with_neighbours(const Tensor& x);
// Raw: writes src (broadcast) into dst without history and without counting the write.
void copy_into(const Tensor& dst, const Tensor& src);
// Raw: the tensor itself if it is on that device, else a copy there without history, its dimensions in the same order.
// The host's is the CPU's memory; meta tensors have nothing to copy there (NotImplementedError).
Tensor to_device(const Tensor& t, Device device);
inline Tensor to_host(const Tensor& t) { return to_device(t, Device()); }
void fill_raw(const Tensor& dst, const Scalar& value);
Tensor zeros(IntSpan sizes, DType dtype, Device device = {});
Tensor full(IntSpan sizes, const Scalar& value, DType dtype, Device device = {});

}  // namespace rl::ops
