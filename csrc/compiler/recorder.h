// Recording: while a function runs, every kernel call of its thread is written down on a tape. See Note [What a
// recording sees].
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/facts.h"
#include "compiler/tape.h"

namespace rl::compiler {

class Recorder {
 public:
  // `given`: the arguments that are tensors; `state`: all other tensors that the function can reach.
  Recorder(std::vector<Tensor> given, std::vector<Tensor> state);
  ~Recorder();
  Recorder(const Recorder&) = delete;

  // The tape cannot be replayed: the first reason stays.
  void refuse(const std::string& reason);
  void refuse_here(const char* reason);  // with the user's line
  const std::string& refused() const { return refused_; }

  // Around object.method(), which replays call too: what it does is not recorded.
  void pause(PyObject* object, PyObject* method);
  void resume();
  // The tape, if none of it was refused.
  std::unique_ptr<Tape> finish(const std::vector<Tensor>& outputs);
  // What the run did, for a comparison with another run: equal words, equal runs.
  const std::vector<uint64_t>& trace() const { return trace_; }

  // For what keeps the arguments of steps (kept.h).
  Tape& tape() { return *tape_; }
  void note(uint64_t word) { trace_.push_back(word); }
  void note_bytes(const void* bytes, size_t count);
  void pointer(char** at);                                                 // into memory of tensors, or null
  bool scalar(char** at, const int64_t* strides, int ndim, size_t bytes);  // a number on the stack of the caller
  void view(View& v);                                                      // sizes and strides too
  void generator(Generator& g);
  void can_fail();
  void begin_kernel(void (*kernel)());  // if nothing is added, it failed
  void add(Step step);
  void element_read(const View& element, const void* bytes);

  void made(Storage* s);
  void gone(Storage* s);

  static Recorder* current();  // of this thread, unless it pauses

 private:
  int slot_of(const char* address) const;
  int slot_of(Storage* s, SlotKind kind, int index);
  void watch(bool on);
  void end_segment();
  int describe(const Tensor& t);
  bool describe_memory(const Tensor& t, Made& m);
  bool describe_history(const Tensor& t, Made& m);
  bool known_graph(Node* root);
  void classify();
  const Tensor& tensor(int i) const { return tape_->tensor(i, given_.data()); }
  int count() const { return static_cast<int>(given_.size() + tape_->state.size()); }

  std::vector<Tensor> given_;
  std::unique_ptr<Tape> tape_;
  std::string refused_;
  std::vector<uint64_t> trace_;
  std::map<const char*, int> live_;                  // the storages that steps may use, by address
  std::unordered_map<Storage*, int> slot_;           // the same
  std::vector<Storage*> alive_;                      // of each slot, null when it is gone
  std::vector<uint32_t> first_versions_, versions_;  // of all tensors: when the run, and the segment, began
  std::vector<StateFact> found_;                     // all tensors, as they were found
  std::vector<Tensor> kept_;                         // what `described_` names
  std::vector<Tensor> grads_;  // of all leaves, when the segment began: held, so that none is mistaken
  std::vector<uint32_t> grad_versions_;
  std::unordered_map<PyObject*, int> described_;  // in made
  std::set<int> written_;
  std::set<Generator*> drawn_;
  bool watching_ = false, in_kernel_ = false;
};

// Whether a tensor is memory of the host, with nobody else's code behind it.
bool plain(const Tensor& t);

// Starts and ends recording in this thread.
bool recording();
void begin(std::vector<Tensor> given, std::vector<Tensor> state);
Recorder* active();
void abandon();
void abandon_in_parallel();  // a kernel is called in a piece of a parallel loop, maybe of this thread

}  // namespace rl::compiler
