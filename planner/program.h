// What the planner knows about one running program: its operations so far, and what follows from them. The daemon feeds
// it; tests and tools feed it from recordings and traces in the same way.
//
// Not thread-safe. Deterministic: the same records give the same plans at the same points, but for better ones of the
// same iteration.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shm/channel.h"
#include "shm/plan.h"
#include "shm/record.h"

namespace memopt::planner {

// Plans have no number until they are sent: only their sender knows which ones an agent has had, of other planners too.
// The checksum does not cover it. `plan`: at least a header.
inline void set_generation(std::span<std::byte> plan, std::uint64_t generation) {
  std::memcpy(plan.data() + offsetof(shm::PlanHeader, generation), &generation, sizeof(generation));
}

class Program {
 public:
  // `waited_for`: the program stands still until it has an answer, so that the first plan is the best that can be had
  // and the same in each run. Else the first comes soon, and better ones may follow (improved()), at times that differ.
  explicit Program(bool waited_for = true);
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;

  // The agent carries swaps out: they are planned too, and sent behind the layout or with it; or no more (kNoSwaps).
  // `terms` are valid, and as shm::SwapTermsBody says. At any time: the iteration is planned again for them when it is
  // next seen.
  void swap_on(const shm::SwapTermsBody& terms);

  // How long a program that waits does so at most, for one answer: shm::kUsualWait where nothing is said. Before the
  // first record.
  void wait_at_most(std::chrono::seconds time);

  // A framework whose caching allocator is off is in the program: framework_reserved() is wanted. Before the first
  // record.
  void model_framework();

  // The agent maps device memory in chunks of so many bytes, a power of two, and keeps some for plans
  // (shm::PlannedChunk). Before the first record; while plans may swap, none is kept.
  void keep_chunks_of(std::uint64_t bytes);

  // The next record in order of sequence, of lane `lane` (thread number). Hostile contents (unknown blocks, freed
  // twice) are tolerated: what is planned from them is checked by the agent again.
  void add(std::uint32_t lane, const shm::RecordView& record);
  void add(std::uint32_t lane, const shm::RecordRun& run);  // several

  // Records are missing here: what came before is never planned from. Persistent blocks seen before stay known.
  void add_gap();

  // Looks for an iteration and plans it; to be called at check points (shm::next_check_point). A whole plan
  // (shm/plan.h) but for its number, if there is a new one, for the agent to adopt.
  std::optional<std::vector<std::byte>> plan();

  // A better plan for the iteration that was planned last, if one has been found since; to be asked now and then.
  std::optional<std::vector<std::byte>> improved();

  // The last plan was sent, under the number that its sender gave it; each is larger than the one before. Without this
  // call it was not sent.
  void sent(std::uint64_t generation);
  // The agent adopted, or refused, the plan of that number.
  void adopted(std::uint64_t generation);
  // `excess`: by so many bytes its places came to more than what would have been taken, 0 if that was not the reason.
  // A better layout of the same iteration is still offered once one is found that would do.
  // One that was adopted before: the program did not keep to it, and iterations as long are planned only once they have
  // gone on for long.
  void refused(std::uint64_t generation, std::uint64_t excess = 0);

  // Bytes that the framework's caching allocator would have reserved by the last record (planner/frameworks); 0: not
  // known, as the beginning was not seen.
  std::uint64_t framework_reserved() const;

  // One sentence for people: what is awaited, or why there is no plan. Changes rarely; empty at the beginning.
  std::string note() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace memopt::planner
