#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/exchange/exchange.h"
#include "planner/exchange/pickle.h"
#include "planner/recording/clock_line.h"
#include "planner/recording/python_code.h"
#include "planner/recording/reader.h"

namespace memopt::exchange {
namespace {

using shm::RecordKind;
using shm::RecordView;

constexpr std::size_t kMostBlocks = 8'000'000;

struct Block {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  std::uint64_t stack = 0;
  std::uint64_t python = 0;
};

struct Frame {
  std::string file, name;
  std::int64_t line = 0;
};

// Of Python's frames, "NAME (FILE:LINE)".
Frame python_frame(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::size_t begin = text.rfind(" (", colon);
  Frame frame{"", text, 0};
  if (colon == std::string::npos || begin == std::string::npos || text.back() != ')') return frame;
  const char* const end = text.data() + text.size() - 1;
  std::int64_t line = 0;
  if (std::from_chars(text.data() + colon + 1, end, line).ptr != end) return frame;
  return {text.substr(begin + 2, colon - begin - 2), text.substr(0, begin), line};
}

// The names of return addresses: of files where they were loaded.
class FrameNames {
 public:
  void add(std::uint64_t base, std::string_view text) { files_[base] = text.substr(0, text.find('\n')); }

  Frame of(std::uint64_t address) const {
    char hex[20] = "0x";
    const auto print = [&](std::uint64_t number) {
      return std::string(hex, std::to_chars(hex + 2, hex + sizeof hex, number, 16).ptr);
    };
    auto above = files_.upper_bound(address);
    if (above == files_.begin()) return {"", print(address), 0};
    --above;
    const std::string& text = above->second;
    return {text, text.substr(text.rfind('/') + 1) + "+" + print(address - above->first), 0};
  }

 private:
  std::map<std::uint64_t, std::string> files_;
};

class SnapshotWriter {
 public:
  SnapshotWriter(const planner::ClockLine& clock, std::ostream& to) : clock_(clock), pickle_(to) {
    pickle_.begin_dict();
    pickle_.value("device_traces");
    pickle_.begin_list();
    pickle_.begin_list();
  }

  void add(std::uint32_t thread, const RecordView& record) {
    thread_ = thread;
    python_.add(thread, record);
    time_ = clock_.nanoseconds(record.header.ticks);
    switch (record.kind()) {
      case RecordKind::kMalloc:
        return malloc(record.as<shm::MallocBody>());
      case RecordKind::kFree:
        return free(record.as<shm::FreeBody>());
      case RecordKind::kModule: {
        const auto bytes = record.bytes_behind<shm::NameBody>(record.as<shm::NameBody>().length);
        return names_.add(record.as<shm::NameBody>().id, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      }
      case RecordKind::kStack: {
        const auto body = record.as<shm::StackBody>();
        if (stacks_.size() >= kMostBlocks) return;
        std::vector<std::uint64_t>& frames = stacks_[body.hash];
        frames.clear();
        for (std::uint64_t i = 0; i < body.frames; ++i) frames.push_back(record.word_behind<shm::StackBody>(i));
        return;
      }
      default:
        return;
    }
  }

  Counts finish() {
    pickle_.end_list();
    pickle_.end_list();
    pickle_.value("segments");
    pickle_.begin_list();
    std::vector<const Block*> blocks;
    for (const auto& [number, block] : live_) blocks.push_back(&block);
    std::sort(blocks.begin(), blocks.end(), [](const Block* a, const Block* b) { return a->address < b->address; });
    for (const Block* const block : blocks) segment(*block);
    pickle_.end_list();
    pickle_.end_dict();
    pickle_.finish();
    return counts_;
  }

 private:
  void malloc(const shm::MallocBody& body) {
    if (live_.size() >= kMostBlocks || live_.contains(body.block)) {
      ++counts_.left_out;
      return;
    }
    Block block{body.address, body.bytes, body.stream, body.stack, python_.at(thread_)};
    if (block.address == 0) {
      // Files of other tools have none: one behind the other, as if nothing were ever used again.
      block.address = next_;
      next_ += (body.bytes / 512 + 1) * 512;
    }
    entry("segment_alloc", block);
    entry("alloc", block);
    live_[body.block] = block;
    ++counts_.operations;
  }

  void free(const shm::FreeBody& body) {
    const auto block = live_.find(body.block);
    if (block == live_.end()) {
      ++counts_.left_out;
      return;
    }
    for (const char* const action : {"free_requested", "free_completed", "segment_free"}) entry(action, block->second);
    live_.erase(block);
    ++counts_.operations;
  }

  void entry(const char* action, const Block& block) {
    pickle_.begin_dict();
    pickle_.member("action", action);
    pickle_.member("addr", block.address);
    pickle_.member("size", block.bytes);
    pickle_.member("stream", block.stream);
    pickle_.member("time_us", time_ / 1000);
    // Beside what PyTorch writes, so that nothing is lost on the way back.
    pickle_.member("time_ns", time_);
    pickle_.member("thread", std::uint64_t{thread_});
    frames(block);
    pickle_.end_dict();
  }

  void segment(const Block& block) {
    pickle_.begin_dict();
    pickle_.member("device", std::int64_t{0});
    pickle_.member("address", block.address);
    for (const char* const key : {"total_size", "allocated_size", "active_size", "requested_size"})
      pickle_.member(key, block.bytes);
    pickle_.member("stream", block.stream);
    pickle_.member("segment_type", "large");
    pickle_.member("is_expandable", false);
    pickle_.value("segment_pool_id");
    pickle_.begin_list();
    pickle_.value(std::int64_t{0});
    pickle_.value(std::int64_t{0});
    pickle_.end_list();
    frames(block);
    pickle_.value("blocks");
    pickle_.begin_list();
    pickle_.begin_dict();
    pickle_.member("address", block.address);
    pickle_.member("size", block.bytes);
    pickle_.member("requested_size", block.bytes);
    pickle_.member("state", "active_allocated");
    frames(block);
    pickle_.end_dict();
    pickle_.end_list();
    pickle_.end_dict();
  }

  // A list that is written once: native code, and behind it the Python code that called it.
  void frames(const Block& block) {
    pickle_.value("frames");
    const std::uint64_t stack = stacks_.contains(block.stack) ? block.stack : 0;  // nothing is known of it
    const std::pair key(stack, block.python);
    if (const auto written = written_.find(key); written != written_.end()) return pickle_.refer(written->second);
    pickle_.begin_list();
    if (const auto found = stacks_.find(stack); found != stacks_.end()) {
      for (const std::uint64_t address : found->second) {
        member(names_.of(address));
      }
    }
    for (const std::string& name : python_.names(block.python)) member(python_frame(name));
    pickle_.end_list();
    if (written_.size() < kMostBlocks) written_[key] = pickle_.remember();
  }

  void member(const Frame& frame) {
    pickle_.begin_dict();
    pickle_.member("filename", frame.file);
    pickle_.member("line", frame.line);
    pickle_.member("name", frame.name);
    pickle_.end_dict();
  }

  const planner::ClockLine& clock_;
  PickleWriter pickle_;
  std::uint64_t time_ = 0;
  std::uint32_t thread_ = 0;
  std::uint64_t next_ = std::uint64_t{1} << 40;
  std::unordered_map<std::uint64_t, Block> live_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> stacks_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> written_;  // by native and Python's stack
  planner::PythonCode python_;
  FrameNames names_;
  Counts counts_;
};

}  // namespace

Counts write_snapshot(input::File& recording, std::ostream& to) {
  planner::RecordingReader first(recording.stream());
  const planner::ClockLine clock = planner::read_clock(first);
  planner::RecordingReader reader(recording.stream());
  SnapshotWriter writer(clock, to);
  while (const auto entry = reader.next()) {
    if (entry->kind == planner::recording::EntryKind::kRecord) writer.add(entry->lane, entry->record);
  }
  Counts counts = writer.finish();
  if (reader.damage()) counts.damage = to_string(*reader.damage());
  return counts;
}

}  // namespace memopt::exchange
