// Questions about memory, and ways to share it.
#include <unistd.h>

#include <array>
#include <cstring>

#include "awkward.h"

namespace awkward {
namespace {

void address_ranges() {
  const CUdeviceptr a = block(1), small = block(2, 1000);
  CUdeviceptr ordered = 0;
  check(cuMemAllocAsync(&ordered, kBytes, nullptr), "cuMemAllocAsync");
  finish();
  for (const CUdeviceptr address : {a, small, ordered}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{999}}) {
      CUdeviceptr base = 0;
      std::size_t bytes = 0;
      show("range", cuMemGetAddressRange(&base, &bytes, address + at));
      say("offset", address + at - base);
      say("bytes", bytes);
    }
  }
  show("to nowhere", cuMemGetAddressRange(nullptr, nullptr, a));
  std::size_t bytes = 0;
  show("bytes alone", cuMemGetAddressRange(nullptr, &bytes, a + 4));
  say("bytes", bytes);
  release(a);
  show("of what was freed", cuMemGetAddressRange(nullptr, &bytes, a));
  show("of no memory", cuMemGetAddressRange(nullptr, &bytes, 0x1000));
  release(small);
  check(cuMemFreeAsync(ordered, nullptr), "cuMemFreeAsync");
  finish();
}

void kinds_of_pointers() {
  const CUdeviceptr a = block(1);
  void* pinned = nullptr;
  check(cuMemAllocHost(&pinned, 4096), "cuMemAllocHost");
  unsigned on_stack = 0;
  finish();
  for (const CUdeviceptr address : {a + 100, reinterpret_cast<CUdeviceptr>(pinned),
                                    reinterpret_cast<CUdeviceptr>(&on_stack), global("awkward_counter")}) {
    unsigned type = 77, managed = 77, synchronous = 77;
    int ordinal = -77;
    show("type", cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    say("type", type);
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
    void* to[] = {&type, &managed, &ordinal, &synchronous};
    show("all", cuPointerGetAttributes(4, which, to, address));
    say("type", type);
    say("managed", managed);
    say("device", static_cast<unsigned>(ordinal));
    say("synchronous", synchronous);
  }
  unsigned on = 1;
  show("made synchronous", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
  contents("a", a);
  check(cuMemFreeHost(pinned), "cuMemFreeHost");
  release(a);
}

// What another process would get.
void shared_with_others() {
  const CUdeviceptr a = block(1), small = block(2, 1000);
  finish();
  CUipcMemHandle handle{};
  const CUresult result = cuIpcGetMemHandle(&handle, a);
  show("a handle", result);
  show("of a small block", cuIpcGetMemHandle(&handle, small));
  show("of its middle", cuIpcGetMemHandle(&handle, a + 4096));
  show("of no block", cuIpcGetMemHandle(&handle, 0x1000));
  show("to nowhere", cuIpcGetMemHandle(nullptr, a));
  CUdeviceptr opened = 0;
  show("opened by itself", cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  show("closed", cuIpcCloseMemHandle(a));
  CUevent event = nullptr;
  check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  CUipcEventHandle event_handle{};
  show("an event's", cuIpcGetEventHandle(&event_handle, event));
  check(cuEventDestroy(event), "cuEventDestroy");
  int descriptor = -1;
  const CUdeviceptr page = (a + 65535) / 65536 * 65536;
  show("a descriptor", cuMemGetHandleForAddressRange(&descriptor, page, 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  if (descriptor >= 0) close(descriptor);
  {
    Others others;
    others.use();
  }
  contents("a", a);
  release(a);
  release(small);
}

}  // namespace

std::span<const Case> query_cases() {
  static constexpr std::array kCases = {Case{"address-ranges", address_ranges},
                                        Case{"kinds-of-pointers", kinds_of_pointers},
                                        Case{"shared-with-others", shared_with_others}};
  return kCases;
}

}  // namespace awkward
