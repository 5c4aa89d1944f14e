#include "tools/memoptctl/config/config_file.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace memopt::tools {
namespace {

constexpr const char* kPath = "/project/memopt.toml";

std::string fault(const std::string& text, ConfigScope scope = ConfigScope::kUser) {
  try {
    parse_config(text, kPath, scope);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::map<shm::OptionId, std::string> values(const std::string& text, ConfigScope scope = ConfigScope::kUser) {
  std::map<shm::OptionId, std::string> found;
  for (const FileSetting& setting : parse_config(text, kPath, scope)) found[setting.id] = setting.value;
  return found;
}

class ConfigFile : public testing::Test {
 protected:
  void SetUp() override {
    if (fault("").find("built without") != std::string::npos) GTEST_SKIP() << fault("");
  }
};

TEST_F(ConfigFile, EachKindOfValueIsWhatTheEnvironmentWouldHave) {
  EXPECT_EQ(values("limit = \"6GiB\"\nplan = false\nswap = true\nsync_plan = 20\n# remark\nlog = 'debug'\n"),
            (std::map<shm::OptionId, std::string>{{shm::OptionId::kLimit, "6GiB"},
                                                  {shm::OptionId::kPlan, "0"},
                                                  {shm::OptionId::kSwap, "1"},
                                                  {shm::OptionId::kSyncPlan, "20"},
                                                  {shm::OptionId::kLog, "debug"}}));
  EXPECT_TRUE(values("").empty());
  EXPECT_EQ(parse_config("\n\nlimit = \"60%\"", kPath, ConfigScope::kProject)[0].line, 3u);
}

TEST_F(ConfigFile, PathsAreMeantBesideTheFile) {
  EXPECT_EQ(values("log_file = \"logs/x\"\nplanner = \"/opt/memoptd\"\n"),
            (std::map<shm::OptionId, std::string>{{shm::OptionId::kLogFile, "/project/logs/x"},
                                                  {shm::OptionId::kPlanner, "/opt/memoptd"}}));
}

TEST_F(ConfigFile, FaultsNameThePlaceAndWhatWasExpected) {
  EXPECT_EQ(fault("plan = true\nlimt = \"6GiB\"\n"),
            "/project/memopt.toml:2:1: there is no setting limt, did you mean limit?; memoptctl config lists them");
  EXPECT_EQ(fault("nothing_like_it = 1\n"),
            "/project/memopt.toml:1:1: there is no setting nothing_like_it; memoptctl config lists them");
  EXPECT_EQ(fault("limit = \"8GB\"\n"),
            "/project/memopt.toml:1:9: limit: '8GB': expected a size (8GiB, 500M) or a part of the device (60%)");
  EXPECT_EQ(fault("\n  plan = 2\n"), "/project/memopt.toml:2:10: plan: '2': expected 0 or 1");
  EXPECT_EQ(
      fault("limit = true\n"),
      "/project/memopt.toml:1:9: limit: true or false: expected a size (8GiB, 500M) or a part of the device (60%)");
  EXPECT_EQ(fault("plan = [1]\n"), "/project/memopt.toml:1:8: plan: a list: expected 0 or 1");
  EXPECT_TRUE(fault("[plan]\n").starts_with("/project/memopt.toml:1:"));
  EXPECT_EQ(
      fault("sync_plan = 1.5\n"),
      "/project/memopt.toml:1:13: sync_plan: a number with a point (write it between quotes): expected 0 to 3600, "
      "or a duration (60s, 5min)");
  EXPECT_TRUE(fault("record = true\n").starts_with("/project/memopt.toml:1:1: there is no setting record"));
}

TEST_F(ConfigFile, WhatIsNoTomlIsSaidWithItsPlace) {
  for (const auto& [text, place] :
       {std::pair("limit = \n", "/project/memopt.toml:1:"), std::pair("a b\n", "/project/memopt.toml:1:"),
        std::pair("plan = 1\nplan = 0\n", "/project/memopt.toml:2:"),
        std::pair("plan = 1\n\"x\n", "/project/memopt.toml:2:")}) {
    EXPECT_TRUE(fault(text).starts_with(place)) << fault(text);
  }
}

TEST_F(ConfigFile, AProjectSetsNothingThatIsStartedOrWritten) {
  for (const char* const line : {"planner = \"./evil\"", "log_file = \"x\""}) {
    EXPECT_NE(fault(line, ConfigScope::kProject).find("not for a project's"), std::string::npos);
    EXPECT_EQ(fault(line, ConfigScope::kUser), "");
  }
}

TEST_F(ConfigFile, LettersBeyondAsciiAreForStringsAndRemarks) {
  EXPECT_EQ(values("# für mich\nlog_file = \"/tmp/größe\"  # ü\n").at(shm::OptionId::kLogFile), "/tmp/größe");
  EXPECT_EQ(values("log_file = \"/tmp/\\\"😀\"").at(shm::OptionId::kLogFile), "/tmp/\"😀");
  EXPECT_EQ(values("\xEF\xBB\xBFplan = 1").size(), 1u);
  // Undefined behaviour of toml++ 3.3 otherwise.
  for (const char* const text :
       {"\xef\xbf\xa9it = 1", "plan = 1\n  \xef\xbf\xa9 = 1", "plan = {\xef\xbf\xa9 = 1}",
        "log = \"a\\\"\" \xef\xbf\xa9", "log = {a = \"\"\"\n\"\"\", \xef\xbf\xa9 = 1}", "log_file = +'\xef\xbf\xa9'"}) {
    EXPECT_NE(fault(text).find("a character beyond ASCII that is not between double quotes"), std::string::npos)
        << fault(text);
  }
  EXPECT_TRUE(fault("plan = 1\n  \xef\xbf\xa9 = 1").starts_with("/project/memopt.toml:2:3: "));
}

// Bytes of any kind give settings or a fault that is fit for a terminal; nothing else.
TEST_F(ConfigFile, AnyBytes) {
  std::mt19937 random(11);
  const std::string letters = "limitplan_swap=\"'[]{}.#\n\r\t 0123456789truefals\\\x1b\xff\xc3";
  const std::string valid = "limit = \"6GiB\"\nplan = false\nsync_plan = 20\n";
  for (int turn = 0; turn < 20000; ++turn) {
    std::string text = turn % 2 == 0 ? valid : "";
    const std::size_t changes = 1 + random() % 12;
    for (std::size_t i = 0; i < changes; ++i) {
      const char letter = letters[random() % letters.size()];
      if (text.empty() || random() % 2 == 0) {
        text.insert(random() % (text.size() + 1), 1, letter);
      } else {
        text[random() % text.size()] = letter;
      }
    }
    for (const char byte : fault(text)) ASSERT_FALSE(byte >= 0 && byte < ' ') << text;
  }
}

}  // namespace
}  // namespace memopt::tools
