// What the simulated device has counted, for fixtures of tests that call the driver.
#pragma once
#include <gtest/gtest.h>

#include "cudasim/cudasim.h"

inline CudasimCounters device_counters() {
  CudasimCounters all{};
  all.struct_size = sizeof all;
  EXPECT_EQ(cudasim_counters(&all), 0);
  return all;
}
