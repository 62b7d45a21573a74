// Dimensions and elements in another order.
#include <algorithm>

#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/lazy_view.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"

namespace rl::ops {

namespace {

// The dimensions as bits; a dimension named twice is an error.
uint64_t dim_bits(const char* op, IntSpan dims, int64_t ndim) {
  uint64_t bits = 0;
  for (int64_t d : dims) {
    uint64_t bit = uint64_t{1} << wrap_dim(d, ndim);
    CHECK(!(bits & bit), Runtime, op, ": dim ", wrap_dim(d, ndim), " appears multiple times in the list of dims");
    bits |= bit;
  }
  return bits;
}

}  // namespace

// flip: the order of the elements of some dimensions reversed        dx = the same of dy
struct FlipBackward : Node {
  static constexpr const char* kName = "FlipBackward0";
  static constexpr bool kStacks = true;
  Ints dims;
  Grads backward(const Grads& dy) {
    return {results[0].sizes.empty() ? dy[0] : flip(dy[0], shifted(dims, lead(dy[0])))};
  }
  FIELDS(dims)
};
Tensor flip(const Tensor& input, IntSpan dims) {
  uint64_t bits = dim_bits("flip", dims, input.dim());
  Tensor y = empty_like(input);
  if (y.numel()) {
    // Read backwards: from the last element, with a negative stride.
    Ints strides(input.strides());
    int64_t start = 0;
    for (int64_t d = 0; d < input.dim(); ++d)
      if (bits >> d & 1) {
        start += (input.sizes()[d] - 1) * strides[d];
        strides[d] = -strides[d];
      }
    View in = input.view();
    in.data = static_cast<char*>(in.data) + start * input.item_size();
    in.strides = strides.data();
    backend(y.device()).copy->copy(y.view(), in);
  }
  return record<FlipBackward>(y, {input}, [&](auto& n) { n.dims = Ints(dims); });
}
static Tensor fliplr(const Tensor& input) {
  CHECK(input.dim() >= 2, Runtime, "Input must be >= 2-d.");
  return flip(input, {1});
}
static Tensor flipud(const Tensor& input) {
  CHECK(input.dim() >= 1, Runtime, "Input must be >= 1-d.");
  return flip(input, {0});
}

// rot90: k quarter turns in the plane of two dimensions
static Tensor rot90(const Tensor& input, int64_t k, const Ints& dims) {
  CHECK(dims.size() == 2, Runtime, "expected total rotation dims == 2, but got dims = ", dims.size());
  CHECK(input.dim() >= 2, Runtime, "expected total dims >= 2, but got total dims = ", input.dim());
  int64_t n = input.dim();
  CHECK(dims[0] != dims[1] && (dims[0] - dims[1] != n) && (dims[1] - dims[0] != n), Runtime,
        "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  for (int i = 0; i < 2; ++i)
    CHECK(dims[i] < n && dims[i] >= -n, Runtime, "Rotation dim", i, " out of range, dim", i, " = ", dims[i]);
  switch ((k % 4 + 4) % 4) {
    case 1: return transpose(flip(input, {dims[1]}), dims[0], dims[1]);
    case 2: return flip(input, dims);
    case 3: return transpose(flip(input, {dims[0]}), dims[0], dims[1]);
    default: return clone(input, MemoryFormat::Contiguous);
  }
}

// roll: elements moved along dimensions, those that fall off the end coming in at the start        dx = dy rolled back
struct RollBackward : Node {
  static constexpr const char* kName = "RollBackward0";
  static constexpr bool kStacks = true;
  Ints shifts, dims;
  Grads backward(const Grads& dy) {
    Ints back;
    for (int64_t s : shifts) back.push_back(-s);
    if (results[0].sizes.empty()) return {dy[0]};
    if (lead(dy[0]) && dims.empty())  // of all elements in a row
      return {reshape(roll(reshape(dy[0], led(dy[0], Ints{-1})), back, Ints{1}), dy[0].sizes())};
    return {roll(dy[0], back, shifted(dims, lead(dy[0])))};
  }
  FIELDS(shifts, dims)
};
static Tensor roll_along(const Tensor& input, int64_t shift, int64_t d) {
  int64_t n = input.sizes()[d];
  shift = (shift % n + n) % n;
  Tensor y = empty(input.sizes(), input.dtype(), input.device());
  auto move = [&](int64_t to, int64_t from, int64_t length) {
    if (length == 0) return;
    Ints sizes(input.sizes());
    sizes[d] = length;
    View out = y.view(), in = input.view();
    out.sizes = in.sizes = sizes.data();
    out.data = static_cast<char*>(out.data) + to * y.strides()[d] * y.item_size();
    in.data = static_cast<char*>(in.data) + from * input.strides()[d] * y.item_size();
    backend(y.device()).copy->copy(out, in);
  };
  move(0, n - shift, shift);
  move(shift, 0, n - shift);
  return y;
}
Tensor roll(const Tensor& input, IntSpan shifts, IntSpan dims) {
  CHECK(shifts.size() > 0, Runtime, "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    Tensor flat = reshape(input, {input.numel()});
    return reshape(roll(flat, shifts, {0}), input.sizes());
  }
  CHECK(input.dim() > 0 || dims.empty(), Index, "Dimension specified as ", dims.empty() ? 0 : dims[0],
        " but tensor has no dimensions");
  CHECK(shifts.size() == dims.size(), Runtime, "shifts and dimensions must align. shifts: ", shifts.size(),
        ", dims:", dims.size());
  Tensor y = input;
  {
    NoGrad raw;
    for (int64_t i = 0; i < dims.size(); ++i) {
      int64_t d = wrap_dim(dims[i], input.dim());
      if (input.numel() && input.dim()) y = roll_along(y, shifts[i], d);
    }
    if (y.is(input)) y = clone(input, MemoryFormat::Contiguous);
  }
  return record<RollBackward>(y, {input}, [&](auto& n) {
    n.shifts = Ints(shifts);
    n.dims = Ints(dims);
  });
}

// movedim: dimensions moved to other positions, the rest in order
Tensor movedim(const Tensor& input, IntSpan source, IntSpan destination) {
  CHECK(source.size() == destination.size(), Runtime, "movedim: Invalid source or destination dims: source (",
        to_text(source), " dims) should contain the same number of dims as destination (", to_text(destination),
        " dims)");
  Ints from, to, order(input.dim(), -1), rest;
  for (int64_t i = 0; i < source.size(); ++i) {
    from.push_back(wrap_dim(source[i], input.dim()));
    to.push_back(wrap_dim(destination[i], input.dim()));
  }
  for (int64_t i = 0; i < from.size(); ++i)
    for (int64_t k = 0; k < i; ++k) {
      CHECK(from[i] != from[k], Runtime, "movedim: repeated dim in `source` (", to_text(source), ")");
      CHECK(to[i] != to[k], Runtime, "movedim: repeated dim in `destination` (", to_text(destination), ")");
    }
  if (input.dim() == 0) return record_alias(alias(input), input);
  for (int64_t i = 0; i < from.size(); ++i) order[to[i]] = from[i];
  for (int64_t d = 0; d < input.dim(); ++d)
    if (!from.contains(d)) rest.push_back(d);
  int64_t next = 0;
  for (int64_t d = 0; d < input.dim(); ++d)
    if (order[d] < 0) order[d] = rest[next++];
  return permute(input, order);
}

// unflatten: one dimension cut into several
static Tensor unflatten(const Tensor& input, int64_t dim, const Ints& sizes) {
  CHECK(!sizes.empty(), Runtime, "unflatten: sizes must be non-empty");
  int64_t d = wrap_dim(dim, input.dim()), n = input.dim() ? input.sizes()[d] : 1, known = 1, unknown = -1;
  Ints parts = sizes;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      CHECK(unknown < 0, Runtime, "only one dimension can be inferred");
      unknown = i;
    } else {
      CHECK(sizes[i] >= 0, Runtime, "invalid shape dimension ", sizes[i]);
      known = checked_mul(known, sizes[i]);
    }
  }
  if (unknown >= 0 && known > 0 && n % known == 0) parts[unknown] = n / known, known = n;
  else if (unknown >= 0 && known == 0)
    fail(ErrorKind::Runtime, "unflatten: the size of -1 is ambiguous for ", to_text(sizes));
  CHECK(known == n, Runtime, "unflatten: Provided sizes ", to_text(sizes), " don't multiply up to the size of dim ", d,
        " (", n, ") in the input tensor");
  Ints all;
  for (int64_t i = 0; i < input.dim(); ++i) {
    if (i == d) all.append(parts.data(), parts.size());
    else all.push_back(input.sizes()[i]);
  }
  if (input.dim() == 0) all = parts;
  return view(input, all);
}

// Transposed matrices: mT of the last two dimensions, T of all, H and mH conjugated.
static Tensor matrix_transpose(const Tensor& input) {
  CHECK(input.dim() >= 2, Runtime, "tensor.mT is only supported on matrices or batches of matrices. Got ", input.dim(),
        "-D tensor.");
  return transpose(input, -2, -1);
}
static Tensor matrix_adjoint(const Tensor& input) {
  CHECK(input.dim() >= 2, Runtime, "tensor.adjoint() is only supported on matrices or batches of matrices. Got ",
        input.dim(), "-D tensor.");
  return conj_view(transpose(input, -2, -1));
}
static Tensor conjugate_transpose(const Tensor& input) {
  CHECK(input.dim() == 0 || input.dim() == 2, Runtime, "tensor.H is only supported on matrices (2-D tensors). Got ",
        input.dim(), "-D tensor.", input.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  return conj_view(input.dim() == 0 ? input : transpose(input, 0, 1));
}
static Tensor reversed_dims(const Tensor& input) {
  Ints order;
  for (int64_t d = input.dim() - 1; d >= 0; --d) order.push_back(d);
  return permute(input, order);
}

static Tensor narrow_tensor(const Tensor& input, int64_t dim, const Tensor& start, int64_t length) {
  CHECK(start.dim() == 0 && is_integral(start.dtype()), Runtime, "start must be an 0-dim integral Tensor.");
  return narrow(input, dim, item(start).to_int(), length);
}

static Tensor ravel(const Tensor& input) { return reshape(contiguous(input), {-1}); }
static Tensor view_as(const Tensor& input, const Tensor& other) { return view(input, other.sizes()); }
static Tensor expand_as(const Tensor& input, const Tensor& other) { return expand(input, other.sizes()); }
static Tensor reshape_as(const Tensor& input, const Tensor& other) { return reshape(input, other.sizes()); }
static Tensor broadcast_to(const Tensor& input, const Ints& size) { return expand(input, size); }
static Tensor flip_op(const Tensor& input, const Ints& dims) { return flip(input, dims); }
static Tensor roll_op(const Tensor& input, const Ints& shifts, const std::optional<Ints>& dims) {
  return roll(input, shifts, dims.value_or(Ints()));
}
static Tensor movedim_op(const Tensor& input, const Ints& source, const Ints& destination) {
  return movedim(input, source, destination);
}

static const Register registered([](Ops& ops) {
  ops.def("flip", flip_op, "input, dims...", kMethod | kNoOut | kAnyType, R"(
    Reverses the order of the elements along dimensions, in a copy.

    Example:
        >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), dims=(0,))
        tensor([[3, 4],
                [1, 2]])
        >>> torch.tensor([[1, 2], [3, 4]]).flip(0, 1)
        tensor([[4, 3],
                [2, 1]]))");
  ops.def("fliplr", fliplr, "input", kMethod | kNoOut | kAnyType, R"(
    Reverses the second dimension, left and right, in a copy.

    Example:
        >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]]))");
  ops.def("flipud", flipud, "input", kMethod | kNoOut | kAnyType, R"(
    Reverses the first dimension, up and down, in a copy.

    Example:
        >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]]))");
  ops.def("rot90", rot90, "input, k=1, dims=(0, 1)", kMethod | kNoOut | kAnyType, R"(
    Rotates by k times 90 degrees in the plane of two dimensions, from the first towards the second, in a copy.

    Args:
        k: how often; negative numbers rotate back.
        dims: the two dimensions.

    Example:
        >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]]))");
  ops.def("roll", roll_op, "input, shifts, dims=()", kMethod | kNoOut | kAnyType, R"(
    Moves elements along dimensions; those that leave at the end come in at the start.

    Args:
        shifts: by how much, for each of dims; negative numbers go to the start.
        dims: the dimensions; without any the flattened tensor is rolled.

    Example:
        >>> torch.roll(torch.tensor([1, 2, 3, 4]), 1)
        tensor([4, 1, 2, 3])
        >>> torch.roll(torch.tensor([[1, 2], [3, 4]]), shifts=1, dims=0)
        tensor([[3, 4],
                [1, 2]]))");
  ops.def("movedim", movedim_op, "input, source, destination", kMethod | kView, R"(
    Moves dimensions to other positions; the others keep their order.

    Args:
        source: the dimension, or dimensions, to move.
        destination: where each of them stands afterwards.

    Example:
        >>> images = torch.zeros(8, 3, 32, 24)
        >>> images.movedim(1, -1).shape
        torch.Size([8, 32, 24, 3]))");
  ops.alias("moveaxis", "movedim");
  ops.def("swapaxes", transpose, "input, axis0, axis1", kMethod | kView, R"(
    Exchanges two dimensions: transpose() in NumPy's words.

    Args:
        axis0: one dimension.
        axis1: the other one.

    Example:
        >>> torch.swapaxes(torch.zeros(2, 3), 0, 1).shape
        torch.Size([3, 2]))");
  ops.def("swapdims", transpose, "input, dim0, dim1", kMethod | kView, R"(
    Exchanges two dimensions, as transpose().

    Args:
        dim0: one dimension.
        dim1: the other one.

    Example:
        >>> torch.swapdims(torch.zeros(2, 3), 0, 1).shape
        torch.Size([3, 2]))");
  ops.def("unflatten", unflatten, "input, dim, sizes", kMethod | kView, R"(
    Splits one dimension into several.

    Args:
        dim: the dimension to split.
        sizes: the sizes it gets, of which one may be -1: what remains.

    Example:
        >>> torch.zeros(4, 6).unflatten(1, (2, -1)).shape
        torch.Size([4, 2, 3]))");
  ops.def("adjoint", matrix_adjoint, "input", kMethod | kView, R"(
    Shows matrices transposed and conjugated: x.mT.conj().

    Example:
        >>> torch.adjoint(torch.tensor([[1 + 1j, 2j], [3.0, 4.0]]))
        tensor([[1.-1.j, 3.-0.j],
                [0.-2.j, 4.-0.j]]))");
  ops.def("_mT", matrix_transpose, "input", kView);
  ops.def("_H", conjugate_transpose, "input", kView);
  ops.def("_T", reversed_dims, "input", kView);
  ops.def("narrow", narrow_tensor, "input, dim, start, length", kMethod | kView, R"(
    Shows a range of a dimension: the indices from start to start + length.

    Args:
        start: the first index, a number or a 0-dim tensor.
        length: how many indices.

    Example:
        >>> torch.tensor([[1, 2, 3], [4, 5, 6]]).narrow(1, 1, 2)
        tensor([[2, 3],
                [5, 6]]))");
  ops.def("ravel", ravel, "input", kMethod | kNoOut | kLazyOk | kAnyType, R"(
    Returns all elements as one vector: a view where strides allow it, else a copy.

    Example:
        >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4]))");
  ops.def("view_as", view_as, "input, other", kMethod | kNoFunction | kView, R"(
    Shows the elements in the sizes of another tensor: view(other.size()).

    Args:
        other: the tensor whose sizes are taken.

    Example:
        >>> torch.arange(4).view_as(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]]))");
  ops.def("expand_as", expand_as, "input, other", kMethod | kNoFunction | kView, R"(
    Shows the tensor in the sizes of another one: expand(other.size()).

    Args:
        other: the tensor whose sizes are taken.

    Example:
        >>> torch.tensor([[1], [2]]).expand_as(torch.zeros(2, 2))
        tensor([[1, 1],
                [2, 2]]))");
  ops.def("reshape_as", reshape_as, "input, other", kMethod | kNoFunction | kView, R"(
    Gives the elements the sizes of another tensor: reshape(other.size()).

    Args:
        other: the tensor whose sizes are taken.

    Returns:
        A view where strides allow it, else a copy.

    Example:
        >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]]))");
  ops.def("broadcast_to", broadcast_to, "input, size", kMethod | kView, R"(
    Shows the tensor with dimensions of size 1, and new ones in front, repeated: expand() as a function.

    Args:
        size: the sizes of the view.

    Returns:
        A view in which several indices mean one element: copy it before writing.

    Example:
        >>> torch.broadcast_to(torch.tensor([1, 2]), (3, 2))
        tensor([[1, 2],
                [1, 2],
                [1, 2]]))");
});

}  // namespace rl::ops
