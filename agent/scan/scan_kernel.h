// The kernel that looks for addresses in device memory, as PTX (version 6.0, sm_50 and later), which the driver
// translates. Tests assemble it for sm_75 to sm_100; it has not run on a GPU yet.
//
//   memopt_scan_words(ScanSlot* slot, uint8* pages, uint64 begin, uint64 bytes, uint32 serial)
//
// A grid of (any, number of ranges) thread blocks of any size. Each aligned word of the slot's ranges that lies in
// [begin, begin + bytes) is added to the slot, or, where there is no room, to the pages.
#pragma once

namespace memopt::agent {

inline constexpr const char* kScanKernelName = "memopt_scan_words";
extern const char* const kScanKernel;

}  // namespace memopt::agent
