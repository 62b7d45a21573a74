// Winograd's gradient by the filters: sums over tiles of 36 products of transformed dy and x.
#include <atomic>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/winograd_transforms.h"
#include "cpu/gemm/microkernel_avx512.h"

namespace rl::avx512::conv {
namespace {

constexpr int64_t kSum = 64;  // tiles summed in one go, see Note [Interpolation points]

using BlockFn = void (*)(int64_t, Strided, Rows, float*, int64_t, bool);
constexpr BlockFn kBlocks[kVecs] = {block<kRows, 1, Strided, Rows>, block<kRows, 2, Strided, Rows>,
                                    block<kRows, 3, Strided, Rows>};

struct WeightPlan {
  const ConvShape& s;
  int64_t O = s.out_channels, C = s.in_channels, rows = (O + kRows - 1) / kRows * kRows, cols = (C + W - 1) / W * W;
  int64_t tiles = s.batch * ((s.out[1] + kTile - 1) / kTile) * ((s.out[2] + kTile - 1) / kTile);
  int64_t vecs = (tiles + W - 1) / W;
  // Tiles are taken in groups, so that the transformed ones need not all be kept.
  int64_t group = std::min(vecs, std::max<int64_t>(8, (16 << 20) / (kPoints * 4 * W * (rows + cols))));
  int64_t groups = (vecs + group - 1) / group;
  int64_t ldy = group * W + W;
  // With one group output channels come in bands, so that their products need not all be kept.
  int64_t band =
      groups > 1 ? rows : std::min(rows, std::max<int64_t>(kRows * 4, (6 << 20) / (kPoints * 4 * cols) / 8 * 8));
  int64_t v_step = plane_stride(group * W * cols), y_step = plane_stride(rows * ldy),
          m_step = plane_stride(band * cols);

  int64_t size() const { return kPoints * (v_step + y_step + m_step); }

  // v (36, tiles, C): sixteen channels of some tiles.
  void take_input(Tiles& t, int64_t at, int n, const float* x, int64_t c0, float* v, float* lines, float* local,
                  Largest& largest) const {
    constexpr int64_t kStep = W * W + W, kVec = kPoints * kStep;
    int64_t count = std::min<int64_t>(W, C - c0);
    for (int64_t c = 0; c < count; ++c) {
      make_lines<false>(t, x + (c0 + c) * s.in_plane(), C * s.in_plane(), lines, largest);
      for (int vec = 0; vec < n; ++vec) take_tiles<false>(t, vec, lines, local + vec * kVec + c * W, kStep);
    }
    for (int vec = 0; vec < n; ++vec)
      for (int p = 0; p < kPoints; ++p) {
        Reg r[W];
        for (int i = 0; i < W; ++i)
          r[i] = i >= count ? _mm512_setzero_ps() : load(local + vec * kVec + p * kStep + i * W);
        rl::avx512::transpose(r);
        float* to = v + p * v_step + (at + vec) * W * cols + c0;
        for (int i = 0; i < W; ++i) store(to + i * cols, r[i]);
      }
  }

  // m (36, o0 to o1, C) = or += y v
  void multiply(int p, int64_t o0, int64_t o1, int64_t count, const float* y, const float* v, float* m,
                bool add) const {
    for (int64_t k = 0; k < count; k += kSum, add = true)
      for (int64_t c = 0; c < cols; c += W * kVecs) {
        int64_t n = std::min<int64_t>(kVecs, (cols - c) / W), len = std::min(kSum, count - k);
        for (int64_t o = o0; o < o1; o += kRows) {
          const float* rows_y = y + p * y_step + o * ldy + k;
          kBlocks[n - 1](len, {rows_y, rows_y + 4 * ldy, ldy}, {v + p * v_step + k * cols + c, cols},
                         m + p * m_step + (o - o0 / band * band) * cols + c, cols, add);
        }
      }
  }

  // dw (C, 9) of one output channel.
  void give(const float* m, float* dw) const {
    alignas(64) int32_t offsets[W];
    for (int l = 0; l < W; ++l) offsets[l] = 9 * l;
    __m512i index = _mm512_load_si512(offsets);
    for (int64_t c = 0; c < C; c += W) {
      Reg mixed[3][kIn];
      for (int j = 0; j < kIn; ++j) {
        Reg d[kIn], r[3];
        for (int i = 0; i < kIn; ++i) d[i] = load(m + (i * kIn + j) * m_step + c);
        filter_sums(d, r);
        for (int i = 0; i < 3; ++i) mixed[i][j] = r[i];
      }
      __mmask16 there = lanes(C - c);
      for (int i = 0; i < 3; ++i) {
        Reg r[3];
        filter_sums(mixed[i], r);
        for (int j = 0; j < 3; ++j) _mm512_mask_i32scatter_ps(dw + c * 9 + i * 3 + j, there, index, r[j], 4);
      }
    }
  }
};

}  // namespace

int64_t winograd_wgrad_workspace(const ConvShape& s) {
  return WeightPlan{s}.size() * static_cast<int64_t>(sizeof(float));
}

bool winograd_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x) {
  WeightPlan plan{s};
  Scratch<float> own;
  if (!s.workspace) own.reset(plan.size());
  float* v = s.workspace ? static_cast<float*>(s.workspace) : own.get();
  float *y = v + kPoints * plan.v_step, *m = y + kPoints * plan.y_step;
  std::atomic<bool> fine{true};
  int64_t x_parts = plan.cols / W, y_parts = (plan.O + W - 1) / W, parts = x_parts + y_parts;
  for (int64_t g = 0; g < plan.groups; ++g) {
    int64_t vec0 = g * plan.group, held = std::min(plan.group, plan.vecs - vec0), blocks = (held + kVecs - 1) / kVecs;
    parallel_for(0, blocks * parts, 4, [&](int64_t first, int64_t last) {
      Tiles t{s};
      Scratch<float> lines(t.lines_size()), local(kVecs * kPoints * (W * W + W));
      Largest largest;
      int64_t described = -1;
      for (int64_t i = first; i < last; ++i) {
        int64_t b = i / parts, part = i % parts, at = b * kVecs;
        int n = static_cast<int>(std::min<int64_t>(kVecs, held - at));
        if (b != described) t.describe((vec0 + at) * W, n);
        described = b;
        if (part < x_parts) {
          plan.take_input(t, at, n, x, part * W, v, lines.get(), local.get(), largest);
          continue;
        }
        for (int64_t o = (part - x_parts) * W; o < std::min(plan.O, (part - x_parts + 1) * W); ++o) {
          make_lines<true>(t, dy + o * s.out_plane(), plan.O * s.out_plane(), lines.get(), largest);
          for (int vec = 0; vec < n; ++vec)
            take_tiles<true>(t, vec, lines.get(), y + o * plan.ldy + (at + vec) * W, plan.y_step);
        }
      }
      if (largest.too_large()) fine = false;
    });
    if (!fine) return false;
    // Rows past the last channel are multiplied too; arbitrary bits, often denormal, would be slow.
    for (int p = 0; p < kPoints && g == 0; ++p)
      std::fill(y + p * plan.y_step + plan.O * plan.ldy, y + p * plan.y_step + plan.rows * plan.ldy, 0.0f);
    for (int64_t band0 = 0; band0 < plan.rows; band0 += plan.band) {
      int64_t band1 = std::min(plan.rows, band0 + plan.band);
      int64_t chunk = std::min<int64_t>(band1 - band0, 64), chunks = (band1 - band0 + chunk - 1) / chunk;
      parallel_for(0, kPoints * chunks, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          int64_t o = band0 + i % chunks * chunk;
          plan.multiply(static_cast<int>(i / chunks), o, std::min(band1, o + chunk), held * W, y, v, m, g > 0);
        }
      });
      if (g + 1 < plan.groups) continue;
      parallel_for(band0, std::min(plan.O, band1), std::max<int64_t>(1, 1024 / plan.C),
                   [&](int64_t first, int64_t last) {
                     for (int64_t o = first; o < last; ++o) plan.give(m + (o - band0) * plan.cols, dw + o * plan.C * 9);
                   });
    }
  }
  return true;
}

}  // namespace rl::avx512::conv
#else
namespace rl::avx512::conv {
int64_t winograd_wgrad_workspace(const ConvShape&) { return 0; }
bool winograd_wgrad(const ConvShape&, float*, const float*, const float*) { return false; }
}  // namespace rl::avx512::conv
#endif
