// Internal to planner/layout/exact: what is decided at a node of a placement tree, and what follows from it for each
// section of time. Every change can be undone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "planner/layout/exact/branch_and_bound.h"
#include "planner/layout/exact/prepared_problem.h"

namespace memopt::layout {

// Offset is the narrowest type that holds twice the capacity: the search mostly reads arrays of it.
template <typename Offset>
class PlacementState {
 public:
  static constexpr Offset kPlaced = std::numeric_limits<Offset>::max() / 2;  // least offset of a placed buffer
  static constexpr std::int32_t kNone = -1;

  // `prepared` must outlive it.
  PlacementState(const PreparedProblem& prepared, std::int64_t capacity, const Pruning& pruning)
      : prepared_(prepared),
        pruning_(pruning),
        capacity_(static_cast<Offset>(capacity)),
        bytes_(prepared.bytes.begin(), prepared.bytes.end()),
        least_(prepared.buffers(), 0),
        place_(prepared.buffers(), 0),
        hole_(prepared.buffers(), 0),
        unplaced_(static_cast<std::size_t>(prepared.count), 0),
        floor_(static_cast<std::size_t>(prepared.count), 0),
        lowest_(static_cast<std::size_t>(prepared.count), -1),
        crossing_(static_cast<std::size_t>(prepared.count) + 1, 0),
        members_(prepared.members),
        live_(static_cast<std::size_t>(prepared.count), 0),
        position_start_(prepared.buffers(), 0) {
    std::size_t positions = 0;
    for (std::int32_t b = 0; b < buffers(); ++b) {
      position_start_[b] = positions - static_cast<std::size_t>(prepared_.hull[b].begin);
      positions += static_cast<std::size_t>(prepared_.hull[b].end - prepared_.hull[b].begin);
    }
    position_.resize(positions);
    for (std::int32_t b = 0; b < buffers(); ++b) {
      for (const auto& piece : prepared_.pieces_of(b)) {
        for (std::int32_t s = piece.begin; s < piece.end; ++s) {
          unplaced_[s] += bytes_[b];
          position_[position_start_[b] + s] = live_[s]++;
        }
      }
      for (std::int32_t s = prepared_.hull[b].begin + 1; s < prepared_.hull[b].end; ++s) ++crossing_[s];
      least_[b] = first_free(b, 0);
    }
  }

  // Of all buffers; kPlaced for those that are placed.
  const std::vector<Offset>& least() const { return least_; }
  Offset least(std::int32_t buffer) const { return least_[buffer]; }
  Offset bytes(std::int32_t buffer) const { return bytes_[buffer]; }
  std::vector<std::int64_t> offsets() const { return {place_.begin(), place_.end()}; }

  // Of a section: bytes not placed yet; the least offset of any of these; unplaced hulls that connect it with the
  // section before.
  Offset unplaced(std::int32_t section) const { return unplaced_[section]; }
  Offset floor(std::int32_t section) const { return floor_[section]; }
  std::int32_t crossing(std::int32_t section) const { return crossing_[section]; }
  // Bytes that stay free in it at best; kPlaced if all are placed.
  Offset slack_of(std::int32_t s) const {
    return unplaced_[s] == 0
               ? kPlaced
               : static_cast<Offset>(capacity_ - floor_[s] - unplaced_[s] - fixed_bytes_above(s, floor_[s]));
  }
  // The section that last failed, or kNone.
  std::int32_t conflict() const { return conflict_; }

  std::uint64_t nodes() const { return nodes_; }
  // Counts the work on large problems as nodes, so that limits hold for them, too.
  void count_work(std::int32_t elements) {
    counted_ += elements;
    constexpr std::int32_t kPerNode = 1024;
    if (counted_ < kPerNode) return;
    nodes_ += static_cast<std::uint64_t>(counted_ / kPerNode);
    counted_ %= kPerNode;
  }

  // Calls use(k) for each unplaced buffer that overlaps j in time, and for some others; for some twice, perhaps for j
  // itself.
  template <typename Use>
  void for_neighbours(std::int32_t j, const Use& use) const {
    for (const auto& piece : prepared_.pieces_of(j)) {
      for (const std::int32_t k : live_members_of(piece.begin)) use(k);
      const std::int32_t end = prepared_.piece_begins[piece.end];
      for (std::int32_t p = prepared_.piece_begins[piece.begin + 1]; p < end; ++p) use(prepared_.piece_owner[p]);
    }
  }

  // Unplaced buffers, in no order.
  std::span<const std::int32_t> live_members_of(std::int32_t s) const {
    return std::span(members_).subspan(prepared_.member_start[s], live_[s]);
  }

  // To be called first, once. False if no placement can follow.
  bool begin() {
    if (prepared_.fixed_top > capacity_) return false;
    for (std::int32_t s = 0; s < prepared_.count; ++s) {
      if (!update_floor(s, 0)) return false;
    }
    for (std::int32_t b = 0; b < buffers(); ++b) {
      if (least_[b] + bytes_[b] > capacity_) return false;
    }
    trail_.clear();
    return true;
  }

  // Decides that the buffer lies at its least offset. False if no placement can follow; what was changed has to be
  // undone then, too.
  bool place(std::int32_t j) {
    ++nodes_;
    if (hole_[j] != 0) return false;  // it would fit into the hole
    const Offset offset = least_[j];
    const Offset top = offset + bytes_[j];
    trail_.push_back({Change::Kind::kPlace, j, offset, 0});
    place_[j] = offset;
    least_[j] = kPlaced;
    for (const auto& piece : prepared_.pieces_of(j)) {
      for (std::int32_t s = piece.begin; s < piece.end; ++s) {
        unplaced_[s] -= bytes_[j];
        remove(j, s);
      }
    }
    const auto hull = prepared_.hull[j];
    for (std::int32_t s = hull.begin + 1; s < hull.end; ++s) --crossing_[s];
    count_work(2 * (hull.end - hull.begin));
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
      least_[k] = first_free(k, top);
      fits &= least_[k] + bytes_[k] <= capacity_;
      begin = std::min(begin, prepared_.hull[k].begin);
      end = std::max(end, prepared_.hull[k].end);
    });
    if (!fits) return false;
    count_work(end - begin);
    for (const auto& piece : prepared_.pieces_of(j)) {
      for (std::int32_t s = piece.begin; s < piece.end; ++s) {
        if (!update_floor(s, std::max(floor_[s], top))) return false;
      }
    }
    return update_floors(begin, end);
  }

  // Decides that it does not. False in the same cases, and if no offset is left for it.
  bool raise(std::int32_t j) {
    ++nodes_;
    const Offset old = least_[j];
    const Offset top = old + bytes_[j];
    Offset least = kPlaced;
    Offset filler = kPlaced;
    if (pruning_.canonical_only) {
      for_neighbours(j, [&](std::int32_t k) {
        if (k == j) return;
        least = std::min<Offset>(least, least_[k] + bytes_[k]);
        filler = std::min(filler, least_[k]);
      });
      if (prepared_.has_fixed) {
        for (const auto& range : prepared_.fixed_beside(j)) {
          if (range.end > old) least = std::min(least, static_cast<Offset>(range.end));
        }
      }
    } else {
      least = old + 1;
      for_neighbours(j, [&](std::int32_t k) {
        if (k != j) filler = std::min(filler, least_[k]);
      });
    }
    if (least >= kPlaced) return false;
    if (pruning_.check_dominance) {
      if (filler >= (hole_[j] != 0 ? hole_[j] : top)) return false;
      if (hole_[j] == 0) {
        trail_.push_back({Change::Kind::kHole, j, 0, 0});
        hole_[j] = top;
      }
    }
    trail_.push_back({Change::Kind::kLeast, j, old, 0});
    least_[j] = first_free(j, least);
    if (least_[j] + bytes_[j] > capacity_) return false;
    return update_floors(prepared_.hull[j].begin, prepared_.hull[j].end);
  }

  // The length of the trail; `undo` goes back to it.
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
          for (const auto& piece : prepared_.pieces_of(i)) {
            for (std::int32_t s = piece.begin; s < piece.end; ++s) {
              unplaced_[s] += bytes_[i];
              ++live_[s];
            }
          }
          for (std::int32_t s = prepared_.hull[i].begin + 1; s < prepared_.hull[i].end; ++s) ++crossing_[s];
          break;
        }
      }
      trail_.pop_back();
    }
  }

 private:
  // An entry of the trail: what was overwritten.
  struct Change {
    enum class Kind : std::uint8_t { kLeast, kHole, kPlace, kFloor };
    Kind kind;
    std::int32_t index;
    Offset value;
    std::int32_t lowest;  // kFloor
  };

  std::int32_t buffers() const { return static_cast<std::int32_t>(bytes_.size()); }

  // The first offset from `offset` on that is aligned and not taken by a fixed buffer.
  Offset first_free(std::int32_t buffer, Offset offset) const {
    if (prepared_.aligned) [[unlikely]]
      offset = aligned(buffer, offset);
    if (prepared_.has_fixed) [[unlikely]]
      offset = past_fixed(buffer, offset);
    return offset;
  }

  Offset aligned(std::int32_t buffer, Offset offset) const {
    const std::int64_t alignment = prepared_.alignment[buffer];
    const std::int64_t up = (offset + alignment - 1) / alignment * alignment;
    return static_cast<Offset>(std::min<std::int64_t>(up, kPlaced - 1));
  }

  Offset past_fixed(std::int32_t buffer, Offset offset) const {
    for (const auto& range : prepared_.fixed_beside(buffer)) {
      if (range.end <= offset) continue;
      if (range.begin >= offset + bytes_[buffer]) break;
      offset = aligned(buffer, static_cast<Offset>(range.end));
    }
    return offset;
  }

  // Sparse sets, whose removals are undone in reverse order (Briggs and Torczon, "An efficient representation for
  // sparse sets", 1993): what was removed lies behind what is unplaced.
  void remove(std::int32_t j, std::int32_t s) {
    std::int32_t* const members = members_.data() + prepared_.member_start[s];
    const std::int32_t last = --live_[s];
    const std::int32_t here = std::exchange(position_[position_start_[j] + s], last);
    const std::int32_t other = members[last];
    if (other == j) return;
    members[here] = other;
    members[last] = j;
    position_[position_start_[other] + s] = here;
  }

  bool update_floors(std::int32_t begin, std::int32_t end) {
    for (std::int32_t s = begin; s < end; ++s) {
      if (!update_floor(s, floor_[s])) return false;
    }
    return true;
  }

  // Finds the lowest buffer of a section again, unless the last one found still is. None is below `known`.
  bool update_floor(std::int32_t s, Offset known) {
    if (unplaced_[s] == 0) return true;
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
    if (!pruning_.section_inference || floor + unplaced_[s] + fixed_bytes_above(s, floor) <= capacity_) return true;
    conflict_ = s;
    return false;
  }

  // Bytes of fixed buffers above the floor of a section.
  Offset fixed_bytes_above(std::int32_t s, Offset floor) const {
    if (!prepared_.has_fixed) [[likely]]
      return 0;
    std::int64_t sum = 0;
    for (const auto& range : prepared_.fixed_in(s)) {
      sum += std::max<std::int64_t>(0, range.end - std::max<std::int64_t>(range.begin, floor));
    }
    return static_cast<Offset>(sum);
  }

  const PreparedProblem& prepared_;
  const Pruning pruning_;
  const Offset capacity_;
  std::vector<Offset> bytes_;
  std::vector<Offset> least_;         // offset of each buffer, or kPlaced
  std::vector<Offset> place_;         // of those that have one
  std::vector<Offset> hole_;          // top of the hole that a postponed buffer left and no other has filled yet, or 0
  std::vector<Offset> unplaced_;      // bytes not placed yet, by section
  std::vector<Offset> floor_;         // least offset of any of these
  std::vector<std::int32_t> lowest_;  // one that has it
  std::vector<std::int32_t> crossing_;       // unplaced hulls that connect section s - 1 with s
  std::int32_t conflict_ = kNone;            // the section that last failed
  std::vector<std::int32_t> members_;        // of each section, the unplaced ones first
  std::vector<std::int32_t> live_;           // how many these are
  std::vector<std::int32_t> position_;       // among the members of a section, by buffer and section
  std::vector<std::size_t> position_start_;  // where a buffer's entries of position_ start, less its first section
  std::vector<Change> trail_;
  std::uint64_t nodes_ = 0;
  std::int32_t counted_ = 0;  // since the last of these
};

}  // namespace memopt::layout
