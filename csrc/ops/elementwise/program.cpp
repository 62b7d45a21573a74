#include "ops/elementwise/program.h"

#include "schema/registry.h"

namespace rl::ops {

bool Writer::is(int value, double x) const {
  const Term* term = to.term(value);
  return term && !term->op && term->number == x;
}
int Writer::put(const char* op, int a, int b, int c) {
  const Kernel* kernel = kernel_of(op);
  CHECK(kernel, Runtime, "a derivative asks for the kernel of ", op, ", which registers none");
  return put(*kernel, a, b, c);
}
int Writer::add(int a, int b) { return is(a, 0) ? b : is(b, 0) ? a : put("add", a, b); }
int Writer::sub(int a, int b) { return is(b, 0) ? a : put("sub", a, b); }
int Writer::mul(int a, int b) { return is(a, 1) ? b : is(b, 1) ? a : put("mul", a, b); }
int Writer::power(int a, double exponent) {
  if (exponent == 0) return number(1);
  if (exponent == 1) return a;
  if (exponent == 2) return square(a);
  if (exponent == 3) return mul(square(a), a);
  return put("pow", a, number(exponent));
}

int Program::add(const Term& term) {
  terms_.push_back(term);
  return values() - 1;
}

void Program::finish() {
  std::vector<int> renumbered(static_cast<size_t>(values()), -1);
  for (int r : results_) renumbered[r] = 0;
  for (int v = values() - 1; v >= inputs_; --v) {
    if (renumbered[v] < 0 || !term(v)->op) continue;
    for (int i = 0; i < term(v)->op->operands; ++i) renumbered[term(v)->of[i]] = 0;
  }
  std::vector<Term> kept;
  for (int v = 0; v < values(); ++v) {
    if (v >= inputs_ && renumbered[v] < 0) continue;
    renumbered[v] = v < inputs_ ? v : inputs_ + static_cast<int>(kept.size());
    if (v < inputs_) continue;
    Term t = *term(v);
    for (int i = 0; t.op && i < t.op->operands; ++i) t.of[i] = renumbered[t.of[i]];
    kept.push_back(t);
  }
  for (int& r : results_) r = renumbered[r];
  terms_ = std::move(kept);
  sends_to_.assign(values(), false);
  for (int r : results_) sends_to_[r] = true;
  for (int v = values() - 1; v >= inputs_; --v)
    for (int i = 0; sends_to_[v] && term(v)->op && i < term(v)->op->operands; ++i)
      if (term(v)->op->sends(i)) sends_to_[term(v)->of[i]] = true;
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
  std::vector<int> renumbered(values()), gradient(values(), -1);  // in the program that is made
  Bits leads(values(), false);                                    // to an input that is wanted
  for (int v = 0; v < values(); ++v) {
    renumbered[v] = v;
    const Term* t = term(v);
    if (!t) {
      leads[v] = wanted[v];
      continue;
    }
    Term copy = *t;
    for (int i = 0; t->op && i < t->op->operands; ++i) {
      copy.of[i] = renumbered[t->of[i]];
      if (t->op->sends(i) && leads[t->of[i]]) leads[v] = true;
    }
    renumbered[v] = -1;
    for (int64_t k = 0; k < kept.size(); ++k)
      if (kept[k] == v) renumbered[v] = inputs_ + gradients + static_cast<int>(k);
    if (renumbered[v] >= 0) continue;
    const bool power = t->op && t->op->op == Pointwise::Pow;
    renumbered[v] = power ? w.power(copy.of[0], term(t->of[1])->number) : made->add(copy);
  }
  auto receive = [&](int v, int dy) { gradient[v] = gradient[v] < 0 ? dy : w.add(gradient[v], dy); };
  for (int i = 0; i < gradients; ++i) receive(results_[i], inputs_ + i);
  for (int v = values() - 1; v >= inputs_; --v) {
    if (gradient[v] < 0 || !leads[v]) continue;
    Term t = *term(v);
    for (int i = 0; i < t.op->operands; ++i) t.of[i] = renumbered[t.of[i]];
    for (int i = 0; i < t.op->operands; ++i)
      if (const int of = term(v)->of[i]; t.op->sends(i) && leads[of]) {
        Writer writer{*made, i, t.of[0], t.of[1], t.of[2], renumbered[v], gradient[v]};
        receive(of, t.op->gradient(writer));
      }
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
