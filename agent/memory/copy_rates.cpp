#include "agent/memory/copy_rates.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <new>
#include <vector>

namespace memopt::agent {
namespace {

constexpr std::uint64_t kSmall = 4096;
constexpr int kRounds = 3;  // the shortest counts

// What is measured with, given back at the end whatever happens.
class Bench {
 public:
  Bench(const Driver& driver, ChunkStore& chunks) noexcept : driver_(driver), chunks_(chunks) {}
  ~Bench() {
    for (const CUevent event : events_) {
      if (event != nullptr) driver_.event_destroy(event);
    }
    if (registered_) driver_.host_unregister(host_);
    if (host_ != nullptr) munmap(host_, kMostCopiedAtOnce);
    if (mapped_) chunks_.unmap(device_, kMostCopiedAtOnce);
    for (Chunk* const chunk : pieces_) chunks_.release(chunk);
    if (device_ != 0) chunks_.unreserve(device_, kMostCopiedAtOnce);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // May throw std::bad_alloc.
  CUresult set_up() {
    const std::uint64_t count = (kMostCopiedAtOnce + chunks_.chunk_bytes() - 1) / chunks_.chunk_bytes();
    pieces_.reserve(static_cast<std::size_t>(count));
    while (pieces_.size() < count) {
      Chunk* chunk = nullptr;
      if (const CUresult result = chunks_.create(&chunk); result != CUDA_SUCCESS) return result;
      pieces_.push_back(chunk);
    }
    device_ = chunks_.reserve(kMostCopiedAtOnce);
    if (device_ == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (const CUresult result = chunks_.map(device_, pieces_); result != CUDA_SUCCESS) return result;
    mapped_ = true;
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
  ChunkStore& chunks_;
  std::vector<Chunk*> pieces_;
  std::uint64_t device_ = 0;
  bool mapped_ = false;
  void* host_ = nullptr;
  bool registered_ = false;
  std::array<CUevent, 3> events_{};
};

}  // namespace

bool measure_copies(const Driver& driver, ChunkStore& chunks, CUstream out, CUstream in, CopyRates* rates,
                    std::string* why) noexcept {
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  try {
    Bench bench(driver, chunks);
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
