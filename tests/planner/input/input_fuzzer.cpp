// Arbitrary bytes as a file: packed, cut, with a mark in front. It is read in three ways that must agree.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <istream>
#include <string>

#include "planner/input/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memopt::input;
  constexpr TextBounds kBounds{.expected = "text", .line_bytes = 1 << 16, .lines = 1 << 12, .bytes = 1 << 18};
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::string whole, lines, streamed;
  bool is_text = false;
  try {
    File file = File::holding(bytes, "f");
    whole = read_text(file, kBounds);
    is_text = true;
  } catch (const InputError&) {
  }
  try {
    File file = File::holding(bytes, "f");
    Lines reader(file, kBounds);
    for (std::string_view line; reader.next(line);) lines.append(line) += '\n';
    if (!is_text) std::abort();
    if (!whole.empty() && !whole.ends_with('\n')) whole += '\n';
    if (lines != whole) std::abort();
  } catch (const InputError&) {
    if (is_text) std::abort();
    return 0;
  }
  File file = File::holding(bytes, "f");
  const auto stream = file.stream();
  for (char c; stream->get(c);) streamed += c;
  if (!streamed.empty() && !streamed.ends_with('\n')) streamed += '\n';
  if (streamed != whole) std::abort();
  return 0;
}
