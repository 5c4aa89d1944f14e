#include "planner/iteration/trace_file.h"

#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace memopt::planner {
namespace {

constexpr std::size_t kMaxFields = 6;

struct Line {
  std::array<std::string_view, kMaxFields> fields;
  std::size_t count = 0;
};

Line split(std::string_view text) {
  Line line;
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

}  // namespace

Trace read_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  Trace trace;
  std::vector<TraceOperation> assumed;
  std::unordered_map<std::uint64_t, TraceOperation> live;  // by address
  std::uint64_t next_block = 1;
  std::string text;
  for (std::size_t row = 1; std::getline(file, text); ++row) {
    const Line line = split(text);
    if (line.count == 0) continue;
    const auto wrong = [&](const std::string& expected) {
      return std::runtime_error(path + ":" + std::to_string(row) + ": expected " + expected + ", found \"" +
                                text.substr(0, 100) + "\"");
    };
    const std::optional<TraceKind> kind = kind_of(line.fields[0]);
    if (!kind) throw wrong("Malloc, Free, Read, Mutable or Layer");
    const std::optional<std::uint64_t> address = line.count > 1 ? number(line.fields[1], 16) : std::nullopt;
    if (!address) throw wrong("a pointer in hexadecimal behind the operation");
    const bool sized = line.count >= 4;
    if (*kind == TraceKind::kMalloc && !sized) throw wrong("pointer, size and time behind Malloc");
    if (line.count < 3) throw wrong("a time behind the pointer");
    const std::optional<std::uint64_t> time = number(line.fields[sized ? 3 : 2], 10);
    const std::optional<std::uint64_t> bytes = sized ? number(line.fields[2], 10) : std::optional<std::uint64_t>(0);
    if (!time || !bytes) throw wrong("size and time as decimal numbers");

    TraceOperation operation{*kind, 0, *bytes, *address, *time};
    if (*kind == TraceKind::kLayer) {
      trace.operations.push_back(operation);
      continue;
    }
    auto found = live.find(*address);
    if (*kind == TraceKind::kMalloc) {
      if (found != live.end()) throw wrong("no Malloc of a pointer that has not been freed");
      operation.block = next_block++;
      live.emplace(*address, operation);
      trace.operations.push_back(operation);
      continue;
    }
    if (found == live.end()) {
      if (!sized || *bytes == 0) {
        ++trace.ignored;
        continue;
      }
      TraceOperation before = operation;
      before.kind = TraceKind::kMalloc;
      before.block = next_block++;
      assumed.push_back(before);
      found = live.emplace(*address, before).first;
    }
    operation.block = found->second.block;
    operation.bytes = found->second.bytes;
    trace.operations.push_back(operation);
    if (*kind == TraceKind::kFree) live.erase(found);
  }
  if (file.bad()) throw std::runtime_error(path + ": reading failed");
  if (trace.operations.empty()) throw std::runtime_error(path + ": there is no operation in it");
  for (TraceOperation& before : assumed) before.time = trace.operations.front().time;
  trace.assumed = assumed.size();
  trace.operations.insert(trace.operations.begin(), assumed.begin(), assumed.end());
  return trace;
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
