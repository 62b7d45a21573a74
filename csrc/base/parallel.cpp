#include "base/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>

#include "base/check.h"
#include "base/interrupt.h"

#ifdef __linux__
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace rl {

thread_local bool t_interruptible = false;
thread_local int64_t t_next_ask = 0;

namespace {

// Note [How a piece is claimed]
// The pieces of a loop are cut into one span per thread, so that a thread that runs loop after loop over the same data
// finds it in its own cache; who has ended its span helps with the next one. A span's ticket holds (generation of the
// loop, pieces claimed). A thread reads it, reads the loop's description, and claims the piece by compare-and-swap:
// success proves that the loop is still the one it read about, and an unfinished loop cannot be replaced. So nobody
// ever waits for a thread that holds no piece, and a worker that wakes late, or is preempted between the two reads,
// can do no harm.
constexpr int kPieceBits = 36;
constexpr uint64_t kPieceMask = (uint64_t{1} << kPieceBits) - 1;  // as a piece number: the loop is being written

constexpr int kMaxThreads = 1024;
constexpr int64_t kSpinNanoseconds = 200'000;
constexpr int64_t kCalmNanoseconds = 20'000'000;   // no spinning for so long after other load was seen
constexpr int64_t kOftenNanoseconds = 8'000'000;   // between preemptions: less is load, more the system's own business
constexpr int kCallerWakes = 4, kWorkerWakes = 2;  // waking is a tree, so that no thread has to wake all

struct alignas(64) Span {
  std::atomic<uint64_t> ticket{kPieceMask};
};

struct Worker {
  pthread_t thread;
  int slot = 0;  // whose span it begins with; the caller's is 0
  std::atomic<bool> stop{false};
};

struct Pool {
  // The loop in progress.
  alignas(64) std::atomic<const FunctionRef<void(int64_t, int64_t)>*> body{nullptr};
  std::atomic<int64_t> begin{0}, end{0}, grain{1};
  std::atomic<uint64_t> pieces{0}, spans{1};
  std::atomic<unsigned> float_mode{0};
  std::atomic<bool> stopped{false};  // the user wants no more: pieces that remain are left out

  alignas(64) std::atomic<uint64_t> done{0};        // pieces ended
  std::atomic<uint32_t> caller_waits{0}, ended{0};  // `ended` is the word the caller sleeps on
  std::mutex error_lock;
  std::exception_ptr error;
  uint64_t error_piece = 0;

  alignas(64) std::atomic<uint32_t> epoch{0};  // the word idle workers sleep on; counts loops
  std::atomic<int> sleepers{0};
  std::atomic<int64_t> calm_until{0};
  std::atomic<bool> may_spin{true};

  alignas(64) std::atomic<bool> busy{false};  // owned by one caller; guards what follows
  int started = 0;                            // workers
  bool start_failed = false;
  uint64_t generation = 0;  // of the latest loop, in the place it has in a ticket
  Worker* workers[kMaxThreads] = {};
  Span span[kMaxThreads];
};

// Never destroyed: workers may be asleep on it while the process exits.
alignas(64) std::byte pool_memory[sizeof(Pool)];
Pool* pool_instance = nullptr;
std::once_flag pool_once;
std::atomic<int> wanted_threads{0};  // 0: not decided yet
LongWork long_work{nullptr, nullptr};
bool (*interrupt_hook)(void*) = nullptr;
thread_local bool inside_loop = false;

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

// Asks now and then whether the loop of this thread is to stop. The loops of one op share the time of the next
// question.
class Stopping {
 public:
  explicit Stopping(void* token) : token_(token), asks_(t_interruptible && interrupt_hook) {
    if (asks_ && !t_next_ask) t_next_ask = now() + kAskAfterNanoseconds;
    current = this;
  }
  ~Stopping() { current = nullptr; }
  Stopping(const Stopping&) = delete;
  bool operator()() {
    if (!asks_ || stopped_) return stopped_;
    const int64_t time = now();
    if (time < t_next_ask) return false;
    t_next_ask = time + kAskAfterNanoseconds;
    return stopped_ = interrupt_hook(token_);
  }
  static thread_local Stopping* current;  // of the thread that began the loop; null on workers

 private:
  void* token_;
  bool asks_, stopped_ = false;
};
thread_local Stopping* Stopping::current = nullptr;

[[noreturn]] void stop() { throw Error(ErrorKind::Runtime, ""); }

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void sleep_on(std::atomic<uint32_t>& word, uint32_t seen) {
#ifdef __linux__
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
#else
  word.wait(seen);
#endif
}
void wake(std::atomic<uint32_t>& word, int count) {
#ifdef __linux__
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
#else
  for (int i = 0; i < count; ++i) word.notify_one();
#endif
}

// How often the kernel took the CPU from this thread although it could have run on: others wanted it too.
int64_t times_preempted() {
#ifdef __linux__
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
#else
  return 0;
#endif
}

// Spins until ready() for some microseconds; false when it is time to sleep.
template <class Ready> bool spin(Pool& pool, Ready ready) {
  if (ready()) return true;
  if (!pool.may_spin.load(std::memory_order_relaxed)) return false;
  int64_t start = now();
  if (start < pool.calm_until.load(std::memory_order_relaxed)) return false;
  while (true) {
    for (int i = 0; i < 8; ++i) {
      pause();
      if (ready()) return true;
    }
    if (now() - start > kSpinNanoseconds) return false;
  }
}

// The caller's rounding and denormal mode, so that a piece computes the same bits wherever it runs.
inline unsigned float_mode() {
#if defined(__x86_64__) || defined(__i386__)
  return _mm_getcsr() & ~0x3fu;  // without the sticky exception flags
#else
  return 0;
#endif
}
inline void set_float_mode([[maybe_unused]] unsigned mode) {
#if defined(__x86_64__) || defined(__i386__)
  if (float_mode() != mode) _mm_setcsr(mode);
#endif
}

void wake_workers(Pool& pool, uint64_t pieces_left, int at_most) {
  int sleepers = pool.sleepers.load(std::memory_order_seq_cst);
  if (sleepers <= 0 || pieces_left == 0) return;
  uint64_t count = static_cast<uint64_t>(sleepers < at_most ? sleepers : at_most);
  wake(pool.epoch, static_cast<int>(count < pieces_left ? count : pieces_left));
}

void finish_piece(Pool& pool, uint64_t pieces) {
  if (pool.done.fetch_add(1, std::memory_order_seq_cst) + 1 != pieces) return;
  if (pool.caller_waits.load(std::memory_order_seq_cst)) {
    pool.ended.fetch_add(1, std::memory_order_seq_cst);
    wake(pool.ended, 1);
  }
}

// Keeps the error of the lowest piece, which is the same in every run.
void fail_piece(Pool& pool, uint64_t piece) {
  std::lock_guard lock(pool.error_lock);
  if (pool.error && piece >= pool.error_piece) return;
  pool.error = std::current_exception();
  pool.error_piece = piece;
}

// The first piece of a span.
inline uint64_t span_begin(uint64_t span, uint64_t spans, uint64_t pieces) {
  return pieces / spans * span + (span < pieces % spans ? span : pieces % spans);
}

// Runs pieces of one span of the loop in progress until none is left. See Note [How a piece is claimed].
void run_span(Pool& pool, uint64_t index, bool& first, Stopping* stopping) {
  std::atomic<uint64_t>& ticket = pool.span[index].ticket;
  while (true) {
    uint64_t seen = ticket.load(std::memory_order_acquire), claimed = seen & kPieceMask;
    uint64_t pieces = pool.pieces.load(std::memory_order_acquire), spans = pool.spans.load(std::memory_order_acquire);
    uint64_t start = span_begin(index, spans, pieces), length = span_begin(index + 1, spans, pieces) - start;
    if (index >= spans || claimed >= length) {
      // Also taken while another loop is being written; its caller wakes workers afterwards.
      if (ticket.load(std::memory_order_acquire) == seen) return;
      continue;
    }
    auto* body = pool.body.load(std::memory_order_acquire);
    int64_t grain = pool.grain.load(std::memory_order_acquire), end = pool.end.load(std::memory_order_acquire);
    int64_t begin = pool.begin.load(std::memory_order_acquire);
    unsigned mode = pool.float_mode.load(std::memory_order_acquire);
    if (!ticket.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) continue;
    if (first) {
      first = false;
      set_float_mode(mode);
      wake_workers(pool, pieces, kWorkerWakes);
    }
    uint64_t piece = start + claimed;
    int64_t from = begin + static_cast<int64_t>(piece) * grain;
    int64_t to = end - from > grain ? from + grain : end;
    if (!pool.stopped.load(std::memory_order_relaxed)) {
      try {
        (*body)(from, to);
      } catch (...) {
        fail_piece(pool, piece);
      }
      if (stopping && (*stopping)()) pool.stopped.store(true, std::memory_order_relaxed);
    }
    finish_piece(pool, pieces);
  }
}

// The thread's own span, then the others'.
void run_pieces(Pool& pool, int slot, Stopping* stopping = nullptr) {
  bool first = slot != 0;
  uint64_t spans = pool.spans.load(std::memory_order_acquire);
  for (uint64_t i = 0; i < spans; ++i) run_span(pool, (static_cast<uint64_t>(slot) + i) % spans, first, stopping);
}

struct StartArguments {
  Pool* pool;
  Worker* worker;
};

void* worker_main(void* memory) {
  auto [pool_pointer, self] = *static_cast<StartArguments*>(memory);
  delete static_cast<StartArguments*>(memory);
  Pool& pool = *pool_pointer;
  inside_loop = true;
  int64_t preempted = times_preempted(), noticed = 0;
  uint32_t seen = 0;  // a loop may have been opened before this thread ran
  while (true) {
    auto ready = [&] { return pool.epoch.load(std::memory_order_acquire) != seen; };
    if (!spin(pool, ready)) {
      if (int64_t count = times_preempted(), more = count - preempted; more > 0) {
        const int64_t time = now(), before = std::max(noticed, pool.calm_until.load(std::memory_order_relaxed));
        if (time - before < more * kOftenNanoseconds)
          pool.calm_until.store(time + kCalmNanoseconds, std::memory_order_relaxed);
        preempted = count, noticed = time;
      }
      pool.sleepers.fetch_add(1, std::memory_order_seq_cst);
      while (!ready()) sleep_on(pool.epoch, seen);
      pool.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    }
    if (self->stop.load(std::memory_order_acquire)) return nullptr;
    seen = pool.epoch.load(std::memory_order_acquire);
    run_pieces(pool, self->slot);
  }
}

// The pool's threads do not exist in a forked child: it begins with a fresh pool. The old one's memory may be in any
// state (another thread may have been inside a loop), so it is overwritten, not destroyed.
void after_fork_in_child() {
  if (pool_instance) pool_instance = new (pool_memory) Pool;
  inside_loop = false;
}

Pool& the_pool() {
  std::call_once(pool_once, [] {
    pool_instance = new (pool_memory) Pool;
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
  });
  return *pool_instance;
}

void stop_workers(Pool& pool) {
  for (int i = 0; i < pool.started; ++i) pool.workers[i]->stop.store(true, std::memory_order_release);
  pool.epoch.fetch_add(1, std::memory_order_seq_cst);
  wake(pool.epoch, kMaxThreads);
  for (int i = 0; i < pool.started; ++i) {
    pthread_join(pool.workers[i]->thread, nullptr);
    delete pool.workers[i];
  }
  pool.started = 0;
}

void start_workers(Pool& pool, int count) {
  // Signals are for the program's own threads; those a fault raises must stay deliverable.
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  while (pool.started < count) {
    Worker* worker = new Worker;
    worker->slot = pool.started + 1;
    auto* arguments = new StartArguments{&pool, worker};
    if (pthread_create(&worker->thread, nullptr, worker_main, arguments) != 0) {
      delete arguments;
      delete worker;
      pool.start_failed = true;  // out of threads: carry on with those there are
      break;
    }
    pool.workers[pool.started++] = worker;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void size_pool(Pool& pool, int threads) {
  int workers = threads - 1;
  if (pool.started > workers) {
    stop_workers(pool);
    pool.start_failed = false;
  }
  if (pool.started == workers || pool.start_failed) return;
  pool.may_spin.store(threads <= usable_cpus(), std::memory_order_relaxed);
  start_workers(pool, workers);
}

// The pool belongs to the caller (`busy`). Returns the error of a piece, if any.
std::exception_ptr run_on_pool(Pool& pool, int64_t begin, int64_t end, int64_t grain, uint64_t pieces,
                               const FunctionRef<void(int64_t, int64_t)>& body, Stopping& stopping) {
  pool.generation += kPieceMask + 1;
  uint64_t threads = static_cast<uint64_t>(pool.started) + 1, spans = threads < pieces ? threads : pieces;
  for (uint64_t i = 0; i < threads; ++i)
    pool.span[i].ticket.store(pool.generation | kPieceMask, std::memory_order_seq_cst);
  pool.body.store(&body, std::memory_order_release);
  pool.begin.store(begin, std::memory_order_release);
  pool.end.store(end, std::memory_order_release);
  pool.grain.store(grain, std::memory_order_release);
  pool.pieces.store(pieces, std::memory_order_release);
  pool.spans.store(spans, std::memory_order_release);
  pool.float_mode.store(float_mode(), std::memory_order_release);
  pool.done.store(0, std::memory_order_release);
  pool.stopped.store(false, std::memory_order_release);
  for (uint64_t i = 0; i < spans; ++i) pool.span[i].ticket.store(pool.generation, std::memory_order_release);
  pool.epoch.fetch_add(1, std::memory_order_seq_cst);
  wake_workers(pool, pieces - 1, kCallerWakes);

  run_pieces(pool, 0, &stopping);
  auto ended = [&] { return pool.done.load(std::memory_order_acquire) == pieces; };
  if (!spin(pool, ended)) {
    pool.caller_waits.store(1, std::memory_order_seq_cst);
    while (true) {
      uint32_t seen = pool.ended.load(std::memory_order_seq_cst);
      if (pool.done.load(std::memory_order_seq_cst) == pieces) break;
      sleep_on(pool.ended, seen);
    }
    pool.caller_waits.store(0, std::memory_order_relaxed);
  }
  std::exception_ptr error;
  std::swap(error, pool.error);
  return error;
}

int threads_from_environment() {
  for (const char* name : {"RUSHLIGHT_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* value = std::getenv(name);
    if (!value) continue;
    char* rest;
    long n = std::strtol(value, &rest, 10);  // OMP_NUM_THREADS may list the levels of nesting: "4,2"
    if (rest != value && n >= 1) return n > kMaxThreads ? kMaxThreads : static_cast<int>(n);
  }
  return 0;
}

// Runs the hooks around a long loop and marks this thread as inside one.
class LongLoop {
 public:
  LongLoop() : hooks_(long_work), token_(hooks_.begin ? hooks_.begin() : nullptr) { inside_loop = true; }
  ~LongLoop() {
    inside_loop = false;
    if (hooks_.end) hooks_.end(token_);
  }
  LongLoop(const LongLoop&) = delete;
  void* token() const { return token_; }

 private:
  LongWork hooks_;
  void* token_;
};

void run_inline(int64_t begin, int64_t end, int64_t grain, const FunctionRef<void(int64_t, int64_t)>& body,
                Stopping* stopping = nullptr) {
  for (int64_t from = begin; from < end;) {
    int64_t to = end - from > grain ? from + grain : end;
    body(from, to);
    if (stopping && (*stopping)()) stop();
    from = to;
  }
}

}  // namespace

void parallel_for(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (begin >= end) return;
  if (grain < 1) grain = 1;
  if (end - begin <= grain) return body(begin, end);
  if (inside_loop) return run_inline(begin, end, grain, body);

  LongLoop long_loop;
  Stopping stopping(long_loop.token());
  uint64_t pieces = (static_cast<uint64_t>(end - begin) - 1) / static_cast<uint64_t>(grain) + 1;
  int threads = num_threads();
  if (threads == 1 || pieces >= kPieceMask) return run_inline(begin, end, grain, body, &stopping);
  Pool& pool = the_pool();
  // Another thread of the program is in a loop: the cores are taken, so this one works alone.
  if (pool.busy.exchange(true, std::memory_order_acquire)) return run_inline(begin, end, grain, body, &stopping);
  std::exception_ptr error;
  bool stopped;
  {
    struct Release {
      Pool& pool;
      ~Release() { pool.busy.store(false, std::memory_order_release); }
    } release{pool};
    size_pool(pool, threads);
    error = run_on_pool(pool, begin, end, grain, pieces, body, stopping);
    stopped = pool.stopped.load(std::memory_order_relaxed);
  }
  if (stopped) stop();
  if (error) std::rethrow_exception(error);
}

int num_threads() {
  int n = wanted_threads.load(std::memory_order_relaxed);
  if (n > 0) return n;
  n = threads_from_environment();
  if (n == 0) n = usable_cpus();
  if (n > kMaxThreads) n = kMaxThreads;
  int undecided = 0;
  return wanted_threads.compare_exchange_strong(undecided, n) ? n : undecided;
}

void set_num_threads(int n) {
  wanted_threads.store(n < 1 ? 1 : n > kMaxThreads ? kMaxThreads : n, std::memory_order_relaxed);
}

bool in_parallel() { return inside_loop; }

bool loop_stopped() {
  if (Stopping* own = Stopping::current) return (*own)();
  if (inside_loop) return pool_instance && pool_instance->stopped.load(std::memory_order_relaxed);
  if (Stopping(nullptr)()) stop();
  return false;
}

void leave_if_stopped() {
  if (loop_stopped()) stop();
}

void set_long_work_hooks(LongWork hooks) { long_work = hooks; }
void set_interrupt_hook(bool (*asked)(void*)) { interrupt_hook = asked; }

}  // namespace rl
