// Convolutions with one input channel per group: the few products of each output are done in pixel.
#include "cpu/conv/algorithms.h"
#include "cpu/conv/tuning.h"

namespace rl::RL_ISA {

bool depthwise_applicable(const ConvShape& s) {
  return s.in_channels == s.groups && s.groups > 1 && s.in[0] == 1 && s.kernel[0] == 1 && s.padding[0] == 0;
}
bool depthwise_profitable(const ConvShape& s) { return s.out_channels / s.groups <= tuning::kDepthwiseMultiplier; }

namespace {

// f(out row, in row, tap, first, last): for each tap, the runs of output pixels whose tap lies inside the input.
template <class F> void for_taps(const ConvShape& s, int64_t oh, F&& f) {
  for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
    int64_t ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
    if (ih < 0 || ih >= s.in[1]) continue;
    for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
      int64_t a, b;
      inside(s, kw, 0, s.out[2], &a, &b);
      f(ih, kh * s.kernel[2] + kw, kw * s.dilation[2] - s.padding[2], a, b);
    }
  }
}

int64_t plane_grain(const ConvShape& s) {
  return std::max<int64_t>(1, 65536 / std::max<int64_t>(1, s.out_plane() * s.taps()));
}

}  // namespace

template <class T> void depthwise_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias) {
  int64_t per = s.out_channels / s.groups, stride = s.stride[2];
  parallel_for(0, s.batch * s.out_channels, plane_grain(s), [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      int64_t o = t % s.out_channels, n = t / s.out_channels;
      const T* image = x + (n * s.in_channels + o / per) * s.in_plane();
      const T* filter = w + o * s.taps();
      for (int64_t oh = 0; oh < s.out[1]; ++oh) {
        T* __restrict row = y + t * s.out_plane() + oh * s.out[2];
        std::fill(row, row + s.out[2], bias ? bias[o] : T(0));
        for_taps(s, oh, [&](int64_t ih, int64_t tap, int64_t shift, int64_t a, int64_t b) {
          const T* from = image + ih * s.in[2] + shift;
          T f = filter[tap];
          if (stride == 1)
            for (int64_t i = a; i < b; ++i) row[i] += f * from[i];
          else if (stride == 2)
            for (int64_t i = a; i < b; ++i) row[i] += f * from[2 * i];
          else
            for (int64_t i = a; i < b; ++i) row[i] += f * from[i * stride];
        });
      }
    }
  });
}

template <class T> void depthwise_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w) {
  int64_t per = s.out_channels / s.groups, stride = s.stride[2];
  parallel_for(0, s.batch * s.in_channels, plane_grain(s), [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      int64_t c = t % s.in_channels, n = t / s.in_channels;
      T* image = dx + t * s.in_plane();
      std::fill(image, image + s.in_plane(), T(0));
      for (int64_t o = c * per; o < (c + 1) * per; ++o)
        for (int64_t oh = 0; oh < s.out[1]; ++oh) {
          const T* __restrict row = dy + (n * s.out_channels + o) * s.out_plane() + oh * s.out[2];
          for_taps(s, oh, [&](int64_t ih, int64_t tap, int64_t shift, int64_t a, int64_t b) {
            T* to = image + ih * s.in[2] + shift;
            T f = w[o * s.taps() + tap];
            if (stride == 1)
              for (int64_t i = a; i < b; ++i) to[i] += f * row[i];
            else
              for (int64_t i = a; i < b; ++i) to[i * stride] += f * row[i];
          });
        }
    }
  });
}

template <class T> void depthwise_wgrad(const ConvShape& s, T* dw, const T* dy, const T* x) {
  int64_t per = s.out_channels / s.groups, stride = s.stride[2];
  int64_t grain = std::max<int64_t>(1, plane_grain(s) / std::max<int64_t>(1, s.batch));
  parallel_for(0, s.out_channels, grain, [&](int64_t first, int64_t last) {
    for (int64_t o = first; o < last; ++o) {
      T* filter = dw + o * s.taps();
      std::fill(filter, filter + s.taps(), T(0));
      for (int64_t n = 0; n < s.batch; ++n) {
        const T* image = x + (n * s.in_channels + o / per) * s.in_plane();
        for (int64_t oh = 0; oh < s.out[1]; ++oh) {
          const T* row = dy + (n * s.out_channels + o) * s.out_plane() + oh * s.out[2];
          for_taps(s, oh, [&](int64_t ih, int64_t tap, int64_t shift, int64_t a, int64_t b) {
            const T* from = image + ih * s.in[2] + shift;
            T lanes[8] = {};  // eight sums side by side, so that they fill a register
            int64_t i = a;
            for (; i + 8 <= b; i += 8)
              for (int l = 0; l < 8; ++l) lanes[l] += row[i + l] * from[(i + l) * stride];
            for (; i < b; ++i) lanes[0] += row[i] * from[i * stride];
            T sum = 0;
            for (T lane : lanes) sum += lane;
            filter[tap] += sum;
          });
        }
      }
    }
  });
}

#define DEPTHWISE(T)                                                                      \
  template void depthwise_forward<T>(const ConvShape&, T*, const T*, const T*, const T*); \
  template void depthwise_dgrad<T>(const ConvShape&, T*, const T*, const T*);             \
  template void depthwise_wgrad<T>(const ConvShape&, T*, const T*, const T*);
DEPTHWISE(float)
DEPTHWISE(double)

}  // namespace rl::RL_ISA
