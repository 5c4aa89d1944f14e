// Page-locked host memory for bytes that are away from the device, in pieces of a chunk each.
//
// Pieces are taken in the order in which they were given back, so that copies which still read one are over by then, as
// a rule. Memory is made in steps: pages with huge pages behind them where the kernel has some, touched, then
// registered with the driver, which others found faster than to have the driver make it
// (docs/adr/0015-a-limit-on-demand.md). It goes back when the context goes, not before: pinning is what is slow.
//
// Guarded by the arena's lock, which grow() gives back while the kernel and the driver work. A forked child has none of
// the memory (MADV_DONTFORK) and makes a store of its own; it never calls its parent's.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/order/arena_lock.h"
#include "agent/order/ownership.h"
#include "agent/process/driver.h"

namespace memopt::agent {

struct HostPiece {
  std::byte* bytes = nullptr;
  Release former;  // copies that it was used for; they are to be over, or before, whatever is written to it next
  HostPiece* next = nullptr;  // of the free ones
  HostPiece* previous = nullptr;
  bool free = false;
};

class HostStore {
 public:
  // For tests others than the defaults: how much is registered at once, and what is put before the names of files that
  // host_room() reads.
  struct Settings {
    // One registration holds up other calls of the driver's for as long as it takes.
    std::uint64_t most_at_once = std::uint64_t{1} << 30;
    const char* root = "";
  };

  explicit HostStore(const Driver& driver) noexcept : HostStore(driver, Settings{}) {}
  HostStore(const Driver& driver, const Settings& settings) noexcept;
  HostStore(const HostStore&) = delete;
  HostStore& operator=(const HostStore&) = delete;
  ~HostStore() { release(); }

  // `limit`: bytes that are held at most; 0: as many as the host allows. `context`: memory is registered there,
  // whatever is current; null: in the one that is.
  void start(std::uint64_t piece_bytes, std::uint64_t limit, CUcontext context = nullptr) noexcept;
  bool is_started() const { return piece_bytes_ != 0; }

  // The one that has been free for longest; null: there is none, but for what is kept back.
  HostPiece* take() noexcept;
  // So many that lie side by side, whenever they were given back; of the shortest run of free ones that is long enough.
  // False: there is none. Looks at all pieces.
  bool take_run(std::size_t count, HostPiece** taken) noexcept;
  void give_back(HostPiece* piece, const Release& last_use) noexcept;

  // Makes more, so that `pieces` are free, and somewhat more than that where a lot is held already. False: fewer are
  // (some may have been made), note() says why; or all was released meanwhile. While another thread makes some, this
  // one waits for it. What the kernel or the driver has refused is tried again only after ever more calls.
  bool grow(ArenaLock& lock, std::size_t pieces) noexcept;
  // Why there are no more, the last time; empty: there were.
  const std::string& note() const { return note_; }

  // Of those that are free so many are nobody's for now: a plan that is about to go live will have them.
  void keep_back(std::size_t pieces) noexcept { kept_back_ = pieces; }

  std::size_t free_pieces() const { return free_ - std::min(free_, kept_back_); }
  std::uint64_t held_bytes() const { return held_; }

  // Everything back to the kernel, pieces that are in use too: no copy is under way, and the context goes. A thread
  // that is making more gives that back itself.
  void release() noexcept;

 private:
  struct Step {
    void* memory = nullptr;  // null: it was not to be had
    std::size_t bytes = 0;
    std::vector<HostPiece> pieces;
  };
  struct Request;

  void unlink(HostPiece* piece) noexcept;
  bool grow_once(ArenaLock& lock, std::size_t pieces) noexcept;
  static Step make(const Request& request, bool* refused, std::string* why) noexcept;
  static CUresult make_exactly(const Request& request, std::size_t bytes, Step* step) noexcept;
  static void unmake(const Driver& driver, const Step& step) noexcept;
  void note(std::string_view why) noexcept;

  const Driver& driver_;
  const Settings settings_;
  CUcontext context_ = nullptr;
  std::uint64_t piece_bytes_ = 0;
  std::uint64_t limit_ = 0;
  std::vector<Step> steps_;
  HostPiece* first_ = nullptr;
  HostPiece* last_ = nullptr;
  std::size_t free_ = 0;
  std::size_t kept_back_ = 0;
  std::uint64_t held_ = 0;
  // Changes with each release, and is never that of another store: a thread that has grown one sees whether it is still
  // there, also where the next one was made in its place.
  std::uint64_t generation_ = 0;
  bool growing_ = false;
  std::uint32_t pause_ = 0;       // calls until what was refused is tried again
  std::uint32_t last_pause_ = 0;  // how many they were
  std::string note_;
};

}  // namespace memopt::agent
