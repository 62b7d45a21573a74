// The gradient by the filters where each has one channel: sums along the places, one register for each tap.
#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/avx512_begin.h"
#include "cpu/conv/output_blocks.h"
#include "cpu/conv/stride_phases.h"

namespace rl::cpu::conv512 {
namespace {

constexpr int kMostTaps = 12;

// sums (T, W) += side * what each tap sees, lane by lane
template <int T>
void add_taps(int64_t count, const float* side, const float* memory, const int32_t* offsets, float* sums) {
  Reg acc[T];
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) acc[t] = load(sums + t * W);
  const float* rows[T];
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) rows[t] = memory + offsets[t];
  for (int64_t p = 0; p < count; p += W) {
    Reg x = load(side + p);
#pragma GCC unroll 12
    for (int t = 0; t < T; ++t) acc[t] = fma(x, load(rows[t] + p), acc[t]);
  }
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) store(sums + t * W, acc[t]);
}
using TapsFn = void (*)(int64_t, const float*, const float*, const int32_t*, float*);
constexpr TapsFn kTaps[kMostTaps] = {add_taps<1>, add_taps<2>, add_taps<3>, add_taps<4>,  add_taps<5>,  add_taps<6>,
                                     add_taps<7>, add_taps<8>, add_taps<9>, add_taps<10>, add_taps<11>, add_taps<12>};

}  // namespace

bool depthwise_rows_wgrad_applicable(const ConvShape& s) {
  return s.in_channels == s.groups && s.groups > 1 && s.taps() <= 1024 && direct_applicable(s, false) &&
         s.out_plane() > 0;
}

void depthwise_rows_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x) {
  Axis axes[3];
  for (int d = 0; d < 3; ++d) axes[d] = forward_axis(s, static_cast<Dim>(d));
  Lattice lattice;
  lattice.depth = axes, lattice.height = axes + 1, lattice.width = axes + 2;
  lattice.source = {x, {s.in[0], s.in[1], s.in[2]}, s.in_plane(), s.in_channels * s.in_plane()};
  Slabs slabs;
  for (int d = 0; d < 3; ++d) slabs.low[d] = 0, slabs.high[d] = s.out[d];
  slabs.plan(lattice, s.batch, s.groups, 1, 96, 4096);
  std::vector<int32_t> offsets;
  for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
    for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
      for (int64_t kw = 0; kw < s.kernel[2]; ++kw) offsets.push_back(static_cast<int32_t>(lattice.offset(kd, kh, kw)));
  int64_t taps = s.taps(), per = s.out_channels / s.groups, plane = s.out_plane();
  int64_t most = slabs.rows * lattice.pitch + 2 * W;
  double work = 2.0 * static_cast<double>(s.batch * plane * per * (taps + 8));
  int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(1e6 / work));
  parallel_for(0, s.groups, grain, [&](int64_t first, int64_t last) {
    Scratch<float> memory(lattice.size(1)), side(most), sums(per * taps * W);
    std::vector<Plot> plots;
    for (int64_t g = first; g < last; ++g) {
      std::fill(sums.get(), sums.get() + per * taps * W, 0.0f);
      for (int64_t slab = 0; slab < slabs.count; ++slab) {
        slabs.plots(slab, plots);
        auto n = static_cast<int64_t>(plots.size());
        lattice.fill_all(plots.data(), n, g, 1, true, memory.get());
        for (int64_t i = 0; i < n; ++i)
          for (int64_t o = 0; o < per; ++o) {
            const Plot& p = plots[i];
            // dy with the gaps of the lattice, as zeros
            const float* from =
                dy + (p.image * s.out_channels + g * per + o) * plane + (p.depth * s.out[1] + p.row) * s.out[2] + p.col;
            int64_t length = (p.rows - 1) * lattice.pitch + p.cols;
            for (int64_t r = 0; r < p.rows; ++r) {
              float* to = side.get() + r * lattice.pitch;
              for (int64_t c = 0; c < lattice.pitch; c += W)  // what is too much the next row overwrites
                store(to + c, _mm512_maskz_loadu_ps(lanes(p.cols - c), from + r * s.out[2] + c));
            }
            store(side.get() + length, _mm512_setzero_ps());
            for (int64_t t = 0; t < taps; t += kMostTaps)
              kTaps[std::min<int64_t>(kMostTaps, taps - t) - 1](length, side.get(), memory.get() + i * lattice.plot,
                                                                offsets.data() + t, sums.get() + (o * taps + t) * W);
          }
      }
      for (int64_t t = 0; t < per * taps; ++t) dw[g * per * taps + t] = _mm512_reduce_add_ps(load(sums.get() + t * W));
    }
  });
}

}  // namespace rl::cpu::conv512
#include "cpu/avx512_end.h"
#else
namespace rl::cpu::conv512 {
bool depthwise_rows_wgrad_applicable(const ConvShape&) { return false; }
void depthwise_rows_wgrad(const ConvShape&, float*, const float*, const float*) {}
}  // namespace rl::cpu::conv512
#endif
