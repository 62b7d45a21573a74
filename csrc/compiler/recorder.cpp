#include "compiler/recorder.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "compiler/recording.h"

namespace rl::compiler {
namespace {

Recorder* g_active = nullptr;
thread_local Recorder* t_recorder = nullptr;  // unless it pauses
thread_local Recorder* t_owner = nullptr;     // also then
std::atomic<bool> g_parallel = false;         // a piece of a parallel loop called a kernel

void made(Storage* s) {
  if (t_recorder) t_recorder->made(s);
}
// Also while it pauses: what is made later may lie where this lay.
void gone(Storage* s) {
  if (t_owner) t_owner->gone(s);
}
void touched(const char* how) {
  if (t_recorder) t_recorder->refuse_here(how);
}
void read(const View& element, const void* bytes) {
  if (t_recorder) t_recorder->element_read(element, bytes);
}
constexpr StorageWatch kWatch = {made, gone, touched};

// Note [What a recording sees]
// Everything that touches values is a kernel, or Tensor::data(), or a Storage that is read or written. The first are
// recorded, the others end the recording, but for single elements that become scalars (item(), bool()): a replay
// compares them. Whatever else the function does is Python's, and src/rushlight/jit/_capture.py looks after it.

}  // namespace

bool recording() { return g_active != nullptr; }
Recorder* active() { return g_active; }
Recorder* Recorder::current() { return t_recorder; }
void abandon_in_parallel() { g_parallel = true; }
void begin(std::vector<Tensor> given, std::vector<Tensor> state) {
  g_parallel = false;
  g_active = new Recorder(std::move(given), std::move(state));
}
void abandon() { delete std::exchange(g_active, nullptr); }

bool plain(const Tensor& t) {
  if (!t.on_host() || t->lazy() || (t.storage()->lazy && t.numel())) return false;
  if (t->extra && (t->extra->hooks || t->extra->post_accumulate_hooks || t->extra->retains_grad)) return false;
  return !t->accumulator || !t->accumulator->hooks;
}

Recorder::Recorder(std::vector<Tensor> given, std::vector<Tensor> state) : given_(std::move(given)) {
  tape_ = std::make_unique<Tape>();
  tape_->state = std::move(state);
  tape_->inputs = static_cast<int>(given_.size());
  for (int i = 0; i < count(); ++i) {
    const Tensor& t = tensor(i);
    if (!plain(t)) refuse("a tensor that is not plain memory, or has hooks");
    if (t->wants_grad() && (t->grad_fn || t->base)) refuse("a tensor that has a history");
    const bool given_one = i < tape_->inputs;
    slot_of(t.storage(), given_one ? SlotKind::Input : SlotKind::State, given_one ? i : i - tape_->inputs);
    if (!given_one) tape_->state_storages.push_back(t.storage());
    if (t->requires_grad || t->grad) tape_->leaves.push_back(i);
  }
  std::sort(tape_->state_storages.begin(), tape_->state_storages.end());
  classify();
  for (int leaf : tape_->leaves) {
    TensorObject* grad = tensor(leaf)->grad;
    tape_->had_grad.push_back(grad != nullptr);
    tape_->grad_geometry.emplace_back();
    grads_.push_back(grad ? Tensor::borrow(grad) : Tensor());
    grad_versions_.push_back(grad ? grad->version->value : 0);
    if (!grad) continue;
    const Tensor g = Tensor::borrow(grad);
    if (slot_.count(g.storage())) refuse("a gradient is also something else");
    else if (plain(g) && g.storage()->refs == 1) slot_of(g.storage(), SlotKind::Grad, leaf);
  }
  for (int i = 0; i < count(); ++i) found_.emplace_back(tensor(i));
  for (int i = 0; i < count(); ++i) first_versions_.push_back(tensor(i).version());
  versions_ = first_versions_;
  t_owner = this;
  g_storage_watch = &kWatch;
  watch(true);
}

Recorder::~Recorder() {
  watch(false);
  t_owner = nullptr;
  g_storage_watch = nullptr;
}

// How inputs share storages with each other and with the state.
void Recorder::classify() {
  const size_t n = given_.size();
  for (size_t i = 0; i < n; ++i) {
    const Storage* s = given_[i].storage();
    int same = -1, state = -1;
    int64_t distance = 0;
    auto* at = static_cast<char*>(given_[i].memory());
    for (size_t k = 0; k < i && same < 0; ++k)
      if (given_[k].storage() == s) same = static_cast<int>(k), distance = at - static_cast<char*>(given_[k].memory());
    for (size_t k = 0; k < tape_->state.size() && state < 0; ++k)
      if (tape_->state[k].storage() == s) state = static_cast<int>(k), distance = at - s->data;
    tape_->same_input.push_back(same);
    tape_->same_state.push_back(state);
    tape_->distance.push_back(distance);
  }
}

void Recorder::watch(bool on) {
  if (watching_ == on) return;
  watching_ = on;
  t_recorder = on ? this : nullptr;
  g_readable = on ? kNoDevice : DeviceType::Cpu;
  g_host_access = touched;
  g_element_read = read;
  lay_recording_backend(on);
}

void Recorder::refuse(const std::string& reason) {
  if (refused_.empty()) refused_ = reason;
}

void Recorder::refuse_here(const char* reason) {
  if (refused_.empty()) refused_ = text(reason, " at ", Site::here().describe());
}

void Recorder::note_bytes(const void* bytes, size_t count) {
  for (size_t i = 0; i < count; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(bytes) + i, std::min<size_t>(8, count - i));
    note(word);
  }
}

// The slot of a storage, which gets one if it has none.
int Recorder::slot_of(Storage* s, SlotKind kind, int index) {
  auto [found, fresh] = slot_.emplace(s, static_cast<int>(tape_->slots.size()));
  if (!fresh) return found->second;
  tape_->slots.push_back({kind, index, s->bytes, s->data});
  alive_.push_back(s);
  if (s->bytes) live_[s->data] = found->second;
  return found->second;
}
int Recorder::slot_of(const char* address) const {
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return -1;
  --after;
  return address < after->first + tape_->slots[static_cast<size_t>(after->second)].bytes ? after->second : -1;
}

void Recorder::made(Storage* s) { slot_of(s, SlotKind::Temporary, -1); }
void Recorder::gone(Storage* s) {
  auto found = slot_.find(s);
  if (found == slot_.end()) return;
  alive_[static_cast<size_t>(found->second)] = nullptr;
  auto address = live_.find(s->data);
  if (address != live_.end() && address->second == found->second) live_.erase(address);
  slot_.erase(found);
}

void Recorder::pointer(char** at) {
  if (!*at) return note(0);
  const int slot = slot_of(*at);
  if (slot < 0) return refuse("a kernel works on memory that is not known");
  const Slot& s = tape_->slots[static_cast<size_t>(slot)];
  const char* base = alive_[static_cast<size_t>(slot)]->data;
  if (s.kind == SlotKind::Input) base = static_cast<char*>(given_[static_cast<size_t>(s.index)].memory());
  if (s.kind == SlotKind::Grad) {
    const Tensor g = Tensor::borrow(tensor(s.index)->grad);
    const size_t leaf = std::find(tape_->leaves.begin(), tape_->leaves.end(), s.index) - tape_->leaves.begin();
    Ints& geometry = tape_->grad_geometry[leaf];
    geometry = Ints(IntSpan(g->sizes, 2 * g.dim()));
    geometry.push_back(static_cast<int64_t>(g.dtype()));
    geometry.push_back(g->offset);
  }
  const int64_t offset = *at - base;
  note(static_cast<uint64_t>(slot) + 1);
  note(static_cast<uint64_t>(offset));
  tape_->pointers.push_back({at, slot, offset, static_cast<int>(tape_->steps.size())});
}

bool Recorder::scalar(char** at, const int64_t* strides, int ndim, size_t bytes) {
  const char* here = static_cast<char*>(__builtin_frame_address(0));
  if (*at < here || *at > here + (1 << 17) || slot_of(*at) >= 0) return false;
  for (int d = 0; d < ndim; ++d)
    if (strides[d]) return false;
  char* copy = tape_->buffer(sizeof(LoopScalar));
  std::memset(copy, 0, sizeof(LoopScalar));
  std::memcpy(copy, *at, bytes);
  note_bytes(copy, sizeof(LoopScalar));
  *at = copy;
  return true;
}

void Recorder::view(View& v) {
  note(static_cast<uint64_t>(v.dtype) << 8 | static_cast<uint64_t>(v.ndim));
  const size_t n = static_cast<size_t>(v.ndim);
  auto* geometry = reinterpret_cast<int64_t*>(tape_->buffer(2 * n * sizeof(int64_t)));
  for (size_t d = 0; d < n; ++d) {
    note(static_cast<uint64_t>(geometry[d] = v.sizes[d]));
    note(static_cast<uint64_t>(geometry[n + d] = v.strides[d]));
  }
  v.sizes = geometry;
  v.strides = geometry + n;
  if (v.numel()) pointer(reinterpret_cast<char**>(&v.data));
  else v.data = nullptr;
}

void Recorder::generator(Generator& g) {
  note(reinterpret_cast<uint64_t>(&g));
  drawn_.insert(&g);
}

// The step that is being added can fail: what was done before it must be undone then.
void Recorder::can_fail() {
  if (!tape_->segments.empty()) return;
  tape_->guarded = static_cast<int>(tape_->steps.size()) + 1;
  tape_->generators.assign(drawn_.begin(), drawn_.end());
  for (int i = 0; i < count(); ++i)
    if (tensor(i).version() != first_versions_[static_cast<size_t>(i)]) written_.insert(slot_[tensor(i).storage()]);
  for (size_t k = 0; k < grads_.size(); ++k) {
    TensorObject* g = tensor(tape_->leaves[k])->grad;
    if (g && tape_->had_grad[k] && g == grads_[k].get() && g->version->value != grad_versions_[k])
      written_.insert(slot_[g->storage]);
  }
  int64_t bytes = 0;
  for (int slot : written_) bytes += tape_->slots[static_cast<size_t>(slot)].bytes;
  if (bytes > 1 << 20) refuse("values are looked at after much has been written");
  tape_->undo_slots.assign(written_.begin(), written_.end());
}

void Recorder::begin_kernel(void (*kernel)()) {
  if (in_kernel_) refuse("a kernel failed");
  in_kernel_ = true;
  note(reinterpret_cast<uint64_t>(kernel));
}
void Recorder::add(Step step) {
  in_kernel_ = false;
  if (g_parallel) refuse("kernels are called by several threads");
  tape_->steps.push_back(step);
}

// A number that the host took from memory: a replay must find the same.
void Recorder::element_read(const View& element, const void* bytes) {
  struct Expected {
    View view;
    LoopScalar value;
  };
  auto* e = new (tape_->buffer(sizeof(Expected))) Expected{element, {}};
  std::memcpy(e->value.bytes, bytes, static_cast<size_t>(itemsize(element.dtype)));
  note_bytes(&e->value, sizeof e->value);
  view(e->view);
  can_fail();
  if (!tape_->segments.empty()) refuse("a value is looked at after the optimizer's step");
  if (in_kernel_) refuse("a kernel failed");
  auto compare = [](const Step& s) {
    auto* expected = reinterpret_cast<Expected*>(s.arguments);
    if (std::memcmp(expected->view.data, expected->value.bytes, static_cast<size_t>(itemsize(expected->view.dtype))))
      throw Mismatch();
  };
  add({compare, nullptr, reinterpret_cast<char*>(e)});
}

void Recorder::end_segment() {
  Segment s;
  s.end = static_cast<int>(tape_->steps.size());
  std::set<Version*> counted;
  for (int i = 0; i < count(); ++i) {
    Version* v = tensor(i)->version;
    const uint32_t before = versions_[static_cast<size_t>(i)];
    if (v->value == before || !counted.insert(v).second) continue;
    s.writes.push_back({i, false, v->value - before, v->last_write, v->last_op});
    note(static_cast<uint64_t>(i) << 32 | (v->value - before));
  }
  for (size_t k = 0; k < tape_->leaves.size(); ++k) {
    const int leaf = tape_->leaves[k];
    TensorObject* grad = tensor(leaf)->grad;
    if (grad == grads_[k].get()) {
      if (!grad || grad->version->value == grad_versions_[k]) continue;
      Version* v = grad->version;
      s.writes.push_back({leaf, true, v->value - grad_versions_[k], v->last_write, v->last_op});
      grad_versions_[k] = v->value;
      if (!tape_->segments.empty()) refuse("gradients are added to after the optimizer's step");
      continue;
    }
    grads_[k] = grad ? Tensor::borrow(grad) : Tensor();
    s.grads.push_back({leaf, grad ? describe(Tensor::borrow(grad)) : -1});
    note(static_cast<uint64_t>(leaf) << 32 | static_cast<uint64_t>(s.grads.back().made + 1));
  }
  tape_->segments.push_back(std::move(s));
}

void Recorder::pause(PyObject* object, PyObject* method) {
  watch(false);
  end_segment();
  Segment& s = tape_->segments.back();
  s.object = Py_NewRef(object);
  s.method = Py_NewRef(method);
  s.grad_mode = grad_enabled();
  note(reinterpret_cast<uint64_t>(object));
}
void Recorder::resume() {
  for (int i = 0; i < count(); ++i) versions_[static_cast<size_t>(i)] = tensor(i).version();
  for (size_t k = 0; k < grads_.size(); ++k)
    if (tensor(tape_->leaves[k])->grad != grads_[k].get()) refuse("the optimizer's step changes what .grad is");
  watch(true);
}

}  // namespace rl::compiler
