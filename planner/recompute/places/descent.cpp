#include "planner/recompute/places/descent.h"

#include <algorithm>
#include <utility>

namespace memopt::recompute {
namespace {

using Clock = std::chrono::steady_clock;

// Of the time: each plan behind the first, and what is not worth another one.
constexpr double kNext = 0.08, kLeast = 0.03;
constexpr double kGoesOn = 0.2;            // for a load that was found to be the right one
constexpr std::uint64_t kMostTimes = 8;    // what was too much, for the next load, where no plan has had places yet
constexpr std::chrono::seconds kGrace{2};  // more than the time, so that there is a plan
constexpr std::uint64_t kPrecision = 512;  // of the limit: loads that are closer than that are the same

class Descent {
 public:
  Descent(const swap::Problem& problem, const Graph& graph, std::uint64_t limit, const PlanByLoad& plan,
          const DescentLimits& limits)
      : problem_(problem),
        graph_(graph),
        limit_(limit),
        plan_(plan),
        limits_(limits),
        precision_(std::max<std::uint64_t>(1, limit / kPrecision)),
        first_(std::min(limit, limits.load.value_or(limit))),
        load_(first_) {}

  std::optional<Combined> run() {
    double part = limits_.first;
    for (std::uint64_t k = 0; k < limits_.plans; ++k) {
      attempt(part);
      if (is_over() || !find_next_load(part)) break;
    }
    return std::move(best_);
  }

 private:
  enum class Result : std::uint8_t { kFits, kAbove, kNoPlan };

  void attempt(double part) {
    auto by_load = plan_(load_, std::max(kLeast, part));
    if (!by_load) {
      none_ = std::max(none_, load_);
      last_ = Result::kNoPlan;
      return;
    }
    LaidOut laid_out = lay_out(problem_, graph_, *by_load, limit_, limits_.layouts);
    const auto worth = [](const Combined& of) { return std::pair(of.added_ns(), *of.footprint); };
    if (laid_out.plan && (!best_ || worth(*laid_out.plan) < worth(*best_))) best_ = std::move(laid_out.plan);
    // What has to wait for its places might not with less load.
    if (!laid_out.as_fast) {
      fails_ = load_ = std::min(load_, by_load->load);
      excess_ = std::max(precision_, laid_out.footprint > limit_ ? laid_out.footprint - limit_ : 0);
      last_ = Result::kAbove;
      return;
    }
    fits_ = load_;
    last_ = Result::kFits;
  }

  // False: there is none that is worth a plan.
  bool find_next_load(double& part) {
    part = std::min(kNext, left() / 2);
    if (fits_ == 0) return step_down(part);
    const std::uint64_t above = std::min(limit_, fails_);
    if (above > fits_ + precision_) {
      load_ = fits_ + (above - fits_) / 2;
      return true;
    }
    if (!limits_.goes_on) return false;
    // Another plan for the right load; where that has just had no places, for a little less.
    const bool less = last_ == Result::kAbove && load_ <= fits_ && load_ > none_ + excess_;
    if (!less) part = std::min(kGoesOn, left() - kLeast);
    load_ = less ? load_ - excess_ : fits_;
    return true;
  }

  // As long as no plan has had places.
  bool step_down(double& part) {
    if (none_ >= first_ || (fails_ <= limit_ && fails_ <= none_ + precision_)) {
      // With more time there may be one where there was none.
      if (!limits_.goes_on || !is_timed() || is_patient_) return false;
      is_patient_ = true;
      part = left() - kLeast;
      load_ = std::exchange(none_, 0);
      return true;
    }
    const std::uint64_t less = excess_ * times_;
    times_ = std::min(kMostTimes, 2 * times_);
    load_ = fails_ > less && fails_ - less > none_ ? fails_ - less : none_ + (fails_ - none_) / 2;
    return true;
  }

  bool is_over() const {
    return (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) ||
           (best_ && best_->added_ns() == 0) || (left() < kLeast && (best_ || is_hopeless()));
  }
  // Also where there is no plan yet.
  bool is_hopeless() const { return is_timed() && Clock::now() - begin_ >= limits_.time + kGrace; }
  bool is_timed() const { return limits_.time != std::chrono::nanoseconds::max(); }
  // Of the time, 0 to 1.
  double left() const {
    if (!is_timed()) return 1;
    return 1 - std::chrono::duration<double>(Clock::now() - begin_) / std::chrono::duration<double>(limits_.time);
  }

  const swap::Problem& problem_;
  const Graph& graph_;
  const std::uint64_t limit_;
  const PlanByLoad& plan_;
  const DescentLimits& limits_;
  const std::uint64_t precision_;
  const Clock::time_point begin_ = Clock::now();
  const std::uint64_t first_;  // load that is tried
  std::uint64_t load_;
  Result last_ = Result::kNoPlan;
  // Loads: of the last plan with places within the limit, of the last one without, and the highest that had no plan.
  std::uint64_t fits_ = 0, fails_ = ~std::uint64_t{0}, none_ = 0;
  std::uint64_t excess_ = 0;  // of the last layout that was above the limit
  std::uint64_t times_ = 1;   // that, for the next load
  bool is_patient_ = false;
  std::optional<Combined> best_;
};

}  // namespace

std::optional<Combined> descend(const swap::Problem& problem, const Graph& graph, std::uint64_t limit,
                                const PlanByLoad& plan, const DescentLimits& limits) {
  return Descent(problem, graph, limit, plan, limits).run();
}

}  // namespace memopt::recompute
