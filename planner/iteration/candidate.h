// One candidate for an iteration, and the questions that decide about it. See detection.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "planner/iteration/detection.h"
#include "planner/iteration/operation_store.h"

namespace memopt::planner {

class Candidate {
 public:
  // `iteration.lanes` and `.main` are set. `work` counts operations that were looked at.
  Candidate(const OperationStore& store, const Iteration& iteration, std::uint64_t& work);

  // What speaks against it; nothing if it is an iteration.
  std::optional<std::string> objection();

  // As is_transient in detection.h.
  bool transient(std::uint32_t block) const;

 private:
  enum class Cut { kMiddle, kEnd };
  // Operations whose accesses say that the halves are the same, and that they are not: by blocks that stay through
  // both, and by those that come and go.
  struct Votes {
    std::uint32_t staying_for = 0, staying_against = 0;
    std::uint32_t passing_for = 0, passing_against = 0;
    std::uint64_t against_bytes = 0;  // of a block that differs
  };
  // Lane by lane, positions of the cut; lanes without a period are cut where the main lane is.
  bool before(std::uint32_t operation, Cut cut) const;
  bool lives_at(std::uint32_t block, Cut cut) const;
  // The malloc at a position of a lane, if its token is the same as `token`.
  std::uint32_t malloc_at(std::uint32_t lane, std::int64_t index, std::uint64_t token) const;
  std::optional<std::string> access_objection(std::uint32_t most);  // of the last `most` operations of each lane
  std::optional<std::string> balance_objection();
  // What one operation's accesses say, in the order of Votes.
  Votes votes_of(std::span<const Access> earlier, std::span<const Access> later);
  bool same_access(std::uint32_t earlier, std::uint32_t later) const;
  bool stays(std::uint32_t block) const;
  bool reaches_window(std::uint32_t block) const;

  const OperationStore& store_;
  const Iteration& iteration_;
  std::uint64_t& work_;
  std::vector<const LanePeriod*> periods_;  // by lane of the store; nullptr: not planned
  std::uint32_t middle_ = 0;                // operation of the main lane at which its second half begins
};

}  // namespace memopt::planner
