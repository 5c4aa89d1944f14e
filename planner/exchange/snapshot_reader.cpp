#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/exchange/exchange.h"
#include "planner/exchange/pickle.h"
#include "planner/exchange/record_target.h"
#include "planner/input/shown.h"

namespace memopt::exchange {
namespace {

using shm::RecordKind;
using Value = Pickle::Value;

constexpr std::uint64_t kLargestBlock = std::uint64_t{1} << 62;
// Where no times are, operations are so many nanoseconds apart.
constexpr std::uint64_t kAssumedTime = 1000;
constexpr std::uint64_t kMostThreads = 1'000'000;
constexpr std::size_t kMostFrames = 1024;  // of a stack
// Addresses that no program has: a frame of a Python program is a file of its own in a recording.
constexpr std::uint64_t kFrames = std::uint64_t{0xffff} << 48;
constexpr std::uint64_t kFrameStep = 16;

std::string read_all(input::File& file) {
  const std::unique_ptr<input::Bytes> bytes = file.take();
  std::string all;
  constexpr std::size_t kStep = std::size_t{1} << 20;
  for (;;) {
    const std::size_t before = all.size();
    if (all.capacity() < before + kStep) all.reserve(std::max(2 * all.capacity(), 4 * kStep));
    all.resize(before + kStep);
    const std::size_t got = bytes->read(all.data() + before, kStep);
    all.resize(before + got);
    if (got == 0) return all;
    if (all.size() > Pickle::kMostBytes)
      throw input::InputError(file.name() + ": expected a pickle of at most 2 GiB, found more");
  }
}

// FNV-1a, to tell stacks apart.
std::uint64_t hash_of(const std::vector<std::uint64_t>& words) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint64_t word : words) hash = (hash ^ word) * 0x100000001b3;
  return hash == 0 ? 1 : hash;
}

class SnapshotReader {
 public:
  SnapshotReader(const Pickle& pickle, std::string name, planner::RecordingWriter& to)
      : pickle_(pickle), name_(std::move(name)), target_(to) {}

  Counts read() {
    const Value root = pickle_.root();
    const auto traces = pickle_.find(root, "device_traces");
    const auto segments = pickle_.find(root, "segments");
    if (!traces || !segments) {
      fail("a snapshot of torch.cuda.memory._dump_snapshot, a dict with segments and device_traces");
    }
    const auto devices = pickle_.elements(*traces);
    std::size_t device = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (pickle_.elements(devices[i]).size() > pickle_.elements(devices[device]).size()) device = i;
    }
    if (devices.empty() || pickle_.elements(devices[device]).empty()) {
      fail("a history of allocations in device_traces (torch.cuda.memory._record_memory_history())");
    }
    std::size_t others = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) others += i != device && !pickle_.elements(devices[i]).empty();
    const auto entries = pickle_.elements(devices[device]);
    time_ = entry_time(entries.front());
    find_earlier(entries, *segments, static_cast<std::int64_t>(device));
    for (const Value entry : entries) add(entry);
    if (others != 0) counts_.note = "it has several devices: only device " + std::to_string(device) + " is read";
    return counts_;
  }

 private:
  struct Block {
    std::uint64_t number = 0;
    bool freed = false;  // and its memory not yet back: free_completed is to come
  };

  [[noreturn]] void fail(const std::string& expected, const std::string& found = "something else") const {
    throw input::InputError(name_ + ": expected " + expected + ", found " + found);
  }

  std::uint64_t number(Value dict, std::string_view key) const {
    const auto value = pickle_.find(dict, key);
    const auto number = value ? pickle_.integer(*value) : std::nullopt;
    if (!number) fail("a whole number as " + std::string(key) + " of each entry");
    return static_cast<std::uint64_t>(*number);
  }
  std::uint64_t size(Value dict, std::string_view key) const {
    const std::uint64_t size = number(dict, key);
    if (size > kLargestBlock) fail("sizes from 0 to 2^62 bytes", std::to_string(static_cast<std::int64_t>(size)));
    return size;
  }
  std::uint64_t number_or(Value dict, std::string_view key, std::uint64_t otherwise) const {
    return pickle_.find(dict, key) ? number(dict, key) : otherwise;
  }
  std::string_view text(Value dict, std::string_view key) const {
    const auto value = pickle_.find(dict, key);
    const auto text = value ? pickle_.text(*value) : std::nullopt;
    return text ? *text : std::string_view();
  }

  // Nanoseconds where memopt has written it.
  std::uint64_t entry_time(Value entry) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    if (pickle_.find(entry, "time_ns")) return std::min(number(entry, "time_ns"), kMost);
    if (!pickle_.find(entry, "time_us")) return time_ + kAssumedTime;
    return std::min(number(entry, "time_us"), kMost / 1000) * 1000;
  }

  // Blocks that are freed in the history, or are there at its end, and were allocated before it: as if just before.
  void find_earlier(std::span<const Value> entries, Value segments, std::int64_t device) {
    std::unordered_map<std::uint64_t, bool> known;  // addresses of which there was a word
    for (const Value entry : entries) {
      const std::string_view action = text(entry, "action");
      if (action != "alloc" && action != "free_requested" && action != "free_completed" && action != "free") continue;
      const auto [place, fresh] = known.try_emplace(number(entry, "addr"), true);
      if (fresh && action != "alloc") allocate(entry, place->first, size(entry, "size"));
    }
    for (const Value segment : pickle_.elements(segments)) {
      const auto its = pickle_.find(segment, "device");
      if (its && pickle_.integer(*its) != device) continue;
      const auto blocks = pickle_.find(segment, "blocks");
      if (!blocks) continue;
      std::uint64_t address = number(segment, "address");
      for (const Value block : pickle_.elements(*blocks)) {
        const std::uint64_t bytes = size(block, "size");
        address = number_or(block, "address", address);
        const bool live = text(block, "state").starts_with("active");
        if (live && known.try_emplace(address, true).second) {
          allocate(block, address, pickle_.find(block, "requested_size") ? size(block, "requested_size") : bytes,
                   number_or(segment, "stream", 0));
        }
        address += bytes;
      }
    }
  }

  void add(Value entry) {
    time_ = std::max(time_, entry_time(entry));
    thread_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(number_or(entry, "thread", 0), kMostThreads));
    const std::string_view action = text(entry, "action");
    if (action == "alloc") {
      const std::uint64_t address = number(entry, "addr");
      // What was there is gone, though the history does not say so.
      if (const auto there = live_.find(address); there != live_.end()) {
        if (!there->second.freed) free(there->second.number, number_or(entry, "stream", 0));
        live_.erase(there);
      }
      allocate(entry, address, size(entry, "size"));
    } else if (action == "free_requested" || action == "free_completed" || action == "free") {
      const auto there = live_.find(number(entry, "addr"));
      if (there == live_.end()) return;
      if (!there->second.freed) free(there->second.number, number_or(entry, "stream", 0));
      there->second.freed = true;
      if (action != "free_requested") live_.erase(there);
    }
    // Segments are what PyTorch's own allocator does with its memory, which a plan replaces.
  }

  void allocate(Value entry, std::uint64_t address, std::uint64_t bytes, std::optional<std::uint64_t> stream = {}) {
    const std::uint64_t stack = stack_of(entry);
    move_to(stack);
    const std::uint64_t block = ++blocks_;
    live_[address] = {block, false};
    target_.put(RecordKind::kMalloc, frame(),
                shm::MallocBody{block, bytes, stack, 0, stream ? *stream : number_or(entry, "stream", 0), address});
    ++counts_.operations;
  }
  void free(std::uint64_t block, std::uint64_t stream) {
    target_.put(RecordKind::kFree, frame(), shm::FreeBody{block, stream});
    ++counts_.operations;
  }

  RecordFrame frame() const { return {.time = time_, .thread = thread_}; }

  // The thread is in this stack from here on.
  void move_to(std::uint64_t stack) {
    std::uint64_t& at = at_[thread_];
    if (at == stack) return;
    at = stack;
    target_.put(RecordKind::kPythonStack, frame(), shm::StackBody{stack, 0});
  }

  // The number of the stack of an entry, which is written when it is first met; 0: it has none.
  std::uint64_t stack_of(Value entry) {
    const auto frames = pickle_.find(entry, "frames");
    if (!frames || pickle_.elements(*frames).empty()) return 0;
    const auto [known, fresh] = stacks_.try_emplace(*frames, 0);
    if (!fresh) return known->second;
    std::vector<std::uint64_t> addresses;
    for (const Value frame : pickle_.elements(*frames)) {
      if (addresses.size() == kMostFrames) break;
      addresses.push_back(address_of(frame));
    }
    const std::uint64_t hash = hash_of(addresses);
    known->second = hash;
    if (written_.try_emplace(hash, true).second) {
      at_[thread_] = hash;
      target_.put(RecordKind::kPythonStack, frame(), shm::StackBody{hash, addresses.size()},
                  std::span<const std::uint64_t>(addresses));
    }
    return hash;
  }

  std::uint64_t address_of(Value frame) {
    const std::string name = std::string(text(frame, "name")) + " (" + std::string(text(frame, "filename")) + ":" +
                             std::to_string(number_or(frame, "line", 0)) + ")";
    const auto [known, fresh] = frames_.try_emplace(name, kFrames + kFrameStep * frames_.size());
    if (fresh) target_.name(RecordKind::kPythonFrame, this->frame(), known->second, name.substr(0, 4096));
    return known->second;
  }

  const Pickle& pickle_;
  std::string name_;
  RecordTarget target_;
  Counts counts_;
  std::uint64_t time_ = 0;
  std::uint32_t thread_ = 0;  // where memopt has written it
  std::uint64_t blocks_ = 0;
  std::unordered_map<std::uint64_t, Block> live_;  // by address
  std::unordered_map<Value, std::uint64_t> stacks_;
  std::unordered_map<std::uint64_t, bool> written_;
  std::unordered_map<std::uint32_t, std::uint64_t> at_;  // by thread: its stack, as written
  std::unordered_map<std::string, std::uint64_t> frames_;
};

}  // namespace

Counts read_snapshot(input::File& file, planner::RecordingWriter& to) {
  const std::string bytes = read_all(file);
  try {
    const Pickle pickle(bytes);
    return SnapshotReader(pickle, file.name(), to).read();
  } catch (const PickleError& error) {
    throw input::InputError(file.name() + ": " + error.what());
  }
}

}  // namespace memopt::exchange
