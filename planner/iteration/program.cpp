#include "planner/program.h"

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/plan_bytes.h"

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
  explicit Impl(bool waited_for) : planner(options(waited_for)) {}

  std::optional<std::vector<std::byte>> bytes() {
    std::vector<std::byte> bytes = plan_bytes(plan_parts(*planner.plan(), planner.persistent(), planner.generation()));
    if (!bytes.empty()) return bytes;
    planner.refused();
    return std::nullopt;
  }

  IterationPlanner planner;
};

Program::Program(bool waited_for) : impl_(std::make_unique<Impl>(waited_for)) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

void Program::add(std::uint32_t lane, const shm::RecordView& record) { impl_->planner.add(lane, record); }
void Program::add(std::uint32_t lane, const shm::RecordRun& run) { impl_->planner.add(lane, run); }
void Program::add_gap() { impl_->planner.add_gap(); }
void Program::refused() { impl_->planner.refused(); }
const std::string& Program::note() const { return impl_->planner.note(); }

std::optional<std::vector<std::byte>> Program::plan() { return impl_->planner.check() ? impl_->bytes() : std::nullopt; }

std::optional<std::vector<std::byte>> Program::improved() {
  return impl_->planner.improved() ? impl_->bytes() : std::nullopt;
}

}  // namespace memopt::planner
