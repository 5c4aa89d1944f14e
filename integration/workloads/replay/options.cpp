#include "options.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "driver.h"

namespace replay {
namespace {

constexpr char kUsage[] =
    R"(usage: replay TRACE [options]

Replays an operation trace on a CUDA device, with contents that are verified: a write stamps the pages of its block, a read
checks every one of them. Exit code: 0 all was as expected, 1 a mismatch, 2 bad arguments or trace, 3 the driver failed.

  --iterations N      play the trace up to the end of its last iteration, and that one again until N were played (fewer than
                      the trace has: stop earlier). Without it the trace is played as it stands.
  --streams S         spread operations over S streams, with events between producers and consumers (default 1)
  --threads T         T threads, each with blocks and streams of its own (default 1)
  --seed X            of the choice of stream and of how blocks are read and written (default 1)
  --alike             what is done to a block is chosen by its size, not by its place in the trace: iterations with other
                      operations between them are alike all the same
  --think             the host takes the trace's time between operations (on the simulator: of its clock)
  --times bytes|trace device time of a kernel on the simulator: its bytes (default), or the trace's time to the next operation
  --allocations-only  allocations and frees alone; needed for traces that have no reads and writes
  --warm-up K         peak footprint also from the end of iteration K (default: half of the iterations)
  --json FILE         the numbers printed at the end, as JSON
  --module FILE       the kernels (default: replay_kernels.fatbin beside this program)
  --quiet             print mismatches and the checksum alone
)";

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "replay: %s; replay --help says more\n", what.c_str());
  std::exit(kExitUsage);
}

class Arguments {
 public:
  Arguments(int argc, char** argv) : argc_(argc), argv_(argv) {}

  bool more() const { return next_ < argc_; }
  std::string_view take() { return argv_[next_++]; }

  std::string value(std::string_view option) {
    if (!more()) fail(std::string(option) + " needs a value");
    return argv_[next_++];
  }

  std::uint64_t number(std::string_view option, std::uint64_t least, std::uint64_t most) {
    const std::string text = value(option);
    std::uint64_t result = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error != std::errc() || end != text.data() + text.size() || result < least || result > most) {
      fail(std::string(option) + " takes a number from " + std::to_string(least) + " to " + std::to_string(most) +
           ", not '" + text + "'");
    }
    return result;
  }

 private:
  int argc_;
  char** argv_;
  int next_ = 1;
};

}  // namespace

Options parse_options(int argc, char** argv) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t kMostIterations = 1'000'000'000;
  Options options;
  Arguments arguments(argc, argv);
  while (arguments.more()) {
    const std::string_view option = arguments.take();
    if (option == "--help" || option == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else if (option == "--iterations") {
      options.iterations = arguments.number(option, 1, kMostIterations);
    } else if (option == "--warm-up") {
      options.warm_up = arguments.number(option, 0, kMostIterations);
    } else if (option == "--streams") {
      options.streams = static_cast<unsigned>(arguments.number(option, 1, 64));
    } else if (option == "--threads") {
      options.threads = static_cast<unsigned>(arguments.number(option, 1, 64));
    } else if (option == "--seed") {
      options.seed = arguments.number(option, 0, kMost);
    } else if (option == "--alike") {
      options.alike = true;
    } else if (option == "--think") {
      options.think = true;
    } else if (option == "--times") {
      const std::string times = arguments.value(option);
      if (times != "bytes" && times != "trace") fail("--times takes bytes or trace, not '" + times + "'");
      options.trace_times = times == "trace";
    } else if (option == "--allocations-only") {
      options.allocations_only = true;
    } else if (option == "--quiet") {
      options.quiet = true;
    } else if (option == "--json") {
      options.json = arguments.value(option);
    } else if (option == "--module") {
      options.module = arguments.value(option);
    } else if (option == "--corrupt-at") {  // for tests: overwrite a page behind the program's back
      options.corrupt_at = arguments.number(option, 0, kMost);
    } else if (option.substr(0, 1) == "-" && option.size() > 1) {
      fail("unknown option " + std::string(option));
    } else if (!options.trace.empty()) {
      fail("one trace at a time: " + options.trace + " and " + std::string(option));
    } else {
      options.trace = option;
    }
  }
  if (options.trace.empty()) fail("which trace?");
  return options;
}

}  // namespace replay
