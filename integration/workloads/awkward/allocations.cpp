// Allocations other than plain ones, and sizes that are awkward.
#include <array>
#include <cstring>

#include "awkward.h"

namespace awkward {
namespace {

void pitched() {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  check(cuMemAllocPitch(&address, &pitch, 1000, 300, 4), "cuMemAllocPitch");
  say("pitch", pitch);
  check(cuMemsetD2D8(address, pitch, 7, 1000, 300), "cuMemsetD2D8");
  std::vector<unsigned char> rows(1000 * 300);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = address;
  copy.srcPitch = pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = rows.data();
  copy.dstPitch = copy.WidthInBytes = 1000;
  copy.Height = 300;
  check(cuMemcpy2D(&copy), "cuMemcpy2D");
  host_contents("rows", rows.data(), rows.size());
  show("a width of no bytes", cuMemAllocPitch(&address, &pitch, 0, 300, 4));
  std::size_t other_pitch = 0;
  CUdeviceptr other = 0;
  show("an element of 3 bytes", cuMemAllocPitch(&other, &other_pitch, 1000, 300, 3));
  release(address);
}

void of_no_bytes() {
  CUdeviceptr address = 0;
  show("of no bytes", cuMemAlloc(&address, 0));
  show("of no bytes, in a stream's order", cuMemAllocAsync(&address, 0, nullptr));
  show("to nowhere", cuMemAlloc(nullptr, 4096));
  show("one byte", cuMemAlloc(&address, 1));
  check(cuMemsetD8(address, 200, 1), "cuMemsetD8");
  contents("the byte", address, 1);
  release(address);
}

void of_huge_sizes() {
  const CUdeviceptr kept = block(3);
  CUdeviceptr address = 0;
  for (const std::size_t bytes : {std::size_t{1} << 42, std::size_t{1} << 62, ~std::size_t{0}, ~std::size_t{0} - 511,
                                  ~std::size_t{0} - (2 * kMib), std::size_t{1} << 63}) {
    show("huge", cuMemAlloc(&address, bytes));
    show("huge, in a stream's order", cuMemAllocAsync(&address, bytes, nullptr));
  }
  std::size_t pitch = 0;
  show("huge, pitched", cuMemAllocPitch(&address, &pitch, std::size_t{1} << 40, std::size_t{1} << 40, 16));
  contents("what was there", kept);
  release(kept);
}

// How much there is: halves from what cannot be, then smaller and smaller pieces until nothing more is given.
void probed_for_memory() {
  std::vector<CUdeviceptr> got;
  std::size_t sum = 0;
  for (std::size_t bytes = std::size_t{1} << 40; bytes >= 2 * kMib; bytes /= 2) {
    CUdeviceptr address = 0;
    while (cuMemAlloc(&address, bytes) == CUDA_SUCCESS) {
      got.push_back(address);
      sum += bytes;
    }
  }
  say("bytes in all", sum);
  std::size_t free = 0, total = 0;
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  say("free bytes", free);
  for (const CUdeviceptr address : got) release(address);
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  CUdeviceptr all = 0;
  show("all that is free at once", cuMemAlloc(&all, free));
  release(all);
}

void free_bytes_followed() {
  std::size_t before = 0, now = 0, total = 0;
  check(cuMemGetInfo(&before, &total), "cuMemGetInfo");
  std::vector<CUdeviceptr> blocks;
  for (int i = 1; i <= 8; ++i) {
    blocks.push_back(allocate(i * 2 * kMib));
    check(cuMemGetInfo(&now, &total), "cuMemGetInfo");
    say("in use", before - now);
  }
  while (!blocks.empty()) {
    release(blocks.back());
    blocks.pop_back();
    check(cuMemGetInfo(&now, &total), "cuMemGetInfo");
    say("in use", before - now);
  }
  show("to nowhere", cuMemGetInfo(nullptr, &total));
  show("total to nowhere", cuMemGetInfo(&now, nullptr));
}

void managed() {
  CUdeviceptr address = 0;
  check(cuMemAllocManaged(&address, kBytes, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
  auto* const words = reinterpret_cast<unsigned*>(address);
  for (int i = 0; i < kWords; ++i) words[i] = static_cast<unsigned>(i) * 3;
  const CUdeviceptr other = block(5);
  CUmemLocation here{};
  here.type = CU_MEM_LOCATION_TYPE_DEVICE;
  here.id = device;
  show("advised", cuMemAdvise(address, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
  show("prefetched", cuMemPrefetchAsync(address, kBytes, here, 0, nullptr));
  launch(nullptr, "add", kWords, address, other, kWords);
  finish();
  host_contents("added by the device", words, kBytes);
  int preferred = 0;
  show("asked",
       cuMemRangeGetAttribute(&preferred, sizeof(preferred), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, kBytes));
  // A plain block is no managed memory.
  show("a block advised", cuMemAdvise(other, kBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
  show("a block prefetched", cuMemPrefetchAsync(other, kBytes, here, 0, nullptr));
  show("a block asked",
       cuMemRangeGetAttribute(&preferred, sizeof(preferred), CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, other, kBytes));
  contents("the block", other);
  release(address);
  release(other);
}

void page_locked() {
  unsigned* host = nullptr;
  CUdeviceptr seen = 0;
  check(cuMemHostAlloc(reinterpret_cast<void**>(&host), kBytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
        "cuMemHostAlloc");
  check(cuMemHostGetDevicePointer(&seen, host, 0), "cuMemHostGetDevicePointer");
  for (int i = 0; i < kWords; ++i) host[i] = static_cast<unsigned>(i) * 5;
  const CUdeviceptr other = block(6);
  launch(nullptr, "add", kWords, other, seen, kWords);
  launch(nullptr, "add", kWords, seen, other, kWords);
  contents("the block", other);
  host_contents("the host's", host, kBytes);
  unsigned flags = 0;
  show("flags", cuMemHostGetFlags(&flags, host));
  say("flags", flags);
  release(other);
  show("freed", cuMemFreeHost(host));
  show("freed twice", cuMemFreeHost(host));
}

void registered() {
  std::vector<unsigned> host(kWords + 2048);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned>(i);
  unsigned* const from = host.data() + 3;  // as it comes
  show("registered", cuMemHostRegister(from, kBytes, CU_MEMHOSTREGISTER_DEVICEMAP));
  show("twice", cuMemHostRegister(from, kBytes, CU_MEMHOSTREGISTER_DEVICEMAP));
  CUdeviceptr seen = 0;
  check(cuMemHostGetDevicePointer(&seen, from, 0), "cuMemHostGetDevicePointer");
  const CUdeviceptr other = block(8);
  const CUstream stream = make_stream();
  finish();
  launch(stream, "add", kWords, seen, other, kWords);
  check(cuMemcpyDtoHAsync(from, other, 4096, stream), "cuMemcpyDtoHAsync");
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  show("given back", cuMemHostUnregister(from));
  show("given back twice", cuMemHostUnregister(from));
  host_contents("the host's", host.data(), host.size() * sizeof(unsigned));
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  release(other);
}

void arrays() {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 64;
  shape.Height = 32;
  shape.Depth = 4;
  shape.Format = CU_AD_FORMAT_UNSIGNED_INT32;
  shape.NumChannels = 1;
  CUarray array = nullptr;
  const CUresult made = cuArray3DCreate(&array, &shape);
  show("made", made);
  if (made != CUDA_SUCCESS) return;
  const CUdeviceptr from = block(9, 64 * 32 * 4 * 4);
  const CUdeviceptr to = block(1, 64 * 32 * 4 * 4);
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = 64 * 4;
  copy.Height = 32;
  copy.Depth = 4;
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.srcPitch = 64 * 4;
  copy.srcHeight = 32;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  check(cuMemcpy3D(&copy), "cuMemcpy3D, to the array");
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.dstPitch = 64 * 4;
  copy.dstHeight = 32;
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  check(cuMemcpy3D(&copy), "cuMemcpy3D, from the array");
  contents("there and back", to, 64 * 32 * 4 * 4);
  show("destroyed", cuArrayDestroy(array));
  release(from);
  release(to);
}

}  // namespace

std::span<const Case> allocation_cases() {
  static constexpr std::array kCases = {Case{"pitched", pitched},
                                        Case{"of-no-bytes", of_no_bytes},
                                        Case{"of-huge-sizes", of_huge_sizes},
                                        Case{"probed-for-memory", probed_for_memory},
                                        Case{"free-bytes-followed", free_bytes_followed},
                                        Case{"managed", managed},
                                        Case{"page-locked", page_locked},
                                        Case{"registered", registered},
                                        Case{"arrays", arrays}};
  return kCases;
}

}  // namespace awkward
