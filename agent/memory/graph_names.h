// Which graphs may still use blocks that captures have named.
//
// The driver does not tell which blocks a graph names, and what is captured is handed on: to executables, clones, child
// graphs, by updates. So no lists are kept. Captures are numbered as they begin; a block knows between which numbers it
// was named, a graph between which ones something was captured that went into it. A block is held as long as a graph or
// an executable lives whose numbers meet those of the block: perhaps for longer than it is named, never for less.
//
// Not thread-safe: guarded by the arena's lock. Where there is no host memory for what is to be known, all that was
// ever named is held for good.
#pragma once

#include <cstdint>
#include <map>

namespace memopt::agent {

class GraphNames {
 public:
  // Numbers of captures, both included.
  struct Captures {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };

  // Of a block that a capture names at this moment.
  std::uint64_t now() const noexcept { return now_; }

  // A capture begins on the stream; it has ended, with or without a graph. One whose beginning was not seen counts as
  // the first of all.
  void begin(const void* stream) noexcept;
  void end(const void* stream) noexcept { open_.erase(stream); }
  // The capture that ended on the stream has made the graph, or added to it; before end().
  void captured(const void* stream, const void* graph) noexcept;

  // A graph or executable has been made of `from`, and is no other one that had its address.
  void made(const void* from, const void* to) noexcept;
  // What `from` names is in `into` as well from now on: a child graph, an update.
  void added(const void* from, const void* into) noexcept;
  // `from` is a part of a graph that nothing is known of; null: such a part may be used by a name of its own.
  void lose_track(const void* from) noexcept {
    if (from == nullptr ? !lives_.empty() : lives_.find(from) != lives_.end()) lost_ = true;
  }

  // It is about to be destroyed; returns what is to be given to `restore` if that fails.
  Captures forget(const void* graph) noexcept;
  void restore(const void* graph, Captures captures) noexcept;

  // May a graph that lives, or a capture that is open, use a block that was named between these numbers?
  bool hold(Captures named) const noexcept;

 private:
  std::uint64_t now_ = 0;
  bool lost_ = false;
  std::map<const void*, std::uint64_t> open_;  // streams whose capture has begun, and its number
  std::map<const void*, Captures> lives_;      // graphs and executables in which something was captured
};

}  // namespace memopt::agent
