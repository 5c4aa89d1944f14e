// A range of addresses mapped onto chunks, and who owns its bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/order/ownership.h"

namespace memopt::agent {

struct Chunk;

struct Window {
  enum class Kind : std::uint8_t { kOwn, kShared, kRow, kSlab };

  Kind kind = Kind::kOwn;
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::vector<Chunk*> chunks;
  OwnershipMap map;
  std::uint64_t freed_at = 0;  // kOwn without owner: when, by the count of frees
  bool retiring = false;       // is only to be unmapped
};

}  // namespace memopt::agent
