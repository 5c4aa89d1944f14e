// Options of numbers, durations and sizes: --help says which are accepted, and what is said of any other names them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace memopt::tools {

// Whole numbers as digits, 64 bits; others also with a point or an exponent. Nothing for anything else: a sign, what is
// not finite, letters behind.
std::optional<std::uint64_t> whole_number(std::string_view text);
std::optional<double> finite_number(std::string_view text);

// Adds "; a whole number from 1 to 9" to the help of the option, and refuses what is none.
CLI::Option* accept_whole(CLI::Option* option, std::uint64_t least, std::uint64_t most, const char* type = "N");
CLI::Option* accept_number(CLI::Option* option, double least, double most, const char* type = "N");

// A duration as shm/durations.h reads it, both ends in nanoseconds. The variable of the option is a number of `plain`,
// which is also what a number without a unit means.
enum class PlainUnit : std::uint8_t { kSeconds, kMicroseconds };
CLI::Option* accept_duration(CLI::Option* option, PlainUnit plain, std::uint64_t least, std::uint64_t most);
// What it says it expects.
std::string duration_words(PlainUnit plain, std::uint64_t least, std::uint64_t most);

// A size as shm/sizes.h reads it, 0 to 2^62 bytes. The variable of the option is a whole number of bytes.
CLI::Option* accept_size(CLI::Option* option);

}  // namespace memopt::tools
