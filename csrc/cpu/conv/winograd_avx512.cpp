// Winograd's convolution: tiles are transformed, multiplied and transformed back while they are in the cache.
#include <atomic>

#include "backend/precision.h"
#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/tuning.h"
#include "cpu/features.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/winograd_transforms.h"
#include "cpu/gemm/microkernel_avx512.h"

namespace rl::avx512::conv {
namespace {

// Where filter (o, c) begins, and whether it is rotated by 180 degrees.
struct Filters {
  const float* w;
  int64_t out, in;  // filters
  int64_t out_step, in_step;
  bool flipped;
};

// Panels of eight output channels: u (36, panels, C, 8), channels past the end are zeros. False for large values.
bool transform_filters(const Filters& f, int64_t panel0, int64_t panel1, float* u, int64_t step) {
  alignas(64) int32_t offsets[W];
  for (int l = 0; l < W; ++l) offsets[l] = static_cast<int32_t>(l % kRows * f.out_step + l / kRows * f.in_step);
  __m512i index = _mm512_load_si512(offsets);
  Largest largest;
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    float* to = u + (panel - panel0) * f.in * kRows;
    auto rows = static_cast<__mmask16>((1u << std::min<int64_t>(kRows, f.out - panel * kRows)) - 1);
    for (int64_t c = 0; c < f.in; c += 2, to += W) {
      auto there = static_cast<__mmask16>(c + 1 < f.in ? rows | rows << kRows : rows);
      __mmask16 kept = lanes((f.in - c) * kRows);
      const float* from = f.w + panel * kRows * f.out_step + c * f.in_step;
      Reg g[9], t[3][kIn], column[3], points[kIn];
      for (int i = 0; i < 9; ++i) {
        g[i] = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), there, index, from + (f.flipped ? 8 - i : i), 4);
        largest.see(g[i]);
      }
      for (int j = 0; j < 3; ++j) {
        column[0] = g[j], column[1] = g[3 + j], column[2] = g[6 + j];
        filter_points(column, t[j]);
      }
      for (int i = 0; i < kIn; ++i) {
        column[0] = t[0][i], column[1] = t[1][i], column[2] = t[2][i];
        filter_points(column, points);
        for (int j = 0; j < kIn; ++j) _mm512_mask_storeu_ps(to + (i * kIn + j) * step, kept, points[j]);
      }
    }
  }
  return !largest.too_large();
}

// c (kRows rows, V registers) = or += a @ b, as block() does, with two sums for each number: of even and of odd k. Four
// rows at a time leave registers for both.
template <int V> void block_pairs(int64_t k, Packed<kRows> a, Rows b, float* c, int64_t ldc, bool add) {
  constexpr int R = kRows / 2;
  for (int half = 0; half < kRows; half += R) {
    Reg acc[2][R][V];
#pragma GCC unroll 2
    for (int s = 0; s < 2; ++s)
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) acc[s][r][v] = _mm512_setzero_ps();
    auto step = [&](int64_t p, Reg(&sums)[R][V]) __attribute__((always_inline)) {
      const float* row = b.row(p);
      Reg x[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) x[v] = load(row + v * W);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Reg f = all(a.at(half + r, p));
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sums[r][v] = fma(f, x[v], sums[r][v]);
      }
    };
    int64_t p = 0;
    for (; p + 1 < k; p += 2) step(p, acc[0]), step(p + 1, acc[1]);
    if (p < k) step(p, acc[0]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        float* to = c + (half + r) * ldc + v * W;
        const Reg sum = acc[0][r][v] + acc[1][r][v];
        store(to, add ? load(to) + sum : sum);
      }
  }
}

using BlockFn = void (*)(int64_t, Packed<kRows>, Rows, float*, int64_t, bool);
constexpr BlockFn kBlocks[kVecs] = {block_pairs<1>, block_pairs<2>, block_pairs<3>};

constexpr int64_t kSum = 16, kGroup = 4;  // see Note [Interpolation points]

struct Plan {
  const ConvShape& s;
  int64_t O = s.out_channels, C = s.in_channels, panels = (O + kRows - 1) / kRows;
  int64_t tiles = s.batch * ((s.out[1] + kTile - 1) / kTile) * ((s.out[2] + kTile - 1) / kTile);
  int64_t vecs = (tiles + W - 1) / W;
  bool by_tiles = vecs >= 12;  // else by output channels: the filters are transformed where they are used
  int64_t u_step = plane_stride(panels * C * kRows), v_step = plane_stride(C * vecs * W);

  int64_t workspace() const { return kPoints * (by_tiles ? u_step : v_step) * static_cast<int64_t>(sizeof(float)); }

  // One panel at one point. Sums of kSum channels are added up kGroup at a time, then these.
  void sum_channels(const float* u, const float* v, int64_t ld, int block_vecs, float* m) const {
    const int64_t wide = W * block_vecs;
    alignas(64) float part[kRows * W * kVecs];
    for (int64_t g = 0; g < C; g += kSum * kGroup) {
      const int64_t end = std::min(C, g + kSum * kGroup);
      float* to = g ? part : m;
      for (int64_t c = g; c < end; c += kSum)
        kBlocks[block_vecs - 1](std::min(kSum, end - c), {u + c * kRows}, {v + c * ld, ld}, to, wide, c > g);
      for (int64_t i = 0; g && i < kRows * wide; i += W) store(m + i, load(m + i) + load(part + i));
    }
  }

  // m (36, rows, ld) = u v, for some panels; then back to outputs.
  void multiply(const float* u, int64_t us, int64_t panel0, int64_t panel1, const float* v, int64_t vs, int64_t ld,
                int block_vecs, float* m, int64_t ms) const {
    for (int p = 0; p < kPoints; ++p)
      for (int64_t panel = panel0; panel < panel1; ++panel)
        sum_channels(u + p * us + (panel - panel0) * C * kRows, v + p * vs, ld, block_vecs,
                     m + p * ms + (panel - panel0) * kRows * W * block_vecs);
  }
  void give(const Tiles& t, int64_t panel0, int64_t panel1, const float* m, int64_t ms, int block_vecs, float* y,
            const float* bias) const {
    for (int64_t o = panel0 * kRows; o < std::min(O, panel1 * kRows); ++o)
      for (int vec = 0; vec < block_vecs; ++vec)
        give_tiles(t, vec, m + ((o - panel0 * kRows) * block_vecs + vec) * W, ms, bias ? bias[o] : 0.0f,
                   y + o * s.out_plane(), O * s.out_plane());
  }
};

// Many tiles: each piece takes a block of them through all steps.
bool run_by_tiles(const Plan& plan, const Filters& f, float* y, const float* x, const float* bias, float* u) {
  const ConvShape& s = plan.s;
  int64_t C = plan.C, blocks = std::max<int64_t>((plan.vecs + kVecs - 1) / kVecs, std::min<int64_t>(plan.vecs, 12));
  std::atomic<bool> fine{true};
  int64_t grain = std::max<int64_t>(1, 1024 / C);
  parallel_for(0, plan.panels, grain, [&](int64_t first, int64_t last) {
    if (!transform_filters(f, first, last, u + first * C * kRows, plan.u_step)) fine = false;
  });
  if (!fine) return false;
  // Output channels are taken in groups, so that their products stay in the cache.
  int64_t group_panels = std::min<int64_t>(plan.panels, 16);
  parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    Tiles t{s};
    Scratch<float> lines(t.lines_size()), v(kPoints * plane_stride(C * W * kVecs)),
        m(kPoints * plane_stride(group_panels * kRows * W * kVecs));
    Largest largest;
    for (int64_t b = first; b < last; ++b) {
      int64_t vec0 = plan.vecs * b / blocks;
      int n = static_cast<int>(plan.vecs * (b + 1) / blocks - vec0);
      int64_t ld = W * n, vs = plane_stride(C * ld), ms = plane_stride(group_panels * kRows * ld);
      t.describe(vec0 * W, n);
      for (int64_t c = 0; c < C; ++c) {
        make_lines<false>(t, x + c * s.in_plane(), C * s.in_plane(), lines.get(), largest);
        for (int vec = 0; vec < n; ++vec) take_tiles<false>(t, vec, lines.get(), v.get() + c * ld + vec * W, vs);
      }
      for (int64_t panel = 0; panel < plan.panels; panel += group_panels) {
        int64_t end = std::min(plan.panels, panel + group_panels);
        plan.multiply(u + panel * C * kRows, plan.u_step, panel, end, v.get(), vs, ld, n, m.get(), ms);
        plan.give(t, panel, end, m.get(), ms, n, y, bias);
      }
    }
    if (largest.too_large()) fine = false;
  });
  return fine;
}

// Few tiles: all are transformed first, then each piece takes some output channels, filters included, through the rest.
bool run_by_channels(const Plan& plan, const Filters& f, float* y, const float* x, const float* bias, float* v) {
  const ConvShape& s = plan.s;
  int64_t C = plan.C, ld = plan.vecs * W;
  int64_t blocks = (plan.vecs + kVecs - 1) / kVecs;
  auto first_vec = [&](int64_t b) { return plan.vecs * b / blocks; };
  std::atomic<bool> fine{true};
  parallel_for(0, C, std::max<int64_t>(1, 32 / plan.vecs), [&](int64_t first, int64_t last) {
    Tiles t{s};
    Scratch<float> lines(t.lines_size());
    Largest largest;
    for (int64_t b = 0; b < blocks; ++b) {
      int64_t vec0 = first_vec(b), n = first_vec(b + 1) - vec0;
      t.describe(vec0 * W, static_cast<int>(n));
      for (int64_t c = first; c < last; ++c) {
        make_lines<false>(t, x + c * s.in_plane(), C * s.in_plane(), lines.get(), largest);
        for (int vec = 0; vec < n; ++vec)
          take_tiles<false>(t, vec, lines.get(), v + c * ld + (vec0 + vec) * W, plan.v_step);
      }
    }
    if (largest.too_large()) fine = false;
  });
  if (!fine) return false;
  // Several panels in one piece where the tiles do not stay in the cache.
  int64_t bytes = kPoints * plan.v_step * static_cast<int64_t>(sizeof(float));
  int64_t grain = std::clamp<int64_t>(std::min(bytes / (600 << 10), plan.panels / 8), 1, 4);
  parallel_for(0, plan.panels, grain, [&](int64_t first, int64_t last) {
    int64_t us = plane_stride((last - first) * C * kRows);
    Tiles t{s};
    Scratch<float> u(kPoints * us), m(kPoints * plane_stride((last - first) * kRows * W * kVecs));
    if (!transform_filters(f, first, last, u.get(), us)) fine = false;
    for (int64_t b = 0; b < blocks; ++b) {
      int64_t vec0 = first_vec(b);
      int n = static_cast<int>(first_vec(b + 1) - vec0);
      int64_t ms = plane_stride((last - first) * kRows * W * n);
      t.describe(vec0 * W, n);
      plan.multiply(u.get(), us, first, last, v + vec0 * W, plan.v_step, ld, n, m.get(), ms);
      plan.give(t, first, last, m.get(), ms, n, y, bias);
    }
  });
  return fine;
}

}  // namespace

bool available() { return has_avx512(); }

bool winograd_applicable(const ConvShape& s) {
  if (g_plain_convolutions || !available() || s.groups != 1 || s.in[0] != 1 || s.kernel[0] != 1 || s.padding[0] != 0 ||
      s.stride[0] != 1)
    return false;
  for (int d = 1; d < 3; ++d)
    if (s.kernel[d] != 3 || s.stride[d] != 1 || s.dilation[d] != 1 || s.padding[d] < 0 || s.padding[d] > 8)
      return false;
  if (s.batch == 0 || s.in_channels == 0 || s.out_channels == 0 || s.out_plane() == 0) return false;
  // A filter's index in a gather is 32 bits; sizes beyond have other ways.
  return s.in_channels * s.out_channels <= (int64_t{1} << 26);
}

bool winograd_profitable(const ConvShape& s) {
  if (s.in_channels < tuning::kWinograd512Channels || s.out_channels < tuning::kWinograd512Channels) return false;
  // The products saved must pay for the transforms: most of a tile's outputs are wanted, most lanes hold tiles.
  Plan plan{s};
  double wanted = static_cast<double>(s.batch * s.out_plane()) / static_cast<double>(plan.vecs * W * kTile * kTile);
  return wanted > tuning::kWinogradUsefulOutputs;
}

int64_t winograd_workspace(const ConvShape& s) { return Plan{s}.workspace(); }

bool winograd(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped) {
  Plan plan{s};
  Filters f{w, plan.O, plan.C, flipped ? 9 : plan.C * 9, flipped ? plan.O * 9 : 9, flipped};
  Scratch<float> own;
  if (!s.workspace) own.reset(plan.workspace() / static_cast<int64_t>(sizeof(float)));
  float* memory = s.workspace ? static_cast<float*>(s.workspace) : own.get();
  return plan.by_tiles ? run_by_tiles(plan, f, y, x, bias, memory) : run_by_channels(plan, f, y, x, bias, memory);
}
bool winograd_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  return winograd(s, y, x, w, bias, false);
}

}  // namespace rl::avx512::conv
#else
namespace rl::avx512::conv {
bool available() { return false; }
bool winograd_applicable(const ConvShape&) { return false; }
bool winograd_profitable(const ConvShape&) { return false; }
int64_t winograd_workspace(const ConvShape&) { return 0; }
bool winograd(const ConvShape&, float*, const float*, const float*, const float*, bool) { return false; }
bool winograd_forward(const ConvShape&, float*, const float*, const float*, const float*) { return false; }
}  // namespace rl::avx512::conv
#endif
