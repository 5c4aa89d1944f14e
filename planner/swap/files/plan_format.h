// Internal to the room: words of the formats that reading and writing have in common.
#pragma once

#include <cstdint>
#include <string_view>

namespace memopt::swap {

inline constexpr const char* kFormat = "memopt-plan-1";
inline constexpr const char* kSecondFormat = "memopt-plan-2";
inline constexpr std::string_view kKinds = "mfrwx";  // in the order of Kind
inline constexpr std::uint8_t kNullAge = 8;          // in Spelling::operations

}  // namespace memopt::swap
