#include "tools/memoptctl/plan/reduction.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "planner/iteration/iteration_planner.h"
#include "planner/recording/reader.h"
#include "planner/recording/writer.h"
#include "shm/channel.h"
#include "shm/record.h"

namespace memopt::tools {
namespace {

using planner::RecordingReader;
using planner::recording::EntryKind;
using shm::RecordKind;
using shm::RecordView;

// Small files are the point, and these are written once.
constexpr int kCompressionLevel = 19;
constexpr std::size_t kLongestName = 56;
// No program comes as far; a file can say so.
constexpr std::uint64_t kLargestSequence = std::uint64_t{1} << 62;
constexpr std::uint64_t kLargestHole = std::uint64_t{1} << 30;

// FNV-1a. Names are told apart by it, nothing else.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// A record that outlives the reader's buffer.
struct Kept {
  std::uint32_t lane = 0;
  shm::RecordHeader header{};
  std::vector<std::byte> body;
  std::uint64_t python = 0;  // the stack of Python code in which it was allocated, before the window

  Kept(std::uint32_t in_lane, const RecordView& record)
      : lane(in_lane), header(record.header), body(record.body.begin(), record.body.end()) {}
  RecordView view() const { return {header, body}; }
  RecordKind kind() const { return static_cast<RecordKind>(header.kind); }
};

std::string text_of(const RecordView& record) {
  const auto bytes = record.bytes_behind<shm::NameBody>(record.as<shm::NameBody>().length);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void rename(Kept& record, const std::string& text) {
  shm::NameBody name = record.view().as<shm::NameBody>();
  name.length = text.size();
  const std::size_t padded = (text.size() + 7) / 8 * 8;
  record.body.assign(sizeof name + padded, std::byte{0});
  std::memcpy(record.body.data(), &name, sizeof name);
  if (!text.empty()) std::memcpy(record.body.data() + sizeof name, text.data(), text.size());
  record.header.words = static_cast<std::uint16_t>((sizeof(shm::RecordHeader) + record.body.size()) / 8);
}

// The stream that a record is on, if that is what it says.
std::optional<std::uint64_t> stream_of(const RecordView& record) {
  switch (record.kind()) {
    case RecordKind::kMalloc:
      return record.as<shm::MallocBody>().stream;
    case RecordKind::kFree:
      return record.as<shm::FreeBody>().stream;
    case RecordKind::kLaunch:
      return record.as<shm::LaunchBody>().stream;
    case RecordKind::kCopy:
      return record.as<shm::CopyBody>().stream;
    case RecordKind::kMemset:
      return record.as<shm::MemsetBody>().stream;
    case RecordKind::kEventRecord:
    case RecordKind::kEventWait:
      return record.as<shm::EventBody>().stream;
    case RecordKind::kStreamDestroy:
    case RecordKind::kHostFunction:
      return record.as<shm::StreamBody>().stream;
    default:
      return std::nullopt;
  }
}

// What is known when the window begins, and the window itself.
struct Gathered {
  std::map<std::uint64_t, Kept> blocks;  // by number, which grows with time
  std::unordered_set<std::uint64_t> written;
  std::unordered_map<std::uint64_t, Kept> streams;
  std::unordered_map<std::uint64_t, Kept> functions;
  std::unordered_map<std::uint64_t, Kept> stacks;
  std::vector<Kept> modules;
  std::vector<Kept> python_frames;
  std::unordered_map<std::uint64_t, Kept> python_stacks;  // as they were written in full
  std::map<std::uint32_t, std::uint64_t> python_at;       // by lane
  std::vector<Kept> window;
  std::optional<planner::ClockPair> first_clock;
  std::optional<planner::ClockPair> last_clock;

  void before(std::uint32_t lane, const RecordView& record);
};

void Gathered::before(std::uint32_t lane, const RecordView& record) {
  switch (record.kind()) {
    case RecordKind::kMalloc:
      blocks.insert_or_assign(record.as<shm::MallocBody>().block, Kept(lane, record)).first->second.python =
          python_at[lane];
      break;
    case RecordKind::kFree:
      blocks.erase(record.as<shm::FreeBody>().block);
      written.erase(record.as<shm::FreeBody>().block);
      break;
    case RecordKind::kEscape:
      if (const auto block = blocks.find(record.as<shm::EscapeBody>().block); block != blocks.end()) {
        block->second.header.flags |= shm::kStays;
      }
      break;
    case RecordKind::kLaunch:
      for (std::size_t i = 0; i < record.as<shm::LaunchBody>().accesses; ++i) {
        const std::uint64_t access = record.word_behind<shm::LaunchBody>(i);
        const bool only_reads = (access & shm::kAccessReads) != 0 && (access & shm::kAccessWrites) == 0;
        if (!only_reads) written.insert(access & shm::kAccessBlock);
      }
      break;
    case RecordKind::kCopy:
      written.insert(record.as<shm::CopyBody>().to);
      break;
    case RecordKind::kMemset:
      written.insert(record.as<shm::MemsetBody>().block);
      break;
    case RecordKind::kStreamCreate:
      streams.insert_or_assign(record.as<shm::StreamBody>().stream, Kept(lane, record));
      break;
    case RecordKind::kStreamDestroy:
      streams.erase(record.as<shm::StreamBody>().stream);
      break;
    case RecordKind::kFunction:
      functions.insert_or_assign(record.as<shm::NameBody>().id, Kept(lane, record));
      break;
    case RecordKind::kStack:
      stacks.insert_or_assign(record.as<shm::StackBody>().hash, Kept(lane, record));
      break;
    case RecordKind::kModule:
      modules.emplace_back(lane, record);
      break;
    case RecordKind::kPythonFrame:
      python_frames.emplace_back(lane, record);
      break;
    case RecordKind::kPythonStack:
      python_at[lane] = record.as<shm::StackBody>().hash;
      if (record.as<shm::StackBody>().frames != 0)
        python_stacks.insert_or_assign(record.as<shm::StackBody>().hash, Kept(lane, record));
      break;
    default:
      break;
  }
}

Gathered gather(RecordingReader& reader, std::uint64_t first, std::uint64_t last, const Reduction& reduction) {
  Gathered gathered;
  while (const auto entry = reader.next()) {
    if (entry->kind == EntryKind::kClock) {
      if (!gathered.first_clock) gathered.first_clock = entry->clock;
      gathered.last_clock = entry->clock;
    }
    if (entry->kind != EntryKind::kRecord) continue;
    const RecordView& record = entry->record;
    const std::uint64_t sequence = record.header.sequence;
    if (sequence < first) {
      gathered.before(entry->lane, record);
    } else if (sequence <= last) {
      switch (record.kind()) {
        case RecordKind::kState:  // of a planner that is not in the file
          break;
        case RecordKind::kParameters:
          if (reduction.parameters) gathered.window.emplace_back(entry->lane, record);
          break;
        case RecordKind::kStack:
        case RecordKind::kModule:
        case RecordKind::kPythonFrame:
        case RecordKind::kPythonStack:
          if (!reduction.hash_names) gathered.window.emplace_back(entry->lane, record);
          break;
        default:
          gathered.window.emplace_back(entry->lane, record);
      }
    } else if (record.kind() == RecordKind::kKernelTime) {
      // Times are measured and told later than what they are of.
      const std::uint64_t launch = record.as<shm::KernelTimeBody>().launch;
      if (launch >= first && launch <= last) gathered.window.emplace_back(entry->lane, record);
    } else if (record.kind() == RecordKind::kFunction) {
      // A name may come behind its first launch where threads race.
      gathered.functions.insert({record.as<shm::NameBody>().id, Kept(entry->lane, record)});
    }
  }
  return gathered;
}

Kept written_as_a_whole(const Kept& allocation) {
  const shm::MallocBody block = allocation.view().as<shm::MallocBody>();
  const shm::MemsetBody memset{block.stream, block.block, block.bytes};
  shm::RecordHeader header{};
  header.kind = static_cast<std::uint8_t>(RecordKind::kMemset);
  header.words = (sizeof header + sizeof memset) / 8;
  RecordView view{header, std::as_bytes(std::span(&memset, 1))};
  return Kept(allocation.lane, view);
}

// Says in which Python code threads are, as they come to be elsewhere: in full the first time.
class PythonPositions {
 public:
  PythonPositions(std::unordered_map<std::uint64_t, Kept>& stacks, std::vector<Kept>& to) : stacks_(stacks), to_(to) {}

  void move(std::uint32_t lane, std::uint64_t stack) {
    if (at_[lane] == stack) return;
    at_[lane] = stack;
    if (const auto whole = stacks_.find(stack); whole != stacks_.end()) {
      to_.push_back(std::move(whole->second));
      to_.back().lane = lane;
      stacks_.erase(whole);
      return;
    }
    const shm::StackBody body{stack, 0};
    shm::RecordHeader header{};
    header.kind = static_cast<std::uint8_t>(RecordKind::kPythonStack);
    header.words = (sizeof header + sizeof body) / 8;
    to_.emplace_back(lane, RecordView{header, std::as_bytes(std::span(&body, 1))});
  }
  // Every other stack in full, for what the window refers to; then where each lane is.
  void finish(const std::map<std::uint32_t, std::uint64_t>& lanes) {
    while (!stacks_.empty()) move(stacks_.begin()->second.lane, stacks_.begin()->first);
    for (const auto& [lane, stack] : lanes) move(lane, stack);
  }

 private:
  std::unordered_map<std::uint64_t, Kept>& stacks_;
  std::vector<Kept>& to_;
  std::map<std::uint32_t, std::uint64_t> at_;
};

// What comes first: everything that the window names and that was there before it.
std::vector<Kept> prologue(Gathered& gathered, const Reduction& reduction) {
  std::unordered_set<std::uint64_t> streams, functions, stacks;
  const auto note = [&](const Kept& record) {
    if (const auto stream = stream_of(record.view())) streams.insert(*stream);
    if (record.kind() == RecordKind::kLaunch) functions.insert(record.header.aux);
    if (record.kind() == RecordKind::kMalloc) stacks.insert(record.view().as<shm::MallocBody>().stack);
  };
  for (const Kept& record : gathered.window) note(record);
  for (const auto& [block, record] : gathered.blocks) note(record);
  for (const Kept& record : gathered.window) {
    if (record.kind() == RecordKind::kFunction) functions.erase(record.view().as<shm::NameBody>().id);
  }
  std::vector<Kept> result;
  const auto take = [&](std::unordered_map<std::uint64_t, Kept>& from, const std::unordered_set<std::uint64_t>& which) {
    const std::size_t begin = result.size();
    for (const std::uint64_t key : which) {
      if (const auto found = from.find(key); found != from.end()) result.push_back(std::move(found->second));
    }
    std::sort(result.begin() + static_cast<std::ptrdiff_t>(begin), result.end(),
              [](const Kept& a, const Kept& b) { return a.header.sequence < b.header.sequence; });
  };
  if (!reduction.hash_names) {
    result = std::move(gathered.modules);
    take(gathered.stacks, stacks);
    std::move(gathered.python_frames.begin(), gathered.python_frames.end(), std::back_inserter(result));
  }
  take(gathered.functions, functions);
  take(gathered.streams, streams);
  // A reader of the file takes a block that nothing has written for empty.
  std::vector<Kept> contents;
  PythonPositions positions(gathered.python_stacks, result);
  for (auto& [block, record] : gathered.blocks) {
    if (gathered.written.count(block) != 0) contents.push_back(written_as_a_whole(record));
    if (!reduction.hash_names) positions.move(record.lane, record.python);
    result.push_back(std::move(record));
  }
  if (!reduction.hash_names) positions.finish(gathered.python_at);
  std::move(contents.begin(), contents.end(), std::back_inserter(result));
  return result;
}

class Output {
 public:
  Output(int fd, const planner::RecordingInfo& info)
      : writer_(
            fd, info, [this](const std::string& why) { trouble_ = why; }, kCompressionLevel) {}

  void clock(const std::optional<planner::ClockPair>& pair) {
    if (pair) writer_.add_clock(*pair);
  }

  // False: what it is about was left out.
  bool add(const Kept& record) {
    RecordView view = record.view();
    std::vector<std::byte> body;
    const auto point_elsewhere = [&](std::uint64_t launch) {
      const auto found = launches_.find(launch);
      if (found == launches_.end()) return false;
      body = record.body;
      std::memcpy(body.data(), &found->second, sizeof found->second);
      view.body = body;
      return true;
    };
    static_assert(offsetof(shm::KernelTimeBody, launch) == 0 && offsetof(shm::ParametersBody, launch) == 0);
    if (record.kind() == RecordKind::kKernelTime && !point_elsewhere(view.as<shm::KernelTimeBody>().launch))
      return false;
    if (record.kind() == RecordKind::kParameters && !point_elsewhere(view.as<shm::ParametersBody>().launch))
      return false;
    view.header.sequence = ++sequence_;
    if (record.kind() == RecordKind::kLaunch) launches_[record.header.sequence] = sequence_;
    writer_.add(record.lane, view);
    return true;
  }

  ReducedCounts finish(const std::string& path) {
    if (!writer_.finish()) throw std::runtime_error(path + ": " + (trouble_.empty() ? writer_.error() : trouble_));
    return {writer_.records(), 0, writer_.bytes()};
  }

 private:
  std::string trouble_;
  planner::RecordingWriter writer_;
  std::uint64_t sequence_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> launches_;  // number in the whole recording -> here
};

struct FoundIteration {
  std::uint32_t lane = 0;    // number of the main lane
  std::uint32_t period = 0;  // operations of the main lane
  std::uint64_t last = 0;    // sequence of the operation that ended one
  std::uint64_t operations = 0;
  std::uint64_t peak_load = 0;
};

// Bytes that live behind each operation of the lane, up to a constant.
std::vector<std::int64_t> live_behind(const planner::OperationStore& store, const planner::Lane& lane) {
  std::vector<std::int64_t> result;
  result.reserve(lane.operations.size());
  std::int64_t live = 0;
  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < lane.operations.size(); ++i) {
    for (; at <= lane.operations[i]; ++at) {
      const planner::Operation& operation = store.operations()[at];
      if (operation.block == planner::kNone) continue;
      const auto bytes =
          static_cast<std::int64_t>(std::min(store.blocks()[operation.block].bytes, planner::kMaxPlacedBytes));
      if (operation.kind == planner::OperationKind::kMalloc) live += bytes;
      if (operation.kind == planner::OperationKind::kFree) live -= bytes;
    }
    result.push_back(live);
  }
  return result;
}

// As far as the iteration goes on in the recording, cut where the fewest bytes cross: between two steps of a training.
SteadyWindow window_of(const planner::OperationStore& store, const FoundIteration& found) {
  const auto lane = std::find_if(store.lanes().begin(), store.lanes().end(),
                                 [&](const planner::Lane& candidate) { return candidate.number == found.lane; });
  const auto sequence = [&](std::size_t i) { return store.operations()[lane->operations[i]].sequence; };
  const auto token = [&](std::size_t i) { return lane->operations.token(i); };
  const std::size_t count = lane == store.lanes().end() ? 0 : lane->operations.size();
  std::size_t last = 0;
  while (last < count && sequence(last) < found.last) ++last;
  if (last == count || sequence(last) != found.last || last + 1 < 2 * std::size_t{found.period}) {
    throw std::runtime_error("the recording is too long: its iteration lies too far back");
  }
  while (last + 1 < count && token(last + 1) == token(last + 1 - found.period)) ++last;
  std::size_t begin = last + 1 - found.period;
  while (begin > 0 && token(begin - 1) == token(begin - 1 + found.period)) --begin;
  const std::vector<std::int64_t> live = live_behind(store, *lane);
  std::size_t end = last;
  for (std::size_t i = last; i + found.period > last && i >= begin + 2 * std::size_t{found.period}; --i) {
    if (live[i] < live[end]) end = i;
  }
  SteadyWindow window{{}, sequence(end), found.operations, found.peak_load};
  for (std::size_t i = end + 1; i >= begin + found.period; i -= found.period) {
    window.begins.push_back(sequence(i - found.period));
  }
  return window;
}

}  // namespace

std::string short_name(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  return name.substr(0, kLongestName - 17) + fmt::format("~{:016x}", hash_of(name));
}

SteadyWindow find_steady_window(input::File& file) {
  RecordingReader reader(file.stream());
  planner::IterationPlanner planner;
  std::vector<FoundIteration> found;
  const auto check = [&] {
    if (!planner.check()) return;
    const planner::IterationPlan& plan = *planner.plan();
    const planner::LanePeriod& main = plan.iteration.lanes[plan.iteration.main];
    const planner::Lane& lane = planner.store().lanes()[main.lane];
    found.push_back({lane.number, main.period, planner.store().operations()[lane.operations[main.end - 1]].sequence,
                     plan.lifetimes.operations, plan.lifetimes.peak_load});
  };
  std::uint64_t last = 0;
  std::uint64_t check_point = shm::kFirstCheckPoint;
  while (const auto entry = reader.next()) {
    if (entry->kind != EntryKind::kRecord) continue;
    const std::uint64_t sequence = entry->record.header.sequence;
    if (sequence != last + 1) planner.add_gap();
    last = sequence;
    planner.add(entry->lane, entry->record);
    if (sequence < check_point || sequence > kLargestSequence) continue;
    if (sequence - check_point > kLargestHole) check_point = sequence;
    while (check_point <= sequence) check_point = shm::next_check_point(check_point);
    check();
  }
  check();
  if (found.empty()) {
    throw std::runtime_error(file.name() + ": no iteration was found in it: " +
                             (planner.note().empty() ? "there is no operation" : planner.note()));
  }
  // The shortest that comes as high as any: epochs repeat as well as the steps in them, loops within a step are lower.
  const auto higher = [](const FoundIteration& a, const FoundIteration& b) { return a.peak_load < b.peak_load; };
  const std::uint64_t peak = std::max_element(found.begin(), found.end(), higher)->peak_load;
  std::erase_if(found, [&](const FoundIteration& iteration) { return iteration.peak_load < peak; });
  return window_of(planner.store(), *std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
                     return a.operations < b.operations;
                   }));
}

ReducedCounts write_reduced(input::File& from, const std::string& to, std::uint64_t first, std::uint64_t last,
                            const Reduction& reduction) {
  RecordingReader reader(from.stream());
  planner::RecordingInfo info = reader.info();
  info.version = reduction.version;
  if (reduction.hash_names) {
    info.program = base_name(info.program);
    info.arguments.resize(std::min<std::size_t>(info.arguments.size(), 1));
    for (std::string& argument : info.arguments) argument = base_name(argument);
  }
  Gathered gathered = gather(reader, first, last, reduction);
  const std::uint64_t before = gathered.blocks.size();
  std::vector<Kept> records = prologue(gathered, reduction);
  const std::uint64_t begin_ticks = gathered.window.empty() ? 0 : gathered.window.front().header.ticks;
  // As if all that was there already had come about in the moment before.
  for (Kept& record : records) record.header.ticks = begin_ticks;
  std::move(gathered.window.begin(), gathered.window.end(), std::back_inserter(records));

  const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) throw std::runtime_error(fmt::format("{}: can't be written: {}", to, std::strerror(errno)));
  Output output(fd, info);
  output.clock(gathered.first_clock);
  for (Kept& record : records) {
    if (reduction.hash_names && record.kind() == RecordKind::kFunction)
      rename(record, short_name(text_of(record.view())));
    output.add(record);
  }
  output.clock(gathered.last_clock);
  ReducedCounts counts = output.finish(to);
  counts.before = before;
  return counts;
}

}  // namespace memopt::tools
