#include "ops/fused.h"

#include <algorithm>
#include <cmath>

#include "autograd/record.h"
#include "backend/backend.h"
#include "ops/ops.h"
#include "ops/pointwise.h"

namespace rl::ops {

bool fold(Pointwise op, double a, double b, double& y) {
  switch (op) {
    case Pointwise::Add: y = a + b; return true;
    case Pointwise::Sub: y = a - b; return true;
    case Pointwise::Mul: y = a * b; return true;
    case Pointwise::Div: y = a / b; return true;
    case Pointwise::Neg: y = -a; return true;
    case Pointwise::Pow: y = std::pow(a, b); return true;
    case Pointwise::Square: y = a * a; return true;
    case Pointwise::Sqrt: y = std::sqrt(a); return true;
    default: return false;
  }
}

namespace {

// Where the values of a program are while it runs.
struct Places {
  struct Value {
    bool is_number = false;
    double number = 0;
    int place = -1;     // of the operands, or behind them, of the registers
    int last_use = -1;  // the value computed from it last
  };
  const Program& program;
  SmallVector<Value, 24> values;
  SmallVector<View, 12> operands;
  SmallVector<LoopScalar, 12> numbers;  // what operands that are numbers point to
  SmallVector<int, 12> register_bytes;
  SmallVector<int, 12> free_registers;

  explicit Places(const Program& p) : program(p), values(p.values()) {
    numbers.reserve(p.values());
    for (int v = p.inputs(); v < p.values(); ++v)
      for (int i = 0; p.term(v)->op && i < p.term(v)->op->operands; ++i) values[p.term(v)->of[i]].last_use = v;
  }
  int take_register(int bytes) {
    for (int64_t i = 0; i < free_registers.size(); ++i) {
      int r = free_registers[i];
      if (register_bytes[r] != bytes) continue;
      free_registers.erase(i);
      return r;
    }
    register_bytes.push_back(bytes);
    return static_cast<int>(register_bytes.size()) - 1;
  }
  // The operand that holds a number.
  int place_number(double x, DType type, IntSpan sizes, const Ints& no_strides) {
    numbers.push_back({});
    write_operand(numbers.back().bytes, Scalar(x), type);
    operands.push_back(
        {numbers.back().bytes, sizes.data(), no_strides.data(), static_cast<int32_t>(sizes.size()), type});
    return static_cast<int>(operands.size()) - 1;
  }
};

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

Tensors compute(const Program& program, Span<Value> inputs, bool recorded) {
  NoGrad raw;
  Ints sizes;
  const Tensor* lead = nullptr;
  bool same = true;
  for (const Value& v : inputs) {
    if (!v.is_tensor()) continue;
    same = same && (!lead || v.tensor.sizes() == lead->sizes()) && v.tensor.is_contiguous();
    sizes = lead ? broadcast_sizes(sizes, v.tensor.sizes()) : Ints(v.tensor.sizes());
    if (!lead) lead = &v.tensor;
  }
  const DType type = lead->dtype();
  const int bytes = static_cast<int>(itemsize(type));
  const Ints no_strides(sizes.size(), 0);
  Places places(program);

  // Numbers, and what is computed from numbers alone.
  for (int v = 0; v < program.values(); ++v) {
    Places::Value& value = places.values[v];
    const Term* term = program.term(v);
    if (!term) {
      value.is_number = !inputs[v].is_tensor();
      if (value.is_number) value.number = inputs[v].number.to_double();
    } else if (!term->op) {
      value.is_number = true;
      value.number = term->number;
    } else {
      const Places::Value &a = places.values[term->of[0]], &b = places.values[term->of[term->op->operands > 1 ? 1 : 0]];
      value.is_number = a.is_number && b.is_number && fold(term->op->op, a.number, b.number, value.number);
    }
  }
  // The results that are computed come first among the operands.
  Tensors results(static_cast<int64_t>(program.results().size()));
  for (int64_t i = 0; i < results.size(); ++i) {
    const int v = program.results()[i];
    Places::Value& value = places.values[v];
    if (value.is_number) {
      results[i] = full(sizes, Scalar(value.number), type, lead->device());
    } else if (v < program.inputs()) {
      const Tensor& t = inputs[v].tensor;
      results[i] = same_as(t.sizes() == IntSpan(sizes) ? t : expand(t, sizes), recorded);
    } else if (value.place >= 0) {
      for (int64_t k = 0; k < i; ++k)
        if (program.results()[k] == v) results[i] = same_as(results[k], recorded);
    } else {
      results[i] = empty(sizes, type, lead->device());
      value.place = static_cast<int>(places.operands.size());
      value.last_use = program.values();
      places.operands.push_back(results[i].view());
    }
  }
  if (places.operands.empty()) return results;
  Tensors read;
  SmallVector<Ints, 8> strides;  // of the operands that are read
  read.reserve(inputs.size()), strides.reserve(inputs.size());
  for (int v = 0; v < program.inputs(); ++v) {
    if (places.values[v].is_number || places.values[v].last_use < 0) continue;
    read.push_back(same ? inputs[v].tensor : readable(inputs[v].tensor, sizes));
    const Tensor& t = read.back();
    View view = t.view();
    if (!same) {
      strides.push_back(broadcast_strides(t, sizes));
      view = {t.data(), sizes.data(), strides.back().data(), static_cast<int32_t>(sizes.size()), type};
    }
    places.values[v].place = static_cast<int>(places.operands.size());
    places.operands.push_back(view);
  }

  // The steps. Registers are numbered from 0 here, and behind the operands when these are all known.
  constexpr int kRegister = 1 << 20;
  SmallVector<ProgramStep, 12> steps;
  int cost = 0;
  for (int v = program.inputs(); v < program.values(); ++v) {
    Places::Value& value = places.values[v];
    if (value.is_number) continue;
    const Term& term = *program.term(v);
    ProgramStep step{};
    step.loop = g_cpu->pointwise->loop(term.op->op, type);
    CHECK(step.loop, Runtime, term.op->name, " has no loop for ", info(type).name);
    cost += term.op->cost;
    const bool clamps = term.op->op == Pointwise::Clamp;
    if (term.op->op == Pointwise::Add || term.op->op == Pointwise::Sub) write_compute(step.params.s0, Scalar(1), type);
    if (clamps) {
      write_compute(step.params.s0, Scalar(places.values[term.of[1]].number), type);
      write_compute(step.params.s1, Scalar(places.values[term.of[2]].number), type);
    }
    const int read_values = clamps ? 1 : term.op->operands;
    step.count = 1 + read_values;
    for (int i = 0; i < read_values; ++i) {
      Places::Value& from = places.values[term.of[i]];
      if (from.place < 0) from.place = places.place_number(from.number, type, sizes, no_strides);
      step.values[i + 1] = from.place;
    }
    if (value.place < 0) value.place = kRegister + places.take_register(term.op->is_bool ? 1 : bytes);
    step.values[0] = value.place;
    for (int i = 0; i < read_values; ++i) {
      const int of = term.of[i], place = places.values[of].place;
      if (place >= kRegister && places.values[of].last_use == v && !places.free_registers.contains(place - kRegister))
        places.free_registers.push_back(place - kRegister);
    }
    // A number over a tensor is the number times its reciprocal, as for the operator.
    if (term.op->op == Pointwise::Div && places.values[term.of[0]].is_number) {
      ProgramStep reciprocal = step;
      reciprocal.loop = g_cpu->pointwise->loop(Pointwise::Reciprocal, type);
      reciprocal.count = 2;
      reciprocal.values[1] = step.values[2];
      steps.push_back(reciprocal);
      step.loop = g_cpu->pointwise->loop(Pointwise::Mul, type);
      step.values[2] = step.values[1];
      step.values[1] = step.values[0];
    }
    steps.push_back(step);
  }
  const int count = static_cast<int>(places.operands.size());
  for (ProgramStep& step : steps)
    for (int i = 0; i < step.count; ++i)
      if (step.values[i] >= kRegister) step.values[i] += count - kRegister;
  g_cpu->pointwise->run_program(steps, places.operands, places.register_bytes, cost);
  return results;
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
