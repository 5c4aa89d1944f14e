// The simulated driver's own C interface: what tests, workloads and tools ask it beside CUDA. A program finds these by
// dlsym on its libcuda.so.1; on a real driver they are absent. All functions are thread-safe and may be called before
// cuInit.
#ifndef CUDASIM_CUDASIM_H_
#define CUDASIM_CUDASIM_H_
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDASIM_INTERFACE_VERSION 1
#define CUDASIM_RACE_EXIT_CODE 86
#define CUDASIM_DEADLOCK_EXIT_CODE 87  // under CUDASIM_SCHEDULE

typedef struct CudasimCounters {
  uint32_t struct_size;  // set by the caller to sizeof(CudasimCounters); fields beyond it are not written
  uint32_t interface_version;
  uint64_t bytes_held;  // device bytes held by the driver's count (what cuMemGetInfo subtracts), now
  uint64_t bytes_held_peak;
  uint64_t
      bytes_live;  // bytes the program asked for and has not freed (cuMemAlloc and cuMemCreate sizes as given), now
  uint64_t bytes_live_peak;
  uint64_t blocks_live;               // live blocks of cuMemAlloc and of memory pools, now
  uint64_t blocks_live_at_peak;       // when bytes_live was at its peak
  uint64_t blocks_2mib_live_at_peak;  // of these, with at least 2 MiB
  uint64_t capacity;                  // bytes of the device
  uint64_t host_now_ns;               // virtual host clock of the calling thread
  uint64_t device_now_ns;             // virtual time up to which the device has run
  uint64_t calls;                     // API calls in all
  uint64_t launches;
  uint64_t copies;
  uint64_t bytes_copied_in;  // host to device
  uint64_t bytes_copied_out;
  uint64_t host_synchronizations;  // calls in which a host thread waited for the device
  uint64_t vmm_calls;              // reserve, create, map, set access, unmap, release, free
  uint64_t unknown_kernels;        // launches of kernels that no plug-in has; modelled as no-ops
  uint64_t races;                  // reports of the happens-before checker
} CudasimCounters;

// 0 on success, -1 when `out` is null or struct_size is 0.
int cudasim_counters(CudasimCounters* out);

// Calls of one exported entry point (for example "cuMemAlloc_v2") so far; 0 for a name that was never called.
uint64_t cudasim_calls(const char* symbol);

// Starts a new measuring period: the peaks become the current values. Other counters go on.
void cudasim_reset_peaks(void);

// The next kernel that the calling thread launches takes this many nanoseconds of device time, whatever its plug-in
// says.
void cudasim_next_launch_takes(uint64_t nanoseconds);

// The program's host thread works for this long: its virtual clock advances.
void cudasim_host_works(uint64_t nanoseconds);

// Code compiled with load/store callbacks (instrument/) reports here. Inside a kernel the access is the kernel's;
// outside it is the calling thread's own and is checked at once. `size` in bytes; `write` 0 or 1. Addresses that are
// neither device nor pinned memory are ignored.
void cudasim_access(const void* address, size_t size, int write);

// Last race report as text ("" when there is none); the pointer stays valid until the next call from the same thread.
const char* cudasim_last_race(void);

// Writes the report (JSON, see README.md) to `path`; 0, or an errno value.
int cudasim_write_report(const char* path);

#ifdef __cplusplus
}
#endif
#endif  // CUDASIM_CUDASIM_H_
