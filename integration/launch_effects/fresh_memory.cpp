#include "fresh_memory.h"

#include "options.h"

namespace launch_effects {
namespace {

struct Calls {
  decltype(&cuCtxGetDevice) device = reinterpret_cast<decltype(device)>(driver_function("cuCtxGetDevice"));
  CUresult (*synchronize)() = reinterpret_cast<decltype(synchronize)>(driver_function("cuCtxSynchronize"));
  decltype(&cuMemGetAllocationGranularity) granularity =
      reinterpret_cast<decltype(granularity)>(driver_function("cuMemGetAllocationGranularity"));
  decltype(&cuMemAddressReserve) reserve = reinterpret_cast<decltype(reserve)>(driver_function("cuMemAddressReserve"));
  decltype(&cuMemAddressFree) unreserve = reinterpret_cast<decltype(unreserve)>(driver_function("cuMemAddressFree"));
  decltype(&cuMemCreate) create = reinterpret_cast<decltype(create)>(driver_function("cuMemCreate"));
  decltype(&cuMemRelease) release = reinterpret_cast<decltype(release)>(driver_function("cuMemRelease"));
  decltype(&cuMemSetAccess) set_access = reinterpret_cast<decltype(set_access)>(driver_function("cuMemSetAccess"));

  bool all() const {
    return device != nullptr && synchronize != nullptr && granularity != nullptr && reserve != nullptr &&
           unreserve != nullptr && create != nullptr && release != nullptr && set_access != nullptr;
  }
};

const Calls& calls() {
  static const auto* const found = new Calls;
  return *found;
}

CUresult map(const Calls& driver, const CUmemAllocationProp& where, CUdeviceptr address, std::size_t size,
             CUmemGenericAllocationHandle handle) {
  CUresult result = LAUNCH_EFFECTS_NEXT(cuMemMap, address, size, 0, handle, 0);
  if (result != CUDA_SUCCESS) return result;
  const CUmemAccessDesc access{where.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  result = driver.set_access(address, size, &access, 1);
  if (result != CUDA_SUCCESS) LAUNCH_EFFECTS_NEXT(cuMemUnmap, address, size);
  return result;
}

}  // namespace

FreshMemory* FreshMemory::get() {
  if (options().decide.empty() || !options().decisions.empty()) return nullptr;
  static auto* const memory = new FreshMemory;
  return memory;
}

CUresult FreshMemory::allocate(CUdeviceptr* address, std::size_t size) {
  const Calls& driver = calls();
  if (!driver.all()) return CUDA_ERROR_NOT_SUPPORTED;
  CUmemAllocationProp where{};
  where.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  where.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  if (const CUresult result = driver.device(&where.location.id); result != CUDA_SUCCESS) return result;
  std::size_t granule = 0;
  if (const CUresult result = driver.granularity(&granule, &where, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      result != CUDA_SUCCESS)
    return result;
  const std::size_t rounded = (size + granule - 1) / granule * granule;
  CUmemGenericAllocationHandle handle = 0;
  if (const CUresult result = driver.create(&handle, rounded, &where, 0); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  const std::size_t addresses = rounded + granule;
  CUresult result = driver.reserve(address, addresses, granule, 0, 0);
  while (result != CUDA_SUCCESS && !former_.empty()) {
    forget_half();
    result = driver.reserve(address, addresses, granule, 0, 0);
  }
  if (result == CUDA_SUCCESS) {
    result = map(driver, where, *address, rounded, handle);
    if (result != CUDA_SUCCESS) driver.unreserve(*address, addresses);
  }
  if (result != CUDA_SUCCESS) {
    driver.release(handle);
    return result;
  }
  mappings_.emplace(*address, Mapping{rounded, addresses, handle});
  return CUDA_SUCCESS;
}

void FreshMemory::forget_half() {
  for (std::size_t left = (former_.size() + 1) / 2; left != 0; --left) {
    calls().unreserve(former_.front().address, former_.front().bytes);
    former_.pop_front();
  }
}

bool FreshMemory::owns(CUdeviceptr address) {
  const std::lock_guard lock(mutex_);
  return mappings_.contains(address);
}

CUresult FreshMemory::free(CUdeviceptr address) {
  const Calls& driver = calls();
  if (const CUresult result = driver.synchronize(); result != CUDA_SUCCESS) return result;
  std::unique_lock lock(mutex_);
  const auto node = mappings_.extract(address);
  lock.unlock();
  if (node.empty()) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = LAUNCH_EFFECTS_NEXT(cuMemUnmap, address, node.mapped().size);
  const CUresult released = driver.release(node.mapped().handle);
  if (result != CUDA_SUCCESS) return result;
  lock.lock();
  former_.push_back({address, node.mapped().addresses});
  return released;
}

}  // namespace launch_effects
