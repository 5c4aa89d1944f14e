#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>

#include "shm/channel.h"
#include "shm/message_socket.h"
#include "shm/options.h"
#include "shm/planner_path.h"
#include "shm/sealed_memory.h"
#include "tools/memoptctl/common/install_paths.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/doctor/checks.h"
#include "tools/memoptctl/run/limited_process.h"

namespace memopt::tools {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStart{15'000};   // until it listens, on a machine that is busy
constexpr milliseconds kAnswer{10'000};  // to the greeting
constexpr milliseconds kLook{10};
constexpr const char* kHangsUp = "it closed the connection without an answer";

const char* const kReinstall = "install memoptd and libmemopt.so from one build; MEMOPT_PLANNER names another memoptd";

// As the agent looks for it.
std::string planner_path(std::string& why) {
  if (const char* const wanted = std::getenv(std::string(shm::option(shm::OptionId::kPlanner).name).c_str());
      wanted != nullptr && *wanted != '\0') {
    if (::access(wanted, X_OK) == 0) return wanted;
    why = fmt::format("MEMOPT_PLANNER={}: {}", wanted, std::strerror(errno));
    return "";
  }
  const auto library = find_library();
  if (!library) {
    why = "it is looked for beside libmemopt.so, which is missing";
    return "";
  }
  const std::string folder = library->parent_path().string();
  std::string found = shm::planner_beside(folder);
  if (found.empty()) why = "there is no memoptd in " + shm::planner_places(folder);
  return found;
}

std::string read_all(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Greets it; empty: welcome. `refused`: it understood, and said no.
std::string greet(int socket, bool* refused) {
  shm::Descriptor memory = shm::create_memory("memopt-doctor", shm::kControlBytes);
  if (!memory || ::fcntl(memory.get(), F_ADD_SEALS, shm::kSealsOfMemory) != 0) return std::strerror(errno);
  shm::SharedMapping mapping =
      shm::SharedMapping::map(memory.get(), shm::kControlBytes, shm::SharedMapping::Access::kReadWrite);
  if (!mapping) return std::strerror(errno);
  auto* const control = new (mapping.data()) shm::Control{};
  control->magic = shm::kControlMagic;
  control->wire_version = shm::kWireVersion;
  control->bytes = sizeof(shm::Control);
  shm::HelloBody hello{};
  hello.wire_version = shm::kWireVersion;
  hello.flags = shm::kRecordOnly;
  hello.pid = ::getpid();
  std::strncpy(hello.program, "memoptctl doctor", sizeof hello.program - 1);
  if (const int failure = shm::send_message(socket, shm::MessageKind::kHello, hello, memory.get()); failure != 0) {
    // It may be gone before or after it could have read this.
    return failure == EPIPE || failure == ECONNRESET ? kHangsUp : std::strerror(failure);
  }
  shm::ReceivedMessage answer;
  const auto until = std::chrono::steady_clock::now() + kAnswer;
  do {
    pollfd waiting{socket, POLLIN, 0};
    ::poll(&waiting, 1, 100);
    shm::receive_message(socket, answer);
    if (answer.state == shm::ReceivedMessage::State::kNothing) continue;
    if (answer.state != shm::ReceivedMessage::State::kMessage) return kHangsUp;
    if (answer.kind == shm::MessageKind::kWelcome) return "";
    if (answer.kind == shm::MessageKind::kRefused) {
      *refused = true;
      return "it refused: " + printable(answer.text());
    }
  } while (std::chrono::steady_clock::now() < until);
  return fmt::format("it did not answer within {} s", kAnswer.count() / 1000);
}

void check_handshake(Report& report, const std::string& path, const std::string& version) {
  const std::string instance = fmt::format("doctor-{}", ::getpid());
  LimitedCommand command{{path, "--foreground", "--name", instance}};
  command.empty_environment = true;  // as the agent starts it
  command.limit = kStart + kAnswer + milliseconds(5000);
  LimitedProcess planner(command);
  const shm::AbstractAddress address(shm::planner_socket_name(::geteuid(), instance));
  const auto until = std::chrono::steady_clock::now() + kStart;
  shm::Descriptor socket;
  bool running = true;
  int other = -1;
  while (!socket && running && other < 0 && std::chrono::steady_clock::now() < until) {
    running = planner.run_for(kLook);
    shm::Descriptor attempt(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (attempt && ::connect(attempt.get(), address.get(), address.length) == 0) {
      socket = std::move(attempt);
    } else {
      const int seen = planner_wire_version(read_all("/proc/net/unix"), ::geteuid(), instance);
      if (seen >= 0 && static_cast<std::uint32_t>(seen) != shm::kWireVersion) other = seen;
    }
  }
  if (!socket) {
    if (other >= 0) {
      report.add("planner", Verdict::kProblem,
                 fmt::format("{} is of another version: it speaks wire version {}, this memopt {}", path, other,
                             shm::kWireVersion),
                 kReinstall);
      return;
    }
    const std::string said = printable(planner.errors().substr(0, planner.errors().find('\n')));
    report.add("planner", Verdict::kProblem,
               fmt::format("{} does not listen: {}{}{}", path,
                           running ? fmt::format("nothing within {} s", kStart.count() / 1000) : planner.how_it_ended(),
                           said.empty() ? "" : ": ", said),
               "start it by hand (memoptd --foreground) to see more; programs run on without plans");
    return;
  }
  bool refused = false;
  const std::string why = greet(socket.get(), &refused);
  if (why.empty()) {
    report.add("planner", Verdict::kOk,
               fmt::format("{}, memopt {}, wire version {}", path, version, shm::kWireVersion));
  } else {
    report.add("planner", Verdict::kProblem, fmt::format("{}: {}", path, why),
               refused ? kReinstall : "programs run on without plans");
  }
}

}  // namespace

int planner_wire_version(const std::string& listing, unsigned uid, const std::string& instance) {
  const std::string before = fmt::format(" @memoptd-{}-", uid);
  for (std::size_t at = listing.find(before); at != std::string::npos; at = listing.find(before, at + 1)) {
    const std::size_t number = at + before.size();
    const std::size_t end = listing.find_first_not_of("0123456789", number);
    if (end == number || end == std::string::npos || end - number > 6) continue;
    const std::size_t line_end = listing.find('\n', end);
    if (listing.compare(end, line_end == std::string::npos ? line_end : line_end - end, "-" + instance) != 0) continue;
    return std::atoi(listing.substr(number, end - number).c_str());
  }
  return -1;
}

void check_planner(Report& report, const std::string& version) {
  std::string why;
  const std::string path = planner_path(why);
  if (path.empty()) {
    report.add("planner", Verdict::kProblem, why, "install memoptd beside libmemopt.so, or name it by MEMOPT_PLANNER");
    return;
  }
  LimitedCommand command{{path, "--version"}};
  command.empty_environment = true;
  LimitedProcess asked(command);
  asked.finish();
  // "memoptd 0.1.0"
  const std::string said = printable(asked.output().substr(0, asked.output().find('\n')));
  const std::string prefix = "memoptd ";
  if (!asked.ok() || !said.starts_with(prefix)) {
    report.add("planner", Verdict::kProblem,
               fmt::format("{} --version: {}", path, asked.ok() ? "it said: " + said : asked.how_it_ended()),
               kReinstall);
    return;
  }
  if (said.substr(prefix.size()) != version) {
    report.add(
        "planner", Verdict::kProblem,
        fmt::format("{} is memopt {}, the library {}: version mismatch", path, said.substr(prefix.size()), version),
        kReinstall);
    return;
  }
  check_handshake(report, path, version);
}

}  // namespace memopt::tools
