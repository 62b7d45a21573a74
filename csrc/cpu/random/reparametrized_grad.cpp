// How a sample moves with the parameters of its distribution: -(d cdf / d alpha) / pdf at the sample, the implicit
// reparametrisation of gamma and Dirichlet samples. Series near the ends, saddle point expansions for large parameters
// (Rice), rational fits in logarithms between; all in double.
#include <cmath>
#include <limits>

#include "base/check.h"
#include "cpu/random/sample.h"

namespace rl::cpu {
namespace {

template <int n> double polynomial(double x, const double (&ascending)[n]) {
  double y = ascending[n - 1];
  for (int i = n - 2; i >= 0; --i) y = y * x + ascending[i];
  return y;
}
template <class T> T square(T x) { return x * x; }
double zero_for_nan(double x) { return std::isnan(x) ? 0 : x; }

// The derivative of log gamma: shifted up by psi(x) = psi(x + 1) - 1 / x, then the asymptotic series; x > 0 here.
double digamma(double x) {
  static constexpr double kSeries[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                       1.0 / 132, -691.0 / 32760, 1.0 / 12};
  if (x == 0) return std::numeric_limits<double>::infinity();
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  double shift = 0;
  for (; x < 10; x += 1) shift -= 1 / x;
  double z = 1 / square(x);
  return shift + std::log(x) - 0.5 / x - z * polynomial(z, kSeries);
}

// Gamma(alpha) at small x: the power series of the incomplete gamma function.
double gamma_series(double alpha, double x) {
  double term = 1, denominator = alpha, sum = term / denominator, sum_squared = term / square(denominator);
  for (int i = 1; i <= 5; ++i) {
    term *= -x / i;
    denominator += 1;
    sum += term / denominator;
    sum_squared += term / square(denominator);
  }
  double power = std::pow(x, alpha), pdf = std::pow(x, alpha - 1) * std::exp(-x), cdf = power * sum;
  double cdf_by_alpha = (std::log(x) - digamma(alpha)) * cdf - power * sum_squared;
  return zero_for_nan(-cdf_by_alpha / pdf);
}

// Gamma(alpha) for large alpha; the expansion is singular at x = alpha, around which a polynomial takes over.
double gamma_saddle(double alpha, double x) {
  if (0.9 * alpha <= x && x <= 1.1 * alpha) {
    double first = 1 + 24 * alpha * (1 + 12 * alpha);
    double second = 1440 * square(alpha) + 6 * x * (53 - 120 * x) - 65 * square(x) / alpha + alpha * (107 + 3600 * x);
    return first * second / (1244160 * square(square(alpha)));
  }
  double scale = std::sqrt(8 * alpha), log_ratio = std::log(x / alpha);
  double power = std::pow(x - alpha - alpha * log_ratio, -1.5);
  double sum = scale / (alpha - x) + (x < alpha ? -power : power);
  double term = log_ratio * sum - std::sqrt(2 / alpha) * (alpha + x) / square(alpha - x);
  double stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha));
  return -stirling * x * term / scale;
}

double gamma_fit(double alpha, double x) {
  // [power of log(x / alpha)][power of log(alpha)], numerator and denominator.
  static constexpr double kTop[3][4] = {{0.16009398, -0.094634809, 0.025146376, -0.0030648343},
                                        {0.53487893, 0.1298071, 0.065735949, -0.0015649758},
                                        {0.040121004, -0.0065914022, -0.0026286047, -0.0013441777}};
  static constexpr double kBottom[3][4] = {{1, 0.32668115, 0.10406089, 0.0014179084},
                                           {0.16639465, 0.020070113, -0.0035938915, -0.00058392623},
                                           {0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07}};
  double u = std::log(x / alpha), v = std::log(alpha);
  auto at = [&](const double (&c)[3][4]) {
    return polynomial(v, c[0]) + u * (polynomial(v, c[1]) + u * polynomial(v, c[2]));
  };
  return std::exp(at(kTop) / at(kBottom));
}

double gamma_gradient(double alpha, double x) {
  if (x < 0.8) return gamma_series(alpha, x);
  return alpha > 8 ? gamma_saddle(alpha, x) : gamma_fit(alpha, x);
}

// Beta(alpha, beta) at x near 0, by alpha and by beta: Taylor series.
double beta_by_alpha_series(double x, double alpha, double beta) {
  double factor = digamma(alpha) - digamma(alpha + beta) - std::log(x);
  double term = 1, sum = (factor + 1 / alpha) / alpha;
  for (int i = 1; i <= 10; ++i) {
    term *= (i - beta) * x / i;
    sum += term / (alpha + i) * (factor + 1 / (alpha + i));
  }
  return zero_for_nan(x * std::pow(1 - x, -beta) * sum);
}
double beta_by_beta_series(double x, double alpha, double beta) {
  double factor = digamma(alpha + beta) - digamma(beta);
  double term = 1, product = 1, derivative = 0, sum = factor / alpha;
  for (int i = 1; i <= 8; ++i) {
    term *= -x / i;
    derivative = derivative * (beta - i) + product;
    product *= beta - i;
    sum += term / (alpha + i) * (derivative + factor * product);
  }
  return zero_for_nan(-std::pow(1 - x, 1 - beta) * sum);
}

// Beta(alpha, beta) by alpha, both large; again a polynomial around the singularity at the mean.
double beta_saddle(double x, double alpha, double beta) {
  double total = alpha + beta, mean = alpha / total, deviation = std::sqrt(alpha * beta / (total + 1)) / total;
  if (std::fabs(x - mean) <= 0.1 * deviation) {
    double by_alpha[] = {47 * x * square(square(beta)), (43 + 20 * (16 + 27 * beta) * x) * beta * square(beta),
                         3 * (59 + 180 * beta - 90 * x) * square(beta), (453 + 1620 * beta * (1 - x) - 455 * x) * beta,
                         8 * (1 - x) * (135 * beta - 11)};
    double top = (1 + 12 * alpha) * (1 + 12 * beta) / square(total);
    double bottom = 12960 * alpha * square(alpha) * square(beta) * (1 + 12 * total);
    return top / (1 - x) * polynomial(alpha, by_alpha) / bottom;
  }
  auto stirling = [](double a) { return 1 + 1 / (12 * a) + 1 / (288 * a * a); };
  double correction = stirling(alpha) * stirling(beta) / stirling(total);
  double distance = alpha * (x - 1) + beta * x;
  double first = (2 * square(alpha) * (x - 1) + alpha * beta * (x - 1) - x * square(beta)) /
                 (std::sqrt(2 * alpha / beta) * std::pow(total, 1.5) * square(distance));
  double half_log = 0.5 * std::log(alpha / (total * x));
  double second = std::sqrt(8 * alpha * beta / total) / distance;
  double power = std::pow(beta * std::log(beta / (total * (1 - x))) + alpha * std::log(alpha / (total * x)), -1.5);
  double sum = first + half_log * (second + (x < mean ? power : -power));
  return correction * -x / std::sqrt(2 * alpha * beta / total) * sum;
}

double beta_fit(double x, double alpha, double total) {
  // [numerator, denominator][power of u][power of a][power of b]
  static constexpr double kFit[2][3][3][4] = {
      {{{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
        {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
        {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
       {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
        {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
        {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
       {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
        {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
        {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}},
      {{{1, -0.02924021934, -0.04438342661, 0.007285809825},
        {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
        {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
       {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
        {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
        {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
       {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
        {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
        {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}},
  };
  double u = std::log(x), a = std::log(alpha) - u, b = std::log(total) - a;
  auto at = [&](const double (&c)[3][3][4]) {
    double by_u[3];
    for (int i = 0; i < 3; ++i)
      by_u[i] = polynomial(b, c[i][0]) + a * (polynomial(b, c[i][1]) + a * polynomial(b, c[i][2]));
    return polynomial(u, by_u);
  };
  return at(kFit[0]) / at(kFit[1]) * x * (digamma(total) - digamma(alpha)) / (total - alpha);
}

// Divided by 1 - x, which is what a component of a Dirichlet sample needs.
double dirichlet_gradient(double x, double alpha, double total) {
  double beta = total - alpha, boundary = total * x * (1 - x);
  if (x <= 0.5 && boundary < 2.5) return beta_by_alpha_series(x, alpha, beta);
  if (x >= 0.5 && boundary < 0.75) return -beta_by_beta_series(1 - x, beta, alpha);
  if (alpha > 6 && beta > 6) return beta_saddle(x, alpha, beta);
  return beta_fit(x, alpha, total);
}

template <class F> void visit(DType dtype, const char* op, F&& f) {
  if (dtype == DType::Float32) return f(type_tag<float>{});
  if (dtype == DType::Float64) return f(type_tag<double>{});
  fail(ErrorKind::NotImplemented, op, ": no kernel for ", info(dtype).name);
}

}  // namespace

void gamma_grad(const View& out, const View& alpha, const View& sample) {
  visit(out.dtype, "_standard_gamma_grad", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0, n = out.numel(); i < n; ++i)
      out.as<T>()[i] = static_cast<T>(gamma_gradient(alpha.as<T>()[i], sample.as<T>()[i]));
  });
}

void dirichlet_grad(const View& out, const View& sample, const View& alpha, const View& total) {
  visit(out.dtype, "_dirichlet_grad", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0, n = out.numel(); i < n; ++i)
      out.as<T>()[i] = static_cast<T>(dirichlet_gradient(sample.as<T>()[i], alpha.as<T>()[i], total.as<T>()[i]));
  });
}

}  // namespace rl::cpu
