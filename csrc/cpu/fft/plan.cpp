#include "cpu/fft/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>

#include "base/check.h"
#include "base/interrupt.h"
#include "cpu/elementwise/pointwise.h"
#include "cpu/fft/stages.h"
#include "cpu/fft/stages_avx512.h"
#include "cpu/simd/vec_exp.h"

namespace rl::RL_ISA {

namespace {

// cos and sin of 2 pi k / n, correctly rounded or nearly so, for all k. Of many, each is a product of two that were
// computed: the first of an angle of a multiple of kFine steps, the second of the steps that are left.
class Roots {
 public:
  explicit Roots(uint64_t n) : n_(n) {
    if (n < 4 * kFine) return;
    for (uint64_t k = 0; k <= n / 2; k += kFine) coarse_.push_back(computed(k));
    for (uint64_t k = 0; k < kFine; ++k) fine_.push_back(computed(k));
  }
  Root operator()(uint64_t k) const {
    asks_();  // plans of long signals are made for seconds
    // Reduce to the first octant, where sin and cos lose nothing; `steps` of 2 pi / (4 n) each.
    k %= n_;
    const bool lower = 2 * k > n_;
    if (lower) k = n_ - k;
    const bool left = 4 * k > n_;
    uint64_t steps = left ? 2 * n_ - 4 * k : 4 * k;
    const bool swap = 2 * steps > n_;
    if (swap) steps = n_ - steps;
    Long r = coarse_.empty() ? computed(steps) : multiplied(coarse_[steps / kFine], fine_[steps % kFine]);
    if (swap) std::swap(r.re, r.im);
    const double re = static_cast<double>(r.re), im = static_cast<double>(r.im);
    return {left ? -re : re, lower ? -im : im};
  }

 private:
  static constexpr uint64_t kFine = 1024;
  struct Long {
    long double re, im;
  };
  Long computed(uint64_t steps) const {
    const long double angle =
        1.57079632679489661923132169163975144L * static_cast<long double>(steps) / static_cast<long double>(n_);
    return {cosl(angle), sinl(angle)};
  }
  static Long multiplied(const Long& a, const Long& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  uint64_t n_;
  std::vector<Long> coarse_, fine_;
  mutable AsksSeldom asks_;
};

constexpr int kLargestRadix = fft::kMostOdd;

std::vector<int> factors(int64_t n) {
  std::vector<int> result;
  // Few long stages read and write less; the butterfly of 8 needs the 32 registers that AVX-512 processors have.
  while (has_avx512() && n % 8 == 0 && n % 32 != 16) result.push_back(8), n /= 8;
  while (n % 4 == 0) result.push_back(4), n /= 4;
  if (n % 2 == 0) result.push_back(2), n /= 2;
  for (int r = 3; r <= kLargestRadix; r += 2)
    while (n % r == 0) result.push_back(r), n /= r;
  if (n != 1) result.clear();
  return result;
}

// The length from `least` on that transforms fastest, of the small radices: passes over the signal, by what they cost.
int64_t quick_length(int64_t least) {
  int64_t best = 0;
  double lowest = 0;
  for (int64_t n = least; best == 0 || n <= least + least / 4; ++n) {
    int64_t left = n;
    for (int r : {2, 3, 5})
      while (left % r == 0) left /= r;
    if (left != 1) continue;
    double cost = 0;
    for (int r : factors(n)) cost += r == 8 ? 1.4 : r == 4 ? 1.1 : r == 2 ? 1.0 : r == 3 ? 1.2 : 1.6;
    cost *= static_cast<double>(n);
    if (best == 0 || cost < lowest) best = n, lowest = cost;
  }
  return best;
}

using simd::One;
template <class T> using Many = simd::Vec<T, kVecBytes>;

template <int R, class T>
[[gnu::flatten]] void stage(int64_t m, int64_t s, const T* xr, const T* xi, T* yr, T* yi, const T* w) {
  fft::stage_with<R, Many<T>, One<T>>(m, s, xr, xi, yr, yi, w);
}

template <class T> [[gnu::flatten]] void stage_any(int r, int64_t m, int64_t s, const T* xr, const T* xi, T* yr, T* yi,
                                                   const T* w, const T* roots) {
  const int64_t even = s / kLanes<T> * kLanes<T>;
  fft::stage_odd<Many<T>>(r, 0, even, m, s, xr, xi, yr, yi, w, roots);
  fft::stage_odd<One<T>>(r, even, s, m, s, xr, xi, yr, yi, w, roots);
}

template <class T> void push_root(std::vector<T>& v, const Roots& roots, uint64_t k) {
  const Root r = roots(k);
  v.push_back(static_cast<T>(r.re));
  v.push_back(static_cast<T>(-r.im));
}

// A factor of n near its root, of the radices of n; 1 where there is none of some size.
int64_t middle_factor(int64_t n, const std::vector<int>& radices) {
  int64_t factor = 1;
  for (int r : radices)
    if (factor * r * factor * r <= 2 * n) factor *= r;
  return factor >= 32 && n / factor <= 16 * factor ? factor : 1;
}

// The same where n has a large prime factor: its divisor nearest to the root.
int64_t middle_divisor(int64_t n) {
  std::vector<int64_t> divisors{1};
  auto with = [&](int64_t p) {
    const size_t before = divisors.size();
    for (size_t i = 0; i < before; ++i) divisors.push_back(divisors[i] * p);
  };
  int64_t left = n;
  for (int64_t p = 2; p * p <= left; p += p == 2 ? 1 : 2)
    while (left % p == 0) with(p), left /= p;
  if (left > 1) with(left);
  int64_t best = 1;
  for (int64_t d : divisors)
    if (d <= n / d && d > best) best = d;
  return best >= 32 && n / best <= 16 * best ? best : 1;
}

// whole: a plan for signals themselves, which may become two transforms if they are long; not for parts of another
// plan. half: it may also be half of real ones.
template <class T> std::shared_ptr<FftPlan<T>> make_plan(int64_t n, bool whole = false, bool half = false);

template <class T> void make_long(FftPlan<T>& plan, int64_t rows) {
  using Plan = FftPlan<T>;
  const int64_t n = plan.n;
  plan.first = make_plan<T>(rows);
  plan.second = make_plan<T>(n / rows);
  const Roots roots(static_cast<uint64_t>(n));
  auto conjugate = [&](int64_t k) {
    const Root r = roots(static_cast<uint64_t>(k));
    return Root{r.re, -r.im};
  };
  for (int64_t k = 0; k < n; k += Plan::kFine) plan.coarse.push_back(conjugate(k));
  for (int64_t k = 0; k < Plan::kFine; ++k) plan.fine.push_back(conjugate(k));
  plan.side_twiddles.resize(static_cast<size_t>(rows * 2 * Plan::kSide));
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t l = 0; l < Plan::kSide; ++l) {
      Root r = plan.twiddle(k * l % n);
      plan.side_twiddles[static_cast<size_t>((2 * k) * Plan::kSide + l)] = static_cast<T>(r.re);
      plan.side_twiddles[static_cast<size_t>((2 * k + 1) * Plan::kSide + l)] = static_cast<T>(r.im);
    }
}

// twiddle factors: those of twice the length
template <class T> void make_short(cpu::FftShort<T>& short_plan, const Roots& roots) {
  const int64_t n = short_plan.n;
  short_plan.twiddles.resize(4 * static_cast<size_t>(n));
  for (int64_t at = 0; at < n; ++at) {
    const Root r =
        roots(2 * static_cast<uint64_t>(short_plan.outer * (at / short_plan.second) * (at % short_plan.second)));
    T *re = &short_plan.twiddles[2 * at], *im = re + 2 * n;
    re[0] = re[1] = static_cast<T>(r.re);
    im[0] = im[1] = static_cast<T>(-r.im);
  }
  if (short_plan.outer == 1) return;
  for (int64_t at = 0; at < short_plan.length(); ++at)
    push_root(short_plan.outer_twiddles, roots, 2 * static_cast<uint64_t>(at / n * (at % n)));
}

template <class T> std::shared_ptr<FftPlan<T>> make_plan(int64_t n, bool whole, bool half) {
  auto plan = std::make_shared<FftPlan<T>>();
  plan->n = n;
  plan->radices = factors(n);
  if (n == 1) plan->radices.clear();
  const Roots roots(2 * static_cast<uint64_t>(n));
  if (half)
    for (int64_t k = 0; k <= n; ++k) push_root(plan->half_twiddles, roots, k);
  if (whole && has_avx512() && avx512::fft_short_shape(plan->short_plan, n)) make_short(plan->short_plan, roots);
  if (whole && n >= FftPlan<T>::kLong) {
    const int64_t rows = plan->radices.empty() ? middle_divisor(n) : middle_factor(n, plan->radices);
    if (rows > 1) {
      make_long(*plan, rows);
      return plan;
    }
  }
  int64_t left = n;
  for (int r : plan->radices) {
    int64_t m = left / r;
    for (int64_t p = 0; p < m; ++p)
      for (int u = 1; u < r; ++u) push_root(plan->twiddles, roots, static_cast<uint64_t>(2 * (n / left) * p) * u);
    if (r > 7)
      for (int k = 0; k < r; ++k) push_root(plan->roots, roots, 2 * static_cast<uint64_t>(n / r) * k);
    left = m;
  }
  if (plan->radices.empty() && n > 1) {
    const int64_t length = quick_length(2 * n - 1);
    plan->chirp = make_plan<T>(length, whole);
    auto square = [&](int64_t k) {
      return static_cast<uint64_t>(static_cast<unsigned __int128>(k) * static_cast<unsigned __int128>(k) % (2 * n));
    };
    for (int64_t k = 0; k < n; ++k) push_root(plan->chirp_factor, roots, square(k));
    // The spectrum of the conjugate chirp, wrapped around, transformed once in double.
    auto exact = make_plan<double>(length);
    std::vector<double> x(2 * length, 0.0), y(2 * length);
    for (int64_t k = 0; k < n; ++k) {
      const Root r = roots(square(k));
      x[k] = r.re, x[length + k] = r.im;
      if (k) x[length - k] = r.re, x[2 * length - k] = r.im;
    }
    const double* z = exact->run(x.data(), y.data(), 1);
    plan->chirp_spectrum.resize(2 * length);
    for (int64_t k = 0; k < 2 * length; ++k)
      plan->chirp_spectrum[k] = static_cast<T>(z[k] / static_cast<double>(length));
  }
  return plan;
}

}  // namespace

template <class T> size_t FftPlan<T>::bytes() const {
  return sizeof(T) *
             (twiddles.size() + roots.size() + chirp_factor.size() + chirp_spectrum.size() + half_twiddles.size() +
              side_twiddles.size() + short_plan.twiddles.size() + short_plan.outer_twiddles.size()) +
         sizeof(Root) * (coarse.size() + fine.size()) + (first ? first->bytes() + second->bytes() : 0) +
         (chirp ? chirp->bytes() : 0);
}

template <class T> T* FftPlan<T>::run(T* x, T* y, int64_t lanes) const {
  if (chirp) {
    int64_t length = chirp->n;
    T *re = x, *im = x + length * lanes;
    auto rotate = [&](T* xr, T* xi) {
      for (int64_t k = 0; k < n; ++k) {
        T wr = chirp_factor[2 * k], wi = chirp_factor[2 * k + 1];
#pragma GCC ivdep
        for (int64_t q = k * lanes; q < (k + 1) * lanes; ++q) {
          T a = xr[q], b = xi[q];
          xr[q] = a * wr - b * wi, xi[q] = a * wi + b * wr;
        }
      }
    };
    rotate(re, im);
    size_t tail = static_cast<size_t>((length - n) * lanes) * sizeof(T);
    std::memset(static_cast<void*>(re + n * lanes), 0, tail);
    std::memset(static_cast<void*>(im + n * lanes), 0, tail);
    T* z = chirp->run(x, y, lanes);
    T *zr = z, *zi = z + length * lanes;
    for (int64_t k = 0; k < length; ++k) {
      T wr = chirp_spectrum[k], wi = chirp_spectrum[length + k];
      // the inverse transform is the forward one with real and imaginary parts exchanged
#pragma GCC ivdep
      for (int64_t q = k * lanes; q < (k + 1) * lanes; ++q) {
        T a = zr[q], b = zi[q];
        zi[q] = a * wr - b * wi, zr[q] = a * wi + b * wr;
      }
    }
    T* back = chirp->run(z, z == x ? y : x, lanes);
    T *br = back, *bi = back + length * lanes;
#pragma GCC ivdep
    for (int64_t q = 0; q < n * lanes; ++q) std::swap(br[q], bi[q]);
    rotate(br, bi);
    return back;
  }
  int64_t left = n, s = lanes, half = n * lanes;
  AsksSeldom asks;
  const T *w = twiddles.data(), *root = roots.data();
  for (int r : radices) {
    int64_t m = left / r;
    if (r <= 8 && r != 6 && has_avx512()) avx512::fft_stage(r, m, s, x, y, half, w);
    else switch (r) {
        case 2: stage<2>(m, s, x, x + half, y, y + half, w); break;
        case 3: stage<3>(m, s, x, x + half, y, y + half, w); break;
        case 4: stage<4>(m, s, x, x + half, y, y + half, w); break;
        case 5: stage<5>(m, s, x, x + half, y, y + half, w); break;
        case 7: stage<7>(m, s, x, x + half, y, y + half, w); break;
        default:
          if (has_avx512()) avx512::fft_stage_odd(r, m, s, x, y, half, w, root);
          else stage_any(r, m, s, x, x + half, y, y + half, w, root);
          root += 2 * r;
      }
    w += 2 * m * (r - 1);
    left = m;
    s *= r;
    asks(half);
    std::swap(x, y);
  }
  return x;
}

namespace {

constexpr size_t kStoreBytes = size_t{64} << 20;
constexpr size_t kStoreCount = 64;
constexpr size_t kRecentBytes = size_t{64} << 10;

// The most recently used plans, newest first.
template <class T> struct Store {
  std::mutex lock;
  std::vector<std::shared_ptr<const FftPlan<T>>> plans;
};
template <class T> Store<T>& store() {
  static Store<T>* s = new Store<T>;  // never destroyed: threads may outlive the end of main
  return *s;
}

template <class T> std::shared_ptr<const FftPlan<T>> stored_plan(int64_t n) {
  CHECK(n <= (int64_t{1} << 40), Runtime, "fft: a line of ", n, " values is too long");
  Store<T>& kept = store<T>();
  {
    std::lock_guard guard(kept.lock);
    for (size_t i = 0; i < kept.plans.size(); ++i)
      if (kept.plans[i]->n == n) {
        std::rotate(kept.plans.begin(), kept.plans.begin() + i, kept.plans.begin() + i + 1);
        return kept.plans[0];
      }
  }
  std::shared_ptr<const FftPlan<T>> plan = make_plan<T>(n, true, true);
  if (plan->bytes() > kStoreBytes / 2) return plan;
  std::lock_guard guard(kept.lock);
  kept.plans.insert(kept.plans.begin(), plan);
  size_t total = 0, keep = 0;
  for (; keep < kept.plans.size() && keep < kStoreCount && total + kept.plans[keep]->bytes() <= kStoreBytes; ++keep)
    total += kept.plans[keep]->bytes();
  kept.plans.resize(std::max<size_t>(keep, 1));
  return plan;
}

}  // namespace

template <class T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  // Threads that transform many small parts do not wait for one another: each keeps the small plans it used last.
  // Behind a pointer: the memory that every thread has for a library's variables is short.
  using Recent = std::array<std::shared_ptr<const FftPlan<T>>, 8>;
  thread_local std::unique_ptr<Recent> recent;
  if (!recent) recent = std::make_unique<Recent>();
  auto& mine = (*recent)[static_cast<uint64_t>(n) * 0x9e3779b97f4a7c15u >> 61];
  if (mine && mine->n == n) return mine;
  auto plan = stored_plan<T>(n);
  if (plan->bytes() <= kRecentBytes) mine = plan;
  return plan;
}

template struct FftPlan<float>;
template struct FftPlan<double>;
template std::shared_ptr<const FftPlan<float>> fft_plan<float>(int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan<double>(int64_t);

}  // namespace rl::RL_ISA
