#include "tools/memoptctl/run/simulated_device.h"

#include <gtest/gtest.h>

#include <string>

namespace memopt::tools {
namespace {

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
