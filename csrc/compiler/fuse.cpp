// Elementwise steps that follow each other, over the same elements, become one program: what goes from one to the next
// stays in cache, and what nothing else reads is never in memory. Few elements go through their loop without a driver.
#include <algorithm>
#include <unordered_map>

#include "compiler/tape.h"

namespace rl::compiler {
namespace {

constexpr int64_t kFewest = 4096;  // elements: for fewer a program costs more than it saves
constexpr int64_t kDirect = 2048;  // elements that one thread takes in any case
constexpr int kMostOperands = 16;

// Operands that are row-major, or one element for all: then sizes do not matter, only their number.
bool is_flat(const View& v, bool& repeated) {
  repeated = true;
  for (int d = 0; d < v.ndim; ++d) repeated = repeated && (v.strides[d] == 0 || v.sizes[d] == 1);
  if (repeated && v.numel() == 1) repeated = false;
  return repeated || v.contiguous();
}
bool is_flat(const PointwiseStep& s) {
  for (int i = 0; i < s.count; ++i) {
    bool repeated;
    if (!is_flat(s.operands[i], repeated) || (i == 0 && repeated)) return false;
  }
  return true;
}

struct Direct {
  Loop loop;
  const LoopParams* params;
  int64_t n;
  char* data[kMaxOperands];
  int64_t strides[kMaxOperands];
};
void run_direct(const Step& s) {
  const auto& d = *reinterpret_cast<Direct*>(s.arguments);
  d.loop(d.data, d.strides, d.n, *d.params);
}

struct Program {
  Span<ProgramStep> steps;
  Span<View> operands;
  Span<int> register_bytes;
  int cost;
};
void run_program(const Step& s) {
  const auto& p = *reinterpret_cast<Program*>(s.arguments);
  reinterpret_cast<decltype(PointwiseKernels::run_program)>(s.kernel)(p.steps, p.operands, p.register_bytes, p.cost);
}

// A value of a group: memory, or a constant.
struct Value {
  const char* constant;  // null for memory
  int slot;
  int64_t offset;
  View view;
  bool repeated, written;
};

class Fuser {
 public:
  explicit Fuser(Tape& tape) : tape_(tape) {
    for (size_t i = 0; i < tape.pointers.size(); ++i) {
      const Pointer& p = tape.pointers[i];
      at_[p.at] = i;
      Slot& s = tape.slots[static_cast<size_t>(p.slot)];
      s.first = s.first < 0 ? p.step : std::min(s.first, p.step);
      s.last = std::max(s.last, p.step);
    }
    dropped_.assign(tape.pointers.size(), false);
    ends_.assign(tape.steps.size() + 1, false);
    for (const Segment& s : tape.segments) ends_[static_cast<size_t>(s.end)] = true;
  }

  void go() {
    std::vector<Step> steps;
    std::vector<int> position(tape_.steps.size() + 1);  // of each old step among the new ones
    size_t next = 0;                                    // in the elementwise steps
    const auto& all = tape_.pointwise;
    for (size_t i = 0; i < tape_.steps.size();) {
      while (next < all.size() && all[next].step < static_cast<int>(i)) ++next;
      size_t taken = 1;
      Step made = tape_.steps[i];
      if (next < all.size() && all[next].step == static_cast<int>(i)) {
        taken = group(next);
        if (taken > 1) made = program(next, taken);
        else if (is_flat(all[next]) && all[next].operands[0].numel() <= kDirect) made = direct(all[next]);
      }
      for (size_t k = 0; k < taken; ++k) position[i + k] = static_cast<int>(steps.size());
      steps.push_back(made);
      i += taken;
    }
    position[tape_.steps.size()] = static_cast<int>(steps.size());
    for (Pointer& p : tape_.pointers) p.step = position[static_cast<size_t>(p.step)];
    for (Segment& s : tape_.segments) s.end = position[static_cast<size_t>(s.end)];
    tape_.guarded = position[static_cast<size_t>(tape_.guarded)];
    std::vector<Pointer> left;
    for (size_t i = 0; i < tape_.pointers.size(); ++i)
      if (i >= dropped_.size() || !dropped_[i]) left.push_back(tape_.pointers[i]);
    tape_.pointers = std::move(left);
    tape_.steps = std::move(steps);
  }

 private:
  Value value_of(const View& v, bool written) {
    Value value{nullptr, -1, 0, v, false, written};
    is_flat(v, value.repeated);
    auto found = at_.find(reinterpret_cast<char* const*>(&v.data));
    if (found == at_.end()) {
      value.constant = static_cast<char*>(v.data);
    } else {
      value.slot = tape_.pointers[found->second].slot;
      value.offset = tape_.pointers[found->second].offset;
    }
    return value;
  }
  static bool same(const Value& a, const Value& b) {
    return a.constant == b.constant && a.slot == b.slot && a.offset == b.offset && a.repeated == b.repeated &&
           a.view.dtype == b.view.dtype;
  }
  // Adds the values of a step; false if they do not go with those that are there: memory that is written to is seen in
  // one way only.
  bool join(const PointwiseStep& s) {
    std::vector<Value> values = values_;
    for (int i = 0; i < s.count; ++i) {
      const Value v = value_of(s.operands[i], i == 0);
      auto known = std::find_if(values.begin(), values.end(), [&](const Value& o) { return same(o, v); });
      for (const Value& o : values)
        if (!o.constant && !v.constant && o.slot == v.slot && !same(o, v) && (o.written || v.written)) return false;
      if (known == values.end()) values.push_back(v);
      else known->written = known->written || v.written;
    }
    if (static_cast<int>(values.size()) > kMostOperands) return false;
    values_ = std::move(values);
    return true;
  }
  static bool suits(const PointwiseStep& s) { return s.count <= 4 && is_flat(s) && s.operands[0].numel() >= kFewest; }

  // How many steps from this one on go together.
  size_t group(size_t first) {
    const auto& all = tape_.pointwise;
    values_.clear();
    if (!suits(all[first]) || !join(all[first])) return 1;
    size_t n = 1;
    for (; first + n < all.size(); ++n) {
      const PointwiseStep& s = all[first + n];
      if (s.step != all[first].step + static_cast<int>(n) || ends_[static_cast<size_t>(s.step)] || !suits(s) ||
          s.operands[0].numel() != all[first].operands[0].numel() || !join(s))
        break;
    }
    return n;
  }

  // Whether only the steps of the group use a value.
  bool is_register(const Value& v, int first, int last) const {
    if (v.constant || v.repeated || !v.written) return false;
    const Slot& s = tape_.slots[static_cast<size_t>(v.slot)];
    return s.kind == SlotKind::Temporary && s.first >= first && s.last <= last && !read_first(v, first, last);
  }
  // ... and none reads it before it is written to.
  bool read_first(const Value& v, int first, int last) const {
    for (const PointwiseStep& s : tape_.pointwise) {
      if (s.step < first || s.step > last) continue;
      for (int i = 1; i < s.count; ++i) {
        auto found = at_.find(reinterpret_cast<char* const*>(&s.operands[i].data));
        if (found != at_.end() && tape_.pointers[found->second].slot == v.slot) return true;
      }
      auto out = at_.find(reinterpret_cast<char* const*>(&s.operands[0].data));
      if (out != at_.end() && tape_.pointers[out->second].slot == v.slot) return false;
    }
    return false;
  }

  // The pointer that stood there stands here now.
  void move(const View& from, char** to) {
    auto found = at_.find(reinterpret_cast<char* const*>(&from.data));
    if (found != at_.end()) tape_.pointers[found->second].at = to;
  }
  void drop(const View& v) {
    auto found = at_.find(reinterpret_cast<char* const*>(&v.data));
    if (found != at_.end()) dropped_[found->second] = true;
  }
  template <class T> T* buffer(size_t n) { return reinterpret_cast<T*>(tape_.buffer(n * sizeof(T))); }

  Step direct(const PointwiseStep& s) {
    auto* d = new (buffer<Direct>(1)) Direct{s.loop, s.params, s.operands[0].numel(), {}, {}};
    for (int i = 0; i < s.count; ++i) {
      bool repeated;
      is_flat(s.operands[i], repeated);
      d->data[i] = static_cast<char*>(s.operands[i].data);
      d->strides[i] = repeated ? 0 : itemsize(s.operands[i].dtype);
      move(s.operands[i], &d->data[i]);
    }
    return {run_direct, nullptr, reinterpret_cast<char*>(d)};
  }

  Step program(size_t first, size_t count) {
    const PointwiseStep* group = &tape_.pointwise[first];
    const int begin = group[0].step, end = begin + static_cast<int>(count) - 1;
    std::vector<int> order;  // the values: results, other operands, registers
    std::vector<int> registers;
    const int n = static_cast<int>(values_.size());
    for (int k = 0; k < n; ++k)
      if (is_register(values_[static_cast<size_t>(k)], begin, end)) registers.push_back(k);
      else if (values_[static_cast<size_t>(k)].written) order.push_back(k);
    for (int k = 0; k < n; ++k)
      if (!values_[static_cast<size_t>(k)].written) order.push_back(k);
    const auto operands = static_cast<int64_t>(order.size()), held = static_cast<int64_t>(registers.size());
    auto* views = buffer<View>(order.size());
    auto* bytes = buffer<int>(registers.size());
    auto* geometry = buffer<int64_t>(3);
    geometry[0] = group[0].operands[0].numel(), geometry[1] = 1, geometry[2] = 0;
    std::vector<int> number(static_cast<size_t>(n));
    for (int64_t i = 0; i < operands; ++i) {
      const Value& v = values_[static_cast<size_t>(order[static_cast<size_t>(i)])];
      number[static_cast<size_t>(order[static_cast<size_t>(i)])] = static_cast<int>(i);
      const bool one = v.repeated || v.view.numel() == 1;
      views[i] = {const_cast<char*>(v.constant), geometry, geometry + (one ? 2 : 1), 1, v.view.dtype};
      if (v.constant) continue;
      tape_.pointers.push_back({reinterpret_cast<char**>(&views[i].data), v.slot, v.offset, begin});
    }
    for (int64_t i = 0; i < held; ++i) {
      const int k = registers[static_cast<size_t>(i)];
      number[static_cast<size_t>(k)] = static_cast<int>(operands + i);
      bytes[i] = static_cast<int>(itemsize(values_[static_cast<size_t>(k)].view.dtype));
    }
    auto* steps = buffer<ProgramStep>(count);
    int cost = 0;
    for (size_t i = 0; i < count; ++i) {
      const PointwiseStep& s = group[i];
      steps[i] = {s.loop, *s.params, s.count, {}};
      cost += s.cost;
      for (int k = 0; k < s.count; ++k) {
        const Value v = value_of(s.operands[k], false);
        const auto at = std::find_if(values_.begin(), values_.end(), [&](const Value& o) { return same(o, v); });
        steps[i].values[k] = number[static_cast<size_t>(at - values_.begin())];
        drop(s.operands[k]);
      }
    }
    tape_.fused_steps += static_cast<int>(count);
    ++tape_.fused_groups;
    auto* p =
        new (buffer<Program>(1)) Program{{steps, static_cast<int64_t>(count)}, {views, operands}, {bytes, held}, cost};
    return {run_program, reinterpret_cast<void (*)()>(backend(Device()).pointwise->run_program),
            reinterpret_cast<char*>(p)};
  }

  Tape& tape_;
  std::unordered_map<char* const*, size_t> at_;  // the pointer that stands somewhere
  std::vector<bool> dropped_, ends_;
  std::vector<Value> values_;
};

}  // namespace

void fuse(Tape& tape) { Fuser(tape).go(); }

}  // namespace rl::compiler
