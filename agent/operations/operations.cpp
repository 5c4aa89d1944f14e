#include "agent/operations/operations.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "agent/memory/arena.h"
#include "agent/memory/arena_graphs.h"
#include "agent/memory/arena_streams.h"
#include "agent/memory/blocks.h"
#include "agent/operations/graph_uses.h"
#include "agent/operations/launch_parameters.h"
#include "agent/operations/parameter_words.h"
#include "agent/operations/pinned_memory.h"
#include "agent/process/driver.h"
#include "agent/process/kept_errno.h"
#include "agent/process/log.h"
#include "agent/process/own_cost.h"
#include "agent/process/spin_lock.h"
#include "agent/recording/device_times.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

// Words that are looked up under one taking of the lock, and blocks that one record can name.
constexpr std::size_t kBatch = 64;
constexpr std::size_t kFewAccesses = 512;
constexpr std::size_t kMaxAccesses =
    (shm::kMaxRecordBytes - sizeof(shm::RecordHeader) - sizeof(shm::LaunchBody)) / sizeof(std::uint64_t);

constinit int g_naming_lock = 0;

// One operation on its way through the arena: gathers addresses, looks them up in batches, keeps the list for the
// record. Nothing is locked before there is something to look up.
class Touch {
 public:
  Touch(StreamName stream, bool captured, bool recorded) noexcept
      : stream_(stream), captured_(captured), recorded_(recorded) {}
  // A launch of the function; `scanned`: what it stores is looked at behind it.
  Touch(StreamName stream, bool captured, bool recorded, bool scanned, std::uint32_t function) noexcept
      : stream_(stream), captured_(captured), recorded_(recorded), scanned_(scanned), function_(function) {}

  void add(std::uint64_t address) noexcept {
    if (arena_may_own(address)) add_ours(address);
  }
  // One that arena_may_own().
  void add_ours(std::uint64_t address) noexcept {
    if (waiting_ == kBatch) [[unlikely]]
      look_up();
    addresses_[waiting_++] = address;
  }

  void use_all() noexcept {
    all_ = true;
    if (captured_) return;  // the graph's nodes are read when it is instantiated (graph_uses.h)
    ArenaLock lock;
    begin();
    use_everything(operation_);
    order_operation(lock, operation_);
  }

  // What was freed while a graph names it, and stays for it.
  void use_what_graphs_keep() noexcept {
    ArenaLock lock;
    begin();
    use_freed_but_named(operation_);
  }

  void look_up() noexcept {
    if (waiting_ == 0) return;
    if (!recorded_ && !captured_ && !scanned_) [[likely]] {
      touched_ |= use_addresses(stream_, begun_, {addresses_, waiting_}, &operation_);
      begun_ = true;
    } else {
      look_up_each();
    }
    waiting_ = 0;
  }

  // The operation has its place on its stream even if it touches no block: what is freed by then is behind it, and it
  // is behind what was freed.
  void end() noexcept {
    look_up();
    if (begun_ || captured_ || !arena_is_on()) return;
    ArenaLock lock;
    begin();
    order_operation(lock, operation_);
  }

  // Bytes of a copy, whose address means the block that it lies in, not one that ends there: so the second byte is
  // asked for. Returns the first block's number, if it is recorded.
  std::uint64_t look_up_extent(std::uint64_t address, std::size_t extent) noexcept {
    if (address == 0 || extent == 0) return 0;
    access_count_ = 0;
    add(extent > 1 ? address + 1 : address);
    if (extent > 2) add(address + extent - 1);
    look_up();
    return access_count_ == 0 ? 0 : accesses_[0] & shm::kAccessBlock;
  }

  void make_visible(bool held_up) noexcept {
    if (captured_ || !arena_is_on()) return;
    ArenaLock lock;
    begin();
    host_visible(operation_, held_up);
    order_operation(lock, operation_);
  }

  bool touched() const noexcept { return touched_ || all_; }
  // The list is whole, and tells all that is touched.
  bool is_complete() const noexcept { return !all_ && !cut_off_; }
  std::span<const std::uint64_t> accesses() const noexcept { return {accesses_, access_count_}; }
  void forget_accesses() noexcept { access_count_ = 0; }

 private:
  // With the lock held.
  void begin() noexcept {
    if (!begun_) begin_operation(stream_, &operation_);
    begun_ = true;
  }

  [[gnu::noinline]] void look_up_each() noexcept {
    ArenaLock lock;
    const bool can_again = !begun_ && !captured_;
    for (int time = 1;; ++time) {
      begin();
      for (std::size_t i = 0; i < waiting_; ++i) touch_each(addresses_[i]);
      if (!order_or_begin_again(lock, operation_, can_again ? time : 0)) return;
      begun_ = false;
      access_count_ = 0;
      if (scans_due) forget_due_scans();
    }
  }

  void touch_each(std::uint64_t address) noexcept {
    Block* found[2] = {nullptr, nullptr};
    const std::size_t count = find_blocks(address, found);
    for (std::size_t k = 0; k < count; ++k) {
      touched_ = true;
      const bool again = found[k]->touched == operation_.ticket;
      use_block(*found[k], operation_);
      // Also on a stream that was only drawn into the capture, by an event.
      if (captured_) keep_for_graph(*found[k]);
      if (recorded_) note(block_number(*found[k]), count > 1, again);
      if (scanned_) scan_block(*found[k], operation_, stream_, function_);
    }
  }

  // `again`: it may have been noted.
  void note(std::uint64_t number, bool ambiguous, bool again) noexcept {
    // What an address means beside its block was noted shortly before, where blocks are given in their order.
    for (std::size_t i = again ? access_count_ : 0; i-- > 0;) {
      if ((accesses_[i] & shm::kAccessBlock) != number) continue;
      if (!ambiguous) accesses_[i] = number;
      return;
    }
    if (ambiguous) number |= shm::kAccessAmbiguous;
    if (access_count_ == kFewAccesses && accesses_ == few_accesses_) make_room();
    if (access_count_ == (accesses_ == few_accesses_ ? kFewAccesses : kMaxAccesses)) {
      cut_off_ = true;
    } else {
      accesses_[access_count_++] = number;
    }
  }

  // Optimizers' kernels name hundreds of blocks: not on the program's stack.
  [[gnu::cold, gnu::noinline]] void make_room() noexcept {
    many_accesses_.reset(new (std::nothrow) std::uint64_t[kMaxAccesses]);
    if (many_accesses_ == nullptr) return;
    std::copy(few_accesses_, few_accesses_ + access_count_, many_accesses_.get());
    accesses_ = many_accesses_.get();
  }

  const StreamName stream_;
  const bool captured_;
  const bool recorded_;
  const bool scanned_ = false;
  const std::uint32_t function_ = 0;
  bool begun_ = false;
  bool touched_ = false;
  bool all_ = false;
  bool cut_off_ = false;
  Operation operation_;
  std::size_t waiting_ = 0;
  std::size_t access_count_ = 0;
  std::uint64_t addresses_[kBatch];
  std::uint64_t few_accesses_[kFewAccesses];
  std::unique_ptr<std::uint64_t[]> many_accesses_;
  std::uint64_t* accesses_ = few_accesses_;
};

// ---- launches -----------------------------------------------------------------------------------------------------

struct ParametersToRecord {
  const LaunchCall& call;
  const FunctionLayout& layout;
  PackedParameters packed;
};

void fill_parameters(void* to, const void* context) noexcept {
  const auto& from = *static_cast<const ParametersToRecord*>(context);
  if (from.packed.buffer != nullptr) {
    std::memcpy(to, from.packed.buffer, from.packed.bytes);
    return;
  }
  for (std::uint32_t i = 0; i < from.layout.parameter_count; ++i) {
    const ParameterExtent& parameter = from.layout.parameters[i];
    if (from.call.parameters[i] == nullptr) continue;
    std::memcpy(static_cast<char*>(to) + parameter.offset, from.call.parameters[i], parameter.bytes);
  }
}

[[gnu::cold, gnu::noinline]] void record_all_parameters(const LaunchCall& call, const FunctionLayout& layout,
                                                        std::uint64_t launch) noexcept {
  const ParametersToRecord what{call, layout, call.parameters == nullptr ? packed(call.extra) : PackedParameters{}};
  std::size_t bytes = what.packed.bytes;
  if (what.packed.buffer == nullptr) bytes = call.parameters != nullptr && layout.known ? layout.parameter_bytes : 0;
  if (bytes == 0 || bytes > shm::kMaxRecordBytes / 2) return;
  record_parameters(launch, bytes, fill_parameters, &what);
}

// The name goes before the first launch that refers to it, whichever thread launches.
[[gnu::cold, gnu::noinline]] void name_now(const FunctionLayout& layout, std::uint32_t number) noexcept {
  const LockGuard guard(g_naming_lock);
  if (layout.named_in == number) return;
  record_named(shm::RecordKind::kFunction, layout.id, layout.name);
  __atomic_store_n(&layout.named_in, number, __ATOMIC_RELEASE);
}

void name_function(const FunctionLayout& layout) noexcept {
  const std::uint32_t number = recording_number();
  if (layout.id != 0 && __atomic_load_n(&layout.named_in, __ATOMIC_ACQUIRE) != number) name_now(layout, number);
}

// The operation is one that plans count.
void count(StreamName stream) noexcept {
  count_operation();
  leave_mark_if_due(stream);
}

void record_this_launch(const LaunchCall& call, const FunctionLayout& layout, Touch& touch) noexcept {
  name_function(layout);
  std::uint8_t flags = 0;
  if (!touch.is_complete()) {
    flags = shm::kBlindLaunch;
    touch.forget_accesses();
  }
  shm::LaunchBody body{};
  body.stream = stream_number(call.stream);
  std::memcpy(body.grid, call.grid, sizeof(body.grid));
  std::memcpy(body.block, call.block, sizeof(body.block));
  body.shared_bytes = call.shared_bytes;
  body.accesses = static_cast<std::uint32_t>(touch.accesses().size());
  const std::uint64_t sequence = record_launch(layout.id, body, touch.accesses(), flags);
  if (sequence != 0 && recording_fully()) record_all_parameters(call, layout, sequence);
  // An event between the two would keep it from overlapping the one before.
  time_operation(call.stream, call.overlaps_previous ? 0 : sequence);
}

// ---- copies -------------------------------------------------------------------------------------------------------

// Is any of the words an address of ours? Compilers make several comparisons at once of it, where the processor has
// them: with AVX2 it is as fast as memory.
template <typename Words>
[[gnu::always_inline]] inline bool any_of(const Words* words, std::size_t count, std::uint64_t begin,
                                          std::uint64_t bytes) noexcept {
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) any |= load_word(words + 8 * i) - begin < bytes;
  return any;
}

[[gnu::target("avx2"), gnu::optimize("O3")]] bool any_may_be_ours_avx2(const unsigned char* words, std::size_t count,
                                                                       std::uint64_t begin,
                                                                       std::uint64_t bytes) noexcept {
  // Unsigned numbers are compared as signed ones whose highest bit is the other way round.
  using Wide = unsigned long long __attribute__((vector_size(32)));
  using Signed = long long __attribute__((vector_size(32)));
  constexpr std::uint64_t kHighest = std::uint64_t{1} << 63;
  const std::uint64_t from = begin + kHighest;
  const auto extent = static_cast<long long>(bytes ^ kHighest);
  const Wide first{from, from, from, from};
  const Signed length{extent, extent, extent, extent};
  Signed any{};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    Wide low, high;
    std::memcpy(&low, words + 8 * i, sizeof(low));
    std::memcpy(&high, words + 8 * i + 32, sizeof(high));
    any |= ((Signed)(low - first) < length) | ((Signed)(high - first) < length);
  }
  return (any[0] | any[1] | any[2] | any[3]) != 0 || any_of(words + 8 * i, count - i, begin, bytes);
}

bool any_may_be_ours(const unsigned char* words, std::size_t count, std::uint64_t begin, std::uint64_t bytes) noexcept {
  return __builtin_cpu_supports("avx2") ? any_may_be_ours_avx2(words, count, begin, bytes)
                                        : any_of(words, count, begin, bytes);
}

[[gnu::cold, gnu::noinline]] void escape_words(const unsigned char* words, std::size_t count) noexcept {
  ArenaLock lock;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = load_word(words + 8 * i);
    if (!arena_may_own(word)) continue;
    Block* found[2] = {nullptr, nullptr};
    const std::size_t blocks = find_blocks(word, found);
    for (std::size_t k = 0; k < blocks; ++k) escaped(lock, *found[k]);
  }
}

// Addresses that begin at so many bytes modulo 8.
void scan_words(const unsigned char* payload, std::size_t bytes, std::uint64_t begin, std::uint64_t range) noexcept {
  // Groups large enough that the comparison does not show, small enough that few words are looked at again.
  constexpr std::size_t kGroup = 512;
  for (std::size_t at = 0; at + 8 <= bytes;) {
    const std::size_t left = (bytes - at) / 8;
    const std::size_t count = left < kGroup ? left : kGroup;
    if (any_may_be_ours(payload + at, count, begin, range)) escape_words(payload + at, count);
    at += count * 8;
  }
}

// Where the payload begins says nothing about where addresses stand in it: tables have headers, and structures are
// packed. Multiples of four are looked at in all payloads, and every byte in such as are no larger than tables are.
void scan_payload(const void* from, std::size_t bytes) noexcept {
  constexpr std::size_t kTable = std::size_t{64} << 10;
  const std::uint64_t begin = __atomic_load_n(&arena_range_begin, __ATOMIC_ACQUIRE);
  const std::uint64_t range = __atomic_load_n(&arena_range_bytes, __ATOMIC_RELAXED);
  if (range == 0) return;
  const auto* const payload = static_cast<const unsigned char*>(from);
  const std::size_t step = bytes <= kTable ? 1 : 4;
  // In parts that stay in the nearest cache from one pass to the next.
  constexpr std::size_t kPart = 4096;
  for (std::size_t part = 0; part + 8 <= bytes; part += kPart) {
    for (std::size_t at = part; at < part + 8 && at + 8 <= bytes; at += step)
      scan_words(payload + at, std::min(bytes - at, kPart), begin, range);
  }
}

// An address may be written in pieces. Its upper half tells, by four bytes that all of ours have: what stands in memory
// is looked at again before something leaves.
void note_half(std::uint32_t half) noexcept {
  const std::uint64_t begin = __atomic_load_n(&arena_range_begin, __ATOMIC_ACQUIRE);
  const std::uint64_t range = __atomic_load_n(&arena_range_bytes, __ATOMIC_RELAXED);
  if (range == 0) return;
  const auto first = static_cast<std::uint32_t>(begin >> 32);
  if (half - first <= static_cast<std::uint32_t>(((begin + range - 1) >> 32) - first)) scan_missed();
}

// Of a payload that fills the first or last word of where it goes in part.
void note_halves(const void* from, std::size_t bytes, std::uint64_t to) noexcept {
  if (to == 0 || ((to | bytes) & 7) == 0 || bytes < sizeof(std::uint32_t)) return;
  const auto* const payload = static_cast<const unsigned char*>(from);
  std::uint32_t half = 0;
  for (const std::size_t at : {std::size_t{0}, bytes - sizeof(half)}) {
    std::memcpy(&half, payload + at, sizeof(half));
    note_half(half);
  }
}

// The payload of a copy to the device.
void scan_copied(const void* from, std::size_t bytes, std::uint64_t to) noexcept {
  scan_payload(from, bytes);
  if (arena_has_limit()) note_halves(from, bytes, to);
}

// A kernel may follow the addresses that it finds in page-locked memory which it is given.
[[gnu::cold, gnu::noinline]] void scan_page_locked(std::uint64_t address) noexcept {
  // A list of addresses, not what is computed with.
  constexpr std::size_t kMost = std::size_t{4} << 20;
  const std::size_t bytes = page_locked_bytes_from(address);
  if (bytes != 0) scan_payload(reinterpret_cast<const void*>(address), std::min(bytes, kMost));
}

}  // namespace

bool operations_are_watched() noexcept {
  return __atomic_load_n(&arena_range_bytes, __ATOMIC_RELAXED) != 0 || recording();
}

bool before_launch(const LaunchCall& call) noexcept {
  if (!operations_are_watched()) return false;
  const CostProbe probe;
  const KeptErrno kept;
  const bool recorded = recording();
  const bool captured = is_captured(call.stream);
  const FunctionLayout& layout = launch_layout(call.function);
  const bool due = is_scanned(recorded, layout.id) && !captured;
  // A kernel of ours beside a capture may be an error that ends it.
  const bool scanned = due && !captures_are_open();
  if (due && !scanned) [[unlikely]]
    scan_missed();
  Touch touch(call.stream, captured, recorded, scanned, layout.id);
  bool visible = false;
  // Read once for all words: arena_may_own(), is_pinned_memory().
  const std::uint64_t ours = __atomic_load_n(&arena_range_begin, __ATOMIC_ACQUIRE);
  const std::uint64_t ours_bytes = __atomic_load_n(&arena_range_bytes, __ATOMIC_RELAXED);
  const std::uint64_t pinned = __atomic_load_n(&pinned_memory_begin, __ATOMIC_ACQUIRE);
  const std::uint64_t pinned_bytes = __atomic_load_n(&pinned_memory_bytes, __ATOMIC_RELAXED);
  const auto see = [&](std::uint64_t word) {
    if (word - ours < ours_bytes) touch.add_ours(word);
    if (is_before_block(word)) [[unlikely]]
      touch.add(block_behind(word));
    if (word - pinned < pinned_bytes) [[unlikely]] {
      visible |= is_in_pinned_range(word);
      if (arena_has_limit()) scan_page_locked(word);
    }
  };
  if (!see_words(call, layout, see)) {
    visible = true;
    touch.use_all();
  }
  touch.end();
  if (visible) touch.make_visible(true);
  if (!captured) count(call.stream);
  if (recorded && !captured) record_this_launch(call, layout, touch);
  return call.overlaps_previous && touch.touched();
}

void before_copy(const CopyCall& call) noexcept {
  if (!operations_are_watched() || call.bytes == 0) return;
  const CostProbe probe;
  const KeptErrno kept;
  const bool recorded = recording();
  const bool captured = is_captured(call.stream);
  if (call.from_host != nullptr) {
    scan_copied(call.from_host, call.from_extent != 0 ? call.from_extent : call.bytes, call.to);
  }
  shm::CopyBody body{};
  body.bytes = call.bytes;
  Touch touch(call.stream, captured, recorded);
  if (call.kind == shm::CopyKind::kUnknown) {
    touch.use_all();
  } else {
    body.from = touch.look_up_extent(call.from, call.from_extent);
    body.to = touch.look_up_extent(call.to, call.to_extent);
  }
  touch.end();
  const bool to_host = call.to_host != nullptr || call.kind == shm::CopyKind::kToHost;
  if (!call.host_waits && (to_host || call.kind == shm::CopyKind::kUnknown)) touch.make_visible(false);
  if (!captured) count(call.stream);
  if (!recorded || captured) return;
  body.stream = stream_number(call.stream);
  time_operation(call.stream, record_copy(call.kind, body));
}

void before_memset(const MemsetCall& call) noexcept {
  if (!operations_are_watched() || call.bytes == 0) return;
  const KeptErrno kept;
  const bool recorded = recording();
  const bool captured = is_captured(call.stream);
  Touch touch(call.stream, captured, recorded);
  if (call.value != 0 && arena_has_limit()) note_half(call.value);
  const std::uint64_t block = touch.look_up_extent(call.address, call.bytes);
  touch.end();
  if (is_pinned_memory(call.address)) touch.make_visible(false);
  if (!captured) count(call.stream);
  if (!recorded || captured) return;
  time_operation(call.stream, record_memset({stream_number(call.stream), block, call.bytes}));
}

void before_host_function(StreamName stream) noexcept {
  if (!operations_are_watched()) return;
  const KeptErrno kept;
  const bool captured = is_captured(stream);
  if (!captured) note_stream_may_be_held_up(stream);
  Touch(stream, captured, false).make_visible(true);
  if (recording() && !captured) {
    record_simple(shm::RecordKind::kHostFunction, shm::StreamBody{stream_number(stream)});
  }
}

void before_unknown_work(StreamName stream) noexcept {
  if (!operations_are_watched()) return;
  const KeptErrno kept;
  if (is_captured(stream)) return;
  note_stream_may_be_held_up(stream);
  note_graph_launched();
  Touch touch(stream, false, false);
  touch.use_all();
  touch.make_visible(true);
  count(stream);
  if (!recording()) return;
  shm::LaunchBody body{};
  body.stream = stream_number(stream);
  time_operation(stream, record_launch(0, body, {}, shm::kBlindLaunch));
}

void before_graph(CUgraphExec graph, StreamName stream) noexcept {
  if (!operations_are_watched()) return;
  const FunctionLayout& layout = layout_of_graphs();
  const bool recorded = recording();
  const bool scanned = is_scanned(recorded, layout.id);
  const std::shared_ptr<const GraphUses> uses = uses_of(graph);
  if (uses == nullptr) {
    if (scanned) scan_missed();
    before_unknown_work(stream);
    return;
  }
  const KeptErrno kept;
  if (is_captured(stream)) return;
  note_stream_may_be_held_up(stream);
  note_graph_launched();
  const bool beside_capture = captures_are_open();
  if (scanned && beside_capture) scan_missed();
  Touch touch(stream, false, recorded, scanned && !beside_capture, layout.id);
  bool visible = uses->shows_host;
  for (const std::uint64_t word : uses->pinned) {
    visible |= is_in_pinned_range(word);
    if (arena_has_limit()) scan_page_locked(word);
  }
  for (const GraphUses::Payload& payload : uses->payloads) scan_copied(payload.from, payload.bytes, payload.to);
  if (uses->sets_half && arena_has_limit()) scan_missed();
  for (const std::uint64_t address : uses->addresses) touch.add(address);
  touch.end();
  // Behind its place, which it may have given up on the way.
  touch.use_what_graphs_keep();
  if (visible) touch.make_visible(true);
  count(stream);
  if (!recorded) return;
  LaunchCall call;
  call.stream = stream;
  call.grid[0] = uses->nodes;  // by which graphs are told apart
  record_this_launch(call, layout, touch);
}

void note_escape(std::uint64_t address) noexcept {
  if (!arena_may_own(address)) return;
  const KeptErrno kept;
  unsigned char word[8];
  std::memcpy(word, &address, sizeof(word));
  escape_words(word, 1);
}

void note_not_shared(std::uint64_t address) noexcept {
  static constinit bool said = false;
  if (!arena_maps(address) || __atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  const KeptErrno kept;
  log(LogLevel::kWarn,
      "cuIpcGetMemHandle is refused for memory that memopt serves: with MEMOPT_PLAN=0 the driver serves it");
}

void before_capture(CUstream stream) noexcept {
  const KeptErrno kept;
  {
    const DeviceTimesPause pause;
    capture_opened();
  }
  note_capture_names(stream);
  note_capture_begins(stream);
}

void capture_ended(CUstream stream) noexcept {
  const KeptErrno kept;
  capture_closed();
  note_capture_names_ended(stream);
  note_capture_ended(stream);
}

void forget_operations_after_fork() noexcept {
  forget_captures_after_fork();
  __atomic_store_n(&g_naming_lock, 0, __ATOMIC_RELAXED);
  forget_functions_after_fork();
  forget_graph_uses_after_fork();
  forget_pinned_memory_after_fork();
}

}  // namespace memopt::agent
