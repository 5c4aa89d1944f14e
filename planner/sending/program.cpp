#include "planner/program.h"

#include <chrono>
#include <utility>

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/plan_bytes.h"
#include "planner/sending/framework_memory.h"
#include "planner/sending/swap_planner.h"
#include "shm/wait.h"

namespace memopt::planner {

namespace {

IterationPlanner::Options options(bool waited_for) {
  IterationPlanner::Options options;
  options.improve = !waited_for;
  options.planning.limits.work = waited_for ? kPatientWork : kPromptWork;
  options.planning.unroll = true;
  options.planning.unsteady = Unsteady::kNotPlaced;
  return options;
}

}  // namespace

struct Program::Impl {
  explicit Impl(bool waited) : waited_for(waited), planner(options(waited)) {}

  std::optional<std::vector<std::byte>> laid_out() {
    layout_due = false;
    std::vector<std::byte> bytes = plan_bytes(plan_parts(*planner.plan(), planner.persistent()));
    if (bytes.empty()) {
      planner.cannot_be_sent();
      return std::nullopt;
    }
    swaps_next = false;
    return bytes;
  }

  // A plan with swaps where there is one, else the layout that is due. A program that follows swaps has those of the
  // next iteration in the place of its layout, or keeps to what it has where only that is within the limit.
  std::optional<std::vector<std::byte>> next() {
    if (!planner.plan()) return std::nullopt;
    if (swaps) {
      if (swaps->is_blind() && swaps_last) {
        layout_due = true;
        swaps_last = false;
      }
      const std::uint64_t unswapped = planner.plan()->footprint();
      if (std::optional<std::vector<std::byte>> bytes = swaps->take(unswapped)) {
        planner.settle();
        layout_due = false;
        swaps_next = true;
        return bytes;
      }
      if (swaps->holds_back(unswapped)) return std::nullopt;
      if (swaps_last && (swaps->may_follow() || !swaps->is_within_limit(unswapped))) return std::nullopt;
    }
    return layout_due ? laid_out() : std::nullopt;
  }

  void add_to_swaps(std::uint32_t lane, const shm::RecordView& record) {
    if (record.kind() == shm::RecordKind::kState &&
        static_cast<shm::StateChange>(record.header.aux) == shm::StateChange::kNewContext) {
      swaps = std::make_unique<SwapPlanner>(terms, waited_for, wait, OperationStore());
      swaps_next = swaps_last = false;
      first = layout = 0;
    }
    swaps->add(lane, record, std::exchange(gap, false));
  }

  bool waited_for;
  std::chrono::seconds wait{shm::kUsualWait};
  IterationPlanner planner;
  shm::SwapTermsBody terms{};
  std::uint64_t chunk_bytes = 0;  // that are kept where plans don't swap; 0: none
  std::optional<FrameworkMemory> framework;
  std::unique_ptr<SwapPlanner> swaps;  // where the agent carries swaps out
  bool gap = false;                    // before the next record
  bool layout_due = false;             // of the last iteration: found and not sent
  bool swaps_next = false;             // with the plan that is to be sent
  bool swaps_last = false;             // with the last that was
  // Numbers of plans, as the sender gave them; 0: none.
  std::uint64_t last = 0;     // that was sent
  std::uint64_t first = 0;    // that was sent of the last iteration
  std::uint64_t layout = 0;   // that was its layout
  std::uint64_t adopted = 0;  // the last one that was
};

Program::Program(bool waited_for) : impl_(std::make_unique<Impl>(waited_for)) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

void Program::swap_on(const shm::SwapTermsBody& terms) {
  Impl& impl = *impl_;
  impl.terms = terms;
  const bool may_swap = (terms.flags & shm::kNoSwaps) == 0;
  // Places of blocks that swap know nothing of chunks that are kept.
  impl.planner.keep_chunks_of(may_swap ? 0 : impl.chunk_bytes);
  // What swaps are planned for has a place.
  impl.planner.place(may_swap ? Unsteady::kPlaced : Unsteady::kNotPlaced);
  if (!may_swap) {
    impl.swaps.reset();
  } else if (impl.swaps) {
    impl.swaps->change(terms);
  } else {
    impl.swaps = std::make_unique<SwapPlanner>(terms, impl.waited_for, impl.wait, impl.planner.store());
  }
  impl.layout_due = impl.swaps_next = impl.swaps_last = false;
  // What becomes of plans that were sent for other terms is nothing to these.
  impl.first = impl.layout = impl.last = 0;
  impl.planner.plan_again();
}

void Program::model_framework() { impl_->framework.emplace(); }

void Program::keep_chunks_of(std::uint64_t bytes) {
  impl_->chunk_bytes = bytes;
  if (!impl_->swaps) impl_->planner.keep_chunks_of(bytes);
}

void Program::wait_at_most(std::chrono::seconds time) { impl_->wait = time; }

std::uint64_t Program::framework_reserved() const { return impl_->framework ? impl_->framework->reserved() : 0; }

void Program::add(std::uint32_t lane, const shm::RecordView& record) {
  if (impl_->framework) impl_->framework->add(record, impl_->planner.persistent());
  if (impl_->swaps) impl_->add_to_swaps(lane, record);
  impl_->planner.add(lane, record);
}

void Program::add(std::uint32_t lane, const shm::RecordRun& run) {
  if (impl_->framework) {
    for (const shm::RecordView& record : run) impl_->framework->add(record, impl_->planner.persistent());
  }
  if (impl_->swaps) {
    for (const shm::RecordView& record : run) impl_->add_to_swaps(lane, record);
  }
  impl_->planner.add(lane, run);
}

void Program::add_gap() {
  impl_->gap = true;
  if (impl_->framework) impl_->framework->add_gap(impl_->planner.persistent());
  impl_->planner.add_gap();
}

std::optional<std::vector<std::byte>> Program::plan() {
  const bool found = impl_->planner.check();
  const bool another = impl_->swaps && impl_->swaps->check(impl_->planner, impl_->swaps_last);
  // The layout of the one before may do for it, but its swaps don't.
  if (found || (another && impl_->swaps_last)) {
    impl_->layout_due = true;
    impl_->first = impl_->layout = 0;
  } else if (another) {
    impl_->swaps->sent(impl_->first);  // it has a plan of it
  }
  return impl_->next();
}

std::optional<std::vector<std::byte>> Program::improved() {
  if (auto bytes = impl_->next(); bytes || impl_->layout_due) return bytes;
  return impl_->planner.improved() ? impl_->laid_out() : std::nullopt;
}

void Program::sent(std::uint64_t generation) {
  impl_->last = generation;
  impl_->swaps_last = impl_->swaps_next;
  if (impl_->first == 0) impl_->first = generation;
  if (!impl_->swaps_last) impl_->layout = generation;
  impl_->planner.sent(generation);
  if (impl_->swaps) impl_->swaps->sent(impl_->first);
}

void Program::adopted(std::uint64_t generation) {
  impl_->adopted = generation;
  if (generation == impl_->last) impl_->planner.adopted();
}

void Program::refused(std::uint64_t generation, std::uint64_t excess) {
  if (generation != impl_->last) return;  // there is a later one, which has an answer of its own
  if (!impl_->swaps_last) {
    if (generation != impl_->adopted) return impl_->planner.refused(excess);
    impl_->layout_due = false;
    return impl_->planner.not_kept();
  }
  impl_->swaps->refused(excess);
  if (impl_->first != 0 && impl_->adopted >= impl_->first && impl_->adopted < generation) {
    // It has another one of this iteration.
    impl_->last = impl_->adopted;
    impl_->swaps_last = impl_->adopted != impl_->layout;
    impl_->planner.sent(impl_->adopted);
  } else {
    impl_->layout_due = true;
    impl_->swaps_last = false;
  }
}

std::string Program::note() const {
  std::string note = impl_->planner.note();
  if (impl_->swaps && !impl_->swaps->note().empty()) note.append("; ").append(impl_->swaps->note());
  return note;
}

}  // namespace memopt::planner
