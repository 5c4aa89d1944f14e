#include "agent/status/status_server.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "agent/status/status_json.h"
#include "tests/preload/status_client.h"

namespace memopt::agent {
namespace {

using test::ask;
using test::connect_abstract;
using test::find_status_socket;
using test::read_all;

// One server for the whole binary, as in a program; a large answer, so that it does not fit into a socket's buffer.
class StatusServer : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    start_status_server([](std::string_view request) {
      if (request.starts_with("limit 1 ")) return "limited: " + std::string(request);
      return request == "status 1\n" ? std::string(900'000, 'x') + "\n" : error_json("not known");
    });
  }
  void SetUp() override {
    for (int i = 0; i < 1000 && name_.empty(); ++i) {
      name_ = find_status_socket(getpid());
      if (name_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_FALSE(name_.empty());
  }
  void expect_serving() { EXPECT_EQ(ask(name_, "status 1\n").size(), 900'001u); }

  std::string name_;
};

TEST_F(StatusServer, AnswersTheRequest) { expect_serving(); }

TEST_F(StatusServer, ARequestComesAsAWholeLine) {
  const int client = connect_abstract(name_);
  for (const std::string_view part : {"lim", "it 1 6", "0%", "\n"}) {
    ASSERT_EQ(write(client, part.data(), part.size()), static_cast<ssize_t>(part.size()));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(read_all(client), "limited: limit 1 60%\n");
  close(client);
  // As long as one can be, and longer.
  const std::string most = "limit 1 " + std::string(55, '1') + "\n";
  EXPECT_EQ(ask(name_, most), "limited: " + most);
  EXPECT_FALSE(ask(name_, "limit 1 " + std::string(100, '1') + "\n").ends_with("1\n"));
}

TEST_F(StatusServer, UnknownRequestsAreToldSo) {
  for (const char* request : {"status 2\n", "\n", "GET / HTTP/1.1\r\n\r\n", "status 1\nand more"}) {
    const std::string answer = ask(name_, request);
    if (std::string(request).starts_with("status 1\n")) {
      EXPECT_EQ(answer.size(), 900'001u);
    } else {
      EXPECT_NE(nlohmann::json::parse(answer).at("error"), "") << request;
    }
  }
  EXPECT_NE(nlohmann::json::parse(ask(name_, std::string(100'000, 'a'))).at("format"), 0);
  expect_serving();
}

TEST_F(StatusServer, SilentAndVanishingClientsDoNotStopIt) {
  std::vector<int> silent;
  for (int i = 0; i < 4; ++i) silent.push_back(connect_abstract(name_));
  for (int i = 0; i < 20; ++i) close(connect_abstract(name_));
  const int half = connect_abstract(name_);
  ASSERT_EQ(write(half, "stat", 4), 4);
  const int vanishing = connect_abstract(name_);
  ASSERT_EQ(write(vanishing, "status 1\n", 9), 9);
  close(vanishing);
  expect_serving();
  // A silent client is sent away.
  EXPECT_EQ(read_all(silent[0]), "");
  for (const int client : silent) close(client);
  close(half);
}

TEST_F(StatusServer, AClientThatDoesNotReadDoesNotStopIt) {
  const int client = connect_abstract(name_);
  ASSERT_EQ(write(client, "status 1\n", 9), 9);
  expect_serving();
  close(client);
}

TEST_F(StatusServer, OtherUsersAreSentAway) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot become another user";
  // Root is answered by everybody's agent; so let the server's process be root and the asker nobody.
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    _exit(ask(name_, "status 1\n").empty() && ask(name_, "limit 1 60%\n").empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_serving();
}

TEST_F(StatusServer, ItsThreadTakesNoSignals) {
  bool found = false;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name != "memopt-status") continue;
    found = true;
    std::ifstream status(task.path() / "status");
    std::string line;
    std::uint64_t blocked = 0;
    while (std::getline(status, line)) {
      if (line.starts_with("SigBlk:")) blocked = std::stoull(line.substr(7), nullptr, 16);
    }
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM})
      EXPECT_TRUE((blocked >> (signal - 1)) & 1) << signal;
  }
  EXPECT_TRUE(found);
}

TEST_F(StatusServer, AForkedChildDoesNotKeepTheSocket) {
  const pid_t child = fork();
  if (child == 0) {
    forget_status_server_after_fork();
    // The name is bound by the parent alone; no descriptor of this process is a listening socket any more.
    for (int i = 3; i < 1024; ++i) {
      int listening = 0;
      socklen_t size = sizeof(listening);
      if (getsockopt(i, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0) _exit(1);
    }
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  expect_serving();
}

}  // namespace
}  // namespace memopt::agent
