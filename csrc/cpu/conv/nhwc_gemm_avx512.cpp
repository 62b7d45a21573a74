// Convolutions of images with their channels last, and their gradients by the input (Note [Rows of channels]).
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/nhwc_gemm.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/gemm/microkernel_avx512.h"

namespace rl::avx512::conv {
namespace {

constexpr int64_t kPlaces = 192;   // of a piece of work: so many that its filters are read seldom
constexpr int64_t kSum = 768;      // products added up before they go to memory
constexpr int64_t kFewPlaces = 6;  // fewer in a row leave the multipliers waiting
constexpr int64_t kPieces = 8;     // of work that are enough

template <class T> struct RowConv {
  static constexpr int W = Vec<T>::W;
  static constexpr int64_t kPanel = 2 * W;

  int64_t batch, groups, in, out;  // channels of one group
  RowAxis axes[3];
  const T *x, *w, *bias;
  T* y;
  int64_t in_size[3], out_size[3], kernel[3];
  // Filters: `outer` times (lanes, columns); column i is row to[i] of the packed ones, plus the number of the time.
  int64_t lane_step, group_step, outer, outer_step, columns, column_step;
  std::vector<int32_t> to;

  bool copies = false;  // what is read gets zeros around
  int64_t panels = (out + kPanel - 1) / kPanel, sum = 0, padded = 0;
  int64_t images = 1, rows = 1, cols = 1, down = 1, across = 1;  // of a piece; pieces along a image

  int64_t panel_width(int64_t panel) const { return out - panel * kPanel > W ? kPanel : W; }

  void plan() {
    sum = in * kernel[0] * kernel[1] * kernel[2], padded = (out + W - 1) / W * W;
    for (const RowAxis::Phase& p : axes[2].phases) {
      int64_t a0, b0, a, b, run = 0;
      axes[2].seen(p, 0, &a0, &b0);
      for (int64_t q = 0; q < p.count; ++q, ++run) {
        axes[2].seen(p, q, &a, &b);
        if (a == a0 && b == b0) continue;
        copies = copies || run < kFewPlaces, a0 = a, b0 = b, run = 0;
      }
      copies = copies || (run < kFewPlaces && run < p.count);
    }
    if (groups > 1) copies = true;  // channels of a group are put together
    const int64_t deep = axes[0].pixels(), high = axes[1].pixels(), wide = axes[2].pixels();
    const int64_t shares = std::min(kPieces, panels * groups);  // pieces along the channels
    const int64_t most = std::clamp<int64_t>(batch * deep * high * wide * shares / kPieces, 32, kPlaces);
    auto even = [](int64_t size, int64_t part) {
      const int64_t n = (size + part - 1) / part;
      return (size + n - 1) / n;
    };
    cols = wide <= most * 3 / 2 ? wide : (even(wide, most) + kBlockRows - 1) / kBlockRows * kBlockRows;
    rows = even(high, std::max<int64_t>(1, most / cols));
    if (rows == high && cols == wide) images = std::clamp<int64_t>(most / (deep * high * wide), 1, batch);
    down = (high + rows - 1) / rows, across = (wide + cols - 1) / cols;
  }

  // Filters of W channels to their panel, which has rows of its width.
  void pack(int64_t g, int64_t v, T* packed) const {
    using V = Vec<T>;
    const int64_t panel = v / 2, width = panel_width(panel), lane = v * W;
    T* at = packed + (g * padded + panel * kPanel) * sum + v % 2 * W;
    const auto there = first_lanes<T>(out - lane);
    for (int64_t u = 0; u < outer; ++u) {
      const T* from = w + g * group_step + u * outer_step + lane * lane_step;
      for (int64_t c = 0; c < columns; c += lane_step == 1 ? 1 : W) {
        if (lane_step == 1) {
          V::store(at + (to[c] + u) * width, V::load(from + c * column_step, there));
          continue;
        }
        typename V::Reg r[W];
        const auto some = first_lanes<T>(columns - c);
        for (int i = 0; i < W; ++i) r[i] = lane + i < out ? V::load(from + i * lane_step + c, some) : V::zero();
        V::transpose(r);
        for (int i = 0; i < std::min<int64_t>(W, columns - c); ++i) V::store(at + (to[c + i] + u) * width, r[i]);
      }
    }
  }

  // Pixels of an output row that follow each other, and the taps that they meet.
  struct Tile {
    int64_t to, from, count, first, last;
  };
  void tiles(int64_t q0, int64_t q1, std::vector<Tile>& all) const {
    const RowAxis& a = axes[2];
    all.clear();
    for (const RowAxis::Phase& p : a.phases)
      for (int64_t q = q0, end = std::min(q1, p.count); q < end;) {
        Tile t{p.start + q * a.out_step, q * a.in_step, 1, 0, 0};
        a.seen(p, q, &t.first, &t.last);
        int64_t n = copies ? end - q : 1, first, last;
        if (!copies)
          for (; q + n < end; ++n) {
            a.seen(p, q + n, &first, &last);
            if (first != t.first || last != t.last) break;
          }
        const int64_t count = (n + kBlockRows - 1) / kBlockRows;
        for (int64_t i = 0; i < count; ++i) {
          const int64_t begin = q + n * i / count, stop = q + n * (i + 1) / count;
          t.to = p.start + begin * a.out_step, t.from = begin * a.in_step, t.count = stop - begin;
          t.first = t.last = 0;
          for (int64_t j = begin; j < stop; ++j) {
            a.seen(p, j, &first, &last);
            if (first == last) continue;
            t.first = t.first < t.last ? std::min(t.first, first) : first, t.last = std::max(t.last, last);
          }
          all.push_back(t);
        }
        q += n;
      }
  }

  // Rows of what is read, of one image and group: in pixel, or copied.
  struct Rows {
    const T* data;  // pixel 0 of row 0
    int64_t pixel, row, plane, low[3] = {0, 0, 0};
    const T* at(int64_t d, int64_t h, int64_t w) const {
      return data + (d - low[0]) * plane + (h - low[1]) * row + (w - low[2]) * pixel;
    }
  };
  Rows in_place(int64_t n, int64_t g) const {
    const int64_t pixel = groups * in, row = in_size[2] * pixel;
    return {x + n * in_size[0] * in_size[1] * row + g * in, pixel, row, in_size[1] * row};
  }
  int64_t copy_size(const int64_t* low, const int64_t* high) const {
    return (high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2]) * in;
  }
  Rows copied(int64_t n, int64_t g, const int64_t* low, const int64_t* high, T* memory) const {
    const Rows from = in_place(n, g);
    const int64_t row = (high[2] - low[2]) * in;
    Rows to{memory, in, row, (high[1] - low[1]) * row, {low[0], low[1], low[2]}};
    const int64_t a = std::clamp<int64_t>(0, low[2], high[2]), b = std::clamp(in_size[2], a, high[2]);
    for (int64_t d = low[0]; d < high[0]; ++d)
      for (int64_t h = low[1]; h < high[1]; ++h, memory += row) {
        std::fill(memory, memory + (a - low[2]) * in, T(0));
        std::fill(memory + (b - low[2]) * in, memory + row, T(0));
        T* at = memory + (a - low[2]) * in;
        const T* source = from.at(d, h, a);
        if (groups == 1) std::memcpy(at, source, static_cast<size_t>((b - a) * in) * sizeof(T));
        else
          for (int64_t i = a; i < b; ++i, at += in, source += from.pixel)
            std::memcpy(at, source, static_cast<size_t>(in) * sizeof(T));
      }
    return to;
  }

  // c = or += the pixels of a tile, at `count` elements from `a` on for each.
  void multiply(int64_t rows, int64_t count, const T* a, int64_t step, const T* b, int64_t width, T* c, int64_t c_step,
                const T* start, typename Vec<T>::Mask last, bool& add) const {
    const BlockFn<T> run = (width > W ? blocks_of<T, 2>(false, true) : blocks_of<T, 1>(false, true))[rows];
    for (int64_t p = 0; p < count; p += kSum, add = true)
      run(std::min(kSum, count - p), a + p, step, b + p * width, width, c, c_step, T(1), add, add ? nullptr : start,
          last);
  }

  // The pixels [q0, q1) of image n, for the channels of a panel.
  void compute(const Rows& from, int64_t n, int64_t g, int64_t panel, const int64_t* q0, const int64_t* q1,
               const std::vector<Tile>& all, const T* packed) const {
    const int64_t width = panel_width(panel), channel = g * out + panel * kPanel, pixel = groups * out;
    const T* filters = packed + (g * padded + panel * kPanel) * sum;
    const T* start = bias ? bias + channel : nullptr;
    const auto last = first_lanes<T>(out - panel * kPanel - (width - W));
    const bool together = from.pixel == in;
    auto row_of = [&](int64_t od, int64_t d, const RowAxis::Phase& pd, int64_t oh, int64_t h,
                      const RowAxis::Phase& ph) {
      int64_t d0, d1, h0, h1;
      axes[0].seen(pd, d, &d0, &d1), axes[1].seen(ph, h, &h0, &h1);
      T* to_row = y + (((n * out_size[0] + od) * out_size[1] + oh) * out_size[2]) * pixel + channel;
      for (const Tile& t : all) {
        T* c = to_row + t.to * pixel;
        const int64_t c_step = axes[2].out_step * pixel;
        bool add = false;
        for (int64_t i = d0; i < d1; ++i)
          for (int64_t j = h0; j < h1; ++j) {
            const RowAxis::Tap &td = axes[0].taps[i], &th = axes[1].taps[j];
            const T* b = filters + ((td.kernel * kernel[1] + th.kernel) * kernel[2]) * in * width;
            const int64_t id = d * axes[0].in_step + td.offset, ih = h * axes[1].in_step + th.offset;
            for (int64_t k = t.first; k < t.last;) {
              int64_t next = k + 1;
              while (together && next < t.last && axes[2].taps[next].offset == axes[2].taps[next - 1].offset + 1)
                ++next;
              multiply(t.count, (next - k) * in, from.at(id, ih, t.from + axes[2].taps[k].offset),
                       axes[2].in_step * from.pixel, b + k * in * width, width, c, c_step, start, last, add);
              k = next;
            }
          }
        if (add) continue;
        for (int64_t r = 0; r < t.count; ++r)
          for (int64_t o = 0; o < std::min(width, out - panel * kPanel); ++o)
            c[r * c_step + o] = start ? start[o] : T(0);
      }
    };
    for (const RowAxis::Phase& pd : axes[0].phases)
      for (int64_t d = q0[0]; d < std::min(q1[0], pd.count); ++d)
        for (const RowAxis::Phase& ph : axes[1].phases)
          for (int64_t h = q0[1]; h < std::min(q1[1], ph.count); ++h)
            row_of(pd.start + d * axes[0].out_step, d, pd, ph.start + h * axes[1].out_step, h, ph);
  }

  void run() {
    plan();
    Scratch<T> packed(groups * padded * sum);
    const int64_t registers = padded / W;
    parallel_for(0, groups * registers, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, sum * W)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t i = first; i < last; ++i) pack(i / registers, i % registers, packed.get());
                 });
    const int64_t deep = axes[0].pixels(), high = axes[1].pixels(), wide = axes[2].pixels();
    const int64_t parts = (batch + images - 1) / images * (images > 1 ? 1 : deep) * down * across;
    const int64_t chunks = std::clamp<int64_t>((kPieces + parts * groups - 1) / (parts * groups), 1, panels);
    const double work = static_cast<double>(images * rows * cols) * static_cast<double>(sum * out) /
                        static_cast<double>(chunks * axes[0].out_step * axes[1].out_step * axes[2].out_step) *
                        static_cast<double>(axes[0].phases.size() * axes[1].phases.size() * axes[2].phases.size());
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(1e6 / (work + 1)));
    parallel_for(0, chunks * groups * parts, grain, [&](int64_t first, int64_t last) {
      Scratch<T> memory;
      int64_t capacity = 0;
      std::vector<Tile> all;
      std::vector<Rows> from;
      for (int64_t i = first; i < last; ++i) {
        int64_t rest = i % parts;
        const int64_t g = i / parts % groups, chunk = i / parts / groups;
        const int64_t q_w = rest % across * cols, q_h = rest / across % down * rows;
        rest = rest / across / down;
        const int64_t q_d = images > 1 ? 0 : rest % deep, n0 = images > 1 ? rest * images : rest / deep,
                      n1 = std::min(batch, n0 + images);
        const int64_t q0[3] = {q_d, q_h, q_w},
                      q1[3] = {images > 1 ? deep : q_d + 1, std::min(high, q_h + rows), std::min(wide, q_w + cols)};
        tiles(q0[2], q1[2], all);
        from.clear();
        if (copies) {
          int64_t low[3], top[3];
          for (int d = 0; d < 3; ++d) axes[d].reach(q0[d], q1[d], low + d, top + d);
          for (int d = 0; d < 2; ++d)
            low[d] = std::clamp<int64_t>(low[d], 0, in_size[d]), top[d] = std::clamp(top[d], low[d], in_size[d]);
          const int64_t size = copy_size(low, top);
          if (capacity < size * (n1 - n0)) memory.reset(capacity = size * (n1 - n0));
          for (int64_t n = n0; n < n1; ++n) from.push_back(copied(n, g, low, top, memory.get() + (n - n0) * size));
        } else {
          for (int64_t n = n0; n < n1; ++n) from.push_back(in_place(n, g));
        }
        for (int64_t p = panels * chunk / chunks; p < panels * (chunk + 1) / chunks; ++p)
          for (int64_t n = n0; n < n1; ++n) compute(from[n - n0], n, g, p, q0, q1, all, packed.get());
      }
    });
  }
};

template <class T> void run_rows(const ConvShape& s, T* y, const T* x, const T* w, const T* bias, bool input) {
  RowConv<T> r{};
  r.batch = s.batch, r.groups = s.groups;
  r.in = (input ? s.out_channels : s.in_channels) / s.groups,
  r.out = (input ? s.in_channels : s.out_channels) / s.groups;
  r.panels = (r.out + r.kPanel - 1) / r.kPanel;
  r.x = x, r.y = y, r.w = w, r.bias = bias;
  for (int d = 0; d < 3; ++d) {
    r.axes[d] = input ? RowAxis::input(s, d) : RowAxis::forward(s, d);
    r.in_size[d] = input ? s.out[d] : s.in[d], r.out_size[d] = input ? s.in[d] : s.out[d], r.kernel[d] = s.kernel[d];
  }
  const int64_t taps = s.taps(), width = s.kernel[2];
  // Taps of a row of filters are packed in the order of what they read.
  std::vector<int64_t> rank(width, -1);
  auto met = static_cast<int64_t>(r.axes[2].taps.size());
  for (int64_t i = 0; i < met; ++i) rank[r.axes[2].taps[i].kernel] = i;
  for (int64_t& i : rank)
    if (i < 0) i = met++;  // meets no pixel
  auto pixel = [&](int64_t t) { return (t / width * width + rank[t % width]) * r.in; };
  r.group_step = r.in * r.out * taps;
  if (input) {
    r.outer = r.in, r.outer_step = r.out * taps, r.columns = taps;
    r.lane_step = s.filters_last ? 1 : taps, r.column_step = s.filters_last ? r.out : 1;
    for (int64_t t = 0; t < taps; ++t) r.to.push_back(static_cast<int32_t>(pixel(t)));
  } else {
    r.outer = 1, r.outer_step = 0, r.columns = r.in * taps, r.lane_step = r.columns, r.column_step = 1;
    for (int64_t i = 0; i < r.columns; ++i)
      r.to.push_back(static_cast<int32_t>(s.filters_last ? pixel(i / r.in) + i % r.in : pixel(i % taps) + i / taps));
  }
  r.run();
}

}  // namespace

bool nhwc_gemm_applicable(const ConvShape& s) {
  if (!available() || s.in_channels / s.groups == 0 || s.out_channels / s.groups == 0 || s.batch == 0 ||
      s.in_plane() == 0 || s.out_plane() == 0)
    return false;
  return s.in_channels * s.taps() <= (int64_t{1} << 30) && s.out_channels * s.taps() <= (int64_t{1} << 30);
}
bool nhwc_gemm_profitable(const ConvShape& s, bool input, int lanes) {
  const int64_t in = (input ? s.out_channels : s.in_channels) / s.groups,
                out = (input ? s.in_channels : s.out_channels) / s.groups;
  // Lanes left over, which cost least beside what strides cost the other ways; sums too short for a block.
  const bool steps = s.stride[0] * s.stride[1] * s.stride[2] > 1;
  const int64_t padded = (out + lanes - 1) / lanes * lanes;
  return (steps ? padded < 2 * out : 3 * padded < 4 * out) && in * s.kernel[2] >= (input ? 4 : 8);
}
template <class T> void nhwc_gemm_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias) {
  run_rows(s, y, x, w, bias, false);
}
template <class T> void nhwc_gemm_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w, const T* bias) {
  run_rows(s, dx, dy, w, bias, true);
}
template void nhwc_gemm_forward(const ConvShape&, float*, const float*, const float*, const float*);
template void nhwc_gemm_forward(const ConvShape&, double*, const double*, const double*, const double*);
template void nhwc_gemm_dgrad(const ConvShape&, float*, const float*, const float*, const float*);
template void nhwc_gemm_dgrad(const ConvShape&, double*, const double*, const double*, const double*);

}  // namespace rl::avx512::conv
#else
namespace rl::avx512::conv {
bool nhwc_gemm_applicable(const ConvShape&) { return false; }
bool nhwc_gemm_profitable(const ConvShape&, bool, int) { return false; }
template <class T> void nhwc_gemm_forward(const ConvShape&, T*, const T*, const T*, const T*) {}
template <class T> void nhwc_gemm_dgrad(const ConvShape&, T*, const T*, const T*, const T*) {}
template void nhwc_gemm_forward(const ConvShape&, float*, const float*, const float*, const float*);
template void nhwc_gemm_forward(const ConvShape&, double*, const double*, const double*, const double*);
template void nhwc_gemm_dgrad(const ConvShape&, float*, const float*, const float*, const float*);
template void nhwc_gemm_dgrad(const ConvShape&, double*, const double*, const double*, const double*);
}  // namespace rl::avx512::conv
#endif
