#include "fact.h"

#include <cstdio>

namespace facts {

void Findings::add(const std::string& key, const Json& value) {
  const std::string line = Json{{key, value}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

const std::vector<Fact>& all_facts() {
  static const std::vector<Fact> facts = {
      {"device", "Which device and driver are these, and what do they say they can do?",
       "cuDeviceGetAttribute, cuDriverGetVersion, cuMemGetInfo, cuMemGetAllocationGranularity", 15, device_properties},
      {"host_calls", "What do event, wait, launch, query and allocation calls cost the host?",
       "host clock around each call, in batches short enough for the launch queue; nothing else runs", 10,
       host_call_costs},
      {"event_clock", "How fine and how true is the time between two events?",
       "pairs around kernels that run for a given time by the device's own clock; and against the host's clock", 12,
       event_clock},
      {"free_drains", "Do cuMemFree, cuMemAlloc and their like wait for the device?",
       "the call is made while a kernel runs on another, non-blocking stream; then an event behind the kernel is "
       "queried",
       15, free_drains},
      {"alias_coherence", "Is what was written through one mapping of a chunk read through another?",
       "each round reads through B, writes through A, orders by stream or event, reads through B; every word compared",
       15, alias_coherence},
      {"vmm_under_load", "Do VMM calls wait for running kernels, and do running kernels stop for them?",
       "each call timed while a one-thread kernel runs that notes the longest time between two looks at the clock", 20,
       vmm_under_load},
      {"tensor_map", "Which bytes of a tensor map are the address?",
       "cuTensorMapEncodeTiled with addresses that differ in one bit; the 128 bytes compared", 10, tensor_map},
      {"pinned_bandwidth", "How fast are copies from and to pinned memory, alone and both ways at once?",
       "events around asynchronous copies on two non-blocking streams; best and median of the repeats", 15,
       pinned_bandwidth},
      {"host_memory", "What do cuMemHostAlloc and cuMemHostRegister cost, by size?", "host clock around each call", 15,
       host_memory_costs},
      {"vmm_costs", "What do cuMemCreate, Map, SetAccess, Unmap and Release cost, by chunk size and number?",
       "host clock around each call, nothing else runs; numbers bounded by nine tenths of free memory", 40, vmm_costs},
  };
  return facts;
}

}  // namespace facts
