#include "planner/iteration/plan_json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>
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

}  // namespace

// Operations as they stand in a file, with times from the boundary on.
class PlanJson::Lines {
 public:
  Lines(std::uint64_t begin, std::ostream& out) : begin_(begin), out_(out) {}

  // What follows is of this rank. It happens then, or when what was before it happens.
  void at(std::uint64_t nanoseconds, std::uint64_t rank) {
    const std::uint64_t since = nanoseconds > begin_ ? nanoseconds - begin_ : 0;
    if (since > now_) end_launch(since);
    touched_.clear();
    rank_ = rank;
    now_ = std::max(now_, since);
  }
  void write(const Item& item) {
    line(item);
    if (item.access) touched_.push_back(item);
  }
  void nothing() { line({'x', false, -1, std::nullopt}); }

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
    for (std::size_t i = 0; i + 1 < touched_.size(); ++i) line(touched_[i]);
  }
  void line(const Item& item) {
    out_ << (any_ ? ",\n" : "\n") << "[\"" << item.kind << "\"," << item.block << ',' << now_;
    if (item.age) out_ << ',' << *item.age;
    out_ << ']';
    any_ = true;
    ranks_.push_back(rank_);
  }

  std::uint64_t begin_;
  std::ostream& out_;
  std::uint64_t now_ = 0, rank_ = 0;
  std::vector<std::uint64_t> ranks_;
  bool any_ = false;
  std::vector<Item> touched_;
};

PlanJson::PlanJson(const OperationStore& store, const IterationPlan& plan, std::string name) : name_(std::move(name)) {
  const IterationLifetimes& lifetimes = plan.lifetimes;
  const auto operations = store.operations();
  const Instances instances(store, plan);
  unwrapped_ = lifetimes.unwrapped;
  const LanePeriod& main = plan.iteration.lanes[plan.iteration.main];
  const auto& main_operations = store.lanes()[main.lane].operations;
  const auto ticks = [&](std::uint32_t operation) { return operations[operation].ticks; };
  const auto [first, last] = std::minmax_element(lifetimes.order.begin(), lifetimes.order.end());
  begin_ticks_ = ticks(main_operations[main.begin()]);
  middle_ticks_ = ticks(main_operations[main.middle()]);
  first_ticks_ = ticks(*first);
  last_ticks_ = ticks(*last);

  const auto add = [&](char kind, bool access, const Instances::Instance& instance) {
    items_.push_back({kind, access, static_cast<std::int64_t>(instance.id),
                      kind == 'm' ? std::nullopt : std::optional(instance.age)});
  };
  for (const std::uint32_t index : lifetimes.order) {
    const Operation& op = operations[index];
    const std::size_t before = items_.size();
    if (op.block != kNone) {
      if (const auto instance = instances.find(index, op.block)) {
        add(op.kind == OperationKind::kMalloc ? 'm' : 'f', false, *instance);
      }
    }
    for (const Access& access : store.accesses(index)) {
      const auto instance = instances.find(index, access.block);
      if (instance) add(access.reads != 0 && access.writes == 0 ? 'r' : 'w', true, *instance);
    }
    steps_.push_back({op.ticks, static_cast<std::uint32_t>(items_.size() - before)});
  }

  std::ostringstream out;
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
  blocks_ = std::move(out).str();
}

template <typename EachStep>
std::vector<std::uint64_t> PlanJson::write_with(std::uint64_t begin, std::ostream& out, EachStep&& each_step) const {
  out << "{\"format\": \"memopt-plan-1\",\n\"name\": " << quoted(name_) << ",\n\"ops\": [";
  Lines lines(begin, out);
  std::size_t item = 0;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    each_step(lines, k);
    const std::size_t end = item + steps_[k].items;
    if (item == end) lines.nothing();
    for (; item < end; ++item) lines.write(items_[item]);
  }
  const std::uint64_t length = lines.end(each_step(lines, steps_.size()));
  out << "\n],\n\"period\": " << length << ",\n\"blocks\": [" << blocks_ << "\n],\n\"machine\": " << kMachine
      << ",\n\"limit\": null, \"chunk\": 2097152, \"align\": 512, \"layout\": true, \"lazy_malloc\": false,\n"
         "\"swaps\": []}\n";
  return std::move(lines.ranks());
}

std::vector<std::uint64_t> PlanJson::write(const std::function<std::uint64_t(std::uint64_t)>& nanoseconds,
                                           std::ostream& out) const {
  // The operations before the boundary happened before those behind it: they are shown one period later.
  const std::uint64_t begin = nanoseconds(begin_ticks_), middle = nanoseconds(middle_ticks_);
  const std::uint64_t first = nanoseconds(first_ticks_), last = nanoseconds(last_ticks_);
  std::uint64_t period = middle > begin ? middle - begin : 0;
  period = std::max(period, last > first ? last - first : 0);
  return write_with(nanoseconds(steps_.front().ticks), out, [&](Lines& lines, std::size_t k) {
    if (k == steps_.size()) return period;
    lines.at(nanoseconds(steps_[k].ticks) + (k < unwrapped_ ? 0 : period), k);
    return std::uint64_t{0};
  });
}

std::vector<std::uint64_t> PlanJson::write(const IterationTimes& times, std::ostream& out) const {
  std::uint64_t now = 0;
  const auto idle = [&](Lines& lines, std::size_t k, std::uint64_t length) {
    if (length == 0) return;
    lines.at(now, k == 0 ? 0 : k - 1);
    lines.nothing();
    now += length;
  };
  return write_with(0, out, [&](Lines& lines, std::size_t k) {
    if (k == steps_.size()) {
      idle(lines, k, times.idle_at_end);
      return now;
    }
    idle(lines, k, times.operations[k].idle);
    lines.at(now, k);
    now += times.operations[k].busy;
    return now;
  });
}

}  // namespace memopt::planner
