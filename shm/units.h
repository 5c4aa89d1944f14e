// Units as types: a byte count cannot be added to a number of calls, and a bare integer does not turn into either by
// itself.
#pragma once

#include <compare>
#include <cstdint>

namespace memopt::shm {

template <typename Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(std::uint64_t value) : value_(value) {}

  constexpr std::uint64_t value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  std::uint64_t value_ = 0;
};

using Bytes = Quantity<struct BytesTag>;
using Nanoseconds = Quantity<struct NanosecondsTag>;
using CallCount = Quantity<struct CallCountTag>;
using BlockCount = Quantity<struct BlockCountTag>;

}  // namespace memopt::shm
