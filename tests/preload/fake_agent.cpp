#include "tests/preload/fake_agent.h"

#include <pthread.h>

namespace memopt::agent {

using namespace test;

std::uint64_t arena_range_begin = 0x7000'0000'0000;
std::uint64_t arena_range_bytes = 1u << 30;
std::uint64_t pinned_memory_begin = 0;
std::uint64_t pinned_memory_bytes = 0;
std::uint32_t recorder_state = 0;
constinit bool arena_limited = false;

// As if every operation were measured.
constinit thread_local device_times_detail::Open device_times_detail::open = Open::kNo;
void device_times_detail::end() noexcept { g_agent.measured.push_back(std::exchange(open, Open::kNo)); }
void measure() { device_times_detail::open = device_times_detail::Open::kYes; }

bool operations_are_watched() noexcept { return g_agent.watched; }
bool before_launch(const LaunchCall& call) noexcept {
  measure();
  g_agent.launches.push_back(call);
  return g_agent.serialize;
}
void before_copy(const CopyCall& call) noexcept {
  measure();
  g_agent.copies.push_back(call);
}
void before_memset(const MemsetCall& call) noexcept {
  measure();
  g_agent.memsets.push_back(call);
}
void before_host_function(StreamName) noexcept { note("host function"); }
void before_unknown_work(StreamName) noexcept {
  measure();
  note("unknown work");
}
void before_graph(CUgraphExec, StreamName) noexcept {
  measure();
  note("graph launched");
}
void GraphUses::add_launch(const LaunchCall& call) { before_launch(call); }
void GraphUses::add_copy(const CopyCall& call) { before_copy(call); }
void GraphUses::add_memset(const MemsetCall& call) { before_memset(call); }
void set_graph_uses(CUgraphExec, GraphUses uses) noexcept { note(uses.known ? "uses" : "uses unknown"); }
void add_graph_uses(CUgraphExec, CUgraphNode, const GraphUses& uses) noexcept {
  note(uses.known ? "more uses" : "uses unknown");
}
void forget_graph_uses(CUgraphExec) noexcept { note("uses forgotten"); }
void lose_all_graph_uses() noexcept { note("uses lost"); }
void note_escape(std::uint64_t address) noexcept {
  if (arena_may_own(address)) note("escape");
}
constinit thread_local bool scans_due __attribute__((tls_model("initial-exec"))) = false;
void queue_due_scans() noexcept {}
void forget_due_scans() noexcept {}
constinit thread_local PointCursor point_cursor __attribute__((tls_model("initial-exec"))) = {};
void arena_reach_points(bool) noexcept { note("point reached"); }
CUresult take_refusal() noexcept { return std::exchange(g_agent.refusal, CUDA_SUCCESS); }
void before_capture(CUstream) noexcept { note("capture begins"); }
void capture_ended(CUstream) noexcept { note("capture ended"); }
void note_captured(CUstream, CUgraph) noexcept { note("captured"); }
void note_graph_made(const void*, const void*) noexcept { note("graph made"); }
void note_graph_added(const void*, const void*) noexcept { note("graph added"); }
void note_graph_beyond_sight(const void*) noexcept { note("graph beyond sight"); }
GraphNames::Captures begin_destroying_graph(const void*) noexcept {
  note("graph goes");
  return {};
}
void graph_destroyed(const void*, GraphNames::Captures, CUresult) noexcept { note("graph has gone"); }
bool is_captured(StreamName stream) noexcept { return g_agent.captured.contains(stream.handle); }
std::uint64_t stream_number(StreamName) noexcept { return 0; }
std::uint64_t record_plain(shm::RecordKind, const void*, std::size_t) noexcept { return 0; }
void functions_were_unloaded() noexcept { note("unloaded"); }
void pinned_memory_added(std::uint64_t address, std::size_t bytes, bool) noexcept {
  if (address != 0) g_agent.pinned[address] = bytes;
}
std::size_t pinned_memory_removed(std::uint64_t address) noexcept {
  const auto found = g_agent.pinned.find(address);
  if (found == g_agent.pinned.end()) return 0;
  const std::size_t bytes = found->second;
  g_agent.pinned.erase(found);
  return bytes;
}
bool is_in_pinned_range(std::uint64_t) noexcept { return false; }
bool arena_block_at(std::uint64_t address, BlockExtent* extent) noexcept {
  if (!arena_may_own(address)) return false;
  *extent = {.base = arena_range_begin, .bytes = 777, .number = 1, .pool = g_agent.pool_of_blocks};
  return true;
}
void arena_note_sync_memops(std::uint64_t, bool on) noexcept { note(on ? "sync on" : "sync off"); }
bool arena_maps(std::uint64_t address) noexcept { return arena_may_own(address); }
bool arena_is_unused(std::uint64_t address) noexcept { return address == g_agent.unused; }
std::uint64_t arena_reserve_bytes() noexcept { return 1000; }
void note_own_context_change() noexcept { note("own context change"); }
void note_context_change() noexcept { note("context change"); }
Served arena_allocate_async(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool, StreamName stream,
                            void*) noexcept {
  g_agent.pool_calls.push_back("allocate " + std::to_string(bytes) + (pool == nullptr ? " current" : " named") +
                               (stream.per_thread ? " per thread" : ""));
  if (!g_agent.serves_pools) return {};
  *address = arena_range_begin;
  return {true, CUDA_SUCCESS};
}
Served arena_free_async(CUdeviceptr address, StreamName stream) noexcept {
  if (!arena_may_own(address)) return {};
  g_agent.pool_calls.push_back(stream.per_thread ? "free per thread" : "free");
  return {true, CUDA_SUCCESS};
}
bool arena_note_async(CUdeviceptr, std::size_t bytes, StreamName, void*) noexcept {
  g_agent.pool_calls.push_back("driver made " + std::to_string(bytes));
  return g_agent.follows;
}
bool arena_relieve(Relief relief, std::size_t wanted) noexcept {
  g_agent.reliefs.emplace_back(relief, wanted);
  if (relief == Relief::kBlocks) return g_agent.swaps_for_others;
  return relief == Relief::kCached ? g_agent.relieves_cached : g_agent.relieves_all;
}
bool arena_begin_swapping(std::size_t) noexcept { return g_agent.serves_pools = g_agent.swaps; }
BlockTable& blocks() noexcept {
  static MemoryGauge gauge;
  static BlockTable table(gauge);
  return table;
}
void note_pool_created(CUmemoryPool, const CUmemPoolProps& properties) noexcept {
  g_agent.pool_calls.push_back("created on " + std::to_string(properties.location.id));
}
void note_pool_destroyed(CUmemoryPool) noexcept { g_agent.pool_calls.emplace_back("destroyed"); }
void note_pool_access(CUmemoryPool, CUdevice device) noexcept {
  g_agent.pool_calls.push_back("used by " + std::to_string(device));
}
void note_current_pool_changed() noexcept { g_agent.pool_calls.emplace_back("another"); }
void arena_pool_use(CUmemoryPool, CUmemPool_attribute, std::uint64_t* value) noexcept { *value += 5000; }
void arena_pool_reset(CUmemoryPool, CUmemPool_attribute) noexcept { g_agent.pool_calls.emplace_back("reset"); }
void arena_pool_trim(CUmemoryPool, std::size_t keep) noexcept {
  g_agent.pool_calls.push_back("trim to " + std::to_string(keep));
}
void note_stream_created(CUstream) noexcept { note("stream created"); }
void note_stream_destroyed(CUstream) noexcept { note("stream destroyed"); }
bool arena_on = true;
void note_failure(CUresult) noexcept {}
void note_stream_may_be_held_up(StreamName) noexcept { note("may be held up"); }
void note_event_in_graph(CUevent, bool external) noexcept { note(external ? "event of a graph" : "event captured"); }
bool is_behind_free(CUevent) noexcept { return g_agent.behind_free; }
bool is_behind_free(StreamName) noexcept { return g_agent.behind_free; }
HostWait begin_host_wait_for_context() noexcept { return {}; }
HostWait begin_host_wait_for_own(StreamName) noexcept { return {}; }
HostWait begin_host_wait_for_stream(StreamName) noexcept { return {}; }
HostWait begin_host_wait_for_event(CUevent) noexcept { return {}; }
void host_wait_done(const HostWait&) noexcept { note("host waited"); }
EventRecord begin_event_record(CUevent event, StreamName) noexcept {
  note(g_driver.empty() ? "event is recorded" : "event is recorded, after the driver's call");
  EventRecord record;
  record.event = event;
  return record;
}
void event_record_done(const EventRecord&, bool succeeded) noexcept {
  note(succeeded ? "event recorded" : "event not recorded");
}
void note_not_shared(std::uint64_t) noexcept { note("not shared"); }
void note_event_destroyed(CUevent) noexcept { note("event destroyed"); }
EventWait begin_event_wait(StreamName, CUevent event) noexcept {
  note(g_driver.empty() ? "event is waited for" : "event is waited for, after the driver's call");
  EventWait wait;
  wait.event = event;
  return wait;
}
void event_wait_done(const EventWait&) noexcept { note("event waited"); }

}  // namespace memopt::agent

namespace memopt::preload {
namespace {

using namespace test;

template <Hook hook, typename Pointer>
struct Real;

template <Hook hook, typename... Parameters>
struct Real<hook, CUresult (*)(Parameters...)> {
  static CUresult call(Parameters... arguments) {
    g_driver.push_back({hook, bytes_of(arguments...)});
    if (g_cancellation_point) pthread_testcancel();
    return g_result;
  }
};

// A driver's answer that hooks ask for themselves.
CUresult pointer_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  g_driver.push_back({Hook::cuPointerGetAttribute, bytes_of(data, attribute, address)});
  const auto known = g_memory_types.find(address);
  if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE || data == nullptr) return g_result;
  if (known == g_memory_types.end()) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<unsigned int*>(data) = known->second;
  return CUDA_SUCCESS;
}

}  // namespace

void* real_function(Hook hook) noexcept {
  if (hook == Hook::cuPointerGetAttribute) return reinterpret_cast<void*>(&pointer_attribute);
  switch (hook) {
#define MEMOPT_HOOK(index, symbol, type) \
  case Hook::symbol:                     \
    return reinterpret_cast<void*>(&Real<Hook::symbol, type>::call);
#include "memopt_entry_points/hooks.inc"
  }
  return nullptr;
}

}  // namespace memopt::preload
