// Work split over the pool. A loop is cut into pieces by its grain alone, never by the number of
// threads, and pieces are handed out dynamically: results are the same for every thread count, and
// a busy neighbour delays one piece, not the loop.
#pragma once
#include <cstdint>
#include <type_traits>

namespace rl {

// A borrowed callable: two pointers, no allocation.
template <class Signature> class FunctionRef;
template <class R, class... A> class FunctionRef<R(A...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* o, A... a) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(o))(static_cast<A>(a)...);
        }) {}
  R operator()(A... a) const { return call_(object_, static_cast<A>(a)...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

// body(first, last) over [begin, end) in pieces of at most `grain` iterations. Runs inline when there is
// one piece, one thread, or when called from inside a parallel loop. Exceptions thrown by a piece are
// rethrown in the caller once all pieces have ended.
void parallel_for(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

// A grain of about the given one that cuts `total` into pieces of equal size, a multiple of four of them, so that few
// threads have equal shares. In multiples of 64 elements.
inline int64_t even_grain(int64_t total, int64_t grain) {
  int64_t pieces = (total + grain - 1) / grain;
  pieces = (pieces + 3) / 4 * 4;
  return ((total + pieces - 1) / pieces + 63) / 64 * 64;
}

int num_threads();
void set_num_threads(int n);
bool in_parallel();  // true on a worker, or inside a piece
int usable_cpus();   // by affinity and by the container's CPU quota

// Called around loops that take long (set by the Python layer to release and take the GIL again).
struct LongWork {
  void* (*begin)();
  void (*end)(void*);
};
void set_long_work_hooks(LongWork hooks);

}  // namespace rl
