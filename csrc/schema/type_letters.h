// The types of the parameters and results of an op as text, a letter each, for the stubs that type checkers read:
// tools/stubs/ops.py says what the letters mean. Some bytes a function, no table of pointers.
#pragma once
#include "schema/arguments.h"

namespace rl {

template <class T> struct TypeLetter;
#define TYPE_LETTER(type, text)         \
  template <> struct TypeLetter<type> { \
    static constexpr char kText = text; \
  }
TYPE_LETTER(Tensor, 't');
TYPE_LETTER(OptTensor, 'T');
TYPE_LETTER(Value, 'v');
TYPE_LETTER(Scalar, 'n');
TYPE_LETTER(int64_t, 'i');
TYPE_LETTER(double, 'f');
TYPE_LETTER(bool, 'b');
TYPE_LETTER(Ints, 's');
TYPE_LETTER(Tensors, 'l');
TYPE_LETTER(DType, 'd');
TYPE_LETTER(Device, 'c');
TYPE_LETTER(MemoryFormat, 'm');
TYPE_LETTER(Layout, 'y');
TYPE_LETTER(std::string, 'a');
TYPE_LETTER(Generator*, 'G');
TYPE_LETTER(Object, 'o');
TYPE_LETTER(NewObject, 'o');
#undef TYPE_LETTER
// A capital letter: None is allowed too.
template <class T> struct TypeLetter<std::optional<T>> {
  static constexpr char kText = static_cast<char>(TypeLetter<T>::kText & ~0x20);
};

// "ttF" for (Tensor, Tensor, std::optional<double>); of a result that is a tuple, its items.
template <class... T> struct TypeLetters {
  static constexpr char kText[] = {TypeLetter<std::remove_cvref_t<T>>::kText..., '\0'};
};
template <> struct TypeLetters<void> {
  static constexpr char kText[] = "";
};
template <class... T> struct TypeLetters<std::tuple<T...>> : TypeLetters<T...> {};

}  // namespace rl
