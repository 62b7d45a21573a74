#include "ops/elementwise/fused.h"

#include <algorithm>
#include <cmath>

#include "autograd/record.h"
#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"

namespace rl::ops {

namespace {

// A tensor as the kernel reads it best: row-major.
Tensor readable(const Tensor& t, IntSpan sizes) {
  Ints strides = broadcast_strides(t, sizes);
  int64_t outer = -1;
  for (int64_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1 || strides[d] == 0) continue;
    if (outer >= 0 && strides[d] > outer) return contiguous(t);
    outer = strides[d];
  }
  return t;
}

// A result that is an input, or another result: in the graph it is a tensor of its own.
Tensor same_as(const Tensor& t, bool recorded) { return recorded ? clone(t) : t; }

// One run of a program: where its values are, and the steps that compute them.
class Run {
 public:
  Run(const Program& program, Span<Value> inputs) : program_(program), inputs_(inputs), values_(program.values()) {
    const Tensor* lead = nullptr;
    for (const Value& v : inputs) {
      if (!v.is_tensor()) continue;
      alike_ = alike_ && (!lead || v.tensor.sizes() == lead->sizes()) && v.tensor.is_contiguous();
      sizes_ = lead ? broadcast_sizes(sizes_, v.tensor.sizes()) : Ints(v.tensor.sizes());
      if (!lead) lead = &v.tensor;
    }
    type_ = lead->dtype();
    device_ = lead->device();
    no_strides_.resize(sizes_.size(), 0);
    numbers_.reserve(program.values());
    for (int v = program.inputs(); v < program.values(); ++v)
      for (int i = 0; program.term(v)->op && i < program.term(v)->op->operands; ++i)
        values_[program.term(v)->of[i]].last_use = v;
  }

  Tensors results(bool recorded) {
    find_numbers();
    Tensors made = bind_results(recorded);
    if (operands_.empty()) return made;
    bind_inputs();
    for (int v = program_.inputs(); v < program_.values(); ++v)
      if (!values_[v].is_number) add_step(v);
    const int count = static_cast<int>(operands_.size());
    for (ProgramStep& step : steps_)
      for (int i = 0; i < step.count; ++i)
        if (step.values[i] >= kRegister) step.values[i] += count - kRegister;
    backend(device_).pointwise->run_program(steps_, operands_, register_bytes_, cost_);
    return made;
  }

 private:
  static constexpr int kRegister = 1 << 20;  // registers are numbered from here until all operands are known
  struct Known {
    bool is_number = false;
    double number = 0;
    int slot = -1;      // among the operands and registers
    int last_use = -1;  // the value that is computed from it last
  };

  // Scalars, and what is computed from scalars alone.
  void find_numbers() {
    for (int v = 0; v < program_.values(); ++v) {
      Known& value = values_[v];
      const Term* term = program_.term(v);
      if (!term) {
        value.is_number = !inputs_[v].is_tensor();
        if (value.is_number) value.number = inputs_[v].number.to_double();
      } else if (!term->op) {
        value.is_number = true;
        value.number = term->number;
      } else {
        const Known &a = values_[term->of[0]], &b = values_[term->of[term->op->operands > 1 ? 1 : 0]];
        value.is_number = a.is_number && b.is_number && term->op->number;
        if (value.is_number) value.number = term->op->number(a.number, b.number);
      }
    }
  }
  // The results, of which those that are computed come first among the operands.
  Tensors bind_results(bool recorded) {
    Tensors results(static_cast<int64_t>(program_.results().size()));
    for (int64_t i = 0; i < results.size(); ++i) {
      const int v = program_.results()[i];
      Known& value = values_[v];
      if (value.is_number) {
        results[i] = full(sizes_, Scalar(value.number), type_, device_);
      } else if (v < program_.inputs()) {
        const Tensor& t = inputs_[v].tensor;
        results[i] = same_as(t.sizes() == IntSpan(sizes_) ? t : expand(t, sizes_), recorded);
      } else if (value.slot >= 0) {
        for (int64_t k = 0; k < i; ++k)
          if (program_.results()[k] == v) results[i] = same_as(results[k], recorded);
      } else {
        results[i] = empty(sizes_, type_, device_);
        value.last_use = program_.values();
        value.slot = add_operand(results[i].view());
      }
    }
    return results;
  }
  void bind_inputs() {
    read_.reserve(inputs_.size()), strides_.reserve(inputs_.size());
    for (int v = 0; v < program_.inputs(); ++v) {
      if (values_[v].is_number || values_[v].last_use < 0) continue;
      read_.push_back(alike_ ? inputs_[v].tensor : readable(inputs_[v].tensor, sizes_));
      const Tensor& t = read_.back();
      if (!alike_) strides_.push_back(broadcast_strides(t, sizes_));
      values_[v].slot = add_operand(alike_ ? t.view() : view_of(t.memory(), strides_.back()));
    }
  }
  View view_of(void* data, const Ints& strides) const {
    return {data, sizes_.data(), strides.data(), static_cast<int32_t>(sizes_.size()), type_};
  }
  int add_operand(const View& view) {
    operands_.push_back(view);
    return static_cast<int>(operands_.size()) - 1;
  }
  int add_number(double x) {
    numbers_.push_back({});
    write_operand(numbers_.back().bytes, Scalar(x), type_);
    return add_operand(view_of(numbers_.back().bytes, no_strides_));
  }
  int take_register(int bytes) {
    for (int64_t i = 0; i < free_registers_.size(); ++i) {
      const int r = free_registers_[i];
      if (register_bytes_[r] != bytes) continue;
      free_registers_.erase(i);
      return r;
    }
    register_bytes_.push_back(bytes);
    return static_cast<int>(register_bytes_.size()) - 1;
  }
  void add_step(int v) {
    Known& value = values_[v];
    const Term& term = *program_.term(v);
    const Pointwise op = term.op->op;
    ProgramStep step{loop_of(op)};
    cost_ += term.op->cost;
    if (op == Pointwise::Add || op == Pointwise::Sub) write_compute(step.params.s0, Scalar(1), type_);
    if (op == Pointwise::Clamp) {
      write_compute(step.params.s0, Scalar(values_[term.of[1]].number), type_);
      write_compute(step.params.s1, Scalar(values_[term.of[2]].number), type_);
    }
    const int read = op == Pointwise::Clamp ? 1 : term.op->operands;
    step.count = 1 + read;
    for (int i = 0; i < read; ++i) {
      Known& from = values_[term.of[i]];
      if (from.slot < 0) from.slot = add_number(from.number);
      step.values[i + 1] = from.slot;
    }
    if (value.slot < 0)
      value.slot = kRegister + take_register(term.op->is_mask() ? 1 : static_cast<int>(itemsize(type_)));
    step.values[0] = value.slot;
    for (int i = 0; i < read; ++i) {
      const Known& from = values_[term.of[i]];
      if (from.slot >= kRegister && from.last_use == v && !free_registers_.contains(from.slot - kRegister))
        free_registers_.push_back(from.slot - kRegister);
    }
    if (op == Pointwise::Div && values_[term.of[0]].is_number) {
      // A number over a tensor is the number times the reciprocal, as for the operator.
      steps_.push_back({loop_of(Pointwise::Reciprocal), {}, 2, {value.slot, step.values[2]}});
      step.loop = loop_of(Pointwise::Mul);
      step.values[2] = step.values[1];
      step.values[1] = value.slot;
    }
    steps_.push_back(step);
  }
  Loop loop_of(Pointwise op) const {
    Loop loop = backend(device_).pointwise->loop(op, type_);
    CHECK(loop, Runtime, "a program has no loop for ", info(type_).name);
    return loop;
  }

  const Program& program_;
  Span<Value> inputs_;
  Ints sizes_, no_strides_;
  DType type_;
  Device device_;
  bool alike_ = true;  // are all tensors contiguous and of the same sizes?
  SmallVector<Known, 24> values_;
  SmallVector<View, 12> operands_;
  Tensors read_;                         // the tensors of operands that are read
  SmallVector<Ints, 8> strides_;         // theirs, as broadcast
  SmallVector<LoopScalar, 12> numbers_;  // what operands that are scalars point to
  SmallVector<int, 12> register_bytes_, free_registers_;
  SmallVector<ProgramStep, 12> steps_;
  int cost_ = 0;
};

Tensors compute(const Program& program, Span<Value> inputs, bool recorded) {
  NoGrad raw;
  return Run(program, inputs).results(recorded);
}

}  // namespace

// A call on more elements computes again in backward what it would take longer to write and read.
constexpr int64_t kMostKept = 1 << 18;

// fused: y = program(inputs)        dx = the program's derivative, of the inputs and dy
struct FusedBackward : Node {
  static constexpr const char* kName = "FusedBackward0";
  static constexpr bool kUndefinedOk = true, kStacks = true;
  SmallVector<Saved, 2> inputs, kept;
  SmallVector<Scalar, 4> numbers;  // where an input was one
  std::shared_ptr<const Program> program;
  const Program::Recorded* call = nullptr;  // of the program
  Grads backward(const Grads& dy) {
    // A derivative that is recorded in turn must see the inputs.
    const bool from_kept = !kept.empty() && !grad_enabled();
    SmallVector<Value, 8> values;
    for (int64_t i = 0; i < inputs.size(); ++i)
      values.push_back(inputs[i].ever() ? Value(inputs[i].unpack(*this)) : Value(numbers[i]));
    for (const Tensor& d : dy) values.push_back(d.defined() ? Value(d) : Value(0.0));
    for (int64_t i = 0; from_kept && i < kept.size(); ++i) values.push_back(kept[i].unpack(*this));
    Tensors given = fused(from_kept ? call->derivative : call->again, values);
    Grads dx(inputs.size());
    for (int64_t i = 0, k = 0; i < inputs.size(); ++i)
      if (call->wanted[i]) dx[i] = given[k++];
    return dx;
  }
  FIELDS(inputs, kept)
};

Tensors fused(const std::shared_ptr<const Program>& program, Span<Value> inputs) {
  Tensors tensors;
  int64_t most = 0;
  const Program::Bits& reached = program->sends_to();
  for (int64_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back(reached[i] ? inputs[i].tensor : Tensor());
    most = inputs[i].is_tensor() ? std::max(most, inputs[i].tensor.numel()) : most;
  }
  if (!will_record(tensors)) return compute(*program, inputs, false);
  Program::Bits wanted(inputs.size());
  for (int64_t i = 0; i < inputs.size(); ++i) wanted[i] = tensors[i].defined() && tensors[i].requires_grad();
  const Program::Recorded& call = program->recorded(wanted);
  const bool keeps = most <= kMostKept;
  Tensors all = compute(keeps ? *call.forward : *program, inputs, true), results;
  for (size_t i = 0; i < program->results().size(); ++i) results.push_back(all[i]);
  record_all<FusedBackward>(results, tensors, [&](auto& n) {
    n.program = program;
    n.call = &call;
    for (int64_t i = 0; i < inputs.size(); ++i) {
      n.inputs.push_back(inputs[i].is_tensor() && call.reads[i] ? save(inputs[i].tensor) : Saved());
      n.numbers.push_back(inputs[i].is_tensor() ? Scalar(0.0) : inputs[i].number);
    }
    for (size_t i = 0; keeps && i < call.kept.size(); ++i) {
      const int at = call.kept[i];
      n.kept.push_back(at < results.size() ? save_output(n, all[at], at) : save(all[at]));
    }
  });
  return results;
}

}  // namespace rl::ops
