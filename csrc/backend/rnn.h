// Recurrent networks: one layer in one direction over a whole sequence, and the elementwise half of single steps.
#pragma once
#include <atomic>
#include <cstdint>

#include "backend/view.h"

namespace rl {

enum class RnnCell : uint8_t { Lstm, Gru, Tanh, Relu };
inline int64_t rnn_gates(RnnCell cell) { return cell == RnnCell::Lstm ? 4 : cell == RnnCell::Gru ? 3 : 1; }

// Where the rows of a sequence lie: row r of step t is number t * rows + r, or r * steps + t with batch_first. With
// batch_sizes step t has its first batch_sizes[t] rows only, never more than the step before, one step after the other.
struct RnnShape {
  RnnCell cell;
  int64_t steps, rows, input, hidden;
  const int64_t* batch_sizes;
  bool batch_first, reverse;  // reverse: from the last step to the first
};

// All contiguous, of one type, the workspace in that or, of bfloat16, in float. L = rows of all steps, G = gates, I, H
// = input and hidden size, N = rows.
struct RnnForward {
  View out, hn, cn;         // (L, H), (N, H), (N, H); cn of LSTMs only
  const View* workspace;    // (L, rnn_workspace), for backward; null for none
  const View* x;            // (L, I), or null where
  const View* gates;        // (L, G H) holds x w_ih' with its biases: for LSTM and plain cells both of them. Of
                            // bfloat16, x is always given: gates are floats that the kernel keeps
  const int64_t* gates_at;  // (L): which row of gates, or of a bfloat16 x, is each row's; null for its own
  View w_ih, w_hh;          // (G H, I), (G H, H)
  const View *b_ih, *b_hh;  // (G H), or null
  View h0, c0;              // (N, H)
};
struct RnnBackward {
  View dgates;                   // (L, D H): D = G, but 4 for GRU, whose fourth is the third of the state's GEMM
  View dh0, dc0;                 // (N, H); dh0 with a null pointer where nobody wants it
  const View *dout, *dhn, *dcn;  // as out, hn, cn; null for zeros
  const View* workspace;         // what forward wrote, null for plain cells
  View out, w_hh, h0;
  // dx (L, I) = dgates w_ih, of the first G gates; for weights that fit a core's cache, not of bfloat16. Null where
  // nobody wants it.
  View dx, w_ih;
};

// Sums of rows of one kind: sums (groups, M) += each row of (L, M), at its group (L).
struct RnnGroupSums {
  View sums;
  const int64_t* group;
};

// Which multiplication the steps of layers and the gradient of their weights take. Strassen's wherever the shape allows
// it, or only where it is the fastest. RUSHLIGHT_RNN_GEMM=direct or strassen in the environment is the first choice.
enum class RnnGemm : uint8_t { Fastest, Direct, Strassen };
extern std::atomic<RnnGemm> g_rnn_gemm;

struct RnnKernels {
  // gates (N, 4H) are input, forget, cell, output before their activation, `active` after it.
  // c = sigmoid(f) c0 + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c)
  void (*lstm)(int64_t rows, int64_t hidden, const View& h, const View& c, const View& active, const View& gates,
               const View& c0);
  // dgates and dc0 from dh and dc
  void (*lstm_grad)(int64_t rows, int64_t hidden, const View& dgates, const View& dc0, const View& dh, const View& dc,
                    const View& active, const View& c, const View& c0);
  // x and y (N, 3H) are reset, update and new of the input and of the state; active (N, 3H) after activation.
  // n = tanh(xn + r yn), h = n + z (h0 - n)
  void (*gru)(int64_t rows, int64_t hidden, const View& h, const View& active, const View& x, const View& y,
              const View& h0);
  void (*gru_grad)(int64_t rows, int64_t hidden, const View& dx, const View& dy, const View& dh0, const View& dh,
                   const View& active, const View& y, const View& h0);
  // A layer in one direction, of types that it is made for: float, double, bfloat16 where the processor multiplies
  // pairs of them. What goes from one step to the next is then rounded to bfloat16, all else is float.
  bool (*has_layers)(DType dtype);
  int64_t (*workspace)(const RnnShape& shape, DType dtype);  // elements per row that backward needs of forward
  bool (*by_strassen)(const RnnShape& shape, DType dtype);   // whether the steps of the layer multiply so
  void (*layer)(const RnnShape& shape, const RnnForward& f);
  void (*layer_grad)(const RnnShape& shape, const RnnBackward& b);
  // dw (M, N) = deltas (L, M) transposed @ states (L, N), and the sums of deltas unless null, if that can be had
  // faster than by a plain GEMM. M is whole gates.
  bool (*weight_grad)(const View& dw, const View& deltas, const View& states, int64_t gate, const RnnGroupSums* sums);
  // joined (L, I + H): the input and the state that each row's step began with, side by side
  void (*joined)(const RnnShape& shape, const View& joined, const View& x, const View& out, const View& h0);
  // Rows of x (L, I) that are the same bytes form a group: group (L) is each row's, first its first row. Returns the
  // number of groups, or 0 if there are more than `most`, which is the size of `first`.
  int64_t (*groups)(const View& x, int64_t most, int64_t* group, int64_t* first);
};

}  // namespace rl
