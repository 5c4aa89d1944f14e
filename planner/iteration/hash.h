// Mixing of 64-bit words into tokens and signatures.
#pragma once

#include <cstdint>

namespace memopt::planner {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

constexpr std::uint64_t combine(std::uint64_t hash, std::uint64_t value) { return mix(hash ^ mix(value)); }

}  // namespace memopt::planner
