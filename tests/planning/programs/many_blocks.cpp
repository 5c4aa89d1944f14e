// A program that has very many live blocks, and prints what a call costs it: of its own thread's processor time, so
// that nothing else on the machine is in the numbers.
//
//   many_blocks COUNT [--bytes N] [--rounds N]
//
//   --bytes N   of each block (1)
//   --rounds N  of everything, of which the fastest counts (1)
//
// In each of three orders of freeing (in order, reverse, random) COUNT blocks are made, COUNT/2 times a random one of
// them is freed and another made, and all are freed. A line each: order, ns per allocation, per free and allocation
// of the random ones, per free. Then the bytes of host memory per block by which the process grew as the first were
// made.
#include <cuda.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "driver_program.h"

const char* const kProgram = "many_blocks";

namespace {

double processor_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Of host memory, that the process has now: its own, not what stands for the device's.
double host_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  long total = 0;
  long pages = 0;
  long shared = 0;
  if (file == nullptr || std::fscanf(file, "%ld %ld %ld", &total, &pages, &shared) != 3) {
    std::fprintf(stderr, "many_blocks: /proc/self/statm cannot be read\n");
    std::exit(3);
  }
  std::fclose(file);
  return static_cast<double>(pages - shared) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

struct Costs {
  double host = 0;  // bytes
  double allocation = 0;
  double pair = 0;
  double release = 0;
};

class Stopwatch {
 public:
  // Nanoseconds per call since the last lap.
  double lap(std::size_t calls) {
    const double now = processor_nanoseconds();
    return (now - std::exchange(last_, now)) / static_cast<double>(calls);
  }

 private:
  double last_ = processor_nanoseconds();
};

CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  check(cuMemAlloc(&address, bytes), "cuMemAlloc");
  return address;
}

enum class Order { kForward, kReverse, kRandom };

Costs run(Order order, std::size_t count, std::size_t bytes, std::mt19937& random) {
  // Drawn beforehand: the numbers are the calls' alone, but for one look at a list.
  std::vector<std::uint32_t> order_of_frees(count);
  std::iota(order_of_frees.begin(), order_of_frees.end(), 0u);
  if (order == Order::kReverse) std::reverse(order_of_frees.begin(), order_of_frees.end());
  if (order == Order::kRandom) std::shuffle(order_of_frees.begin(), order_of_frees.end(), random);
  std::vector<std::uint32_t> churn(count / 2);
  for (std::uint32_t& which : churn) which = static_cast<std::uint32_t>(random() % count);
  std::vector<CUdeviceptr> blocks(count);
  Costs costs;
  const double before = host_bytes();
  Stopwatch watch;
  for (CUdeviceptr& block : blocks) block = allocate(bytes);
  costs.allocation = watch.lap(count);
  costs.host = (host_bytes() - before) / static_cast<double>(count);
  // Frees that leave holes, some at a time, and blocks that fill them again.
  constexpr std::size_t kAtOnce = 64;
  for (std::size_t from = 0; from < churn.size(); from += kAtOnce) {
    const std::size_t to = std::min(churn.size(), from + kAtOnce);
    for (std::size_t i = from; i < to; ++i) {
      CUdeviceptr& block = blocks[churn[i]];
      if (block != 0) check(cuMemFree(block), "cuMemFree");
      block = 0;
    }
    for (std::size_t i = from; i < to; ++i) {
      CUdeviceptr& block = blocks[churn[i]];
      if (block == 0) block = allocate(bytes);
    }
  }
  costs.pair = watch.lap(churn.size());
  for (const std::uint32_t which : order_of_frees) check(cuMemFree(blocks[which]), "cuMemFree");
  costs.release = watch.lap(count);
  return costs;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  std::size_t bytes = 1;
  int rounds = 1;
  for (int i = 1; i < argc; ++i) {
    if (i == 1) {
      count = static_cast<std::size_t>(number(argv[i], "COUNT"));
    } else if (std::strcmp(argv[i], "--bytes") == 0 && i + 1 < argc) {
      bytes = static_cast<std::size_t>(number(argv[++i], "--bytes"));
    } else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      rounds = number(argv[++i], "--rounds");
    } else {
      std::fprintf(stderr, "many_blocks: unknown argument '%s'\n", argv[i]);
      return 2;
    }
  }
  if (count < 2 || bytes == 0 || rounds == 0) {
    std::fprintf(stderr, "usage: many_blocks COUNT [--bytes N] [--rounds N], COUNT from 2 on\n");
    return 2;
  }
  CUdevice device = 0;
  open_device(&device);
  // What is set up once is not in the numbers.
  check(cuMemFree(allocate(bytes)), "cuMemFree");
  std::mt19937 random(1);
  constexpr std::pair<Order, const char*> kOrders[] = {
      {Order::kForward, "in order"}, {Order::kReverse, "reverse"}, {Order::kRandom, "random"}};
  Costs best[std::size(kOrders)];
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < std::size(kOrders); ++i) {
      const Costs costs = run(kOrders[i].first, count, bytes, random);
      Costs& least = best[i];
      if (round == 0) least = costs;  // of later rounds the memory is there already
      least.allocation = std::min(least.allocation, costs.allocation);
      least.pair = std::min(least.pair, costs.pair);
      least.release = std::min(least.release, costs.release);
    }
  }
  for (std::size_t i = 0; i < std::size(kOrders); ++i) {
    std::printf("%s: %.1f %.1f %.1f\n", kOrders[i].second, best[i].allocation, best[i].pair, best[i].release);
  }
  std::printf("host: %.1f\n", best[0].host);
  return 0;
}
