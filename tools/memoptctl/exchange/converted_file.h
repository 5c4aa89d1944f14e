// Files of other tools where a recording is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/exchange/exchange.h"
#include "planner/input/file.h"

namespace memopt::tools {

enum class ForeignFormat : std::uint8_t { kOperations, kBuffers, kSnapshot };

inline constexpr std::string_view kForeignFormats = "csv, minimalloc or pytorch-snapshot";

// Nothing for another name.
std::optional<ForeignFormat> foreign_format(std::string_view name);
std::string_view name_of(ForeignFormat format);

// By its first bytes; nothing where it is none of these.
std::optional<ForeignFormat> find_format(const input::File& file);

// Iterations of a program that has the buffers of a MiniMalloc file: so many that the planner finds them.
inline constexpr std::uint64_t kIterations = 6;

struct Conversion {
  ForeignFormat format;
  std::uint64_t iterations = kIterations;  // of buffers
  std::string version;                     // of this memoptctl, for the recording
};

// Takes the descriptor, which is at the beginning of an empty file. Throws what exchange.h says, and std::runtime_error
// where the recording can't be written.
exchange::Counts convert(input::File& file, int fd, const Conversion& conversion);

// The file, or, where it is another tool's, a recording of it in memory.
input::File open_recording(const std::string& path);

}  // namespace memopt::tools
