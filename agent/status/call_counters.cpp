#include "agent/status/call_counters.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>

__thread std::uint64_t* memopt_thread_counters = nullptr;

namespace memopt::agent {
namespace {

struct Block {
  std::uint64_t counts[kMaxEntryPoints];  // first: memopt_thread_counters points here
  std::atomic<bool> owned;
  Block* next;  // written before the block is published, then never
};
static_assert(offsetof(Block, counts) == 0);

constinit std::atomic<Block*> g_blocks{nullptr};

// Counts of threads for which no block could be mapped.
constinit std::uint64_t g_overflow[kMaxEntryPoints] = {};

constinit pthread_once_t g_key_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t g_key = 0;
constinit bool g_has_key = false;

// Runs when a thread ends. Should a later destructor of that thread make another call, it takes the slow way again.
void release_block(void* value) {
  memopt_thread_counters = nullptr;
  // Pairs with the acquire in adopt_block: the next owner goes on from our counts.
  static_cast<Block*>(value)->owned.store(false, std::memory_order_release);
}

void make_key() { g_has_key = pthread_key_create(&g_key, release_block) == 0; }

Block* adopt_block() noexcept {
  for (Block* block = g_blocks.load(std::memory_order_acquire); block != nullptr; block = block->next) {
    bool free = false;
    if (!block->owned.load(std::memory_order_relaxed) &&
        block->owned.compare_exchange_strong(free, true, std::memory_order_acquire)) {
      return block;
    }
  }
  void* const memory = mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  Block* const block = static_cast<Block*>(memory);  // zero is a valid, empty block
  block->owned.store(true, std::memory_order_relaxed);
  block->next = g_blocks.load(std::memory_order_relaxed);
  while (!g_blocks.compare_exchange_weak(block->next, block, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return block;
}

}  // namespace

void count_first_call(std::size_t entry_point) noexcept {
  if (memopt_thread_counters == nullptr) {
    pthread_once(&g_key_once, make_key);
    Block* const block = adopt_block();
    if (block == nullptr) {
      __atomic_fetch_add(&g_overflow[entry_point], 1, __ATOMIC_RELAXED);
      return;
    }
    memopt_thread_counters = block->counts;
    // Without a key the block stays with the thread for good; its counts are not lost.
    if (g_has_key && pthread_setspecific(g_key, block) != 0) {
      // As without a key.
    }
  }
  std::uint64_t* const counter = memopt_thread_counters + entry_point;
  __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

std::uint64_t calls_of(std::size_t entry_point) noexcept {
  std::uint64_t calls = __atomic_load_n(&g_overflow[entry_point], __ATOMIC_RELAXED);
  for (Block* block = g_blocks.load(std::memory_order_acquire); block != nullptr; block = block->next) {
    calls += __atomic_load_n(&block->counts[entry_point], __ATOMIC_RELAXED);
  }
  return calls;
}

void reset_counters_after_fork() noexcept {
  for (Block* block = g_blocks.load(std::memory_order_acquire); block != nullptr; block = block->next) {
    for (std::uint64_t& count : block->counts) __atomic_store_n(&count, 0, __ATOMIC_RELAXED);
    block->owned.store(false, std::memory_order_relaxed);
  }
  for (std::uint64_t& count : g_overflow) __atomic_store_n(&count, 0, __ATOMIC_RELAXED);
  memopt_thread_counters = nullptr;
  if (g_has_key) pthread_setspecific(g_key, nullptr);
}

std::size_t counter_blocks() noexcept {
  std::size_t blocks = 0;
  for (Block* block = g_blocks.load(std::memory_order_acquire); block != nullptr; block = block->next) ++blocks;
  return blocks;
}

}  // namespace memopt::agent
