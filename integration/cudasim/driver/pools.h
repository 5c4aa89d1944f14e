// Memory pools of the one device: stream-ordered allocation by the rules of the CUDA Programming Guide ("Stream-Ordered
// Memory Allocator").
//
// An allocation has its address at the call and its place in the stream. It takes, first, memory on which no stream has
// a claim (never used, or the host has waited for its free), that was freed on the same stream, or whose free a
// declared edge orders it behind; then also what is free by now; then new memory of the device; then what is still to
// be freed, with an edge to that free. Which one it is depends on virtual time and declared edges alone, never on the
// seed.
//
// Threads: called with the driver's lock held.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/operation.h"
#include "memory/memory.h"
#include "memory/pool_space.h"
#include "units.h"

namespace cudasim {

struct Driver;
class GraphMemory;  // graph/node.h
class Stream;

// The queued operation that frees a piece, and its stream.
struct FreedBy {
  OperationPtr operation;
  std::uint64_t stream;  // Stream::id
};

class Pools {
 public:
  explicit Pools(Driver& driver);  // makes the default pool

  bool available() const { return available_; }  // as the device's attribute says

  CUresult create(std::uint64_t most, CUmemoryPool* out);
  CUresult destroy(CUmemoryPool handle);
  bool is_pool(CUmemoryPool handle) const { return find(handle) != nullptr; }
  CUmemoryPool default_pool() const;
  CUmemoryPool current() const { return current_; }
  CUresult set_current(CUmemoryPool handle);
  CUresult get(CUmemoryPool handle, CUmemPool_attribute attribute, void* value);
  CUresult set(CUmemoryPool handle, CUmemPool_attribute attribute, const void* value);
  CUresult trim(CUmemoryPool handle, std::uint64_t keep);

  // `symbol`: of the entry point, for reports.
  CUresult allocate(CUmemoryPool handle, Stream& stream, const std::string& symbol, std::uint64_t size,
                    CUdeviceptr* out);
  // Of a pool's block, or of one of cuMemAlloc.
  CUresult free(Stream& stream, const std::string& symbol, CUdeviceptr base);
  // cuMemFree of a pool's block: the program says that nothing uses it any more, and no thread waits.
  void free_at_once(const std::string& symbol, Allocation block);

  // Memory of graphs' allocation nodes, from a pool that programs don't see. `out` is its address from now on, until it
  // is taken back; in between, launches allocate and free it.
  CUresult give_to_graph(ContextId context, std::uint64_t size, CUdeviceptr* out);
  void take_back_from_graph(const GraphMemory& memory);
  void allocate_in_graph(Stream& stream, GraphMemory& memory);
  CUresult free_in_graph(Stream& stream, GraphMemory& memory);  // CUDA_ERROR_INVALID_VALUE: it is free
  CUresult get_graph(CUgraphMem_attribute attribute, void* value);
  CUresult set_graph(CUgraphMem_attribute attribute, const void* value);
  void trim_graphs();

  // The host has synchronised with a stream, an event or a context: what is over is anybody's, and what is held beyond
  // the thresholds goes back to the device.
  void host_synchronized();
  // The work of a context is over. With the primary one go the blocks that were made in it.
  void context_destroyed(ContextId context, bool primary);

 private:
  struct Pool {
    Pool(DeviceSpace& device, std::uint64_t most) : space(device, most) {}
    PoolSpace space;
    bool destroyed = false;  // goes when its last block has
    int follow_events = 1, opportunistic = 1, internal_dependencies = 1;
    std::uint64_t release_threshold = 0;
    std::uint64_t held_high = 0;
    std::uint64_t used = 0, used_high = 0;
  };
  // How far an allocation goes to find memory.
  enum class Reach { kOrdered, kCompleted, kPending };

  Pool* find(CUmemoryPool handle) const;  // null for destroyed ones
  bool settled(const FreedBy& by) const;
  bool usable(const FreedBy& by, const Pool& pool, Reach reach, const Stream& stream, const VectorClock& order,
              TimePoint now) const;
  bool grow(Pool& pool, std::uint64_t size);
  void release(Pool& pool, std::uint64_t keep);
  bool reclaim(std::uint64_t size);
  void finish_retired();
  void charge(std::initializer_list<const char*> calls);
  std::vector<ByteRange> bytes_of(CUdeviceptr base, std::uint64_t size) const;

  Driver& driver_;
  bool available_;
  std::map<CUmemoryPool, std::unique_ptr<Pool>> pools_;  // the default one first
  CUmemoryPool current_ = nullptr;
  CUmemoryPool graphs_ = nullptr;                     // of allocation nodes
  std::map<CUdeviceptr, OperationPtr> allocated_by_;  // of pools' blocks
  std::uint64_t made_ = 0;
  struct Retired {
    CUdeviceptr base;
    std::vector<ByteRange> ranges;
    FreedByPtr by;
  };
  std::vector<Retired> retired_;  // cuMemAlloc blocks whose free is queued
};

}  // namespace cudasim
