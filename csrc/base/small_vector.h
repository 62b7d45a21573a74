// A vector that keeps its first N items inside itself: shapes, gradients and edges rarely need more.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>

namespace rl {

// A borrowed run of items.
template <class T> struct Span {
  const T* data_ = nullptr;
  int64_t size_ = 0;
  Span() = default;
  Span(const T* data, int64_t size) : data_(data), size_(size) {}
  Span(std::initializer_list<T> items) : data_(items.begin()), size_(static_cast<int64_t>(items.size())) {}
  template <class V>
    requires requires(const V& v) {
      v.data();
      v.size();
    }
  Span(const V& v) : data_(v.data()), size_(static_cast<int64_t>(v.size())) {}
  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](int64_t i) const { return data_[i]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
};
template <class T> bool operator==(Span<T> a, Span<T> b) {
  if (a.size() != b.size()) return false;
  for (int64_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) return false;
  return true;
}

template <class T, int N> class SmallVector {
 public:
  SmallVector() = default;
  explicit SmallVector(int64_t n, const T& value = T()) { resize(n, value); }
  SmallVector(std::initializer_list<T> items) { append(items.begin(), static_cast<int64_t>(items.size())); }
  SmallVector(Span<T> items) { append(items.data(), items.size()); }
  SmallVector(const SmallVector& other) { append(other.data_, other.size_); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other.data_, other.size_);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      destroy();
      data_ = inline_items();
      size_ = 0;
      capacity_ = N;
      take(other);
    }
    return *this;
  }
  ~SmallVector() { destroy(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(int64_t n) {
    if (__builtin_expect(n > capacity_, 0)) grow(n);
  }
  void push_back(T value) {
    reserve(size_ + 1);
    new (data_ + size_++) T(std::move(value));
  }
  void resize(int64_t n, const T& value = T()) {
    reserve(n);
    while (size_ > n) data_[--size_].~T();
    while (size_ < n) new (data_ + size_++) T(value);
  }
  void append(const T* items, int64_t n) {
    reserve(size_ + n);
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (n > 0) std::memcpy(data_ + size_, items, static_cast<size_t>(n) * sizeof(T));
      size_ += n;
      return;
    }
    for (int64_t i = 0; i < n; ++i) new (data_ + size_++) T(items[i]);
  }
  void insert(int64_t at, T value) {
    push_back(std::move(value));
    for (int64_t i = size_ - 1; i > at; --i) std::swap(data_[i], data_[i - 1]);
  }
  void erase(int64_t at) {
    for (int64_t i = at; i + 1 < size_; ++i) data_[i] = std::move(data_[i + 1]);
    data_[--size_].~T();
  }
  void pop_back() { data_[--size_].~T(); }
  void clear() {
    while (size_ > 0) data_[--size_].~T();
  }
  bool contains(const T& value) const {
    for (const T& item : *this)
      if (item == value) return true;
    return false;
  }

 private:
  T* inline_items() { return reinterpret_cast<T*>(storage_); }
  [[gnu::noinline, gnu::cold]] void grow(int64_t n) {  // rare, and in the way where it would be inlined
    int64_t wanted = capacity_ * 2 > n ? capacity_ * 2 : n;
    T* bigger = static_cast<T*>(::operator new(static_cast<size_t>(wanted) * sizeof(T)));
    for (int64_t i = 0; i < size_; ++i) {
      new (bigger + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    if (data_ != inline_items()) ::operator delete(data_);
    data_ = bigger;
    capacity_ = wanted;
  }
  void destroy() {
    clear();
    if (data_ != inline_items()) ::operator delete(data_);
  }
  void take(SmallVector& other) {
    if (other.data_ != other.inline_items()) {
      data_ = other.data_;
      size_ = other.size_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_items();
      other.size_ = 0;
      other.capacity_ = N;
      return;
    }
    for (int64_t i = 0; i < other.size_; ++i) new (data_ + i) T(std::move(other.data_[i]));
    size_ = other.size_;
    other.clear();
  }

  T* data_ = inline_items();
  int64_t size_ = 0, capacity_ = N;
  alignas(T) char storage_[sizeof(T) * N];
};

using Ints = SmallVector<int64_t, 6>;
using IntSpan = Span<int64_t>;

}  // namespace rl
