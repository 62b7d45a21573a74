// Pointwise expressions as programs: several ops that run as one (ops/elementwise/fused.cpp).
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "backend/pointwise.h"

namespace rl::ops {

// What a program can compute, by the name that PyTorch has for it.
struct ProgramOp {
  const char* name;
  Pointwise op;
  int operands;
  int cost;  // of one element, in additions
  bool is_bool = false;
};
const ProgramOp* program_op(const char* name);  // null: there is none

// A value of a program: an op of earlier values, or a number. Inputs are the values 0, 1, ..., terms follow.
struct Term {
  const ProgramOp* op = nullptr;  // null: the number
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

}  // namespace rl::ops
