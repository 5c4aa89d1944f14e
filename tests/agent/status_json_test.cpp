#include "agent/status_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace memopt::agent {
namespace {

TEST(StatusJson, HasEveryMemberOfTheFormat) {
  shm::Status status;
  status.pid = 12;
  status.uid = 34;
  status.version = "1.2.3";
  status.executable = "/bin/x";
  status.reason = "because";
  status.attached_for = shm::Nanoseconds(1'000'000'005);
  status.calls = shm::CallCount(7);
  status.entry_points = {{"cuA", shm::CallCount(3)}, {"cuB", shm::CallCount(4)}};
  status.memory = {shm::Bytes(1), shm::Bytes(2), shm::BlockCount(3), 4};
  status.stack_walker = {"libunwind", "/lib/u"};
  status.driver = "/lib/libcuda.so.1";
  status.problems = {{"bypass", "text"}};
  const std::string text = to_json(status);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_NE(text.find("\"attached_seconds\": 1.000000005"), std::string::npos);
  nlohmann::json json = nlohmann::json::parse(text);
  json.erase("attached_seconds");
  EXPECT_EQ(json, nlohmann::json::parse(R"({
    "format": 1, "version": "1.2.3", "pid": 12, "uid": 34, "executable": "/bin/x", "state": "passthrough", "reason": "because",
    "calls": {"total": 7, "entry_points": {"cuA": 3, "cuB": 4}},
    "memory": {"live_bytes": 1, "peak_bytes": 2, "live_blocks": 3, "untracked": 4},
    "stack_walker": {"kind": "libunwind", "detail": "/lib/u"}, "driver": "/lib/libcuda.so.1",
    "problems": [{"code": "bypass", "text": "text"}]})"));
}

TEST(StatusJson, QuotesWhatJsonWants) {
  EXPECT_EQ(nlohmann::json::parse(error_json("a\"b\\c\nd\x01\x7f")).at("error"), "a\"b\\c\nd\x01\x7f");
  EXPECT_EQ(nlohmann::json::parse(error_json("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80")).at("error"),
            "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
}

TEST(StatusJson, BytesThatAreNotUtf8AreReplaced) {
  for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                          "\xc3", "\xe2\x82"}) {
    EXPECT_NO_THROW(nlohmann::json::parse(error_json(bad))) << testing::PrintToString(bad);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random());
    ASSERT_NO_THROW(nlohmann::json::parse(error_json(text))) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace memopt::agent
