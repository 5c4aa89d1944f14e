#include "agent/memory/graph_names.h"

#include <algorithm>
#include <new>

namespace memopt::agent {

void GraphNames::begin(const void* stream) noexcept {
  ++now_;
  try {
    open_[stream] = now_;
  } catch (const std::bad_alloc&) {
    lost_ = true;
  }
}

void GraphNames::captured(const void* stream, const void* graph) noexcept {
  const auto begun = open_.find(stream);
  const Captures own{begun != open_.end() ? begun->second : 0, now_};
  try {
    const auto [known, is_new] = lives_.emplace(graph, own);
    if (!is_new) known->second = {std::min(known->second.first, own.first), own.last};
  } catch (const std::bad_alloc&) {
    lost_ = true;
  }
}

void GraphNames::made(const void* from, const void* to) noexcept {
  lives_.erase(to);
  added(from, to);
}

void GraphNames::added(const void* from, const void* into) noexcept {
  const auto source = lives_.find(from);
  if (source == lives_.end()) return;
  const Captures more = source->second;
  restore(into, more);
}

GraphNames::Captures GraphNames::forget(const void* graph) noexcept {
  const auto known = lives_.find(graph);
  if (known == lives_.end()) return {};
  const Captures captures = known->second;
  lives_.erase(known);
  return captures;
}

void GraphNames::restore(const void* graph, Captures captures) noexcept {
  if (captures.last == 0) return;
  try {
    const auto [known, is_new] = lives_.emplace(graph, captures);
    if (is_new) return;
    known->second = {std::min(known->second.first, captures.first), std::max(known->second.last, captures.last)};
  } catch (const std::bad_alloc&) {
    lost_ = true;
  }
}

bool GraphNames::hold(Captures named) const noexcept {
  if (lost_) return true;
  const auto meets = [&](Captures captures) { return captures.first <= named.last && named.first <= captures.last; };
  return std::any_of(open_.begin(), open_.end(),
                     [&](const auto& one) {
                       return meets({one.second, now_});
                     }) ||
         std::any_of(lives_.begin(), lives_.end(), [&](const auto& one) { return meets(one.second); });
}

}  // namespace memopt::agent
