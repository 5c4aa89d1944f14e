#include "tools/memoptctl/common/suggestion.h"

#include <gtest/gtest.h>

#include "tools/memoptctl/run/simulated_device.h"

namespace memopt::tools {
namespace {

TEST(Suggestion, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("status", "status"), 0u);
  EXPECT_EQ(edit_distance("stats", "status"), 1u);
  EXPECT_EQ(edit_distance("satus", "status"), 1u);
  EXPECT_EQ(edit_distance("sttaus", "status"), 1u) << "neighbours that are swapped are one mistake";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u) << "a pair is not edited again";
}

TEST(Suggestion, OnlyWhatIsNear) {
  const std::vector<std::string> names{"run", "record", "reduce", "status"};
  EXPECT_EQ(nearest("stauts", names), "status");
  EXPECT_EQ(nearest("recod", names), "record");
  EXPECT_EQ(nearest("rn", names), "run");
  EXPECT_EQ(nearest("bogus", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(SimulatedDevice, NamesAndFiles) {
  ASSERT_FALSE(simulated_devices().empty());
  for (const std::string& name : simulated_devices()) EXPECT_EQ(simulated_device_fault(name), "") << name;
  EXPECT_EQ(simulated_device_fault("/proc/self/maps"), "") << "a file that can be read may be a device file";
  for (const char* const name : {"", "no-such-device", "/nonexistent/device.json", "/tmp"}) {
    const std::string fault = simulated_device_fault(name);
    EXPECT_NE(fault.find("a100-40g"), std::string::npos) << fault;
    EXPECT_NE(fault.find("device file"), std::string::npos) << fault;
  }
  EXPECT_NE(simulated_device_fault("h20").find("did you mean h200?"), std::string::npos);
}

}  // namespace
}  // namespace memopt::tools
