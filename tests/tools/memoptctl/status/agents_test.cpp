#include "tools/memoptctl/status/agents.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/tools/memoptctl/status/status_server.h"

namespace memopt::tools {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{20000};

std::string name(const std::string& digits, uid_t uid = ::geteuid()) {
  return "memopt-" + std::to_string(uid) + "-" + std::to_string(::getpid()) + "-" + digits;
}

// Our own agent of that name, after it was asked.
Agent ask(const std::string& socket, milliseconds timeout = kLong) {
  std::vector<Agent> mine;
  for (Agent& agent : find_agents()) {
    if (agent.socket == socket) mine.push_back(agent);
  }
  EXPECT_EQ(mine.size(), 1u) << socket << " is not in /proc/net/unix exactly once";
  if (mine.empty()) return {};
  query(mine, timeout);
  return mine[0];
}

Agent ask_one_that_says(const std::string& answer) {
  const StatusServer server(name("00000000000000aa"), [&](int connection) { StatusServer::say(connection, answer); });
  return ask(server.name());
}

TEST(FindAgents, TakesOnlyNamesOfTheirForm) {
  const std::string path = testing::TempDir() + "unix-listing." + std::to_string(::getpid());
  std::ofstream(path)
      << "Num       RefCount Protocol Flags    Type St Inode Path\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01 1 @memopt-1000-42-0123456789abcdef\n"
         "0000000000000000: 00000003 00000000 00000000 0001 03 2 @memopt-1000-42-0123456789abcdef\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01 3 @memopt-0-7-ffffffffffffffff\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01 4 /tmp/@memopt-0-8-ffffffffffffffff\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01 5 @memopt-0-9-ffffffffffffffff-x\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01 6 @memopt-0--9-ffffffffffffffff\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01 7 @memopt-0-0-ffffffffffffffff\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01 8 @memopt-0-99999999999999999999-ffffffffffffffff\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01 9 @memopt-0-9-FFFFFFFFFFFFFFFF\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01 9 @memopt-\n"
         "0000000000000000: 00000002 00000000 00010000 0001 01\n";
  const std::vector<Agent> agents = find_agents(path);
  std::remove(path.c_str());
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_EQ(agents[0].pid, 7);
  EXPECT_EQ(agents[0].uid, 0u);
  EXPECT_EQ(agents[1].pid, 42);
  EXPECT_EQ(agents[1].uid, 1000u);
  EXPECT_EQ(agents[1].socket, "memopt-1000-42-0123456789abcdef");
  EXPECT_TRUE(find_agents("/nonexistent").empty());
}

TEST(Query, BringsTheAnswer) {
  const Agent agent = ask_one_that_says(R"({"format": 1, "state": "passthrough", "calls": {"total": 3}})"
                                        "\n");
  EXPECT_EQ(agent.error, "");
  EXPECT_EQ(agent.pid, ::getpid());
  EXPECT_EQ(agent.status.at("calls").at("total"), 3);
}

TEST(Query, AsksOneProcessAndSendsNothingToOthers) {
  std::string requests;
  const auto ask_one = [&](pid_t pid) {
    // One that has the name of another process: the kernel's word counts.
    const StatusServer server("memopt-" + std::to_string(::geteuid()) + "-1-00000000000000a9", [](int connection) {
      StatusServer::say(connection, R"({"format": 1, "limit": 3})"
                                    "\n");
    });
    std::vector<Agent> agents = find_agents();
    std::erase_if(agents, [&](const Agent& agent) { return agent.socket != server.name(); });
    EXPECT_EQ(agents.size(), 1u);
    query_one(agents, pid, "limit 1 3\n", kLong);
    requests = server.requests();
    return agents;
  };
  EXPECT_TRUE(ask_one(1).empty());
  EXPECT_EQ(requests, "");
  const std::vector<Agent> asked = ask_one(::getpid());
  EXPECT_EQ(requests, "limit 1 3\n");
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].error, "");
  EXPECT_EQ(asked[0].status.at("limit"), 3);
}

TEST(Query, BringsAnAnswerInPieces) {
  const StatusServer server(name("00000000000000ab"), [](int connection) {
    StatusServer::say(connection, R"({"format": 1, "list": [)");
    for (int i = 0; i < 50000; ++i) StatusServer::say(connection, "1,");
    StatusServer::say(connection, "1]}");
  });
  const Agent agent = ask(server.name());
  EXPECT_EQ(agent.error, "");
  EXPECT_EQ(agent.status.at("list").size(), 50001u);
}

TEST(Query, RefusesWhatIsNoStatus) {
  EXPECT_EQ(ask_one_that_says("").error, "it closed the connection without an answer");
  EXPECT_EQ(ask_one_that_says("hello").error, "its answer is not a JSON object");
  EXPECT_EQ(ask_one_that_says("[1, 2]").error, "its answer is not a JSON object");
  EXPECT_EQ(ask_one_that_says(R"({"format": 1, "state": )").error, "its answer is not a JSON object");
  EXPECT_EQ(ask_one_that_says("{\"format\": 1, \"state\": \"\xff\"}").error, "its answer is not a JSON object");
  EXPECT_EQ(ask_one_that_says("{}").error, "it answers in a format that this memoptctl does not know");
  EXPECT_EQ(ask_one_that_says(R"({"format": 2})").error, "it answers in a format that this memoptctl does not know");
  EXPECT_EQ(ask_one_that_says(R"({"format": "1"})").error, "it answers in a format that this memoptctl does not know");
  EXPECT_EQ(ask_one_that_says("{\"format\": 1, \"error\": \"no \\u001b[2J\"}").error, "it refused: no ?[2J");
  EXPECT_EQ(ask_one_that_says(R"({"format": 1, "a": )" + std::string(10000, '[') + std::string(10000, ']') + "}").error,
            "its answer is nested too deeply");
  for (const Agent& agent : {ask_one_that_says("hello"), ask_one_that_says("{}")}) EXPECT_TRUE(agent.status.is_null());
}

TEST(Query, StopsReadingAtTheLimit) {
  const StatusServer server(name("00000000000000ac"), [](int connection) {
    // Goes on until the reader hangs up: it must, since this never ends.
    const std::string part(65536, ' ');
    while (::send(connection, part.data(), part.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  EXPECT_EQ(ask(server.name()).error, "its answer is longer than 1 MiB");
}

TEST(Query, DoesNotWaitForOneThatNeverAnswers) {
  int hold[2];
  ASSERT_EQ(::pipe(hold), 0);
  {
    const StatusServer silent(name("00000000000000ad"), [&](int) {
      char ignored;
      EXPECT_EQ(::read(hold[0], &ignored, 1), 0);  // until the test lets go
    });
    EXPECT_EQ(ask(silent.name(), milliseconds(50)).error, "it did not answer in time");
    ::close(hold[1]);
  }
  ::close(hold[0]);
}

TEST(Query, AsksAllEvenIfOneIsBad) {
  const StatusServer bad(name("00000000000000ae"), [](int connection) { StatusServer::say(connection, "?"); });
  const StatusServer good(name("00000000000000af"),
                          [](int connection) { StatusServer::say(connection, R"({"format": 1})"); });
  std::vector<Agent> agents(3);
  agents[0].socket = bad.name();
  agents[1].socket = good.name();
  agents[2].socket = name("00000000000000b0");  // nobody
  for (Agent& agent : agents) agent.uid = ::geteuid();
  query(agents, kLong);
  EXPECT_EQ(agents[0].error, "its answer is not a JSON object");
  EXPECT_EQ(agents[1].error, "");
  EXPECT_EQ(agents[2].error, kGone);
}

TEST(Query, BelievesCredentialsNotNames) {
  const StatusServer posing(name("00000000000000b1", ::geteuid() + 1),
                            [](int connection) { StatusServer::say(connection, R"({"format": 1})"); });
  const Agent agent = ask(posing.name());
  EXPECT_EQ(agent.error, "its socket belongs to another user than the name says");
  EXPECT_TRUE(agent.status.is_null());
}

TEST(Query, TakesNoNameThatIsTooLong) {
  std::vector<Agent> agents(1);
  agents[0].socket = std::string(200, 'x');
  query(agents, kLong);
  EXPECT_EQ(agents[0].error, "its socket's name is too long");
}

}  // namespace
}  // namespace memopt::tools
