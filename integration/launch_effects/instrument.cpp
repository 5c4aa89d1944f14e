#include "instrument.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "options.h"

namespace launch_effects {
namespace {

std::atomic<bool> g_in_forked_child{false};

// Threads by their first allocation or launch, and how many of each they have made.
struct Thread {
  std::uint32_t number;
  std::uint32_t allocations = 0;
  std::uint32_t launches = 0;
};

Thread& this_thread() {
  static std::atomic<std::uint32_t> threads{0};
  thread_local Thread thread{threads.fetch_add(1, std::memory_order_relaxed)};
  return thread;
}

// What may be an address differs from run to run, also where it is one no longer.
bool looks_like_an_address(std::uint64_t word) {
  return word >= std::uint64_t{1} << 32 && word < std::uint64_t{1} << 47;
}

std::uint64_t word_at(const std::vector<std::byte>& bytes, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, std::min(sizeof word, bytes.size() - offset));
  return word;
}

// Each block once, from the first byte that is named.
std::uint64_t bytes_named(const std::vector<Named>& named, const std::vector<Block*>& blocks) {
  std::map<const Block*, std::uint64_t> begins;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto [at, is_new] = begins.emplace(blocks[i], named[i].begin);
    if (!is_new) at->second = std::min(at->second, named[i].begin);
  }
  std::uint64_t bytes = 0;
  for (const auto& [block, begin] : begins) bytes += block->size - begin;
  return bytes;
}

}  // namespace

Instrument::Instrument() {
  pthread_atfork(nullptr, nullptr, [] { g_in_forked_child = true; });
  std::atexit([] {
    if (Instrument* const instrument = get()) instrument->finish();
  });
  const Options& asked = options();
  if (!asked.decisions.empty() && !read_decisions(asked.decisions, decided_)) decided_.clear();
  next_launch_does_ = reinterpret_cast<decltype(next_launch_does_)>(driver_function("cudasim_next_launch_does"));
  last_launch_took_ = reinterpret_cast<decltype(last_launch_took_)>(driver_function("cudasim_last_launch_took"));
  if (next_launch_does_ == nullptr) {
    std::fputs("launch effects: kernels run themselves on this driver: launches are counted, and nothing else\n",
               stderr);
  }
}

Instrument* Instrument::get() {
  if (g_in_forked_child.load(std::memory_order_relaxed)) return nullptr;
  static auto* const instrument = new Instrument;
  return instrument;
}

void Instrument::allocated(CUdeviceptr address, std::size_t size) {
  Thread& thread = this_thread();
  const std::lock_guard lock(mutex_);
  blocks_.add({{thread.number, thread.allocations++}, static_cast<std::uintptr_t>(address), size, {}});
}

void Instrument::freed(CUdeviceptr address) {
  const std::lock_guard lock(mutex_);
  blocks_.remove(static_cast<std::uintptr_t>(address));
}

void Instrument::freed_range(CUdeviceptr address, std::size_t size) {
  const std::lock_guard lock(mutex_);
  blocks_.remove_range(static_cast<std::uintptr_t>(address), size);
}

void Instrument::wrote(CUdeviceptr address, std::size_t size) {
  const std::lock_guard lock(mutex_);
  blocks_.wrote(static_cast<std::uintptr_t>(address), size);
}

void Instrument::copied(CUdeviceptr to, CUdeviceptr from, std::size_t size) {
  const std::lock_guard lock(mutex_);
  blocks_.copied(static_cast<std::uintptr_t>(to), static_cast<std::uintptr_t>(from), size);
}

void Instrument::context_is_gone() {
  const std::lock_guard lock(mutex_);
  blocks_.clear();
  context_ = nullptr;
}

void Instrument::forget_functions() { kernels_.forget(); }

// Reading the blocks at exit needs a context, and the thread that ends the program may have none.
void Instrument::note_context() {
  static const auto current = reinterpret_cast<decltype(&cuCtxGetCurrent)>(driver_function("cuCtxGetCurrent"));
  CUcontext context = nullptr;
  if (current != nullptr && current(&context) == CUDA_SUCCESS) context_ = context;
}

// Every aligned word that is the address of a live block's byte names that block.
Instrument::Reading Instrument::read(const Kernel& kernel, const LaunchCall& call) {
  Reading reading;
  const std::vector<std::byte> packed = kernel.pack(call.parameters, call.extra);
  std::uint64_t digest = hash_of(kernel.name.data(), kernel.name.size(), 0);
  for (const unsigned size : {call.grid[0], call.grid[1], call.grid[2], call.block[0], call.block[1], call.block[2]})
    digest = mixed(digest, size);
  // The bytes of such a structure, and the words of it that count.
  std::size_t list = 0;
  std::size_t list_end = 0;
  std::set<std::size_t> of_tensors;
  if (kernel.lists) {
    list_end = kernel.lists->bytes();
    of_tensors = kernel.lists->addresses(packed, call.grid[0]);
  } else if (kernel.inputs) {
    list = kernel.parameters[1].offset;
    list_end = list + kernel.inputs->bytes();
    of_tensors = kernel.inputs->addresses(call.grid[1]);
  }
  for (std::size_t offset = 0; offset < packed.size(); offset += sizeof(std::uint64_t)) {
    if (offset >= list && offset < list_end && !of_tensors.contains(offset - list)) continue;
    const std::uint64_t word = word_at(packed, offset);
    Block* const block = packed.size() - offset < sizeof word ? nullptr : blocks_.at(word);
    if (block != nullptr) {
      const std::uint64_t begin = word - block->address;
      reading.decision.named.push_back({static_cast<std::uint32_t>(offset), block->id, begin});
      reading.blocks.push_back(block);
      digest = mixed(digest, begin);
    } else if (!looks_like_an_address(word)) {
      digest = mixed(digest, word);
    }
  }
  reading.decision.kernel = kernel.name;
  reading.decision.digest = digest;
  reading.decision.bytes = bytes_named(reading.decision.named, reading.blocks);
  return reading;
}

// What the earlier run has decided counts, as far as this run's words say the same.
void Instrument::apply(const Decision& decided, Reading& reading) {
  // Blocks may be another matter altogether, a caching allocator's segments: only the time is wanted.
  if (options().extent == Extent::kNone) {
    reading = {decided, {}};
    return;
  }
  Reading kept;
  std::size_t at = 0;
  for (const Named& named : decided.named) {
    while (at < reading.decision.named.size() && reading.decision.named[at].offset < named.offset) ++at;
    if (at < reading.decision.named.size() && reading.decision.named[at] == named) {
      kept.decision.named.push_back(named);
      kept.blocks.push_back(reading.blocks[at]);
    } else {
      ++disagreed_;
    }
  }
  kept.decision.kernel = decided.kernel;
  kept.decision.digest = decided.digest;
  kept.decision.bytes = decided.bytes;
  reading = std::move(kept);
}

std::unique_ptr<Effect> Instrument::effect_of(LaunchId id, const Kernel& kernel, const Reading& reading) {
  auto effect = std::make_unique<Effect>();
  effect->digest = reading.decision.digest;
  effect->place = std::uint64_t{id.thread} << 32 | id.number;
  effect->extent = options().extent;
  effect->sums = &sums_;
  if (!options().uses.empty()) {
    Use& use = uses_.emplace_back();
    use.id = id;
    use.kernel = kernel.name;
    effect->found = &use.hash;
  }
  std::map<const Block*, std::size_t> seen;
  for (std::size_t i = 0; i < reading.blocks.size(); ++i) {
    Block& block = *reading.blocks[i];
    const Parameter* const parameter = kernel.at(reading.decision.named[i].offset);
    const bool is_written = parameter == nullptr || !parameter->is_read_only;
    const auto [at, is_new] = seen.emplace(&block, effect->operands.size());
    if (!is_new) {
      effect->operands[at->second].is_written |= is_written;
      continue;
    }
    effect->operands.push_back({reinterpret_cast<unsigned char*>(block.address), block.size, !block.written.empty(),
                                is_written, block.written.missing({0, block.size})});
    block.written.add({0, block.size});
  }
  return effect;
}

CUresult Instrument::launch(const LaunchCall& call, const std::function<CUresult()>& forward) {
  const LaunchId id{this_thread().number, this_thread().launches++};
  if (context_ == nullptr) note_context();
  const std::shared_ptr<const Kernel> known = kernels_.of(call.function);
  const Kernel& kernel = *known;
  Decision decision;
  std::unique_ptr<Effect> effect;
  {
    const std::lock_guard lock(mutex_);
    Reading reading = read(kernel, call);
    if (const auto found = decided_.find(id); found != decided_.end() && found->second.kernel == kernel.name) {
      apply(found->second, reading);
    } else if (!decided_.empty()) {
      ++undecided_;
    }
    if (next_launch_does_ != nullptr) effect = effect_of(id, kernel, reading);
    if (!options().decide.empty()) deciding_[id] = reading.decision;
    decision = std::move(reading.decision);
  }
  return forward_with(call, decision, std::move(effect), forward);
}

CUresult Instrument::forward_with(const LaunchCall& call, const Decision& decision, std::unique_ptr<Effect> effect,
                                  const std::function<CUresult()>& forward) {
  std::vector<CudasimTouched> touched;
  if (effect != nullptr) {
    CudasimEffect does{};
    does.struct_size = sizeof does;
    does.cost.bytes = static_cast<double>(decision.bytes);
    does.release = [](void* mine) { delete static_cast<Effect*>(mine); };
    if (effect->extent != Extent::kNone) {
      for (const Operand& operand : effect->operands) {
        touched.push_back({reinterpret_cast<std::uintptr_t>(operand.bytes), operand.size, operand.is_read ? 1u : 0u,
                           operand.is_written || !operand.unwritten.empty() ? 1u : 0u});
      }
      does.prepare = [](void* mine) { static_cast<Effect*>(mine)->fill_unwritten(); };
      does.read = [](void* mine) { static_cast<Effect*>(mine)->read(); };
      does.write = [](void* mine) { static_cast<Effect*>(mine)->write(); };
    }
    does.touched = touched.data();
    does.touched_count = static_cast<std::uint32_t>(touched.size());
    does.argument = effect.get();
    if (next_launch_does_(call.function, &does) == 0) effect.release();
  }
  const CUresult result = forward();
  // One that was refused takes nothing along.
  if (next_launch_does_ != nullptr) next_launch_does_(call.function, nullptr);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  Totals& totals = totals_[decision.kernel];
  ++totals.launches;
  totals.blocks += decision.named.size();
  totals.bytes += decision.bytes;
  if (last_launch_took_ != nullptr) totals.nanoseconds += last_launch_took_();
  return result;
}

}  // namespace launch_effects
