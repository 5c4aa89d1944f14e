#include "trace.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "recording.h"

namespace replay {
namespace {

// A millisecond timestamp of this century is below, a nanosecond one above; times from a program's start count as
// nanoseconds.
constexpr std::uint64_t kMillisecondEpoch = 1'000'000'000'000;
constexpr std::uint64_t kNanosecondEpoch = 1'000'000'000'000'000;

class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  void line(std::string_view text) {
    ++line_;
    split(text);
    if (words_.empty()) return;
    const Verb verb = verb_of(words_[0]);
    const std::size_t least = verb == Verb::kMalloc ? 4 : 3;
    if (words_.size() < least) {
      fail(verb == Verb::kMalloc ? "expected 'Malloc POINTER SIZE TIME'"
                                 : "expected '" + std::string(words_[0]) + " POINTER [SIZE] TIME'");
    }
    const std::uint64_t pointer = number(words_[1], 16, "a pointer in hexadecimal");
    const bool sized = words_.size() >= 4;
    const std::uint64_t bytes = sized ? number(words_[2], 10, "a size in bytes") : 0;
    const std::uint64_t time = time_ns(number(words_[sized ? 3 : 2], 10, "a time"));
    if (verb == Verb::kMalloc) {
      allocate(pointer, bytes, time);
    } else {
      use(verb, pointer, sized, bytes, time);
    }
  }

  Trace finish() {
    if (trace_.operations.empty())
      throw TraceError(name_ + ": no operations; expected lines such as 'Malloc 0x10 512 0'");
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw TraceError(name_ + ":" + std::to_string(line_) + ": " + what);
  }

  void split(std::string_view text) {
    words_.clear();
    constexpr std::string_view kBlanks = " \t\r";
    while (true) {
      const std::size_t begin = text.find_first_not_of(kBlanks);
      if (begin == std::string_view::npos) return;
      text.remove_prefix(begin);
      const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
      words_.push_back(text.substr(0, end));
      text.remove_prefix(end);
    }
  }

  Verb verb_of(std::string_view word) const {
    static constexpr std::pair<std::string_view, Verb> kVerbs[] = {{"Malloc", Verb::kMalloc},
                                                                   {"Free", Verb::kFree},
                                                                   {"Read", Verb::kRead},
                                                                   {"Mutable", Verb::kWrite},
                                                                   {"Layer", Verb::kMarker}};
    for (const auto& [name, verb] : kVerbs) {
      if (word == name) return verb;
    }
    fail("unknown operation '" + std::string(word.substr(0, 40)) + "'; expected Malloc, Free, Read, Mutable or Layer");
  }

  std::uint64_t number(std::string_view word, int base, const char* what) const {
    std::string_view digits = word;
    if (base == 16 && digits.substr(0, 2) == "0x") digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      fail("'" + std::string(word.substr(0, 40)) + "' is not " + what);
    }
    return value;
  }

  static std::uint64_t time_ns(std::uint64_t time) {
    return time >= kMillisecondEpoch && time < kNanosecondEpoch ? time * 1'000'000 : time;
  }

  BlockIndex new_block(std::uint64_t bytes, bool from_before) {
    if (bytes == 0) fail("a block of 0 bytes");
    if (trace_.blocks.size() == std::numeric_limits<BlockIndex>::max()) fail("more than 2^32 - 1 blocks");
    trace_.blocks.push_back({bytes, from_before});
    return static_cast<BlockIndex>(trace_.blocks.size() - 1);
  }

  void allocate(std::uint64_t pointer, std::uint64_t bytes, std::uint64_t time) {
    const auto [found, added] = live_.try_emplace(pointer, 0);
    if (!added && found->second != kFreed) fail("the block at " + std::string(words_[1]) + " is allocated twice");
    found->second = new_block(bytes, false);
    trace_.operations.push_back({Verb::kMalloc, found->second, time});
  }

  void use(Verb verb, std::uint64_t pointer, bool sized, std::uint64_t bytes, std::uint64_t time) {
    auto found = live_.find(pointer);
    if (found == live_.end() && sized) found = live_.emplace(pointer, new_block(bytes, true)).first;
    if (found == live_.end() || found->second == kFreed) {
      ++trace_.ignored;
      return;
    }
    const BlockIndex block = found->second;
    if (sized && bytes != trace_.blocks[block].bytes) {
      fail("the block at " + std::string(words_[1]) + " has " + std::to_string(trace_.blocks[block].bytes) +
           " bytes, not " + std::to_string(bytes));
    }
    trace_.operations.push_back({verb, block, time});
    if (verb == Verb::kFree) found->second = kFreed;
    if (verb == Verb::kMarker) ++trace_.markers;
    if (verb == Verb::kRead || verb == Verb::kWrite) ++trace_.accesses;
  }

  static constexpr BlockIndex kFreed = std::numeric_limits<BlockIndex>::max();

  const std::string& name_;
  std::size_t line_ = 0;
  std::vector<std::string_view> words_;
  std::unordered_map<std::uint64_t, BlockIndex> live_;  // by pointer; kFreed: was there once
  Trace trace_;
};

}  // namespace

Trace parse_trace(const std::string& text, const std::string& name) {
  Parser parser(name);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    parser.line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return parser.finish();
}

Trace read_trace(const std::string& path) {
  if (is_recording(path)) {
    const RecordingText recording = text_of_recording(path);
    Trace trace = parse_trace(recording.text, path);
    trace.cut = recording.cut;
    return trace;
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || (file.peek() != std::ifstream::traits_type::eof() && !(text << file.rdbuf()))) {
    throw TraceError(path + ": can't be read: " + std::strerror(errno));
  }
  return parse_trace(text.str(), path);
}

Trace allocations_only(const Trace& trace) {
  Trace result;
  result.blocks = trace.blocks;
  result.ignored = trace.ignored;
  for (const Operation& operation : trace.operations) {
    if (operation.verb == Verb::kMalloc || operation.verb == Verb::kFree) result.operations.push_back(operation);
  }
  return result;
}

std::uint64_t peak_load(const Trace& trace) {
  std::uint64_t load = 0;
  for (const Block& block : trace.blocks) load += block.from_before ? block.bytes : 0;
  std::uint64_t peak = load;
  for (const Operation& operation : trace.operations) {
    if (operation.verb == Verb::kMalloc) peak = std::max(peak, load += trace.bytes(operation));
    if (operation.verb == Verb::kFree) load -= trace.bytes(operation);
  }
  return peak;
}

}  // namespace replay
