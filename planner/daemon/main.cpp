// memoptd: plans the memory of one user's programs. Started by their agents when there is none, gone when idle.
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "planner/daemon/detach.h"
#include "planner/daemon/log.h"
#include "planner/daemon/program_sink.h"
#include "planner/daemon/server.h"
#include "shm/options.h"

namespace {

using memopt::planner::LogLine;
using memopt::planner::open_log;
using memopt::planner::Server;

struct Arguments {
  bool foreground = false;
  bool detached = false;
  double idle_exit = 10;
  std::string name;
  std::string log;
};

Server* g_server = nullptr;
void stop_server(int) { g_server->stop(); }

int serve(Arguments arguments) {
  // Before the working folder changes, and so that a bad path is an error that is seen; made again in the background.
  if (!arguments.log.empty()) {
    arguments.log = std::filesystem::absolute(arguments.log).string();
    open_log(arguments.log, false);
  }
  std::string error;
  if (!arguments.foreground && !memopt::planner::detach(arguments.detached, -1, &error)) {
    std::fprintf(stderr, "memoptd: %s\n", error.c_str());
    return 1;
  }
  const LogLine log = open_log(arguments.log, arguments.foreground);
  memopt::planner::ServerOptions options;
  options.instance = arguments.name;
  options.idle_exit = std::chrono::milliseconds(std::llround(arguments.idle_exit * 1000));
  options.log = log;
  // A signal that comes once it can be reached, and before it knows what to stop, waits: it ends in order all the same.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  Server::Failure failure{};
  const std::unique_ptr<Server> server = Server::listen(
      std::move(options),
      [](const memopt::planner::ProgramInfo& program, std::string*) {
        return memopt::planner::make_program_sink(program);
      },
      &failure, &error);
  if (server == nullptr) {
    log(error);
    // Two agents started one each, at the same time: the other one serves.
    return failure == Server::Failure::kNameTaken ? 0 : 1;
  }
  g_server = server.get();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, stop_server);
  signal(SIGINT, stop_server);
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  log(std::string("memopt ") + MEMOPT_VERSION + " serves" + (arguments.name.empty() ? "" : " as " + arguments.name));
  server->run();
  return 0;
}

constexpr double kLongestIdle = 1e6;  // seconds

void print_help() {
  std::printf(
      "Plans the memory of this user's programs that run with memopt. Their agents start it, no person has to.\n"
      "usage: memoptd [OPTION...]\n\n"
      "  --foreground         Stay in the foreground; log to standard error\n"
      "  --name NAME          Serve programs with this MEMOPT_PLANNER_NAME instead of all others\n"
      "  --idle-exit SECONDS  Leave after so long without programs; 0: never (default: %g)\n"
      "  --log FILE           Append messages to it\n"
      "  --version            Print the version and leave\n"
      "  --help               Print this and leave\n",
      Arguments().idle_exit);
}

// A message about the value of an option; where it is empty, the option is set.
std::string set_option(int option, const std::string& value, Arguments* arguments) {
  switch (option) {
    case 'f':
      arguments->foreground = true;
      return {};
    case 'd':
      arguments->detached = true;
      return {};
    case 'l':
      arguments->log = value;
      return {};
    case 'n':
      arguments->name = value;
      return memopt::shm::option_check::is_instance_name(value)
                 ? std::string()
                 : "--name: expected " + std::string(memopt::shm::option(memopt::shm::OptionId::kPlannerName).values);
    default: {
      const char* const end = value.data() + value.size();
      const auto [rest, error] = std::from_chars(value.data(), end, arguments->idle_exit);
      const bool valid =
          error == std::errc() && rest == end && arguments->idle_exit >= 0 && arguments->idle_exit <= kLongestIdle;
      return valid ? std::string() : "--idle-exit: expected seconds, 0 to 1000000";
    }
  }
}

// What main is to return, unless memoptd is to serve. By the C library: CLI11, which reads memoptctl's line, takes
// longer to compile than all else in this folder.
std::optional<int> read_line(int argc, char** argv, Arguments* arguments) {
  constexpr int kWrongUse = 2;
  constexpr std::array kOptions = {
      option{"foreground", no_argument, nullptr, 'f'},
      option{"name", required_argument, nullptr, 'n'},
      option{"idle-exit", required_argument, nullptr, 'i'},
      option{"log", required_argument, nullptr, 'l'},
      option{"detached", no_argument, nullptr, 'd'},  // no process's child any more: for agents
      option{"version", no_argument, nullptr, 'v'},
      option{"help", no_argument, nullptr, 'h'},
      option{nullptr, 0, nullptr, 0}};
  for (int found = 0; (found = getopt_long(argc, argv, "h", kOptions.data(), nullptr)) != -1;) {
    if (found == '?') return kWrongUse;  // it has said why
    if (found == 'h') {
      print_help();
      return 0;
    }
    if (found == 'v') {
      std::printf("memoptd %s\n", MEMOPT_VERSION);
      return 0;
    }
    const std::string value = optarg == nullptr ? "" : optarg;
    if (const std::string wrong = set_option(found, value, arguments); !wrong.empty()) {
      std::fprintf(stderr, "memoptd: %s, not '%s'\n", wrong.c_str(), value.c_str());
      return kWrongUse;
    }
  }
  if (optind == argc) return std::nullopt;
  std::fprintf(stderr, "memoptd: unexpected argument '%s'; see memoptd --help\n", argv[optind]);
  return kWrongUse;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  try {
    if (const std::optional<int> code = read_line(argc, argv, &arguments)) return *code;
    return serve(std::move(arguments));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "memoptd: %s\n", exception.what());
    return 1;
  }
}
