// Programs whose blocks are more than memopt may hold of the device: awkward ones, a case each. Each prints what it has
// read that is not as it must be, the same with a limit as without memopt. Under MEMOPT_LIMIT=48MiB what a case uses of
// its blocks is away when it does.
//
//   limit_cases CASE [ARGUMENT]
//
//   copies-to-the-host, copies-from-the-host, copies-on-the-device, fills    of blocks that are away (limit_copies.cpp)
//   beside-small-copies N         how long copies of the program's own take beside those (limit_copies.cpp)
//   middle, end, parameters       how a launch names a block that is away (limit_accesses.cpp)
//   questions                     what the driver is asked about it
//   more-than-the-limit, one-large-block           what the limit has no room for
//   escaped, escaped-to-the-host, escaped-beyond-the-limit    addresses in memory (limit_escapes.cpp)
//   freed, pooled, freed-by-another-thread    blocks that end while they are away (limit_lives.cpp)
//   reset, destroyed-context      contexts that do
//   exit [_exit|exit-by-thread], fork [_exit|frees]    processes that do
//   turns [N], iterations N       blocks come and go
//   longer-launches N             iterations whose launches take longer from the middle on
//   handed-on, rounds, reused, legacy-stream, iterations-on-streams N     streams (limit_order.cpp)
//   same-block, threads           threads
//   blocked, all-blocked, blocked-touch    work that ends only after a call that wants memory
//   graphs-captured, -by-hand, -freed, -allocated, -each, -copies    named by graphs (limit_graphs.cpp)
//   refused, refused-threads, untouched, of-the-driver    without a limit, on a full device (limit_full.cpp)
//
// Exit code 3: the driver's error, which is named; 1: `turns` has read something wrong.
#include <malloc.h>

#include <cstdio>
#include <span>
#include <string>

#include "limit_program.h"

const char* const kProgram = "limit_cases";

int main(int argc, char** argv) {
  // What blocks must hold is kept on the host, and is freed and made again all the time: without giving pages back.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const std::string name = argc > 1 ? argv[1] : "";
  if (argc > 2) limit::argument = argv[2];
  limit::open();
  for (const std::span<const limit::Case> cases :
       {limit::access_cases(), limit::copy_cases(), limit::escape_cases(), limit::life_cases(), limit::order_cases(),
        limit::full_cases(), limit::graph_cases()}) {
    for (const limit::Case& one : cases) {
      if (name != one.name) continue;
      one.run();
      return 0;
    }
  }
  std::fprintf(stderr, "limit_cases: unknown case '%s'\n", name.c_str());
  return 2;
}
