#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/exchange/exchange.h"
#include "planner/exchange/operation_names.h"
#include "planner/exchange/record_target.h"
#include "planner/input/shown.h"
#include "planner/input/text.h"

namespace memopt::exchange {
namespace {

using input::shown;
using shm::RecordKind;

// Longer than a row can be that makes a record: each of its bytes is three letters at most, but for the hexadecimal of
// addresses.
constexpr input::TextBounds kBounds{.expected = "operations as CSV, with a header such as operation,block,bytes",
                                    .line_bytes = std::size_t{1} << 20,
                                    .lines = std::uint64_t{1} << 28};
constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kLargestNumber = std::uint64_t{1} << 62;

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The next word of a row of words; empty at its end.
std::string_view take_word(std::string_view& words) {
  while (words.starts_with(' ')) words.remove_prefix(1);
  const std::string_view word = words.substr(0, words.find(' '));
  words.remove_prefix(word.size());
  return word;
}

class RowReader {
 public:
  RowReader(input::File& file, planner::RecordingWriter& to) : lines_(file, kBounds), target_(to) {}

  Counts read() {
    std::string_view line;
    if (!lines_.next(line)) lines_.fail(std::string(kBounds.expected), "nothing");
    read_header(without_return(line));
    while (lines_.next(line)) {
      line = without_return(line);
      if (line.empty()) continue;
      split(line);
      read_row();
      ++counts_.operations;
    }
    return counts_;
  }

 private:
  static constexpr std::size_t kMissing = ~std::size_t{0};

  void read_header(std::string_view line) {
    split(line);
    positions_.fill(kMissing);
    for (std::size_t i = 0; i < count_; ++i) {
      const auto found = std::find(kColumnNames.begin(), kColumnNames.end(), fields_[i]);
      if (found == kColumnNames.end()) {
        lines_.fail(
            "a header of number, thread, time_ns, operation, flags, stream, block, bytes, address, stack, caller, "
            "accesses, name and values",
            "\"" + shown(fields_[i]) + "\"");
      }
      std::size_t& position = positions_[static_cast<std::size_t>(found - kColumnNames.begin())];
      if (position != kMissing) lines_.fail("each column once", "\"" + shown(fields_[i]) + "\" twice");
      position = i;
    }
    if (positions_[kOperation] == kMissing) lines_.fail("a column operation", "none");
    columns_ = count_;
  }

  // Into fields_; those in quotes are unpacked into texts_.
  void split(std::string_view line) {
    count_ = 0;
    texts_.clear();
    texts_.reserve(kColumns + 1);  // so that none moves
    for (;;) {
      if (count_ == fields_.size()) lines_.fail("at most " + std::to_string(fields_.size()) + " fields", "more");
      if (line.starts_with('"')) {
        std::string text;
        std::size_t at = 1;
        for (;; ++at) {
          if (at >= line.size()) lines_.fail("a quote at the end of the field", "the end of the line");
          if (line[at] != '"') {
            text += line[at];
          } else if (at + 1 < line.size() && line[at + 1] == '"') {
            text += line[at++];
          } else {
            break;
          }
        }
        line.remove_prefix(at + 1);
        if (!line.empty() && line.front() != ',') lines_.fail("a comma behind the quote", "\"" + shown(line) + "\"");
        texts_.push_back(std::move(text));
        fields_[count_++] = texts_.back();
      } else {
        fields_[count_++] = line.substr(0, line.find(','));
        line.remove_prefix(fields_[count_ - 1].size());
      }
      if (line.empty()) return;
      line.remove_prefix(1);
    }
  }

  std::string_view field(Column column) const {
    return positions_[column] < count_ ? fields_[positions_[column]] : std::string_view();
  }

  [[noreturn]] void fail(std::string_view what, const std::string& expected, std::string_view found) const {
    lines_.fail(std::string(what) + " to be " + expected, found.empty() ? "nothing" : "\"" + shown(found) + "\"");
  }

  // Decimal, or hexadecimal behind 0x.
  std::uint64_t number(std::string_view text, std::string_view what, std::uint64_t most = kAny) const {
    std::string_view digits = text;
    int base = 10;
    if (digits.starts_with("0x")) {
      digits.remove_prefix(2);
      base = 16;
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size() || value > most) {
      fail(what, "a whole number from 0 to " + (most == kAny ? "2^64 - 1" : std::to_string(most)), text);
    }
    return value;
  }
  std::uint64_t number(Column column, std::uint64_t most = kAny) const {
    return number(field(column), kColumnNames[column], most);
  }
  std::uint64_t number_or(Column column, std::uint64_t otherwise, std::uint64_t most = kAny) const {
    return field(column).empty() ? otherwise : number(column, most);
  }
  std::uint64_t block() const {
    const std::uint64_t block = number(kBlock, shm::kAccessBlock);
    if (block == 0) fail("block", "a number from 1", field(kBlock));
    return block;
  }

  // As add_text() of the writer has it.
  std::string text(std::string_view field) const {
    std::string plain;
    for (std::size_t i = 0; i < field.size(); ++i) {
      if (field[i] != '\\') {
        plain += field[i];
        continue;
      }
      const std::string_view rest = field.substr(i + 1);
      unsigned byte = 0;
      if (rest.starts_with('\\') || rest.starts_with('n')) {
        plain += rest.front() == 'n' ? '\n' : '\\';
        i += 1;
      } else if (rest.size() >= 3 && rest.front() == 'x' &&
                 std::from_chars(rest.data() + 1, rest.data() + 3, byte, 16).ptr == rest.data() + 3) {
        plain += static_cast<char>(byte);
        i += 3;
      } else {
        fail("name", "text in which a backslash is followed by a backslash, n, or x and two digits", field);
      }
    }
    return plain;
  }

  template <std::size_t Count>
  std::uint64_t named(const std::array<Named, Count>& names, std::string_view what, std::uint64_t otherwise,
                      std::uint64_t most) const {
    const std::string_view name = field(kName);
    if (name.empty()) return otherwise;
    const auto known = number_of(names, name);
    return known ? *known : number(name, what, most);
  }

  std::uint8_t flags() const {
    std::uint64_t flags = 0;
    std::string_view words = field(kFlags);
    for (std::string_view word; !(word = take_word(words)).empty();) {
      const auto known = number_of(kFlagNames, word);
      flags |= known ? *known : number(word, "flags", 255);
    }
    return static_cast<std::uint8_t>(flags);
  }

  std::uint64_t access(std::string_view word) const {
    std::uint64_t access = 0;
    if (word.ends_with('?')) {
      access |= shm::kAccessAmbiguous;
      word.remove_suffix(1);
    }
    const std::size_t colon = word.find(':');
    if (colon != std::string_view::npos) {
      const std::string_view how = word.substr(colon + 1);
      if (how != "r" && how != "w" && how != "rw") fail("accesses", "BLOCK, BLOCK:r, BLOCK:w or BLOCK:rw", word);
      if (how.front() == 'r') access |= shm::kAccessReads;
      if (how.back() == 'w') access |= shm::kAccessWrites;
    }
    return access | number(word.substr(0, colon), "accesses", shm::kAccessBlock);
  }

  // So many words of `values`, as numbers; the missing ones are 0.
  template <std::size_t Count>
  std::array<std::uint64_t, Count> values() const {
    std::array<std::uint64_t, Count> numbers{};
    std::string_view words = field(kValues);
    for (std::uint64_t& one : numbers) {
      if (const std::string_view word = take_word(words); !word.empty()) one = number(word, "values");
    }
    if (!take_word(words).empty()) fail("values", "at most " + std::to_string(Count) + " numbers", field(kValues));
    return numbers;
  }
  std::uint32_t narrow(std::uint64_t value) const {
    if (value > std::numeric_limits<std::uint32_t>::max()) fail("values", "numbers below 2^32", field(kValues));
    return static_cast<std::uint32_t>(value);
  }

  void read_row() {
    if (count_ > columns_) lines_.fail(std::to_string(columns_) + " fields", std::to_string(count_));
    const std::string_view operation = field(kOperation);
    if (operation == kGapName) return target_.gap();
    const auto found = std::find(kOperationNames.begin() + 1, kOperationNames.end(), operation);
    if (found == kOperationNames.end()) fail("operation", "malloc, free, launch, copy, memset or another", operation);
    RecordFrame frame;
    if (!field(kNumber).empty()) frame.number = number(kNumber, kLargestNumber) + inserted_;
    // Without times, a microsecond each, as in traces of text.
    frame.time = number_or(kTime, 1000 * target_.number(), kLargestNumber);
    frame.thread = static_cast<std::uint32_t>(number_or(kThread, 0, std::numeric_limits<std::uint32_t>::max()));
    frame.flags = flags();
    if (!put(static_cast<RecordKind>(found - kOperationNames.begin()), frame)) {
      lines_.fail("an operation of at most " + std::to_string(shm::kMaxRecordBytes) + " bytes", "a larger one");
    }
  }

  bool put(RecordKind kind, RecordFrame frame) {
    const std::uint64_t stream = number_or(kStream, 0);
    switch (kind) {
      case RecordKind::kMalloc:
        return target_.put(kind, frame,
                           shm::MallocBody{block(), number(kBytes, kLargestNumber), number_or(kStack, 0),
                                           number_or(kCaller, 0), stream, number_or(kAddress, 0)});
      case RecordKind::kFree:
        return target_.put(kind, frame, shm::FreeBody{block(), stream});
      case RecordKind::kLaunch:
        return put_launch(frame, stream);
      case RecordKind::kCopy: {
        shm::CopyBody body{stream, 0, 0, number_or(kBytes, 0)};
        std::string_view words = field(kAccesses);
        for (std::string_view word; !(word = take_word(words)).empty();) {
          const std::uint64_t one = access(word);
          const bool reads = (one & shm::kAccessReads) != 0, writes = (one & shm::kAccessWrites) != 0;
          std::uint64_t& side = reads ? body.from : body.to;
          if (reads == writes || side != 0) fail("accesses", "BLOCK:r, BLOCK:w or both, of a copy", field(kAccesses));
          side = one & shm::kAccessBlock;
        }
        frame.aux = static_cast<std::uint32_t>(named(kCopyNames, "name", 4, std::numeric_limits<std::uint32_t>::max()));
        return target_.put(kind, frame, body);
      }
      case RecordKind::kMemset:
        return target_.put(kind, frame,
                           shm::MemsetBody{stream, number(kBlock, shm::kAccessBlock), number_or(kBytes, 0)});
      case RecordKind::kEventRecord:
      case RecordKind::kEventWait:
        return target_.put(kind, frame, shm::EventBody{values<1>()[0], stream});
      case RecordKind::kSynchronize:
        return target_.put(kind, frame, shm::SynchronizeBody{named(kScopeNames, "name", 1, kAny), values<1>()[0]});
      case RecordKind::kStreamCreate:
      case RecordKind::kStreamDestroy:
      case RecordKind::kHostFunction:
        return target_.put(kind, frame, shm::StreamBody{stream});
      case RecordKind::kFunction:
      case RecordKind::kModule:
      case RecordKind::kPythonFrame:
        return target_.name(kind, frame, values<1>()[0], text(field(kName)));
      case RecordKind::kStack:
      case RecordKind::kPythonStack: {
        words_.clear();
        std::string_view words = field(kValues);
        for (std::string_view word; !(word = take_word(words)).empty();) words_.push_back(number(word, "values"));
        return target_.put(kind, frame, shm::StackBody{number(kStack), words_.size()},
                           std::span<const std::uint64_t>(words_));
      }
      case RecordKind::kParameters:
        return put_parameters(frame);
      case RecordKind::kKernelTime: {
        const auto [launch, nanoseconds, idle, end] = values<4>();
        frame.aux = narrow(idle);
        return target_.put(kind, frame, shm::KernelTimeBody{launch, nanoseconds, end});
      }
      case RecordKind::kState: {
        const auto [generation, slab] = values<2>();
        frame.aux =
            static_cast<std::uint32_t>(named(kStateNames, "name", 1, std::numeric_limits<std::uint32_t>::max()));
        return target_.put(kind, frame, shm::StateBody{generation, slab});
      }
      case RecordKind::kEscape:
        return target_.put(kind, frame, shm::EscapeBody{block()});
      case RecordKind::kClock:
        return target_.put(kind, frame, shm::ClockBody{frame.time});
      case RecordKind::kPad:
        break;
    }
    return true;
  }

  bool put_launch(RecordFrame frame, std::uint64_t stream) {
    words_.clear();
    std::string_view words = field(kAccesses);
    for (std::string_view word; !(word = take_word(words)).empty();) words_.push_back(access(word));
    shm::LaunchBody body{stream, {1, 1, 1}, {1, 1, 1}, 0, static_cast<std::uint32_t>(words_.size())};
    if (field(kValues).empty()) {
      frame.aux = function(frame);
    } else {
      const auto numbers = values<8>();
      frame.aux = narrow(numbers[0]);
      for (std::size_t i = 0; i < 3; ++i) {
        body.grid[i] = narrow(numbers[1 + i]);
        body.block[i] = narrow(numbers[4 + i]);
      }
      body.shared_bytes = narrow(numbers[7]);
    }
    return target_.put(RecordKind::kLaunch, frame, body, std::span<const std::uint64_t>(words_));
  }

  // A number for a kernel that has but a name: named before its first launch.
  std::uint32_t function(RecordFrame& frame) {
    const std::string_view name = field(kName);
    if (name.empty()) return 0;
    const auto [known, fresh] =
        functions_.try_emplace(std::string(name), static_cast<std::uint32_t>(functions_.size() + 1));
    if (fresh && target_.name(RecordKind::kFunction, frame, known->second, text(name))) {
      // What follows it is one further on.
      ++inserted_;
      if (frame.number != 0) ++frame.number;
    }
    return known->second;
  }

  bool put_parameters(const RecordFrame& frame) {
    std::string_view words = field(kValues);
    const std::uint64_t launch = number(take_word(words), "values");
    const std::string_view digits = take_word(words);
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      unsigned byte = 0;
      const char* const from = digits.data() + i;
      if (i + 1 == digits.size() || std::from_chars(from, from + 2, byte, 16).ptr != from + 2) {
        fail("values", "a launch and bytes, two hexadecimal digits each", field(kValues));
      }
      bytes += static_cast<char>(byte);
    }
    return target_.with_text(RecordKind::kParameters, frame, shm::ParametersBody{launch, bytes.size()}, bytes);
  }

  input::Lines lines_;
  RecordTarget target_;
  Counts counts_;
  std::array<std::size_t, kColumns> positions_{};
  std::array<std::string_view, kColumns + 1> fields_{};
  std::vector<std::string> texts_;
  std::size_t count_ = 0, columns_ = 0;
  std::vector<std::uint64_t> words_;
  std::uint64_t inserted_ = 0;
  std::unordered_map<std::string, std::uint32_t> functions_;
};

}  // namespace

bool is_operations_csv(std::string_view head) {
  const std::string_view line = without_return(head.substr(0, head.find('\n')));
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    if (line.substr(at, end - at) == kColumnNames[kOperation]) return true;
    at = end + 1;
  }
  return false;
}

Counts read_operations_csv(input::File& file, planner::RecordingWriter& to) { return RowReader(file, to).read(); }

}  // namespace memopt::exchange
