// Losses of several classes that ask for a margin.

#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// The scores as rows of classes; one row where there is no batch.
static Tensor score_rows(const Tensor& input) {
  const int64_t dims = input.dim(), classes = dims ? input.sizes()[dims - 1] : 1;
  CHECK(dims <= 2 && classes > 0, Runtime,
        "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", to_text(input.sizes()));
  return reshape(input, {dims == 2 ? input.sizes()[0] : 1, classes});
}
// The sums of `terms` over classes by row (0), all of them (2), or all by the number of rows (1), each by the number of
// classes.
static Tensor by_classes(const Tensor& terms, const Tensor& rows, int64_t reduction) {
  const double classes = static_cast<double>(rows.sizes()[1]);
  if (reduction == 0) return div(sum(terms, Ints{1}), classes);
  if (reduction == 1 && terms.numel() == rows.numel()) return mean(terms);
  return div(sum_to(terms, Ints()), reduction == 1 ? static_cast<double>(rows.numel()) : classes);
}

// multi_margin_loss: y = sum over j != c of max(0, margin - x[c] + x[j])^p / classes
static Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p, const Scalar& margin,
                                const OptTensor& weight, int64_t reduction) {
  CHECK(p == 1 || p == 2, Runtime, "only p == 1 and p == 2 supported");
  const Tensor rows = score_rows(input);
  const int64_t count = rows.sizes()[0], classes = rows.sizes()[1];
  CHECK(target.dim() <= 1 && target.numel() == count, Runtime, "inconsistent target size, expected ", count,
        " but got ", to_text(target.sizes()));
  if (weight.defined())
    CHECK(weight.numel() == classes, Runtime, "inconsistent weight size, expected ", classes, " but got ",
          to_text(weight.sizes()));
  const Tensor index = reshape(target, {count, 1});
  if (target.has_values() && target.dtype() == DType::Int64) {
    const Tensor dense = to_host(contiguous(target));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t c = dense.view().as<int64_t>()[i];
      CHECK(c >= 0 && c < classes, Runtime, "target out of range: expected classes in [0, ", classes, "), got ", c);
    }
  }
  Tensor terms = clamp(add(sub(margin, gather(rows, 1, index)), rows), Scalar(0), std::nullopt);
  if (p == 2) terms = square(terms);
  if (weight.defined()) terms = mul(terms, reshape(index_select(weight, 0, reshape(target, {count})), {count, 1}));
  const Tensor loss = by_classes(scatter(terms, 1, index, Scalar(0)), rows, reduction);
  return reduction == 0 && input.dim() < 2 ? reshape(loss, target.sizes()) : loss;
}

// multilabel_margin_loss: y = sum over labels c (up to the first -1) and others j of max(0, 1 - x[c] + x[j]) / classes
static Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
  const Tensor rows = score_rows(input);
  CHECK(target.sizes() == input.sizes(), Runtime, "inconsistent target size: ", to_text(target.sizes()),
        " for input of size: ", to_text(input.sizes()));
  CHECK(target.dtype() == DType::Int64, Runtime, "expected scalar type Long but found ", info(target.dtype()).legacy);
  const int64_t count = rows.sizes()[0], classes = rows.sizes()[1];
  if (!input.has_values())
    return empty(reduction == 0 && input.dim() == 2 ? Ints{count} : Ints(), input.dtype(), input.device());
  const Tensor dense = to_host(contiguous(target)), named = zeros(rows.sizes(), DType::Bool);
  const int64_t* labels = dense.view().as<int64_t>();
  SmallVector<int64_t, 64> offsets, owners;  // of every label: its score, and the row of it
  for (int64_t row = 0; row < count; ++row) {
    bool ended = false;
    for (int64_t i = row * classes; i < (row + 1) * classes; ++i) {
      CHECK(labels[i] >= -1 && labels[i] < classes, Runtime,
            "argument #2 target out of range: multilabel_margin_loss expects classes or -1, got ", labels[i]);
      ended = ended || labels[i] < 0;
      if (ended) continue;
      offsets.push_back(row * classes + labels[i]), owners.push_back(row);
      named.view().as<bool>()[offsets.back()] = true;
    }
  }
  auto column = [&](const SmallVector<int64_t, 64>& values) {
    Tensor t = empty({static_cast<int64_t>(values.size())}, DType::Int64);
    std::copy(values.begin(), values.end(), t.view().as<int64_t>());
    return to_device(t, input.device());
  };
  const Tensor owner = column(owners), score = reshape(take(rows, column(offsets)), {owner.numel(), 1});
  Tensor terms = clamp(add(sub(Scalar(1), score), index_select(rows, 0, owner)), Scalar(0), std::nullopt);
  terms = masked_fill(terms, index_select(to_device(named, input.device()), 0, owner), Scalar(0));
  if (reduction != 0) return by_classes(terms, rows, reduction);
  const Tensor loss = index_add(zeros({count}, rows.dtype(), rows.device()), 0, owner, by_classes(terms, rows, 0));
  return input.dim() < 2 ? reshape(loss, {}) : loss;
}

static const Register registered([](Ops& ops) {
  ops.def("_nn.multi_margin_loss", multi_margin_loss, "input, target, p=1, margin=1, weight=None, reduction=1",
          kNoOut | kCastFull, "How far other classes come within a margin of the right one.");
  ops.def("_nn.multilabel_margin_loss", multilabel_margin_loss, "input, target, reduction=1", kNoOut | kCastFull,
          "How far other classes come within a margin of each label.");
});

}  // namespace rl::ops
