#include "planner/iteration/operation_store.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "planner/iteration/hash.h"

namespace memopt::planner {
namespace {

// More threads than this share the last lane, which then is never periodic.
constexpr std::uint32_t kMaxLanes = 4096;
// Live and merely named blocks; what comes beyond is one block without a name.
constexpr std::size_t kMaxLiveBlocks = std::size_t{4} << 20;
constexpr std::size_t kAccessesPerOperation = 8;  // on average; more only makes memory shorter
constexpr std::size_t kMostAccesses = shm::kMaxRecordBytes / sizeof(std::uint64_t);
constexpr std::uint64_t kSlicesOfMemory = 64;
constexpr std::size_t kMostEscapes = 4096;
constexpr std::uint64_t kLooksPerRecord = 64;
constexpr std::uint64_t kMostLooks = std::uint64_t{1} << 26;

// One mixing per word, since millions a second are made.
template <typename... Words>
std::uint64_t token_of(OperationKind kind, Words... words) {
  std::uint64_t token = static_cast<std::uint64_t>(kind) + 1;
  ((token = mix(token) ^ words), ...);
  return mix(token);
}

}  // namespace

OperationStore::OperationStore(std::size_t max_operations)
    : max_operations_(std::clamp<std::size_t>(max_operations, 16, std::size_t{1} << 28)) {
  // Addresses only, until they are used.
  const std::uint64_t room = std::bit_ceil(max_operations_);
  stored_ = std::make_unique_for_overwrite<Stored[]>(room);
  mask_ = room - 1;
  slice_ = std::max<std::uint64_t>(room / kSlicesOfMemory, 1);
  // No operation's accesses are parted by the end of the ring, and those of two have room.
  const std::uint64_t accesses = std::max<std::uint64_t>(room * kAccessesPerOperation, 4 * kMostAccesses);
  accesses_ = std::make_unique_for_overwrite<Access[]>(accesses);
  access_mask_ = accesses - 1;
  listed_.fill(kNone);
  new_block(0);  // the block without a name
  mark();
  set_stops();
}

std::uint32_t OperationStore::lane_of(std::uint32_t number) {
  std::uint32_t& recent = recent_lanes_[number % recent_lanes_.size()];
  if (recent < lanes_.size() && lanes_[recent].number == number) return recent;
  if (const auto found = lane_numbers_.find(number); found != lane_numbers_.end()) return recent = found->second;
  if (lanes_.size() >= kMaxLanes) return kMaxLanes - 1;
  const auto lane = static_cast<std::uint32_t>(lanes_.size());
  Lane& added = lanes_.emplace_back();
  added.number = number;
  added.operations.forget(0, first_, lane_chunks_);
  lane_numbers_.emplace(number, lane);
  return lane;
}

std::uint32_t OperationStore::new_block(std::uint64_t number) {
  std::uint32_t index = free_block_;
  if (index != kNone) {
    free_block_ = stored_block(index).next;
  } else {
    index = block_count_++;
    if ((index & kBlockChunkMask) == 0) {
      blocks_.push_back(std::make_unique_for_overwrite<StoredBlock[]>(kBlockChunkMask + 1));
    }
  }
  StoredBlock& block = stored_block(index);
  block = StoredBlock{};
  block.number = number;
  return index;
}

// The block is to be looked at when position `until` is forgotten.
void OperationStore::list(std::uint32_t index, std::uint64_t until) {
  StoredBlock& block = stored_block(index);
  if (block.listed) return;
  std::uint32_t& head = listed_[until / slice_ % kSlices];
  block.listed = true;
  block.next = head;
  head = index;
}

// Of the operation that was appended last.
[[gnu::always_inline]] inline void OperationStore::add_access(std::uint64_t number, bool reads, bool writes,
                                                              bool ambiguous) {
  if (number == 0) return;
  std::uint32_t index = 0;
  if (BlockNumbers::Entry* const entry = live_.find(number)) [[likely]] {
    index = entry->block;
    if (entry->watched) [[unlikely]] {
      StoredBlock& block = stored_block(index);
      block.doubtful = false;
      if (!block.known) block.address_or_last_use = end_ - 1;
      entry->watched = !block.known;
    }
  } else if (live_.size() < kMaxLiveBlocks) {
    index = new_block(number);
    stored_block(index).address_or_last_use = end_ - 1;
    live_.insert(number, index, true);
    list(index, end_ - 1);
  }
  accesses_[access_end_++ & access_mask_] = Access{index & Access::kBlockMask, ambiguous, reads, writes};
}

// Dead from the operation on that comes next.
void OperationStore::bury(std::uint32_t index) {
  StoredBlock& block = stored_block(index);
  block.death = end_;
  if (block.placeable) live_bytes_ -= block.bytes;
  list(index, end_);
}

void OperationStore::mark() {
  Mark& mark = marks_[end_ / slice_ % kSlices];
  mark.lanes.clear();
  for (const Lane& lane : lanes_) mark.lanes.push_back({lane.operations.end(), lane.allocated});
  mark.access_end = access_end_;
}

// For one more operation with at most so many accesses.
[[gnu::noinline]] void OperationStore::make_room(std::size_t accesses) {
  const std::uint64_t ring = access_mask_ + 1;
  if ((access_end_ & access_mask_) + accesses > ring) access_end_ = (access_end_ + access_mask_) & ~access_mask_;
  while (end_ - first_ >= max_operations_ || (access_end_ + accesses - access_first_ > ring && first_ != end_)) {
    forget_slice();
  }
  if (end_ % slice_ == 0) mark();
  set_stops();
}

// Up to where there is nothing to do but to write.
void OperationStore::set_stops() {
  const std::uint64_t ring = access_mask_ + 1;
  stop_ = std::min(first_ + max_operations_, (end_ / slice_ + 1) * slice_);
  access_stop_ = std::min(access_first_ + ring, (access_end_ & ~access_mask_) + ring);
}

namespace {

template <typename Value>
Value load(const std::byte* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// As shm::RecordHeader; taken field by field, they stay in registers.
struct Header {
  shm::RecordKind kind;
  std::uint8_t flags;
  std::uint32_t aux;
  std::uint64_t sequence;
  std::uint64_t ticks;

  bool is_operation() const { return kind >= shm::RecordKind::kMalloc && kind <= shm::RecordKind::kMemset; }
};

Header header_at(const std::byte* record) {
  return {load<shm::RecordKind>(record + offsetof(shm::RecordHeader, kind)),
          load<std::uint8_t>(record + offsetof(shm::RecordHeader, flags)),
          load<std::uint32_t>(record + offsetof(shm::RecordHeader, aux)),
          load<std::uint64_t>(record + offsetof(shm::RecordHeader, sequence)),
          load<std::uint64_t>(record + offsetof(shm::RecordHeader, ticks))};
}

}  // namespace

// Operations of one lane are written through it.
class OperationStore::Appender {
 public:
  Appender(OperationStore& store, std::uint32_t lane) : store_(store), lane_(store.lanes_[lane]), index_(lane) {}

  // A record of one of the kinds from kMalloc to kMemset.
  [[gnu::always_inline]] void add(const Header& header, const std::byte* body) {
    switch (header.kind) {
      case shm::RecordKind::kMalloc:
        return add_malloc(header, load<shm::MallocBody>(body));
      case shm::RecordKind::kFree:
        return add_free(header, load<shm::FreeBody>(body));
      case shm::RecordKind::kLaunch: {
        std::uint32_t accesses;
        std::memcpy(&accesses, body + offsetof(shm::LaunchBody, accesses), sizeof(accesses));
        make_room(accesses);
        append(header, OperationKind::kLaunch, token_of(OperationKind::kLaunch, header.aux), kNone);
        for (body += sizeof(shm::LaunchBody); accesses > 0; --accesses, body += sizeof(std::uint64_t)) {
          const auto word = load<std::uint64_t>(body);
          store_.add_access(word & shm::kAccessBlock, (word & shm::kAccessReads) != 0, (word & shm::kAccessWrites) != 0,
                            (word & shm::kAccessAmbiguous) != 0);
        }
        break;
      }
      case shm::RecordKind::kCopy: {
        const auto copy = load<shm::CopyBody>(body);
        make_room(2);
        append(header, OperationKind::kCopy, token_of(OperationKind::kCopy, copy.bytes, header.aux), kNone);
        store_.add_access(copy.from, true, false);
        store_.add_access(copy.to, false, true);
        break;
      }
      default: {
        const auto fill = load<shm::MemsetBody>(body);
        make_room(1);
        append(header, OperationKind::kMemset, token_of(OperationKind::kMemset, fill.bytes), kNone);
        store_.add_access(fill.block, false, true);
        break;
      }
    }
    Stored& last = store_.stored_[(store_.end_ - 1) & store_.mask_];
    last.accesses = static_cast<std::uint16_t>(static_cast<std::uint32_t>(store_.access_end_) - last.first_access);
  }

 private:
  void make_room(std::size_t accesses) {
    if (store_.end_ == store_.stop_ || store_.access_end_ + accesses > store_.access_stop_) [[unlikely]] {
      store_.make_room(accesses);
    }
  }

  void append(const Header& header, OperationKind kind, std::uint64_t token, std::uint32_t block) {
    const std::uint64_t here = store_.end_;
    store_.end_ = here + 1;
    store_.stored_[here & store_.mask_] = {header.sequence,
                                           header.ticks,
                                           lane_.operations.next_index(),
                                           static_cast<std::uint32_t>(store_.access_end_),
                                           block,
                                           0,
                                           static_cast<std::uint16_t>(index_ & 0x1fff),
                                           static_cast<std::uint16_t>(static_cast<unsigned>(kind) & 7u)};
    lane_.operations.append(here, token, store_.lane_chunks_);
  }

  void add_malloc(const Header& header, const shm::MallocBody& body) {
    const std::uint64_t flags = header.flags & shm::kForeign;
    const std::uint64_t token =
        combine(token_of(OperationKind::kMalloc, body.bytes, body.stack, body.return_address), flags);
    make_room(0);
    // A number that still lives: its free was not seen.
    if (BlockNumbers::Entry* const found = store_.live_.find(body.block)) {
      store_.bury(found->block);
      store_.live_.erase(found);
    }
    const std::uint32_t index = store_.new_block(body.block);
    StoredBlock& block = store_.stored_block(index);
    block.bytes = body.bytes;
    block.token = token;
    block.return_address = body.return_address;
    block.address_or_last_use = body.address;
    block.birth = store_.end_;
    block.lane = static_cast<std::uint16_t>(index_);
    block.known = true;
    block.stays = (header.flags & shm::kStays) != 0;
    if (body.block == 0 || store_.live_.size() >= kMaxLiveBlocks) {
      store_.bury(index);
    } else {
      store_.live_.insert(body.block, index, false);
      block.placeable = flags == 0 && body.bytes != 0 && body.bytes <= kMaxPlacedBytes;
    }
    if (block.placeable) {
      store_.live_bytes_ += body.bytes;
      store_.peak_bytes_ = std::max(store_.peak_bytes_, store_.live_bytes_);
      lane_.malloc_bytes += body.bytes;
      lane_.allocated += body.bytes;
    }
    append(header, OperationKind::kMalloc, token, index);
  }

  void add_free(const Header& header, const shm::FreeBody& body) {
    make_room(0);
    BlockNumbers::Entry* const found = store_.live_.find(body.block);
    if (found == nullptr) {
      return append(header, OperationKind::kFree, token_of(OperationKind::kFree, std::uint64_t{0}), kNone);
    }
    const std::uint32_t block = found->block;
    store_.live_.erase(found);
    store_.bury(block);
    append(header, OperationKind::kFree, token_of(OperationKind::kFree, store_.stored_block(block).token), block);
  }

  OperationStore& store_;
  Lane& lane_;
  const std::uint32_t index_;
};

void OperationStore::add(std::uint32_t lane, const shm::RecordView& record) {
  last_sequence_ = std::max(last_sequence_, record.header.sequence);
  const Header header{record.kind(), record.header.flags, record.header.aux, record.header.sequence,
                      record.header.ticks};
  if (header.is_operation()) Appender(*this, lane_of(lane)).add(header, record.body.data());
  if (header.kind == shm::RecordKind::kEscape) keep_here(record.as<shm::EscapeBody>().block);
}

void OperationStore::keep_here(std::uint64_t number) {
  if (number == 0) return;
  if (escapes_.size() == kMostEscapes) {
    escapes_.erase(escapes_.begin(), escapes_.begin() + kMostEscapes / 2);
    escapes_forgotten_ += kMostEscapes / 2;
  }
  const std::uint32_t block = find_block(number);
  if (block != kNone) stored_block(block).stays = true;
  escapes_.push_back({number, block});
}

std::uint32_t OperationStore::find_block(std::uint64_t number) {
  if (const BlockNumbers::Entry* const found = live_.find(number)) return found->block;
  // Freed meanwhile. Few are, as a rule.
  looks_ = std::min(looks_ + kLooksPerRecord * (last_sequence_ - looks_until_), kMostLooks);
  looks_until_ = last_sequence_;
  if (looks_ < block_count_) return kNone;
  looks_ -= block_count_;
  for (std::uint32_t index = 1; index < block_count_; ++index) {
    if (stored_block(index).number == number) return index;
  }
  return kNone;
}

shm::RecordRun::Iterator OperationStore::add(std::uint32_t lane, shm::RecordRun::Iterator first,
                                             shm::RecordRun::Iterator last) {
  std::optional<Appender> appender;
  std::uint64_t sequence = last_sequence_;
  for (; first != last; ++first) {
    const Header header = header_at(first.bytes());
    if (header.kind == shm::RecordKind::kState) break;
    sequence = std::max(sequence, header.sequence);
    if (header.kind == shm::RecordKind::kEscape) {
      last_sequence_ = sequence;
      keep_here(load<std::uint64_t>(first.bytes() + sizeof(shm::RecordHeader)));
    }
    if (!header.is_operation()) continue;
    if (!appender) [[unlikely]]
      appender.emplace(*this, lane_of(lane));
    appender->add(header, first.bytes() + sizeof(shm::RecordHeader));
  }
  last_sequence_ = sequence;
  return first;
}

void OperationStore::add_gap(std::span<const std::uint64_t> keep) {
  forget_before(end_);
  set_stops();
  live_.for_each([this](BlockNumbers::Entry& entry) {
    stored_block(entry.block).doubtful = true;
    entry.watched = true;
  });
  peak_bytes_ = 0;
  for (const std::uint64_t number : keep) {
    if (const BlockNumbers::Entry* found = live_.find(number)) stored_block(found->block).doubtful = false;
  }
}

std::vector<std::uint32_t> OperationStore::live_blocks() const {
  std::vector<BlockNumbers::Entry> entries;
  entries.reserve(live_.size());
  live_.for_each([&](const BlockNumbers::Entry& entry) { entries.push_back(entry); });
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  std::vector<std::uint32_t> live;
  live.reserve(entries.size());
  for (const BlockNumbers::Entry& entry : entries) live.push_back(entry.block);
  return live;
}

void OperationStore::forget_slice() { forget_before(std::min((first_ / slice_ + 1) * slice_, end_)); }

// `first` is where a slice begins, or the end.
void OperationStore::forget_before(std::uint64_t first) {
  ++forgotten_;
  const std::uint64_t first_slice = first_ / slice_;
  const std::uint64_t past_slice = (first + slice_ - 1) / slice_;
  first_ = first;
  if (first == end_) {
    access_first_ = access_end_;
    for (Lane& lane : lanes_) {
      lane.operations.forget(lane.operations.end(), first, lane_chunks_);
      lane.malloc_bytes = 0;
    }
  } else {
    const Mark& mark = marks_[first / slice_ % kSlices];
    access_first_ = mark.access_end;
    // Lanes that came later begin behind it.
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const Mark::LaneMark then = i < mark.lanes.size() ? mark.lanes[i] : Mark::LaneMark{0, 0};
      lanes_[i].operations.forget(then.end, first, lane_chunks_);
      lanes_[i].malloc_bytes = lanes_[i].allocated - then.allocated;
    }
  }
  // No operation and no access that is stored names a block any more which died before.
  for (std::uint64_t slice = first_slice; slice < past_slice; ++slice) {
    std::uint32_t index = std::exchange(listed_[slice % kSlices], kNone);
    while (index != kNone) {
      StoredBlock& block = stored_block(index);
      const std::uint32_t next = block.next;
      const bool alive = block.death == kNever;
      block.listed = false;
      if (const std::uint64_t last = alive ? block.address_or_last_use : block.death; last >= first_) {
        list(index, last);
      } else {
        if (alive) live_.erase(live_.find(block.number));
        block.next = free_block_;
        free_block_ = index;
      }
      index = next;
    }
  }
}

}  // namespace memopt::planner
