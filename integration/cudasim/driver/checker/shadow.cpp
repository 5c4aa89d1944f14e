#include "checker/shadow.h"

#include <algorithm>
#include <utility>

namespace cudasim {

void Shadow::split(std::uint64_t at) {
  auto next = segments_.upper_bound(at);
  if (next == segments_.begin()) return;
  const auto holder = std::prev(next);
  if (holder->first == at || holder->second.end <= at) return;
  Segment right = holder->second;
  holder->second.end = at;
  segments_.emplace_hint(next, at, std::move(right));
}

void Shadow::report_unordered(const Segment& segment, std::uint64_t begin, const VectorClock& clock,
                              const Conflict& conflict) {
  if (segment.writer && segment.writer_kind != AccessKind::kReserve && !segment.writer->before(clock)) {
    conflict(*segment.writer, segment.writer_kind, begin, segment.end);
  }
  for (const AccessorPtr& reader : segment.readers) {
    if (!reader->before(clock)) conflict(*reader, AccessKind::kRead, begin, segment.end);
  }
}

// A reader that is ordered before the new one need not be kept: what is ordered behind the new one is behind it too.
void Shadow::add_reader(Segment& segment, const AccessorPtr& reader, const VectorClock& clock) {
  std::erase_if(segment.readers, [&](const AccessorPtr& earlier) { return earlier->before(clock); });
  segment.readers.push_back(reader);
}

Shadow::Segments::iterator Shadow::merge_with_previous(Segments::iterator segment) {
  if (segment == segments_.begin()) return segment;
  const auto previous = std::prev(segment);
  if (previous->second.end != segment->first || previous->second.writer != segment->second.writer ||
      previous->second.writer_kind != segment->second.writer_kind ||
      previous->second.readers != segment->second.readers) {
    return segment;
  }
  previous->second.end = segment->second.end;
  segments_.erase(segment);
  return previous;
}

void Shadow::read(std::uint64_t begin, std::uint64_t end, const AccessorPtr& reader, const VectorClock& clock,
                  const Conflict& conflict) {
  if (begin >= end) return;
  split(begin);
  split(end);
  std::uint64_t at = begin;
  auto segment = segments_.lower_bound(begin);
  while (at < end) {
    if (segment == segments_.end() || segment->first > at) {  // a gap: never accessed
      const std::uint64_t gap_end = segment == segments_.end() ? end : std::min(end, segment->first);
      segment = segments_.emplace_hint(segment, at, Segment{gap_end, nullptr, {reader}});
    } else if (!segment->second.accessible()) {
      conflict(*segment->second.writer, segment->second.writer_kind, segment->first, segment->second.end);
    } else {
      if (segment->second.writer && !segment->second.writer->before(clock)) {
        conflict(*segment->second.writer, segment->second.writer_kind, segment->first, segment->second.end);
      }
      add_reader(segment->second, reader, clock);
    }
    at = segment->second.end;
    segment = std::next(merge_with_previous(segment));
  }
  if (segment != segments_.end()) merge_with_previous(segment);
}

void Shadow::write(std::uint64_t begin, std::uint64_t end, const AccessorPtr& writer, const VectorClock& clock,
                   const Conflict& conflict) {
  if (begin >= end) return;
  split(begin);
  split(end);
  // What is freed stays freed.
  std::uint64_t at = begin;
  for (auto segment = segments_.lower_bound(begin); segment != segments_.end() && segment->first < end;) {
    if (!segment->second.accessible()) {
      conflict(*segment->second.writer, segment->second.writer_kind, segment->first, segment->second.end);
      const std::uint64_t freed_begin = segment->first;
      const std::uint64_t freed_end = segment->second.end;
      put(at, {freed_begin, writer, {}});
      at = freed_end;
      segment = segments_.lower_bound(freed_end);
      continue;
    }
    report_unordered(segment->second, segment->first, clock, conflict);
    segment = segments_.erase(segment);
  }
  put(at, {end, writer, {}});
}

// Where nothing is known. Nothing happens for an empty segment.
void Shadow::put(std::uint64_t begin, Segment segment) {
  if (begin >= segment.end) return;
  const auto added = merge_with_previous(segments_.emplace(begin, std::move(segment)).first);
  if (const auto next = std::next(added); next != segments_.end()) merge_with_previous(next);
}

void Shadow::allocate(std::uint64_t begin, std::uint64_t end, const AccessorPtr& by, const VectorClock& clock,
                      const Conflict& conflict) {
  if (begin >= end) return;
  split(begin);
  split(end);
  auto segment = segments_.lower_bound(begin);
  while (segment != segments_.end() && segment->first < end) {
    // Who takes freed bytes has asked for the order; it need not be one that the program may rely on.
    if (segment->second.accessible()) report_unordered(segment->second, segment->first, clock, conflict);
    segment = segments_.erase(segment);
  }
  put(begin, {end, by, {}, AccessKind::kAllocate});
}

void Shadow::free_in_order(std::uint64_t begin, std::uint64_t end, const AccessorPtr& by, const VectorClock& clock,
                           const Conflict& conflict) {
  if (begin >= end) return;
  forget(begin, end, clock, conflict);
  put(begin, {end, by, {}, AccessKind::kFreeInOrder});
}

void Shadow::reserve(std::uint64_t begin, std::uint64_t end, const AccessorPtr& by) {
  if (begin >= end) return;
  split(begin);
  split(end);
  segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(end));
  put(begin, {end, by, {}, AccessKind::kReserve});
}

void Shadow::forget(std::uint64_t begin, std::uint64_t end, const VectorClock& clock, const Conflict& conflict) {
  if (begin >= end) return;
  split(begin);
  split(end);
  auto segment = segments_.lower_bound(begin);
  while (segment != segments_.end() && segment->first < end) {
    report_unordered(segment->second, segment->first, clock, conflict);
    segment = segments_.erase(segment);
  }
}

}  // namespace cudasim
