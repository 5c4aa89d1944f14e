// Internal to the room: what is decided at a node of a placement tree, and what follows from it for each section of
// time. Everything that a decision changes can be taken back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "planner/layout/branch_and_bound.h"
#include "planner/layout/sections.h"

namespace memopt::layout {

// Offset is the narrowest type that takes twice the capacity: the search reads little else than arrays of it.
template <typename Offset>
class PlacementState {
 public:
  static constexpr Offset kPlaced = std::numeric_limits<Offset>::max() / 2;  // least offset of what has a place
  static constexpr std::int32_t kNone = -1;

  // `sections` must outlive it.
  PlacementState(const Sections& sections, std::int64_t capacity, const Pruning& pruning)
      : sections_(sections),
        pruning_(pruning),
        capacity_(static_cast<Offset>(capacity)),
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
        row_(sections.buffers(), 0) {
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

  // Of all buffers, kPlaced for those that have a place.
  const std::vector<Offset>& least() const { return least_; }
  Offset least(std::int32_t buffer) const { return least_[buffer]; }
  Offset bytes(std::int32_t buffer) const { return bytes_[buffer]; }
  std::vector<std::int64_t> offsets() const { return {place_.begin(), place_.end()}; }

  // Of a section: bytes without a place; the least offset of any of these; hulls that connect it with the one before.
  Offset rest(std::int32_t section) const { return rest_[section]; }
  Offset floor(std::int32_t section) const { return floor_[section]; }
  std::int32_t crossing(std::int32_t section) const { return crossing_[section]; }
  // Bytes that are left over in it at best, kPlaced if nothing is to come.
  Offset slack_of(std::int32_t s) const {
    return rest_[s] == 0 ? kPlaced
                         : static_cast<Offset>(capacity_ - floor_[s] - rest_[s] - blocked_above(s, floor_[s]));
  }
  // The section that was last found too full, or kNone.
  std::int32_t conflict() const { return conflict_; }

  std::uint64_t nodes() const { return nodes_; }
  // Counts what is done for large problems in nodes, so that limits hold there, too.
  void look_at(std::int32_t elements) {
    looked_at_ += elements;
    constexpr std::int32_t kPerNode = 1024;
    if (looked_at_ < kPerNode) return;
    nodes_ += static_cast<std::uint64_t>(looked_at_ / kPerNode);
    looked_at_ %= kPerNode;
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

  // To be called once, first. False if no placement can follow.
  bool begin() {
    if (sections_.fixed_top > capacity_) return false;
    for (std::int32_t s = 0; s < sections_.count; ++s) {
      if (!repaint_one(s, 0)) return false;
    }
    for (std::int32_t b = 0; b < buffers(); ++b) {
      if (least_[b] + bytes_[b] > capacity_) return false;
    }
    trail_.clear();
    return true;
  }

  // Decides that the buffer lies at its least offset. False if no placement can follow; what was changed has to be
  // taken back then, too.
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

  // Decides that it does not. False likewise, also if no offset is left for it.
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

  // How much was changed so far; `undo` goes back to it.
  std::size_t mark() const { return trail_.size(); }
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

 private:
  // What was overwritten.
  struct Change {
    enum class Kind : std::uint8_t { kLeast, kHole, kPlace, kFloor };
    Kind kind;
    std::int32_t index;
    Offset value;
    std::int32_t lowest;  // kFloor
  };

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

  const Sections& sections_;
  const Pruning pruning_;
  const Offset capacity_;
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
  std::vector<Change> trail_;
  std::uint64_t nodes_ = 0;
  std::int32_t looked_at_ = 0;  // since the last of these
};

}  // namespace memopt::layout
