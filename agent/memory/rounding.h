// Sizes and addresses in whole chunks, or in a plan's units.
#pragma once

#include <cstdint>

namespace memopt::agent {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace memopt::agent
