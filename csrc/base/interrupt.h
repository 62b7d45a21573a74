// Ctrl-C in the middle of an op. A loop that has run for some time asks, through a hook of the Python layer, whether
// the user wants to stop; then its remaining pieces are left out and it throws an Error without a message, the Python
// exception being set. Only ops whose result is new do so: a tensor that is there is never left half written.
#pragma once
#include <cstdint>

namespace rl {

inline constexpr int64_t kAskAfterNanoseconds = 100'000'000;

extern thread_local bool t_interruptible __attribute__((tls_model("initial-exec")));
extern thread_local int64_t t_next_ask __attribute__((tls_model("initial-exec")));  // when; 0: no loop began yet

// Marks a call whose results nobody else sees yet.
class Interruptible {
 public:
  Interruptible() : before_(t_interruptible) {
    t_interruptible = true;
    t_next_ask = 0;
  }
  ~Interruptible() { t_interruptible = before_; }
  Interruptible(const Interruptible&) = delete;

 private:
  bool before_;
};

// Whether the loop that this thread runs a piece of is to stop. For pieces that take long: they may end early. A piece
// that is all of its loop, which was never begun, is left by an exception.
bool loop_stopped();

// The same for loops over elements one by one, which ask at every 65,536th.
inline bool stops_at(int64_t step) { return step && (step & 0xffff) == 0 && loop_stopped(); }

// The same by an exception, for work whose memory has owners.
void leave_if_stopped();

// Counts small pieces of work, such as the comparisons of a sort, and asks now and then.
class AsksSeldom {
 public:
  void operator()(int64_t work = 1) {
    if ((left_ -= work) > 0) return;
    left_ = kWork;
    leave_if_stopped();
  }

 private:
  static constexpr int64_t kWork = 1 << 16;
  int64_t left_ = kWork;
};

// asked(token): whether to stop, called by the thread that runs the loop. The token is that of LongWork::begin, which
// released the interpreter lock; null: it is held.
void set_interrupt_hook(bool (*asked)(void* token));

}  // namespace rl
