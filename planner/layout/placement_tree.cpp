#include "planner/layout/placement_tree.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "planner/layout/refutations.h"

namespace memopt::layout {
namespace {

// Offset is the narrowest type that takes twice the capacity: the search reads little else than arrays of it.
template <typename Offset>
class Tree final : public PlacementTree {
 public:
  Tree(const Sections& sections, std::int64_t capacity, Strategy strategy, const Pruning& pruning)
      : sections_(sections),
        pruning_(pruning),
        capacity_(static_cast<Offset>(capacity)),
        strategy_(std::move(strategy)),
        rank_(strategy_.rank),
        bytes_(sections.bytes.begin(), sections.bytes.end()),
        least_(sections.buffers(), 0),
        place_(sections.buffers(), 0),
        hole_(sections.buffers(), 0),
        rest_(static_cast<std::size_t>(sections.count), 0),
        floor_(static_cast<std::size_t>(sections.count), 0),
        lowest_(static_cast<std::size_t>(sections.count), -1),
        crossing_(static_cast<std::size_t>(sections.count) + 1, 0),
        members_(sections.members),
        live_(static_cast<std::size_t>(sections.count), 0),
        row_(sections.buffers(), 0),
        refutations_(sections.buffers()) {
    std::size_t rows = 0;
    for (std::int32_t b = 0; b < buffers(); ++b) {
      row_[b] = rows - static_cast<std::size_t>(sections_.hull[b].begin);
      rows += static_cast<std::size_t>(sections_.hull[b].end - sections_.hull[b].begin);
    }
    position_.resize(rows);
    for (std::int32_t b = 0; b < buffers(); ++b) {
      for (const auto& piece : sections_.pieces_of(b)) {
        for (std::int32_t s = piece.begin; s < piece.end; ++s) {
          rest_[s] += bytes_[b];
          position_[row_[b] + s] = live_[s]++;
        }
      }
      for (std::int32_t s = sections_.hull[b].begin + 1; s < sections_.hull[b].end; ++s) ++crossing_[s];
      least_[b] = lift(b, 0);
    }
  }

  std::uint64_t nodes() const override { return nodes_; }

  std::vector<std::int64_t> offsets() const override { return {place_.begin(), place_.end()}; }

 protected:
  Progress go_on(std::uint64_t nodes) override {
    const std::uint64_t end = nodes_ + nodes;
    if (!begun_) {
      begun_ = true;
      if (!begin()) return Progress::kRefuted;
    }
    bool failed = false;
    while (nodes_ < end) {
      if (failed) {
        if (path_.empty()) return Progress::kRefuted;
        failed = !postpone();
      } else {
        if (agenda_ == kNone) return Progress::kSolved;
        failed = !descend();
      }
    }
    // A failure has to be dealt with before the next descent.
    while (failed) {
      if (path_.empty()) return Progress::kRefuted;
      failed = !postpone();
    }
    return agenda_ == kNone ? Progress::kSolved : Progress::kUnfinished;
  }

 private:
  static constexpr Offset kPlaced = std::numeric_limits<Offset>::max() / 2;  // least offset of what has a place
  static constexpr std::int32_t kNone = -1;
  static constexpr std::uint64_t kWorthRemembering = 16;  // nodes; less is found out again as quickly

  // Sections [begin, end) that no buffer without a place connects with others; searched for on its own.
  struct Part {
    std::int32_t begin;
    std::int32_t end;
    std::int32_t blame;  // the node to go back to when there is no placement
    std::int32_t next;   // of the agenda
  };

  // One part, of which one buffer after the other is placed, and postponed if that leads nowhere.
  struct Node {
    std::int32_t part;    // into parts_
    std::int32_t buffer;  // that is being tried
    std::size_t entry;    // of the trail, when the node was made
    std::size_t trial;    // of the trail, before the buffer was placed
    std::size_t parts;    // how many there were
    std::uint64_t made;   // after so many nodes
  };

  // What was overwritten.
  struct Change {
    enum class Kind : std::uint8_t { kLeast, kHole, kPlace, kFloor };
    Kind kind;
    std::int32_t index;
    Offset value;
    std::int32_t lowest;  // kFloor
  };

  // Counts what is done for large problems in nodes, so that limits hold there, too.
  void look_at(std::int32_t elements) {
    looked_at_ += elements;
    constexpr std::int32_t kPerNode = 1024;
    if (looked_at_ < kPerNode) return;
    nodes_ += static_cast<std::uint64_t>(looked_at_ / kPerNode);
    looked_at_ %= kPerNode;
  }

  std::int32_t buffers() const { return static_cast<std::int32_t>(bytes_.size()); }

  // The first offset from `offset` on that is aligned and free of fixed buffers.
  Offset lift(std::int32_t buffer, Offset offset) const {
    if (sections_.aligned) [[unlikely]]
      offset = aligned(buffer, offset);
    if (sections_.blocked) [[unlikely]]
      offset = past_blocks(buffer, offset);
    return offset;
  }

  Offset aligned(std::int32_t buffer, Offset offset) const {
    const std::int64_t alignment = sections_.alignment[buffer];
    const std::int64_t up = (offset + alignment - 1) / alignment * alignment;
    return static_cast<Offset>(std::min<std::int64_t>(up, kPlaced - 1));
  }

  Offset past_blocks(std::int32_t buffer, Offset offset) const {
    for (const auto& block : sections_.blocks_in_the_way_of(buffer)) {
      if (block.end <= offset) continue;
      if (block.begin >= offset + bytes_[buffer]) break;
      offset = aligned(buffer, static_cast<Offset>(block.end));
    }
    return offset;
  }

  // Calls use(k) for each buffer without a place that overlaps j in time, and some others; some twice, perhaps j
  // itself.
  template <typename Use>
  void for_neighbours(std::int32_t j, const Use& use) const {
    for (const auto& piece : sections_.pieces_of(j)) {
      for (const std::int32_t k : live_members_of(piece.begin)) use(k);
      const std::int32_t end = sections_.piece_begins[piece.end];
      for (std::int32_t p = sections_.piece_begins[piece.begin + 1]; p < end; ++p) use(sections_.piece_owner[p]);
    }
  }

  // Buffers without a place, in no order.
  std::span<const std::int32_t> live_members_of(std::int32_t s) const {
    return std::span(members_).subspan(sections_.member_start[s], live_[s]);
  }

  // Sets that take back their removals in reverse order (Briggs and Torczon, 1993): what was removed lies behind what
  // is live.
  void remove(std::int32_t j, std::int32_t s) {
    std::int32_t* const members = members_.data() + sections_.member_start[s];
    const std::int32_t last = --live_[s];
    const std::int32_t here = std::exchange(position_[row_[j] + s], last);
    const std::int32_t other = members[last];
    if (other == j) return;
    members[here] = other;
    members[last] = j;
    position_[row_[other] + s] = here;
  }

  bool begin() {
    if (sections_.fixed_top > capacity_) return false;
    for (std::int32_t s = 0; s < sections_.count; ++s) {
      if (!repaint_one(s, 0)) return false;
    }
    for (std::int32_t b = 0; b < buffers(); ++b) {
      if (least_[b] + bytes_[b] > capacity_) return false;
    }
    trail_.clear();
    split({0, sections_.count}, {0, sections_.count}, kNone);
    return true;
  }

  // Puts what is left of a part on the agenda after a buffer of it was placed; the part was connected before, so that
  // it can only have come apart where the buffer lives.
  void split(Sections::Range part, Sections::Range hull, std::int32_t blame) {
    if (!pruning_.decomposition) {
      const auto rest = std::span(rest_).subspan(part.begin, part.end - part.begin);
      if (std::ranges::any_of(rest, [](Offset bytes) { return bytes != 0; })) add_part(part.begin, part.end, blame);
      return;
    }
    std::int32_t from = part.begin;
    bool any = hull.begin > part.begin;
    for (std::int32_t s = hull.begin; s < hull.end; ++s) {
      if (s > from && crossing_[s] == 0) {
        if (any) add_part(from, s, blame);
        from = s;
        any = false;
      }
      any |= rest_[s] != 0;
    }
    if (any || hull.end < part.end) add_part(from, part.end, blame);
  }

  void add_part(std::int32_t begin, std::int32_t end, std::int32_t blame) {
    parts_.push_back({begin, end, blame, agenda_});
    agenda_ = static_cast<std::int32_t>(parts_.size()) - 1;
  }

  bool refuted_before(const Part& part) {
    look_at(sections_.begins[part.end] - sections_.begins[part.begin]);
    return refutations_.covers(least_, kPlaced, sections_.begins[part.begin], sections_.begins[part.end]);
  }

  // A node for the next part of the agenda, and its first buffer placed.
  bool descend() {
    if (pruning_.memory && refuted_before(parts_[agenda_])) {
      path_.resize(static_cast<std::size_t>(parts_[agenda_].blame + 1));
      return false;
    }
    const std::int32_t part = std::exchange(agenda_, parts_[agenda_].next);
    path_.push_back({part, kNone, trail_.size(), trail_.size(), parts_.size(), nodes_});
    return place_next();
  }

  // In the last node: chooses a buffer and places it.
  bool place_next() {
    Node& node = path_.back();
    const Part part = parts_[node.part];
    node.trial = trail_.size();
    node.buffer = choose(part);
    agenda_ = part.next;
    parts_.resize(node.parts);
    if (!place(node.buffer)) return false;
    split({part.begin, part.end}, sections_.hull[node.buffer], static_cast<std::int32_t>(path_.size()) - 1);
    return true;
  }

  // After a failure below the last node: its buffer does not lie where it was tried. Goes back to the node that is to
  // blame once there is nowhere left.
  bool postpone() {
    Node& node = path_.back();
    undo(node.trial);
    agenda_ = kNone;
    if (raise(node.buffer)) return place_next();
    undo(node.entry);
    if (pruning_.memory && nodes_ - node.made >= kWorthRemembering) {
      const Part& part = parts_[node.part];
      refutations_.add(least_, kPlaced, sections_.begins[part.begin], sections_.begins[part.end]);
    }
    const std::int32_t blame = parts_[node.part].blame;
    path_.resize(static_cast<std::size_t>(blame + 1));
    return false;
  }

  std::int32_t choose(const Part& part) {
    look_at(sections_.begins[part.end] - sections_.begins[part.begin]);
    if (strategy_.conflicts_first && conflict_ >= part.begin && conflict_ < part.end && rest_[conflict_] != 0)
      return lowest_in(conflict_);
    switch (strategy_.choice) {
      case Choice::kLowest:
        return lowest(part);
      case Choice::kTightest:
        return tightest(part);
      case Choice::kScarcest:
        return scarcest(part);
    }
    return kNone;
  }

  Offset lowest_offset(const Part& part) const {
    Offset least = kPlaced;
    for (std::int32_t b = sections_.begins[part.begin]; b < sections_.begins[part.end]; ++b) {
      least = std::min(least, least_[b]);
    }
    return least;
  }

  std::int32_t lowest(const Part& part) const {
    const Offset offset = lowest_offset(part);
    std::int32_t best = kNone;
    for (std::int32_t b = sections_.begins[part.begin]; b < sections_.begins[part.end]; ++b) {
      if (least_[b] == offset && (best == kNone || rank_[b] < rank_[best])) best = b;
    }
    return best;
  }

  std::int32_t tightest(const Part& part) {
    const Offset offset = lowest_offset(part);
    std::int32_t best = kNone;
    Offset best_slack = kPlaced;
    for (std::int32_t b = sections_.begins[part.begin]; b < sections_.begins[part.end]; ++b) {
      if (least_[b] != offset) continue;
      look_at(sections_.hull[b].end - sections_.hull[b].begin);
      Offset slack = kPlaced;
      for (const auto& piece : sections_.pieces_of(b)) {
        for (std::int32_t s = piece.begin; s < piece.end; ++s) slack = std::min(slack, slack_of(s));
      }
      if (best != kNone && (slack > best_slack || (slack == best_slack && rank_[b] > rank_[best]))) continue;
      best = b;
      best_slack = slack;
    }
    return best;
  }

  std::int32_t scarcest(const Part& part) {
    std::int32_t section = kNone;
    std::int32_t fewest = 0;
    Offset least_slack = 0;
    for (std::int32_t s = part.begin; s < part.end; ++s) {
      if (rest_[s] == 0) continue;
      const Offset slack = slack_of(s);
      const Offset highest = floor_[s] + std::max<Offset>(slack, 0);
      look_at(live_[s]);
      std::int32_t candidates = 0;
      for (const std::int32_t b : live_members_of(s)) candidates += least_[b] <= highest ? 1 : 0;
      if (section != kNone && (candidates > fewest || (candidates == fewest && slack >= least_slack))) continue;
      section = s;
      fewest = candidates;
      least_slack = slack;
    }
    return lowest_in(section);
  }

  // The lowest of a section, or what could still come below it, which has to be decided first.
  std::int32_t lowest_in(std::int32_t section) const {
    std::int32_t best = kNone;
    for (const std::int32_t b : live_members_of(section)) {
      if (least_[b] == floor_[section] && (best == kNone || rank_[b] < rank_[best])) best = b;
    }
    for (;;) {
      std::int32_t below = kNone;
      for_neighbours(best, [&](std::int32_t k) {
        if (least_[k] + bytes_[k] > least_[best]) return;
        if (below == kNone || least_[k] < least_[below] || (least_[k] == least_[below] && rank_[k] < rank_[below])) {
          below = k;
        }
      });
      if (below == kNone) return best;
      best = below;
    }
  }

  Offset slack_of(std::int32_t s) const {
    return rest_[s] == 0 ? kPlaced
                         : static_cast<Offset>(capacity_ - floor_[s] - rest_[s] - blocked_above(s, floor_[s]));
  }

  bool place(std::int32_t j) {
    ++nodes_;
    if (hole_[j] != 0) return false;  // it would fit into the hole
    const Offset offset = least_[j];
    const Offset top = offset + bytes_[j];
    trail_.push_back({Change::Kind::kPlace, j, offset, 0});
    place_[j] = offset;
    least_[j] = kPlaced;
    for (const auto& piece : sections_.pieces_of(j)) {
      for (std::int32_t s = piece.begin; s < piece.end; ++s) {
        rest_[s] -= bytes_[j];
        remove(j, s);
      }
    }
    const auto hull = sections_.hull[j];
    for (std::int32_t s = hull.begin + 1; s < hull.end; ++s) --crossing_[s];
    look_at(2 * (hull.end - hull.begin));
    std::int32_t begin = hull.begin;
    std::int32_t end = hull.end;
    bool fits = true;
    for_neighbours(j, [&](std::int32_t k) {
      if (least_[k] == kPlaced) return;
      if (hole_[k] > offset) {
        trail_.push_back({Change::Kind::kHole, k, hole_[k], 0});
        hole_[k] = 0;
      }
      if (least_[k] >= top) return;
      trail_.push_back({Change::Kind::kLeast, k, least_[k], 0});
      least_[k] = lift(k, top);
      fits &= least_[k] + bytes_[k] <= capacity_;
      begin = std::min(begin, sections_.hull[k].begin);
      end = std::max(end, sections_.hull[k].end);
    });
    if (!fits) return false;
    look_at(end - begin);
    for (const auto& piece : sections_.pieces_of(j)) {
      for (std::int32_t s = piece.begin; s < piece.end; ++s) {
        if (!repaint_one(s, std::max(floor_[s], top))) return false;
      }
    }
    return repaint(begin, end);
  }

  bool raise(std::int32_t j) {
    ++nodes_;
    const Offset old = least_[j];
    const Offset top = old + bytes_[j];
    Offset least = kPlaced;
    Offset filler = kPlaced;
    if (pruning_.canonical) {
      for_neighbours(j, [&](std::int32_t k) {
        if (k == j) return;
        least = std::min<Offset>(least, least_[k] + bytes_[k]);
        filler = std::min(filler, least_[k]);
      });
      if (sections_.blocked) {
        for (const auto& block : sections_.blocks_in_the_way_of(j)) {
          if (block.end > old) least = std::min(least, static_cast<Offset>(block.end));
        }
      }
    } else {
      least = old + 1;
      for_neighbours(j, [&](std::int32_t k) {
        if (k != j) filler = std::min(filler, least_[k]);
      });
    }
    if (least >= kPlaced) return false;
    if (pruning_.dominance) {
      if (filler >= (hole_[j] != 0 ? hole_[j] : top)) return false;
      if (hole_[j] == 0) {
        trail_.push_back({Change::Kind::kHole, j, 0, 0});
        hole_[j] = top;
      }
    }
    trail_.push_back({Change::Kind::kLeast, j, old, 0});
    least_[j] = lift(j, least);
    if (least_[j] + bytes_[j] > capacity_) return false;
    return repaint(sections_.hull[j].begin, sections_.hull[j].end);
  }

  bool repaint(std::int32_t begin, std::int32_t end) {
    for (std::int32_t s = begin; s < end; ++s) {
      if (!repaint_one(s, floor_[s])) return false;
    }
    return true;
  }

  // Finds the lowest buffer of a section anew if the one that was lowest is no more. None is below `known`.
  bool repaint_one(std::int32_t s, Offset known) {
    if (rest_[s] == 0) return true;
    const std::int32_t last = lowest_[s];
    if (last != kNone && least_[last] == floor_[s]) return true;  // and there is no more to come than before
    Offset floor = kPlaced;
    std::int32_t lowest = kNone;
    for (const std::int32_t b : live_members_of(s)) {
      if (least_[b] >= floor) continue;
      floor = least_[b];
      lowest = b;
      if (floor == known) break;
    }
    trail_.push_back({Change::Kind::kFloor, s, floor_[s], lowest_[s]});
    floor_[s] = floor;
    lowest_[s] = lowest;
    if (!pruning_.sections || floor + rest_[s] + blocked_above(s, floor) <= capacity_) return true;
    conflict_ = s;
    return false;
  }

  // Bytes of fixed buffers above the floor of a section.
  Offset blocked_above(std::int32_t s, Offset floor) const {
    if (!sections_.blocked) [[likely]]
      return 0;
    std::int64_t sum = 0;
    for (const auto& block : sections_.blocks_of(s)) {
      sum += std::max<std::int64_t>(0, block.end - std::max<std::int64_t>(block.begin, floor));
    }
    return static_cast<Offset>(sum);
  }

  void undo(std::size_t mark) {
    while (trail_.size() > mark) {
      const Change& change = trail_.back();
      const std::int32_t i = change.index;
      switch (change.kind) {
        case Change::Kind::kLeast:
          least_[i] = change.value;
          break;
        case Change::Kind::kHole:
          hole_[i] = change.value;
          break;
        case Change::Kind::kFloor:
          floor_[i] = change.value;
          lowest_[i] = change.lowest;
          break;
        case Change::Kind::kPlace: {
          least_[i] = change.value;
          for (const auto& piece : sections_.pieces_of(i)) {
            for (std::int32_t s = piece.begin; s < piece.end; ++s) {
              rest_[s] += bytes_[i];
              ++live_[s];
            }
          }
          for (std::int32_t s = sections_.hull[i].begin + 1; s < sections_.hull[i].end; ++s) ++crossing_[s];
          break;
        }
      }
      trail_.pop_back();
    }
  }

  const Sections& sections_;
  const Pruning pruning_;
  const Offset capacity_;
  const Strategy strategy_;
  const std::vector<std::int32_t>& rank_;
  std::vector<Offset> bytes_;
  std::vector<Offset> least_;           // offset of each buffer, or kPlaced
  std::vector<Offset> place_;           // of those that have one
  std::vector<Offset> hole_;            // top of the hole that a postponed buffer left and nothing has filled yet, or 0
  std::vector<Offset> rest_;            // sum of bytes without a place, by section
  std::vector<Offset> floor_;           // least offset of any of these
  std::vector<std::int32_t> lowest_;    // one that has it
  std::vector<std::int32_t> crossing_;  // hulls without a place that connect section s - 1 with s
  std::int32_t conflict_ = kNone;       // the section that was last found too full
  std::vector<std::int32_t> members_;   // of each section, those without a place first
  std::vector<std::int32_t> live_;      // how many these are
  std::vector<std::int32_t> position_;  // among the members of a section, by buffer and section
  std::vector<std::size_t> row_;        // of a buffer in position_, less its first section
  Refutations<Offset> refutations_;
  std::vector<Change> trail_;
  std::vector<Node> path_;
  std::vector<Part> parts_;
  std::int32_t agenda_ = kNone;
  std::uint64_t nodes_ = 0;
  std::int32_t looked_at_ = 0;  // since the last of these
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<PlacementTree> make_placement_tree(const Sections& sections, std::int64_t capacity, Strategy strategy,
                                                   const Pruning& pruning) {
  // Twice the largest sum must fit: a least offset plus a section's rest is compared with the capacity.
  std::int64_t sum = capacity;
  for (const std::int64_t bytes : sections.bytes) sum += bytes;
  if (sum < std::numeric_limits<std::int32_t>::max() / 4) {
    return std::make_unique<Tree<std::int32_t>>(sections, capacity, std::move(strategy), pruning);
  }
  return std::make_unique<Tree<std::int64_t>>(sections, capacity, std::move(strategy), pruning);
}

}  // namespace memopt::layout
