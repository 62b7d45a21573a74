// Channels of an image as its pixels, and back.

#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// x (N..., dims of `split`) with its dimensions behind the batch in another order, and then of the sizes `joined`.
static Tensor rearranged(const Tensor& x, IntSpan batch, IntSpan split, IntSpan order, IntSpan joined) {
  Ints sizes(batch), dims, result(batch);
  for (int64_t d = 0; d < static_cast<int64_t>(batch.size()); ++d) dims.push_back(d);
  for (int64_t s : split) sizes.push_back(s);
  for (int64_t d : order) dims.push_back(d + static_cast<int64_t>(batch.size()));
  for (int64_t s : joined) result.push_back(s);
  return reshape(permute(reshape(x, sizes), dims), result);
}
static bool has_channels_last(const Tensor& x) {
  return x.dim() == 4 && !x.is_contiguous() && is_channels_last(x.sizes(), x.strides());
}
static void check_image(const char* op, const Tensor& x, const char* argument, int64_t r) {
  CHECK(x.dim() >= 3, Runtime, op, " expects input to have at least 3 dimensions, but got input with ", x.dim(),
        " dimension(s)");
  CHECK(r > 0 && r < int64_t(1) << 31, Runtime, op, " expects a positive ", argument, ", but got ", r);
}

// pixel_shuffle: (..., C r^2, H, W) -> (..., C, H r, W r)
static Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  check_image("pixel_shuffle", x, "upscale_factor", r);
  const int64_t lead = x.dim() - 3, channels = x.sizes()[lead], h = x.sizes()[lead + 1], w = x.sizes()[lead + 2];
  CHECK(channels % (r * r) == 0, Runtime,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
        "input.size(-3)=",
        channels, " is not divisible by ", r * r);
  const IntSpan batch(x.sizes().data(), static_cast<size_t>(lead));
  const int64_t c = channels / (r * r), tall = checked_mul(h, r), wide = checked_mul(w, r);
  if (has_channels_last(x))
    return permute(rearranged(x, batch, Ints{c, r, r, h, w}, Ints{3, 1, 4, 2, 0}, Ints{tall, wide, c}),
                   Ints{0, 3, 1, 2});
  return rearranged(x, batch, Ints{c, r, r, h, w}, Ints{0, 3, 1, 4, 2}, Ints{c, tall, wide});
}

// pixel_unshuffle: (..., C, H r, W r) -> (..., C r^2, H, W)
static Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  check_image("pixel_unshuffle", x, "downscale_factor", r);
  const int64_t lead = x.dim() - 3, c = x.sizes()[lead], tall = x.sizes()[lead + 1], wide = x.sizes()[lead + 2];
  CHECK(tall % r == 0, Runtime,
        "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", tall,
        " is not divisible by ", r);
  CHECK(wide % r == 0, Runtime,
        "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", wide,
        " is not divisible by ", r);
  const IntSpan batch(x.sizes().data(), static_cast<size_t>(lead));
  const int64_t channels = checked_mul(c, r * r), h = tall / r, w = wide / r;
  if (has_channels_last(x))
    return permute(rearranged(x, batch, Ints{c, h, r, w, r}, Ints{1, 3, 0, 2, 4}, Ints{h, w, channels}),
                   Ints{0, 3, 1, 2});
  return rearranged(x, batch, Ints{c, h, r, w, r}, Ints{0, 2, 4, 1, 3}, Ints{channels, h, w});
}

// kron: y[i m + k, ...] = a[i, ...] b[k, ...], with m the size of b
static Tensor kron(const Tensor& a, const Tensor& b) {
  const int64_t n = std::max(a.dim(), b.dim());
  Ints of_a, of_b, result;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t i = d - n + a.dim(), j = d - n + b.dim();
    const int64_t rows = i < 0 ? 1 : a.sizes()[i], inner = j < 0 ? 1 : b.sizes()[j];
    of_a.push_back(rows), of_a.push_back(1);
    of_b.push_back(1), of_b.push_back(inner);
    result.push_back(checked_mul(rows, inner));
  }
  return reshape(mul(reshape(a, of_a), reshape(b, of_b)), result);
}

static const Register registered([](Ops& ops) {
  ops.def("pixel_shuffle", pixel_shuffle, "input, upscale_factor", kNoOut, R"(
    Rearranges channels into larger images: (..., C r^2, H, W) to (..., C, H r, W r).

    Args:
        upscale_factor: r.

    Example:
        >>> torch.pixel_shuffle(torch.arange(4).reshape(1, 4, 1, 1), 2)
        tensor([[[[0, 1],
                  [2, 3]]]]))");
  ops.def("pixel_unshuffle", pixel_unshuffle, "input, downscale_factor", kNoOut, R"(
    Rearranges images into more channels: (..., C, H r, W r) to (..., C r^2, H, W). It undoes pixel_shuffle().

    Args:
        downscale_factor: r.

    Example:
        >>> torch.pixel_unshuffle(torch.zeros(1, 1, 4, 6), 2).shape
        torch.Size([1, 4, 2, 3]))");
  ops.def("kron", kron, "input, other", kMethod, R"(
    Computes the Kronecker product: each element of input times the whole of other.

    Args:
        other: what is repeated.

    Shape:
        (a, b) and (c, d) give (a c, b d).

    Example:
        >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2, 3]))
        tensor([ 1,  2,  3, 10, 20, 30]))");
});

}  // namespace rl::ops
