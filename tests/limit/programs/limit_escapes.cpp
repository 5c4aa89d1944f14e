// Addresses that stand in memory: what a launch reads or writes through them is not among its parameters, so a block
// must be on the device from the moment on at which its address can be found there.
#include <array>
#include <cstring>
#include <functional>
#include <utility>

#include "limit_program.h"

namespace limit {
namespace {

// A small table on the device, which does not leave by itself.
struct Table {
  CUdeviceptr address = 0;
  explicit Table(std::size_t entries) { check(cuMemAlloc(&address, entries * sizeof(CUdeviceptr)), "cuMemAlloc"); }
};

struct Scene {
  Block first{kBytes, 11}, second{kBytes, 12}, result{kBytes, 0};
  Crowd crowd;
  Table table{2};
  CUstream stream = make_stream();

  CUdeviceptr entries[2] = {first.address(), second.address()};

  // The kernel is given the table alone.
  void gather(CUdeviceptr where, const char* what) {
    check(launch(kernels.gather, nullptr, count(), result.address(), where, 2, static_cast<int>(count())),
          "limit_gather");
    for (std::size_t i = 0; i < count(); ++i) result.words[i] = first.words[at() + i] + second.words[at() + i];
    say(what, result.wrong());
  }
  void scatter(CUdeviceptr where, const char* what) {
    check(launch(kernels.scatter, nullptr, count(), where, 2, 3u, static_cast<int>(count())), "limit_scatter");
    for (std::size_t i = 0; i < count(); ++i) {
      first.words[at() + i] += 3;
      second.words[at() + i] += 3;
    }
    say(what, first.wrong() + second.wrong());
  }

  // The table may have addresses in the middle of the blocks.
  std::size_t at() const { return (entries[0] - first.address()) / sizeof(unsigned); }
  std::size_t count() const { return first.words.size() - at(); }
};

// `put` writes the table; `there`: before it does, the blocks are used, so that they are on the device then.
void escape(const char* what, bool there, const std::function<void(Scene&)>& put) {
  Scene scene;
  scene.crowd.drive_away();
  if (there) {
    scene.first.fill(21);
    scene.second.fill(22);
    finish();
  }
  put(scene);
  scene.gather(scene.table.address, what);
  scene.crowd.drive_away();
  scene.gather(scene.table.address, "  and when others want the room");
  scene.crowd.drive_away();
  scene.scatter(scene.table.address, "  written");
  scene.crowd.drive_away();
  scene.gather(scene.table.address, "  and read");
  say("  the crowd", scene.crowd.wrong());
  for (Block* block : {&scene.first, &scene.second, &scene.result}) block->free();
  scene.crowd.free();
}

void escape_both(const std::string& what, const std::function<void(Scene&)>& put) {
  escape((what + ", while it is there").c_str(), true, put);
  escape((what + ", while it is away").c_str(), false, put);
}

void in_tables() {
  escape_both("by a copy",
              [](Scene& s) { check(cuMemcpyHtoD(s.table.address, s.entries, sizeof(s.entries)), "copy"); });
  escape_both("by a copy on a stream", [](Scene& s) {
    void* pinned = nullptr;
    check(cuMemAllocHost(&pinned, sizeof(s.entries)), "cuMemAllocHost");
    std::memcpy(pinned, s.entries, sizeof(s.entries));
    check(cuMemcpyHtoDAsync(s.table.address, pinned, sizeof(s.entries), s.stream), "copy");
    check(cuStreamSynchronize(s.stream), "cuStreamSynchronize");
  });
  escape_both("of its middle", [](Scene& s) {
    for (CUdeviceptr& entry : s.entries) entry += 3 * kMib;
    check(cuMemcpyHtoD(s.table.address, s.entries, sizeof(s.entries)), "copy");
  });
  escape_both("by a second copy of the table", [](Scene& s) {
    const Table other(2);
    check(cuMemcpyHtoD(other.address, s.entries, sizeof(s.entries)), "copy");
    check(cuMemcpyDtoD(s.table.address, other.address, sizeof(s.entries)), "copy");
  });
  escape_both("by rows", [](Scene& s) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = s.entries;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = s.table.address;
    copy.srcPitch = copy.dstPitch = copy.WidthInBytes = sizeof(CUdeviceptr);
    copy.Height = 2;
    check(cuMemcpy2D(&copy), "copy");
  });
}

// A kernel writes the table.
void store(const Scene& scene, CUdeviceptr table, int each = 1) {
  for (int i = 0; i < 2; ++i) {
    check(launch(kernels.store, nullptr, static_cast<std::size_t>(each), table, i * each, each, scene.entries[i]),
          "limit_store");
  }
}

void stored_by_kernels() {
  escape_both("by a kernel", [](Scene& s) { store(s, s.table.address); });
  escape("by a kernel, of its middle", false, [](Scene& s) {
    for (CUdeviceptr& entry : s.entries) entry += 3 * kMib;
    store(s, s.table.address);
  });
  escape("by a kernel, and a copy of that", true, [](Scene& s) {
    const Table other(2);
    store(s, other.address);
    check(cuMemcpyDtoD(s.table.address, other.address, sizeof(s.entries)), "copy");
  });
  escape("by a kernel, in a large table", false, [](Scene& s) {
    s.table = Table(kMib / sizeof(CUdeviceptr));
    store(s, s.table.address);
  });
  escape("by a kernel, more than are told apart", true, [](Scene& s) {
    const Table many(4096);
    store(s, many.address, 2048);
    check(cuMemcpyDtoD(s.table.address, many.address, sizeof(CUdeviceptr)), "copy");
    check(cuMemcpyDtoD(s.table.address + sizeof(CUdeviceptr), many.address + 2048 * sizeof(CUdeviceptr),
                       sizeof(CUdeviceptr)),
          "copy");
  });
}

// Before the limit is reached: nothing has been looked for by then.
void stored_before() {
  Block first{kBytes, 11}, second{kBytes, 12}, result{kBytes, 0};
  const Table table(2);
  check(launch(kernels.store, nullptr, 1, table.address, 0, 1, first.address()), "limit_store");
  check(launch(kernels.store, nullptr, 1, table.address, 1, 1, second.address()), "limit_store");
  Crowd crowd;
  for (unsigned round = 1; round <= 3; ++round) {
    crowd.drive_away();
    check(launch(kernels.scatter, nullptr, first.words.size(), table.address, 2, round, first.count()),
          "limit_scatter");
    crowd.drive_away();
    check(launch(kernels.gather, nullptr, first.words.size(), result.address(), table.address, 2, first.count()),
          "limit_gather");
    for (std::size_t i = 0; i < result.words.size(); ++i) {
      first.words[i] += round;
      second.words[i] += round;
      result.words[i] = first.words[i] + second.words[i];
    }
    say("stored before anything left", result.wrong());
  }
  say("  the blocks", first.wrong() + second.wrong());
  say("  the crowd", crowd.wrong());
}

// In each iteration a kernel stores the address of a new block, which is then used through the table alone, behind
// others that want the room.
void stored_in_iterations() {
  const Table table(1);
  Block result{kBytes, 0};
  Crowd crowd(kLimit / 2);
  std::size_t wrong = 0;
  for (unsigned iteration = 0; iteration < 40; ++iteration) {
    Block block{kBytes, iteration};
    check(launch(kernels.store, nullptr, 1, table.address, 0, 1, block.address()), "limit_store");
    std::vector<Block> others;
    for (unsigned i = 0; i < 5; ++i) others.emplace_back(kBytes, iteration + i);
    for (std::size_t i = 1; i < others.size(); ++i) others[i].add(others[i - 1]);
    crowd.use();
    check(launch(kernels.gather, nullptr, block.words.size(), result.address(), table.address, 1, block.count()),
          "limit_gather");
    result.words = block.words;
    wrong += result.wrong() + others.back().wrong();
    for (Block& other : others) other.free();
    block.free();
  }
  say("stored in each iteration", wrong);
  say("  the crowd", crowd.wrong());
}

// The table is page-locked memory of the host, which the kernel reads.
void in_host_memory() {
  Scene scene;
  CUdeviceptr* pinned = nullptr;
  CUdeviceptr where = 0;
  check(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 4096, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
  check(cuMemHostGetDevicePointer(&where, pinned, 0), "cuMemHostGetDevicePointer");
  std::memcpy(pinned, scene.entries, sizeof(scene.entries));
  scene.crowd.drive_away();
  scene.gather(where, "in host memory");
  scene.crowd.drive_away();
  scene.scatter(where, "  written");
  scene.crowd.drive_away();
  scene.gather(where, "  and read");
  say("  the crowd", scene.crowd.wrong());
}

// So much is pinned that the limit can't be kept.
void more_than_the_limit() {
  constexpr std::size_t kBlocks = 12;
  std::vector<Block> blocks;
  std::vector<CUdeviceptr> entries;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.emplace_back(kBytes, static_cast<unsigned>(i));
    entries.push_back(blocks.back().address());
  }
  const Table table(kBlocks);
  check(cuMemcpyHtoD(table.address, entries.data(), kBlocks * sizeof(CUdeviceptr)), "copy");
  for (unsigned round = 0; round < 3; ++round) {
    check(launch(kernels.scatter, nullptr, blocks[0].words.size(), table.address, static_cast<int>(kBlocks), round,
                 blocks[0].count()),
          "limit_scatter");
    std::size_t wrong = 0;
    for (Block& block : blocks) {
      for (unsigned& word : block.words) word += round;
      wrong += block.wrong();
    }
    say("72 MiB in a table", wrong);
  }
}

}  // namespace

std::span<const Case> escape_cases() {
  static constexpr std::array kCases = {Case{"escaped", in_tables},
                                        Case{"escaped-to-the-host", in_host_memory},
                                        Case{"escaped-beyond-the-limit", more_than_the_limit},
                                        Case{"stored-by-kernels", stored_by_kernels},
                                        Case{"stored-before", stored_before},
                                        Case{"stored-in-iterations", stored_in_iterations}};
  return kCases;
}

}  // namespace limit
