#include "tools/memoptctl/recording/show_command.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>

#include "planner/input/file.h"
#include "planner/recording/reader.h"
#include "planner/recording/summary.h"
#include "planner/recording/trace.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/recording/record_text.h"
#include "tools/memoptctl/recording/show_text.h"

namespace memopt::tools {
namespace {

using planner::RecordingReader;
using planner::Summary;
using shm::RecordKind;

int fail(const std::string& file, const std::string& why) {
  fmt::print(stderr, "memoptctl: {}: {}\n", printable(file), why);
  return 1;
}

// What could be read has been shown: 0 if that was everything.
int result(const std::string& file, const std::optional<planner::RecordingDamage>& damage) {
  return damage ? fail(file, planner::to_string(*damage)) : 0;
}

int show_summary(const ShowOptions& options, input::File& file) {
  RecordingReader reader(file.stream());
  Shown shown;
  shown.info = reader.info();
  shown.stacks = options.stacks;
  shown.summary = planner::summarise(reader);
  shown.iteration = find_iteration(file);
  Symbols symbols(shown.summary.modules);
  shown.symbols = &symbols;
  if (options.json) {
    fmt::print("{}\n", to_json(shown).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", to_text(shown));
  }
  return result(options.file, shown.summary.damage);
}

int show_operations(const ShowOptions& options, input::File& file) {
  // Times need the whole file's clock.
  RecordingReader first(file.stream());
  const Summary summary = planner::summarise(first);
  RecordingReader reader(file.stream());
  std::map<std::uint64_t, std::string> kernels;
  std::uint64_t start = 0;
  bool started = false;
  std::uint64_t last = 0;
  while (const auto entry = reader.next()) {
    if (entry->kind != planner::recording::EntryKind::kRecord) continue;
    const shm::RecordView& record = entry->record;
    const std::uint64_t sequence = record.header.sequence;
    const std::uint64_t time = summary.clock.nanoseconds(record.header.ticks);
    if (!started) start = time;
    started = true;
    if (record.kind() == RecordKind::kFunction && kernels.size() < 1'000'000) {
      const auto name = record.bytes_behind<shm::NameBody>(record.as<shm::NameBody>().length);
      kernels[record.as<shm::NameBody>().id] = {reinterpret_cast<const char*>(name.data()), name.size()};
    }
    const bool wanted = options.operations->from <= sequence && sequence <= options.operations->to;
    if (wanted && sequence > last + 1 && last + 1 > options.operations->from) {
      fmt::print("{:>10}  -- {} records are missing --\n", "", sequence - last - 1);
    }
    last = sequence;
    if (!wanted) continue;
    // Threads do not write in the order of their clocks.
    const double microseconds = (static_cast<double>(time) - static_cast<double>(start)) / 1e3;
    fmt::print("{:>10}  lane {:<3} {:>14.3f} µs  {:<14} {}\n", sequence, entry->lane, microseconds,
               kind_name(record.kind()), describe(record, kernels));
  }
  return result(options.file, reader.damage());
}

int write_plain_trace(const ShowOptions& options, input::File& file) {
  RecordingReader first(file.stream());
  const Summary summary = planner::summarise(first);
  RecordingReader reader(file.stream());
  errno = 0;
  std::ofstream out(options.trace, std::ios::binary);
  if (!out) return fail(options.trace, fmt::format("can't be written: {}", std::strerror(errno)));
  const planner::TraceCounts counts = planner::write_trace(reader, summary.clock, out);
  out.close();
  if (!out) return fail(options.trace, fmt::format("can't be written: {}", std::strerror(errno)));
  fmt::print(stderr, "memoptctl: {} lines in {}\n", counts.lines, printable(options.trace));
  if (counts.unknown_blocks != 0) {
    fmt::print(stderr, "memoptctl: {} accesses to blocks whose malloc is not in the recording are left out\n",
               counts.unknown_blocks);
  }
  if (counts.blind_launches != 0) {
    fmt::print(stderr, "memoptctl: {} launches could not be looked into: what they touch is not in the trace\n",
               counts.blind_launches);
  }
  return result(options.file, reader.damage());
}

}  // namespace

std::optional<SequenceRange> parse_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || text.size() == 1) return std::nullopt;
  SequenceRange range{0, std::numeric_limits<std::uint64_t>::max()};
  const auto number = [](std::string_view part, std::uint64_t& value) {
    if (part.empty()) return true;
    const auto [stop, failed] = std::from_chars(part.data(), part.data() + part.size(), value);
    return failed == std::errc() && stop == part.data() + part.size();
  };
  const std::string_view whole = text;
  if (!number(whole.substr(0, colon), range.from) || !number(whole.substr(colon + 1), range.to)) return std::nullopt;
  if (range.from > range.to) return std::nullopt;
  return range;
}

int show(const ShowOptions& options) {
  try {
    input::File file(options.file);
    if (options.operations) return show_operations(options, file);
    if (!options.trace.empty()) return write_plain_trace(options, file);
    return show_summary(options, file);
  } catch (const planner::RecordingError& error) {
    return fail(options.file, error.what());
  }
}

}  // namespace memopt::tools
