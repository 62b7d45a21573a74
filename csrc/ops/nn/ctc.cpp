#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

struct CtcArguments {
  Ints labels, start, input_length, target_length;
  int64_t steps, batch, classes, blank, longest;
  CtcShape shape() const {
    return {
        steps, batch, classes, blank, longest, labels.data(), start.data(), input_length.data(), target_length.data()};
  }
};

// The gradient as a function that can be differentiated again: composed in Python, for it is rare and long.
static Tensor differentiable_gradient(const CtcArguments& a, const Tensor& x, const Tensor& dy, bool zero_infinity) {
  auto list = [](const int64_t* values, int64_t n, PyObject* into) {
    for (int64_t i = 0; into && i < n; ++i) {
      PyObject* v = PyLong_FromLongLong(values[i]);
      if (!v || PyList_Append(into, v) < 0) Py_CLEAR(into);
      Py_XDECREF(v);
    }
    return into;
  };
  PyObject* targets = PyList_New(0);
  for (int64_t n = 0; n < a.batch; ++n) targets = list(a.labels.data() + a.start[n], a.target_length[n], targets);
  PyObject *inputs = list(a.input_length.data(), a.batch, PyList_New(0)),
           *lengths = list(a.target_length.data(), a.batch, PyList_New(0));
  PyObject* module = PyImport_ImportModule("rushlight._ops.ctc");
  PyObject* g = module && targets && inputs && lengths
                    ? PyObject_CallMethod(module, "gradient", "OOOOOLO", x.object(), dy.object(), targets, inputs,
                                          lengths, static_cast<long long>(a.blank), zero_infinity ? Py_True : Py_False)
                    : nullptr;
  for (PyObject* o : {targets, inputs, lengths, module}) Py_XDECREF(o);
  if (!g) throw Error(ErrorKind::Runtime, "");  // the Python error is set
  return Tensor::own(reinterpret_cast<TensorObject*>(g));
}

// ctc_loss: -log of the probability of all alignments        the gradient is by the scores before log_softmax, as
// everybody uses it
struct CtcLossBackward : Node {
  static constexpr const char* kName = "CtcLossBackward0";
  Saved log_probs, result0, result1;
  CtcArguments arguments;
  bool zero_infinity = false;
  Grads backward(const Grads& dy) {
    Tensor x = log_probs.unpack(*this);
    if (grad_enabled() && (x.requires_grad() || dy[0].requires_grad()) && x.has_values() && x.numel())
      return {differentiable_gradient(arguments, x, dy[0], zero_infinity)};
    Tensor grad = empty(x.sizes(), x.dtype(), x.device());
    {
      NoGrad raw;
      Tensor xc = contiguous(x), factor = contiguous(dy[0]);
      if (x.numel())
        backend(grad.device())
            .loss->ctc_grad(arguments.shape(), zero_infinity, grad.view(), factor.view(), result0.unpack(*this).view(),
                            result1.unpack(*this).view(), xc.view());
    }
    return {grad};
  }
  FIELDS(log_probs, result0, result1)
};

static Ints numbers(const Tensor& t) {
  NoGrad raw;
  CHECK(is_integral(t.dtype()), Runtime, "ctc_loss: expected lengths and targets of an integral type, got ",
        info(t.dtype()).name);
  CHECK(t.has_values(), NotImplemented, "ctc_loss: lengths and targets must have values, got a meta tensor");
  Tensor flat = to_host(contiguous(cast(t, DType::Int64)));
  Ints out(flat.numel());
  for (int64_t i = 0; i < flat.numel(); ++i) out[i] = flat.data<int64_t>()[i];
  return out;
}

static CtcArguments arguments_of(const Tensor& log_probs, const Tensor& targets, const Ints& input_lengths,
                                 const Ints& target_lengths, int64_t blank) {
  CtcArguments a;
  a.steps = log_probs.sizes()[0];
  a.batch = log_probs.sizes()[1];
  a.classes = log_probs.sizes()[2];
  a.blank = blank;
  CHECK(blank >= 0 && blank < a.classes, Runtime, "blank must be in label range");
  CHECK(input_lengths.size() == a.batch, Runtime, "input_lengths must be of size batch_size");
  CHECK(target_lengths.size() == a.batch, Runtime, "target_lengths must be of size batch_size");
  a.input_length = input_lengths;
  a.target_length = target_lengths;
  a.labels = numbers(targets);
  a.start = Ints(a.batch);
  a.longest = 0;
  int64_t at = 0;
  CHECK(targets.dim() == 1 || (targets.dim() == 2 && targets.sizes()[0] == a.batch), Runtime,
        "Expected tensor to have size ", a.batch, " at dimension 0, but got size ",
        targets.dim() ? targets.sizes()[0] : 0,
        " for argument #2 'targets' (while checking arguments for ctc_loss_cpu)");
  for (int64_t n = 0; n < a.batch; ++n) {
    CHECK(target_lengths[n] >= 0, Runtime, "Expected target_lengths to have value at least 0, but got value ",
          target_lengths[n]);
    CHECK(input_lengths[n] >= 0, Runtime, "Expected input_lengths to have value at least 0, but got value ",
          input_lengths[n]);
    CHECK(input_lengths[n] <= a.steps, Runtime, "Expected input_lengths to have value at most ", a.steps,
          ", but got value ", input_lengths[n], " (while checking arguments for ctc_loss_cpu)");
    a.start[n] = targets.dim() == 2 ? n * targets.sizes()[1] : at;
    at += target_lengths[n];
    if (targets.dim() == 2)
      CHECK(target_lengths[n] <= targets.sizes()[1], Runtime, "Expected tensor to have size at least ",
            target_lengths[n], " at dimension 1, but got size ", targets.sizes()[1],
            " for argument #2 'targets' (while checking arguments for ctc_loss_cpu)");
    a.longest = std::max(a.longest, target_lengths[n]);
  }
  if (targets.dim() == 1)
    CHECK(at == targets.numel(), Runtime, "Expected the lengths of the targets to add up to ", targets.numel(),
          ", got ", at, " (while checking arguments for ctc_loss_cpu)");
  for (int64_t n = 0; n < a.batch; ++n)
    for (int64_t i = 0; i < target_lengths[n]; ++i) {
      int64_t label = a.labels[a.start[n] + i];
      CHECK(label >= 0 && label < a.classes, Runtime, "ctc_loss: expected labels in [0, ", a.classes, "), got ", label);
    }
  return a;
}

static Tensor ctc_lists(const Tensor& input, const Tensor& targets, const Ints& input_lengths,
                        const Ints& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  CHECK(input.dim() == 2 || input.dim() == 3, Runtime,
        "ctc_loss: expected log_probs of shape (steps, batch, classes) or (steps, classes), got ",
        to_text(input.sizes()));
  CHECK(input.dtype() == DType::Float32 || input.dtype() == DType::Float64, NotImplemented,
        "\"ctc_loss_cpu\" not implemented for '", info(input.dtype()).legacy, "'");
  bool batched = input.dim() == 3;
  Tensor log_probs = batched ? input : unsqueeze(input, 1),
         labels = batched || targets.dim() != 1 ? targets : unsqueeze(targets, 0);
  CtcArguments a = arguments_of(log_probs, labels, input_lengths, target_lengths, blank);
  Tensor loss = empty(Ints{a.batch}, input.dtype(), input.device());
  Tensor alpha =
      empty(Ints{a.batch, a.steps, checked_add(checked_mul(2, a.longest), 1)}, input.dtype(), input.device());
  if (a.batch) {
    NoGrad raw;
    Tensor x = contiguous(log_probs);
    backend(loss.device()).loss->ctc(a.shape(), loss.view(), alpha.view(), x.view());
  }
  loss = record<CtcLossBackward>(loss, {log_probs}, [&](auto& n) {
    n.log_probs = save(log_probs);
    n.result0 = save_output(n, loss);
    n.result1 = save(alpha);
    n.arguments = a;
    n.zero_infinity = zero_infinity;
  });
  if (zero_infinity) loss = where(eq(loss, Scalar(std::numeric_limits<double>::infinity())), Scalar(0), loss);
  if (reduction == 1) {
    Tensor lengths = empty(Ints{a.batch}, input.dtype());
    for (int64_t n = 0; n < a.batch; ++n) {
      double length = static_cast<double>(std::max<int64_t>(target_lengths[n], 1));
      if (input.dtype() == DType::Float32) lengths.data<float>()[n] = static_cast<float>(length);
      else lengths.data<double>()[n] = length;
    }
    return div(sum_to(div(loss, to_device(lengths, input.device())), Ints()), static_cast<double>(a.batch));
  }
  if (reduction == 2) return sum_to(loss, Ints());
  return batched ? loss : squeeze(loss, 0);
}
static Tensor ctc_tensors(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                          const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  return ctc_lists(log_probs, targets, numbers(input_lengths), numbers(target_lengths), blank, reduction,
                   zero_infinity);
}

static const Register registered([](Ops& ops) {
  const char* args = "log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False";
  ops.def("ctc_loss", ctc_tensors, args, kNoOut | kCastFull, R"(
    Computes the connectionist temporal classification loss: -log of the probability of each target.

    The probability is summed over all alignments of the target with the steps of the input.

    Args:
        log_probs: log probabilities (steps, batch, classes), or (steps, classes).
        targets: classes (batch, longest), padded, or all of them in one row.
        input_lengths: how many steps of each sample count.
        target_lengths: how long each target is.
        blank: the class that stands for no output.
        reduction: 0 none, 1 mean of the losses divided by the targets' lengths, 2 sum.
        zero_infinity: whether infinite losses, of targets that do not fit, count as 0.

    Example:
        >>> log_probs = torch.zeros(4, 1, 3).log_softmax(2)
        >>> torch.ctc_loss(log_probs, torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2]), reduction=2)
        tensor(1.6864))");
  ops.def("ctc_loss", ctc_lists, args, kNoOut | kCastFull);
});

}  // namespace rl::ops
