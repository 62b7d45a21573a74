// Errors: one C++ exception, thrown anywhere, turned into the Python class of its kind at the boundary.
#pragma once
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>

namespace rl {

enum class ErrorKind : uint8_t {
  Runtime,
  Value,
  Type,
  Index,
  NotImplemented,
  OutOfMemory,
  Attribute,
  Overflow,
  Linalg,
  Assertion
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  std::string& message() { return message_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

// Parts of a message: text, values, and anything with a `std::string to_text(const T&)` found by its namespace.
inline std::string to_text(const char* s) { return s; }  // also of char*, which would pass for a bool
inline std::string to_text(std::string_view s) { return std::string(s); }
inline std::string to_text(const std::string& s) { return s; }
std::string to_text(int64_t v);
std::string to_text(uint64_t v);
std::string to_text(double v);
inline std::string to_text(int v) { return to_text(static_cast<int64_t>(v)); }
inline std::string to_text(unsigned v) { return to_text(static_cast<uint64_t>(v)); }
inline std::string to_text(bool v) { return v ? "True" : "False"; }
// One piece of a message, by reference: messages of any pieces are joined by one function, not by one for each of them.
struct Piece {
  const void* value;
  void (*append)(std::string& to, const void* value);
  Piece(const char* s);
  template <class T> Piece(const T& v)
      : value(&v), append([](std::string& to, const void* p) { to += to_text(*static_cast<const T*>(p)); }) {}
};
std::string join(std::initializer_list<Piece> pieces);
[[noreturn, gnu::cold]] void fail_with(ErrorKind kind, std::initializer_list<Piece> pieces);

template <class... P> [[gnu::always_inline]] inline std::string text(const P&... parts) { return join({parts...}); }
template <class... P> [[noreturn, gnu::always_inline]] inline void fail(ErrorKind kind, const P&... parts) {
  fail_with(kind, {parts...});
}

// CHECK(dim < ndim, Index, "select: ...", dim): throws an IndexError unless the condition holds.
#define CHECK(condition, kind, ...)                                                        \
  do {                                                                                     \
    if (__builtin_expect(!(condition), 0)) ::rl::fail(::rl::ErrorKind::kind, __VA_ARGS__); \
  } while (0)

// The one place for the arithmetic of sizes: it throws instead of overflowing.
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  CHECK(!__builtin_mul_overflow(a, b, &r), Runtime, "the size is too large: ", a, " times ", b, " overflows 64 bits");
  return r;
}
inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  CHECK(!__builtin_add_overflow(a, b, &r), Runtime, "the size is too large: ", a, " plus ", b, " overflows 64 bits");
  return r;
}

}  // namespace rl
