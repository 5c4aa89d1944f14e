// memoptd: plans the memory of one user's programs. Started by their agents when there is none, gone when idle.
#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include "planner/daemon/detach.h"
#include "planner/daemon/program_sink.h"
#include "planner/daemon/server.h"
#include "shm/options.h"

namespace {

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

std::shared_ptr<spdlog::logger> make_log(const Arguments& arguments) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (!arguments.log.empty()) {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(arguments.log);
  } else if (arguments.foreground) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::null_sink_mt>();
  }
  auto logger = std::make_shared<spdlog::logger>("memoptd", std::move(sink));
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e memoptd[%P] %v");
  logger->flush_on(spdlog::level::info);
  return logger;
}

int serve(Arguments arguments) {
  // Before the working folder changes, and so that a bad path is an error that is seen; made again in the background.
  if (!arguments.log.empty()) {
    arguments.log = std::filesystem::absolute(arguments.log).string();
    make_log(arguments);
  }
  std::string error;
  if (!arguments.foreground && !memopt::planner::detach(arguments.detached, -1, &error)) {
    std::fprintf(stderr, "memoptd: %s\n", error.c_str());
    return 1;
  }
  const std::shared_ptr<spdlog::logger> log = make_log(arguments);
  memopt::planner::ServerOptions options;
  options.instance = arguments.name;
  options.idle_exit = std::chrono::milliseconds(std::llround(arguments.idle_exit * 1000));
  options.log = [&log](std::string_view line) { log->info("{}", line); };
  Server::Failure failure{};
  const std::unique_ptr<Server> server = Server::listen(
      std::move(options),
      [](const memopt::planner::ProgramInfo& program, std::string*) {
        return memopt::planner::make_program_sink(program);
      },
      &failure, &error);
  if (server == nullptr) {
    log->info("{}", error);
    // Two agents started one each, at the same time: the other one serves.
    return failure == Server::Failure::kNameTaken ? 0 : 1;
  }
  g_server = server.get();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, stop_server);
  signal(SIGINT, stop_server);
  log->info("memopt {} serves{}", MEMOPT_VERSION, arguments.name.empty() ? "" : " as " + arguments.name);
  server->run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Plans the memory of this user's programs that run with memopt. Their agents start it; nobody needs to."};
  app.add_flag("--foreground", arguments.foreground, "Stay in the foreground; log to standard error");
  app.add_option("--name", arguments.name, "Serve programs with this MEMOPT_PLANNER_NAME instead of all others")
      ->check([](const std::string& name) {
        return memopt::shm::option_check::is_instance_name(name)
                   ? std::string()
                   : "expected " + std::string(memopt::shm::option(memopt::shm::OptionId::kPlannerName).values);
      });
  app.add_option("--idle-exit", arguments.idle_exit, "Leave after so many seconds without programs; 0: never")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--log", arguments.log, "File to which messages are appended");
  app.add_flag("--detached", arguments.detached, "Already nobody's child")->group("");
  app.set_version_flag("--version", std::string("memoptd ") + MEMOPT_VERSION);
  CLI11_PARSE(app, argc, argv);
  try {
    return serve(std::move(arguments));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "memoptd: %s\n", exception.what());
    return 1;
  }
}
