#include "planner/iteration/operation_store.h"

#include <algorithm>
#include <bit>
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
}

std::uint32_t OperationStore::lane_of(std::uint32_t number) {
  std::uint32_t& recent = recent_lanes_[number % recent_lanes_.size()];
  if (recent < lanes_.size() && lanes_[recent].number == number) return recent;
  if (const auto found = lane_numbers_.find(number); found != lane_numbers_.end()) return recent = found->second;
  if (lanes_.size() >= kMaxLanes) return kMaxLanes - 1;
  const auto lane = static_cast<std::uint32_t>(lanes_.size());
  lanes_.emplace_back().number = number;
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
inline void OperationStore::add_access(std::uint64_t number, bool reads, bool writes, bool ambiguous) {
  if (number == 0) return;
  std::uint32_t index = 0;
  if (BlockNumbers::Entry* const entry = live_.find(number)) [[likely]] {
    index = entry->block;
    if (entry->watched) [[unlikely]] {
      StoredBlock& block = stored_block(index);
      block.doubtful = false;
      block.last_use = end_ - 1;
      entry->watched = !block.known;
    }
  } else if (live_.size() < kMaxLiveBlocks) {
    index = new_block(number);
    stored_block(index).last_use = end_ - 1;
    live_.insert(number, index, true);
    list(index, end_ - 1);
  }
  accesses_[access_end_++ & access_mask_] = Access{index & 0x1fffffffu, ambiguous, reads, writes};
}

inline void OperationStore::end_accesses() {
  Stored& stored = stored_[(end_ - 1) & mask_];
  stored.accesses = static_cast<std::uint16_t>(static_cast<std::uint32_t>(access_end_) - stored.first_access);
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
inline void OperationStore::make_room(std::size_t accesses) {
  const std::uint64_t ring = access_mask_ + 1;
  if ((access_end_ & access_mask_) + accesses > ring) [[unlikely]] {
    access_end_ = (access_end_ + access_mask_) & ~access_mask_;
  }
  while (end_ - first_ >= max_operations_ || (access_end_ + accesses - access_first_ > ring && first_ != end_))
    [[unlikely]] { forget_slice(); }
  if (end_ % slice_ == 0) [[unlikely]]
    mark();
}

inline void OperationStore::append(std::uint32_t lane_index, const shm::RecordView& record, OperationKind kind,
                                   std::uint64_t token, std::uint32_t block) {
  Lane& lane = lanes_[lane_index];
  Stored& stored = stored_[end_ & mask_];
  stored.sequence = record.header.sequence;
  stored.ticks = record.header.ticks;
  stored.lane_index = lane.operations.next_index();
  stored.first_access = static_cast<std::uint32_t>(access_end_);
  stored.block = block;
  stored.accesses = 0;
  stored.lane = static_cast<std::uint16_t>(lane_index & 0x1fff);
  stored.kind = static_cast<std::uint16_t>(static_cast<unsigned>(kind) & 7u);
  lane.operations.append(end_, token, lane_chunks_);
  ++end_;
}

void OperationStore::add(std::uint32_t lane, const shm::RecordView& record) {
  const shm::RecordKind kind = record.kind();
  last_sequence_ = std::max(last_sequence_, record.header.sequence);
  if (kind >= shm::RecordKind::kMalloc && kind <= shm::RecordKind::kMemset) add_record(lane_of(lane), record);
}

shm::RecordRun::Iterator OperationStore::add(std::uint32_t lane_number, shm::RecordRun::Iterator first,
                                             shm::RecordRun::Iterator last) {
  std::uint32_t lane = kNone;
  for (; first != last; ++first) {
    const shm::RecordView record = *first;
    const shm::RecordKind kind = record.kind();
    if (kind == shm::RecordKind::kState) break;
    last_sequence_ = std::max(last_sequence_, record.header.sequence);
    if (kind < shm::RecordKind::kMalloc || kind > shm::RecordKind::kMemset) continue;
    if (lane == kNone) lane = lane_of(lane_number);
    add_record(lane, record);
  }
  return first;
}

inline void OperationStore::add_record(std::uint32_t lane, const shm::RecordView& record) {
  switch (record.kind()) {
    case shm::RecordKind::kMalloc: {
      const auto body = record.as<shm::MallocBody>();
      const std::uint64_t flags = record.header.flags & shm::kForeign;
      const std::uint64_t token =
          combine(token_of(OperationKind::kMalloc, body.bytes, body.stack, body.return_address), flags);
      make_room(0);
      // A number that still lives: its free was not seen.
      if (BlockNumbers::Entry* const found = live_.find(body.block)) {
        bury(found->block);
        live_.erase(found);
      }
      const std::uint32_t index = new_block(body.block);
      StoredBlock& block = stored_block(index);
      block.bytes = body.bytes;
      block.token = token;
      block.return_address = body.return_address;
      block.birth = end_;
      block.lane = static_cast<std::uint16_t>(lane);
      block.known = true;
      if (body.block == 0 || live_.size() >= kMaxLiveBlocks) {
        bury(index);
      } else {
        block.placeable = flags == 0 && body.bytes != 0 && body.bytes <= kMaxPlacedBytes;
        live_.insert(body.block, index, false);
        if (block.placeable) live_bytes_ += body.bytes;
        peak_bytes_ = std::max(peak_bytes_, live_bytes_);
      }
      append(lane, record, OperationKind::kMalloc, token, index);
      if (block.placeable) {
        lanes_[lane].malloc_bytes += body.bytes;
        lanes_[lane].allocated += body.bytes;
      }
      break;
    }
    case shm::RecordKind::kFree: {
      make_room(0);
      BlockNumbers::Entry* const found = live_.find(record.as<shm::FreeBody>().block);
      if (found == nullptr) {
        append(lane, record, OperationKind::kFree, token_of(OperationKind::kFree, std::uint64_t{0}), kNone);
        break;
      }
      const std::uint32_t block = found->block;
      live_.erase(found);
      bury(block);
      append(lane, record, OperationKind::kFree, token_of(OperationKind::kFree, stored_block(block).token), block);
      break;
    }
    case shm::RecordKind::kLaunch: {
      const auto body = record.as<shm::LaunchBody>();
      make_room(body.accesses);
      append(lane, record, OperationKind::kLaunch, token_of(OperationKind::kLaunch, record.header.aux), kNone);
      for (std::uint32_t i = 0; i < body.accesses; ++i) {
        const std::uint64_t word = record.word_behind<shm::LaunchBody>(i);
        add_access(word & shm::kAccessBlock, (word & shm::kAccessReads) != 0, (word & shm::kAccessWrites) != 0,
                   (word & shm::kAccessAmbiguous) != 0);
      }
      end_accesses();
      break;
    }
    case shm::RecordKind::kCopy: {
      const auto body = record.as<shm::CopyBody>();
      make_room(2);
      append(lane, record, OperationKind::kCopy, token_of(OperationKind::kCopy, body.bytes, record.header.aux), kNone);
      add_access(body.from, true, false);
      add_access(body.to, false, true);
      end_accesses();
      break;
    }
    default: {
      const auto body = record.as<shm::MemsetBody>();
      make_room(1);
      append(lane, record, OperationKind::kMemset, token_of(OperationKind::kMemset, body.bytes), kNone);
      add_access(body.block, false, true);
      end_accesses();
      break;
    }
  }
}

void OperationStore::add_gap(std::span<const std::uint64_t> keep) {
  forget_before(end_);
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
      if (const std::uint64_t last = alive ? block.last_use : block.death; last >= first_) {
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
