// What simd::Vec does, beside the same by plain loops. test_vector.py compiles it for each instruction set; it prints
// how many results differ, and a hash of normal values, which are the same stream on every processor.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cpu/simd/box_muller.h"
#include "cpu/simd/vec_exp.h"

namespace rl::RL_ISA {

template <class T, int kBytes> struct Check {
  using V = simd::Vec<T, kBytes>;
  using Reg = typename V::Reg;
  int wrong = 0;
  T a[V::W], b[V::W], c[V::W];

  template <class F> void same(Reg found, F expected) {
    T lanes[V::W];
    V::store(lanes, found);
    for (int i = 0; i < V::W; ++i) wrong += !(lanes[i] == static_cast<T>(expected(i)));
  }
  template <class F> void lanes_are(unsigned long long found, F expected) {
    for (int i = 0; i < V::W; ++i) wrong += static_cast<bool>(found >> i & 1) != expected(i);
  }
  template <class F> void near(Reg found, F expected) {
    T lanes[V::W];
    V::store(lanes, found);
    for (int i = 0; i < V::W; ++i) wrong += !(std::fabs(lanes[i] - expected(i)) <= 4e-7 * expected(i));
  }

  void parts(int count) {
    const auto mask = V::first(count);
    const Reg x = V::load(a), y = V::load(b);
    same(V::select(mask, x, y), [&](int i) { return i < count ? a[i] : b[i]; });
    same(V::load(a, mask), [&](int i) { return i < count ? a[i] : T(0); });
    same(V::load(a, mask, y), [&](int i) { return i < count ? a[i] : b[i]; });
    T to[V::W];
    V::store(to, y);
    V::store(to, x, mask);
    for (int i = 0; i < V::W; ++i) wrong += to[i] != (i < count ? a[i] : b[i]);
  }
  void comparisons() {
    const Reg x = V::load(a), y = V::load(b);
    same(V::min(x, y), [&](int i) { return a[i] < b[i] ? a[i] : b[i]; });
    same(V::max(x, y), [&](int i) { return a[i] > b[i] ? a[i] : b[i]; });
    lanes_are(V::less(x, y), [&](int i) { return a[i] < b[i]; });
    lanes_are(V::equal(x, y), [&](int i) { return a[i] == b[i]; });
    lanes_are(V::at_most(x, y), [&](int i) { return a[i] <= b[i]; });
    lanes_are(V::not_less(x, y), [&](int i) { return !(a[i] < b[i]); });
    T most = a[0];
    for (T v : a) most = v > most ? v : most;
    wrong += V::largest(x) != most;
  }
  void permutations() {
    const Reg x = V::load(a), y = V::load(b);
    same(simd::permute<[](int lane) { return lane ^ 1; }>(x), [&](int i) { return a[i ^ 1]; });
    same(simd::permute<[](int lane) { return 2 * lane; }>(x, y),
         [&](int i) { return 2 * i < V::W ? a[2 * i] : b[2 * i - V::W]; });
  }
  void floats(int count) {
    const Reg x = V::load(a), size = V::abs(x);
    same(size, [&](int i) { return std::fabs(a[i]); });
    same(V::sqrt(size), [&](int i) { return std::sqrt(std::fabs(a[i])); });
    same(V::round(x), [&](int i) { return std::nearbyint(a[i]); });
    same(V::scale(V::first(count), x, V::load(c)),
         [&](int i) { return i < count ? std::ldexp(a[i], static_cast<int>(c[i])) : 0; });
    near(exp_vec(x), [&](int i) { return std::exp(a[i]); });
    near(exp_below_one(V::zero() - size), [&](int i) { return std::exp(-std::fabs(a[i])); });
    double sum = 0;
    for (T v : a) sum += static_cast<double>(v);
    wrong += std::fabs(static_cast<double>(V::sum(x)) - sum) > 1e-3;
  }
  template <class H> void half() {
    H narrow[V::W];
    V::store(narrow, V::load(a));
    for (int i = 0; i < V::W; ++i) wrong += narrow[i].bits != H(a[i]).bits;
    same(V::load(narrow), [&](int i) { return static_cast<float>(narrow[i]); });
  }
  int run() {
    for (int turn = 0; turn < 200; ++turn) {
      for (int i = 0; i < V::W; ++i) {
        a[i] = static_cast<T>((std::rand() % 2000 - 1000) / T(100));
        b[i] = static_cast<T>((std::rand() % 2000 - 1000) / T(100));
        c[i] = static_cast<T>(std::rand() % 7);
      }
      parts(turn % (V::W + 1));
      comparisons();
      permutations();
      if constexpr (std::is_floating_point_v<T>) floats(turn % (V::W + 1));
      if constexpr (std::is_same_v<T, float>) half<bfloat16>(), half<float16>();
    }
    return wrong;
  }
};

template <class T> int check() { return Check<T, 16>{}.run() + Check<T, 32>{}.run() + Check<T, 64>{}.run(); }

}  // namespace rl::RL_ISA

int main() {
  using namespace rl::RL_ISA;
  float normal[16];
  for (int i = 0; i < 16; ++i) normal[i] = (static_cast<float>(i) + 0.5f) / 17;
  box_muller_16(normal, 0.0f, 1.0f);
  unsigned hash = 0;
  for (float v : normal) {
    unsigned bits;
    std::memcpy(&bits, &v, sizeof bits);
    hash = hash * 31 + bits;
  }
  std::printf("%d %x\n", check<float>() + check<double>() + check<int>(), hash);
}
