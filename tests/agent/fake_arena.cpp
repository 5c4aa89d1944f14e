#include "fake_arena.h"

#include <deque>

#include "agent/memory/arena_graphs.h"
#include "agent/memory/arena_streams.h"
#include "agent/memory/points.h"

namespace memopt::agent {
std::uint64_t arena_range_begin = 0;
bool arena_limited = false;
std::uint64_t arena_range_bytes = 0;
bool arena_on = true;
constinit ScanMode scan_mode = ScanMode::kOff;
constinit thread_local bool scans_due __attribute__((tls_model("initial-exec"))) = false;
constinit thread_local PointCursor point_cursor __attribute__((tls_model("initial-exec"))) = {};
void arena_reach_points(bool /*behind_free*/) noexcept {}
}  // namespace memopt::agent

namespace memopt::test {
namespace {

struct State {
  std::deque<agent::Block> blocks;
  std::vector<CUstream> streams;  // by slot
  std::vector<Use> uses;
  std::vector<Looked> looked;
  int scans_queued = 0;
  int scans_forgotten = 0;
  int scans_missed = 0;
  std::vector<CUstream> begun;
  std::vector<CUstream> ended;
  std::uint64_t position = 0;
  int everything = 0;
  int visible = 0;
  int again = 0;
};
State& state() {
  static State& instance = *new State;
  return instance;
}

}  // namespace

void reset_arena(std::uint64_t begin, std::uint64_t bytes) {
  state() = State();
  agent::arena_range_begin = begin;
  agent::arena_range_bytes = bytes;
}

std::uint64_t add_block(std::uint64_t address, std::uint64_t bytes) {
  agent::Block block;
  block.base = address;
  block.bytes = bytes;
  block.number = state().blocks.size() + 1;
  state().blocks.push_back(block);
  return block.number;
}

const agent::Block& block_with(std::uint64_t number) { return state().blocks.at(number - 1); }
const std::vector<Use>& uses() { return state().uses; }
int uses_of_everything() { return state().everything; }
int visible_operations() { return state().visible; }
int operations() { return static_cast<int>(state().position); }
void begin_again(int times) { state().again = times; }
const std::vector<Looked>& looked_at() { return state().looked; }
int scans_queued() { return state().scans_queued; }
int scans_forgotten() { return state().scans_forgotten; }
int scans_missed() { return state().scans_missed; }
const std::vector<CUstream>& captures_begun() { return state().begun; }
const std::vector<CUstream>& captures_ended() { return state().ended; }

}  // namespace memopt::test

namespace memopt::agent {

using test::state;

std::uint64_t block_number(const Block& block) noexcept { return block.number; }

void begin_operation(StreamName stream, Operation* operation) noexcept {
  state().streams.push_back(stream.handle);
  operation->use = {static_cast<StreamSlot>(state().streams.size() - 1), ++state().position};
}
void order_operation(ArenaLock&, Operation&) noexcept {}
bool order_or_begin_again(ArenaLock&, Operation&, int time) noexcept { return time != 0 && time <= state().again; }
CUresult take_refusal() noexcept { return CUDA_SUCCESS; }
void note_failure(CUresult) noexcept {}

std::size_t find_blocks(std::uint64_t address, Block* found[2]) noexcept {
  std::size_t count = 0;
  for (Block& block : state().blocks) {
    if (address - block.base < block.bytes) found[count++] = &block;
  }
  for (Block& block : state().blocks) {
    if (address == block.base + block.bytes) found[count++] = &block;
  }
  return count;
}

void use_block(Block& block, Operation& operation) noexcept {
  const StreamUse use = operation.use;
  state().uses.push_back({block.number, state().streams[use.slot], use.position});
}
bool use_addresses(StreamName stream, bool begun, std::span<const std::uint64_t> addresses,
                   Operation* operation) noexcept {
  if (!begun) begin_operation(stream, operation);
  bool any = false;
  for (const std::uint64_t address : addresses) {
    Block* found[2] = {nullptr, nullptr};
    const std::size_t blocks = find_blocks(address, found);
    for (std::size_t k = 0; k < blocks; ++k) use_block(*found[k], *operation);
    any = any || blocks != 0;
  }
  return any;
}
void use_everything(Operation&) noexcept { ++state().everything; }
void use_freed_but_named(const Operation&) noexcept {}
void host_visible(const Operation&, bool) noexcept { ++state().visible; }
void scan_block(const Block& block, const Operation&, StreamName, std::uint32_t function) noexcept {
  state().looked.push_back({block.number, function});
  scans_due = true;
}
void scan_missed() noexcept { ++state().scans_missed; }
void queue_due_scans() noexcept {
  ++state().scans_queued;
  scans_due = false;
}
void forget_due_scans() noexcept {
  ++state().scans_forgotten;
  scans_due = false;
}
void escaped(ArenaLock&, Block& block) noexcept { block.escaped = true; }
void note_stream_may_be_held_up(StreamName) noexcept {}
void note_graph_launched() noexcept {}
void keep_for_graph(Block& block) noexcept { block.kept = true; }
void note_capture_names(CUstream) noexcept {}
void note_capture_names_ended(CUstream) noexcept {}
bool arena_maps(std::uint64_t address) noexcept { return arena_may_own(address); }
void note_capture_begins(CUstream stream) noexcept { state().begun.push_back(stream); }
void note_capture_ended(CUstream stream) noexcept { state().ended.push_back(stream); }

}  // namespace memopt::agent
