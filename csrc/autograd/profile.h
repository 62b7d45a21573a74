// Timing of ops and backward nodes. Off, it costs the op path one test of g_watched, which it shares with the other
// things that look at every call.
#pragma once
#include <Python.h>

#include <cstdint>

#include "tensor/site.h"

namespace rl {

// Why a call takes the slow path: bits, process-wide.
enum Watch : uint32_t { kWatchProfile = 1, kWatchModes = 2, kWatchDispatch = 4 };
extern uint32_t g_watched;
inline bool watched() { return __builtin_expect(g_watched != 0, 0); }
inline bool dispatching() { return __builtin_expect(g_watched & kWatchDispatch, 0); }
inline bool profiling() { return __builtin_expect(g_watched & kWatchProfile, 0); }

enum class ProfileKind : uint8_t { Op, Backward, Region };

// Takes the place of an event that was begun and has not ended; -1: none.
using ProfileHandle = int64_t;
ProfileHandle profile_begin(const char* name, ProfileKind kind, const Site* site, PyObject* scope, PyObject* shapes);
void profile_end(ProfileHandle event);
void profile_drop(ProfileHandle event);  // it turned out not to be worth a row
bool profile_wants_shapes();

class Profiled {
 public:
  Profiled(const char* name, ProfileKind kind, const Site* site = nullptr, PyObject* scope = nullptr)
      : event_(profiling() ? profile_begin(name, kind, site, scope, nullptr) : -1) {}
  ~Profiled() {
    if (event_ >= 0) profile_end(event_);
  }
  Profiled(const Profiled&) = delete;
  Profiled& operator=(const Profiled&) = delete;

 private:
  ProfileHandle event_;
};

}  // namespace rl
