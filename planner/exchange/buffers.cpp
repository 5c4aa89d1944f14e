#include <algorithm>
#include <charconv>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "planner/exchange/exchange.h"
#include "planner/exchange/record_target.h"
#include "planner/layout/files/csv.h"
#include "planner/recording/clock_line.h"
#include "planner/recording/reader.h"

namespace memopt::exchange {
namespace {

using shm::RecordKind;

struct Life {
  std::uint64_t block = 0;
  std::uint64_t bytes = 0;
  std::uint64_t begin = 0, end = 0;            // as numbers of records
  std::uint64_t begin_time = 0, end_time = 0;  // nanoseconds
};

// Whether the times say the same of all pairs as the numbers of the records do: each life has a length, and what is
// freed at a time is freed before anything is allocated then.
bool times_serve(const std::vector<Life>& lives) {
  struct Event {
    std::uint64_t number, time;
    bool frees;
  };
  std::vector<Event> events;
  for (const Life& life : lives) {
    if (life.begin_time >= life.end_time) return false;
    events.push_back({life.begin, life.begin_time, false});
    events.push_back({life.end, life.end_time, true});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.number < b.number; });
  for (std::size_t i = 1; i < events.size(); ++i) {
    const Event &before = events[i - 1], &now = events[i];
    if (now.time < before.time || (now.time == before.time && now.frees && !before.frees)) return false;
  }
  return true;
}

std::string_view first_line(std::string_view head) {
  std::string_view line = head.substr(0, head.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// A number that is its own shortest text.
std::uint64_t block_number(const std::string& id) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  const bool whole = error == std::errc() && end == id.data() + id.size() && number <= shm::kAccessBlock;
  return whole && std::to_string(number) == id ? number : 0;
}

}  // namespace

Counts write_buffers(input::File& recording, std::ostream& to) {
  planner::RecordingReader first(recording.stream());
  const planner::ClockLine clock = planner::read_clock(first);
  planner::RecordingReader reader(recording.stream());
  std::vector<Life> lives;
  std::unordered_map<std::uint64_t, std::size_t> live;
  Counts counts;
  std::uint64_t number = 0, time = 0;
  const auto end = [&](std::unordered_map<std::uint64_t, std::size_t>::iterator block) {
    Life& life = lives[block->second];
    life.end = number;
    life.end_time = time;
    live.erase(block);
  };
  while (const auto entry = reader.next()) {
    if (entry->kind != planner::recording::EntryKind::kRecord) continue;
    const shm::RecordView& record = entry->record;
    ++number;
    time = clock.nanoseconds(record.header.ticks);
    if (record.kind() == RecordKind::kMalloc) {
      const auto body = record.as<shm::MallocBody>();
      if (body.bytes == 0 || body.bytes >> 62 != 0) {
        ++counts.left_out;
        continue;
      }
      // A number that is used twice: the first free is missing.
      if (const auto there = live.find(body.block); there != live.end()) end(there);
      live[body.block] = lives.size();
      lives.push_back({body.block, body.bytes, number, 0, time, 0});
    } else if (record.kind() == RecordKind::kFree) {
      const auto there = live.find(record.as<shm::FreeBody>().block);
      if (there == live.end()) {
        ++counts.left_out;
      } else {
        end(there);
      }
    }
  }
  // What is not freed lives to the end, and a little longer than what is freed with the last record.
  ++number;
  ++time;
  while (!live.empty()) end(live.begin());
  const bool times = times_serve(lives);
  layout::Instance instance;
  for (const Life& life : lives) {
    const layout::Interval when =
        times ? layout::Interval{life.begin_time, life.end_time} : layout::Interval{life.begin, life.end};
    if (when.begin >= when.end) {
      ++counts.left_out;  // allocated twice in one record: the file lies
      continue;
    }
    instance.problem.add(life.bytes, when);
    instance.ids.push_back(std::to_string(life.block));
    ++counts.operations;
  }
  if (instance.problem.buffers.empty()) throw std::runtime_error(recording.name() + ": it has no allocation");
  to << layout::write_csv(instance);
  counts.note = times ? "times are nanoseconds" : "times are numbers of records, as some calls share a nanosecond";
  if (reader.damage()) counts.damage = to_string(*reader.damage());
  return counts;
}

bool is_buffers(std::string_view head) {
  const std::string_view line = first_line(head);
  bool size = false, begin = false;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    std::string_view field = line.substr(at, end - at);
    while (field.starts_with(' ')) field.remove_prefix(1);
    while (field.ends_with(' ')) field.remove_suffix(1);
    size = size || field == "size";
    begin = begin || field == "lower" || field == "begin" || field == "start";
    at = end + 1;
  }
  return size && begin;
}

Counts read_buffers(input::File& file, planner::RecordingWriter& to, std::uint64_t iterations) {
  layout::Instance instance;
  try {
    instance = layout::read_csv(file);
  } catch (const layout::CsvError& error) {
    throw input::InputError(file.name() + ": " + error.what());
  }
  const layout::Problem& problem = instance.problem;
  struct Event {
    std::uint64_t time;
    bool allocates;  // after what is freed at the same time
    std::size_t buffer;
  };
  std::vector<Event> events;
  std::uint64_t first = ~std::uint64_t{0}, last = 0, constrained = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const layout::Interval hull = problem.hull(i);
    events.push_back({hull.begin, true, i});
    events.push_back({hull.end, false, i});
    first = std::min(first, hull.begin);
    last = std::max(last, hull.end);
    const layout::Buffer& buffer = problem.buffers[i];
    constrained += buffer.count > 1 || buffer.alignment > 1 || buffer.fixed != layout::kAnywhere;
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.time, a.allocates, a.buffer) < std::tie(b.time, b.allocates, b.buffer);
  });
  // Their own numbers where all are numbers, each once, and one run is all there is.
  std::vector<std::uint64_t> numbers(problem.buffers.size());
  std::unordered_set<std::uint64_t> seen;
  bool own = iterations == 1;
  for (std::size_t i = 0; i < numbers.size() && own; ++i) {
    numbers[i] = block_number(instance.ids[i]);
    own = numbers[i] != 0 && seen.insert(numbers[i]).second;
  }
  RecordTarget target(to);
  Counts counts;
  std::uint64_t next = 0;
  // A file may have times of 63 bits: what comes again stays below.
  const std::uint64_t period = std::min(last - first, (std::uint64_t{1} << 62) / (iterations + 1));
  for (std::uint64_t round = 0; round < iterations; ++round) {
    for (const Event& event : events) {
      std::uint64_t& number = numbers[event.buffer];
      if (event.allocates && !own) number = ++next;
      const std::uint64_t time =
          round == 0 ? event.time : first + std::min(event.time - first, period) + round * period;
      const RecordFrame frame{.time = time};
      if (event.allocates) {
        target.put(RecordKind::kMalloc, frame,
                   shm::MallocBody{number, problem.buffers[event.buffer].bytes, 0, 0, 0, 0});
      } else {
        target.put(RecordKind::kFree, frame, shm::FreeBody{number, 0});
      }
      ++counts.operations;
    }
  }
  if (constrained != 0) {
    counts.note = std::to_string(constrained) +
                  " buffers have gaps, alignments or fixed offsets, which a recording does not have: they are left out";
  }
  return counts;
}

}  // namespace memopt::exchange
