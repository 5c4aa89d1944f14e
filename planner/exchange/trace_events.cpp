#include <algorithm>
#include <charconv>
#include <map>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/exchange/exchange.h"
#include "planner/json/writer.h"
#include "planner/recording/clock_line.h"
#include "planner/recording/reader.h"

namespace memopt::exchange {
namespace {

using shm::RecordKind;
using shm::RecordView;

constexpr std::size_t kMostKept = 8'000'000;
constexpr std::int64_t kProcess = 1;

// What a stream does has a beginning and a length; a block has both, too.
class TraceEvents {
 public:
  TraceEvents(const planner::ClockLine& clock, const std::unordered_map<std::uint64_t, std::uint64_t>& lengths,
              std::ostream& to)
      : clock_(clock), lengths_(lengths), json_(to) {
    json_.begin_object();
    json_.member("displayTimeUnit", "ns");
    json_.name("traceEvents");
    json_.begin_list({.before = "\n", .between = "\n", .colon = "", .after = "\n"});
  }

  void begin(const std::string& program) { metadata("process_name", 0, program); }

  void add(std::uint32_t lane, const RecordView& record) {
    time_ = std::max(time_, clock_.nanoseconds(record.header.ticks));
    (void)lane;
    switch (record.kind()) {
      case RecordKind::kMalloc:
        return malloc(record.as<shm::MallocBody>());
      case RecordKind::kFree:
        return free(record.as<shm::FreeBody>().block);
      case RecordKind::kFunction: {
        const auto bytes = record.bytes_behind<shm::NameBody>(record.as<shm::NameBody>().length);
        if (kernels_.size() < kMostKept) {
          kernels_[record.as<shm::NameBody>().id] = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        }
        return;
      }
      case RecordKind::kLaunch: {
        const auto body = record.as<shm::LaunchBody>();
        const auto kernel = kernels_.find(record.header.aux);
        work(record, body.stream, kernel == kernels_.end() ? "kernel" : kernel->second,
             [&] { json_.member("blocks", std::uint64_t{body.accesses}); });
        return;
      }
      case RecordKind::kCopy: {
        const auto body = record.as<shm::CopyBody>();
        const auto kind = static_cast<shm::CopyKind>(record.header.aux);
        work(record, body.stream,
             kind == shm::CopyKind::kToDevice   ? "copy to device"
             : kind == shm::CopyKind::kToHost   ? "copy to host"
             : kind == shm::CopyKind::kOnDevice ? "copy on device"
                                                : "copy",
             [&] { json_.member("bytes", body.bytes); });
        return;
      }
      case RecordKind::kMemset: {
        const auto body = record.as<shm::MemsetBody>();
        work(record, body.stream, "memset", [&] { json_.member("bytes", body.bytes); });
        return;
      }
      default:
        return;
    }
  }

  Counts finish() {
    // What is not freed has no end: the viewer draws it to the end of the trace.
    json_.end_list();
    json_.end_object();
    return counts_;
  }

 private:
  // Microseconds with the nanoseconds behind the point, as the format has times.
  void time(const char* name, std::uint64_t nanoseconds) {
    json_.name(name);
    json_.fixed(static_cast<double>(nanoseconds) / 1e3, 3);
  }

  void metadata(const char* what, std::int64_t thread, std::string_view name) {
    json_.begin_object();
    json_.member("name", what);
    json_.member("ph", "M");
    json_.member("pid", kProcess);
    json_.member("tid", thread);
    json_.name("args");
    json_.begin_object();
    json_.member("name", name);
    json_.end_object();
    json_.end_object();
  }

  std::uint64_t now() {
    if (!begun_) first_ = time_;
    begun_ = true;
    return time_ - first_;
  }

  void load() {
    json_.begin_object();
    json_.member("name", "load");
    json_.member("ph", "C");
    time("ts", now());
    json_.member("pid", kProcess);
    json_.name("args");
    json_.begin_object();
    json_.member("bytes", load_);
    json_.end_object();
    json_.end_object();
    ++counts_.operations;
  }

  void block(const char* phase, std::uint64_t number, std::uint64_t bytes, const shm::MallocBody* body) {
    json_.begin_object();
    json_.member("name", "block");
    json_.member("cat", "block");
    json_.member("ph", phase);
    json_.member("id", number);
    time("ts", now());
    json_.member("pid", kProcess);
    json_.member("tid", std::int64_t{0});
    if (body != nullptr) {
      json_.name("args");
      json_.begin_object();
      json_.member("bytes", bytes);
      json_.member("address", hex(body->address));
      json_.member("stack", hex(body->stack));
      json_.end_object();
    }
    json_.end_object();
    ++counts_.operations;
  }

  static std::string hex(std::uint64_t number) {
    char text[20] = "0x";
    return std::string(text, std::to_chars(text + 2, text + sizeof text, number, 16).ptr);
  }

  void malloc(const shm::MallocBody& body) {
    if (live_.size() >= kMostKept || !live_.try_emplace(body.block, body.bytes).second) {
      ++counts_.left_out;
      return;
    }
    load_ += body.bytes;
    block("b", body.block, body.bytes, &body);
    load();
  }
  void free(std::uint64_t number) {
    const auto there = live_.find(number);
    if (there == live_.end()) {
      ++counts_.left_out;
      return;
    }
    load_ -= there->second;
    block("e", number, there->second, nullptr);
    live_.erase(there);
    load();
  }

  // On the track of its stream: not before its call, nor before what the stream did before.
  template <typename Arguments>
  void work(const RecordView& record, std::uint64_t stream, std::string_view name, const Arguments& arguments) {
    auto [track, fresh] = streams_.try_emplace(stream);
    if (fresh) {
      track->second.thread = static_cast<std::int64_t>(streams_.size());
      metadata("thread_name", track->second.thread, stream == 0 ? "default stream" : "stream " + hex(stream));
    }
    const auto length = lengths_.find(record.header.sequence);
    const std::uint64_t begin = std::max(now(), track->second.end);
    const std::uint64_t nanoseconds = length == lengths_.end() ? 0 : length->second;
    track->second.end = begin + nanoseconds;
    json_.begin_object();
    json_.member("name", name);
    json_.member("ph", "X");
    time("ts", begin);
    time("dur", nanoseconds);
    json_.member("pid", kProcess);
    json_.member("tid", track->second.thread);
    json_.name("args");
    json_.begin_object();
    json_.member("number", record.header.sequence);
    json_.member("measured", length != lengths_.end());
    arguments();
    json_.end_object();
    json_.end_object();
    ++counts_.operations;
  }

  struct Track {
    std::int64_t thread = 0;
    std::uint64_t end = 0;
  };

  const planner::ClockLine& clock_;
  const std::unordered_map<std::uint64_t, std::uint64_t>& lengths_;
  json::Writer json_;
  std::uint64_t time_ = 0, first_ = 0;
  bool begun_ = false;
  std::uint64_t load_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> live_;
  std::unordered_map<std::uint64_t, std::string> kernels_;
  std::map<std::uint64_t, Track> streams_;
  Counts counts_;
};

}  // namespace

Counts write_trace_events(input::File& recording, std::ostream& to) {
  planner::RecordingReader first(recording.stream());
  planner::ClockLine clock;
  std::unordered_map<std::uint64_t, std::uint64_t> lengths;  // that were measured, by operation
  while (const auto entry = first.next()) {
    if (entry->kind == planner::recording::EntryKind::kClock) clock.add(entry->clock);
    if (entry->kind != planner::recording::EntryKind::kRecord) continue;
    if (entry->record.kind() == RecordKind::kClock) {
      clock.add({entry->record.header.ticks, entry->record.as<shm::ClockBody>().nanoseconds});
    } else if (entry->record.kind() == RecordKind::kKernelTime && lengths.size() < kMostKept) {
      const auto body = entry->record.as<shm::KernelTimeBody>();
      // No operation takes a day.
      lengths[body.launch] = std::min<std::uint64_t>(body.nanoseconds, 86'400'000'000'000);
    }
  }
  planner::RecordingReader reader(recording.stream());
  TraceEvents events(clock, lengths, to);
  const std::string& program = reader.info().program;
  events.begin(program.substr(program.rfind('/') + 1));
  while (const auto entry = reader.next()) {
    if (entry->kind == planner::recording::EntryKind::kRecord) events.add(entry->lane, entry->record);
  }
  Counts counts = events.finish();
  if (reader.damage()) counts.damage = to_string(*reader.damage());
  return counts;
}

}  // namespace memopt::exchange
