// A layer of a recurrent network, in one direction, as one op.
#include <algorithm>
#include <cstring>

#include "autograd/engine.h"
#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/index/embedding.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/rnn.h"
#include "ops/ops.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"

namespace rl::ops {

// What a call is made of, separate from its tensors.
struct RnnCall {
  RnnCell cell = RnnCell::Lstm;
  Ints batch_sizes;  // empty: not packed
  bool batch_first = false, reverse = false;

  bool packed() const { return !batch_sizes.empty(); }
  RnnShape shape(const Tensor& input, const Tensor& h0) const {
    int64_t steps = packed() ? batch_sizes.size() : input.sizes()[batch_first ? 1 : 0];
    return {cell,          steps,
            h0.sizes()[0], input.sizes()[input.dim() - 1],
            h0.sizes()[1], packed() ? batch_sizes.data() : nullptr,
            batch_first,   reverse};
  }
};

struct RnnTensors {
  Tensor input, h0, c0, w_ih, w_hh, b_ih, b_hh;  // c0 of LSTMs; biases may be undefined
};

// The layer written with ops, for derivatives of its derivative: (out, h_n) or (out, h_n, c_n).
static Tensors composed(const RnnCall& call, const RnnTensors& x) {
  Tensor gates = linear(x.input, x.w_ih, x.b_ih), h = x.h0, c = x.c0;
  RnnShape shape = call.shape(x.input, x.h0);
  Tensors outs(shape.steps);
  Ints first;
  for (int64_t t = 0, at = 0; t < call.batch_sizes.size(); at += call.batch_sizes[t++]) first.push_back(at);
  auto replace = [&](Tensor& all, const Tensor& head) {
    if (head.sizes()[0] == shape.rows) all = head;
    else all = cat({head, narrow(all, 0, head.sizes()[0], shape.rows - head.sizes()[0])}, 0);
  };
  for (int64_t s = 0; s < shape.steps; ++s) {
    int64_t t = call.reverse ? shape.steps - 1 - s : s, count = call.packed() ? call.batch_sizes[t] : shape.rows;
    Tensor sums = call.packed() ? narrow(gates, 0, first[t], count) : select(gates, call.batch_first ? 1 : 0, t);
    Tensor before = narrow(h, 0, 0, count), own = linear(before, x.w_hh, x.b_hh), now, cell;
    switch (call.cell) {
      case RnnCell::Lstm: std::tie(now, cell) = lstm_step(add(sums, own), narrow(c, 0, 0, count)); break;
      case RnnCell::Gru: now = gru_step(sums, own, before); break;
      case RnnCell::Tanh: now = tanh(add(sums, own)); break;
      case RnnCell::Relu: now = relu(add(sums, own)); break;
    }
    outs[t] = now;
    replace(h, now);
    if (cell.defined()) replace(c, cell);
  }
  Tensor out = call.packed() ? cat(outs, 0) : stack(outs, call.batch_first ? 1 : 0);
  return c.defined() ? Tensors{out, h, c} : Tensors{out, h};
}

// Note [Equal rows]
// A sequence of words or letters is rows of a small table, most of them many times. Products with the input are then
// taken once per different row: forward looks the sums of the gates up, and the gradient of w_ih is a product of the
// different rows with the gates' gradients summed over equal ones.
struct EqualRows {
  Tensor group;  // (L), Int64: which of the different rows each row is; undefined where most rows differ
  Tensor first;  // (groups), Int64: where each of them comes first

  bool found() const { return group.defined(); }
  // Whether rows are equal only where `at` (L) is.
  bool within(const Tensor& at) const {
    const int64_t *to = group.view().as<int64_t>(), *head = first.view().as<int64_t>(), *key = at.view().as<int64_t>();
    for (int64_t r = 0; r < group.numel(); ++r)
      if (key[r] != key[head[to[r]]]) return false;
    return true;
  }
};
static EqualRows equal_rows(const Tensor& rows) {
  constexpr int64_t kFew = 128;  // rows that are too few to look
  int64_t count = rows.sizes()[0], most = count / 4;
  if (count < kFew || rows.sizes()[1] == 0 || !rows.has_values()) return {};
  Tensor group = empty({count}, DType::Int64, rows.device()), first = empty({most}, DType::Int64, rows.device());
  int64_t groups =
      backend(rows.device()).rnn->groups(rows.view(), most, group.view().as<int64_t>(), first.view().as<int64_t>());
  if (groups == 0) return {};
  return {group, narrow(first, 0, 0, groups)};
}

static bool all_zero(const Tensor& contiguous) {
  if (!contiguous.on_host()) return false;
  const char* bytes = contiguous.data<char>();
  auto count = static_cast<size_t>(contiguous.numel() * contiguous.item_size());
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

// deltas (L, M) transposed @ states (L, N): a gradient of weights, of gates of `gate` rows. Unless `sums` (groups, M)
// is null, deltas are added to it at their `group`.
static Tensor over_steps(const Tensor& deltas, const Tensor& states, int64_t gate, const Tensor& group = {},
                         Tensor* sums = nullptr) {
  {
    Tensor dw = empty({deltas.sizes()[1], states.sizes()[1]}, deltas.dtype(), deltas.device());
    RnnGroupSums by_group;
    if (sums) by_group = {sums->view(), group.view().as<int64_t>()};
    if (backend(dw.device())
            .rnn->weight_grad(dw.view(), deltas.view(), states.view(), gate, sums ? &by_group : nullptr))
      return dw;
  }
  if (sums) *sums = index_add(*sums, 0, group, deltas);
  return mm(t(deltas), states);
}

// Products with the states before each step, of a layer that is not packed. These are the results one step on: one row
// further where sequences are whole, one batch where steps are. What stands before the first step is h0.
struct StatesBefore {
  Tensor first, own, deltas, states;  // own: the state before the first step, undefined if zero
  Tensor group, sums;                 // the gradients summed over equal rows, once product() has seen all of them

  // The gradients of the first step are zero afterwards if sequences are whole: another sequence's end is before them.
  // `equal`: null where the sums are not wanted
  StatesBefore(const RnnShape& s, const Tensor& dgates, const Tensor& out, const Tensor& h0, const EqualRows* equal) {
    int64_t rows = dgates.sizes()[0], width = dgates.sizes()[1], back = s.batch_first ? 1 : s.rows;
    int64_t t = s.reverse ? s.steps - 1 : 0, from = s.reverse ? 0 : back;
    auto first_step = [&](const Tensor& x) {
      return s.batch_first ? select(x, 0, t) : narrow(x, 0, t * s.rows, s.rows);
    };
    auto by_step = [&](const Tensor& x, const Ints& sizes) {
      return s.batch_first ? transpose(reshape(x, sizes), 0, 1) : x;
    };
    first = first_step(by_step(dgates, {s.rows, s.steps, width}));
    deltas = narrow(dgates, 0, from, rows - back);
    states = narrow(reshape(out, {rows, s.hidden}), 0, s.reverse ? back : 0, rows - back);
    if (equal) {
      group = narrow(equal->group, 0, from, rows - back);
      sums = index_add(zeros({equal->first.numel(), width}, dgates.dtype(), dgates.device()), 0,
                       first_step(by_step(equal->group, {s.rows, s.steps})), first);
    }
    Tensor here = first;
    if (!all_zero(h0)) own = h0, first = clone(here);
    if (s.batch_first) fill_raw(here, 0);
  }
  // Of columns from..from + count of the gradients, transposed: all of them where the sums are wanted.
  Tensor product(int64_t from, int64_t count) {
    Tensor all =
        over_steps(narrow(deltas, 1, from, count), states, states.sizes()[1], group, sums.defined() ? &sums : nullptr);
    return own.defined() ? add(all, mm(t(narrow(first, 1, from, count)), own)) : all;
  }
};

// rnn_layer: h_t = cell(x_t, h_t-1) for all steps. Its backward goes through the steps once for the gradients of the
// gates' sums; those of the weights and of the input are then products over all steps.
struct RnnLayerBackward : Node {
  static constexpr const char* kName = "RnnLayerBackward0";
  static constexpr bool kUndefinedOk = true;
  Saved input, hx, cx, workspace, result;
  SmallVector<Saved, 2> weights;
  RnnCall call;
  EqualRows equal;
  bool by_rows = false;  // a stack of gradients, one after the other

  RnnTensors saved() {
    auto maybe = [&](const Saved& s) { return s.defined() ? s.unpack(*this) : Tensor(); };
    return {input.unpack(*this),      hx.unpack(*this),  maybe(cx),        weights[0].unpack(*this),
            weights[1].unpack(*this), maybe(weights[2]), maybe(weights[3])};
  }
  Grads backward(const Grads& dy) {
    RnnTensors x = saved();
    return grad_enabled() ? again(x, dy) : fused(x, dy);
  }

  Grads stacked(const Grads& dy) {
    struct Marked {
      bool& mark;
      ~Marked() { mark = false; }
    } marked{by_rows = true};
    return backward_by_rows(*this, dy);
  }

  // Runs the composed form on stand-ins of the inputs and differentiates that.
  Grads again(RnnTensors x, const Grads& dy) {
    Tensor* all[] = {&x.input, &x.h0, &x.c0, &x.w_ih, &x.w_hh, &x.b_ih, &x.b_hh};
    Tensors wanted, roots, gradients;
    Ints positions;
    for (int i = 0; i < 7; ++i) {
      if (!needs(i)) continue;
      *all[i] = record_alias(alias(*all[i]), *all[i]);
      wanted.push_back(*all[i]);
      positions.push_back(i);
    }
    if (is_half(x.input.dtype()))  // sums of float16 and bfloat16 are taken in float
      for (Tensor* t : all)
        if (t->defined()) *t = cast(*t, DType::Float32);
    Tensors results = composed(call, x);
    for (int64_t i = 0; i < results.size(); ++i)
      if (dy[i].defined() && results[i].requires_grad())
        roots.push_back(results[i]), gradients.push_back(cast(dy[i], results[i].dtype()));
    Grads dx(7);
    if (roots.empty()) return dx;
    Tensors found = run_backward({.roots = roots,
                                  .gradients = gradients,
                                  .retain_graph = true,
                                  .create_graph = true,
                                  .inputs = wanted,
                                  .accumulate = false});
    for (int64_t i = 0; i < positions.size(); ++i) dx[positions[i]] = found[i];
    return dx;
  }

  // The table whose rows the input is, and where they are, if the table takes the gradients of equal rows together.
  EmbeddingBackward* reader_of(Tensor& at) {
    Node* to = edges[0].node;
    if (!equal.found() || !needs(0) || by_rows || to->type != &NodeTypeOf<EmbeddingBackward>::type ||
        (hooks && hooks->post))
      return nullptr;
    auto* table = static_cast<EmbeddingBackward*>(to);
    if (!table->takes_sums()) return nullptr;
    at = contiguous(cast(table->indices.unpack(*table), DType::Int64));
    at = reshape(at, {at.numel()});
    return equal.within(at) ? table : nullptr;
  }

  Grads fused(const RnnTensors& x, const Grads& dy) {
    Tensor in = contiguous(x.input), h0 = contiguous(x.h0), w_hh = contiguous(x.w_hh), out = result.unpack(*this);
    RnnShape shape = call.shape(in, h0);
    int64_t rows = out.numel() / std::max<int64_t>(1, shape.hidden), h = shape.hidden;
    int64_t deltas = call.cell == RnnCell::Gru ? 4 : rnn_gates(call.cell);
    bool lstm = call.cell == RnnCell::Lstm;
    Tensor dgates = empty(Ints{rows, deltas * h}, in.dtype(), in.device()), dh0 = needs(1) ? empty_like(h0) : Tensor(),
           dc0 = lstm ? empty_like(h0) : Tensor();
    Tensor kept = workspace.defined() ? workspace.unpack(*this) : Tensor();
    Tensor at;  // of each row of the input, where the table it was read from takes its gradient
    EmbeddingBackward* table = reader_of(at);
    constexpr int64_t kCached = 1 << 20;  // bytes
    bool input_grad = needs(0) && !table, cached = !is_half(in.dtype()) && x.w_ih.numel() * in.item_size() <= kCached;
    Tensor din = input_grad && cached ? empty(x.input.sizes(), in.dtype(), in.device()) : Tensor(),
           w_ih = din.defined() ? contiguous(x.w_ih) : Tensor();
    {
      Tensor given[3];
      View views[3], kept_view;
      const View* pointers[3] = {};
      for (int i = 0; i < dy.size(); ++i)
        if (dy[i].defined()) given[i] = contiguous(dy[i]), views[i] = given[i].view(), pointers[i] = &views[i];
      if (kept.defined()) kept_view = kept.view();
      backend(dgates.device())
          .rnn->layer_grad(shape,
                           {dgates.view(), dh0.defined() ? dh0.view() : View{}, lstm ? dc0.view() : View{}, pointers[0],
                            pointers[1], pointers[2], kept.defined() ? &kept_view : nullptr, out.view(), w_hh.view(),
                            h0.view(), din.defined() ? din.view() : View{}, din.defined() ? w_ih.view() : View{}});
    }
    Grads dx(7);
    dx[1] = dh0;
    if (needs(2)) dx[2] = dc0;
    // A GRU's sums of the input have gradients 0, 1, 2, its products with the state 0, 1, 3.
    bool gru = call.cell == RnnCell::Gru;
    auto of_input = [&](const Tensor& deltas) { return gru ? narrow(deltas, 1, 0, 3 * h) : deltas; };
    if (input_grad && !cached) din = reshape(mm(of_input(dgates), x.w_ih), x.input.sizes());
    dx[0] = din;
    Tensor flat = reshape(in, {rows, shape.input}), sums_by_row;
    auto biases = [&](const Tensor& rows) {
      if (!needs(5) && !needs(6)) return;
      Tensor sums = sum(rows, Ints{0});
      if (needs(5)) dx[5] = gru ? clone(narrow(sums, 0, 0, 3 * h)) : sums;
      if (needs(6)) dx[6] = gru ? cat({narrow(sums, 0, 0, 2 * h), narrow(sums, 0, 3 * h, h)}, 0) : clone(sums);
    };
    if (!equal.found()) {
      biases(dgates);
      if (needs(3) && !needs(4)) dx[3] = mm(t(of_input(dgates)), flat);
    }
    const bool summed = equal.found() && (table || needs(3) || needs(5) || needs(6));
    const bool separate = equal.found() || !needs(3);  // the product with the input
    // Rows that count nothing are multiplied by zero there, which only bounded states survive.
    const bool shifted = needs(4) && separate && !call.packed() && call.cell != RnnCell::Relu;
    if (summed && (!shifted || gru))
      sums_by_row =
          index_add(zeros({equal.first.numel(), deltas * h}, in.dtype(), in.device()), 0, equal.group, dgates);
    if (shifted) {
      StatesBefore states(shape, dgates, out, h0, summed && !gru ? &equal : nullptr);
      dx[4] = gru ? cat({states.product(0, 2 * h), states.product(3 * h, h)}, 0) : states.product(0, deltas * h);
      if (states.sums.defined()) sums_by_row = states.sums;
    }
    if (summed) {
      if (table) table->add_sums(mm(of_input(sums_by_row), x.w_ih), index_select(at, 0, equal.first));
      biases(sums_by_row);
      if (needs(3)) dx[3] = mm(t(of_input(sums_by_row)), index_select(flat, 0, equal.first));
    }
    if (!needs(4) || shifted) return dx;
    // The gradients of the gates times the input, and times the state: one product, except for what a GRU has separate.
    if (separate) shape.input = 0;
    Tensor joined = empty(Ints{rows, shape.input + h}, in.dtype(), in.device());
    backend(joined.device()).rnn->joined(shape, joined.view(), in.view(), out.view(), h0.view());
    Tensor both = over_steps(of_input(dgates), joined, h);
    if (!separate) dx[3] = contiguous(narrow(both, 1, 0, shape.input));
    if (gru)
      dx[4] = cat({narrow(narrow(both, 0, 0, 2 * h), 1, shape.input, h),
                   over_steps(narrow(dgates, 1, 3 * h, h), narrow(joined, 1, shape.input, h), h)},
                  0);
    else dx[4] = separate ? both : contiguous(narrow(both, 1, shape.input, h));
    return dx;
  }
  FIELDS(input, hx, cx, weights, workspace, result)
};

static void check_layer(const RnnCall& call, const RnnTensors& x) {
  int64_t dims = call.packed() ? 2 : 3;
  CHECK(x.input.dim() == dims, Runtime, "input must have ", dims, " dimensions, got ", x.input.dim());
  CHECK(x.w_ih.dim() == 2 && x.w_hh.dim() == 2 && x.h0.dim() == 2 && x.input.is_float(), Runtime,
        "rnn: expected weights and a state of two dimensions and a floating input, got ", to_text(x.w_ih.sizes()), ", ",
        to_text(x.w_hh.sizes()), " and ", to_text(x.h0.sizes()));
  bool lstm = call.cell == RnnCell::Lstm;
  CHECK(x.c0.defined() == lstm, Runtime, "rnn: a cell state is for LSTMs, which need one");
  int64_t hidden = x.w_hh.sizes()[1], gates = checked_mul(rnn_gates(call.cell), hidden);
  int64_t rows = call.packed() ? call.batch_sizes[0] : x.input.sizes()[call.batch_first ? 0 : 1];
  auto same = [](const Tensor& t, IntSpan sizes) { return !t.defined() || t.sizes() == sizes; };
  CHECK(same(x.w_hh, {gates, hidden}) && same(x.w_ih, {gates, x.input.sizes()[dims - 1]}) && same(x.b_ih, {gates}) &&
            same(x.b_hh, {gates}) && same(x.h0, {rows, hidden}) && same(x.c0, {rows, hidden}),
        Runtime, "rnn: the sizes do not fit: input ", to_text(x.input.sizes()), ", weights ", to_text(x.w_ih.sizes()),
        " and ", to_text(x.w_hh.sizes()), ", state ", to_text(x.h0.sizes()));
  for (const Tensor* t : {&x.h0, &x.c0, &x.w_ih, &x.w_hh, &x.b_ih, &x.b_hh})
    if (t->defined()) {
      CHECK(t->dtype() == x.input.dtype(), Value, "rnn: the input is ", info(x.input.dtype()).name,
            ", but a weight or state is ", info(t->dtype()).name, ": all must have one type");
      CHECK(t->device() == x.input.device(), Runtime, "Expected all tensors to be on the same device");
    }
  int64_t total = 0;
  for (int64_t t = 0; t < call.batch_sizes.size(); ++t) {
    int64_t size = call.batch_sizes[t];
    CHECK(size > 0 && (t == 0 || size <= call.batch_sizes[t - 1]), Value,
          "batch sizes of a packed sequence must be positive and not grow, got ", to_text(call.batch_sizes));
    total = checked_add(total, size);
  }
  CHECK(!call.packed() || total == x.input.sizes()[0], Value, "batch sizes sum to ", total, ", but the input has ",
        x.input.sizes()[0], " rows");
  CHECK(call.packed() || x.input.sizes()[call.batch_first ? 1 : 0] > 0, Runtime,
        "Expected sequence length to be larger than 0 in RNN");
}

static RnnCell cell_of(const std::string& mode) {
  constexpr const char* kModes[] = {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"};
  int found = 0;
  while (found < 4 && mode != kModes[found]) ++found;
  CHECK(found < 4, Value, "Unrecognized RNN mode: ", mode);
  return static_cast<RnnCell>(found);
}

static Tensors rnn_layer(const Tensor& input, const Tensor& h0, const OptTensor& c0, const Tensor& w_ih,
                         const Tensor& w_hh, const OptTensor& b_ih, const OptTensor& b_hh, const std::string& mode,
                         const std::optional<Ints>& batch_sizes, bool batch_first, bool reverse) {
  RnnCall call;
  call.cell = cell_of(mode);
  CHECK(!batch_sizes || !batch_sizes->empty(), Value, "a packed sequence needs at least one step");
  if (batch_sizes) call.batch_sizes = *batch_sizes;
  call.batch_first = batch_first && !batch_sizes;
  call.reverse = reverse;
  RnnTensors x{input, h0, c0, w_ih, w_hh, b_ih, b_hh};
  check_layer(call, x);
  DType type = input.dtype();
  if (!backend(input.device()).rnn->has_layers(type)) {  // float16 and bfloat16 are computed in float
    auto wide = [](const Tensor& t) { return t.defined() ? cast(t, DType::Float32) : t; };
    Tensors results = rnn_layer(wide(input), wide(h0), wide(c0), wide(w_ih), wide(w_hh), wide(b_ih), wide(b_hh), mode,
                                batch_sizes, batch_first, reverse);
    for (Tensor& r : results) r = cast(r, type);
    return results;
  }
  RnnShape shape = call.shape(input, h0);
  int64_t hidden = shape.hidden, rows = call.packed() ? input.sizes()[0] : checked_mul(shape.steps, shape.rows);
  bool lstm = call.cell == RnnCell::Lstm, gru = call.cell == RnnCell::Gru;
  Ints sizes(input.sizes());
  sizes[input.dim() - 1] = hidden;
  Tensor out = empty(sizes, type, input.device()), hn = empty(h0.sizes(), type, input.device()),
         cn = lstm ? empty(h0.sizes(), type, input.device()) : Tensor(), kept;
  const Tensor all[] = {input, h0, x.c0, w_ih, w_hh, x.b_ih, x.b_hh};
  const Inputs inputs(all, 7);
  EqualRows equal;
  if (will_record(inputs) && (lstm || gru))
    kept = empty(Ints{rows, backend(input.device()).rnn->workspace(shape, type)}, is_half(type) ? DType::Float32 : type,
                 input.device());
  {
    NoGrad raw;
    Tensor in = contiguous(input), before = contiguous(h0), cell = lstm ? contiguous(c0) : Tensor(),
           wi = contiguous(w_ih), wh = contiguous(w_hh), bi = b_ih.defined() ? contiguous(b_ih) : Tensor(),
           bh = b_hh.defined() ? contiguous(b_hh) : Tensor(), gates;
    // Weights that fit a core's cache are applied step by step, else the input's product is taken for all steps at
    // once.
    constexpr int64_t kCached = 3 << 19;  // bytes
    Tensor flat = reshape(in, {rows, shape.input});
    equal = equal_rows(flat);
    if (equal.found()) flat = index_select(flat, 0, equal.first);
    bool half = is_half(type);  // whose gates stay in the kernel, as floats
    if (half) in = flat;
    else if (equal.found() || checked_mul(checked_mul(shape.input + hidden, rnn_gates(call.cell)),
                                          checked_mul(hidden, itemsize(type))) > kCached)
      gates = linear(flat, wi, gru || !bh.defined() ? bi : !bi.defined() ? bh : add(bi, bh));
    View in_view = in.view(), gates_view, bi_view, bh_view, kept_view;
    if (gates.defined()) gates_view = gates.view();
    if (bi.defined()) bi_view = bi.view();
    if (bh.defined()) bh_view = bh.view();
    if (kept.defined()) kept_view = kept.view();
    bool separate = gates.defined();
    backend(out.device())
        .rnn->layer(shape, {out.view(), hn.view(), lstm ? cn.view() : View{}, kept.defined() ? &kept_view : nullptr,
                            separate ? nullptr : &in_view, separate ? &gates_view : nullptr,
                            equal.found() ? equal.group.view().as<int64_t>() : nullptr, wi.view(), wh.view(),
                            bi.defined() ? &bi_view : nullptr, bh.defined() ? &bh_view : nullptr, before.view(),
                            lstm ? cell.view() : View{}});
  }
  Tensors results = lstm ? Tensors{out, hn, cn} : Tensors{out, hn};
  record_all<RnnLayerBackward>(results, inputs, [&](auto& n) {
    n.input = save(input);
    n.hx = save(h0);
    if (lstm) n.cx = save(c0);
    for (const Tensor* w : {&x.w_ih, &x.w_hh, &x.b_ih, &x.b_hh}) n.weights.push_back(w->defined() ? save(*w) : Saved());
    if (kept.defined()) n.workspace = save(kept);
    n.result = save_output(n, out, 0);
    n.call = call;
    n.equal = equal;
  });
  return results;
}

// Which multiplication the steps of a layer take, and how to overrule it, for rushlight.backends.cpu.
static constexpr const char* kGemms[] = {"", "direct", "strassen"};
static std::string rnn_gemm(const Tensor& weight, int64_t rows, int64_t steps, const std::string& mode) {
  CHECK(weight.dim() == 2 && weight.sizes()[0] > 0 && rows > 0 && steps > 0, Value,
        "recurrent_gemm: expected sizes above 0, got hidden_size ", weight.sizes()[0], ", batch ", rows, ", steps ",
        steps);
  const RnnShape shape{
      .cell = cell_of(mode), .steps = steps, .rows = rows, .input = weight.sizes()[1], .hidden = weight.sizes()[1]};
  const RnnKernels& rnn = *backend(weight.device()).rnn;
  return rnn.has_layers(weight.dtype()) && rnn.by_strassen(shape, weight.dtype()) ? "strassen" : "direct";
}
static std::string rnn_gemm_forced() { return kGemms[static_cast<int>(g_rnn_gemm.load())]; }
static void force_rnn_gemm(const std::string& name) {
  const auto* found = std::find(std::begin(kGemms), std::end(kGemms), name);
  CHECK(found != std::end(kGemms), Value, "recurrent layers multiply by 'direct' or 'strassen', got '", name, "'");
  g_rnn_gemm.store(static_cast<RnnGemm>(found - kGemms));
}

static const Register registered([](Ops& ops) {
  ops.def("_nn.rnn_layer", rnn_layer,
          "input, hx, cx, w_ih, w_hh, b_ih=None, b_hh=None, mode='LSTM', batch_sizes=None, batch_first=False, "
          "reverse=False",
          kNoOut,
          "(output, h_n) or (output, h_n, c_n) of one direction of a layer; mode is LSTM, GRU, RNN_TANH or RNN_RELU.");
  ops.def("_rnn_gemm", rnn_gemm, "weight, rows, steps, mode", kNoOut);
  ops.def("_rnn_gemm_forced", rnn_gemm_forced, "", kNoOut);
  ops.def("_force_rnn_gemm", force_rnn_gemm, "name", kNoOut);
});

}  // namespace rl::ops
