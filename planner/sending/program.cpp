#include "planner/program.h"

#include <utility>

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/plan_bytes.h"
#include "planner/sending/swap_planner.h"

namespace memopt::planner {

namespace {

IterationPlanner::Options options(bool waited_for) {
  IterationPlanner::Options options;
  options.improve = !waited_for;
  options.planning.limits.work = waited_for ? kPatientWork : kPromptWork;
  options.planning.unroll = true;
  return options;
}

}  // namespace

struct Program::Impl {
  explicit Impl(bool waited) : waited_for(waited), planner(options(waited)) {}

  std::optional<std::vector<std::byte>> laid_out() {
    layout_due = false;
    std::vector<std::byte> bytes = plan_bytes(plan_parts(*planner.plan(), planner.persistent(), sent + 1));
    if (bytes.empty()) {
      planner.refused();
      return std::nullopt;
    }
    planner.renumber(++sent);
    layout_sent = true;
    swaps_sent = false;
    return bytes;
  }

  // A plan with swaps where there is one, else the layout that is due. Who follows swaps has those of the next
  // iteration in the place of its layout, or keeps to what it has where only that is within the limit.
  std::optional<std::vector<std::byte>> next() {
    if (swaps) {
      if (std::optional<std::vector<std::byte>> bytes = swaps->take(sent + 1)) {
        planner.renumber(++sent);
        planner.settle();
        layout_due = false;
        swaps_sent = true;
        return bytes;
      }
      if (swaps_sent && (swaps->is_searching() || !swaps->fits_unswapped())) return std::nullopt;
    }
    return layout_due ? laid_out() : std::nullopt;
  }

  bool waited_for;
  IterationPlanner planner;
  std::unique_ptr<SwapPlanner> swaps;  // where the agent carries swaps out
  std::uint64_t sent = 0;              // plans; the last one has this number
  bool gap = false;                    // before the next record
  bool layout_due = false;             // of the last iteration: found and not sent
  bool layout_sent = false;            // of the last iteration
  bool swaps_sent = false;             // with the last plan
};

Program::Program(bool waited_for) : impl_(std::make_unique<Impl>(waited_for)) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

void Program::swap_on(const shm::SwapTermsBody& terms) {
  impl_->swaps = std::make_unique<SwapPlanner>(terms, impl_->waited_for);
}

void Program::add(std::uint32_t lane, const shm::RecordView& record) {
  if (impl_->swaps) impl_->swaps->add(lane, record, std::exchange(impl_->gap, false));
  impl_->planner.add(lane, record);
}

void Program::add(std::uint32_t lane, const shm::RecordRun& run) {
  if (impl_->swaps) {
    for (const shm::RecordView& record : run) impl_->swaps->add(lane, record, std::exchange(impl_->gap, false));
  }
  impl_->planner.add(lane, run);
}

void Program::add_gap() {
  impl_->gap = true;
  impl_->planner.add_gap();
}

void Program::refused() {
  if (!std::exchange(impl_->swaps_sent, false)) return impl_->planner.refused();
  impl_->swaps->refused();
  impl_->layout_due = !impl_->layout_sent;
}

std::string Program::note() const {
  std::string note = impl_->planner.note();
  if (impl_->swaps && !impl_->swaps->note().empty()) note.append("; ").append(impl_->swaps->note());
  return note;
}

std::optional<std::vector<std::byte>> Program::plan() {
  if (impl_->planner.check()) {
    impl_->layout_due = true;
    impl_->layout_sent = false;
  }
  if (impl_->swaps) impl_->swaps->check(impl_->planner);
  return impl_->next();
}

std::optional<std::vector<std::byte>> Program::improved() {
  if (auto bytes = impl_->next(); bytes || impl_->layout_due) return bytes;
  return impl_->planner.improved() ? impl_->laid_out() : std::nullopt;
}

}  // namespace memopt::planner
