// A tape: the kernel calls of one run of a function, as data, and what else the run did to tensors. Running it does all
// of that again, on the tensors of another call.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/node.h"
#include "backend/backend.h"
#include "base/generator.h"
#include "tensor/tensor.h"

namespace rl::compiler {

// Whose memory a kernel works on.
enum class SlotKind : uint8_t {
  Input,      // of an argument: another storage in each call
  State,      // of a tensor that the function found: the same storage in each call
  Grad,       // of the gradient that a leaf had when the function began
  Temporary,  // made and freed by the function: part of the arena
  Fresh,      // made by the function and kept by somebody: a storage of its own in each call
};
struct Slot {
  SlotKind kind;
  int index;                  // of the tensor: in the inputs, or in the state; of a Grad, of its leaf
  int64_t bytes;              // of the whole storage
  char* base = nullptr;       // State: its address
  int64_t offset = 0;         // Temporary: from the start of the arena
  int first = -1, last = -1;  // the steps that use it
};

// A pointer in the arguments of a step: `offset` bytes into a slot.
struct Pointer {
  char** at;
  int slot;
  int64_t offset;
  int step;
};

struct Step {
  void (*call)(const Step&);  // calls `kernel` with what lies at `arguments`
  void (*kernel)();
  char* arguments;
};

// An elementwise step as it was recorded, which passes can join with others.
struct PointwiseStep {
  int step;
  Loop loop;
  const View* operands;
  int count;
  const LoopParams* params;
  int cost;
};

// A value that the host took from memory, or that a kernel gave back, was another one when the tape was made.
struct Mismatch {};

// A tensor that the function made, or one that it had and gave back.
struct Made {
  int input = -1, state = -1, grad_of = -1;  // the tensor itself: an argument, state, or the gradient of a leaf
  int slot = -1;
  Ints sizes, strides;
  int64_t offset = 0;
  DType dtype = DType::Float32;
  bool requires_grad = false, inference = false, wrapped_number = false;
  uint32_t version = 0, output_nr = 0;
  Edge history;        // the node that made it, which backward has been through
  Tensor cut;          // carries why there is no history
  int shares = -1;     // counts writes with this tensor of the state and inputs (see Tape::tensor)
  int base = -1;       // ... and is a view of it,
  int made_base = -1;  // or of this one that was made
  ViewOrigin origin = ViewOrigin::Plain;
};

// What happened to the gradient of a leaf by the end of a segment: it became this one (in `made`), or none (-1).
struct GradEffect {
  int leaf, made;
};
struct Writes {
  int tensor;    // see Tape::tensor
  bool to_grad;  // not the tensor, but its gradient
  uint32_t count;
  Site site;
  const char* op;
};

// The steps between two calls of Python: first come the steps, then what they did is made visible, then the call.
struct Segment {
  int end;
  std::vector<GradEffect> grads;
  std::vector<Writes> writes;
  PyObject *object = nullptr, *method = nullptr;  // object.method(), owned; null after the last segment
  bool grad_mode = true;                          // of that call
};

struct Tape {
  std::vector<Step> steps;
  std::vector<Slot> slots;
  std::vector<Pointer> pointers;
  std::vector<Segment> segments;
  std::vector<PointwiseStep> pointwise;
  std::vector<Made> made;
  std::vector<int> outputs;         // in `made`
  std::vector<Tensor> state;        // what the function found, and what is known of each
  std::vector<int> leaves;          // tensors (see `tensor`) whose gradients are followed
  std::vector<bool> had_grad;       // of each leaf
  std::vector<Ints> grad_geometry;  // of each leaf's gradient that a step uses: sizes, then strides
  // Steps up to this one can fail, and what they have done by then can be undone: these slots are written to before it,
  // and these generators drawn from.
  int guarded = 0;
  std::vector<int> undo_slots;
  std::vector<Generator*> generators;
  // Of the inputs: which earlier one has the same storage, and how many bytes further on; which state has it. Else -1.
  std::vector<int> same_input, same_state;
  std::vector<int64_t> distance;
  std::vector<Storage*> state_storages;  // sorted
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<char*> bound;        // of each slot: the address in its pointers
  std::vector<int> first_pointer;  // of each slot, in `pointers`; and their number
  char* arena = nullptr;
  int64_t arena_bytes = 0, temporary_bytes = 0;
  int inputs = 0, fused_steps = 0, fused_groups = 0;
  bool running = false;

  Tape() = default;
  Tape(const Tape&) = delete;
  ~Tape();

  // Inputs are 0, 1, ..., and then comes the state.
  const Tensor& tensor(int i, const Tensor* given) const { return i < inputs ? given[i] : state[i - inputs]; }
  // Memory for arguments of steps, aligned for anything.
  char* buffer(size_t bytes);
  // Gives each temporary its address, once all steps are there.
  void plan();
  // Whether storages are shared, and gradients there, as when the tape was made.
  bool fits(const Tensor* given) const;
  // Does it all again. False, with nothing changed, if a value is not what it was; an Error as from the ops, whose
  // effects up to there stay if it is not one of those that `undo` is made for. Then nothing has changed either.
  bool run(const Tensor* given, std::vector<Tensor>& results);

 private:
  void bind(const Tensor* given, std::vector<Storage*>& fresh);
  void steps_until(size_t& at, int end);
  const Tensor& make(int i, const Tensor* given, const std::vector<Storage*>& fresh, std::vector<Tensor>& done);
  void show(const Segment& s, const Tensor* given, const std::vector<Storage*>& fresh, std::vector<Tensor>& done);
  char* chunk_ = nullptr;
  size_t left_ = 0;
};

// Joins successive elementwise steps over the same elements into programs. Before plan().
void fuse(Tape& tape);

}  // namespace rl::compiler
