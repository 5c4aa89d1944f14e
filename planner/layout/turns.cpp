#include "planner/layout/turns.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "planner/layout/strategies.h"

namespace memopt::layout {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kPermanent = 2;  // trees that are never given up
constexpr std::uint64_t kGroup = 4;      // turns, of which one is a permanent tree's

// The sequence of Luby, Sinclair and Zuckerman (1993): 1 1 2 1 1 2 4 ...; `i` counts from 1.
std::uint64_t luby(std::uint64_t i) {
  for (;;) {
    const auto width = static_cast<unsigned>(std::bit_width(i));
    if (i == (std::uint64_t{1} << width) - 1) return std::uint64_t{1} << (width - 1);
    i -= (std::uint64_t{1} << (width - 1)) - 1;
  }
}

}  // namespace

// The search as a sequence of turns, each of a counted number of nodes. Some go on with one of the permanent trees,
// which alone can prove that there is no placement; the others try a strategy of their own for a while, and give it up.
// The first turn that comes to an end decides, by its place in the sequence and not by the clock; so the result is the
// same whatever the number of threads.
class Turns::State {
 public:
  State(const Sections& sections, std::int64_t capacity, std::uint64_t seed, const Pruning& pruning)
      : sections_(sections),
        capacity_(capacity),
        seed_(seed),
        pruning_(pruning),
        shortest_(std::max<std::uint64_t>(512, sections.buffers() * sections.buffers() / 128)) {}

  Verdict go_on(const Limits& limits) {
    cancelled_ = limits.cancelled;
    const auto now = Clock::now();
    deadline_ =
        limits.time > Clock::time_point::max() - now ? Clock::time_point::max() : Clock::time_point(now + limits.time);
    allowed_ += std::min(limits.work, std::numeric_limits<std::uint64_t>::max() - allowed_);
    std::vector<std::thread> others;
    for (unsigned i = 1; i < limits.threads; ++i) {
      try {
        others.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;  // fewer will do
      }
    }
    work();
    for (auto& other : others) other.join();
    return {progress_, offsets_, deciding_ == kNever ? given_ : decided_after_};
  }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  struct Permanent {
    std::unique_ptr<PlacementTree> tree;
    bool taken = false;
    std::uint64_t turns = 0;
  };

  struct Turn {
    std::uint64_t number = 0;
    std::uint64_t nodes = 0;
    std::uint64_t total = 0;  // of nodes, of it and those before
    bool permanent = false;
    std::uint64_t which = 0;  // of the permanent trees, or the strategy
  };

  bool out_of_limits() const {
    if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) return true;
    return deadline_ != Clock::time_point::max() && Clock::now() >= deadline_;
  }

  Turn next_turn() const {
    const std::uint64_t number = next_;
    const std::uint64_t group = number / kGroup;
    if (number % kGroup == kGroup - 1) {
      const std::uint64_t times = std::uint64_t{1} << std::min<std::uint64_t>(group / kPermanent, 4);
      return {number, shortest_ * times, given_ + shortest_ * times, true, group % kPermanent};
    }
    const std::uint64_t strategy = number - group;
    const std::uint64_t nodes = shortest_ * luby(strategy / kStrategies + 1);
    return {number, nodes, given_ + nodes, false, strategy};
  }

  void work() {
    while (const auto turn = begin_turn()) {
      std::unique_ptr<PlacementTree> own;
      PlacementTree* tree = nullptr;
      auto& slot = turn->permanent ? permanent_[turn->which].tree : own;
      if (!slot) {
        slot = make_placement_tree(sections_, capacity_, strategy_of(sections_, seed_, turn->which), pruning_);
      }
      tree = slot.get();
      const Progress progress = tree->run(
          turn->nodes, [&] { return deciding_.load(std::memory_order_relaxed) < turn->number || out_of_limits(); });
      end_turn(*turn, progress, *tree);
    }
  }

  std::optional<Turn> begin_turn() {
    std::unique_lock lock(mutex_);
    const Turn turn = next_turn();
    if (turn.total > allowed_ || deciding_ != kNever || out_of_limits()) return std::nullopt;
    ++next_;
    given_ = turn.total;
    if (turn.permanent) {
      Permanent& permanent = permanent_[turn.which];
      const std::uint64_t order = turn.number / kGroup / kPermanent;
      returned_.wait(lock, [&] { return !permanent.taken && permanent.turns == order; });
      permanent.taken = true;
    }
    return turn;
  }

  void end_turn(const Turn& turn, Progress progress, const PlacementTree& tree) {
    const std::scoped_lock lock(mutex_);
    if (turn.permanent) {
      permanent_[turn.which].taken = false;
      ++permanent_[turn.which].turns;
      returned_.notify_all();
    }
    if (progress == Progress::kUnfinished || deciding_ <= turn.number) return;
    deciding_ = turn.number;
    decided_after_ = turn.total;
    progress_ = progress;
    if (progress == Progress::kSolved) offsets_ = tree.offsets();
  }

  const Sections& sections_;
  const std::int64_t capacity_;
  const std::uint64_t seed_;
  const Pruning pruning_;
  const std::uint64_t shortest_;  // turn, in nodes: enough to get to the bottom of the tree
  const std::atomic<bool>* cancelled_ = nullptr;
  Clock::time_point deadline_;

  std::mutex mutex_;
  std::condition_variable returned_;
  std::uint64_t next_ = 0;   // turn
  std::uint64_t given_ = 0;  // nodes, to turns
  std::uint64_t allowed_ = 0;
  std::uint64_t decided_after_ = 0;
  std::array<Permanent, kPermanent> permanent_;
  std::atomic<std::uint64_t> deciding_ = kNever;  // turn
  Progress progress_ = Progress::kUnfinished;
  std::vector<std::int64_t> offsets_;
};

Turns::Turns(const Sections& sections, std::int64_t capacity, std::uint64_t seed, const Pruning& pruning)
    : state_(std::make_unique<State>(sections, capacity, seed, pruning)) {}

Turns::~Turns() = default;

Verdict Turns::go_on(const Limits& limits) { return state_->go_on(limits); }

}  // namespace memopt::layout
