// Stream-ordered memory and its pools.
#include <array>

#include "awkward.h"

namespace awkward {
namespace {

CUmemPoolProps properties() {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = device;
  return props;
}

unsigned long long amount(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  check(cuMemPoolGetAttribute(pool, attribute, &value), "cuMemPoolGetAttribute");
  return value;
}

void use(CUmemoryPool pool, CUstream stream) {
  CUdeviceptr a = 0, b = 0;
  check(cuMemAllocFromPoolAsync(&a, kBytes, pool, stream), "cuMemAllocFromPoolAsync");
  check(cuMemAllocFromPoolAsync(&b, kBytes, pool, stream), "cuMemAllocFromPoolAsync");
  refill(a, 1, kBytes, stream);
  refill(b, 2, kBytes, stream);
  launch(stream, "add", kWords, a, b, kWords);
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  contents("sum", a);
  say("used", amount(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  check(cuMemFreeAsync(a, stream), "cuMemFreeAsync");
  check(cuMemFreeAsync(b, stream), "cuMemFreeAsync");
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  say("used then", amount(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
}

void of_the_device() {
  CUmemoryPool standard = nullptr, current = nullptr;
  check(cuDeviceGetDefaultMemPool(&standard, device), "cuDeviceGetDefaultMemPool");
  check(cuDeviceGetMemPool(&current, device), "cuDeviceGetMemPool");
  say("the same", standard == current ? 1 : 0);
  const CUstream stream = make_stream();
  use(standard, stream);
  show("trimmed", cuMemPoolTrimTo(standard, 0));
  check(cuStreamDestroy(stream), "cuStreamDestroy");
}

void own() {
  CUmemoryPool pool = nullptr, before = nullptr, pool_of = nullptr;
  const CUmemPoolProps props = properties();
  check(cuMemPoolCreate(&pool, &props), "cuMemPoolCreate");
  const CUstream stream = make_stream();
  use(pool, stream);
  check(cuDeviceGetMemPool(&before, device), "cuDeviceGetMemPool");
  check(cuDeviceSetMemPool(device, pool), "cuDeviceSetMemPool");
  CUdeviceptr address = 0;
  check(cuMemAllocAsync(&address, kBytes, stream), "cuMemAllocAsync");
  check(cuPointerGetAttribute(&pool_of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address), "cuPointerGetAttribute");
  say("of the pool", pool_of == pool ? 1 : 0);
  refill(address, 6, kBytes, stream);
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  contents("the block", address);
  check(cuDeviceSetMemPool(device, before), "cuDeviceSetMemPool");
  // The pool goes before its last block.
  show("destroyed", cuMemPoolDestroy(pool));
  refill(address, 7, kBytes, stream);
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  contents("of a pool that is gone", address);
  show("freed", cuMemFreeAsync(address, stream));
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  check(cuStreamDestroy(stream), "cuStreamDestroy");
}

void limited() {
  CUmemoryPool pool = nullptr;
  CUmemPoolProps props = properties();
  props.maxSize = 32 * kMib;
  const CUresult made = cuMemPoolCreate(&pool, &props);
  show("made", made);
  if (made != CUDA_SUCCESS) return;
  const CUstream stream = make_stream();
  use(pool, stream);
  CUdeviceptr address = 0;
  show("more than it may have", cuMemAllocFromPoolAsync(&address, 64 * kMib, pool, stream));
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  check(cuMemPoolDestroy(pool), "cuMemPoolDestroy");
  check(cuStreamDestroy(stream), "cuStreamDestroy");
}

void exported() {
  CUmemoryPool pool = nullptr;
  CUmemPoolProps props = properties();
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const CUresult made = cuMemPoolCreate(&pool, &props);
  show("made", made);
  if (made != CUDA_SUCCESS) return;
  const CUstream stream = make_stream();
  use(pool, stream);
  check(cuMemPoolDestroy(pool), "cuMemPoolDestroy");
  check(cuStreamDestroy(stream), "cuStreamDestroy");
}

// Made in one stream's order, used in another's behind an event, given back in a third's.
void across_streams() {
  const CUstream first = make_stream(), second = make_stream(), third = make_stream();
  for (unsigned round = 0; round < 6; ++round) {
    CUdeviceptr address = 0;
    check(cuMemAllocAsync(&address, kBytes, first), "cuMemAllocAsync");
    refill(address, round, kBytes, first);
    order(first, second);
    launch(second, "add", kWords, address, address, kWords);
    std::vector<unsigned> words(16);
    check(cuMemcpyDtoHAsync(words.data(), address, 64, second), "cuMemcpyDtoHAsync");
    check(cuStreamSynchronize(second), "cuStreamSynchronize");
    host_contents("first words", words.data(), 64);
    order(second, third);
    check(cuMemFreeAsync(address, third), "cuMemFreeAsync");
  }
  finish();
  for (const CUstream stream : {first, second, third}) check(cuStreamDestroy(stream), "cuStreamDestroy");
}

// The two ways to free, each for memory of the other way to allocate.
void freed_the_other_way() {
  const CUstream stream = make_stream();
  CUdeviceptr ordered = 0;
  check(cuMemAllocAsync(&ordered, kBytes, stream), "cuMemAllocAsync");
  refill(ordered, 3, kBytes, stream);
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  contents("ordered", ordered);
  show("freed plainly", cuMemFree(ordered));
  const CUdeviceptr plain = block(4);
  contents("plain", plain);
  const CUresult result = cuMemFreeAsync(plain, stream);
  show("freed in order", result);
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  if (result != CUDA_SUCCESS) release(plain);
  check(cuStreamDestroy(stream), "cuStreamDestroy");
}

void attributes() {
  CUmemoryPool pool = nullptr;
  const CUmemPoolProps props = properties();
  check(cuMemPoolCreate(&pool, &props), "cuMemPoolCreate");
  cuuint64_t keep = 64 * kMib;
  int on = 0;
  show("threshold", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  say("threshold", amount(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
  show("no opportunism", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
  const CUstream stream = make_stream();
  use(pool, stream);
  say("most", amount(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  cuuint64_t zero = 0, five = 5;
  show("set back", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  say("most then", amount(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  show("set to something", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &five));
  show("set what is", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero));
  check(cuMemPoolDestroy(pool), "cuMemPoolDestroy");
  check(cuStreamDestroy(stream), "cuStreamDestroy");
}

}  // namespace

std::span<const Case> pool_cases() {
  static constexpr std::array kCases = {Case{"pool-of-the-device", of_the_device},
                                        Case{"pool-own", own},
                                        Case{"pool-limited", limited},
                                        Case{"pool-exported", exported},
                                        Case{"pool-across-streams", across_streams},
                                        Case{"pool-freed-the-other-way", freed_the_other_way},
                                        Case{"pool-attributes", attributes}};
  return kCases;
}

}  // namespace awkward
