#include "agent/memory/copy_rates.h"

#include <gtest/gtest.h>

#include <map>

namespace memopt::agent {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Copies that each take so much longer than their bytes; one after the other, by their numbers.
struct FakeCopies {
  double latency = 0;  // ns
  double bytes_per_ns = 1;
  double now = 0;
  std::map<CUevent, double> at;
};
FakeCopies* g_copies = nullptr;

CUresult copy(std::size_t bytes) {
  g_copies->now += g_copies->latency + static_cast<double>(bytes) / g_copies->bytes_per_ns;
  return CUDA_SUCCESS;
}

class CopyRatesTest : public testing::Test {
 protected:
  CopyRatesTest() {
    g_copies = &copies;
    driver.host_register = [](void*, std::size_t, unsigned int) { return CUDA_SUCCESS; };
    driver.host_unregister = [](void*) { return CUDA_SUCCESS; };
    driver.event_create = [](CUevent* event, unsigned int) {
      *event = reinterpret_cast<CUevent>(0x10 * (g_copies->at.size() + 1));
      g_copies->at[*event] = 0;
      return CUDA_SUCCESS;
    };
    driver.event_destroy = [](CUevent) { return CUDA_SUCCESS; };
    driver.event_record = [](CUevent event, CUstream) {
      g_copies->at[event] = g_copies->now;
      return CUDA_SUCCESS;
    };
    driver.event_elapsed = [](float* milliseconds, CUevent begin, CUevent end) {
      *milliseconds = static_cast<float>((g_copies->at[end] - g_copies->at[begin]) / 1e6);
      return CUDA_SUCCESS;
    };
    driver.stream_synchronize = [](CUstream) { return CUDA_SUCCESS; };
    driver.copy_to_host_async = [](void*, CUdeviceptr, std::size_t bytes, CUstream) { return copy(bytes); };
    driver.copy_to_device_async = [](CUdeviceptr, const void*, std::size_t bytes, CUstream) { return copy(bytes); };
  }
  CopyRates measured(double latency, double bytes_per_ns) {
    copies.latency = latency;
    copies.bytes_per_ns = bytes_per_ns;
    CopyRates rates;
    std::string why;
    const auto stream = reinterpret_cast<CUstream>(0x1);
    EXPECT_TRUE(measure_copies(driver, 0x1000, stream, stream, &rates, &why)) << why;
    return rates;
  }

  FakeCopies copies;
  Driver driver;
};

TEST_F(CopyRatesTest, ARateHasWhatItsPiecesTakeBesideTheirBytes) {
  for (const auto& [latency, bytes_per_ns] : {std::pair{47200.0, 13.23}, {9700.0, 12.15}, {7000.0, 52.0}}) {
    const CopyRates rates = measured(latency, bytes_per_ns);
    EXPECT_NEAR(rates.out_latency, latency, latency / 100);
    const auto piece = static_cast<double>(rates.out_piece);
    const double exact = piece / (latency + piece / bytes_per_ns);
    EXPECT_NEAR(rates.out, exact, exact / 100);
    EXPECT_EQ(rates.in_piece, rates.out_piece);
  }
}

TEST_F(CopyRatesTest, PiecesAreLargerWhereEachTakesLonger) {
  EXPECT_EQ(measured(0, 12).out_piece, kLeastPiece);
  EXPECT_EQ(measured(9700, 12.15).out_piece, 2 * kMiB);
  EXPECT_EQ(measured(8000, 25).out_piece, 4 * kMiB);
  EXPECT_EQ(measured(47200, 13.23).out_piece, 4 * kMiB) << "and no larger than that";
}

TEST_F(CopyRatesTest, NoPieceIsLongerThanTheProgramMayWait) {
  EXPECT_EQ(piece_for(1e6, 100), kLeastPiece) << "what each takes alone is longer";
  EXPECT_EQ(piece_for(47200, 5), 4 * kMiB);
  EXPECT_EQ(piece_for(47200, 4), kLeastPiece);
  for (double latency = 100; latency < 1e7; latency *= 3) {
    for (double bytes_per_ns = 0.5; bytes_per_ns < 500; bytes_per_ns *= 2) {
      const std::uint64_t piece = piece_for(latency, bytes_per_ns);
      if (piece == kLeastPiece) continue;
      EXPECT_LE(piece, 4 * kMiB);
      EXPECT_LE(latency + static_cast<double>(piece) / bytes_per_ns, 1e6);
    }
  }
}

}  // namespace
}  // namespace memopt::agent
