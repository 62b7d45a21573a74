// Convolutions with strides where each filter has one channel, and their gradients by the input. What is read is copied
// to planes, one for each remainder by the stride, with zeros around; there a tap is a shift, and a whole plane of
// results, with the gaps between its rows, is one run of registers.
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/nhwc_gemm.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/avx512_begin.h"
#include "cpu/conv/microkernel.h"

namespace rl::cpu::conv512 {
namespace {

constexpr int kMost = 8;  // registers of places taken together

struct FlatTap {
  int32_t filter, offset;
};
template <int V>
void flat_run(const FlatTap* taps, int64_t count, const float* filter, const float* from, float shift, float* to) {
  Reg acc[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) acc[v] = all(shift);
  for (int64_t t = 0; t < count; ++t) {
    const Reg f = all(filter[taps[t].filter]);
    const float* at = from + taps[t].offset;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) acc[v] = fma(f, load(at + v * W), acc[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) store(to + v * W, acc[v]);
}
using FlatFn = void (*)(const FlatTap*, int64_t, const float*, const float*, float, float*);
constexpr FlatFn kRuns[kMost] = {flat_run<1>, flat_run<2>, flat_run<3>, flat_run<4>,
                                 flat_run<5>, flat_run<6>, flat_run<7>, flat_run<8>};

struct Flat {
  RowAxis axes[2];  // height, width
  int64_t low[2], reach[2], phases[2], pitch = 0, plane = 0;
  int64_t in_size[2], out_size[2];
  // Results that share their taps.
  struct Share {
    const RowAxis::Phase *high, *wide;
    std::vector<FlatTap> taps;
  };
  std::vector<Share> shares;
  // What of a plane comes from the picture.
  struct Patch {
    int64_t from, to, rows, count;
  };
  std::vector<Patch> patches;

  Flat(const ConvShape& s, bool input) {
    for (int i = 0; i < 2; ++i) {
      RowAxis& a = axes[i];
      a = input ? RowAxis::input(s, i + 1) : RowAxis::forward(s, i + 1);
      in_size[i] = input ? s.out[i + 1] : s.in[i + 1], out_size[i] = input ? s.in[i + 1] : s.out[i + 1];
      int64_t top = INT64_MIN;
      low[i] = INT64_MAX;
      for (const RowAxis::Tap& t : a.taps) low[i] = std::min(low[i], t.offset), top = std::max(top, t.offset);
      if (a.taps.empty()) low[i] = top = 0;
      reach[i] = (top - low[i]) / a.in_step, phases[i] = std::min(a.in_step, top - low[i] + 1);
    }
    pitch = axes[1].places() + reach[1];
    plane = (axes[0].places() + reach[0]) * pitch;
    for (const RowAxis::Phase& h : axes[0].phases)
      for (const RowAxis::Phase& w : axes[1].phases) {
        Share share{&h, &w, {}};
        for (int64_t i = h.first; i < h.last; ++i)
          for (int64_t j = w.first; j < w.last; ++j) {
            const RowAxis::Tap &th = axes[0].taps[i], &tw = axes[1].taps[j];
            const int64_t y = th.offset - low[0], x = tw.offset - low[1];
            const int64_t phase = y % axes[0].in_step * phases[1] + x % axes[1].in_step;
            share.taps.push_back(
                {static_cast<int32_t>(th.kernel * s.kernel[2] + tw.kernel),
                 static_cast<int32_t>(phase * plane + y / axes[0].in_step * pitch + x / axes[1].in_step)});
          }
        shares.push_back(std::move(share));
      }
    // Of `count` places first + i * step, those in [0, size).
    auto inside = [](int64_t first, int64_t step, int64_t size, int64_t count, int64_t* a, int64_t* b) {
      *a = first >= 0 ? 0 : std::min(count, (-first + step - 1) / step);
      *b = first >= size ? *a : std::clamp((size - 1 - first) / step + 1, *a, count);
    };
    for (int64_t fh = 0; fh < phases[0]; ++fh)
      for (int64_t fw = 0; fw < phases[1]; ++fw) {
        const int64_t y = fh + low[0], x = fw + low[1];
        int64_t r0, r1, a, b;
        inside(y, axes[0].in_step, in_size[0], axes[0].places() + reach[0], &r0, &r1);
        inside(x, axes[1].in_step, in_size[1], pitch, &a, &b);
        if (r0 < r1 && a < b)
          patches.push_back({(r0 * axes[0].in_step + y) * in_size[1] + a * axes[1].in_step + x,
                             (fh * phases[1] + fw) * plane + r0 * pitch + a, r1 - r0, b - a});
      }
  }
  int64_t size() const { return phases[0] * phases[1] * plane + kMost * W; }

  // The places of the planes that lie in the picture; the others stay zero.
  void fill(const float* image, float* memory) const {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const int64_t step_h = axes[0].in_step, step_w = axes[1].in_step;
    for (const Patch& p : patches) {
      const int64_t count = p.count, next = step_h * in_size[1];
      const float* from = image + p.from;
      float* to = memory + p.to;
      if (step_w > 2) {
        for (int64_t r = 0; r < p.rows; ++r, from += next, to += pitch)
          for (int64_t i = 0; i < count; ++i) to[i] = from[i * step_w];
        continue;
      }
      for (int64_t i = 0; i < count; i += W) {
        const int64_t left = 2 * (count - i) - 1;  // of what is read
        const __mmask16 m = lanes(count - i), low = lanes(left), high = lanes(left - W);
        const float* x = from + step_w * i;
        float* y = to + i;
        if (step_w == 1)
          for (int64_t r = 0; r < p.rows; ++r, x += next, y += pitch)
            _mm512_mask_storeu_ps(y, m, _mm512_maskz_loadu_ps(m, x));
        else if (high == 0)
          for (int64_t r = 0; r < p.rows; ++r, x += next, y += pitch)
            _mm512_mask_storeu_ps(y, m, _mm512_permutexvar_ps(even, _mm512_maskz_loadu_ps(low, x)));
        else
          for (int64_t r = 0; r < p.rows; ++r, x += next, y += pitch)
            _mm512_mask_storeu_ps(
                y, m, _mm512_permutex2var_ps(_mm512_maskz_loadu_ps(low, x), even, _mm512_maskz_loadu_ps(high, x + W)));
      }
    }
  }

  // One plane of results.
  void compute(const float* memory, const float* filter, float shift, float* results, float* y) const {
    for (const Share& s : shares) {
      const int64_t rows = s.high->count, cols = s.wide->count;
      if (rows == 0 || cols == 0) continue;
      const int64_t length = (rows - 1) * pitch + cols, registers = (length + W - 1) / W;
      for (int64_t v = 0; v < registers; v += kMost)
        kRuns[std::min<int64_t>(kMost, registers - v) - 1](s.taps.data(), static_cast<int64_t>(s.taps.size()), filter,
                                                           memory + v * W, shift, results + v * W);
      const int64_t step = axes[1].out_step;
      for (int64_t r = 0; r < rows; ++r) {
        const float* from = results + r * pitch;
        float* to = y + (s.high->start + r * axes[0].out_step) * out_size[1] + s.wide->start;
        if (step == 1)
          for (int64_t i = 0; i < cols; i += W) {
            const __mmask16 m = lanes(cols - i);
            _mm512_mask_storeu_ps(to + i, m, load(from + i));
          }
        else
          for (int64_t i = 0; i < cols; ++i) to[i * step] = from[i];
      }
    }
  }
};

void run_flat(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool input) {
  const Flat flat(s, input);
  const int64_t per = s.out_channels / s.groups, planes = s.batch * s.groups;
  const int64_t from = flat.in_size[0] * flat.in_size[1], to = flat.out_size[0] * flat.out_size[1];
  const int64_t room = (flat.plane + W - 1) / W * W + kMost * W;
  const int64_t grain = std::max<int64_t>(1, 100000 / (per * std::max(from, to) * (s.taps() + 8) / 4 + 1));
  parallel_for(0, planes, grain, [&](int64_t first, int64_t last) {
    // Of small planes several are filled before the first is read: what was just written in parts is slow to read.
    const int64_t held = flat.size() <= 1024 ? 4 : 1;
    Scratch<float> memory(held * flat.size() + room);
    std::memset(memory.get(), 0, static_cast<size_t>(held * flat.size()) * sizeof(float));
    float* results = memory.get() + held * flat.size();
    for (int64_t t0 = first; t0 < last; t0 += held) {
      const int64_t t1 = std::min(last, t0 + held);
      for (int64_t t = t0; t < t1; ++t) flat.fill(x + t * from, memory.get() + (t - t0) * flat.size());
      for (int64_t t = t0; t < t1; ++t)
        for (int64_t k = 0; k < per; ++k) {
          const int64_t o = t % s.groups * per + k;
          flat.compute(memory.get() + (t - t0) * flat.size(), w + o * s.taps(), bias ? bias[o] : 0.0f, results,
                       y + (t * per + k) * to);
        }
    }
  });
}

}  // namespace

bool depthwise_strided_applicable(const ConvShape& s, bool input) {
  if (!available() || s.groups != s.in_channels || s.groups < 2 || s.in[0] != 1 || s.kernel[0] != 1 ||
      s.padding[0] != 0 || s.batch == 0 || (input && s.out_channels != s.groups))
    return false;
  for (int d = 1; d < 3; ++d)
    if (s.stride[d] > 4 || s.padding[d] > 256 || s.dilation[d] * (s.kernel[d] - 1) > 512) return false;
  return s.in_plane() > 0 && s.out_plane() > 0 && s.in_plane() < (1 << 22) && s.out_plane() < (1 << 22);
}
void depthwise_strided(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  run_flat(s, y, x, w, bias, false);
}
void depthwise_strided_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  run_flat(s, dx, dy, w, bias, true);
}

}  // namespace rl::cpu::conv512
#include "cpu/avx512_end.h"
#else
namespace rl::cpu::conv512 {
bool depthwise_strided_applicable(const ConvShape&, bool) { return false; }
void depthwise_strided(const ConvShape&, float*, const float*, const float*, const float*) {}
void depthwise_strided_dgrad(const ConvShape&, float*, const float*, const float*, const float*) {}
}  // namespace rl::cpu::conv512
#endif
