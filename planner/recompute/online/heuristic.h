// Which block an online policy gives up first: the one with the least value.
//
// Kirisame et al., "Dynamic Tensor Rematerialization" (ICLR 2021), section 4.1 and appendix C.1, has all of these. m is
// a block's bytes, s the time since it was last used, c the time of its producer. The evicted neighbourhood are the
// blocks that have to be made again for it, or it for them, through none that is in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace memopt::recompute {

enum class Heuristic : std::uint8_t {
  kDtr,       // (c + the same of its evicted neighbourhood) / (m s)
  kDtrEq,     // the same, neighbourhoods kept as classes that are never split: what comes back takes its own cost out
  kDtrLocal,  // c / (m s)
  kLru,       // 1 / s
  kSize,      // 1 / m
  kMsps,      // (c + the same of its evicted ancestors) / m, Peng et al., "Capuchin" (ASPLOS 2020)
};

inline constexpr Heuristic kHeuristics[] = {Heuristic::kDtr, Heuristic::kDtrEq, Heuristic::kDtrLocal,
                                            Heuristic::kLru, Heuristic::kSize,  Heuristic::kMsps};

constexpr std::string_view name_of(Heuristic heuristic) {
  switch (heuristic) {
    case Heuristic::kDtr:
      return "dtr";
    case Heuristic::kDtrEq:
      return "eq";
    case Heuristic::kDtrLocal:
      return "local";
    case Heuristic::kLru:
      return "lru";
    case Heuristic::kSize:
      return "size";
    case Heuristic::kMsps:
      return "msps";
  }
  return "";
}

}  // namespace memopt::recompute
