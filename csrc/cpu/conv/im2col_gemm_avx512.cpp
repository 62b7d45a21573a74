// Convolutions as one product of matrices over the places of many images: what the filters see is moved once, into a
// matrix. With many filters that costs little, and the product runs at full speed whatever the shape of the planes.
#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/gemm/gemm.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/avx512_begin.h"
#include "cpu/conv/output_blocks.h"

namespace rl::cpu::conv512 {
namespace {

constexpr int64_t kMostSeen = int64_t{1} << 20;  // numbers in the matrix of what is seen, if one image allows it

constexpr int64_t kLongPlane = 160;  // single places of a plane that are a product of their own

// Windows that tile the picture: each is moved as rows of the filter's width, and none is added to another.
bool tiles_picture(const ConvShape& s) {
  for (int d = 0; d < 3; ++d)
    if (s.kernel[d] != s.stride[d] || s.padding[d] != 0 || (s.dilation[d] != 1 && s.kernel[d] > 1)) return false;
  return true;
}

void move(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += W) {
    const __mmask16 m = lanes(count - i);
    _mm512_mask_storeu_ps(to + i, m, _mm512_maskz_loadu_ps(m, from + i));
  }
}

// What is seen, (rows, places) for `images` of them: a row for each tap of each channel. Where windows tile the picture
// it lies turned.
struct Seen {
  const ConvShape& s;
  bool turned = tiles_picture(s) && s.kernel[2] >= 4;
  int64_t rows = s.in_channels * s.taps(), plane = s.out_plane();
  bool pointwise = single_places(s);
  int64_t images = pointwise && plane >= kLongPlane
                       ? 1
                       : std::clamp<int64_t>(kMostSeen / std::max<int64_t>(rows * plane, 1), 1, s.batch);
  bool plain = pointwise && images == 1;  // the picture is the matrix
  int64_t places = 0;                     // of the images at hand

  int64_t row_step() const { return turned ? 1 : places; }
  int64_t place_step() const { return turned ? rows : 1; }
  int64_t size() const { return plain ? 1 : rows * plane * images; }
  int64_t channel_grain() const { return std::max<int64_t>(1, 65536 / (s.taps() * places)); }

  // f(where a row of a window begins in the pictures, and in the matrix) for windows [first, last)
  template <class F> void for_windows(int64_t first, int64_t last, F&& f) const {
    for (int64_t i = first; i < last; ++i) {
      const int64_t n = i / plane, p = i % plane, ow = p % s.out[2], oh = p / s.out[2] % s.out[1],
                    od = p / s.out[2] / s.out[1];
      int64_t to = i * rows;
      for (int64_t c = 0; c < s.in_channels; ++c)
        for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
          for (int64_t kh = 0; kh < s.kernel[1]; ++kh, to += s.kernel[2]) {
            const int64_t row = (od * s.stride[0] + kd) * s.in[1] + oh * s.stride[1] + kh;
            f((n * s.in_channels + c) * s.in_plane() + row * s.in[2] + ow * s.stride[2], to);
          }
    }
  }
  // Up to sixteen places of a row of results that one tap sees, in one channel of one image.
  struct Move {
    int64_t from, at;            // lane 0 in the picture, and among the places
    int32_t low, high;           // the lanes that see the picture; the others see zeros
    __mmask16 first, next, out;  // at strides up to 2: what is read, in two registers; and the lanes there are
  };
  // The same number of them for each tap.
  std::vector<Move> moves() const {
    std::vector<Move> all;
    all.reserve(static_cast<size_t>(s.taps() * s.out[0] * s.out[1] * ((s.out[2] + W - 1) / W)));
    const int64_t step = s.stride[2];
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < s.kernel[2]; ++kw)
          for (int64_t row = 0; row < s.out[0] * s.out[1]; ++row) {
            const int64_t d = row / s.out[1] * s.stride[0] - s.padding[0] + kd * s.dilation[0],
                          h = row % s.out[1] * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            const bool seen = d >= 0 && d < s.in[0] && h >= 0 && h < s.in[1];
            for (int64_t i = 0; i < s.out[2]; i += W) {
              const int64_t count = std::min<int64_t>(W, s.out[2] - i);
              const int64_t start = i * step + kw * s.dilation[2] - s.padding[2];  // in the row
              int64_t low = start >= 0 ? 0 : std::min(count, (-start + step - 1) / step);
              int64_t high = start >= s.in[2] ? low : std::clamp((s.in[2] - 1 - start) / step + 1, low, count);
              if (!seen) high = low = 0;
              const int64_t begin = step * low, end = low < high ? step * (high - 1) + 1 : begin;
              all.push_back({(d * s.in[1] + h) * s.in[2] + start, row * s.out[2] + i, static_cast<int32_t>(low),
                             static_cast<int32_t>(high), static_cast<__mmask16>(lanes(end) & ~lanes(begin)),
                             static_cast<__mmask16>(lanes(end - W) & ~lanes(begin - W)), lanes(count)});
            }
          }
    return all;
  }
  // f(channel of an image in the picture, its first place in the matrix, first move, last) for channel c
  template <class F> void for_moves(const std::vector<Move>& all, int64_t c, int64_t count, F&& f) const {
    const auto each = static_cast<int64_t>(all.size()) / s.taps();
    for (int64_t tap = 0; tap < s.taps(); ++tap)
      for (int64_t n = 0; n < count; ++n)
        f((n * s.in_channels + c) * s.in_plane(), (c * s.taps() + tap) * places + n * plane, all.data() + tap * each,
          all.data() + (tap + 1) * each);
  }

  void take(const float* x, int64_t count, float* seen) const {
    if (turned) {
      parallel_for(0, count * plane, std::max<int64_t>(1, 65536 / rows), [&](int64_t first, int64_t last) {
        for_windows(first, last, [&](int64_t from, int64_t to) { move(x + from, s.kernel[2], seen + to); });
      });
      return;
    }
    const std::vector<Move> all = moves();
    const int64_t step = s.stride[2];
    const Spaced spaced(std::min(step, kMostSpace));
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    parallel_for(0, s.in_channels, channel_grain(), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        for_moves(all, c, count, [&](int64_t image, int64_t place, const Move* first, const Move* last) {
          const float* from = x + image;
          float* to = seen + place;
          if (step == 1)
            for (const Move* m = first; m < last; ++m)
              _mm512_mask_storeu_ps(to + m->at, m->out, _mm512_maskz_loadu_ps(m->first, from + m->from));
          else if (step == 2)
            for (const Move* m = first; m < last; ++m)
              _mm512_mask_storeu_ps(to + m->at, m->out,
                                    _mm512_permutex2var_ps(_mm512_maskz_loadu_ps(m->first, from + m->from), even,
                                                           _mm512_maskz_loadu_ps(m->next, from + m->from + W)));
          else if (step <= kMostSpace)
            for (const Move* m = first; m < last; ++m)
              _mm512_mask_storeu_ps(to + m->at, m->out, spaced.read(from + m->from, m->low, m->high));
          else
            for (const Move* m = first; m < last; ++m) {
              _mm512_mask_storeu_ps(to + m->at, m->out, _mm512_setzero_ps());
              for (int64_t i = m->low; i < m->high; ++i) to[m->at + i] = from[m->from + i * step];
            }
        });
    });
  }

  // The images of dx are the sums of what was seen of each place.
  void give(const float* seen, int64_t count, float* dx) const {
    const int64_t image = s.in_channels * s.in_plane();
    if (turned) {
      bool whole = true;
      for (int d = 0; d < 3; ++d) whole = whole && s.out[d] * s.stride[d] == s.in[d];
      if (!whole)
        parallel_for(0, count * image, 1 << 16, [&](int64_t a, int64_t b) { std::fill(dx + a, dx + b, 0.0f); });
      parallel_for(0, count * plane, std::max<int64_t>(1, 65536 / rows), [&](int64_t first, int64_t last) {
        for_windows(first, last, [&](int64_t to, int64_t from) { move(seen + from, s.kernel[2], dx + to); });
      });
      return;
    }
    const std::vector<Move> all = moves();
    const int64_t step = s.stride[2];
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i second = _mm512_add_epi32(twice, _mm512_set1_epi32(W / 2));
    parallel_for(0, s.in_channels, channel_grain(), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        for (int64_t n = 0; n < count; ++n)
          std::fill(dx + n * image + c * s.in_plane(), dx + n * image + (c + 1) * s.in_plane(), 0.0f);
        for_moves(all, c, count, [&](int64_t picture, int64_t place, const Move* first, const Move* last) {
          const float* from = seen + place;
          float* to = dx + picture;
          for (const Move* m = first; m < last; ++m) {
            if (m->low == m->high) continue;
            float* at = to + m->from;
            if (step > 2) {
              for (int64_t i = m->low; i < m->high; ++i) at[i * step] += from[m->at + i];
              continue;
            }
            const Reg more = _mm512_maskz_loadu_ps(m->out, from + m->at);
            if (step == 1) {
              _mm512_mask_storeu_ps(at, m->first, _mm512_maskz_loadu_ps(m->first, at) + more);
              continue;
            }
            const __mmask16 low = m->first & 0x5555, high = m->next & 0x5555;
            _mm512_mask_storeu_ps(at, low, _mm512_maskz_loadu_ps(low, at) + _mm512_permutexvar_ps(twice, more));
            if (high)
              _mm512_mask_storeu_ps(at + W, high,
                                    _mm512_maskz_loadu_ps(high, at + W) + _mm512_permutexvar_ps(second, more));
          }
        });
      }
    });
  }
};

// (images, channels, plane) -> (channels, images, plane), or back with a shift for each channel
void beside(const float* from, int64_t images, int64_t channels, int64_t plane, bool back, const float* shift,
            float* to) {
  parallel_for(0, channels, std::max<int64_t>(1, 32768 / (images * plane)), [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Reg more = all(shift ? shift[c] : 0.0f);
      for (int64_t n = 0; n < images; ++n) {
        const int64_t apart = (n * channels + c) * plane, together = (c * images + n) * plane;
        const float* x = from + (back ? together : apart);
        float* y = to + (back ? apart : together);
        for (int64_t i = 0; i < plane; i += W) {
          const __mmask16 m = lanes(plane - i);
          const Reg r = _mm512_maskz_loadu_ps(m, x + i);
          _mm512_mask_storeu_ps(y + i, m, shift ? r + more : r);
        }
      }
    }
  });
}

}  // namespace

bool im2col_gemm_applicable(const ConvShape& s) {
  if (!available() || !gemm_available() || s.groups != 1 || s.batch == 0 || s.out_plane() == 0) return false;
  return s.in_channels > 0 && s.out_channels > 0 && s.in_channels * s.taps() * s.out_plane() <= (int64_t{1} << 24);
}

bool im2col_gemm_profitable(const ConvShape& s, ConvPass pass) {
  const int64_t rows = s.in_channels * s.taps(), places = s.batch * s.out_plane();
  if (tiles_picture(s) && s.kernel[2] >= 4) return rows >= 128 && s.out_channels >= 32 && places >= 16;
  if (rows < 256 || s.out_channels < 192 || places < 32) return false;
  const bool few = places <= 128;
  if (pass == ConvPass::Weight) return few || s.stride[2] > 1 || single_places(s);
  // Filters for few places are best read where they are, but not turned. Places that stand over whole registers are
  // inner products in the product; registers of their own would be mostly idle.
  const bool over = places > 2 * W && places % W != 0 && places % W <= 4;
  if (few) return pass == ConvPass::Input || over || s.out_channels % 8 != 0 || rows % 1024 == 0;
  // Where filters are few for the numbers that they see, these are better read where they are.
  if (pass == ConvPass::Forward &&
      s.out_channels < (single_places(s) ? rows : std::min<int64_t>(512, 2 * s.in_channels)))
    return false;
  return s.stride[2] > 1 || single_places(s);
}

void im2col_gemm_forward(const ConvShape& shape, float* y, const float* x, const float* w, const float* bias) {
  const ConvShape s = flattened(shape);
  Seen seen{s};
  const int64_t O = s.out_channels, K = seen.rows;
  Scratch<float> matrix(seen.size()), results(seen.images > 1 ? O * seen.images * seen.plane : 1);
  for (int64_t n = 0; n < s.batch; n += seen.images) {
    const int64_t count = std::min(seen.images, s.batch - n);
    seen.places = count * seen.plane;
    const float* image = x + n * s.in_channels * s.in_plane();
    if (!seen.plain) seen.take(image, count, matrix.get()), image = matrix.get();
    float* to = y + n * O * seen.plane;
    const bool straight = count == 1;
    gemm(Gemm<float>{O, seen.places, K, w, K, 1, image, seen.row_step(), seen.place_step(),
                     straight ? to : results.get(), seen.places, 1, 1.0f, straight && bias ? 1.0f : 0.0f,
                     straight ? bias : nullptr, 1, 0});
    if (!straight) beside(results.get(), count, O, seen.plane, true, bias, to);
  }
}

void im2col_gemm_dgrad(const ConvShape& shape, float* dx, const float* dy, const float* w) {
  const ConvShape s = flattened(shape);
  Seen seen{s};
  const int64_t O = s.out_channels, K = seen.rows;
  Scratch<float> matrix(seen.size()), sides(seen.images > 1 ? O * seen.images * seen.plane : 1);
  for (int64_t n = 0; n < s.batch; n += seen.images) {
    const int64_t count = std::min(seen.images, s.batch - n), places = count * seen.plane;
    seen.places = places;
    float* image = dx + n * s.in_channels * s.in_plane();
    float* to = seen.plain ? image : matrix.get();
    const float* side = dy + n * O * seen.plane;
    if (count > 1) beside(side, count, O, seen.plane, false, nullptr, sides.get()), side = sides.get();
    if (seen.turned) gemm(Gemm<float>{places, K, O, side, 1, places, w, K, 1, to, K, 1, 1.0f, 0.0f, nullptr, 0, 1});
    else gemm(Gemm<float>{K, places, O, w, 1, K, side, places, 1, to, places, 1, 1.0f, 0.0f, nullptr, 0, 1});
    if (!seen.plain) seen.give(to, count, image);
  }
}

void im2col_gemm_wgrad(const ConvShape& shape, float* dw, const float* dy, const float* x) {
  const ConvShape s = flattened(shape);
  Seen seen{s};
  const int64_t O = s.out_channels, K = seen.rows;
  Scratch<float> matrix(seen.size()), sides(seen.images > 1 ? O * seen.images * seen.plane : 1);
  for (int64_t n = 0; n < s.batch; n += seen.images) {
    const int64_t count = std::min(seen.images, s.batch - n);
    seen.places = count * seen.plane;
    const float* image = x + n * s.in_channels * s.in_plane();
    if (!seen.plain) seen.take(image, count, matrix.get()), image = matrix.get();
    const float* side = dy + n * O * seen.plane;
    if (count > 1) beside(side, count, O, seen.plane, false, nullptr, sides.get()), side = sides.get();
    gemm(Gemm<float>{O, K, seen.places, side, seen.places, 1, image, seen.place_step(), seen.row_step(), dw, K, 1, 1.0f,
                     n ? 1.0f : 0.0f, n ? dw : nullptr, K, 1});
  }
}

}  // namespace rl::cpu::conv512
#include "cpu/avx512_end.h"
#else
namespace rl::cpu::conv512 {
bool im2col_gemm_applicable(const ConvShape&) { return false; }
bool im2col_gemm_profitable(const ConvShape&, ConvPass) { return false; }
void im2col_gemm_forward(const ConvShape&, float*, const float*, const float*, const float*) {}
void im2col_gemm_dgrad(const ConvShape&, float*, const float*, const float*) {}
void im2col_gemm_wgrad(const ConvShape&, float*, const float*, const float*) {}
}  // namespace rl::cpu::conv512
#endif
