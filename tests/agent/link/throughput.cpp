// How many records a second reach memoptd without loss: one thread records at a steady rate, through the recorder and a
// ring of the default size, to a planner of its own. Prints what was lost, and what a record cost the planner.
//
//   agent_throughput [--rate RECORDS_PER_SECOND] [--seconds N] [--planner MEMOPTD]
//
// Exit code 0 whatever was lost: it measures. 1: there was no planner to measure.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "agent/link/link.h"
#include "agent/process/options.h"
#include "agent/recording/recorder.h"
#include "shm/channel.h"

namespace {

using Clock = std::chrono::steady_clock;

double number(const char* text, const char* option) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0) || value > 1e9) {
    std::fprintf(stderr, "agent_throughput: %s expects a number above 0, not '%s'\n", option, text);
    std::exit(2);
  }
  return value;
}

// Processor time of another process, user and system, in seconds; 0 if it can't be read.
double processor_seconds(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  // The second field is a name in parentheses; what follows it has neither.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace memopt;
  using namespace memopt::agent;
  double rate = 5e6;
  double seconds = 10;
  std::string memoptd = MEMOPT_TEST_PLANNER;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && std::strcmp(argv[i], "--rate") == 0) {
      rate = number(argv[i + 1], "--rate");
    } else if (i + 1 < argc && std::strcmp(argv[i], "--seconds") == 0) {
      seconds = number(argv[i + 1], "--seconds");
    } else if (i + 1 < argc && std::strcmp(argv[i], "--planner") == 0) {
      memoptd = argv[i + 1];
    } else {
      std::fprintf(stderr, "usage: agent_throughput [--rate RECORDS_PER_SECOND] [--seconds N] [--planner MEMOPTD]\n");
      return 2;
    }
  }
  LinkOptions chosen = link_options(options());
  chosen.planner = memoptd;
  chosen.instance = "throughput-" + std::to_string(getpid());
  start_link(chosen);
  for (int i = 0; i < 10000 && !link_status().connected; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!link_status().connected) {
    std::fprintf(stderr, "agent_throughput: no planner: %s\n", link_status().reason.c_str());
    return 1;
  }
  const pid_t planner = link_status().planner;
  const double idle_seconds = processor_seconds(planner);
  start_recording(false);
  // Two kinds in turn: a launch that names a block, and a fill.
  constexpr std::uint64_t kBurst = 500;
  const auto begun = Clock::now();
  const auto total = static_cast<std::uint64_t>(rate * seconds);
  std::uint64_t records = 0;
  double latest = 0;
  while (records < total) {
    const double due = static_cast<double>(records) / rate;
    double now = std::chrono::duration<double>(Clock::now() - begun).count();
    while (now < due) now = std::chrono::duration<double>(Clock::now() - begun).count();
    latest = now - due > latest ? now - due : latest;
    for (std::uint64_t i = 0; i < kBurst; i += 2) {
      const std::uint64_t block = 1 + i % 64;
      shm::LaunchBody launch{};
      launch.accesses = 1;
      record_launch(1, launch, {&block, 1}, 0);
      record_memset({0, block, 4096});
    }
    records += kBurst;
  }
  const double took = std::chrono::duration<double>(Clock::now() - begun).count();
  stop_recording();
  const std::uint64_t last = last_sequence();
  // The planner is done when it has looked at the last check point before the end.
  std::uint64_t processed = 0;
  for (int i = 0; i < 30000; ++i) {
    processed = link_control()->processed.load();
    if (shm::next_check_point(processed) > last) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const LinkStatus status = link_status();
  std::printf("ring of %llu KiB, %llu records in %.2f s: %.2f million a second, at most %.1f ms behind\n",
              static_cast<unsigned long long>(status.ring_bytes >> 10), static_cast<unsigned long long>(records), took,
              static_cast<double>(records) / took * 1e-6, latest * 1e3);
  std::printf("dropped %llu, looked at up to record %llu of %llu\n", static_cast<unsigned long long>(status.dropped),
              static_cast<unsigned long long>(processed), static_cast<unsigned long long>(last));
  const double used = processor_seconds(planner) - idle_seconds;
  std::printf("memoptd took %.2f s of processor time, %.1f ns per record\n", used,
              used * 1e9 / static_cast<double>(last - status.dropped));
  return 0;
}
