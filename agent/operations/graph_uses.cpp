#include "agent/operations/graph_uses.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "agent/memory/arena.h"
#include "agent/operations/launch_parameters.h"
#include "agent/operations/parameter_words.h"
#include "agent/operations/pinned_memory.h"
#include "agent/process/kept_errno.h"
#include "agent/process/spin_lock.h"

namespace memopt::agent {
namespace {

// Beyond so many a graph that is given ever other addresses counts as using everything.
constexpr std::size_t kMostWords = std::size_t{1} << 18;

using Uses = std::map<CUgraphExec, std::shared_ptr<GraphUses>>;
constinit int g_lock = 0;
alignas(Uses) constinit unsigned char g_memory[sizeof(Uses)] = {};
constinit Uses* g_uses = nullptr;  // in g_memory
constinit bool g_lost = false;

template <typename Value>
void sort_out(std::vector<Value>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

void sort_out(GraphUses& uses) {
  sort_out(uses.addresses);
  sort_out(uses.pinned);
  if (uses.addresses.size() + uses.pinned.size() + uses.payloads.size() > kMostWords) uses.known = false;
}

template <typename Value>
void append(std::vector<Value>& to, const std::vector<Value>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// As a copy's address means the block that it lies in, not one that ends there: the second byte, and the last one.
void add_extent(std::vector<std::uint64_t>& to, std::uint64_t address, std::size_t bytes) {
  if (address == 0 || bytes == 0 || !arena_may_own(address)) return;
  to.push_back(bytes > 1 ? address + 1 : address);
  if (bytes > 2) to.push_back(address + bytes - 1);
}

template <typename Change>
void change(const Change& with) noexcept {
  const KeptErrno kept;
  const LockGuard guard(g_lock);
  try {
    if (g_uses == nullptr) g_uses = new (g_memory) Uses();
    with(*g_uses);
  } catch (const std::bad_alloc&) {
    // Half of it may be there.
    if (g_uses != nullptr) g_uses->clear();
    g_lost = true;
  }
}

}  // namespace

void GraphUses::add_launch(const LaunchCall& call) {
  const FunctionLayout& layout = launch_layout(call.function);
  known = see_words(call, layout,
                    [&](std::uint64_t word) {
                      if (arena_may_own(word)) addresses.push_back(word);
                      if (is_before_block(word) && arena_may_own(block_behind(word)))
                        addresses.push_back(block_behind(word));
                      if (is_pinned_memory(word)) pinned.push_back(word);
                    }) &&
          known;
}

void GraphUses::add_copy(const CopyCall& call) {
  if (call.bytes == 0) return;
  if (call.from_host != nullptr)
    payloads.push_back({call.from_host, call.from_extent != 0 ? call.from_extent : call.bytes, call.to, nullptr});
  add_extent(addresses, call.from, call.from_extent);
  add_extent(addresses, call.to, call.to_extent);
  if (call.to_host != nullptr || call.kind == shm::CopyKind::kToHost) shows_host = true;
}

void GraphUses::add_memset(const MemsetCall& call) {
  add_extent(addresses, call.address, call.bytes);
  if (call.value != 0) sets_half = true;
  if (is_pinned_memory(call.address)) shows_host = true;
}

void set_graph_uses(CUgraphExec graph, GraphUses uses) noexcept {
  change([&](Uses& all) {
    sort_out(uses);
    if (uses.known && operations_are_watched()) {
      all[graph] = std::make_shared<GraphUses>(std::move(uses));
    } else {
      all.erase(graph);
    }
  });
}

void add_graph_uses(CUgraphExec graph, CUgraphNode node, const GraphUses& uses) noexcept {
  change([&](Uses& all) {
    const auto found = all.find(graph);
    if (found == all.end()) return;
    // A launch may be looking at it.
    auto sum = std::make_shared<GraphUses>(*found->second);
    sum->known = sum->known && uses.known;
    if (node != nullptr && !sum->payloads.empty()) {
      const auto is_its = [&](const GraphUses::Payload& payload) { return payload.node == node; };
      sum->known = std::erase_if(sum->payloads, is_its) != 0 && sum->known;
    }
    sum->shows_host = sum->shows_host || uses.shows_host;
    sum->sets_half = sum->sets_half || uses.sets_half;
    append(sum->addresses, uses.addresses);
    append(sum->pinned, uses.pinned);
    for (GraphUses::Payload payload : uses.payloads) {
      payload.node = node;
      sum->payloads.push_back(payload);
    }
    sort_out(*sum);
    if (sum->known) {
      found->second = std::move(sum);
    } else {
      all.erase(found);
    }
  });
}

void forget_graph_uses(CUgraphExec graph) noexcept {
  change([&](Uses& all) { all.erase(graph); });
}

void lose_all_graph_uses() noexcept {
  const LockGuard guard(g_lock);
  g_lost = true;
}

std::shared_ptr<const GraphUses> uses_of(CUgraphExec graph) noexcept {
  const LockGuard guard(g_lock);
  if (g_uses == nullptr || g_lost) return nullptr;
  const auto found = g_uses->find(graph);
  return found == g_uses->end() ? nullptr : found->second;
}

void forget_graph_uses_after_fork() noexcept {
  // What is in it is left alone: another thread may have been in the middle of it.
  g_lock = 0;
  g_uses = nullptr;
  g_lost = false;
}

}  // namespace memopt::agent
