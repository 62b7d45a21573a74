// A source line of the user's program: the code object and the instruction that ran. Taking one costs
// some ten nanoseconds; it becomes text only when somebody asks.
#pragma once
#include <Python.h>

#include <string>
#include <utility>

namespace rl {

class Site {
 public:
  Site() = default;
  Site(PyCodeObject* code, int offset) : code_(code), offset_(offset) { Py_XINCREF(code_); }
  Site(const Site& o) : Site(o.code_, o.offset_) {}
  Site(Site&& o) noexcept : code_(std::exchange(o.code_, nullptr)), offset_(std::exchange(o.offset_, 0)) {}
  Site& operator=(Site o) noexcept {
    std::swap(code_, o.code_);
    std::swap(offset_, o.offset_);
    return *this;
  }
  ~Site() { Py_XDECREF(code_); }

  // The innermost frame that is not rushlight's own.
  static Site here();
  static void enable(bool on);
  static bool enabled();
  // Code under this folder is the library's, not the user's.
  static void set_library_prefix(const char* path);
  static bool is_library(PyCodeObject* code);

  explicit operator bool() const { return code_ != nullptr; }
  bool operator==(const Site& o) const { return code_ == o.code_ && offset_ == o.offset_; }
  PyCodeObject* code() const { return code_; }
  int line() const;
  std::string file() const;
  std::string function() const;
  std::string source() const;  // the text of the line, stripped; empty if the file cannot be read
  std::string assigned()
      const;  // what stands before the = of that line: "h", "h, c"; empty if it is no assignment of names
  std::string describe() const;  // train.py:12, in step: `loss = net(x)`

 private:
  PyCodeObject* code_ = nullptr;
  int offset_ = 0;
};

}  // namespace rl
