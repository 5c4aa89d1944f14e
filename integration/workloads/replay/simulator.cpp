#include "simulator.h"

#include <dlfcn.h>

namespace replay {
namespace {

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

Simulator::Simulator() {
  counters_ = find<decltype(cudasim_counters)>("cudasim_counters");
  calls_ = find<decltype(cudasim_calls)>("cudasim_calls");
  reset_peaks_ = find<decltype(cudasim_reset_peaks)>("cudasim_reset_peaks");
  host_works_ = find<decltype(cudasim_host_works)>("cudasim_host_works");
  next_launch_takes_ = find<decltype(cudasim_next_launch_takes)>("cudasim_next_launch_takes");
  if (calls_ == nullptr || reset_peaks_ == nullptr || host_works_ == nullptr || next_launch_takes_ == nullptr) {
    counters_ = nullptr;
  }
}

Simulator::Sample Simulator::sample() const {
  if (!present()) return {};
  CudasimCounters counters{};
  counters.struct_size = sizeof(counters);
  if (counters_(&counters) != 0) return {};
  return {counters.bytes_held_peak,       counters.vmm_calls, calls_("cuMemAlloc_v2"), calls_("cuMemFree_v2"),
          counters.host_synchronizations, counters.launches,  counters.host_now_ns};
}

void Simulator::reset_peaks() const {
  if (present()) reset_peaks_();
}

void Simulator::host_works(std::uint64_t ns) const {
  if (present()) host_works_(ns);
}

void Simulator::next_launch_takes(std::uint64_t ns) const {
  if (present()) next_launch_takes_(ns);
}

}  // namespace replay
