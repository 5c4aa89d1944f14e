#include "planner/iteration/candidate.h"

#include <algorithm>

namespace memopt::planner {
namespace {

// Iterations that a block may live through and still be followed.
constexpr int kMaxAge = 64;
// Periods behind each other after which accesses are not asked any more.
constexpr std::uint32_t kBeyondDoubt = 64;

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

Candidate::Candidate(const OperationStore& store, const Iteration& iteration, std::uint64_t& work)
    : store_(store), iteration_(iteration), work_(work), periods_(store.lanes().size(), nullptr) {
  for (const LanePeriod& lane : iteration.lanes) periods_[lane.lane] = &lane;
  const LanePeriod& main = iteration.lanes[iteration.main];
  middle_ = store.lanes()[main.lane].operations[main.middle()];
}

bool Candidate::before(std::uint32_t operation, Cut cut) const {
  const Operation& op = store_.operations()[operation];
  if (const LanePeriod* lane = periods_[op.lane]) {
    return op.lane_index < (cut == Cut::kMiddle ? lane->middle() : lane->end);
  }
  return cut == Cut::kEnd || operation < middle_;
}

bool Candidate::lives_at(std::uint32_t block, Cut cut) const {
  const Block& b = store_.blocks()[block];
  if (b.birth != kNone && !before(b.birth, cut)) return false;
  return b.death == kNone || !before(b.death, cut);
}

std::uint32_t Candidate::malloc_at(std::uint32_t lane, std::int64_t index, std::uint64_t token) const {
  const auto& operations = store_.lanes()[lane].operations;
  if (index < 0 || index >= static_cast<std::int64_t>(operations.size())) return kNone;
  const Operation& op = store_.operations()[operations[static_cast<std::size_t>(index)]];
  return op.kind == OperationKind::kMalloc && op.token == token ? op.block : kNone;
}

// A block that was born before both halves belongs to a malloc of the iteration if that malloc has been issued at every
// period from then on.
bool Candidate::reaches_window(std::uint32_t block) const {
  const Block& b = store_.blocks()[block];
  const LanePeriod& lane = *periods_[b.lane];
  std::int64_t index = store_.operations()[b.birth].lane_index;
  for (int age = 0; age < kMaxAge; ++age) {
    if (index >= static_cast<std::int64_t>(lane.middle())) return true;
    index += lane.period;
    if (malloc_at(b.lane, index, b.token) == kNone) return false;
  }
  return false;
}

bool Candidate::transient(std::uint32_t block) const {
  const Block& b = store_.blocks()[block];
  return b.known && b.birth != kNone && periods_[b.lane] != nullptr && reaches_window(block);
}

bool Candidate::same_access(std::uint32_t earlier, std::uint32_t later) const {
  const Block& first = store_.blocks()[earlier];
  const Block& second = store_.blocks()[later];
  if (earlier == later) {
    if (second.death != kNone && before(second.death, Cut::kEnd)) return false;
    if (second.birth == kNone || periods_[second.lane] == nullptr) return true;
    return store_.operations()[second.birth].lane_index < periods_[second.lane]->begin();
  }
  if (first.token != second.token || first.lane != second.lane || !first.known || !second.known) return false;
  if (periods_[first.lane] == nullptr) return true;  // of a lane without a period: nothing is known about its age
  if (first.birth == kNone || second.birth == kNone) return false;
  const std::uint64_t index = store_.operations()[first.birth].lane_index;
  if (index + periods_[first.lane]->period != store_.operations()[second.birth].lane_index) return false;
  return reaches_window(later);
}

// Lives through both halves, and is no instance of a malloc that they repeat.
bool Candidate::stays(std::uint32_t block) const {
  const Block& b = store_.blocks()[block];
  if (b.death != kNone && before(b.death, Cut::kEnd)) return false;
  if (b.birth == kNone) return true;
  const LanePeriod* const lane = periods_[b.lane];
  if (lane == nullptr) return before(b.birth, Cut::kMiddle);
  return store_.operations()[b.birth].lane_index < lane->begin() && !reaches_window(block);
}

Candidate::Votes Candidate::votes_of(std::span<const Access> earlier, std::span<const Access> later) {
  struct Tally {
    std::uint32_t same = 0, other = 0;
  } staying, passing;
  Votes votes;
  const auto is_found = [&](std::span<const Access> these, std::span<const Access> those, std::size_t k) {
    ++work_;
    const auto same = [&](const Access& that) {
      ++work_;
      return these.data() == later.data() ? same_access(that.block, these[k].block)
                                          : same_access(these[k].block, that.block);
    };
    return (k < those.size() && same(those[k])) || std::any_of(those.begin(), those.end(), same);
  };
  const auto count = [&](std::span<const Access> these, std::span<const Access> those) {
    // Of two neighbours that are named together one is meant, mostly the first. The other is another one each time.
    bool before = false;
    for (std::size_t k = 0; k < these.size(); ++k) {
      const bool found = is_found(these, those, k);
      const bool perhaps = these[k].ambiguous;
      const bool excused =
          !found && perhaps &&
          (before || (k + 1 < these.size() && these[k + 1].ambiguous && is_found(these, those, k + 1)));
      before = found && perhaps;
      if (excused) continue;
      Tally& tally = stays(these[k].block) ? staying : passing;
      ++(found ? tally.same : tally.other);
      if (!found && votes.against_bytes == 0) votes.against_bytes = store_.blocks()[these[k].block].bytes;
    }
  };
  count(later, earlier);
  count(earlier, later);
  votes.staying_for = staying.same > 0 && staying.other == 0;
  votes.staying_against = staying.other > 0 && staying.other >= staying.same;
  votes.passing_for = passing.same > 0 && passing.other == 0;
  votes.passing_against = passing.other > 0 && passing.other >= passing.same;
  return votes;
}

std::optional<std::string> Candidate::access_objection(std::uint32_t most) {
  Votes sum;
  for (const LanePeriod& lane : iteration_.lanes) {
    const auto& operations = store_.lanes()[lane.lane].operations;
    // From the end: what differs between layers differs soon.
    for (std::uint32_t i = lane.end; i-- > lane.middle() && lane.end - i <= most;) {
      ++work_;
      const std::span<const Access> later = store_.accesses(operations[i]);
      const std::span<const Access> earlier = store_.accesses(operations[i - lane.period]);
      if (later.empty() && earlier.empty()) continue;
      const Votes votes = votes_of(earlier, later);
      sum.staying_for += votes.staying_for;
      sum.staying_against += votes.staying_against;
      sum.passing_for += votes.passing_for;
      sum.passing_against += votes.passing_against;
      if ((votes.staying_against || votes.passing_against) && sum.against_bytes == 0) {
        sum.against_bytes = votes.against_bytes;
      }
    }
  }
  if (sum.staying_against > sum.staying_for || sum.passing_against > sum.passing_for) {
    return "other blocks are used each time (" + bytes_text(sum.against_bytes) + ")";
  }
  return std::nullopt;
}

std::optional<std::string> Candidate::balance_objection() {
  bool allocates = false;
  for (const LanePeriod& lane : iteration_.lanes) {
    const auto& operations = store_.lanes()[lane.lane].operations;
    for (std::uint32_t i = lane.middle(); i < lane.end; ++i) {
      ++work_;
      const Operation& op = store_.operations()[operations[i]];
      if (op.block == kNone) continue;
      const Block& block = store_.blocks()[op.block];
      if (!block.placeable) continue;
      if (op.kind == OperationKind::kMalloc) {
        allocates = true;
        std::uint32_t instance = op.block;
        std::int64_t index = i;
        for (int age = 0; instance != kNone && lives_at(instance, Cut::kEnd); ++age) {
          ++work_;
          index -= lane.period;
          const std::uint32_t older = malloc_at(lane.lane, index, op.token);
          if (older == kNone || !lives_at(older, Cut::kMiddle) || age == kMaxAge) {
            return "a block of " + bytes_text(block.bytes) + " is allocated in it and not freed one iteration later";
          }
          instance = older;
        }
        // The instance that is dead at the end must have a predecessor that was dead in the middle.
        if (instance != kNone) {
          const std::uint32_t older = malloc_at(lane.lane, index - lane.period, op.token);
          if (older != kNone && lives_at(older, Cut::kMiddle)) {
            return "a block of " + bytes_text(block.bytes) + " lived longer the time before";
          }
        }
        continue;
      }
      // A free of what was born before this half: its successor must live at the end.
      if (!block.known || (block.birth != kNone && !before(block.birth, Cut::kMiddle))) continue;
      if (block.birth != kNone && periods_[block.lane] == nullptr) continue;
      std::uint32_t successor = kNone;
      if (block.birth != kNone && reaches_window(op.block)) {
        const std::int64_t born = store_.operations()[block.birth].lane_index;
        successor = malloc_at(block.lane, born + periods_[block.lane]->period, block.token);
      }
      if (successor == kNone || !lives_at(successor, Cut::kEnd)) {
        return "a block of " + bytes_text(block.bytes) + " that was there before is freed in it";
      }
    }
  }
  if (!allocates) return "nothing is allocated in it";
  return std::nullopt;
}

std::optional<std::string> Candidate::objection() {
  if (auto why = balance_objection()) return why;
  // A loop that goes on for so long is worth a plan, whatever it names.
  const std::uint32_t period = iteration_.lanes[iteration_.main].period;
  if (iteration_.repeated >= std::uint64_t{period} * kBeyondDoubt) return std::nullopt;
  return access_objection(kNone);
}

}  // namespace memopt::planner
