// Tables made by a rule: every kernel of every family becomes what a policy says, and no list of kernels is kept for
// it.
//
// A policy is a struct with
//   template <class K, class R, class... A> static R call(A... arguments);
// which stands for the kernel `K::of(backend)`, a function R(A...), of whatever backend: the same kernel of another one
// can be called from it. K is a type of its own for each kernel.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

#include "backend/backend.h"

namespace rl {
namespace tables {

using AnyFunction = void (*)();
template <class R, class... A> using Function = R (*)(A...);
template <class T> constexpr size_t kPointers = sizeof(T) / sizeof(void*);

// The kernel at `entry` of the table at `family` of a backend.
template <class Table, size_t family, size_t entry, class R, class... A> struct Kernel {
  static R (*of(const Backend& backend))(A...) {
    const auto all =
        std::bit_cast<std::array<const void*, kPointers<BackendTables>>>(static_cast<const BackendTables&>(backend));
    const auto kernels =
        std::bit_cast<std::array<AnyFunction, kPointers<Table>>>(*static_cast<const Table*>(all[family]));
    return reinterpret_cast<Function<R, A...>>(kernels[entry]);
  }
};

// Converts to whatever function pointer it initialises, and to whatever pointer to a table.
template <class Policy, class Table, size_t family, size_t entry> struct AnyKernel {
  template <class R, class... A> constexpr operator Function<R, A...>() const {
    return &Policy::template call<Kernel<Table, family, entry, R, A...>, R, A...>;
  }
};
template <class Policy, class Table, size_t family, size_t... entry>
constexpr Table make(std::index_sequence<entry...>) {
  return {AnyKernel<Policy, Table, family, entry>()...};
}
template <class Policy, class Table, size_t family> inline constexpr Table table =
    make<Policy, Table, family>(std::make_index_sequence<kPointers<Table>>());
template <class Policy, size_t family> struct AnyTable {
  template <class Table> constexpr operator const Table*() const { return &table<Policy, Table, family>; }
};

template <class Policy, size_t... family> constexpr BackendTables make_all(std::index_sequence<family...>) {
  return {AnyTable<Policy, family>()...};
}

}  // namespace tables

template <class Policy> constexpr BackendTables tables_of() {
  return tables::make_all<Policy>(std::make_index_sequence<tables::kPointers<BackendTables>>());
}

}  // namespace rl
