// The program's own virtual memory management, beside blocks and, by mistake, on them.
#include <array>

#include "awkward.h"

namespace awkward {
namespace {

constexpr std::size_t kPiece = 2 * kMib;

CUmemAllocationProp on_device() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

CUmemAccessDesc for_both() {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

CUmemGenericAllocationHandle make_piece() {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp properties = on_device();
  check(cuMemCreate(&handle, kPiece, &properties, 0), "cuMemCreate");
  return handle;
}

// One piece at two addresses, another between: what is written by one name is read by the other.
void mapped_twice() {
  CUdeviceptr range = 0;
  check(cuMemAddressReserve(&range, 4 * kPiece, 0, 0, 0), "cuMemAddressReserve");
  const CUmemGenericAllocationHandle first = make_piece(), second = make_piece();
  check(cuMemMap(range, kPiece, 0, first, 0), "cuMemMap");
  check(cuMemMap(range + kPiece, kPiece, 0, second, 0), "cuMemMap");
  check(cuMemMap(range + 2 * kPiece, kPiece, 0, first, 0), "cuMemMap");
  const CUmemAccessDesc access = for_both();
  check(cuMemSetAccess(range, 3 * kPiece, &access, 1), "cuMemSetAccess");
  // They live on in their mappings.
  check(cuMemRelease(first), "cuMemRelease");
  check(cuMemRelease(second), "cuMemRelease");
  const CUdeviceptr other = block(4, kPiece);
  refill(range, 1, 2 * kPiece);
  launch(nullptr, "add", kPiece / 4, range + 2 * kPiece, other, static_cast<int>(kPiece / 4));
  contents("by its first address", range, kPiece);
  contents("by its second", range + 2 * kPiece, kPiece);
  CUmemGenericAllocationHandle again = 0;
  show("kept", cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range)));
  show("released", cuMemRelease(again));
  check(cuMemUnmap(range, kPiece), "cuMemUnmap");
  contents("by its second, alone", range + 2 * kPiece, kPiece);
  check(cuMemUnmap(range + kPiece, 2 * kPiece), "cuMemUnmap");
  check(cuMemAddressFree(range, 4 * kPiece), "cuMemAddressFree");
  release(other);
}

// Blocks are none of the program's mappings, whatever they lie in.
void done_to_a_block() {
  const std::size_t bytes = 4 * kPiece;
  const CUdeviceptr address = block(21, bytes);
  finish();
  CUmemGenericAllocationHandle handle = make_piece(), kept = 0;
  const CUmemAccessDesc access = for_both();
  CUmemAccessDesc none = access;
  none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  unsigned long long flags = 0;
  CUmemAllocationProp properties{};
  // Within the block, wherever it begins.
  const CUdeviceptr at = (address + kPiece - 1) / kPiece * kPiece;
  show("unmapped", cuMemUnmap(at, kPiece));
  show("mapped over", cuMemMap(at, kPiece, 0, handle, 0));
  show("taken from the device", cuMemSetAccess(at, kPiece, &none, 1));
  show("given to the device", cuMemSetAccess(at, kPiece, &access, 1));
  show("asked for its access", cuMemGetAccess(&flags, &access.location, at));
  show("its addresses freed", cuMemAddressFree(at, kPiece));
  show("its memory kept", cuMemRetainAllocationHandle(&kept, reinterpret_cast<void*>(at)));
  if (kept != 0) show("its memory asked for", cuMemGetAllocationPropertiesFromHandle(&properties, kept));
  int descriptor = -1;
  show("exported", cuMemExportToShareableHandle(&descriptor, kept, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  contents("the block", address, bytes);
  check(cuMemRelease(handle), "cuMemRelease");
  release(address);
}

// Addresses that are wanted where a block lies.
void reserved_at_a_block() {
  const CUdeviceptr address = block(22);
  finish();
  for (const CUdeviceptr hint : {address, address + 64 * kMib, (address + kPiece) / kPiece * kPiece}) {
    CUdeviceptr range = 0;
    show("reserved", cuMemAddressReserve(&range, kPiece, 0, hint, 0));
    say("over the block", range < address + kBytes && address < range + kPiece ? 1 : 0);
    const CUmemGenericAllocationHandle handle = make_piece();
    const CUmemAccessDesc access = for_both();
    check(cuMemMap(range, kPiece, 0, handle, 0), "cuMemMap");
    check(cuMemSetAccess(range, kPiece, &access, 1), "cuMemSetAccess");
    refill(range, 3, kPiece);
    contents("its own", range, kPiece);
    check(cuMemUnmap(range, kPiece), "cuMemUnmap");
    check(cuMemAddressFree(range, kPiece), "cuMemAddressFree");
    check(cuMemRelease(handle), "cuMemRelease");
  }
  contents("the block", address);
  release(address);
}

void read_only() {
  CUdeviceptr range = 0;
  check(cuMemAddressReserve(&range, kPiece, 0, 0, 0), "cuMemAddressReserve");
  const CUmemGenericAllocationHandle handle = make_piece();
  check(cuMemMap(range, kPiece, 0, handle, 0), "cuMemMap");
  CUmemAccessDesc access = for_both();
  check(cuMemSetAccess(range, kPiece, &access, 1), "cuMemSetAccess");
  refill(range, 5, kPiece);
  finish();
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  show("read only", cuMemSetAccess(range, kPiece, &access, 1));
  const CUdeviceptr other = block(6, kPiece);
  launch(nullptr, "add", kPiece / 4, other, range, static_cast<int>(kPiece / 4));
  contents("read", other, kPiece);
  unsigned long long flags = 0;
  show("asked", cuMemGetAccess(&flags, &access.location, range));
  say("flags", flags);
  check(cuMemUnmap(range, kPiece), "cuMemUnmap");
  check(cuMemRelease(handle), "cuMemRelease");
  check(cuMemAddressFree(range, kPiece), "cuMemAddressFree");
  release(other);
}

}  // namespace

std::span<const Case> own_memory_cases() {
  static constexpr std::array kCases = {
      Case{"own-memory-mapped-twice", mapped_twice}, Case{"own-memory-calls-on-a-block", done_to_a_block},
      Case{"own-memory-reserved-at-a-block", reserved_at_a_block}, Case{"own-memory-read-only", read_only}};
  return kCases;
}

}  // namespace awkward
