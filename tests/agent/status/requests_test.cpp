#include "agent/status/requests.h"

#include <gtest/gtest.h>

#include "planner/json/tree.h"

namespace memopt::agent {
namespace {

std::string g_asked;

constexpr Services kServices = {
    .status = [] { return std::string("the status\n"); },
    .set_limit =
        [](std::string_view text) {
          g_asked = text;
          if (text == "60%") return Services::Limit{.error = {}, .limit = 6, .held = 10};
          return Services::Limit{.error = "expected a \"limit\"", .limit = 0, .held = 0};
        },
};

TEST(Requests, TheStatusIsAnswered) { EXPECT_EQ(answer_request("status 1\n", kServices), "the status\n"); }

TEST(Requests, ALimitIsAnsweredWithWhatHolds) {
  const auto answer = nlohmann::json::parse(answer_request("limit 1 60%\n", kServices));
  EXPECT_EQ(answer, nlohmann::json({{"format", 1}, {"limit", 6}, {"held", 10}}));
}

TEST(Requests, ARefusedLimitIsAnError) {
  for (const char* value : {"", "6 GiB", " 60%", "60% ", "limit", "\xff"}) {
    g_asked = "nothing";
    const std::string request = "limit 1 " + std::string(value) + "\n";
    const auto answer = nlohmann::json::parse(answer_request(request, kServices));
    EXPECT_EQ(answer, nlohmann::json({{"format", 1}, {"error", "expected a \"limit\""}})) << value;
    EXPECT_EQ(g_asked, value);
  }
}

TEST(Requests, OthersAreNotKnown) {
  for (const char* request : {"", "\n", "status 1", "status 2\n", "limit 1 60%", "limit 1\n", "limit 2 60%\n",
                              "limit\n", "GET / HTTP/1.1\r\n"}) {
    g_asked = "nothing";
    const auto answer = nlohmann::json::parse(answer_request(request, kServices));
    EXPECT_TRUE(answer.at("error").get<std::string>().starts_with("unknown request")) << request;
    EXPECT_EQ(g_asked, "nothing") << request;
  }
}

}  // namespace
}  // namespace memopt::agent
