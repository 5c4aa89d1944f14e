#include "planner/recording/summary.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace memopt::planner {
namespace {

using shm::RecordKind;
using shm::RecordView;

// Far above what programs have; a made-up file must not take all memory.
constexpr std::size_t kMostBlocks = 8'000'000;
constexpr std::size_t kMostGroups = 1'000'000;
constexpr std::size_t kMostNames = 1'000'000;
constexpr std::size_t kMostTextBytes = std::size_t{256} << 20;
constexpr std::size_t kMostLanes = 100'000;

// Measured times name a launch that is not long ago.
constexpr std::size_t kRecentLaunches = 1 << 16;

// The curve in a fixed number of pieces, however long it becomes: when they are used up, each two become one.
class LiveCurve {
 public:
  void add(std::uint64_t sequence, std::uint64_t live) {
    if (points_.empty() || in_last_ == per_point_) {
      if (points_.size() == kMost) halve();
      points_.push_back({sequence, sequence, live});
      in_last_ = 0;
    }
    ++in_last_;
    points_.back().last = sequence;
    points_.back().peak = std::max(points_.back().peak, live);
  }
  std::vector<LivePoint> points(std::size_t most) const {
    std::vector<LivePoint> result;
    const std::size_t together = std::max<std::size_t>(1, (points_.size() + most - 1) / most);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (i % together == 0) {
        result.push_back(points_[i]);
      } else {
        merge(result.back(), points_[i]);
      }
    }
    return result;
  }

 private:
  static constexpr std::size_t kMost = 1024;

  static void merge(LivePoint& into, const LivePoint& next) {
    into.last = next.last;
    into.peak = std::max(into.peak, next.peak);
  }
  void halve() {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      points_[i] = points_[2 * i];
      merge(points_[i], points_[2 * i + 1]);
    }
    points_.resize(kMost / 2);
    per_point_ *= 2;
  }

  std::vector<LivePoint> points_;
  std::uint64_t per_point_ = 1;
  std::uint64_t in_last_ = 0;
};

class Summariser {
 public:
  void add(const RecordingEntry& entry) {
    switch (entry.kind) {
      case recording::EntryKind::kGap:
        break;  // seen in the numbers
      case recording::EntryKind::kClock:
        summary_.clock.add(entry.clock);
        break;
      case recording::EntryKind::kRecord:
        record(entry.lane, entry.record);
        break;
    }
  }

  Summary finish(RecordingReader& reader) {
    summary_.lanes = lanes_.size();
    summary_.streams = streams_.size();
    if (summary_.records != 0) {
      const std::uint64_t from = summary_.clock.nanoseconds(first_ticks_);
      const std::uint64_t to = summary_.clock.nanoseconds(last_ticks_);
      summary_.nanoseconds = to > from ? to - from : 0;
    }
    summary_.live_blocks = blocks_.size();
    summary_.live = curve_.points(kLivePoints);
    for (const auto& [key, count] : groups_) {
      summary_.groups.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), count});
    }
    std::stable_sort(summary_.groups.begin(), summary_.groups.end(),
                     [](const BlockGroup& a, const BlockGroup& b) { return a.bytes > b.bytes; });
    for (auto& [id, kernel] : kernels_) {
      if (kernel.launches != 0) summary_.kernels.push_back(std::move(kernel));
    }
    std::stable_sort(summary_.kernels.begin(), summary_.kernels.end(),
                     [](const KernelSummary& a, const KernelSummary& b) { return a.launches > b.launches; });
    summary_.modules.set_program(reader.info().program);
    summary_.damage = reader.damage();
    return std::move(summary_);
  }

 private:
  void record(std::uint32_t lane, const RecordView& record) {
    const std::uint64_t sequence = record.header.sequence;
    if (summary_.records++ == 0) {
      summary_.first_sequence = sequence;
      first_ticks_ = record.header.ticks;
    }
    if (sequence <= summary_.last_sequence) {
      ++summary_.disordered;
    } else {
      if (sequence != summary_.last_sequence + 1) {
        ++summary_.gaps;
        summary_.missing += sequence - summary_.last_sequence - 1;
      }
      summary_.last_sequence = sequence;
    }
    last_ticks_ = std::max(last_ticks_, record.header.ticks);
    ++summary_.counts[record.header.kind];
    remember(lanes_, std::uint64_t{lane});
    if (!summary_.python.add(lane, record)) summary_.limited = true;
    operation(lane, record);
    curve_.add(sequence, summary_.live_bytes);
  }

  void operation(std::uint32_t lane, const RecordView& record) {
    switch (record.kind()) {
      case RecordKind::kMalloc:
        return malloc(lane, record.header.sequence, record.as<shm::MallocBody>());
      case RecordKind::kFree:
        return free(record.as<shm::FreeBody>());
      case RecordKind::kLaunch:
        return launch(record);
      case RecordKind::kCopy:
        copy(record.header.aux, record.as<shm::CopyBody>());
        return remember(streams_, record.as<shm::CopyBody>().stream);
      case RecordKind::kMemset:
        summary_.set_bytes += record.as<shm::MemsetBody>().bytes;
        return remember(streams_, record.as<shm::MemsetBody>().stream);
      case RecordKind::kEventRecord:
      case RecordKind::kEventWait:
        return remember(streams_, record.as<shm::EventBody>().stream);
      case RecordKind::kStreamCreate:
      case RecordKind::kStreamDestroy:
      case RecordKind::kHostFunction:
        return remember(streams_, record.as<shm::StreamBody>().stream);
      case RecordKind::kFunction:
        if (KernelSummary* kernel = kernel_of(record.as<shm::NameBody>().id)) kernel->name = text(record);
        return;
      case RecordKind::kModule:
        return summary_.modules.add(record.as<shm::NameBody>().id, text(record));
      case RecordKind::kStack:
        return stack(record);
      case RecordKind::kParameters:
        summary_.parameter_bytes += record.as<shm::ParametersBody>().length;
        return;
      case RecordKind::kKernelTime:
        return kernel_time(record.as<shm::KernelTimeBody>());
      case RecordKind::kClock:
        return summary_.clock.add({record.header.ticks, record.as<shm::ClockBody>().nanoseconds});
      case RecordKind::kSynchronize:
      case RecordKind::kState:
      case RecordKind::kEscape:
      case RecordKind::kPythonFrame:
      case RecordKind::kPythonStack:
      case RecordKind::kPad:
        return;
    }
  }

  void malloc(std::uint32_t lane, std::uint64_t sequence, const shm::MallocBody& body) {
    summary_.malloc_bytes += body.bytes;
    remember(streams_, body.stream);
    if (blocks_.size() < kMostBlocks) {
      const auto [block, fresh] = blocks_.try_emplace(body.block, body.bytes);
      if (!fresh) {
        // A number that is used twice: the file lies, or the first free is missing.
        summary_.live_bytes -= block->second;
        block->second = body.bytes;
      }
      summary_.live_bytes += body.bytes;
      if (summary_.live_bytes > summary_.peak_load) {
        summary_.peak_load = summary_.live_bytes;
        summary_.peak_sequence = sequence;
        summary_.peak_blocks = blocks_.size();
      }
    } else {
      summary_.limited = true;
    }
    const std::tuple key(body.bytes, body.stack, body.return_address, summary_.python.at(lane));
    if (const auto group = groups_.find(key); group != groups_.end()) {
      ++group->second;
    } else if (groups_.size() < kMostGroups) {
      groups_.emplace(key, 1);
    } else {
      summary_.limited = true;
    }
  }

  void free(const shm::FreeBody& body) {
    remember(streams_, body.stream);
    const auto block = blocks_.find(body.block);
    if (block == blocks_.end()) {
      ++summary_.unknown_frees;
      return;
    }
    summary_.live_bytes -= block->second;
    blocks_.erase(block);
  }

  void copy(std::uint32_t kind, const shm::CopyBody& body) {
    const auto unknown = static_cast<std::uint32_t>(shm::CopyKind::kUnknown);
    CopySummary& copies = summary_.copies[kind == 0 || kind > unknown ? unknown : kind];
    ++copies.count;
    copies.bytes += body.bytes;
    summary_.copied_bytes += body.bytes;
  }

  void launch(const RecordView& record) {
    const auto body = record.as<shm::LaunchBody>();
    remember(streams_, body.stream);
    if ((record.header.flags & shm::kBlindLaunch) != 0) ++summary_.blind_launches;
    summary_.accesses += body.accesses;
    for (std::uint32_t i = 0; i < body.accesses; ++i) {
      const std::uint64_t access = record.word_behind<shm::LaunchBody>(i);
      if ((access & (shm::kAccessReads | shm::kAccessWrites)) != 0) ++summary_.known_accesses;
    }
    if (KernelSummary* kernel = kernel_of(record.header.aux)) ++kernel->launches;
    launches_[record.header.sequence % kRecentLaunches] = {record.header.sequence, record.header.aux};
  }

  void kernel_time(const shm::KernelTimeBody& body) {
    const RecentLaunch& recent = launches_[body.launch % kRecentLaunches];
    if (recent.sequence != body.launch || body.launch == 0) return;
    if (KernelSummary* kernel = kernel_of(recent.function)) {
      ++kernel->timed;
      kernel->nanoseconds += body.nanoseconds;
    }
  }

  void stack(const RecordView& record) {
    const auto body = record.as<shm::StackBody>();
    if (!take_text(body.frames * 8)) return;
    std::vector<std::uint64_t>& frames = summary_.stacks[body.hash];
    frames.clear();
    for (std::uint64_t i = 0; i < body.frames; ++i) frames.push_back(record.word_behind<shm::StackBody>(i));
  }

  KernelSummary* kernel_of(std::uint64_t id) {
    const auto found = kernels_.find(id);
    if (found != kernels_.end()) return &found->second;
    if (kernels_.size() >= kMostNames) {
      summary_.limited = true;
      return nullptr;
    }
    return &kernels_[id];
  }

  std::string text(const RecordView& record) {
    const std::uint64_t length = record.as<shm::NameBody>().length;
    if (!take_text(length)) return {};
    const auto bytes = record.bytes_behind<shm::NameBody>(length);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // Names and stacks together have a limit; an entry without any text counts too.
  bool take_text(std::uint64_t bytes) {
    constexpr std::uint64_t kEach = 64;
    if (bytes + kEach > kMostTextBytes - text_bytes_) {
      summary_.limited = true;
      return false;
    }
    text_bytes_ += bytes + kEach;
    return true;
  }

  void remember(std::set<std::uint64_t>& numbers, std::uint64_t number) {
    if (numbers.size() < kMostLanes || numbers.count(number) != 0) {
      numbers.insert(number);
    } else {
      summary_.limited = true;
    }
  }

  struct RecentLaunch {
    std::uint64_t sequence = 0;
    std::uint32_t function = 0;
  };

  Summary summary_;
  LiveCurve curve_;
  std::uint64_t first_ticks_ = 0;
  std::uint64_t last_ticks_ = 0;
  std::uint64_t text_bytes_ = 0;
  std::set<std::uint64_t> lanes_;
  std::set<std::uint64_t> streams_;
  std::unordered_map<std::uint64_t, std::uint64_t> blocks_;  // live: number -> bytes
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>, std::uint64_t> groups_;
  std::map<std::uint64_t, KernelSummary> kernels_;
  std::vector<RecentLaunch> launches_ = std::vector<RecentLaunch>(kRecentLaunches);
};

}  // namespace

Summary summarise(RecordingReader& reader) {
  Summariser summariser;
  while (const auto entry = reader.next()) summariser.add(*entry);
  return summariser.finish(reader);
}

}  // namespace memopt::planner
