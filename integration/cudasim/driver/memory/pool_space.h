// The bytes of one memory pool: segments of device memory, and the pieces of them that no block has. Who freed a piece,
// and whether somebody else may have it yet, is known to the caller.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "memory/device_space.h"

namespace cudasim {

struct FreedBy;  // pools.h
using FreedByPtr = std::shared_ptr<const FreedBy>;

class PoolSpace {
 public:
  // What the device gives in one piece for blocks that are smaller: few large steps, as seen of real drivers.
  static constexpr std::uint64_t kStep = std::uint64_t{32} << 20;

  // `most`: bytes that it may hold, rounded up to whole granules; 0 for no limit.
  PoolSpace(DeviceSpace& space, std::uint64_t most);

  struct Taken {
    CUdeviceptr base;
    std::vector<FreedByPtr> freed_by;  // of its parts, those that were freed and not settled since
  };
  // From the smallest run of usable neighbours that is large enough, the lowest of these. Sizes are multiples of
  // kBlockAlignment.
  std::optional<Taken> take(std::uint64_t size, const std::function<bool(const FreedBy&)>& usable);
  void give(CUdeviceptr base, std::uint64_t size, FreedByPtr by);

  // One more segment with room for `size`; its address, or none: the limit or the device's capacity. May ask the
  // device's other holders to give back, this pool among them.
  struct Segment {
    CUdeviceptr base;
    std::uint64_t size;
  };
  std::optional<Segment> grow(std::uint64_t size);

  // Pieces for which `over` is true are anybody's from now on.
  void settle(const std::function<bool(const FreedBy&)>& over);

  // Gives back whole free settled segments, the highest first, as long as at least `keep` bytes stay. `before` is told
  // of each beforehand.
  void trim(std::uint64_t keep, const std::function<void(const Segment&)>& before);

  std::uint64_t held() const { return held_; }

 private:
  struct Piece {
    std::uint64_t size;
    FreedByPtr by;  // null: settled
  };
  using Pieces = std::map<CUdeviceptr, Piece>;

  Pieces::iterator merge_with_previous(Pieces::iterator piece);

  DeviceSpace& space_;
  std::uint64_t most_;
  std::uint64_t held_ = 0;
  std::map<CUdeviceptr, std::uint64_t> segments_;  // sizes
  Pieces pieces_;                                  // free ones; segments are no neighbours
};

}  // namespace cudasim
