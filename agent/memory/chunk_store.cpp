#include "agent/memory/chunk_store.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "agent/memory/rounding.h"
#include "agent/process/log.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kRangeFactor = 16;  // addresses are plentiful, and every window of a plan wants its own
constexpr std::uint64_t kLeastRange = std::uint64_t{64} << 30;

}  // namespace

bool ChunkStore::start(CUdevice device, std::string* why) {
  int supported = 0;
  if (driver_.device_attribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) !=
          CUDA_SUCCESS ||
      supported == 0) {
    *why = "the device or its driver has no virtual memory management (cuMemCreate)";
    return false;
  }
  device_ = device;
  properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties_.location.id = device;
  // As the driver's own allocations are where the device can: network cards read and write the blocks too.
  int direct = 0;
  if (driver_.device_attribute(&direct, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device) ==
      CUDA_SUCCESS) {
    properties_.allocFlags.gpuDirectRDMACapable = direct != 0 ? 1 : 0;
  }
  access_.location = properties_.location;
  access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  std::size_t granularity = 0;
  const CUresult asked = driver_.granularity(&granularity, &properties_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  if (asked != CUDA_SUCCESS || granularity == 0) {
    *why = fmt::format("the driver does not tell the granularity of its virtual memory (error {})",
                       static_cast<int>(asked));
    return false;
  }
  chunk_bytes_ = granularity;
  std::size_t free = 0;
  std::size_t total = 0;
  if (driver_.mem_get_info(&free, &total) != CUDA_SUCCESS || total == 0) {
    *why = "the driver does not tell how much memory the device has";
    return false;
  }
  device_bytes_ = round_up(total, chunk_bytes_);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (std::uint64_t factor = kRangeFactor; factor != 0; factor /= 2) {
    range_bytes_ = std::max(round_up(total * factor, chunk_bytes_), kLeastRange);
    CUdeviceptr address = 0;
    ++counts_.vmm_calls;
    result = driver_.address_reserve(&address, range_bytes_, chunk_bytes_, 0, 0);
    if (result == CUDA_SUCCESS) {
      range_begin_ = address;
      break;
    }
  }
  if (result != CUDA_SUCCESS) {
    *why = fmt::format("the driver reserves no range of addresses (error {})", static_cast<int>(result));
    return false;
  }
  const std::size_t pages = static_cast<std::size_t>(range_bytes_ / chunk_bytes_);
  void* const table = mmap(nullptr, pages * sizeof(Window*), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) {
    driver_.address_free(range_begin_, range_bytes_);
    *why = fmt::format("no host memory for a table of {} pages", pages);
    return false;
  }
  pages_ = static_cast<Window**>(table);
  free_.emplace(range_begin_, range_bytes_);
  free_by_bytes_.emplace(range_bytes_, range_begin_);
  return true;
}

void ChunkStore::end() noexcept {
  if (pages_ == nullptr) return;
  munmap(pages_, static_cast<std::size_t>(range_bytes_ / chunk_bytes_) * sizeof(Window*));
  pages_ = nullptr;
  const CUresult result = driver_.address_free(range_begin_, range_bytes_);
  if (result != CUDA_SUCCESS) {
    log(LogLevel::kWarn, "the driver did not take back a range of {} addresses (error {})", range_bytes_,
        static_cast<int>(result));
  }
}

std::uint64_t ChunkStore::reserve(std::uint64_t bytes) noexcept {
  const std::uint64_t wanted = round_up(bytes, chunk_bytes_) + chunk_bytes_;
  const auto smallest = free_by_bytes_.lower_bound(Piece{wanted, 0});
  if (smallest == free_by_bytes_.end()) return 0;
  // The rest keeps the piece's entries: nothing is allocated.
  auto by_bytes = free_by_bytes_.extract(smallest);
  const auto [size, address] = by_bytes.value();
  auto by_address = free_.extract(address);
  if (size > wanted) {
    by_bytes.value() = {size - wanted, address + wanted};
    free_by_bytes_.insert(std::move(by_bytes));
    by_address.key() = address + wanted;
    by_address.mapped() = size - wanted;
    free_.insert(std::move(by_address));
  }
  return address;
}

std::uint64_t ChunkStore::used_end() const noexcept {
  const std::uint64_t end = range_begin_ + range_bytes_;
  if (free_.empty()) return end;
  const auto last = std::prev(free_.end());
  return last->first + last->second == end ? last->first : end;
}

void ChunkStore::unreserve(std::uint64_t address, std::uint64_t bytes) noexcept {
  std::uint64_t size = round_up(bytes, chunk_bytes_) + chunk_bytes_;
  // Joined with its free neighbours, in the entries of one of them.
  decltype(free_)::node_type by_address;
  decltype(free_by_bytes_)::node_type by_bytes;
  const auto take_out = [&](auto piece) {
    by_bytes = free_by_bytes_.extract(Piece{piece->second, piece->first});
    by_address = free_.extract(piece);
  };
  const auto after = free_.lower_bound(address);
  if (after != free_.end() && after->first == address + size) {
    size += after->second;
    take_out(after);
  }
  const auto behind = free_.lower_bound(address);
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == address) {
      address = before->first;
      size += before->second;
      take_out(before);
    }
  }
  if (by_address.empty()) {
    try {
      const auto made = free_.emplace(address, size).first;
      try {
        free_by_bytes_.emplace(size, address);
      } catch (const std::bad_alloc&) {
        free_.erase(made);
      }
    } catch (const std::bad_alloc&) {
      // These addresses are used no more; there are plenty.
    }
    return;
  }
  by_bytes.value() = {size, address};
  free_by_bytes_.insert(std::move(by_bytes));
  by_address.key() = address;
  by_address.mapped() = size;
  free_.insert(std::move(by_address));
}

CUresult ChunkStore::create(Chunk** chunk) {
  if (!within_limit(1)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto made = std::make_unique<Chunk>();
  ++counts_.vmm_calls;
  const CUresult result = driver_.create(&made->handle, chunk_bytes_, &properties_, 0);
  if (result != CUDA_SUCCESS) return result;
  counts_.held_bytes += chunk_bytes_;
  counts_.peak_bytes = std::max(counts_.peak_bytes, counts_.held_bytes);
  peak_of_late_ = std::max(peak_of_late_, counts_.held_bytes);
  if (limit_is_device_) limit_ = std::max(limit_, counts_.held_bytes);
  *chunk = made.release();
  return CUDA_SUCCESS;
}

bool ChunkStore::could_create(std::size_t count) const noexcept {
  if (!within_limit(count)) return false;
  std::size_t free = 0;
  std::size_t total = 0;
  return driver_.mem_get_info(&free, &total) != CUDA_SUCCESS || free / chunk_bytes_ >= count;
}

void ChunkStore::release(Chunk* chunk) {
  ++counts_.vmm_calls;
  const CUresult result = driver_.release(chunk->handle);
  if (result != CUDA_SUCCESS) {
    log(LogLevel::kWarn, "the driver did not take back a chunk of {} bytes (error {})", chunk_bytes_,
        static_cast<int>(result));
  }
  counts_.held_bytes -= chunk_bytes_;
  delete chunk;
}

CUresult ChunkStore::map(std::uint64_t address, const std::vector<Chunk*>& chunks) {
  CUresult result = CUDA_SUCCESS;
  std::size_t mapped = 0;
  for (; mapped < chunks.size(); ++mapped) {
    ++counts_.vmm_calls;
    result = driver_.map(address + mapped * chunk_bytes_, chunk_bytes_, 0, chunks[mapped]->handle, 0);
    if (result != CUDA_SUCCESS) break;
  }
  if (result == CUDA_SUCCESS) {
    ++counts_.vmm_calls;
    result = driver_.set_access(address, chunks.size() * chunk_bytes_, &access_, 1);
  }
  if (result != CUDA_SUCCESS && mapped != 0) unmap(address, mapped * chunk_bytes_);
  return result;
}

CUresult ChunkStore::unmap(std::uint64_t address, std::uint64_t bytes) {
  ++counts_.vmm_calls;
  const CUresult result = driver_.unmap(address, bytes);
  if (result != CUDA_SUCCESS) {
    log(LogLevel::kWarn, "the driver did not unmap {} bytes at {:#x} (error {})", bytes, address,
        static_cast<int>(result));
  }
  return result;
}

void ChunkStore::set_window(std::uint64_t address, std::uint64_t bytes, Window* window) {
  // The unmapped chunk behind belongs to it too: a pointer to the end of a block lies there.
  const std::size_t first = static_cast<std::size_t>((address - range_begin_) / chunk_bytes_);
  const std::size_t count = static_cast<std::size_t>(round_up(bytes, chunk_bytes_) / chunk_bytes_) + 1;
  std::fill_n(pages_ + first, count, window);
}

}  // namespace memopt::agent
