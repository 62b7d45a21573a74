#include "autograd/engine.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "autograd/batched_gradients.h"
#include "autograd/engine_messages.h"
#include "autograd/grad_mode.h"
#include "autograd/gradient_sum.h"
#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "autograd/profile.h"
#include "autograd/record.h"
#include "base/interrupt.h"

namespace rl {

void check_saved(Node& node);  // autograd/node.cpp

namespace {

class Run;

uint64_t g_runs = 0;
thread_local Run* t_run = nullptr;  // the innermost backward of this thread

struct Later {
  bool operator()(const Node* a, const Node* b) const { return a->sequence < b->sequence; }
};

// Where `inputs=` asks for a gradient.
struct Capture {
  Node* node;
  uint32_t nr;
  int64_t input;
};

// Note [Threads of backward]
// A graph may be visited by several backwards at a time: one that a node or a hook of another one starts, and those of
// other threads, which run while a kernel or a hook has released the interpreter lock. So what a backward knows of a
// node is its own (`State`); the node remembers the last backward that visited it and the slot of its state there. A
// backward that finds another one's number looks its own slot up in a table, which is made when that first happens.
// Finding the nodes of the graph allocates no Python objects, and so happens without a change of threads.
class Run {
 public:
  struct State {
    Node* node;
    uint32_t pending = 0;
    bool needed = false, captured = false;
    Grads incoming;
  };

  explicit Run(const BackwardCall& call)
      : call_(call), id_(++g_runs), began_(last_sequence()), outer_(std::exchange(t_run, this)) {}
  ~Run() {
    t_run = outer_;
    for (State& s : states_) s.incoming.clear();
    for (State& s : states_) {
      if (s.node->run == id_) s.node->run = 0;
      Py_DECREF(reinterpret_cast<PyObject*>(s.node));
    }
    for (PyObject* f : callbacks_) Py_DECREF(f);
  }
  Run(const Run&) = delete;

  uint64_t id() const { return id_; }
  bool retains_graph() const { return call_.retain_graph; }
  const Node* running() const { return running_; }
  void queue(PyObject* f) { callbacks_.push_back(Py_NewRef(f)); }
  bool needs(Node* from, Node* to) {
    // A node that this run records may save what nobody asks for now.
    if (call_.inputs.empty() || !from->sequence || from->sequence > began_ || !find(from)) return true;
    State* s = find(to);
    return !s || s->needed;
  }
  bool reaches(Node* n) {
    State* s = find(n);
    return s && s->needed;
  }
  bool captured(Node* n) {
    State* s = find(n);
    return s && s->captured;
  }

  Tensors go() {
    site_ = Site::here();
    results_.resize(call_.accumulate ? 0 : call_.inputs.size());
    std::vector<Edge> inputs = collect_inputs();
    for (int64_t i = 0; i < call_.roots.size(); ++i) {
      roots_.push_back(gradient_edge(call_.roots[i].get()));
      CHECK(roots_.back().node, Runtime, "element ", i,
            " of tensors does not require grad and does not have a grad_fn");
    }
    for (const Capture& c : captures_) enter(c.node).captured = true;
    for (Edge& e : roots_) discover(e.node), ran_before_ |= e.node->done != 0;
    count();
    const bool single = roots_.size() == 1;  // its hooks run though it may lead to no wanted input
    for (size_t i = 0; i < roots_.size(); ++i)
      if (single || state(roots_[i].node).needed) send(roots_[i], call_.gradients[static_cast<int64_t>(i)], nullptr);
    for (Edge& e : roots_) {
      State& s = state(e.node);
      if ((single || s.needed) && s.pending == 0) push_once(s);
    }
    loop();
    finish();
    return std::move(results_);
  }

  // Whether the node is going to run, or has run: it leads to a gradient that is wanted.
  bool executes(Node* n) {
    State* s = find(n);
    if (!s || !s->needed) return false;
    if (call_.inputs.empty()) return true;
    if (n->type == &NodeTypeOf<AccumulateGrad>::type) {
      CHECK(call_.accumulate || !s->captured, Runtime,
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported.");
      return s->captured;
    }
    return call_.accumulate || leads_on(*n);
  }

  // The nodes of this run in the order in which they run.
  std::vector<Node*> order() {
    std::unordered_map<Node*, uint32_t> waits;
    for (Node* n : order_)
      if (state(n).needed)
        for (Edge& e : n->edges)
          if (e.node && state(e.node).needed) ++waits[e.node];
    std::vector<Node*> heap, all;
    auto push = [&](Node* n) {
      heap.push_back(n);
      std::push_heap(heap.begin(), heap.end(), Later());
    };
    for (Edge& e : roots_)
      if (state(e.node).needed && !waits[e.node] && std::find(heap.begin(), heap.end(), e.node) == heap.end())
        push(e.node);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), Later());
      Node* n = heap.back();
      heap.pop_back();
      all.push_back(n);
      for (Edge& e : n->edges)
        if (e.node && state(e.node).needed && --waits[e.node] == 0) push(e.node);
    }
    return all;
  }

 private:
  // The nodes where gradients of `inputs` arrive.
  std::vector<Edge> collect_inputs() {
    std::vector<Edge> found;
    for (int64_t i = 0; i < call_.inputs.size(); ++i) {
      CHECK(call_.inputs[i].requires_grad(), Runtime, "One of the differentiated Tensors does not require grad");
      Edge e = gradient_edge(call_.inputs[i].get());
      if (!e.node) continue;  // a view from outside the graph: nothing reaches it
      if (call_.accumulate) retain_grad(call_.inputs[i].get());
      captures_.push_back({e.node, e.nr, i});
      found.push_back(std::move(e));
    }
    std::sort(captures_.begin(), captures_.end(), [](const Capture& a, const Capture& b) { return a.node < b.node; });
    return found;
  }

  State& enter(Node* n) {
    if (n->run == id_) return states_[n->slot];
    n->run = id_;
    n->slot = static_cast<uint32_t>(states_.size());
    Py_INCREF(reinterpret_cast<PyObject*>(n));
    states_.push_back({n, 0, call_.inputs.empty(), false, {}});
    return states_.back();
  }

  // What this run knows of a node; null if it does not come there.
  State* find(Node* n) {
    if (n->run == id_) return &states_[n->slot];
    if (places_.empty())
      for (State& s : states_) places_.emplace(s.node, static_cast<uint32_t>(places_.size()));
    auto found = places_.find(n);
    if (found == places_.end()) return nullptr;
    n->run = id_;
    n->slot = found->second;
    return &states_[found->second];
  }
  State& state(Node* n) { return n->run == id_ ? states_[n->slot] : *find(n); }

  // All nodes reachable from the root, by a loop: parents are listed before their children finish.
  void discover(Node* root) {
    std::vector<std::pair<Node*, int64_t>> stack;
    auto open = [&](Node* n) {
      State& s = enter(n);
      if (s.pending & kOpened) return;
      s.pending |= kOpened;
      stack.push_back({n, 0});
    };
    open(root);
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (next == n->edges.size()) {
        order_.push_back(n);
        stack.pop_back();
        continue;
      }
      if (Node* child = n->edges[next++].node) open(child);
    }
  }

  // How many gradients each node waits for, and which nodes lead to a wanted input.
  void count() {
    for (Node* n : order_) {  // children first
      State& s = state(n);
      s.pending &= ~kOpened;
      if (s.captured) s.needed = true;
      for (Edge& e : n->edges)
        if (e.node && state(e.node).needed) s.needed = true;
    }
    for (Node* n : order_)
      if (state(n).needed)
        for (Edge& e : n->edges)
          if (e.node) ++state(e.node).pending;
  }

  void push_once(State& s) {
    if (s.pending & kOpened) return;
    s.pending |= kOpened;
    heap_.push_back(s.node);
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }

  void loop() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), Later());
      Node* n = heap_.back();
      heap_.pop_back();
      // Ctrl-C, and the program's other signal handlers.
      if (PyErr_CheckSignals() < 0) throw Error(ErrorKind::Runtime, "");
      run(*n);
    }
  }

  // Calls what was queued for the end, also what is queued meanwhile.
  void finish() {
    for (size_t i = 0; i < callbacks_.size(); ++i) {
      PyObject* result = PyObject_CallNoArgs(callbacks_[i]);
      if (!result) throw Error(ErrorKind::Runtime, "");
      Py_DECREF(result);
    }
  }

  void run(Node& n) {
    struct Running {
      const Node*& slot;
      const Node* before;
      ~Running() { slot = before; }
    } running{running_, std::exchange(running_, &n)};
    Grads dy;
    bool captured, needed;
    {
      State& s = state(&n);
      dy = std::move(s.incoming);
      s.incoming.clear();
      captured = s.captured, needed = s.needed;
    }
    dy.resize(std::max<int64_t>(n.results.size(), 1));
    NoGrad mode(call_.create_graph);  // for hooks, too
    run_tensor_hooks(n, dy);
    if (captured) take_captures(n, dy);
    bool leaf = n.type == &NodeTypeOf<AccumulateGrad>::type;
    // With inputs= only the wanted leaves accumulate.
    bool execute =
        call_.inputs.empty() ||
        (leaf ? captured && call_.accumulate : needed && ((call_.accumulate && !n.type->ends_in_view) || leads_on(n)));
    if (!execute) return;
    bool any = false;
    for (Tensor& g : dy) any |= g.defined();
    Grads dx;
    if (any || n.type->undefined_ok) {
      if (!n.type->undefined_ok)
        for (int64_t i = 0; i < dy.size(); ++i)
          if (!dy[i].defined()) dy[i] = zeros_for(n.results[i]);
      if (n.released) fail(ErrorKind::Runtime, freed_message(n) + advice_on_second_backward(n, ran_before_, order_));
      run_pre_hooks(n, dy);
      if (!call_.inputs.empty()) check_saved(n);  // also what the wanted inputs do not need
      if (g_sparse_type && !leaf && !PyObject_TypeCheck(reinterpret_cast<PyObject*>(&n), g_function_node_type))
        for (Tensor& g : dy)  // formulas read memory, which sparse tensors have beside them
          if (g.defined() && is_sparse(g)) g = densified(g);
      dx = call_backward(n, dy);
      run_post_hooks(n, dx, dy);
    }
    if (!leaf) n.done = began_;
    if (!call_.retain_graph && !leaf) release_saved(n, site_);
    dx.resize(n.edges.size());
    if (t_grad_mode.anomaly && t_grad_mode.anomaly_check_nan) check_nan(n, dx);
    dy.clear();
    for (int64_t i = 0; i < n.edges.size(); ++i) {
      Edge& e = n.edges[i];
      if (!e.node || !state(e.node).needed) continue;  // what leads to no wanted input runs no hooks either
      if (dx[i].defined()) send(e, std::move(dx[i]), &n);
      State& next = state(e.node);
      if (--next.pending == 0) push_once(next);
    }
  }

  bool leads_on(Node& n) {
    for (Edge& e : n.edges)
      if (e.node && state(e.node).needed) return true;
    return false;
  }

  Grads call_backward(Node& n, const Grads& dy) {
    Profiled timed(n.type->name, ProfileKind::Backward, &n.site, n.scope);
    Interruptible new_gradients;
    try {
      return call_.rows < 0 ? n.type->backward(n, dy) : stacked_backward(n, dy);
    } catch (Error& e) {
      if (!e.message().empty() && n.site && e.message().find("recorded at") == std::string::npos &&
          e.message().find("saved for backward") == std::string::npos)
        e.message() += text("\n  in the backward of ", n.type->name, ", recorded at ", n.site.describe());
      throw;
    }
  }

  // Checks a gradient against the forward result it belongs to, and adds it to what is there.
  void send(Edge& e, Tensor g, Node* from) {
    ResultMeta& meta = e.node->results[e.nr];
    NoGrad mode(call_.create_graph);
    if (is_sparse(g) && (g.dtype() != meta.dtype || call_.rows >= 0 || !(g.sizes() == IntSpan(meta.sizes))))
      g = densified(g);
    IntSpan sizes = g.sizes();  // of one row
    if (call_.rows >= 0) {
      CHECK(sizes.size() > 0 && sizes[0] == call_.rows, Runtime, "Function ", from ? from->type->name : "backward",
            " returned gradients of shape ", to_text(sizes), " for a stack of ", call_.rows);
      sizes = IntSpan(sizes.data() + 1, sizes.size() - 1);
    }
    if (!(sizes == IntSpan(meta.sizes))) {
      CHECK(expandable(meta.sizes, sizes), Runtime, "Function ", from ? from->type->name : "backward",
            " returned an invalid gradient at index ", static_cast<int64_t>(e.nr), " - got ", to_text(sizes),
            " but expected shape compatible with ", to_text(IntSpan(meta.sizes)));
      g = call_.rows < 0 ? g_engine_ops.sum_to(g, meta.sizes) : stacked_sum_to(g, meta.sizes);
    }
    CHECK(g.device() == meta.device, Runtime, "Function ", from ? from->type->name : "backward",
          " returned an invalid gradient at index ", static_cast<int64_t>(e.nr), " - expected device ",
          to_text(meta.device), " but got ", to_text(g.device()));
    if (g.dtype() != meta.dtype) {
      if (is_complex(g.dtype()) && !is_complex(meta.dtype)) g = g_engine_ops.real(g);
      if (g.dtype() != meta.dtype) g = g_engine_ops.cast(g, meta.dtype);
    }
    Grads& in = state(e.node).incoming;
    if (in.size() <= e.nr) in.resize(std::max<int64_t>(e.nr + 1, e.node->results.size()));
    Tensor& slot = in[e.nr];
    if (!slot.defined()) slot = std::move(g);
    else if (adds_itself(slot) || adds_itself(g)) slot = add_by_class(slot, g);
    else if (!call_.create_graph && owned_alone(slot)) g_engine_ops.add_inplace(slot, g);
    else slot = g_engine_ops.add(slot, g);
  }

  Tensor zeros_for(const ResultMeta& meta) const {
    return g_engine_ops.zeros(call_.rows < 0 ? Ints(meta.sizes) : stacked_sizes(meta.sizes), meta.dtype, meta.device);
  }

  static bool owned_alone(const Tensor& t) {
    return Py_REFCNT(t.object()) == 1 && t.storage()->refs == 1 && !t->grad_fn &&
           Py_TYPE(t.object()) == g_tensor_type && non_overlapping_and_dense(t.sizes(), t.strides());
  }

  void take_captures(Node& n, const Grads& dy) {
    auto first = std::lower_bound(captures_.begin(), captures_.end(), &n,
                                  [](const Capture& c, const Node* node) { return c.node < node; });
    for (auto c = first; c != captures_.end() && c->node == &n; ++c) {
      if (c->nr >= dy.size()) continue;
      if (!call_.accumulate) results_[c->input] = dy[c->nr];
    }
  }

  static constexpr uint32_t kOpened = 1u << 31;
  const BackwardCall& call_;
  uint64_t id_;
  bool ran_before_ = false;  // a root was a root, or within a graph, of an earlier run
  uint64_t began_;           // the last call recorded before this run
  Site site_;
  Run* outer_;
  const Node* running_ = nullptr;
  std::vector<State> states_;
  std::unordered_map<const Node*, uint32_t> places_;
  std::vector<Node*> order_, heap_;
  std::vector<Edge> roots_;
  std::vector<Capture> captures_;
  std::vector<PyObject*> callbacks_;
  Tensors results_;
};

}  // namespace

namespace {
// The hooks on saved tensors that code of the user's sets, or takes away, during a backward are those of the backward.
class SameSavedHooks {
 public:
  SameSavedHooks() {
    if (!t_saved_hooks) return;
    for (SavedHooks& h : *t_saved_hooks) before_.push_back({Py_NewRef(h.pack), Py_NewRef(h.unpack)});
  }
  ~SameSavedHooks() {
    if (!t_saved_hooks) return;
    SmallVector<SavedHooks, 2> after = std::move(*t_saved_hooks);
    *t_saved_hooks = std::move(before_);
    for (SavedHooks& h : after) {
      Py_DECREF(h.pack);
      Py_DECREF(h.unpack);
    }
  }
  SameSavedHooks(const SameSavedHooks&) = delete;

 private:
  SmallVector<SavedHooks, 2> before_;
};
}  // namespace

Tensors run_backward(const BackwardCall& call) {
  SameSavedHooks hooks;
  Run run(call);
  StackedRows stacked(call.rows);
  return run.go();
}

bool in_backward() { return t_run; }
uint64_t current_backward() { return t_run ? t_run->id() : 0; }
bool keeps_graph() { return t_run && t_run->retains_graph(); }
const Node* current_node() { return t_run ? t_run->running() : nullptr; }
bool will_reach(Node& node) { return t_run && t_run->reaches(&node); }
bool will_run(Node& node) { return t_run && t_run->executes(&node); }
bool is_captured(Node& node) { return t_run && t_run->captured(&node); }
std::vector<Node*> execution_order() { return t_run ? t_run->order() : std::vector<Node*>(); }
void queue_callback(PyObject* f) {
  CHECK(t_run, Runtime, "Final callbacks can only be installed during backward pass.");
  t_run->queue(f);
}

bool Node::needs(int64_t input) const {
  Node* to = input < edges.size() ? edges[input].node : nullptr;
  return to && (!t_run || t_run->needs(const_cast<Node*>(this), to));
}

}  // namespace rl
