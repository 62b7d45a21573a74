#include "tensor/overlap.h"

#include "base/check.h"

namespace rl {

Overlap overlap(const Tensor& a, const Tensor& b) {
  if (a.is(b)) return Overlap::Same;
  if (a.storage() != b.storage() || a.numel() == 0 || b.numel() == 0) return Overlap::None;
  if (!non_overlapping_and_dense(a.sizes(), a.strides()) || !non_overlapping_and_dense(b.sizes(), b.strides()))
    return Overlap::Unknown;
  int64_t a0 = a->offset * a.item_size(), a1 = a0 + a.numel() * a.item_size();  // bytes
  int64_t b0 = b->offset * b.item_size(), b1 = b0 + b.numel() * b.item_size();
  if (a0 == b0 && a1 == b1) return a.strides() == b.strides() ? Overlap::Same : Overlap::Partial;
  return a0 < b1 && b0 < a1 ? Overlap::Partial : Overlap::None;
}

namespace {
[[noreturn, gnu::cold]] void fail_shared() {
  fail(ErrorKind::Runtime,
       "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
       "location. Please clone() the tensor before performing the operation.");
}
}  // namespace

void check_no_internal_overlap(const Tensor& t) {
  if (t.is_contiguous() || t.numel() == 0) return;
  for (int64_t i = 0; i < t.dim(); ++i)
    CHECK(t.strides()[i] != 0 || t.sizes()[i] <= 1, Runtime,
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please clone() the tensor before performing the operation.");
}
void check_no_partial_overlap(const Tensor& written, const Tensor& read) {
  if (written.storage() == read.storage() && overlap(written, read) == Overlap::Partial) fail_shared();
}
void check_no_overlap(const Tensor& written, const Tensor& read) {
  if (written.storage() != read.storage()) return;
  Overlap found = overlap(written, read);
  if (found == Overlap::Partial || found == Overlap::Same) fail_shared();
}

}  // namespace rl
