#include "planner/iteration/operation_store.h"

#include <algorithm>

#include "planner/iteration/hash.h"

namespace memopt::planner {
namespace {

// More threads than this share the last lane, which then is never periodic.
constexpr std::uint32_t kMaxLanes = 4096;
// Live and merely named blocks; what comes beyond is one block without a name.
constexpr std::size_t kMaxLiveBlocks = std::size_t{4} << 20;
constexpr std::size_t kAccessesPerOperation = 8;  // on average; more only makes memory shorter

// One mixing per word, since millions a second are made.
template <typename... Words>
std::uint64_t token_of(OperationKind kind, Words... words) {
  std::uint64_t token = static_cast<std::uint64_t>(kind) + 1;
  ((token = mix(token) ^ words), ...);
  return mix(token);
}

}  // namespace

OperationStore::OperationStore(std::size_t max_operations)
    : max_operations_(std::max<std::size_t>(max_operations, 16)) {
  max_operations_ = std::min<std::size_t>(max_operations_, std::size_t{1} << 28);
  blocks_.emplace_back();  // the block without a name
  // Addresses only, until they are used: growing by copying would stop the reading of rings for too long.
  operations_.reserve(max_operations_ + 1);
  accesses_.reserve(max_operations_ * 2);
}

std::span<const Access> OperationStore::accesses(std::uint32_t operation) const {
  const std::size_t first = operations_[operation].first_access;
  const std::size_t end =
      operation + 1 < operations_.size() ? operations_[operation + 1].first_access : accesses_.size();
  return {accesses_.data() + first, end - first};
}

std::uint32_t OperationStore::lane_of(std::uint32_t number) {
  if (last_lane_ < lanes_.size() && lanes_[last_lane_].number == number) return last_lane_;
  if (const auto found = lane_numbers_.find(number); found != lane_numbers_.end()) return last_lane_ = found->second;
  if (lanes_.size() >= kMaxLanes) return kMaxLanes - 1;
  const auto lane = static_cast<std::uint32_t>(lanes_.size());
  lanes_.emplace_back().number = number;
  lane_numbers_.emplace(number, lane);
  return lane;
}

std::uint32_t OperationStore::block_of(std::uint64_t number) {
  // Blocks are named again and again.
  Recent& recent = recent_[number % recent_.size()];
  if (recent.number == number) return recent.block;
  if (const auto found = live_.find(number); found != live_.end()) {
    recent = {number, found->second};
    return found->second;
  }
  if (live_.size() >= kMaxLiveBlocks) return 0;
  const auto block = static_cast<std::uint32_t>(blocks_.size());
  Block& unknown = blocks_.emplace_back();
  unknown.number = number;
  live_.emplace(number, block);
  return block;
}

void OperationStore::add_access(std::uint64_t number, bool reads, bool writes, bool ambiguous) {
  if (number == 0) return;
  const std::uint32_t block = block_of(number);
  blocks_[block].doubtful = false;
  accesses_.push_back(Access{block & 0x1fffffffu, ambiguous, reads, writes});
}

void OperationStore::forget_name(std::unordered_map<std::uint64_t, std::uint32_t>::const_iterator name) {
  Recent& recent = recent_[name->first % recent_.size()];
  if (recent.number == name->first) recent = {};
  live_.erase(name);
}

void OperationStore::bury(std::uint32_t block, std::uint32_t operation) {
  blocks_[block].death = operation;
  if (blocks_[block].placeable) live_bytes_ -= blocks_[block].bytes;
}

void OperationStore::append(std::uint32_t lane, const shm::RecordView& record, OperationKind kind, std::uint64_t token,
                            std::uint32_t block) {
  Operation operation{};
  operation.token = token;
  operation.sequence = record.header.sequence;
  operation.ticks = record.header.ticks;
  operation.lane_index = static_cast<std::uint32_t>(lanes_[lane].operations.size());
  operation.first_access = static_cast<std::uint32_t>(accesses_.size());
  operation.block = block;
  operation.lane = static_cast<std::uint16_t>(lane);
  operation.kind = kind;
  lanes_[lane].operations.push_back(static_cast<std::uint32_t>(operations_.size()));
  operations_.push_back(operation);
}

void OperationStore::add(std::uint32_t lane_number, const shm::RecordView& record) {
  last_sequence_ = std::max(last_sequence_, record.header.sequence);
  const shm::RecordKind record_kind = record.kind();
  if (record_kind < shm::RecordKind::kMalloc || record_kind > shm::RecordKind::kMemset) return;
  const std::uint32_t lane = lane_of(lane_number);
  const auto here = static_cast<std::uint32_t>(operations_.size());
  switch (record_kind) {
    case shm::RecordKind::kMalloc: {
      const auto body = record.as<shm::MallocBody>();
      const std::uint64_t flags = record.header.flags & shm::kForeign;
      const std::uint64_t token =
          combine(token_of(OperationKind::kMalloc, body.bytes, body.stack, body.return_address), flags);
      // A number that still lives: its free was not seen.
      if (const auto found = live_.find(body.block); found != live_.end()) {
        bury(found->second, here);
        forget_name(found);
      }
      const auto index = static_cast<std::uint32_t>(blocks_.size());
      Block& block = blocks_.emplace_back();
      block.number = body.block;
      block.bytes = body.bytes;
      block.token = token;
      block.return_address = body.return_address;
      block.birth = here;
      block.lane = lane;
      block.known = true;
      block.placeable = flags == 0 && body.block != 0 && body.bytes != 0 && body.bytes <= kMaxPlacedBytes;
      if (body.block == 0 || live_.size() >= kMaxLiveBlocks) {
        block.placeable = false;
        block.death = here;
      } else {
        live_.emplace(body.block, index);
        if (block.placeable) live_bytes_ += body.bytes;
        peak_bytes_ = std::max(peak_bytes_, live_bytes_);
      }
      append(lane, record, OperationKind::kMalloc, token, index);
      if (block.placeable) lanes_[lane].malloc_bytes += body.bytes;
      break;
    }
    case shm::RecordKind::kFree: {
      const auto found = live_.find(record.as<shm::FreeBody>().block);
      const std::uint32_t block = found == live_.end() ? kNone : found->second;
      append(lane, record, OperationKind::kFree,
             token_of(OperationKind::kFree, block == kNone ? 0 : blocks_[block].token), block);
      if (block != kNone) {
        bury(block, here);
        forget_name(found);
      }
      break;
    }
    case shm::RecordKind::kLaunch: {
      append(lane, record, OperationKind::kLaunch, token_of(OperationKind::kLaunch, record.header.aux), kNone);
      const auto body = record.as<shm::LaunchBody>();
      for (std::uint32_t i = 0; i < body.accesses; ++i) {
        const std::uint64_t word = record.word_behind<shm::LaunchBody>(i);
        add_access(word & shm::kAccessBlock, (word & shm::kAccessReads) != 0, (word & shm::kAccessWrites) != 0,
                   (word & shm::kAccessAmbiguous) != 0);
      }
      break;
    }
    case shm::RecordKind::kCopy: {
      const auto body = record.as<shm::CopyBody>();
      append(lane, record, OperationKind::kCopy, token_of(OperationKind::kCopy, body.bytes, record.header.aux), kNone);
      add_access(body.from, true, false);
      add_access(body.to, false, true);
      break;
    }
    default: {
      const auto body = record.as<shm::MemsetBody>();
      append(lane, record, OperationKind::kMemset, token_of(OperationKind::kMemset, body.bytes), kNone);
      add_access(body.block, false, true);
      break;
    }
  }
  if (operations_.size() >= max_operations_ || accesses_.size() >= max_operations_ * kAccessesPerOperation ||
      blocks_.size() >= max_operations_ + 2 * kMaxLiveBlocks) {
    forget_before(static_cast<std::uint32_t>(operations_.size() / 2));
  }
}

void OperationStore::add_gap(std::span<const std::uint64_t> keep) {
  forget_before(static_cast<std::uint32_t>(operations_.size()));
  for (Block& block : blocks_) block.doubtful = true;
  peak_bytes_ = 0;
  for (const std::uint64_t number : keep) {
    if (const auto found = live_.find(number); found != live_.end()) blocks_[found->second].doubtful = false;
  }
}

std::vector<std::uint32_t> OperationStore::live_blocks() const {
  std::vector<std::uint32_t> live;
  live.reserve(live_.size());
  for (const auto& [number, block] : live_) live.push_back(block);
  std::sort(live.begin(), live.end());
  return live;
}

// In place: memory that has been touched is used again. Costs what is stored, once every half of max_operations_.
void OperationStore::forget_before(std::uint32_t first) {
  ++forgotten_;
  recent_ = {};
  const std::size_t count = operations_.size();
  const std::size_t first_access = first < count ? operations_[first].first_access : accesses_.size();
  const auto shifted = [first](std::uint32_t operation) {
    return operation == kNone || operation < first ? kNone : operation - first;
  };
  std::vector<bool> wanted(blocks_.size(), false);
  for (const auto& [number, block] : live_) wanted[block] = blocks_[block].known;
  for (std::size_t i = first_access; i < accesses_.size(); ++i) wanted[accesses_[i].block] = true;
  for (std::size_t i = first; i < count; ++i) {
    if (operations_[i].block != kNone) wanted[operations_[i].block] = true;
  }
  std::vector<std::uint32_t> moved(blocks_.size(), kNone);
  moved[0] = 0;
  std::uint32_t kept = 1;
  for (std::size_t i = 1; i < blocks_.size(); ++i) {
    if (!wanted[i]) continue;
    moved[i] = kept;
    Block block = blocks_[i];
    block.birth = shifted(block.birth);
    // A block that was freed before and is named afterwards stays dead.
    if (block.death != kNone) block.death = block.death < first ? 0 : block.death - first;
    blocks_[kept++] = block;
  }
  blocks_.resize(kept);
  for (auto entry = live_.begin(); entry != live_.end();) {
    if (moved[entry->second] == kNone) {
      entry = live_.erase(entry);
    } else {
      entry->second = moved[entry->second];
      ++entry;
    }
  }
  for (Lane& lane : lanes_) {
    lane.operations.clear();
    lane.malloc_bytes = 0;
  }
  for (std::size_t i = first; i < count; ++i) {
    Operation operation = operations_[i];
    Lane& lane = lanes_[operation.lane];
    operation.lane_index = static_cast<std::uint32_t>(lane.operations.size());
    operation.first_access -= static_cast<std::uint32_t>(first_access);
    if (operation.block != kNone) operation.block = moved[operation.block];
    lane.operations.push_back(static_cast<std::uint32_t>(i - first));
    operations_[i - first] = operation;
    if (operation.kind == OperationKind::kMalloc && blocks_[operation.block].placeable) {
      lane.malloc_bytes += blocks_[operation.block].bytes;
    }
  }
  operations_.resize(count - first);
  accesses_.erase(accesses_.begin(), accesses_.begin() + static_cast<std::ptrdiff_t>(first_access));
  for (Access& access : accesses_) access.block = moved[access.block] & 0x1fffffffu;
}

}  // namespace memopt::planner
