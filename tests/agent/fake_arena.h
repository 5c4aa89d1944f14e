// An arena with blocks where the test puts them, which notes what it is told. Takes the place of
// agent/memory/arena.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/blocks.h"

namespace memopt::test {

struct Use {
  std::uint64_t block;
  CUstream stream;
  std::uint64_t position;

  bool operator==(const Use&) const = default;
};

// That was to be looked at behind a launch of the function.
struct Looked {
  std::uint64_t block;
  std::uint32_t function;

  bool operator==(const Looked&) const = default;
};

// Forgets all; the range of addresses is [begin, begin + bytes).
void reset_arena(std::uint64_t begin, std::uint64_t bytes);
// Returns the block's number.
std::uint64_t add_block(std::uint64_t address, std::uint64_t bytes);
const agent::Block& block_with(std::uint64_t number);

// What was told since the last reset, in order.
const std::vector<Use>& uses();
int uses_of_everything();
int visible_operations();
int operations();
// Each operation that can begins again so many times.
void begin_again(int times);
const std::vector<Looked>& looked_at();
int scans_queued();
int scans_forgotten();
int scans_missed();
const std::vector<CUstream>& captures_begun();
const std::vector<CUstream>& captures_ended();

}  // namespace memopt::test
