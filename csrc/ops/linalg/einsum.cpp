// Sums of products over named dimensions: einsum and tensordot. Pairs of operands are contracted by one batched
// product.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

// A tensor whose dimensions have names. Letters are 0 .. 51 (capitals first), dimensions of an ellipsis follow.
constexpr int kLetters = 52;
constexpr int kLabels = kLetters + kMaxDims;
struct Term {
  Tensor tensor;
  std::vector<int> labels;
  int64_t dim_of(int label) const {
    auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? -1 : at - labels.begin();
  }
  bool has(int label) const { return dim_of(label) >= 0; }
  int64_t size(int label) const { return tensor.sizes()[dim_of(label)]; }
};

Term sum_out(const Term& t, const std::vector<int>& gone) {
  if (gone.empty()) return t;
  Ints kept(t.tensor.sizes()), sizes;
  Term result;
  for (size_t i = 0; i < t.labels.size(); ++i) {
    if (std::find(gone.begin(), gone.end(), t.labels[i]) != gone.end()) {
      kept[static_cast<int64_t>(i)] = 1;
    } else {
      sizes.push_back(kept[static_cast<int64_t>(i)]);
      result.labels.push_back(t.labels[i]);
    }
  }
  result.tensor = reshape(sum_to(t.tensor, kept), sizes);
  return result;
}

Term arranged(const Term& t, const std::vector<int>& labels) {
  if (t.labels == labels) return t;
  Ints order;
  for (int label : labels) order.push_back(t.dim_of(label));
  return {permute(t.tensor, order), labels};
}

// Drops dimensions of size 1 that the other operand has in full: they broadcast.
Term squeezed(const Term& t, const Term& other) {
  Term result = t;
  for (size_t i = t.labels.size(); i-- > 0;) {
    int label = t.labels[i];
    if (t.tensor.sizes()[static_cast<int64_t>(i)] != 1 || !other.has(label) || other.size(label) == 1) continue;
    result.tensor = squeeze(result.tensor, static_cast<int64_t>(i));
    result.labels.erase(result.labels.begin() + static_cast<long>(i));
  }
  return result;
}

Tensor grouped(const Term& t, int64_t batch, int64_t first) {
  // (batch..., first..., rest...) with the last two groups made one dimension each
  IntSpan s = t.tensor.sizes();
  Ints sizes;
  int64_t a = 1, b = 1, n = s.size();
  for (int64_t i = 0; i < batch; ++i) sizes.push_back(s[i]);
  for (int64_t i = batch; i < batch + first; ++i) a *= s[i];
  for (int64_t i = batch + first; i < n; ++i) b *= s[i];
  sizes.push_back(a);
  sizes.push_back(b);
  return reshape(t.tensor, sizes);
}

// The product of two terms, summed over labels that keep() refuses.
template <class Keep> Term contract(Term a, Term b, Keep keep) {
  a = squeezed(a, b);
  b = squeezed(b, a);
  std::vector<int> batch, left, right, summed, only_a, only_b;
  for (int l : a.labels) {
    if (b.has(l)) (keep(l) ? batch : summed).push_back(l);
    else if (keep(l)) left.push_back(l);
    else only_a.push_back(l);
  }
  for (int l : b.labels)
    if (!a.has(l)) (keep(l) ? right : only_b).push_back(l);
  a = sum_out(a, only_a);
  b = sum_out(b, only_b);
  std::vector<int> result = batch;
  result.insert(result.end(), left.begin(), left.end());
  result.insert(result.end(), right.begin(), right.end());
  auto joined = [](std::vector<int> x, const std::vector<int>& y, const std::vector<int>& z) {
    x.insert(x.end(), y.begin(), y.end());
    x.insert(x.end(), z.begin(), z.end());
    return x;
  };
  if (summed.empty()) {  // nothing to sum: an elementwise product
    a = arranged(a, joined(batch, left, {}));
    b = arranged(b, joined(batch, right, {}));
    Tensor wide = a.tensor;
    for (size_t i = 0; i < right.size(); ++i) wide = unsqueeze(wide, -1);
    Tensor other = b.tensor;
    for (size_t i = 0; i < left.size(); ++i) other = unsqueeze(other, static_cast<int64_t>(batch.size()));
    return {mul(wide, other), result};
  }
  Ints sizes;
  for (int l : batch) sizes.push_back(a.size(l));
  for (int l : left) sizes.push_back(a.size(l));
  for (int l : right) sizes.push_back(b.size(l));
  int64_t nb = static_cast<int64_t>(batch.size());
  Tensor x = grouped(arranged(a, joined(batch, left, summed)), nb, static_cast<int64_t>(left.size()));
  Tensor y = grouped(arranged(b, joined(batch, summed, right)), nb, static_cast<int64_t>(summed.size()));
  return {reshape(matmul(x, y), sizes), result};
}

int letter(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  return -1;
}

// "ab...c" as labels; kEllipsis stands for the dots.
constexpr int kEllipsis = -2;
std::vector<int> parse(const std::string& s, const char* what) {
  std::vector<int> labels;
  bool dots = false;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == ' ') continue;
    if (s[i] == '.') {
      CHECK(!dots && i + 2 < s.size() && s[i + 1] == '.' && s[i + 2] == '.', Runtime, "einsum(): found '.' for ", what,
            " that is not part of any ellipsis, or a second ellipsis, in '", s, "'");
      dots = true;
      i += 2;
      labels.push_back(kEllipsis);
      continue;
    }
    CHECK(letter(s[i]) >= 0, Runtime, "einsum(): invalid subscript given at index ", static_cast<int64_t>(i),
          " in the equation string, subscripts must be in [a-zA-Z], got '", s.substr(i, 1), "'");
    labels.push_back(letter(s[i]));
  }
  return labels;
}

// The diagonal where a label stands twice, and the ellipsis spread out.
Term name_dimensions(const Tensor& operand, const std::vector<int>& given, int64_t index, int64_t ellipsis) {
  std::vector<int> labels;
  int64_t named = 0;
  bool dots = false;
  for (int l : given) l == kEllipsis ? dots = true : ++named;
  int64_t extra = operand.dim() - named;
  CHECK(extra >= 0 && (dots || extra == 0), Runtime, "einsum(): the number of subscripts in the equation (", named,
        dots ? ") is more than the number of dimensions (" : ") does not match the number of dimensions (",
        operand.dim(), ") for operand ", index, dots ? "" : " and no ellipsis was given");
  for (int l : given) {
    if (l != kEllipsis) labels.push_back(l);
    else
      for (int64_t i = 0; i < extra; ++i) labels.push_back(static_cast<int>(kLetters + ellipsis - extra + i));
  }
  Term t{operand, {}};
  Ints sizes, strides;
  bool repeated = false;
  for (size_t i = 0; i < labels.size(); ++i) {
    int64_t d = static_cast<int64_t>(i), at = t.dim_of(labels[i]);
    if (at < 0) {
      t.labels.push_back(labels[i]);
      sizes.push_back(operand.sizes()[d]);
      strides.push_back(operand.strides()[d]);
      continue;
    }
    CHECK(sizes[at] == operand.sizes()[d], Runtime, "einsum(): subscript repeated for operand ", index, " with sizes ",
          sizes[at], " and ", operand.sizes()[d], " that don't match");
    strides[at] += operand.strides()[d];
    repeated = true;
  }
  if (repeated) t.tensor = as_strided(operand, sizes, strides, operand->offset);
  return t;
}

}  // namespace

static Tensor einsum(const std::string& equation, const Tensors& operands) {
  CHECK(!operands.empty(), Runtime, "einsum(): must provide at least one operand");
  size_t arrow = equation.find("->");
  std::string inputs = equation.substr(0, arrow);
  std::vector<std::vector<int>> given;
  for (size_t from = 0;;) {
    size_t comma = inputs.find(',', from);
    given.push_back(parse(inputs.substr(from, comma - from), text("operand ", given.size()).c_str()));
    if (comma == std::string::npos) break;
    from = comma + 1;
  }
  CHECK(static_cast<int64_t>(given.size()) == operands.size(), Runtime, "einsum(): ",
        static_cast<int64_t>(given.size()) > operands.size()
            ? "fewer operands were provided than specified in the equation"
            : "more operands were provided than specified in the equation");
  int64_t ellipsis = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    bool dots = false;
    int64_t named = 0;
    for (int l : given[i]) l == kEllipsis ? dots = true : ++named;
    if (dots) ellipsis = std::max(ellipsis, operands[static_cast<int64_t>(i)].dim() - named);
  }
  std::vector<Term> terms;
  int counts[kLabels] = {};
  int64_t sizes[kLabels];
  std::fill(sizes, sizes + kLabels, 1);
  for (size_t i = 0; i < given.size(); ++i) {
    for (int l : given[i])
      if (l != kEllipsis) ++counts[l];
    terms.push_back(name_dimensions(operands[static_cast<int64_t>(i)], given[i], static_cast<int64_t>(i), ellipsis));
    for (int l : terms.back().labels) {
      int64_t n = terms.back().size(l);
      if (l >= kLetters) counts[l] = 1;
      CHECK(sizes[l] == n || n == 1 || sizes[l] == 1, Runtime,
            "einsum(): operands do not broadcast with remapped shapes [original->remapped]: a subscript has size ", n,
            " for operand ", static_cast<int64_t>(i), " which does not broadcast with previously seen size ", sizes[l]);
      if (n != 1) sizes[l] = n;
    }
  }
  std::vector<int> output;
  auto add_ellipsis = [&] {
    for (int64_t i = 0; i < ellipsis; ++i) output.push_back(static_cast<int>(kLetters + i));
  };
  if (arrow == std::string::npos) {
    add_ellipsis();
    for (int l = 0; l < kLetters; ++l)
      if (counts[l] == 1) output.push_back(l);
  } else {
    for (int l : parse(equation.substr(arrow + 2), "the output")) {
      if (l == kEllipsis) {
        add_ellipsis();
        continue;
      }
      CHECK(std::find(output.begin(), output.end(), l) == output.end(), Runtime,
            "einsum(): output subscript appears more than once in the output");
      CHECK(counts[l] > 0, Runtime, "einsum(): output subscript does not appear in the equation for any input operand");
      output.push_back(l);
    }
  }
  auto in_output = [&](int l) { return std::find(output.begin(), output.end(), l) != output.end(); };
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i)
    result = contract(result, terms[i], [&](int l) {
      if (in_output(l)) return true;
      for (size_t j = i + 1; j < terms.size(); ++j)
        if (terms[j].has(l)) return true;
      return false;
    });
  std::vector<int> gone;
  for (int l : result.labels)
    if (!in_output(l)) gone.push_back(l);
  result = sum_out(result, gone);
  for (int l : output)  // a dimension of size 1 that was broadcast away
    if (!result.has(l)) result.tensor = unsqueeze(result.tensor, -1), result.labels.push_back(l);
  return arranged(result, output).tensor;
}

// tensordot: a and b summed over pairs of dimensions
static Tensor tensordot(const Tensor& a, const Tensor& b, const Ints& dims_a, const Ints& dims_b) {
  CHECK(dims_a.size() == dims_b.size(), Runtime, "tensordot: both dimension lists should have same length");
  CHECK(a.dtype() == b.dtype(), Runtime, "tensordot: both inputs should have same dtype");
  Term x{a, {}}, y{b, {}};
  for (int64_t i = 0; i < a.dim(); ++i) x.labels.push_back(static_cast<int>(i));
  for (int64_t i = 0; i < b.dim(); ++i) y.labels.push_back(static_cast<int>(a.dim() + i));
  std::vector<int> summed;
  for (int64_t i = 0; i < dims_a.size(); ++i) {
    int64_t p = wrap_dim(dims_a[i], a.dim()), q = wrap_dim(dims_b[i], b.dim());
    CHECK(a.sizes()[p] == b.sizes()[q] || a.sizes()[p] == 1 || b.sizes()[q] == 1, Runtime,
          "contracted dimensions need to match, but first has size ", a.sizes()[p], " in dim ", p,
          " and second has size ", b.sizes()[q], " in dim ", q);
    CHECK(std::find(summed.begin(), summed.end(), static_cast<int>(p)) == summed.end() && y.labels[q] >= a.dim(),
          Runtime, "tensordot: dim ", p, " appears multiple times in the list of dims");
    y.labels[q] = static_cast<int>(p);
    summed.push_back(static_cast<int>(p));
  }
  return contract(x, y, [&](int l) { return std::find(summed.begin(), summed.end(), l) == summed.end(); }).tensor;
}

// cross: the product of vectors of three        da = conj(b) x dy, db = dy x conj(a)
static Tensor cross(const Tensor& a, const Tensor& b, int64_t dim);
struct CrossBackward : Node {
  static constexpr const char* kName = "LinalgCrossBackward0";
  static constexpr bool kStacks = true;
  Saved self, other;
  int64_t dim = -1;
  Grads backward(const Grads& dy) {
    auto of = [&](const Saved& saved) {
      Tensor t = conj(saved.unpack(*this));
      return lead(dy[0]) ? unsqueeze(t, 0) : t;
    };
    return {needs(0) ? cross(of(other), dy[0], dim) : Tensor(), needs(1) ? cross(dy[0], of(self), dim) : Tensor()};
  }
  FIELDS(self, other, dim)
};
static Tensor cross(const Tensor& a, const Tensor& b, int64_t dim) {
  CHECK(a.dim() == b.dim(), Runtime, "linalg.cross: inputs must have the same number of dimensions, got ", a.dim(),
        " and ", b.dim());
  int64_t d = wrap_dim(dim, a.dim());
  CHECK(a.dim() > 0 && a.sizes()[d] == 3 && b.sizes()[d] == 3, Runtime, "linalg.cross: inputs dimension ", dim,
        " must have length 3. Got ", to_text(a.sizes()), " and ", to_text(b.sizes()));
  Ints sizes = broadcast_sizes(a.sizes(), b.sizes());
  Tensor y;
  {
    NoGrad raw;
    const Tensor of_a[3] = {select(a, d, 0), select(a, d, 1), select(a, d, 2)};
    const Tensor of_b[3] = {select(b, d, 0), select(b, d, 1), select(b, d, 2)};
    for (int64_t i = 0; i < 3; ++i) {
      int64_t j = (i + 1) % 3, k = (i + 2) % 3;
      Tensor part = sub(mul(of_a[j], of_b[k]), mul(of_a[k], of_b[j]));
      if (!y.defined()) y = empty(sizes, part.dtype(), part.device());
      copy_into(select(y, d, i), part);
    }
  }
  // the dimension counts from the end: either side may be broadcast in the others
  return record<CrossBackward>(y, {a, b}, [&](auto& n) {
    if (n.needs(1)) n.self = save(a);
    if (n.needs(0)) n.other = save(b);
    n.dim = d - a.dim();
  });
}
static Tensor old_cross(const Tensor& a, const Tensor& b, std::optional<int64_t> dim) {
  if (dim) return cross(a, b, *dim);
  CHECK(a.dim() == b.dim(), Runtime, "linalg.cross: inputs must have the same number of dimensions, got ", a.dim(),
        " and ", b.dim());
  for (int64_t i = 0; i < a.dim(); ++i)
    if (a.sizes()[i] == 3) return cross(a, b, i);
  fail(ErrorKind::Runtime, "no dimension of size 3 in input");
}

static const Register registered([](Ops& ops) {
  ops.def("_einsum", einsum, "equation, operands", kNoOut | kCastLow);
  ops.def("_tensordot", tensordot, "a, b, dims_a, dims_b", kNoOut | kCastLow);
  ops.def("linalg.cross", cross, "input, other, *, dim=-1", 0, R"(
    Computes the cross product of vectors of three elements.

    Args:
        input: vectors along dim.
        dim: the dimension of size 3.

    Shape:
        input, other: shapes that broadcast.

    Example:
        >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.]))");
  ops.def("cross", old_cross, "input, other, dim=None", kMethod | kExactOut | kNoOverlap, R"(
    Computes the cross product of vectors of three elements.

    Args:
        dim: the dimension of size 3; None takes the first one that has that size.

    Example:
        >>> torch.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), dim=0)
        tensor([0., 0., 1.]))");
});

}  // namespace rl::ops
