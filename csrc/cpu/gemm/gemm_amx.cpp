#include "cpu/gemm/amx.h"
#include "cpu/gemm/amx_tiles.h"
#include "cpu/gemm/tiles.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kBlock = kStripLanes;  // rows and columns of a block
constexpr int64_t kMostRows = 512;       // of a tile: with their parts they stay in the second cache
constexpr int64_t kGroup = 4;            // strips of b that are packed at once

struct Block {
  int64_t i, rows, j, cols;
};

// sums = the block's GEMM over len steps from p on, by a plain loop
template <class S> void plain_gemm(const Gemm<float, S>& g, const Block& at, int64_t p, int64_t len, float* sums) {
  for (int64_t r = 0; r < at.rows; ++r)
    for (int64_t q = 0; q < at.cols; ++q) {
      const S *x = g.a + (at.i + r) * g.ars + p * g.acs, *y = g.b + (at.j + q) * g.bcs + p * g.brs;
      float sum = 0;
      for (int64_t s = 0; s < len; ++s) sum += static_cast<float>(x[s * g.acs]) * static_cast<float>(y[s * g.brs]);
      sums[(r / kTile * 2 + q / kTile) * kTile * kTile + r % kTile * kTile + q % kTile] = sum;
    }
}

// c = alpha * sums + (c or the row `start`)
template <class S>
void put_block(const Gemm<float, S>& g, const Block& at, const float* sums, bool add, const float* start) {
  const __m512 alpha = _mm512_set1_ps(g.alpha);
  for (int64_t half = 0; half * kTile < at.cols; ++half) {
    const __mmask16 mask = lanes(at.cols - half * kTile);
    const __m512 row = start ? _mm512_maskz_loadu_ps(mask, start + at.j + half * kTile) : _mm512_setzero_ps();
    float* c = g.c + at.i * g.crs + at.j + half * kTile;
    for (int64_t r = 0; r < at.rows; ++r, c += g.crs) {
      const __m512 x = _mm512_load_ps(sums + (r / kTile * 2 + half) * kTile * kTile + r % kTile * kTile);
      const __m512 rest = add ? _mm512_maskz_loadu_ps(mask, c) : row;
      _mm512_mask_storeu_ps(c, mask, _mm512_fmadd_ps(x, alpha, rest));
    }
  }
}

template <int kParts>
void block_gemm(const Block& at, int64_t steps, const uint32_t* a, const uint32_t* b, float* sums) {
  const bool two_rows = at.rows > kTile, two_cols = at.cols > kTile;
  if (two_rows) two_cols ? strips_gemm<kParts, 2, 2>(steps, a, b, sums) : strips_gemm<kParts, 2, 1>(steps, a, b, sums);
  else two_cols ? strips_gemm<kParts, 1, 2>(steps, a, b, sums) : strips_gemm<kParts, 1, 1>(steps, a, b, sums);
}

// As sgemm_avx512.cpp: each tile packs what it reads for itself.
template <int kParts, class S> void run(const Gemm<float, S>& g) {
  const double macs = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  const float* bias = g.d && g.drs == 0 && g.dcs == 1 && g.alpha == 1 && g.beta == 1 ? g.d : nullptr;
  const Tiles tile(g.m, g.n, kMostRows, kBlock, kBlock, 16 * kBlock, macs / 4);
  const int64_t slices = (g.k + kSlice - 1) / kSlice, slice = (g.k + slices * kStep - 1) / (slices * kStep) * kStep;
  const int64_t strip = slice / kStep * kStripStep<kParts>, down = (tile.rows + kBlock - 1) / kBlock;
  parallel_for(0, tile.down * tile.across, 1, [&](int64_t first, int64_t last) {
    Scratch<uint32_t> packed((down + kGroup) * strip);
    Scratch<bool> plain(down + kGroup);
    uint32_t *left = packed.get(), *right = left + down * strip;
    bool *plain_left = plain.get(), *plain_right = plain_left + down;
    alignas(64) float sums[kBlock * kBlock];
    const Tiling tiling;
    for (int64_t t = first; t < last; ++t) {
      const int64_t i0 = t / tile.across * tile.rows, j0 = t % tile.across * tile.cols;
      const int64_t i1 = std::min(g.m, i0 + tile.rows), j1 = std::min(g.n, j0 + tile.cols);
      bool add = !bias && prepare(g, i0, i1 - i0, j0, j1 - j0);
      for (int64_t p = 0; p < g.k; p += slice, add = true) {
        const int64_t len = std::min(slice, g.k - p), steps = (len + kStep - 1) / kStep;
        for (int64_t i = i0, s = 0; i < i1; i += kBlock, ++s)
          plain_left[s] = pack_strip<kParts, true>(g.a + i * g.ars + p * g.acs, g.ars, g.acs, std::min(kBlock, i1 - i),
                                                   len, left + s * strip);
        for (int64_t group = j0; group < j1; group += kGroup * kBlock) {
          const int64_t end = std::min(j1, group + kGroup * kBlock);
          for (int64_t j = group, s = 0; j < end; j += kBlock, ++s)
            plain_right[s] = pack_strip<kParts, false>(g.b + j * g.bcs + p * g.brs, g.bcs, g.brs,
                                                       std::min(kBlock, end - j), len, right + s * strip);
          for (int64_t i = i0, si = 0; i < i1; i += kBlock, ++si)
            for (int64_t j = group, sj = 0; j < end; j += kBlock, ++sj) {
              const Block at = {i, std::min(kBlock, i1 - i), j, std::min(kBlock, end - j)};
              if (plain_left[si] || plain_right[sj]) plain_gemm(g, at, p, len, sums);
              else block_gemm<kParts>(at, steps, left + si * strip, right + sj * strip, sums);
              put_block(g, at, sums, add, p == 0 ? bias : nullptr);
            }
        }
      }
    }
  });
}

}  // namespace

void tile_gemm(const Gemm<float>& g, int parts) { parts == 1 ? run<1>(g) : run<2>(g); }
void tile_gemm(const Gemm<float, bfloat16>& g) { run<1>(g); }

}  // namespace rl::RL_ISA
