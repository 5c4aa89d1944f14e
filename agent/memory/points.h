// Where the calling thread is between two mallocs of a plan that swaps: so many launches, copies and memsets behind the
// last one. Behind some of them blocks leave or come back (docs/formats/plan-wire.md: points).
//
// A count and a comparison an operation; nothing else happens where the thread follows no such plan.
#pragma once

#include <cstdint>

namespace memopt::agent {

struct PointCursor {
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};

  std::uint32_t since = 0;         // operations since the last malloc that followed
  std::uint32_t next = kNever;     // so many of them, and something is to be done
  std::uint32_t at_free = kNever;  // likewise, behind a free
};
extern constinit thread_local PointCursor point_cursor __attribute__((tls_model("initial-exec")));

// The operation that the calling thread is about to queue is one that plans count.
inline void count_operation() noexcept { ++point_cursor.since; }

// What is due. Without the arena's lock, when all that the thread has announced is queued.
void arena_reach_points(bool behind_free) noexcept;

// At the end of a hook that queues something.
inline void look_for_points() noexcept {
  if (point_cursor.since >= point_cursor.next) [[unlikely]]
    arena_reach_points(false);
}
// At the end of a free.
inline void look_for_points_behind_free() noexcept {
  if (point_cursor.since >= point_cursor.at_free) [[unlikely]]
    arena_reach_points(true);
}

}  // namespace memopt::agent
