#include "ops/elementwise/program.h"

#include <cstring>

namespace rl::ops {
namespace {

constexpr ProgramOp kOps[] = {
    {"add", Pointwise::Add, 2, 1},
    {"sub", Pointwise::Sub, 2, 1},
    {"mul", Pointwise::Mul, 2, 1},
    {"div", Pointwise::Div, 2, 2},
    {"pow", Pointwise::Pow, 2, 16},
    {"neg", Pointwise::Neg, 1, 1},
    {"abs", Pointwise::Abs, 1, 1},
    {"sign", Pointwise::Sign, 1, 1},
    {"square", Pointwise::Square, 1, 1},
    {"reciprocal", Pointwise::Reciprocal, 1, 2},
    {"sqrt", Pointwise::Sqrt, 1, 2},
    {"rsqrt", Pointwise::Rsqrt, 1, 2},
    {"exp", Pointwise::Exp, 1, 8},
    {"expm1", Pointwise::Expm1, 1, 8},
    {"log", Pointwise::Log, 1, 8},
    {"log1p", Pointwise::Log1p, 1, 8},
    {"sin", Pointwise::Sin, 1, 8},
    {"cos", Pointwise::Cos, 1, 8},
    {"tanh", Pointwise::Tanh, 1, 8},
    {"sigmoid", Pointwise::Sigmoid, 1, 8},
    {"erf", Pointwise::Erf, 1, 8},
    {"relu", Pointwise::Relu, 1, 1},
    {"relu_grad", Pointwise::ReluGrad, 2, 1},
    {"silu", Pointwise::Silu, 1, 8},
    {"gelu", Pointwise::Gelu, 1, 8},
    {"maximum", Pointwise::Maximum, 2, 1},
    {"minimum", Pointwise::Minimum, 2, 1},
    {"clamp", Pointwise::Clamp, 3, 1},
    {"where", Pointwise::Where, 3, 1},
    {"eq", Pointwise::Eq, 2, 1, true},
    {"ne", Pointwise::Ne, 2, 1, true},
    {"lt", Pointwise::Lt, 2, 1, true},
    {"le", Pointwise::Le, 2, 1, true},
    {"gt", Pointwise::Gt, 2, 1, true},
    {"ge", Pointwise::Ge, 2, 1, true},
};

// Writes the terms of a derivative, and leaves out what is plainly 0 or 1.
struct Writer {
  Program& to;

  int number(double x) { return to.add({nullptr, {}, x}); }
  bool is(int value, double x) const {
    const Term* term = to.term(value);
    return term && !term->op && term->number == x;
  }
  int put(const char* name, int a, int b = 0, int c = 0) { return to.add({program_op(name), {a, b, c}}); }
  int add(int a, int b) { return is(a, 0) ? b : is(b, 0) ? a : put("add", a, b); }
  int sub(int a, int b) { return is(b, 0) ? a : put("sub", a, b); }
  int mul(int a, int b) { return is(a, 1) ? b : is(b, 1) ? a : put("mul", a, b); }
  int times(double factor, int a) { return mul(a, number(factor)); }
  int neg(int a) { return put("neg", a); }
  int only_where(int mask, int a) { return put("where", mask, a, number(0)); }
  int except_where(int mask, int a) { return put("where", mask, number(0), a); }
  int power(int a, double exponent) {
    if (exponent == 0) return number(1);
    if (exponent == 1) return a;
    if (exponent == 2) return put("square", a);
    if (exponent == 3) return mul(put("square", a), a);
    return put("pow", a, number(exponent));
  }
};

// What an operand's gradient is, given the gradient dy of the value y of a term.
int slope(Writer w, const Term& term, int operand, int y, int dy) {
  const int a = term.of[0], b = term.of[1];
  switch (term.op->op) {
    case Pointwise::Add: return dy;
    case Pointwise::Sub: return operand == 0 ? dy : w.neg(dy);
    case Pointwise::Mul: return w.mul(dy, operand == 0 ? b : a);
    case Pointwise::Div: return operand == 0 ? w.put("div", dy, b) : w.neg(w.mul(dy, w.put("div", y, b)));
    case Pointwise::Pow: {  // the exponent is a number
      const double exponent = w.to.term(b)->number;
      return exponent == 0 ? w.number(0) : w.mul(dy, w.times(exponent, w.power(a, exponent - 1)));
    }
    case Pointwise::Neg: return w.neg(dy);
    case Pointwise::Abs: return w.mul(dy, w.put("sign", a));
    case Pointwise::Square: return w.mul(dy, w.times(2, a));
    case Pointwise::Reciprocal: return w.neg(w.mul(dy, w.put("square", y)));
    case Pointwise::Sqrt: return w.put("div", dy, w.times(2, y));
    case Pointwise::Rsqrt: return w.mul(w.times(-0.5, dy), w.mul(w.put("square", y), y));
    case Pointwise::Exp: return w.mul(dy, y);
    case Pointwise::Expm1: return w.mul(dy, w.add(y, w.number(1)));
    case Pointwise::Log: return w.put("div", dy, a);
    case Pointwise::Log1p: return w.put("div", dy, w.add(a, w.number(1)));
    case Pointwise::Sin: return w.mul(dy, w.put("cos", a));
    case Pointwise::Cos: return w.neg(w.mul(dy, w.put("sin", a)));
    case Pointwise::Tanh: return w.mul(dy, w.sub(w.number(1), w.put("square", y)));
    case Pointwise::Sigmoid: return w.mul(dy, w.mul(y, w.sub(w.number(1), y)));
    case Pointwise::Erf: return w.mul(dy, w.times(1.12837916709551257390, w.put("exp", w.neg(w.put("square", a)))));
    case Pointwise::Relu: return w.put("relu_grad", dy, y);
    case Pointwise::ReluGrad: return operand == 0 ? w.put("relu_grad", dy, b) : w.number(0);
    case Pointwise::Silu: {  // s (1 + a (1 - s))
      const int s = w.put("sigmoid", a), rest = w.sub(w.number(1), s);
      return w.mul(dy, w.mul(s, w.add(w.mul(a, rest), w.number(1))));
    }
    case Pointwise::Gelu: {  // the normal distribution's integral, and a times its density
      const int integral = w.times(0.5, w.add(w.put("erf", w.times(0.70710678118654752440, a)), w.number(1)));
      const int density = w.times(0.39894228040143267794, w.put("exp", w.times(-0.5, w.put("square", a))));
      return w.mul(dy, w.add(integral, w.mul(a, density)));
    }
    case Pointwise::Maximum:
    case Pointwise::Minimum: {  // equal operands share it
      const int shared = w.put("where", w.put("eq", a, b), w.times(0.5, dy), dy);
      const bool below = (term.op->op == Pointwise::Maximum) == (operand == 0);
      return w.except_where(w.put(below ? "lt" : "gt", a, b), shared);
    }
    case Pointwise::Clamp: return w.only_where(w.put("ge", a, b), w.only_where(w.put("le", a, term.of[2]), dy));
    case Pointwise::Where: return operand == 1 ? w.only_where(a, dy) : w.except_where(a, dy);
    default: return w.number(0);  // flat: sign
  }
}

// Operands that a gradient goes to: not masks, not the bounds of clamp, not exponents.
bool sends(const Term& term, int operand) {
  switch (term.op->op) {
    case Pointwise::Where: return operand > 0;
    case Pointwise::Clamp:
    case Pointwise::Pow: return operand == 0;
    default: return !term.op->is_bool;
  }
}

}  // namespace

const ProgramOp* program_op(const char* name) {
  for (const ProgramOp& op : kOps)
    if (std::strcmp(op.name, name) == 0) return &op;
  return nullptr;
}

int Program::add(const Term& term) {
  terms_.push_back(term);
  return values() - 1;
}

void Program::finish() {
  std::vector<int> place(static_cast<size_t>(values()), -1);
  for (int r : results_) place[r] = 0;
  for (int v = values() - 1; v >= inputs_; --v) {
    if (place[v] < 0 || !term(v)->op) continue;
    for (int i = 0; i < term(v)->op->operands; ++i) place[term(v)->of[i]] = 0;
  }
  std::vector<Term> kept;
  for (int v = 0; v < values(); ++v) {
    if (v >= inputs_ && place[v] < 0) continue;
    place[v] = v < inputs_ ? v : inputs_ + static_cast<int>(kept.size());
    if (v < inputs_) continue;
    Term t = *term(v);
    for (int i = 0; t.op && i < t.op->operands; ++i) t.of[i] = place[t.of[i]];
    kept.push_back(t);
  }
  for (int& r : results_) r = place[r];
  terms_ = std::move(kept);
  sends_to_.assign(values(), false);
  for (int r : results_) sends_to_[r] = true;
  for (int v = values() - 1; v >= inputs_; --v)
    for (int i = 0; sends_to_[v] && term(v)->op && i < term(v)->op->operands; ++i)
      if (sends(*term(v), i)) sends_to_[term(v)->of[i]] = true;
  sends_to_.resize(inputs_);
}

Program::Bits Program::reads(int value) const {
  Bits used(static_cast<size_t>(values()), false);
  used[value] = true;
  for (int v = value; v >= inputs_; --v)
    for (int i = 0; used[v] && term(v)->op && i < term(v)->op->operands; ++i) used[term(v)->of[i]] = true;
  used.resize(static_cast<size_t>(inputs_));
  return used;
}

std::shared_ptr<const Program> Program::derivative(const Bits& wanted, Span<int> kept) const {
  const int gradients = static_cast<int>(results_.size());
  auto made = std::make_shared<Program>(inputs_ + gradients + static_cast<int>(kept.size()));
  Writer w{*made};
  std::vector<int> place(values()), gradient(values(), -1);  // in the program that is made
  Bits leads(values(), false);                               // to an input that is wanted
  for (int v = 0; v < values(); ++v) {
    place[v] = v;
    const Term* t = term(v);
    if (!t) {
      leads[v] = wanted[v];
      continue;
    }
    Term copy = *t;
    for (int i = 0; t->op && i < t->op->operands; ++i) {
      copy.of[i] = place[t->of[i]];
      if (sends(*t, i) && leads[t->of[i]]) leads[v] = true;
    }
    place[v] = -1;
    for (int64_t k = 0; k < kept.size(); ++k)
      if (kept[k] == v) place[v] = inputs_ + gradients + static_cast<int>(k);
    if (place[v] >= 0) continue;
    const bool power = t->op && t->op->op == Pointwise::Pow;
    place[v] = power ? w.power(copy.of[0], term(t->of[1])->number) : made->add(copy);
  }
  auto receive = [&](int v, int dy) { gradient[v] = gradient[v] < 0 ? dy : w.add(gradient[v], dy); };
  for (int i = 0; i < gradients; ++i) receive(results_[i], inputs_ + i);
  for (int v = values() - 1; v >= inputs_; --v) {
    if (gradient[v] < 0 || !leads[v]) continue;
    Term t = *term(v);
    for (int i = 0; i < t.op->operands; ++i) t.of[i] = place[t.of[i]];
    for (int i = 0; i < t.op->operands; ++i)
      if (const int of = term(v)->of[i]; sends(t, i) && leads[of]) receive(of, slope(w, t, i, place[v], gradient[v]));
  }
  for (int v = 0; v < inputs_; ++v)
    if (wanted[v]) made->add_result(gradient[v] < 0 ? w.number(0) : gradient[v]);
  made->finish();
  return made;
}

const Program::Recorded& Program::recorded(const Bits& wanted) const {
  constexpr int kCostly = 8;  // of a value that is rather read than computed again
  std::lock_guard guard(lock_);
  for (const auto& r : recorded_)
    if (r->wanted == wanted) return *r;
  auto made = std::make_unique<Recorded>();
  made->wanted = wanted;
  made->again = derivative(wanted);
  made->reads.resize(inputs_);
  auto reads = [&](const Program& p) {
    Bits all(p.inputs(), false);
    for (int r : p.results()) {
      const Bits of = p.reads(r);
      for (size_t i = 0; i < all.size(); ++i) all[i] = all[i] || of[i];
    }
    return all;
  };
  std::vector<int> costly, kept;
  for (int v = inputs_; v < values(); ++v)
    if (term(v)->op && term(v)->op->cost >= kCostly) costly.push_back(v);
  const Bits used = reads(*derivative(wanted, costly));
  for (size_t i = 0; i < costly.size(); ++i)
    if (used[inputs_ + results_.size() + i]) kept.push_back(costly[i]);
  made->derivative = derivative(wanted, kept);
  auto forward = std::make_shared<Program>(inputs_);
  forward->terms_ = terms_;
  forward->results_ = results_;
  for (int v : kept) {
    size_t at = 0;
    while (at < forward->results_.size() && forward->results_[at] != v) ++at;
    if (at == forward->results_.size()) forward->results_.push_back(v);
    made->kept.push_back(static_cast<int>(at));
  }
  made->forward = forward;
  const Bits pure = reads(*made->again), lean = reads(*made->derivative);
  for (int v = 0; v < inputs_; ++v) made->reads[v] = pure[v] || lean[v];
  recorded_.push_back(std::move(made));
  return *recorded_.back();
}

}  // namespace rl::ops
