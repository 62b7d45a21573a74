#include "base/check.h"

#include <cstdio>

namespace rl {

std::string to_text(int64_t v) { return std::to_string(v); }
std::string to_text(uint64_t v) { return std::to_string(v); }
std::string to_text(double v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", v);
  return buffer;
}

Piece::Piece(const char* s)
    : value(s), append([](std::string& to, const void* p) { to += static_cast<const char*>(p); }) {}

std::string join(std::initializer_list<Piece> pieces) {
  std::string s;
  for (const Piece& piece : pieces) piece.append(s, piece.value);
  return s;
}
void fail_with(ErrorKind kind, std::initializer_list<Piece> pieces) { throw Error(kind, join(pieces)); }

}  // namespace rl
