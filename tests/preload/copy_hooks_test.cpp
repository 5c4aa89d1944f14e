// What the hooks of copies and fills tell of them.
#include "tests/preload/fake_agent.h"

namespace memopt::preload {
namespace {

using namespace test;

struct CopyRow {
  const char* name;
  std::function<void()> call;
  shm::CopyKind kind;
  std::uint64_t to;
  std::uint64_t from;
  std::size_t bytes;
  std::size_t to_extent;
  bool host_waits;
};

TEST_F(Hooks, CopiesAreDescribedByTheirSides) {
  char host[64] = {};
  const auto host_address = reinterpret_cast<CUdeviceptr>(host);
  CUDA_MEMCPY2D rows{};
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = kOurs;
  rows.dstPitch = 100;
  rows.dstY = 2;
  rows.dstXInBytes = 5;
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = host;
  rows.WidthInBytes = 10;
  rows.Height = 3;
  CUdeviceptr batch_to[1] = {kOurs};
  CUdeviceptr batch_from[1] = {kOurs + 64};
  size_t batch_bytes[1] = {8};
  using enum shm::CopyKind;
  const CopyRow table[] = {
      {"HtoD", [&] { hooks::cuMemcpyHtoD_v2(kOurs, host, 64); }, kToDevice, kOurs, 0, 64, 64, false},
      {"DtoH", [&] { hooks::cuMemcpyDtoH_v2(host, kOurs, 64); }, kToHost, 0, kOurs, 64, 64, true},
      {"DtoHAsync", [&] { hooks::cuMemcpyDtoHAsync_v2(host, kOurs, 64, stream()); }, kToHost, 0, kOurs, 64, 64, false},
      {"DtoD", [&] { hooks::cuMemcpyDtoD_v2(kOurs, kOurs + 64, 32); }, kOnDevice, kOurs, kOurs + 64, 32, 32, false},
      {"to foreign", [&] { hooks::cuMemcpyDtoDAsync_v2(0x9000, kOurs, 32, stream()); }, kOnDevice, 0, kOurs, 32, 32,
       false},
      {"unified to host", [&] { hooks::cuMemcpy(host_address, kOurs, 16); }, kToHost, 0, kOurs, 16, 16, true},
      {"unified from host", [&] { hooks::cuMemcpyAsync(kOurs, host_address, 16, stream()); }, kToDevice, kOurs, 0, 16,
       16, false},
      {"2D", [&] { hooks::cuMemcpy2DAsync_v2(&rows, stream()); }, kToDevice, kOurs + 205, 0, 30, 210, false},
      {"batch",
       [&] { hooks::cuMemcpyBatchAsync_v2(batch_to, batch_from, batch_bytes, 1, nullptr, nullptr, 0, stream()); },
       kOnDevice, kOurs, kOurs + 64, 8, 8, false},
  };
  for (const CopyRow& row : table) {
    SCOPED_TRACE(row.name);
    g_agent = Agent();
    row.call();
    ASSERT_EQ(g_agent.copies.size(), 1u);
    const agent::CopyCall& copy = g_agent.copies[0];
    EXPECT_EQ(copy.kind, row.kind);
    EXPECT_EQ(copy.to, row.to);
    EXPECT_EQ(copy.from, row.from);
    EXPECT_EQ(copy.bytes, row.bytes);
    EXPECT_EQ(copy.to_extent, row.to_extent);
    EXPECT_EQ(copy.host_waits, row.host_waits);
    EXPECT_EQ(copy.from_host != nullptr, row.kind == kToDevice);
    EXPECT_EQ(g_agent.notes, row.host_waits ? std::vector<std::string>{"host waited"} : std::vector<std::string>{});
  }
}

// A driver takes a device's address where the host's is asked for; we must not read it.
TEST_F(Hooks, ADevicesAddressIsNotReadAsTheHosts) {
  g_memory_types[0x9000] = CU_MEMORYTYPE_DEVICE;
  hooks::cuMemcpyHtoD_v2(kOurs, reinterpret_cast<const void*>(0x9000), 64);
  ASSERT_EQ(g_agent.copies.size(), 1u);
  EXPECT_EQ(g_agent.copies[0].from_host, nullptr);
  EXPECT_EQ(g_agent.copies[0].kind, shm::CopyKind::kOnDevice);
}

TEST_F(Hooks, MemsetsTellTheirExtent) {
  hooks::cuMemsetD32Async(kOurs, 1, 10, stream());
  hooks::cuMemsetD2D16_v2_ptds(kOurs, 100, 1, 10, 3);
  ASSERT_EQ(g_agent.memsets.size(), 2u);
  EXPECT_EQ(g_agent.memsets[0].bytes, 40u);
  EXPECT_EQ(g_agent.memsets[0].stream.handle, stream());
  EXPECT_EQ(g_agent.memsets[1].bytes, 220u);
  EXPECT_TRUE(g_agent.memsets[1].stream.per_thread);
}

}  // namespace
}  // namespace memopt::preload
