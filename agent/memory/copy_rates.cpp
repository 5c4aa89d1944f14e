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

constexpr std::uint64_t kMostPiece = std::uint64_t{4} << 20;
constexpr double kLongestPiece = 1e6;  // ns
constexpr double kSmallPart = 1.0 / 16;

// What is measured with, given back at the end whatever happens.
class Bench {
 public:
  Bench(const Driver& driver, CUdeviceptr device) noexcept : driver_(driver), device_(device) {}
  ~Bench() {
    for (const CUevent event : events_) {
      if (event != nullptr) driver_.event_destroy(event);
    }
    if (registered_) driver_.host_unregister(host_);
    if (host_ != nullptr) munmap(host_, kLeastPiece);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  CUresult set_up() noexcept {
    void* const host =
        mmap(nullptr, kLeastPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (host == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    host_ = host;
    if (const CUresult result = driver_.host_register(host_, kLeastPiece, 0); result != CUDA_SUCCESS) return result;
    registered_ = true;
    for (CUevent& event : events_) {
      if (const CUresult result = driver_.event_create(&event, CU_EVENT_DEFAULT); result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  }

  CUresult measure(CUstream stream, bool out, double* rate, double* latency, std::uint64_t* piece) noexcept {
    double small = 0;
    double large = 0;
    for (int round = 0; round < kRounds; ++round) {
      // All of it is queued while the first copy runs, so that the host's calls take no part.
      const std::array<std::uint64_t, 3> sizes{kLeastPiece, kSmall, kLeastPiece};
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
    const auto bytes = static_cast<double>(kLeastPiece);
    large = std::max(large, 1.0);
    *latency = std::max(small - static_cast<double>(kSmall) * large / bytes, 0.0);
    const double bytes_per_ns = bytes / std::max(large - *latency, large / 2);
    *piece = piece_for(*latency, bytes_per_ns);
    const auto each = static_cast<double>(*piece);
    *rate = each / (large - bytes / bytes_per_ns + each / bytes_per_ns);
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

std::uint64_t piece_for(double latency, double bytes_per_ns) noexcept {
  std::uint64_t piece = kLeastPiece;
  while (piece < kMostPiece) {
    const double own = static_cast<double>(piece) / bytes_per_ns;
    if (latency <= kSmallPart * own || latency + 2 * own > kLongestPiece) break;
    piece *= 2;
  }
  return piece;
}

bool measure_copies(const Driver& driver, CUdeviceptr device, CUstream out, CUstream in, CopyRates* rates,
                    std::string* why) noexcept {
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  try {
    Bench bench(driver, device);
    if (out != nullptr && in != nullptr) result = bench.set_up();
    if (result == CUDA_SUCCESS) result = bench.measure(out, true, &rates->out, &rates->out_latency, &rates->out_piece);
    if (result == CUDA_SUCCESS) result = bench.measure(in, false, &rates->in, &rates->in_latency, &rates->in_piece);
    if (result == CUDA_SUCCESS) return true;
    *why = fmt::format("copies to the host could not be measured (error {})", static_cast<int>(result));
  } catch (const std::bad_alloc&) {
  }
  return false;
}

}  // namespace memopt::agent
