// The order of the steps of a recurrent layer, and how threads share them.
#pragma once

namespace rl::RL_ISA {
namespace {

// Rows of the sequence by step.
struct Walk {
  const RnnShape& shape;
  Scratch<int64_t> first;
  explicit Walk(const RnnShape& s) : shape(s) {
    if (!s.batch_sizes) return;
    first.reset(s.steps);
    for (int64_t t = 0, at = 0; t < s.steps; at += s.batch_sizes[t++]) first[t] = at;
  }
  int64_t count(int64_t t) const { return shape.batch_sizes ? shape.batch_sizes[t] : shape.rows; }
  int64_t row(int64_t t, int64_t r) const {
    return shape.batch_sizes ? first[t] + r : shape.batch_first ? r * shape.steps + t : t * shape.rows + r;
  }
  // Of the workspace, where rows of a step are neighbours whatever the order of the input.
  int64_t kept_row(int64_t t, int64_t r) const { return (shape.batch_sizes ? first[t] : t * shape.rows) + r; }
  int64_t row_step() const { return shape.batch_first && !shape.batch_sizes ? shape.steps : 1; }
  int64_t forward(int64_t s) const { return shape.reverse ? shape.steps - 1 - s : s; }  // the s-th step taken
  // The index of the last step taken by row r, of those that forward() counts; -1 for none.
  int64_t last(int64_t r) const {
    if (shape.reverse || !shape.batch_sizes) return count(0) > r ? shape.steps - 1 : -1;
    int64_t low = 0, high = shape.steps;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (shape.batch_sizes[middle] > r) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
};

// Nanoseconds of reading weights, from the core's own cache or from the shared one.
inline int64_t reading_ns(int64_t bytes) { return bytes / (bytes <= (3 << 19) ? 55 : 15); }

// How threads share the steps. Rows are independent, so a thread can take some of them through all steps; where rows
// are few or the weights large, it is faster to share each step's panels, although the threads meet after each step and
// read `sent` bytes of each row from each other. The results are the same.
struct Sharing {
  int64_t panels;
  bool by_panels = false;
  int64_t grain;  // rows or panels

  // `together`: rows that stay with one thread
  Sharing(const Walk& walk, int64_t panels_, int64_t macs_of_row, int64_t weight_bytes, int64_t sent, int64_t together)
      : panels(panels_) {
    int64_t n = walk.shape.rows, all = num_threads(), threads = std::clamp<int64_t>(panels, 1, all);
    int64_t share = up((n + all - 1) / all, together), step_ns = n * macs_of_row / 80;
    int64_t rows_ns = std::max(share * macs_of_row / 80, reading_ns(weight_bytes));
    int64_t panels_ns = std::max(step_ns / threads, reading_ns(weight_bytes / threads)) + 2000 + n * sent / 4;
    bool alone = all == 1 || in_parallel() || walk.shape.steps * step_ns < 30000;
    by_panels = !alone && threads > 1 && panels_ns < rows_ns;
    grain = alone ? n
            : !by_panels
                ? share
                : std::max<int64_t>(1, panels_ns < 30000 ? (panels + threads - 1) / threads : panels / (2 * threads));
  }
};
// Calls step(s, first row, end, first panel, end) for each step in order.
template <class Step> void run_steps(const Walk& walk, const Sharing& sharing, Step&& step) {
  int64_t n = walk.shape.rows, steps = walk.shape.steps, panels = sharing.panels;
  if (sharing.by_panels) {
    for (int64_t s = 0; s < steps; ++s) {
      int64_t rows = walk.count(walk.forward(s));
      parallel_for(0, panels, sharing.grain, [&](int64_t p0, int64_t p1) { step(s, int64_t{0}, rows, p0, p1); });
    }
    return;
  }
  parallel_for(0, n, sharing.grain, [&](int64_t r0, int64_t r1) {
    for (int64_t s = 0; s < steps; ++s) {
      int64_t end = std::min(r1, walk.count(walk.forward(s)));
      if (end > r0) step(s, r0, end, int64_t{0}, panels);
    }
  });
}
// Blocks of nearly equal height, at most `most`, all but the last of whole groups of `together` rows.
template <class Body> void row_blocks(int64_t r0, int64_t r1, int64_t most, int64_t together, Body&& body) {
  int64_t groups = (r1 - r0 + together - 1) / together, blocks = (groups * together + most - 1) / most;
  for (int64_t b = 0; b < blocks; ++b) {
    int64_t from = r0 + groups * b / blocks * together, to = r0 + groups * (b + 1) / blocks * together;
    body(from, std::min(to, r1) - from);
  }
}

}  // namespace
}  // namespace rl::RL_ISA
