#include "planner/program.h"

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/plan_bytes.h"

namespace memopt::planner {

namespace {

IterationPlanner::Options options() {
  IterationPlanner::Options options;
  options.planning.unroll = true;
  return options;
}

}  // namespace

struct Program::Impl {
  IterationPlanner planner{options()};
};

Program::Program() : impl_(std::make_unique<Impl>()) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

void Program::add(std::uint32_t lane, const shm::RecordView& record) { impl_->planner.add(lane, record); }
void Program::add_gap() { impl_->planner.add_gap(); }
void Program::refused() { impl_->planner.refused(); }
const std::string& Program::note() const { return impl_->planner.note(); }

std::optional<std::vector<std::byte>> Program::plan() {
  IterationPlanner& planner = impl_->planner;
  if (!planner.check()) return std::nullopt;
  std::vector<std::byte> bytes = plan_bytes(planner.store(), *planner.plan(), planner.generation());
  if (!bytes.empty()) return bytes;
  planner.refused();
  return std::nullopt;
}

}  // namespace memopt::planner
