// Winograd's F(4x4, 3x3): tiles of 4x4 outputs from 6x6 inputs with 36 products instead of 144.
//   Y = A' [ sum over channels of (G g G') . (B' d B) ] A
// Tiles of one row of tiles lie side by side, so that both transforms run over vectors of tiles, and the sums over
// channels are 36 products of matrices (O, C) @ (C, tiles).
#include <atomic>

#include "backend/precision.h"
#include "cpu/conv/algorithms.h"
#include "cpu/conv/tuning.h"

namespace rl::RL_ISA {
namespace {

constexpr int kTile = 4, kIn = 6, kPoints = 36;
// See Note [Interpolation points] in winograd_transforms.h: the points are 0, 11/16, -11/16, 3/2, -3/2 and infinity,
// and channels are summed in parts of kSum.
constexpr float kA = 0.6875f, kB = 1.5f, kA2 = kA * kA, kB2 = kB * kB;
constexpr auto kG0 = static_cast<float>(1 / (double{kA2} * kB2)),
               kGA = static_cast<float>(1 / (2.0 * kA2 * (double{kA2} - kB2))),
               kGB = static_cast<float>(1 / (2.0 * kB2 * (double{kB2} - kA2)));
constexpr int64_t kSum = 16;
constexpr int kBlock = 64;  // channels of filters transformed side by side

// Tiles that are transformed and multiplied at a time: enough for long products, within scratch that is kept for reuse.
int64_t tiles_at_once(const ConvShape& s) {
  int64_t fit = (7 << 20) / (kPoints * 4 * std::max<int64_t>(1, std::max(s.in_channels, s.out_channels)));
  return std::min<int64_t>(96, std::max<int64_t>(24, fit));
}

// w to u (36, O, C). Blocks of channels go through a buffer, so that both sides are read and written in runs.
void transform_weights(const ConvShape& s, const float* w, bool flipped, float* u, int64_t step) {
  int64_t O = s.out_channels, C = s.in_channels;
  parallel_for(0, O, std::max<int64_t>(1, 2048 / std::max<int64_t>(1, C)), [&](int64_t first, int64_t last) {
    float g[9][kBlock], t[kIn * 3][kBlock], r[kPoints][kBlock];
    auto points = [](const float* a, const float* b, const float* c, float* out, int64_t gap) {
      for (int i = 0; i < kBlock; ++i) {
        float even_a = a[i] + kA2 * c[i], odd_a = kA * b[i], even_b = a[i] + kB2 * c[i], odd_b = kB * b[i];
        out[i] = kG0 * a[i];
        out[gap + i] = kGA * (even_a + odd_a);
        out[2 * gap + i] = kGA * (even_a - odd_a);
        out[3 * gap + i] = kGB * (even_b + odd_b);
        out[4 * gap + i] = kGB * (even_b - odd_b);
        out[5 * gap + i] = c[i];
      }
    };
    for (int64_t o = first; o < last; ++o)
      for (int64_t c0 = 0; c0 < C; c0 += kBlock) {
        int n = static_cast<int>(std::min<int64_t>(kBlock, C - c0));
        if (n < kBlock) std::memset(g, 0, sizeof g);
        for (int c = 0; c < n; ++c) {
          const float* from = flipped ? w + ((c0 + c) * O + o) * 9 : w + (o * C + c0 + c) * 9;
          for (int i = 0; i < 9; ++i) g[i][c] = from[flipped ? 8 - i : i];
        }
        for (int j = 0; j < 3; ++j) points(g[j], g[3 + j], g[6 + j], t[j], 3 * kBlock);
        for (int i = 0; i < kIn; ++i) points(t[3 * i], t[3 * i + 1], t[3 * i + 2], r[kIn * i], kBlock);
        for (int p = 0; p < kPoints; ++p) std::copy(r[p], r[p] + n, u + p * step + o * C + c0);
      }
  });
}

bool any_too_large(const float* values, int64_t count) {
  constexpr uint32_t kMagnitude = 0x7fffffffu, kLarge = 0x5d5e0b6bu;  // bits of 1e18
  std::atomic<bool> found{false};
  parallel_for(0, count, 1 << 16, [&](int64_t first, int64_t last) {
    uint32_t largest = 0;
    for (int64_t i = first; i < last; ++i) {
      uint32_t bits;
      std::memcpy(&bits, values + i, sizeof bits);
      largest = std::max(largest, bits & kMagnitude);
    }
    if (largest > kLarge) found = true;
  });
  return found;
}

// B' along one axis: six rows of n values.
inline void input_points(const float* __restrict a, const float* __restrict b, const float* __restrict c,
                         const float* __restrict d, const float* __restrict e, const float* __restrict f,
                         float* __restrict r, int64_t step, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    float even_a = e[i] - kB2 * c[i], odd_a = kA * (d[i] - kB2 * b[i]);
    float even_b = e[i] - kA2 * c[i], odd_b = kB * (d[i] - kA2 * b[i]);
    r[i] = kA2 * kB2 * a[i] + (e[i] - (kA2 + kB2) * c[i]);
    r[step + i] = even_a + odd_a;
    r[2 * step + i] = even_a - odd_a;
    r[3 * step + i] = even_b + odd_b;
    r[4 * step + i] = even_b - odd_b;
    r[5 * step + i] = kA2 * kB2 * b[i] + (f[i] - (kA2 + kB2) * d[i]);
  }
}

// A' along one axis: four rows of n values from six.
inline void output_points(const float* __restrict m, int64_t from, float* __restrict r, int64_t step, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    double m1 = m[from + i], m2 = m[2 * from + i], m3 = m[3 * from + i], m4 = m[4 * from + i];
    double s12 = m1 + m2, d12 = m1 - m2, s34 = m3 + m4, d34 = m3 - m4;
    r[i] = static_cast<float>(m[i] + (s12 + s34));
    r[step + i] = static_cast<float>(kA * d12 + kB * d34);
    r[2 * step + i] = static_cast<float>(kA2 * s12 + kB2 * s34);
    r[3 * step + i] = static_cast<float>((kA2 * kA * d12 + m[5 * from + i]) + kB2 * kB * d34);
  }
}

struct Plan {
  const ConvShape& s;
  int64_t high = (s.out[1] + kTile - 1) / kTile, wide = (s.out[2] + kTile - 1) / kTile;  // tiles of one image
  int64_t span = kTile * wide + 2;  // padded input row of all tiles

  // v (36, C, ld) at `at`: one row of tiles of one channel.
  void take_row(const float* image, int64_t row, float* v, int64_t step, float* work) const {
    float* lines = work;               // (6, span): the input rows, padded with zeros
    float* mixed = work + kIn * span;  // (6, span): transformed along the height
    for (int i = 0; i < kIn; ++i) {
      int64_t ih = row * kTile + i - s.padding[1];
      float* to = lines + i * span;
      if (ih < 0 || ih >= s.in[1]) {
        std::fill(to, to + span, 0.0f);
        continue;
      }
      int64_t first = std::min<int64_t>(s.padding[2], span), last = std::min(span, first + s.in[2]);
      std::fill(to, to + first, 0.0f);
      std::copy(image + ih * s.in[2], image + ih * s.in[2] + (last - first), to + first);
      std::fill(to + last, to + span, 0.0f);
    }
    input_points(lines, lines + span, lines + 2 * span, lines + 3 * span, lines + 4 * span, lines + 5 * span, mixed,
                 span, span);
    // Along the width: every fourth value, so that the tiles are neighbours.
    float* parts = lines;  // (4, wide + 1)
    for (int i = 0; i < kIn; ++i) {
      const float* from = mixed + i * span;
      for (int64_t j = 0; j < wide; ++j)
        for (int m = 0; m < 4; ++m) parts[m * (wide + 1) + j] = from[4 * j + m];
      parts[wide] = from[4 * wide];
      parts[2 * wide + 1] = from[4 * wide + 1];
      const float *p0 = parts, *p1 = p0 + wide + 1, *p2 = p1 + wide + 1, *p3 = p2 + wide + 1;
      input_points(p0, p1, p2, p3, p0 + 1, p1 + 1, v + i * kIn * step, step, wide);
    }
  }

  // One row of tiles of one output channel, from m (36, O, ld).
  void give_row(const float* m, int64_t step, float bias, float* plane, int64_t row, float* work) const {
    float* mixed = work;                      // (6, 4, wide): transformed along the height
    float* flat = work + kIn * kTile * wide;  // (4, wide): one output row, tile by tile
    for (int k = 0; k < kIn; ++k) output_points(m + k * step, kIn * step, mixed + k * kTile * wide, wide, wide);
    for (int a = 0; a < kTile; ++a) {
      int64_t oh = row * kTile + a;
      if (oh >= s.out[1]) break;
      output_points(mixed + a * wide, kTile * wide, flat, wide, wide);
      float* to = plane + oh * s.out[2];
      int64_t whole = s.out[2] / kTile;
      for (int64_t j = 0; j < whole; ++j)
        for (int b = 0; b < kTile; ++b) to[kTile * j + b] = flat[b * wide + j] + bias;
      for (int64_t i = kTile * whole; i < s.out[2]; ++i) to[i] = flat[(i % kTile) * wide + whole] + bias;
    }
  }
};

}  // namespace

bool winograd_applicable(const ConvShape& s) {
  if (g_plain_convolutions || s.groups != 1 || s.in[0] != 1 || s.kernel[0] != 1 || s.padding[0] != 0 ||
      s.stride[0] != 1)
    return false;
  for (int d = 1; d < 3; ++d)
    if (s.kernel[d] != 3 || s.stride[d] != 1 || s.dilation[d] != 1 || s.padding[d] < 0 || s.padding[d] > 8)
      return false;
  return s.batch > 0 && s.in_channels > 0 && s.out_channels > 0 && s.out_plane() > 0 && (s.out[2] + 3) / 4 <= 2048;
}

bool winograd_profitable(const ConvShape& s) {
  const int64_t tiles = s.batch * ((s.out[1] + 3) / 4) * ((s.out[2] + 3) / 4);
  // The transforms must be paid back by the channels, the filters' transform by the tiles.
  return s.out[1] >= 4 && s.out[2] >= 4 && s.in_channels >= tuning::kWinogradChannels &&
         s.out_channels >= tuning::kWinogradChannels && tiles >= tuning::kWinogradTiles;
}

// Planes are set apart by more than their size, else all 36 would fall into the same sets of the cache.
static int64_t filter_step(const ConvShape& s) { return s.out_channels * s.in_channels + 16; }
int64_t winograd_workspace(const ConvShape& s) {
  return kPoints * filter_step(s) * static_cast<int64_t>(sizeof(float));
}

bool winograd(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped) {
  if (any_too_large(x, s.batch * s.in_channels * s.in_plane()) || any_too_large(w, s.out_channels * s.in_channels * 9))
    return false;
  Plan plan{s};
  int64_t O = s.out_channels, C = s.in_channels, u_step = filter_step(s);
  Scratch<float> own;
  if (!s.workspace) own.reset(kPoints * u_step);
  float* u = s.workspace ? static_cast<float*>(s.workspace) : own.get();
  transform_weights(s, w, flipped, u, u_step);
  // Blocks of tiles one after the other; within a block the channels, then the points, then the channels are shared
  // out.
  int64_t rows = s.batch * plan.high, at_once = std::min(rows, std::max<int64_t>(1, tiles_at_once(s) / plan.wide));
  int64_t ld = at_once * plan.wide, v_step = C * ld + 16, m_step = O * ld + 16;
  int64_t work_size = std::max(2 * kIn * plan.span, (kIn + 1) * kTile * plan.wide) + 4 * (plan.wide + 1);
  Scratch<float> v(kPoints * v_step), m(kPoints * m_step);
  for (int64_t r0 = 0; r0 < rows; r0 += at_once) {
    int64_t r1 = std::min(rows, r0 + at_once), count = (r1 - r0) * plan.wide,
            grain = std::max<int64_t>(1, 1024 / count);
    parallel_for(0, C, grain, [&](int64_t first, int64_t last) {
      Scratch<float> work(work_size);
      for (int64_t c = first; c < last; ++c)
        for (int64_t r = r0; r < r1; ++r)
          plan.take_row(x + (r / plan.high * C + c) * s.in_plane(), r % plan.high,
                        v.get() + c * ld + (r - r0) * plan.wide, v_step, work.get());
    });
    int64_t points = std::max<int64_t>(1, static_cast<int64_t>(1e6 / (static_cast<double>(O) * C * count)));
    parallel_for(0, kPoints, points, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p)
        for (int64_t c = 0; c < C; c += kSum)
          conv_gemm(false, false, O, count, std::min(kSum, C - c), u + p * u_step + c, C, v.get() + p * v_step + c * ld,
                    ld, c ? 1.0f : 0.0f, m.get() + p * m_step, ld);
    });
    parallel_for(0, O, grain, [&](int64_t first, int64_t last) {
      Scratch<float> work(work_size);
      for (int64_t o = first; o < last; ++o)
        for (int64_t r = r0; r < r1; ++r)
          plan.give_row(m.get() + o * ld + (r - r0) * plan.wide, m_step, bias ? bias[o] : 0.0f,
                        y + (r / plan.high * O + o) * s.out_plane(), r % plan.high, work.get());
    });
  }
  return true;
}
bool winograd_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  return winograd(s, y, x, w, bias, false);
}

}  // namespace rl::RL_ISA
