// An iteration whose launches are written anew: what they read, then what they write, as one. Of this room alone.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "planner/recompute/observed/known.h"

namespace memopt::recompute {

struct Used {
  std::uint32_t block = 0;
  std::uint32_t age = 0;
  bool reads = false, writes = false;
};

class Rewriting {
 public:
  explicit Rewriting(const swap::Problem& problem);

  // As it was.
  void pass(swap::Operation operation);
  // `unseen`: what it writes depends on more than what it reads, or it changes more than it writes.
  void launch(const swap::Operation& first, std::span<const Used> used, Known::Origin origin, bool unseen);

  Known& known() { return known_; }

 private:
  std::uint32_t unseen_block();
  void append(swap::Kind kind, std::uint32_t block, std::uint32_t age, Known::Origin origin);

  Known known_;
  std::uint32_t unseen_block_ = swap::kNoBlock;
  swap::Operation first_;   // of the launch
  bool continues_ = false;  // its first operation is there
};

}  // namespace memopt::recompute
