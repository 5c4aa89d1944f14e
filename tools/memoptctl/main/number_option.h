// Options of numbers: --help says which are accepted, and what is said of any other names them.
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

}  // namespace memopt::tools
