// What must still be so for a tape to mean what the function means: facts about tensors, about Python objects that the
// function read, and about modes. Checked before each replay, so they are made to be checked quickly.
#pragma once
#include <Python.h>

#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace rl::compiler {

// A reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* o) : o_(Py_XNewRef(o)) {}
  Ref(Ref&& r) noexcept : o_(std::exchange(r.o_, nullptr)) {}
  Ref& operator=(Ref&& r) noexcept {
    std::swap(o_, r.o_);
    return *this;
  }
  Ref(const Ref&) = delete;
  ~Ref() { Py_XDECREF(o_); }
  PyObject* get() const { return o_; }

 private:
  PyObject* o_ = nullptr;
};

// Whether two objects are one, or immutable and equal to the bit.
bool same_value(PyObject* a, PyObject* b);

// What a tensor is like, but for its values.
struct TensorFact {
  PyTypeObject* type;
  DType dtype;
  bool requires_grad, has_base, inference, leaf, lazy, hooked;
  Device device;
  Ints geometry;  // sizes, then strides
  explicit TensorFact(const Tensor& t);
  bool holds(const TensorObject* t) const;
};
// ... of one that is there in every call: its memory, too.
struct StateFact {
  Tensor tensor;
  TensorFact fact;
  Storage* storage;
  char* data;
  int64_t offset;
  Version* version;
  PyObject* attributes;  // its __dict__
  explicit StateFact(const Tensor& t);
  bool holds() const;
};

// A fact about a Python object, as Python tells it: (kind, object, ...).
class ObjectFact {
 public:
  // ("dict", d, keys, values, whole): d[key] is the value; a value of Missing stands for none. whole: there is no more
  // ("list", l, items), ("cell", c, contents), ("function", f, code, defaults), ("type", o, its type),
  // ("class", c): its attributes, and those of its bases, are what they are; ("set", s, elements)
  ObjectFact(PyObject* told, PyObject* missing);
  bool holds();
  int traverse(visitproc visit, void* arg) const;

 private:
  enum class Kind : uint8_t { Dict, List, Cell, Function, Type, Class, Set };
  bool dict_holds();
  Kind kind_;
  bool whole_ = false;
  Ref object_, first_, second_;
  std::vector<Ref> keys_, values_;  // a null value: missing
  uint64_t tag_ = 0;
};

// The modes of the thread and the process that ops and modules ask.
struct Modes {
  uint64_t bits[4];
  static Modes now();
  bool operator==(const Modes&) const = default;
};

}  // namespace rl::compiler
