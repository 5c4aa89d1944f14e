#include "memory/pool_space.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace cudasim {

PoolSpace::PoolSpace(DeviceSpace& space, std::uint64_t most)
    : space_(space), most_(std::numeric_limits<std::uint64_t>::max() / kGranule * kGranule) {
  if (most != 0 && most <= most_) most_ = (most + kGranule - 1) / kGranule * kGranule;
}

PoolSpace::Pieces::iterator PoolSpace::merge_with_previous(Pieces::iterator piece) {
  if (piece == pieces_.begin()) return piece;
  const auto previous = std::prev(piece);
  if (previous->first + previous->second.size != piece->first || previous->second.by != piece->second.by) return piece;
  previous->second.size += piece->second.size;
  pieces_.erase(piece);
  return previous;
}

std::optional<PoolSpace::Taken> PoolSpace::take(std::uint64_t size, const std::function<bool(const FreedBy&)>& usable) {
  std::optional<CUdeviceptr> best;
  std::uint64_t best_size = std::numeric_limits<std::uint64_t>::max();
  CUdeviceptr begin = 0, end = 0;  // the run so far
  const auto consider = [&] {
    if (end - begin < size || end - begin >= best_size) return;
    best = begin;
    best_size = end - begin;
  };
  for (const auto& [base, piece] : pieces_) {
    const bool wanted = piece.by == nullptr || usable(*piece.by);
    if (wanted && base == end) {
      end += piece.size;
      continue;
    }
    consider();
    begin = base;
    end = wanted ? base + piece.size : base;
  }
  consider();
  if (!best) return std::nullopt;

  Taken taken{*best, {}};
  const CUdeviceptr stop = *best + size;
  for (auto piece = pieces_.find(*best); piece != pieces_.end() && piece->first < stop;) {
    const CUdeviceptr piece_end = piece->first + piece->second.size;
    if (piece->second.by != nullptr) taken.freed_by.push_back(piece->second.by);
    if (piece_end > stop) pieces_.emplace(stop, Piece{piece_end - stop, piece->second.by});
    piece = pieces_.erase(piece);
  }
  return taken;
}

void PoolSpace::give(CUdeviceptr base, std::uint64_t size, FreedByPtr by) {
  const auto piece = merge_with_previous(pieces_.emplace(base, Piece{size, std::move(by)}).first);
  if (const auto next = std::next(piece); next != pieces_.end()) merge_with_previous(next);
}

std::optional<PoolSpace::Segment> PoolSpace::grow(std::uint64_t size) {
  const std::uint64_t least = (size + kGranule - 1) / kGranule * kGranule;
  if (least > most_ - std::min(held_, most_)) return std::nullopt;
  const std::uint64_t step = std::max(least, kStep);
  const std::uint64_t room = space_.physical.capacity() - space_.physical.held();
  const std::uint64_t wanted = step <= most_ - held_ && step <= room ? step : least;
  CUdeviceptr base = 0;
  if (space_.take_mapped(wanted, &base, /*pooled=*/true) != CUDA_SUCCESS) return std::nullopt;
  segments_.emplace(base, wanted);
  held_ += wanted;
  give(base, wanted, nullptr);
  return Segment{base, wanted};
}

void PoolSpace::settle(const std::function<bool(const FreedBy&)>& over) {
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    if (piece->second.by != nullptr && over(*piece->second.by)) piece->second.by = nullptr;
    piece = std::next(merge_with_previous(piece));
  }
}

void PoolSpace::trim(std::uint64_t keep, const std::function<void(const Segment&)>& before) {
  for (auto segment = segments_.end(); segment != segments_.begin();) {
    --segment;
    const auto [base, size] = *segment;
    const auto piece = pieces_.find(base);
    if (piece == pieces_.end() || piece->second.by != nullptr || piece->second.size != size) continue;
    if (held_ < keep || held_ - keep < size) continue;
    before({base, size});
    pieces_.erase(piece);
    segment = segments_.erase(segment);
    held_ -= size;
    space_.give_mapped(base);
  }
}

}  // namespace cudasim
