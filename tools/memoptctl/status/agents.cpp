#include "tools/memoptctl/status/agents.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string_view>

#include "shm/status.h"
#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kDeepestAnswer = 16;

// One connection on its way from connecting to the end of the answer.
struct Exchange {
  explicit Exchange(Agent* of) : agent(of) {}

  Agent* agent;
  int fd = -1;
  std::string answer;

  void finish(std::string error) {
    agent->error = std::move(error);
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  bool done() const { return fd < 0; }
};

// Takes a decimal number off the front of `text`, and the '-' behind it.
template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || stop == text.data() + text.size() || *stop != '-') return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()) + 1);
  return true;
}

// memopt-<uid>-<pid>-<16 hex digits>: fills in uid and pid.
bool parse_name(Agent& agent) {
  std::string_view rest = agent.socket;
  if (!rest.starts_with(shm::kStatusSocketPrefix)) return false;
  rest.remove_prefix(shm::kStatusSocketPrefix.size());
  if (!take_number(rest, agent.uid) || !take_number(rest, agent.pid) || agent.pid <= 0) return false;
  return rest.size() == 16 && rest.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The answer as a JSON object; its depth is bounded while parsing, since the text comes from another process.
nlohmann::json parse(const std::string& text, std::string& error) {
  bool too_deep = false;
  const auto bounded = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep = too_deep || depth > kDeepestAnswer;
    return depth <= kDeepestAnswer;
  };
  nlohmann::json value = nlohmann::json::parse(text, bounded, false);
  if (too_deep || value.is_discarded() || !value.is_object()) {
    error = too_deep ? "its answer is nested too deeply" : "its answer is not a JSON object";
    return nullptr;
  }
  const auto format = value.find("format");
  if (format == value.end() || *format != shm::kStatusFormat) {
    error = "it answers in a format that this memoptctl does not know";
    return nullptr;
  }
  if (const auto refusal = value.find("error"); refusal != value.end()) {
    error =
        "it refused: " + (refusal->is_string() ? printable(refusal->get_ref<const std::string&>()) : "no reason given");
    return nullptr;
  }
  return value;
}

// Nothing where the peer is of the user that the name says, else why not. Any process can take a name; the
// credentials are the kernel's.
std::string check_peer(int fd, Agent& agent) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::strerror(errno);
  if (peer.uid != agent.uid) return "its socket belongs to another user than the name says";
  // The name has the pid that the process sees; from outside its pid namespace the kernel's is the right one (0: not
  // visible).
  if (peer.pid > 0) agent.pid = peer.pid;
  return "";
}

// Connects; nothing is sent yet.
void start(Exchange& exchange) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& name = exchange.agent->socket;
  if (name.size() + 1 > sizeof address.sun_path) return exchange.finish("its socket's name is too long");
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  exchange.fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (exchange.fd < 0) return exchange.finish(std::strerror(errno));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  // A local connect is complete at once or refused; EAGAIN means that the agent's queue is full, as when it is stopped.
  if (::connect(exchange.fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return exchange.finish(errno == EAGAIN         ? "it does not take connections (stopped?)"
                           : errno == ECONNREFUSED ? kGone
                                                   : std::strerror(errno));
  }
  if (std::string wrong = check_peer(exchange.fd, *exchange.agent); !wrong.empty())
    return exchange.finish(std::move(wrong));
}

void send(Exchange& exchange, std::string_view request) {
  // A few bytes always fit into a fresh socket's buffer.
  if (::send(exchange.fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    exchange.finish("it closed the connection without an answer");
  }
}

void receive(Exchange& exchange) {
  char part[16384];
  const ssize_t got = ::recv(exchange.fd, part, sizeof part, 0);
  if (got < 0) {
    if (errno == ECONNRESET) return exchange.finish("it closed the connection without an answer");
    if (errno != EAGAIN && errno != EINTR) exchange.finish(std::strerror(errno));
    return;
  }
  if (got > 0) {
    exchange.answer.append(part, static_cast<std::size_t>(got));
    if (exchange.answer.size() > shm::kStatusAnswerLimit) exchange.finish("its answer is longer than 1 MiB");
    return;
  }
  std::string error;
  if (exchange.answer.empty()) {
    error = "it closed the connection without an answer";
  } else {
    exchange.agent->status = parse(exchange.answer, error);
  }
  exchange.finish(std::move(error));
}

// The answers of those that are connected.
void finish(std::vector<Exchange>& exchanges, Clock::time_point deadline) {
  for (;;) {
    std::vector<pollfd> waiting;
    std::vector<Exchange*> owners;
    for (Exchange& exchange : exchanges) {
      if (exchange.done()) continue;
      waiting.push_back({exchange.fd, POLLIN, 0});
      owners.push_back(&exchange);
    }
    if (waiting.empty()) return;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    const int ready = left <= 0 ? 0 : ::poll(waiting.data(), waiting.size(), static_cast<int>(left));
    if (ready == 0 || (ready < 0 && errno != EINTR)) {
      const std::string why = ready == 0 ? "it did not answer in time" : std::strerror(errno);
      for (Exchange* exchange : owners) exchange->finish(why);
      return;
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) receive(*owners[i]);
    }
  }
}

}  // namespace

std::vector<Agent> find_agents(const std::string& listing) {
  std::vector<Agent> agents;
  std::ifstream file(listing);
  std::string line;
  while (std::getline(file, line)) {
    // The path is the last column, '@' standing for the leading NUL byte of an abstract name.
    const std::size_t at = line.rfind(" @");
    if (at == std::string::npos) continue;
    Agent agent;
    agent.socket = line.substr(at + 2);
    if (!parse_name(agent)) continue;
    // A listening socket and each of its connections have the same name.
    const bool known =
        std::any_of(agents.begin(), agents.end(), [&](const Agent& other) { return other.socket == agent.socket; });
    if (!known) agents.push_back(std::move(agent));
  }
  std::sort(agents.begin(), agents.end(), [](const Agent& a, const Agent& b) { return a.pid < b.pid; });
  return agents;
}

void query(std::vector<Agent>& agents, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  std::vector<Exchange> exchanges;
  for (Agent& agent : agents) {
    Exchange& exchange = exchanges.emplace_back(&agent);
    start(exchange);
    if (!exchange.done()) send(exchange, shm::kStatusRequest);
  }
  finish(exchanges, deadline);
}

void query_one(std::vector<Agent>& agents, pid_t pid, std::string_view request, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  std::vector<Agent> asked;
  for (Agent& agent : agents) {
    std::vector<Exchange> exchanges;
    Exchange& exchange = exchanges.emplace_back(&agent);
    start(exchange);
    if (agent.pid != pid) {
      exchange.finish("");
      continue;
    }
    if (!exchange.done()) send(exchange, request);
    finish(exchanges, deadline);
    asked.push_back(std::move(agent));
  }
  agents = std::move(asked);
}

}  // namespace memopt::tools
