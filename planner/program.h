// What the planner knows about one running program: its operations so far, and what follows from them. The daemon feeds
// it; tests and tools feed it from recordings and traces in the same way.
//
// Not thread-safe. Deterministic: the same records give the same plans at the same points, but for better ones of the
// same iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shm/channel.h"
#include "shm/record.h"

namespace memopt::planner {

class Program {
 public:
  // `waited_for`: the program stands still until it has an answer, so that the first plan is the best that can be had
  // and the same in each run. Else the first comes soon, and better ones may follow (improved()), at times that differ.
  explicit Program(bool waited_for = true);
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;

  // The agent carries swaps out: they are planned too, and sent behind the layout or with it. Before the first record;
  // `terms` are as shm::SwapTermsBody says.
  void swap_on(const shm::SwapTermsBody& terms);

  // The next record in order of sequence, of lane `lane` (thread number). Hostile contents (unknown blocks, freed
  // twice) are tolerated: what is planned from them is checked by the agent again.
  void add(std::uint32_t lane, const shm::RecordView& record);
  void add(std::uint32_t lane, const shm::RecordRun& run);  // several

  // Records are missing here: what came before is never planned from. Persistent blocks seen before stay known.
  void add_gap();

  // Looks for an iteration and plans it; to be called at check points (shm::next_check_point). A whole plan
  // (shm/plan.h) if there is a new one, for the agent to adopt.
  std::optional<std::vector<std::byte>> plan();

  // A better plan for the iteration that was planned last, if one has been found since; to be asked now and then.
  std::optional<std::vector<std::byte>> improved();

  // The last plan was sent, under this number; each is larger than the one before. Without a number it was not sent.
  void sent(std::uint64_t generation);
  // The agent adopted, or refused, the plan of that number.
  void adopted(std::uint64_t generation);
  void refused(std::uint64_t generation);

  // One sentence for people: what is awaited, or why there is no plan. Changes rarely; empty at the beginning.
  std::string note() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace memopt::planner
