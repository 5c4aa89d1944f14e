#include "config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "device_attributes.h"

namespace cudasim {
namespace {

std::string problem(const std::string& json) {
  try {
    DeviceModel::parse(json, "test.json");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no problem";
}

// The smallest whole device; `find` replaced by `with`.
std::string device(const std::string& find = "", const std::string& with = "") {
  std::string json =
      R"({"name": "d", "compute_capability": "7.5", "multiprocessors": 4, "capacity": "64M", "fp32_flops_per_ns": 10,
    "memory_bytes_per_ns": 20.5, "copy_in": {"bytes_per_ns": 1, "latency_ns": 100}, "copy_out": {"bytes_per_ns": 2, "latency_ns": 200},
    "pageable_bytes_per_ns": 0.5, "kernel_latency_ns": 1, "unknown_kernel_ns": 2, "launch_queue_depth": 3,
    "host_costs_ns": {"default": 7, "cuMemAlloc": 11, "cuMemMap": {"fixed": 1, "per_handle": 2}}, "attributes": {"ecc_enabled": 1}})";
  if (!find.empty()) {
    const auto at = json.find(find);
    if (at == std::string::npos) throw std::logic_error(find + " is not in the test's device");
    json.replace(at, find.size(), with);
  }
  return json;
}

TEST(ConfigTest, Bytes) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("3K"), 3072u);
  EXPECT_EQ(parse_bytes("40536M"), std::uint64_t{40536} << 20);
  EXPECT_EQ(parse_bytes("2g"), std::uint64_t{2} << 30);
  for (const char* bad : {"", "G", "-1", "1.5G", "1GB", " 1", "1 ", "0x10", "99999999999999999999", "17179869184G"}) {
    EXPECT_EQ(parse_bytes(bad), std::nullopt) << bad;
  }
}

TEST(ConfigTest, DeviceFile) {
  const DeviceModel model = DeviceModel::parse(device(), "test.json");
  EXPECT_EQ(model.name, "d");
  EXPECT_EQ(model.compute_major, 7);
  EXPECT_EQ(model.compute_minor, 5);
  EXPECT_EQ(model.capacity, std::uint64_t{64} << 20);
  EXPECT_EQ(model.memory_bytes_per_ns, 20.5);
  EXPECT_EQ(model.out_latency, Duration(200));
  EXPECT_EQ(model.host_cost("cuMemAlloc").fixed, Duration(11));
  EXPECT_EQ(model.host_cost("cuMemAlloc_v2").fixed, Duration(11));
  EXPECT_EQ(model.host_cost("cuMemAlloc_v2_ptsz").fixed, Duration(11));
  EXPECT_EQ(model.host_cost("cuMemMap").per_unit, Duration(2));
  EXPECT_EQ(model.host_cost("cuMemAllocHost_v2").fixed, Duration(7));
  EXPECT_EQ(device_attribute(model, CU_DEVICE_ATTRIBUTE_ECC_ENABLED), 1);
  EXPECT_EQ(device_attribute(model, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), 1024);
}

TEST(ConfigTest, BadDeviceFilesNameKeyAndExpectation) {
  const auto expect = [](const std::string& find, const std::string& with, const std::string& key,
                         const std::string& expectation) {
    const std::string said = problem(device(find, with));
    EXPECT_TRUE(said.starts_with("test.json")) << said;
    EXPECT_NE(said.find(key), std::string::npos) << said;
    EXPECT_NE(said.find(expectation), std::string::npos) << said;
  };
  EXPECT_EQ(problem(device()), "no problem");
  expect("\"name\": \"d\", ", "", "\"name\" is missing", "a string");
  expect("\"name\": \"d\"", "\"name\": \"\"", "\"name\" is", "not empty");
  expect("\"name\"", "\"nam\": 1, \"name\"", "unknown key \"nam\"", "expected one of name");
  expect("\"7.5\"", "\"7\"", "compute_capability", "such as \"8.0\"");
  expect("\"7.5\"", "\"7.5x\"", "compute_capability", "such as \"8.0\"");
  expect("\"7.5\"", "7.5", "compute_capability", "a string");
  expect("\"multiprocessors\": 4", "\"multiprocessors\": 0", "multiprocessors", "an integer from 1");
  expect("\"64M\"", "\"63M\"", "capacity", "a multiple of 2 MiB");
  expect("\"64M\"", "-2097152", "capacity", "a multiple of 2 MiB");
  expect("\"64M\"", "18446744073709551615", "capacity", "a multiple of 2 MiB");
  expect("20.5", "-1", "memory_bytes_per_ns", "a number above 0");
  expect("20.5", "\"fast\"", "memory_bytes_per_ns", "a number above 0");
  expect("\"latency_ns\": 100", "\"latency_ns\": -1", "latency_ns", "an integer from 0");
  expect("\"latency_ns\": 100", "\"latency\": 100", "latency_ns", "missing");
  expect("\"latency_ns\": 100", "\"latency_ns\": 100, \"x\": 1", "unknown key \"x\"", "bytes_per_ns, latency_ns");
  expect("\"default\": 7, ", "", "\"default\" is missing", "nanoseconds");
  expect("\"cuMemAlloc\"", "\"malloc\"", "unknown key \"malloc\"", "a driver call");
  expect("\"per_handle\": 2", "\"per_unit\": 2", "per_handle", "missing");
  expect("ecc_enabled", "ecc", "unknown key \"ecc\"", "CU_DEVICE_ATTRIBUTE_");
  expect("ecc_enabled", "multiprocessor_count", "unknown key \"multiprocessor_count\"", "CU_DEVICE_ATTRIBUTE_");
  expect("\"ecc_enabled\": 1", "\"ecc_enabled\": 3000000000", "ecc_enabled", "an integer");
  EXPECT_NE(problem("[]").find("expected an object"), std::string::npos);
  EXPECT_NE(problem("{\"name\": ").find("not JSON"), std::string::npos);
}

TEST(ConfigTest, EveryPresetIsAGoodDevice) {
  ASSERT_EQ(device_presets().size(), 3u);
  for (const auto& [name, json] : device_presets()) {
    const DeviceModel model = DeviceModel::preset_or_file(std::string(name));
    EXPECT_EQ(model.preset, name);
    EXPECT_NE(model.name.find("(simulated)"), std::string::npos) << name;
    EXPECT_GT(model.host_cost("cuMemAlloc").fixed, model.host_cost("cuNoSuchThing").fixed) << name;
    EXPECT_GT(model.host_cost("cuMemCreate").per_unit, Duration(0)) << name;
  }
  const DeviceModel card = DeviceModel::preset_or_file("gtx1080ti");
  EXPECT_EQ(card.out_latency, Duration(47'200));
  EXPECT_EQ(card.in_latency, Duration(9'700));
  EXPECT_NEAR(1 / card.out_bytes_per_ns, 0.0756, 0.0001);
  EXPECT_NEAR(1 / card.in_bytes_per_ns, 0.0823, 0.0001);
}

TEST(ConfigTest, FileThatIsNotThere) {
  try {
    DeviceModel::preset_or_file("no-such-device");
    FAIL();
  } catch (const std::runtime_error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("\"no-such-device\" is no preset (a100-40g, gtx1080ti, h200)"), std::string::npos) << said;
  }
}

TEST(ConfigTest, ReadmeHasTheOptionsTable) {
  std::ifstream file(CUDASIM_README);
  ASSERT_TRUE(file) << CUDASIM_README;
  const std::string readme((std::istreambuf_iterator<char>(file)), {});
  std::string table = "| Variable | Values | Default | What for |\n|---|---|---|---|\n";
  for (const Option& option : options()) {
    table += "| `" + std::string(option.name) + "` | " + std::string(option.values) + " | " +
             std::string(option.fallback) + " | " + std::string(option.help) + " |\n";
  }
  EXPECT_NE(readme.find(table), std::string::npos) << "README.md must contain this table, made from config.cpp:\n"
                                                   << table;
}

}  // namespace
}  // namespace cudasim
