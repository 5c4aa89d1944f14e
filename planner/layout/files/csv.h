// Problems and solutions in MiniMalloc's CSV (docs/formats/layout-csv.md):
// `id,lower,upper,size[,alignment][,gaps][,fixed][,offset][,hint]`.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "planner/input/text.h"
#include "planner/layout/files/instance.h"

namespace memopt::layout {

// What is wrong with a file, with the line where there is one: "line 3: size is negative: -4".
class CsvError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Far more than any solver takes; endless input ends here.
inline constexpr input::TextBounds kCsvBounds{
    .expected = "CSV with a header such as id,lower,upper,size", .lines = std::uint64_t{1} << 22, .bytes = 256 << 20};

// The problem is valid (find_fault finds nothing). Throws CsvError. O(n log n).
Instance read_csv(std::string_view text);

// The same from a file. Throws input::InputError, too: it can't be read, or is no text.
Instance read_csv(input::File& file);

// Columns that no buffer needs are left out (alignment, gaps, fixed; offset without offsets). Times and ids are as they
// were read; read_csv of it gives the same problem. O(n).
std::string write_csv(const Instance& instance, std::span<const std::uint64_t> offsets = {});

}  // namespace memopt::layout
