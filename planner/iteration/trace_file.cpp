#include "planner/iteration/trace_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "planner/input/shown.h"
#include "planner/input/text.h"

namespace memopt::planner {
namespace {

using input::shown;

constexpr std::size_t kMaxFields = 7;
// What is read takes up to a hundred bytes an operation; published traces have some ten thousand.
constexpr std::size_t kMostOperations = std::size_t{1} << 24;
constexpr std::size_t kLongestLine = std::size_t{1} << 16;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kLastTime = (std::uint64_t{1} << 63) - 1;
constexpr const char* kOperation = "Malloc, Free, Read, Mutable or Layer";
constexpr input::TextBounds kBounds{.expected = "a text trace (Malloc, Free, Read, Mutable or Layer in each line)",
                                    .line_bytes = kLongestLine,
                                    .lines = 2 * kMostOperations};

struct Fields {
  std::array<std::string_view, kMaxFields> fields;
  std::size_t count = 0;

  // From the end of what is read before, a remark is no field.
  bool has(std::size_t i) const { return i < count && !fields[i].starts_with('('); }
  void remove_first() {
    std::move(fields.begin() + 1, fields.end(), fields.begin());
    --count;
  }
};

Fields split(std::string_view text) {
  Fields line;
  constexpr std::string_view kBlank = " \t\r";
  while (line.count < kMaxFields) {
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) break;
    const std::size_t end = text.find_first_of(kBlank, begin);
    line.fields[line.count++] = text.substr(begin, end == std::string_view::npos ? end : end - begin);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end);
  }
  return line;
}

std::optional<std::uint64_t> number(std::string_view text, int base) {
  if (base == 16) {
    if (text.substr(0, 2) != "0x") return std::nullopt;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<TraceKind> kind_of(std::string_view word) {
  if (word == "Malloc") return TraceKind::kMalloc;
  if (word == "Free") return TraceKind::kFree;
  if (word == "Read") return TraceKind::kRead;
  if (word == "Mutable") return TraceKind::kWrite;
  if (word == "Layer") return TraceKind::kLayer;
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(input::File& file) : lines_(file, kBounds), name_(file.name()) {}

  Trace read() {
    bool first = true;
    for (std::string_view text; lines_.next(text);) {
      Fields line = split(text);
      if (line.count == 0) continue;
      if (first) trace_.indexed = number(line.fields[0], 10).has_value();
      first = false;
      if (trace_.indexed) remove_index(line);
      add(line);
    }
    decide(true);
    if (trace_.operations.empty()) throw std::runtime_error(name_ + ": there is no operation in it");
    for (TraceOperation& before : assumed_) before.time = trace_.operations.front().time;
    trace_.assumed = assumed_.size();
    trace_.operations.insert(trace_.operations.begin(), assumed_.begin(), assumed_.end());
    return std::move(trace_);
  }

 private:
  // A line whose third field may be a size or a time: which, the first Malloc says.
  struct Undecided {
    TraceKind kind;
    std::uint64_t address;
    std::uint64_t third;
  };

  // Without `found`: the line ends before.
  [[noreturn]] void wrong(const std::string& expected, std::string_view found = {}) const {
    lines_.fail(expected, found.empty() ? "nothing" : '"' + shown(found) + '"');
  }

  void remove_index(Fields& line) {
    if (!number(line.fields[0], 10)) wrong("a number in front of the operation, as in the first line", line.fields[0]);
    line.remove_first();
    if (line.count == 0) wrong(kOperation);
  }

  std::uint64_t value(std::string_view text, const char* what, std::uint64_t most) const {
    const std::optional<std::uint64_t> value = number(text, 10);
    if (!value || *value > most) {
      wrong(std::string(what) + " as a whole number from 0 to " + std::to_string(most), text);
    }
    return *value;
  }
  std::uint64_t size(std::string_view text) const { return value(text, "a size in bytes", kMostBytes); }
  std::uint64_t time(std::string_view text) const { return value(text, "a time", kLastTime); }

  void add(const Fields& line) {
    const std::optional<TraceKind> kind = kind_of(line.fields[0]);
    if (!kind) wrong(kOperation, line.fields[0]);
    const std::string_view pointer = line.count > 1 ? line.fields[1] : std::string_view();
    const std::optional<std::uint64_t> address = number(pointer, 16);
    if (!address) wrong("a pointer in hexadecimal (0x...) of at most 64 bits behind the operation", pointer);
    const bool sized = line.has(2), four = line.has(2) && line.has(3);
    if (*kind == TraceKind::kMalloc && !sized) wrong("a size behind the pointer of Malloc");
    if (!decided_) {
      // A Malloc has a size, so that what follows is a time; of others, one number may be either.
      if (four || *kind == TraceKind::kMalloc || !sized) {
        trace_.timed = four;
        decide(false);
      } else {
        if (undecided_.size() == kMostOperations) fail_too_many();
        undecided_.push_back({*kind, *address, time(line.fields[2])});
        return;
      }
    }
    if (!trace_.timed) {
      if (four) wrong("no time behind the size, as in the lines before", line.fields[3]);
      add(*kind, *address, sized ? size(line.fields[2]) : 0, sized, 0);
    } else if (four) {
      const std::uint64_t bytes = size(line.fields[2]);
      add(*kind, *address, bytes, true, time(line.fields[3]));
    } else {
      if (*kind == TraceKind::kMalloc) wrong("a time behind the size, as in the lines before");
      if (!sized) wrong("a time behind the pointer, as in the lines before");
      add(*kind, *address, 0, false, time(line.fields[2]));
    }
  }

  // Without a Malloc in the whole file, numbers are times.
  void decide(bool ended) {
    if (decided_) return;
    decided_ = true;
    if (ended) trace_.timed = true;
    for (const Undecided& one : undecided_) {
      trace_.timed ? add(one.kind, one.address, 0, false, one.third) : add(one.kind, one.address, one.third, true, 0);
    }
    undecided_ = {};
  }

  void add(TraceKind kind, std::uint64_t address, std::uint64_t bytes, bool sized, std::uint64_t time) {
    if (trace_.operations.size() + assumed_.size() >= kMostOperations) fail_too_many();
    if (!trace_.timed) time = trace_.operations.size() * kAssumedTime;
    TraceOperation operation{kind, 0, bytes, address, time};
    if (kind == TraceKind::kLayer) {
      trace_.operations.push_back(operation);
      return;
    }
    auto found = live_.find(address);
    if (kind == TraceKind::kMalloc) {
      if (found != live_.end()) {
        lines_.fail("no Malloc of a pointer that has not been freed", std::string("one that is there already"));
      }
      operation.block = next_block_++;
      live_.emplace(address, static_cast<std::uint32_t>(trace_.operations.size()));
      trace_.operations.push_back(operation);
      count(live_bytes_, bytes);
      return;
    }
    if (found == live_.end()) {
      if (!sized || bytes == 0) {
        ++trace_.ignored;
        return;
      }
      TraceOperation before = operation;
      before.kind = TraceKind::kMalloc;
      before.block = next_block_++;
      found = live_.emplace(address, kAssumed | static_cast<std::uint32_t>(assumed_.size())).first;
      assumed_.push_back(before);
      count(assumed_bytes_, bytes);
    }
    const bool was_there = (found->second & kAssumed) != 0;
    const TraceOperation& malloc = was_there ? assumed_[found->second & ~kAssumed] : trace_.operations[found->second];
    operation.block = malloc.block;
    operation.bytes = malloc.bytes;
    trace_.operations.push_back(operation);
    if (kind != TraceKind::kFree) return;
    if (!was_there) live_bytes_ -= operation.bytes;
    live_.erase(found);
  }

  // What was there before is counted to the end: it is there before it is known.
  void count(std::uint64_t& sum, std::uint64_t bytes) {
    if (bytes > kMostBytes - live_bytes_ - assumed_bytes_) {
      lines_.fail("blocks of at most 2^62 bytes together", std::to_string(bytes) + " more");
    }
    sum += bytes;
  }

  [[noreturn]] void fail_too_many() const {
    lines_.fail("a text trace of at most " + std::to_string(kMostOperations) + " operations", "more");
  }

  static constexpr std::uint32_t kAssumed = std::uint32_t{1} << 31;

  input::Lines lines_;
  std::string name_;
  Trace trace_;
  std::vector<Undecided> undecided_;
  bool decided_ = false;
  std::vector<TraceOperation> assumed_;
  std::unordered_map<std::uint64_t, std::uint32_t> live_;  // by address: its Malloc, in operations or in assumed_
  std::uint64_t next_block_ = 1;
  std::uint64_t live_bytes_ = 0;  // of Mallocs in the file
  std::uint64_t assumed_bytes_ = 0;
};

}  // namespace

Trace read_trace(input::File& file) { return Reader(file).read(); }

Trace read_trace(const std::string& path) {
  input::File file(path);
  return read_trace(file);
}

shm::RecordView record_of(const TraceOperation& operation, RecordBuilder& builder) {
  builder.ticks = operation.time;
  switch (operation.kind) {
    case TraceKind::kMalloc:
      return builder.malloc(operation.block, operation.bytes, 0, 0, operation.address);
    case TraceKind::kFree:
      return builder.free(operation.block);
    case TraceKind::kRead: {
      const std::uint64_t access = operation.block | shm::kAccessReads;
      return builder.launch(1, {&access, 1});
    }
    case TraceKind::kWrite: {
      const std::uint64_t access = operation.block | shm::kAccessWrites;
      return builder.launch(2, {&access, 1});
    }
    case TraceKind::kLayer:
      break;
  }
  return builder.launch(3, {});
}

}  // namespace memopt::planner
