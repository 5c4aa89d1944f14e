#include "planner/iteration/plan_json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

namespace memopt::planner {
namespace {

// Copies of the machine on which the published traces were recorded (Zhang et al. 2019, GTX 1080 Ti). A plan without
// swaps copies nothing.
constexpr const char* kMachine =
    R"({"out_bytes_per_ns": 13.227513227513228, "in_bytes_per_ns": 12.150668286755771, "out_latency_ns": 47200, "in_latency_ns": 9700})";

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

// Which block of the file an instance is, and how many iterations ago it was born.
class Instances {
 public:
  Instances(const OperationStore& store, const IterationPlan& plan) : store_(store), plan_(plan) {
    const IterationLifetimes& lifetimes = plan.lifetimes;
    cuts_.assign(store.lanes().size(), std::numeric_limits<std::uint32_t>::max());
    for (const LanePeriod& lane : plan.iteration.lanes) cuts_[lane.lane] = lane.end;
    for (std::uint64_t k = 0; k < lifetimes.unwrapped; ++k) {
      const Operation& op = store.operations()[lifetimes.order[k]];
      cuts_[op.lane] = std::min(cuts_[op.lane], op.lane_index);
    }
    for (const LaneMallocs& lane : lifetimes.lanes) {
      for (const std::uint32_t operation : lane.operations) ids_.emplace(operation, ids_.size());
    }
    for (const std::uint32_t block : lifetimes.persistent) persistent_.emplace(block, ids_.size() + persistent_.size());
  }

  struct Instance {
    std::size_t id;
    bool persistent;
    std::int64_t age;
  };
  std::optional<Instance> find(std::uint32_t operation, std::uint32_t block) const {
    if (const auto found = persistent_.find(block); found != persistent_.end()) return Instance{found->second, true, 0};
    const Block& b = store_.blocks()[block];
    if (b.birth == kNone) return std::nullopt;
    const LanePeriod* lane = plan_.iteration.find(b.lane);
    if (lane == nullptr) return std::nullopt;
    const std::int64_t p = lane->period;
    const std::int64_t born = store_.operations()[b.birth].lane_index;
    const std::int64_t from_middle = born - lane->middle();
    const auto phase = static_cast<std::uint32_t>((from_middle % p + p) % p);
    const auto found = ids_.find(store_.lanes()[b.lane].operations[lane->middle() + phase]);
    if (found == ids_.end()) return std::nullopt;
    const std::int64_t from_cut = born - cuts_[b.lane];
    const std::int64_t frame = from_cut >= 0 ? from_cut / p : -((-from_cut + p - 1) / p);
    const Operation& op = store_.operations()[operation];
    return Instance{found->second, false, (op.lane_index >= cuts_[op.lane] ? 0 : -1) - frame};
  }

 private:
  const OperationStore& store_;
  const IterationPlan& plan_;
  std::vector<std::uint32_t> cuts_;                     // where the boundary lies in the last repeat, by lane
  std::unordered_map<std::uint32_t, std::size_t> ids_;  // of the iteration's mallocs
  std::unordered_map<std::uint32_t, std::size_t> persistent_;
};

}  // namespace

void write_plan_json(const OperationStore& store, const IterationPlan& plan, const std::string& name,
                     std::ostream& out) {
  const IterationLifetimes& lifetimes = plan.lifetimes;
  const auto operations = store.operations();
  const Instances instances(store, plan);

  // The operations before the boundary happened before those behind it: they are shown one period later.
  const LanePeriod& main = plan.iteration.lanes[plan.iteration.main];
  const auto& main_operations = store.lanes()[main.lane].operations;
  const auto ticks = [&](std::uint32_t operation) { return operations[operation].ticks; };
  const auto [first, last] = std::minmax_element(lifetimes.order.begin(), lifetimes.order.end());
  const std::uint64_t begin = ticks(main_operations[main.begin()]), middle = ticks(main_operations[main.middle()]);
  std::uint64_t period = middle > begin ? middle - begin : 0;
  period = std::max(period, ticks(*last) > ticks(*first) ? ticks(*last) - ticks(*first) : 0);

  std::uint64_t now = 0;
  bool comma = false;
  out << "{\"format\": \"memopt-plan-1\",\n\"name\": " << quoted(name) << ",\n\"ops\": [";
  const auto write = [&](char kind, std::int64_t id, std::int64_t age, std::uint64_t stream) {
    out << (comma ? ",\n" : "\n") << "[\"" << kind << "\"," << id << ',' << now;
    if (age != 0 || (kind != 'x' && kind != 'm')) out << ',' << age;
    if (stream != 0) out << ',' << stream;
    out << ']';
    comma = true;
  };
  for (std::uint64_t k = 0; k < lifetimes.order.size(); ++k) {
    const std::uint32_t index = lifetimes.order[k];
    const Operation& op = operations[index];
    const std::uint64_t at = op.ticks + (k < lifetimes.unwrapped ? 0 : period);
    const std::uint64_t base = ticks(lifetimes.order.front());
    now = std::max(now, at > base ? at - base : 0);
    bool any = false;
    if (op.block != kNone) {
      if (const auto instance = instances.find(index, op.block)) {
        const bool born = op.kind == OperationKind::kMalloc;
        write(born ? 'm' : 'f', static_cast<std::int64_t>(instance->id), born ? 0 : instance->age, 0);
        any = true;
      }
    }
    for (const Access& access : store.accesses(index)) {
      const auto instance = instances.find(index, access.block);
      if (!instance) continue;
      write(access.reads != 0 && access.writes == 0 ? 'r' : 'w', static_cast<std::int64_t>(instance->id), instance->age,
            0);
      any = true;
    }
    if (!any) write('x', -1, 0, 0);
  }
  out << "\n],\n\"period\": " << std::max(period, now) << ",\n\"blocks\": [";
  std::size_t id = 0;
  const auto begin_block = [&](std::uint64_t bytes) {
    out << (id == 0 ? "\n" : ",\n") << "{\"id\": " << id << ", \"size\": " << bytes;
    ++id;
  };
  for (std::size_t lane = 0; lane < lifetimes.lanes.size(); ++lane) {
    for (std::size_t i = 0; i < lifetimes.lanes[lane].operations.size(); ++i) {
      const Operation& op = operations[lifetimes.lanes[lane].operations[i]];
      begin_block(store.blocks()[op.block].bytes);
      std::vector<std::uint64_t> offsets = plan.offsets(lane, i);
      if (std::all_of(offsets.begin(), offsets.end(), [&](std::uint64_t offset) { return offset == offsets[0]; })) {
        out << ", \"offset\": " << offsets[0];
      } else {
        out << ", \"offset\": [";
        for (std::size_t turn = 0; turn < offsets.size(); ++turn) out << (turn == 0 ? "" : ", ") << offsets[turn];
        out << ']';
      }
      out << ", \"name\": \"malloc at record " << op.sequence << "\"}";
    }
  }
  std::uint64_t offset = plan.outcome.solution.height;
  for (const std::uint32_t index : lifetimes.persistent) {
    const Block& block = store.blocks()[index];
    begin_block(block.bytes);
    out << ", \"persistent\": true, \"offset\": " << offset << ", \"name\": \"block " << block.number << "\"}";
    offset += place_bytes(block.bytes);
  }
  out << "\n],\n\"machine\": " << kMachine
      << ",\n\"limit\": null, \"chunk\": 2097152, \"align\": 512, \"layout\": true, \"lazy_malloc\": false,\n"
         "\"swaps\": []}\n";
}

}  // namespace memopt::planner
