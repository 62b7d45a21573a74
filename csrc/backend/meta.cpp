#include "backend/meta.h"

#include <type_traits>

#include "backend/tables.h"
#include "base/check.h"

namespace rl {
namespace {

template <class T> constexpr bool is_view = std::is_same_v<std::remove_cvref_t<std::remove_pointer_t<T>>, View>;

// What a kernel does to tensors without memory:
//   one that writes               nothing
//   one that says whether it did  nothing, and says that it did not: the op goes on by other kernels
//   one that counts elements      fails, for nobody knows
//   a question of types or sizes  is answered as by the CPU's, so that errors, and the order of results in memory, are
//                                 the CPU's too
struct Meta {
  template <class K, class R, class... A> static R call(A... arguments) {
    if constexpr (std::is_void_v<R> || std::is_same_v<R, void*>) {
      return R();
    } else if constexpr (!(is_view<A> || ...)) {
      return K::of(backend(Device()))(arguments...);
    } else if constexpr (std::is_same_v<R, bool>) {
      return false;
    } else {
      fail(ErrorKind::NotImplemented,
           "Cannot copy out of meta tensor; no data! The size of the result depends on values");
    }
  }
};

}  // namespace

constinit const Backend meta_backend = {tables_of<Meta>(), "meta", false};

}  // namespace rl
