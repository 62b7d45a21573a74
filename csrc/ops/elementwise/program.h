// Pointwise expressions as programs: several ops that run as one (ops/elementwise/fused.cpp).
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "schema/kernel.h"

namespace rl::ops {

// A value of a program: an op of earlier values, or a number. Inputs are the values 0, 1, ..., terms follow.
struct Term {
  const Kernel* op = nullptr;  // null: the number
  int of[3] = {};
  double number = 0;
};

class Program {
 public:
  using Bits = std::vector<bool>;  // one for each input
  explicit Program(int inputs) : inputs_(inputs) {}
  int inputs() const { return inputs_; }
  int values() const { return inputs_ + static_cast<int>(terms_.size()); }
  const std::vector<Term>& terms() const { return terms_; }
  const std::vector<int>& results() const { return results_; }
  const Term* term(int value) const { return value < inputs_ ? nullptr : &terms_[value - inputs_]; }

  int add(const Term& term);
  void add_result(int value) { results_.push_back(value); }
  void finish();  // after the last result: leaves out what is not used
  // Which inputs a value is computed from.
  Bits reads(int value) const;

  // Which inputs a gradient comes to: not those that are only compared.
  const Bits& sends_to() const { return sends_to_; }

  // A program that takes the same inputs, then a gradient for each result, then the values of `kept`, and gives the
  // gradients of the inputs that are wanted, in their order.
  std::shared_ptr<const Program> derivative(const Bits& wanted, Span<int> kept = {}) const;

  // What a recorded call computes and keeps: as little as `derivative` needs, which computes all else again; or also
  // the values that cost most, so that it need not.
  struct Recorded {
    Bits wanted;
    std::shared_ptr<const Program> forward;            // the program, with values that are kept as further results
    std::vector<int> kept;                             // by the number of the result of `forward`
    std::shared_ptr<const Program> derivative, again;  // from what is kept, and from the inputs alone
    Bits reads;                                        // the inputs that either reads
  };
  const Recorded& recorded(const Bits& wanted) const;

 private:
  int inputs_;
  std::vector<Term> terms_;
  std::vector<int> results_;
  Bits sends_to_;
  mutable std::mutex lock_;  // of recorded_
  mutable std::vector<std::unique_ptr<Recorded>> recorded_;
};

// Writes the gradient of one operand of a term, as the op's registration says (Kernel::gradient), and leaves out what
// is plainly 0 or 1.
struct Writer {
  Program& to;
  int operand = 0;          // whose gradient is asked for
  int a = 0, b = 0, c = 0;  // the operands
  int y = 0, dy = 0;        // the value of the term, and its gradient

  int number(double x) { return to.add({nullptr, {}, x}); }
  double number_of(int value) const { return to.term(value)->number; }
  int put(const Kernel& op, int a, int b = 0, int c = 0) { return to.add({&op, {a, b, c}}); }
  int put(const char* op, int a, int b = 0, int c = 0);  // a registered op
  int add(int a, int b);
  int sub(int a, int b);
  int mul(int a, int b);
  int div(int a, int b) { return put("div", a, b); }
  int times(double factor, int a) { return mul(a, number(factor)); }
  int neg(int a) { return put("neg", a); }
  int square(int a) { return put("square", a); }
  int only_where(int mask, int a) { return put("where", mask, a, number(0)); }
  int except_where(int mask, int a) { return put("where", mask, number(0), a); }
  int power(int a, double exponent);

 private:
  bool is(int value, double x) const;
};

}  // namespace rl::ops
