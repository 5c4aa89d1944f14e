#include "planner/iteration/plan_json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memopt::planner {
namespace {

// Copies of the machine on which the published traces were recorded (Zhang et al. 2019, GTX 1080 Ti). A plan without
// swaps copies nothing.
constexpr const char* kMachine =
    R"({"out_bytes_per_ns": 13.227513227513228, "in_bytes_per_ns": 12.150668286755772, "out_latency_ns": 47200, "in_latency_ns": 9700})";

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

// Operations as they stand in a file, with times from the boundary on.
class Operations {
 public:
  Operations(std::uint64_t begin, std::ostream& out) : begin_(begin), out_(out) {}

  // What follows is of this rank. It happens then, or when what was before it happens.
  void at(std::uint64_t nanoseconds, std::uint64_t rank) {
    const std::uint64_t since = nanoseconds > begin_ ? nanoseconds - begin_ : 0;
    if (since > now_) end_launch(since);
    touched_.clear();
    rank_ = rank;
    now_ = std::max(now_, since);
  }
  void write(char kind, const Instances::Instance& instance) {
    line(kind, static_cast<std::int64_t>(instance.id), kind == 'm' ? std::nullopt : std::optional(instance.age));
  }
  void access(char kind, const Instances::Instance& instance) {
    write(kind, instance);
    touched_.emplace_back(kind, instance);
  }
  void nothing() { line('x', -1, std::nullopt); }

  std::uint64_t end(std::uint64_t period) {
    at(begin_ + period, rank_);
    return now_;
  }
  // Of each line.
  std::vector<std::uint64_t>& ranks() { return ranks_; }

 private:
  // The time until the next operation is the last line's. All blocks of a launch are on the device until it is over, so
  // the others are named again at its end.
  void end_launch(std::uint64_t since) {
    now_ = since;
    for (std::size_t i = 0; i + 1 < touched_.size(); ++i) write(touched_[i].first, touched_[i].second);
  }
  void line(char kind, std::int64_t id, std::optional<std::int64_t> age) {
    out_ << (any_ ? ",\n" : "\n") << "[\"" << kind << "\"," << id << ',' << now_;
    if (age) out_ << ',' << *age;
    out_ << ']';
    any_ = true;
    ranks_.push_back(rank_);
  }

  std::uint64_t begin_;
  std::ostream& out_;
  std::uint64_t now_ = 0, rank_ = 0;
  std::vector<std::uint64_t> ranks_;
  bool any_ = false;
  std::vector<std::pair<char, Instances::Instance>> touched_;
};

}  // namespace

std::vector<std::uint64_t> write_plan_json(const OperationStore& store, const IterationPlan& plan,
                                           const std::string& name,
                                           const std::function<std::uint64_t(std::uint64_t)>& nanoseconds,
                                           std::ostream& out) {
  const IterationLifetimes& lifetimes = plan.lifetimes;
  const auto operations = store.operations();
  const Instances instances(store, plan);

  // The operations before the boundary happened before those behind it: they are shown one period later.
  const LanePeriod& main = plan.iteration.lanes[plan.iteration.main];
  const auto& main_operations = store.lanes()[main.lane].operations;
  const auto time = [&](std::uint32_t operation) { return nanoseconds(operations[operation].ticks); };
  const auto [first, last] = std::minmax_element(lifetimes.order.begin(), lifetimes.order.end());
  const std::uint64_t begin = time(main_operations[main.begin()]), middle = time(main_operations[main.middle()]);
  std::uint64_t period = middle > begin ? middle - begin : 0;
  period = std::max(period, time(*last) > time(*first) ? time(*last) - time(*first) : 0);

  out << "{\"format\": \"memopt-plan-1\",\n\"name\": " << quoted(name) << ",\n\"ops\": [";
  Operations lines(time(lifetimes.order.front()), out);
  for (std::uint64_t k = 0; k < lifetimes.order.size(); ++k) {
    const std::uint32_t index = lifetimes.order[k];
    const Operation& op = operations[index];
    lines.at(time(index) + (k < lifetimes.unwrapped ? 0 : period), k);
    bool any = false;
    if (op.block != kNone) {
      if (const auto instance = instances.find(index, op.block)) {
        lines.write(op.kind == OperationKind::kMalloc ? 'm' : 'f', *instance);
        any = true;
      }
    }
    for (const Access& access : store.accesses(index)) {
      const auto instance = instances.find(index, access.block);
      if (!instance) continue;
      lines.access(access.reads != 0 && access.writes == 0 ? 'r' : 'w', *instance);
      any = true;
    }
    if (!any) lines.nothing();
  }
  const std::uint64_t length = lines.end(period);
  out << "\n],\n\"period\": " << length << ",\n\"blocks\": [";
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
  return std::move(lines.ranks());
}

}  // namespace memopt::planner
