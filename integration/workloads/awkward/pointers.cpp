// Addresses that come to a kernel in awkward ways. Between what a case does others want the room, so that whoever moves
// blocks about has moved them.
#include <array>
#include <cstring>

#include "awkward.h"

namespace awkward {
namespace {

constexpr int kPart = kWords / 3;

// A block whose words are known, others that want its room, and the block's contents at the end.
struct Scene {
  CUdeviceptr a = block(1), b = block(2), result = block(3);
  Others others;

  ~Scene() {
    contents("a", a);
    contents("b", b);
    contents("result", result);
    for (const CUdeviceptr address : {a, b, result}) release(address);
  }
};

void interior() {
  Scene scene;
  for (unsigned round = 1; round < 4; ++round) {
    scene.others.use();
    launch(nullptr, "add", kPart, scene.result + kBytes / 3, scene.a + kBytes / 2, kPart);
    launch(nullptr, "add", kPart, scene.a + 4, scene.b + 4 * round, kPart);
  }
}

void end() {
  Scene scene;
  scene.others.use();
  launch(nullptr, "add_before", kPart, scene.a + kBytes, 5u, kPart);
  scene.others.use();
  launch(nullptr, "add_before", kWords, scene.a + kBytes, 6u, kWords);
  launch(nullptr, "add_before", kWords, scene.b + kBytes, 7u, kWords);
}

// As arrays whose first index is 1 are addressed: the address is that of the word before the block.
void biased_by_one() {
  Scene scene;
  scene.others.use();
  launch(nullptr, "add_biased", kWords, scene.a - 4, 1ll, 5u, kWords);
  scene.others.use();
  launch(nullptr, "add_biased", kWords, scene.a - 4, 1ll, 6u, kWords);
  launch(nullptr, "add_biased", kWords, scene.b - 4, 1ll, 7u, kWords);
}

// A row that does not begin at 0.
void biased_by_a_row() {
  Scene scene;
  scene.others.use();
  launch(nullptr, "add_biased", kWords, scene.a - 4096, 1024ll, 5u, kWords);
  scene.others.use();
  launch(nullptr, "add_biased", kPart, scene.b + kBytes + 4096, -1024ll - kPart, 7u, kPart);
}

void in_a_structure() {
  struct Two {
    CUdeviceptr out;
    int count;
    CUdeviceptr in;
  };
  Scene scene;
  for (int round = 0; round < 3; ++round) {
    scene.others.use();
    launch(nullptr, "add_two", kWords, Two{scene.a, kWords, scene.b});
    launch(nullptr, "add_two", kWords, Two{scene.result, kWords, scene.a});
  }
}

// Writes a table of two addresses, by `put`, and has kernels use it while others want the room.
template <typename Put>
void table(const Put& put) {
  Scene scene;
  CUdeviceptr where = allocate(2 * sizeof(CUdeviceptr));
  const CUdeviceptr entries[2] = {scene.a, scene.b};
  put(where, entries);
  for (int round = 0; round < 3; ++round) {
    scene.others.use();
    launch(nullptr, "gather", kWords, scene.result, where, 2, kWords);
  }
  finish();
  release(where);
}

void table_copied() {
  table([](CUdeviceptr where, const CUdeviceptr* entries) {
    check(cuMemcpyHtoD(where, entries, 2 * sizeof(CUdeviceptr)), "cuMemcpyHtoD");
  });
}

// From host memory at 4 modulo 8, as members of packed structures are.
void table_copied_from_odd_addresses() {
  table([](CUdeviceptr where, const CUdeviceptr* entries) {
    alignas(8) unsigned char from[4 + 2 * sizeof(CUdeviceptr)];
    std::memcpy(from + 4, entries, 2 * sizeof(CUdeviceptr));
    check(cuMemcpyHtoD(where, from + 4, 2 * sizeof(CUdeviceptr)), "cuMemcpyHtoD");
  });
}

// A header of four bytes is copied with it, to four bytes before the table.
void table_copied_with_a_header() {
  Scene scene;
  const CUdeviceptr memory = allocate(64);
  struct __attribute__((packed)) {
    unsigned header;
    CUdeviceptr entries[2];
  } from{1, {scene.a, scene.b}};
  check(cuMemcpyHtoD(memory + 4, &from, sizeof(from)), "cuMemcpyHtoD");
  for (int round = 0; round < 3; ++round) {
    scene.others.use();
    launch(nullptr, "gather", kWords, scene.result, memory + 8, 2, kWords);
  }
  finish();
  release(memory);
}

void table_in_halves() {
  table([](CUdeviceptr where, const CUdeviceptr* entries) {
    const auto* const from = reinterpret_cast<const unsigned char*>(entries);
    for (std::size_t at = 0; at < 2 * sizeof(CUdeviceptr); at += 4) {
      check(cuMemcpyHtoD(where + at, from + at, 4), "cuMemcpyHtoD");
    }
  });
}

void table_filled() {
  table([](CUdeviceptr where, const CUdeviceptr* entries) {
    for (int i = 0; i < 2; ++i) {
      check(cuMemsetD32(where + 8 * i, static_cast<unsigned>(entries[i]), 1), "cuMemsetD32");
      check(cuMemsetD32(where + 8 * i + 4, static_cast<unsigned>(entries[i] >> 32), 1), "cuMemsetD32");
    }
  });
}

void table_by_streams() {
  table([](CUdeviceptr where, const CUdeviceptr* entries) {
    for (int i = 0; i < 2; ++i) {
      const CUresult result = cuStreamWriteValue64(nullptr, where + 8 * i, entries[i], 0);
      if (i == 0) show("written by a stream", result);
      if (result != CUDA_SUCCESS) check(cuMemcpyHtoD(where + 8 * i, &entries[i], 8), "cuMemcpyHtoD");
    }
  });
}

void table_by_kernels() {
  table([](CUdeviceptr where, const CUdeviceptr* entries) {
    for (int i = 0; i < 2; ++i) launch(nullptr, "store", 1, where, i, entries[i]);
  });
}

void table_copied_on_the_device() {
  table([](CUdeviceptr where, const CUdeviceptr* entries) {
    const CUdeviceptr first = allocate(64);
    for (int i = 0; i < 2; ++i) launch(nullptr, "store", 1, first, i, entries[i]);
    check(cuMemcpyDtoD(where, first, 2 * sizeof(CUdeviceptr)), "cuMemcpyDtoD");
    finish();
    release(first);
  });
}

void table_packed() {
  Scene scene;
  struct __attribute__((packed)) Entry {
    unsigned index;
    CUdeviceptr address;
  };
  const Entry entries[2] = {{1, scene.a}, {2, scene.b}};
  const CUdeviceptr where = allocate(sizeof(entries));
  check(cuMemcpyHtoD(where, entries, sizeof(entries)), "cuMemcpyHtoD");
  for (int round = 0; round < 3; ++round) {
    scene.others.use();
    launch(nullptr, "gather_packed", kPart / 4, scene.result, where, 2, kPart / 4);
  }
  finish();
  release(where);
}

void table_in_page_locked_memory() {
  Scene scene;
  CUdeviceptr* pinned = nullptr;
  CUdeviceptr where = 0;
  check(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 4096, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
  check(cuMemHostGetDevicePointer(&where, pinned, 0), "cuMemHostGetDevicePointer");
  for (int round = 0; round < 3; ++round) {
    pinned[round % 2] = scene.a;
    pinned[1 - round % 2] = scene.b;
    scene.others.use();
    launch(nullptr, "gather", kWords, scene.result, where, 2, kWords);
    finish();
  }
  check(cuMemFreeHost(pinned), "cuMemFreeHost");
}

void table_in_managed_memory() {
  Scene scene;
  CUdeviceptr where = 0;
  check(cuMemAllocManaged(&where, 4096, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
  auto* const entries = reinterpret_cast<CUdeviceptr*>(where);
  entries[0] = scene.a;
  entries[1] = scene.b;
  for (int round = 0; round < 3; ++round) {
    scene.others.use();
    launch(nullptr, "gather", kWords, scene.result, where, 2, kWords);
  }
  finish();
  release(where);
}

void in_a_global() {
  Scene scene;
  const CUdeviceptr variable = global("awkward_global");
  check(cuMemcpyHtoD(variable, &scene.a, sizeof(scene.a)), "cuMemcpyHtoD");
  for (unsigned round = 1; round < 4; ++round) {
    scene.others.use();
    launch(nullptr, "add_to_global", kWords, round, kWords);
  }
}

void in_constant_memory() {
  Scene scene;
  const CUdeviceptr variable = global("awkward_constant");
  const CUdeviceptr entries[2] = {scene.a, scene.b};
  check(cuMemcpyHtoD(variable, entries, sizeof(entries)), "cuMemcpyHtoD");
  for (unsigned round = 1; round < 4; ++round) {
    scene.others.use();
    launch(nullptr, "add_to_constant", kWords, round, kWords);
  }
}

void stored_in_a_global() {
  Scene scene;
  launch(nullptr, "store_global", 1, scene.a);
  for (unsigned round = 1; round < 4; ++round) {
    scene.others.use();
    launch(nullptr, "add_to_global", kWords, round, kWords);
  }
}

// Each node is a block of its own, and knows the next.
void list() {
  constexpr int kNodes = 5;
  CUdeviceptr nodes[kNodes], next = 0;
  for (int i = 0; i < kNodes; ++i) {
    nodes[i] = block(static_cast<unsigned>(i));
    launch(nullptr, "make_node", 1, nodes[i], next, static_cast<unsigned>(i + 1));
    next = nodes[i];
  }
  const CUdeviceptr out = allocate(4);
  {
    Others others;
    for (int round = 0; round < 3; ++round) {
      others.use();
      launch(nullptr, "follow", 1, out, next);
      contents("followed", out, 4);
    }
  }
  for (const CUdeviceptr node : nodes) release(node);
  release(out);
}

// Freed and made again, the table written anew each time.
void table_of_new_blocks() {
  const CUdeviceptr where = allocate(2 * sizeof(CUdeviceptr)), result = block(9);
  {
    Others others;
    for (unsigned round = 0; round < 5; ++round) {
      const CUdeviceptr entries[2] = {block(round), block(round + 100)};
      check(cuMemcpyHtoD(where, entries, sizeof(entries)), "cuMemcpyHtoD");
      others.use();
      launch(nullptr, "gather", kWords, result, where, 2, kWords);
      contents("gathered", result);
      release(entries[1]);
      release(entries[0]);
    }
  }
  release(where);
  release(result);
}

void by_distance() {
  Scene scene;
  for (unsigned round = 1; round < 4; ++round) {
    scene.others.use();
    const auto distance = static_cast<long long>(scene.b - scene.a) / 4;
    launch(nullptr, "add_by_distance", kWords, scene.a, distance, round, kWords);
  }
}

void in_disguise() {
  Scene scene;
  for (unsigned round = 1; round < 4; ++round) {
    scene.others.use();
    launch(nullptr, "add_disguised", kWords, scene.b ^ 0x5555555555555555ull, round, kWords);
  }
}

}  // namespace

std::span<const Case> pointer_cases() {
  static constexpr std::array kCases = {Case{"interior-pointers", interior},
                                        Case{"end-pointers", end},
                                        Case{"pointers-biased-by-one", biased_by_one},
                                        Case{"pointers-biased-by-a-row", biased_by_a_row},
                                        Case{"pointers-in-a-structure", in_a_structure},
                                        Case{"table-copied", table_copied},
                                        Case{"table-copied-from-odd-addresses", table_copied_from_odd_addresses},
                                        Case{"table-copied-with-a-header", table_copied_with_a_header},
                                        Case{"table-in-halves", table_in_halves},
                                        Case{"table-filled", table_filled},
                                        Case{"table-by-streams", table_by_streams},
                                        Case{"table-by-kernels", table_by_kernels},
                                        Case{"table-copied-on-the-device", table_copied_on_the_device},
                                        Case{"table-packed", table_packed},
                                        Case{"table-in-page-locked-memory", table_in_page_locked_memory},
                                        Case{"table-in-managed-memory", table_in_managed_memory},
                                        Case{"table-of-new-blocks", table_of_new_blocks},
                                        Case{"pointer-in-a-global", in_a_global},
                                        Case{"pointer-stored-in-a-global", stored_in_a_global},
                                        Case{"pointers-in-constant-memory", in_constant_memory},
                                        Case{"list-of-blocks", list},
                                        Case{"blocks-by-distance", by_distance},
                                        Case{"pointers-in-disguise", in_disguise}};
  return kCases;
}

}  // namespace awkward
