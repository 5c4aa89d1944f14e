#include "pools.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/engine_impl.h"
#include "device_attributes.h"
#include "driver.h"
#include "graph/graphs.h"
#include "memory/device_bytes.h"
#include "memory/memory_impl.h"

namespace cudasim {
namespace {

// Numbers in a part of the address space where nothing lives, as those of streams and events.
constexpr std::uintptr_t kPoolHandles = 0x0700'0000'0000, kHandleStep = 0x100;

std::uint64_t rounded(std::uint64_t size) { return (size + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment; }

std::string named(const std::string& symbol, std::uint64_t size) {
  return symbol + " " + std::to_string(size) + " bytes";
}

template <class Value>
CUresult give(void* out, Value value) {
  std::memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

template <class Value>
Value read(const void* in) {
  Value value;
  std::memcpy(&value, in, sizeof value);
  return value;
}

}  // namespace

Pools::Pools(Driver& driver)
    : driver_(driver),
      available_(device_attribute(driver.config.device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED).value_or(0) != 0) {
  create(0, &current_);
  create(0, &graphs_);
  driver_.memory.impl().space.reclaim = [this](std::uint64_t size) { return reclaim(size); };
}

CUmemoryPool Pools::default_pool() const { return pools_.begin()->first; }

Pools::Pool* Pools::find(CUmemoryPool handle) const {
  if (handle == graphs_) return nullptr;
  const auto found = pools_.find(handle);
  return found == pools_.end() || found->second->destroyed ? nullptr : found->second.get();
}

CUresult Pools::create(std::uint64_t most, CUmemoryPool* out) {
  const auto handle = reinterpret_cast<CUmemoryPool>(kPoolHandles + ++made_ * kHandleStep);
  pools_.emplace(handle, std::make_unique<Pool>(driver_.memory.impl().space, most));
  *out = handle;
  return CUDA_SUCCESS;
}

CUresult Pools::destroy(CUmemoryPool handle) {
  Pool* const pool = find(handle);
  if (pool == nullptr || handle == default_pool()) return CUDA_ERROR_INVALID_VALUE;
  pool->destroyed = true;
  if (current_ == handle) current_ = default_pool();
  release(*pool, 0);
  if (pool->space.held() == 0) pools_.erase(handle);
  return CUDA_SUCCESS;
}

CUresult Pools::set_current(CUmemoryPool handle) {
  if (find(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  current_ = handle;
  return CUDA_SUCCESS;
}

CUresult Pools::get(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const Pool* const pool = find(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return give<int>(value, pool->follow_events);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return give<int>(value, pool->opportunistic);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return give<int>(value, pool->internal_dependencies);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return give<cuuint64_t>(value, pool->release_threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return give<cuuint64_t>(value, pool->space.held());
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return give<cuuint64_t>(value, pool->held_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return give<cuuint64_t>(value, pool->used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return give<cuuint64_t>(value, pool->used_high);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Pools::set(CUmemoryPool handle, CUmemPool_attribute attribute, const void* value) {
  Pool* const pool = find(handle);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->follow_events = read<int>(value) != 0 ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool->opportunistic = read<int>(value) != 0 ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->internal_dependencies = read<int>(value) != 0 ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold = read<cuuint64_t>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (read<cuuint64_t>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->held_high = pool->space.held();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (read<cuuint64_t>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->used_high = pool->used;
      return CUDA_SUCCESS;
    default:  // what is current can't be set
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Pools::trim(CUmemoryPool handle, std::uint64_t keep) {
  Pool* const pool = find(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  release(*pool, keep);
  return CUDA_SUCCESS;
}

// --- allocation
// --------------------------------------------------------------------------------------------------------------

bool Pools::settled(const FreedBy& by) const { return driver_.engine.impl().host_has_waited_for(*by.operation); }

bool Pools::usable(const FreedBy& by, const Pool& pool, Reach reach, const Stream& stream, const VectorClock& order,
                   TimePoint now) const {
  const Operation& free = *by.operation;
  if (by.stream == stream.id || settled(by)) return true;
  if (pool.follow_events != 0 && order.of(free.actor) >= free.sequence) return true;
  if (reach >= Reach::kCompleted && pool.opportunistic != 0 && free.ended(now)) return true;
  return reach >= Reach::kPending && pool.internal_dependencies != 0;
}

CUresult Pools::allocate(CUmemoryPool handle, Stream& stream, const std::string& symbol, std::uint64_t size,
                         CUdeviceptr* out) {
  Pool* const pool = find(handle);
  if (pool == nullptr || out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (size > driver_.memory.capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
  Engine::Impl& engine = driver_.engine.impl();
  engine.track_order();
  const VectorClock order = engine.order_of_next(stream);
  const TimePoint now = driver_.engine.host_now();
  const std::uint64_t taken_size = rounded(size);
  const auto take = [&](Reach reach) {
    return pool->space.take(taken_size,
                            [&](const FreedBy& by) { return usable(by, *pool, reach, stream, order, now); });
  };
  auto taken = take(Reach::kOrdered);
  if (!taken) taken = take(Reach::kCompleted);
  if (!taken && grow(*pool, taken_size)) taken = take(Reach::kOrdered);
  if (!taken) taken = take(Reach::kPending);
  if (!taken) return CUDA_ERROR_OUT_OF_MEMORY;

  // An edge only where the driver would wait. Where it has seen that a free is over, the bytes here must have changed
  // too, but the program has no order from that.
  std::vector<OperationPtr> behind, ran_before;
  for (const FreedByPtr& by : taken->freed_by) {
    const OperationPtr& free = by->operation;
    if (by->stream == stream.id || order.of(free->actor) >= free->sequence) continue;
    (free->ended(now) && pool->opportunistic != 0 ? ran_before : behind).push_back(free);
  }
  const CUdeviceptr base = taken->base;
  driver_.memory.impl().blocks.add_pooled(base, size, handle, driver_.engine.context_of(stream));
  pool->used += taken_size;
  pool->used_high = std::max(pool->used_high, pool->used);
  Work work;
  work.name = named(symbol, size);
  work.run = [this, name = work.name, ranges = bytes_of(base, taken_size)](std::uint32_t, AccessLog&) {
    driver_.engine.allocate(name, ranges);
    return CUDA_SUCCESS;
  };
  allocated_by_[base] = engine.queue_marker(stream, std::move(work), behind, ran_before);
  *out = base;
  return CUDA_SUCCESS;
}

CUresult Pools::free(Stream& stream, const std::string& symbol, CUdeviceptr base) {
  DeviceBlocks& blocks = driver_.memory.impl().blocks;
  const Allocation* const found = blocks.find(base);
  if (found == nullptr || found->base != base) return CUDA_ERROR_INVALID_VALUE;
  const Allocation block = *found;
  if (block.pool == graphs_) {
    const GraphMemoryPtr memory = driver_.graphs->find_memory(base);
    return memory ? free_in_graph(stream, *memory) : CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t taken_size = rounded(block.size);
  const DeviceSpace& space = driver_.memory.impl().space;
  const bool poison = space.physical.poison() && space.physical.held() <= kPoisonedHeld;
  std::vector<ByteRange> ranges = bytes_of(base, taken_size);
  Engine::Impl& engine = driver_.engine.impl();
  engine.track_order();

  Work work;
  work.name = named(symbol, block.size);
  work.run = [this, name = work.name, ranges, base, taken_size, poison](std::uint32_t, AccessLog&) {
    driver_.engine.free_in_order(name, ranges);
    if (poison) fill_device_bytes(reinterpret_cast<void*>(base), kPoison, taken_size);
    return CUDA_SUCCESS;
  };
  const auto by =
      std::make_shared<const FreedBy>(FreedBy{engine.queue_marker(stream, std::move(work), {}, {}), stream.id});
  if (block.pool == nullptr) {
    blocks.retire(base);
    retired_.push_back({base, std::move(ranges), by});
    return CUDA_SUCCESS;
  }
  blocks.remove_pooled(base);
  allocated_by_.erase(base);
  Pool& pool = *pools_.at(block.pool);
  pool.used -= taken_size;
  pool.space.give(base, taken_size, by);
  return CUDA_SUCCESS;
}

void Pools::free_at_once(const std::string& symbol, Allocation block) {
  const std::uint64_t taken_size = rounded(block.size);
  if (block.pool == graphs_) {
    driver_.engine.free_in_order(symbol, bytes_of(block.base, taken_size));
    pools_.at(graphs_)->used -= taken_size;
    driver_.graphs->find_memory(block.base)->end_allocation();
    return;
  }
  driver_.engine.impl().show_unless_known(allocated_by_.at(block.base));
  allocated_by_.erase(block.base);
  driver_.engine.free_in_order(symbol, bytes_of(block.base, taken_size));
  DeviceSpace& space = driver_.memory.impl().space;
  if (space.physical.poison() && space.physical.held() <= kPoisonedHeld)
    fill_device_bytes(reinterpret_cast<void*>(block.base), kPoison, taken_size);
  driver_.memory.impl().blocks.remove_pooled(block.base);
  Pool& pool = *pools_.at(block.pool);
  pool.used -= taken_size;
  pool.space.give(block.base, taken_size, nullptr);
}

// --- graphs
// -------------------------------------------------------------------------------------------------------------------

CUresult Pools::give_to_graph(ContextId context, std::uint64_t size, CUdeviceptr* out) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (size > driver_.memory.capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
  driver_.engine.impl().track_order();
  Pool& pool = *pools_.at(graphs_);
  const auto take = [&] { return pool.space.take(rounded(size), [&](const FreedBy& by) { return settled(by); }); };
  auto taken = take();
  if (!taken && grow(pool, rounded(size))) taken = take();
  if (!taken) return CUDA_ERROR_OUT_OF_MEMORY;
  driver_.memory.impl().blocks.add_pooled(taken->base, size, graphs_, context);
  *out = taken->base;
  return CUDA_SUCCESS;
}

void Pools::take_back_from_graph(const GraphMemory& memory) {
  Pool& pool = *pools_.at(graphs_);
  driver_.memory.impl().blocks.remove_pooled(memory.base);
  FreedByPtr by;
  if (memory.last) by = std::make_shared<const FreedBy>(FreedBy{memory.last, 0});
  pool.space.give(memory.base, rounded(memory.size), by);
}

void Pools::allocate_in_graph(Stream& stream, GraphMemory& memory) {
  Pool& pool = *pools_.at(graphs_);
  memory.begin_allocation();
  pool.used += rounded(memory.size);
  pool.used_high = std::max(pool.used_high, pool.used);
  Work work;
  work.name = named("graph allocation node", memory.size);
  work.run = [this, name = work.name, ranges = bytes_of(memory.base, rounded(memory.size))](std::uint32_t, AccessLog&) {
    driver_.engine.allocate(name, ranges);
    return CUDA_SUCCESS;
  };
  memory.last = driver_.engine.impl().queue_marker(stream, std::move(work), {}, {});
}

CUresult Pools::free_in_graph(Stream& stream, GraphMemory& memory) {
  if (!memory.allocated()) return CUDA_ERROR_INVALID_VALUE;
  pools_.at(graphs_)->used -= rounded(memory.size);
  Work work;
  work.name = named("graph free node", memory.size);
  const DeviceSpace& space = driver_.memory.impl().space;
  const bool poison = space.physical.poison() && space.physical.held() <= kPoisonedHeld;
  work.run = [this, name = work.name, base = memory.base, size = rounded(memory.size), poison,
              ranges = bytes_of(memory.base, rounded(memory.size))](std::uint32_t, AccessLog&) {
    driver_.engine.free_in_order(name, ranges);
    if (poison) fill_device_bytes(reinterpret_cast<void*>(base), kPoison, size);
    return CUDA_SUCCESS;
  };
  memory.last = driver_.engine.impl().queue_marker(stream, std::move(work), {}, {});
  memory.end_allocation();
  return CUDA_SUCCESS;
}

CUresult Pools::get_graph(CUgraphMem_attribute attribute, void* value) {
  const Pool& pool = *pools_.at(graphs_);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      return give<cuuint64_t>(value, pool.used);
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      return give<cuuint64_t>(value, pool.used_high);
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      return give<cuuint64_t>(value, pool.space.held());
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      return give<cuuint64_t>(value, pool.held_high);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Pools::set_graph(CUgraphMem_attribute attribute, const void* value) {
  Pool& pool = *pools_.at(graphs_);
  if (value == nullptr || read<cuuint64_t>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
    pool.used_high = pool.used;
  } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    pool.held_high = pool.space.held();
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

void Pools::trim_graphs() { release(*pools_.at(graphs_), 0); }

// --- from and to the device
// --------------------------------------------------------------------------------------------------

std::vector<ByteRange> Pools::bytes_of(CUdeviceptr base, std::uint64_t size) const {
  std::vector<ByteRange> ranges;
  driver_.memory.for_each_byte_range(base, size, [&](ByteRange range) { ranges.push_back(range); });
  return ranges;
}

// What the driver does for a pool costs the host what the same calls cost.
void Pools::charge(std::initializer_list<const char*> calls) {
  for (const char* const call : calls) {
    const CallCost cost = driver_.config.device.host_cost(call);
    driver_.engine.charge(cost.fixed + cost.per_unit);
  }
}

bool Pools::grow(Pool& pool, std::uint64_t size) {
  const auto segment = pool.space.grow(size);
  if (!segment) return false;
  charge({"cuMemCreate", "cuMemMap", "cuMemSetAccess"});
  pool.held_high = std::max(pool.held_high, pool.space.held());
  driver_.engine.reserve("a memory pool", bytes_of(segment->base, segment->size));
  return true;
}

void Pools::release(Pool& pool, std::uint64_t keep) {
  pool.space.settle([this](const FreedBy& by) { return settled(by); });
  pool.space.trim(keep, [this](const PoolSpace::Segment& segment) {
    charge({"cuMemUnmap", "cuMemRelease"});
    driver_.engine.forget("release of a memory pool", bytes_of(segment.base, segment.size));
  });
}

void Pools::finish_retired() {
  std::erase_if(retired_, [this](const Retired& block) {
    if (!settled(*block.by)) return false;
    driver_.engine.forget("release of a freed block", block.ranges);
    driver_.memory.impl().blocks.finish(block.base);
    return true;
  });
}

// The device is full: what pools keep for later goes first.
bool Pools::reclaim(std::uint64_t size) {
  const PhysicalMemory& physical = driver_.memory.impl().space.physical;
  const std::uint64_t held = physical.held();
  const auto enough = [&] { return physical.capacity() - physical.held() >= size; };
  finish_retired();
  for (auto& [handle, pool] : pools_) {
    if (enough()) break;
    release(*pool, 0);
  }
  return physical.held() < held;
}

void Pools::host_synchronized() {
  if (!driver_.engine.impl().order_tracked) return;  // nothing was ever freed in stream order
  finish_retired();
  std::erase_if(pools_, [this](auto& entry) {
    Pool& pool = *entry.second;
    // What graphs leave stays for other graphs, until it is trimmed.
    if (entry.first == graphs_) return false;
    release(pool, pool.destroyed ? 0 : pool.release_threshold);
    return pool.destroyed && pool.space.held() == 0;
  });
}

void Pools::context_destroyed(ContextId context, bool primary) {
  if (primary) {
    for (const Allocation& block : driver_.memory.impl().blocks.pooled_made_in(context)) {
      // Of graphs that live, nodes that are not allocated have memory, too.
      const GraphMemoryPtr of_graph = block.pool == graphs_ ? driver_.graphs->find_memory(block.base) : nullptr;
      if (block.pool != graphs_ || (of_graph != nullptr && of_graph->allocated()))
        free_at_once("the end of the context", block);
    }
  }
  host_synchronized();
}

}  // namespace cudasim
