#include "agent/memory/copy_rates.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <new>

namespace memopt::agent {
namespace {

constexpr std::uint64_t kSmall = 4096;
constexpr int kRounds = 3;  // the shortest counts

// What is measured with, given back at the end whatever happens.
class Bench {
 public:
  Bench(const Driver& driver, CUdeviceptr device) noexcept : driver_(driver), device_(device) {}
  ~Bench() {
    for (const CUevent event : events_) {
      if (event != nullptr) driver_.event_destroy(event);
    }
    if (registered_) driver_.host_unregister(host_);
    if (host_ != nullptr) munmap(host_, kMostCopiedAtOnce);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  CUresult set_up() noexcept {
    void* const host =
        mmap(nullptr, kMostCopiedAtOnce, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (host == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    host_ = host;
    if (const CUresult result = driver_.host_register(host_, kMostCopiedAtOnce, 0); result != CUDA_SUCCESS)
      return result;
    registered_ = true;
    for (CUevent& event : events_) {
      if (const CUresult result = driver_.event_create(&event, CU_EVENT_DEFAULT); result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  }

  CUresult measure(CUstream stream, bool out, double* rate, double* latency) noexcept {
    double small = 0;
    double large = 0;
    for (int round = 0; round < kRounds; ++round) {
      // All of it is queued while the first copy runs, so that the host's calls take no part.
      const std::array<std::uint64_t, 3> sizes{kMostCopiedAtOnce, kSmall, kMostCopiedAtOnce};
      CUresult result = CUDA_SUCCESS;
      for (std::size_t i = 0; i < sizes.size() && result == CUDA_SUCCESS; ++i) {
        result = out ? driver_.copy_to_host_async(host_, device_, sizes[i], stream)
                     : driver_.copy_to_device_async(device_, host_, sizes[i], stream);
        if (result == CUDA_SUCCESS) result = driver_.event_record(events_[i], stream);
      }
      const CUresult waited = driver_.stream_synchronize(stream);
      if (result == CUDA_SUCCESS) result = waited;
      float first = 0;
      float rest = 0;
      if (result == CUDA_SUCCESS) result = driver_.event_elapsed(&first, events_[0], events_[1]);
      if (result == CUDA_SUCCESS) result = driver_.event_elapsed(&rest, events_[1], events_[2]);
      if (result != CUDA_SUCCESS) return result;
      constexpr double kNanoseconds = 1e6;
      small = round == 0 ? first * kNanoseconds : std::min(small, first * kNanoseconds);
      large = round == 0 ? rest * kNanoseconds : std::min(large, rest * kNanoseconds);
    }
    // What each piece costs beside its bytes is in the rate; the latency is what even a small block takes.
    *rate = static_cast<double>(kMostCopiedAtOnce) / std::max(large, 1.0);
    *latency = std::max(small - static_cast<double>(kSmall) / *rate, 0.0);
    return CUDA_SUCCESS;
  }

 private:
  const Driver& driver_;
  const CUdeviceptr device_;
  void* host_ = nullptr;
  bool registered_ = false;
  std::array<CUevent, 3> events_{};
};

}  // namespace

bool measure_copies(const Driver& driver, CUdeviceptr device, CUstream out, CUstream in, CopyRates* rates,
                    std::string* why) noexcept {
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  try {
    Bench bench(driver, device);
    if (out != nullptr && in != nullptr) result = bench.set_up();
    if (result == CUDA_SUCCESS) result = bench.measure(out, true, &rates->out, &rates->out_latency);
    if (result == CUDA_SUCCESS) result = bench.measure(in, false, &rates->in, &rates->in_latency);
    if (result == CUDA_SUCCESS) return true;
    *why = fmt::format("copies to the host could not be measured (error {})", static_cast<int>(result));
  } catch (const std::bad_alloc&) {
  }
  return false;
}

}  // namespace memopt::agent
