// Whole processes with environments of their own: configuration, injection, fork, report, exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "cudasim/cudasim.h"
#include "planner/json/tree.h"

namespace {

struct Outcome {
  int status = -1;
  std::string out, err;
  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/cudasim_process_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::system(("rm -rf '" + folder_ + "'").c_str()); }

  Outcome run(const std::string& environment, const std::string& parts) const {
    Outcome outcome;
    const std::string command = "env -i PATH=\"$PATH\" ASAN_OPTIONS=\"$ASAN_OPTIONS\" TSAN_OPTIONS=\"$TSAN_OPTIONS\" " +
                                environment + " '" + DRIVER_PROBE + "' " + parts + " >'" + folder_ + "/out' 2>'" +
                                folder_ + "/err'";
    outcome.status = std::system(command.c_str());
    if (WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) > 128)
      outcome.status = WEXITSTATUS(outcome.status) - 128;  // the shell's way
    outcome.out = read_file(folder_ + "/out");
    outcome.err = read_file(folder_ + "/err");
    return outcome;
  }
  std::string folder_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

TEST_F(ProcessTest, PresetsAndCapacity) {
  EXPECT_EQ(run("", "init name").out, "NVIDIA A100-SXM4-40GB (simulated), 42505076736 bytes\ndone\n");
  EXPECT_EQ(run("CUDASIM_DEVICE=gtx1080ti", "init name").out,
            "NVIDIA GeForce GTX 1080 Ti (simulated), 11720982528 bytes\ndone\n");
  EXPECT_EQ(run("CUDASIM_DEVICE=h200 CUDASIM_CAPACITY=7M", "init name").out,
            "NVIDIA H200 (simulated), 6291456 bytes\ndone\n");
}

TEST_F(ProcessTest, DeviceFile) {
  std::string json = read_file(std::string(PRESETS) + "/h200.json");
  ASSERT_NE(json.find("NVIDIA H200"), std::string::npos);
  json.replace(json.find("\"NVIDIA H200"), 12, "\"My own");
  std::ofstream(folder_ + "/mine.json") << json;
  EXPECT_CONTAINS(run("CUDASIM_DEVICE=" + folder_ + "/mine.json", "init name").out, "My own");
}

TEST_F(ProcessTest, WrongDeviceFailsInit) {
  std::ofstream(folder_ + "/bad.json") << "{\"name\": 5}";
  for (const std::string& device : {std::string("h2000"), folder_ + "/bad.json", folder_ + "/absent.json"}) {
    const Outcome outcome = run("CUDASIM_DEVICE=" + device, "init");
    EXPECT_EQ(outcome.code(), 3);
    EXPECT_CONTAINS(outcome.out, "cuInit(0): CUDA_ERROR_INVALID_DEVICE");
    EXPECT_CONTAINS(outcome.err, device);
  }
}

TEST_F(ProcessTest, BadValuesAreNamedAndTheDefaultIsUsed) {
  const Outcome outcome =
      run("CUDASIM_CAPACITY=lots CUDASIM_SEED=-1 CUDASIM_CHECK=yes CUDASIM_PACE=fast CUDASIM_SERIALIZE=2 "
          "CUDASIM_POISON=1 CUDASIM_INSTRUMENT=on CUDASIM_SCHEDULE=first CUDASIM_SCHEDULE_AT=cuInit "
          "CUDASIM_SCHEDULE_TRACE=trace "
          "CUDASIM_INJECT=cuMemAlloc_v2:x,nonsense CUDASIM_SPEED=3",
          "init name allocate");
  EXPECT_EQ(outcome.code(), 0);
  EXPECT_CONTAINS(outcome.out, "42505076736 bytes");
  for (const char* name :
       {"CUDASIM_CAPACITY=lots: expected bytes", "CUDASIM_SEED=-1: expected a number",
        "CUDASIM_CHECK=yes: expected `on`, `off`", "CUDASIM_PACE=fast: expected a number",
        "CUDASIM_SERIALIZE=2: expected", "CUDASIM_POISON=1: expected", "CUDASIM_INSTRUMENT=on: expected",
        "CUDASIM_SCHEDULE=first: expected a number", "CUDASIM_SCHEDULE_AT=cuInit: expected CUDASIM_SCHEDULE",
        "CUDASIM_SCHEDULE_TRACE=trace: expected CUDASIM_SCHEDULE",
        "CUDASIM_INJECT=cuMemAlloc_v2:x: expected SYMBOL:ERROR@CALL",
        "CUDASIM_INJECT=nonsense: expected SYMBOL:ERROR@CALL", "CUDASIM_SPEED is not an option"}) {
    EXPECT_CONTAINS(outcome.err, name);
  }
}

TEST_F(ProcessTest, ACallThatThereIsNotIsNoPlaceToPreempt) {
  const Outcome outcome = run("CUDASIM_SCHEDULE=1 CUDASIM_SCHEDULE_AT=cuEventRecords", "init name");
  EXPECT_EQ(outcome.code(), 0);
  EXPECT_CONTAINS(outcome.err, "CUDASIM_SCHEDULE_AT=cuEventRecords: expected the symbol of a driver call");
  EXPECT_EQ(run("CUDASIM_SCHEDULE=1 CUDASIM_SCHEDULE_AT=cuEventRecord", "init name").err.find("SCHEDULE_AT"),
            std::string::npos);
}

TEST_F(ProcessTest, GoodValuesSayNothing) {
  const Outcome outcome =
      run("CUDASIM_SEED=7 CUDASIM_CHECK=off CUDASIM_POISON=off CUDASIM_PACE=0.5 CUDASIM_SERIALIZE=1", "init name");
  EXPECT_EQ(outcome.code(), 0);
  EXPECT_EQ(outcome.err, "");
}

TEST_F(ProcessTest, TheTimelineIsAFileOfTraceEvents) {
  const std::string path = folder_ + "/timeline.json";
  EXPECT_EQ(run("CUDASIM_TIMELINE=" + path, "init copy").code(), 0);
  const std::string text = read_file(path);
  EXPECT_EQ(text.substr(0, 2), "[\n");
  EXPECT_EQ(text.substr(text.size() - 2), "]\n");
  EXPECT_CONTAINS(text, R"("args":{"name":"copies in"})");
  EXPECT_CONTAINS(text, R"({"name":"cuMemcpyHtoD_v2 4096 bytes","ph":"X","pid":1,"tid":2,"ts":)");
  EXPECT_CONTAINS(run("CUDASIM_TIMELINE=/no/such/folder", "init name").err,
                  "CUDASIM_TIMELINE: /no/such/folder can't be written: No such file or directory");
}

TEST_F(ProcessTest, Injection) {
  EXPECT_EQ(run("CUDASIM_INJECT=cuMemAlloc_v2:2@2", "init allocate").out,
            "allocation 1: 0\nallocation 2: 2\nallocation 3: 0\ndone\n");
  EXPECT_EQ(run("CUDASIM_INJECT=cuMemAlloc_v2:700@1,cuMemAlloc_v2:2@3", "init allocate").out,
            "allocation 1: 700\nallocation 2: 0\nallocation 3: 2\ndone\n");
  EXPECT_EQ(run("CUDASIM_INJECT=cuMemAlloc_v2:2", "init allocate").out,
            "allocation 1: 2\nallocation 2: 2\nallocation 3: 2\ndone\n");
  EXPECT_CONTAINS(run("CUDASIM_INJECT=cuInit:100@1", "init").out, "CUDA_ERROR_NO_DEVICE");
}

TEST_F(ProcessTest, ForkAfterInitIsRefusedInTheChild) {
#ifdef __SANITIZE_THREAD__
  const int forks = 4;  // a second each
#else
  const int forks = 20;
#endif
  // In the child the other thread is gone, and what that owned looks leaked.
  const Outcome outcome = run("ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" CUDASIM_REPORT=" + folder_ +
                                  "/report-%p.json DRIVER_PROBE_FORKS=" + std::to_string(forks),
                              "init fork_after");
  EXPECT_EQ(outcome.code(), 0);
  std::string expected;
  for (int i = 0; i < forks; ++i) expected += "child: exit 0\n";
  EXPECT_EQ(outcome.out, expected + "done\n");
  const Outcome reports{std::system(("test $(ls '" + folder_ + "' | grep -c '^report-[0-9]*[.]json$') = 1").c_str()),
                        "", ""};
  EXPECT_EQ(reports.code(), 0) << "only the parent reports";
}

TEST_F(ProcessTest, ForkBeforeInitWorksInTheChild) {
  const Outcome outcome = run("", "fork_before init name");
  EXPECT_EQ(outcome.code(), 0);
  EXPECT_CONTAINS(outcome.out, "child calls: 0\nchild calls: 1\nchild: exit 0\n");
  EXPECT_CONTAINS(outcome.out, "bytes\ndone\n");
}

TEST_F(ProcessTest, ReportIsWholeAndLast) {
  const std::string path = folder_ + "/report.json";
  const Outcome outcome = run("CUDASIM_REPORT=" + path + " CUDASIM_SEED=3", "init allocate free_at_end");
  EXPECT_EQ(outcome.code(), 0);
  EXPECT_EQ(outcome.out, "allocation 1: 0\nallocation 2: 0\nallocation 3: 0\ndone\nfreed at the end: 0\n");
  const auto report = nlohmann::json::parse(read_file(path));
  EXPECT_EQ(report["interface_version"], CUDASIM_INTERFACE_VERSION);
  EXPECT_EQ(report["program"], "driver_probe");
  EXPECT_EQ(report["device"]["preset"], "a100-40g");
  EXPECT_EQ(report["device"]["compute_capability"], "8.0");
  EXPECT_EQ(report["device"]["capacity"], 42505076736u);
  EXPECT_EQ(report["seed"], 3);
  EXPECT_EQ(report["kernels_instrumented"], false);
  EXPECT_EQ(report["races"], 0);
  EXPECT_EQ(report["launches"], 0);
  EXPECT_EQ(report["calls"]["cuMemAlloc_v2"], 4);
  EXPECT_EQ(report["calls"]["cuMemFree_v2"], 1) << "frees of static destructors are in";
  EXPECT_EQ(report["counters"]["bytes_live_peak"], 7u << 20);
  EXPECT_EQ(report["counters"]["bytes_live"], 3u << 20);
  EXPECT_EQ(report["counters"]["blocks_2mib_live_at_peak"], 1);
  std::uint64_t calls = 0;
  for (const auto& [symbol, number] : report["calls"].items()) calls += number.get<std::uint64_t>();
  EXPECT_EQ(report["counters"]["calls"], calls);
  EXPECT_GT(report["host_end_ns"], 4 * 50'000) << "four allocations of 50 µs";
  EXPECT_TRUE(report["busy_ns"].contains("compute") && report["busy_ns"].contains("copy_in") &&
              report["busy_ns"].contains("copy_out"));
}

TEST_F(ProcessTest, ReportHasThePeaksOfTheLastPeriod) {
  const std::string path = folder_ + "/report.json";
  run("CUDASIM_REPORT=" + path, "init peaks");
  EXPECT_EQ(nlohmann::json::parse(read_file(path))["counters"]["bytes_live_peak"], 0);
}

TEST_F(ProcessTest, ReportForPeople) {
  const Outcome outcome = run("CUDASIM_REPORT=stderr", "init allocate exit_five");
  EXPECT_EQ(outcome.code(), 5);
  EXPECT_CONTAINS(outcome.err, "cudasim: NVIDIA A100-SXM4-40GB (simulated), 39.6 GiB");
  EXPECT_CONTAINS(outcome.err, "3.0 MiB live in 3 blocks");
}

TEST_F(ProcessTest, ReportThatCannotBeWrittenSaysSo) {
  const Outcome outcome = run("CUDASIM_REPORT=/no/such/folder/r.json", "init");
  EXPECT_EQ(outcome.code(), 0);
  EXPECT_CONTAINS(outcome.err, "CUDASIM_REPORT: /no/such/folder/r.json: No such file");
}

TEST_F(ProcessTest, NoReportWithoutInit) { EXPECT_EQ(run("CUDASIM_REPORT=stderr", "").err, ""); }

TEST_F(ProcessTest, RaceChangesTheExitCode) {
  const Outcome race = run("CUDASIM_REPORT=" + folder_ + "/report.json", "init race");
  EXPECT_EQ(race.code(), CUDASIM_RACE_EXIT_CODE);
  EXPECT_EQ(race.out, "done\n") << "stdout is flushed";
  EXPECT_CONTAINS(race.err, "exit code 86");
  const auto report = nlohmann::json::parse(read_file(folder_ + "/report.json"));
  EXPECT_GE(report["races"], 1);
  EXPECT_EQ(report["races"], report["counters"]["races"]);
  EXPECT_CONTAINS(report["last_race"].get<std::string>(), "cuMemsetD8Async");
  EXPECT_EQ(run("", "init race exit_five").code(), CUDASIM_RACE_EXIT_CODE);
  EXPECT_EQ(run("CUDASIM_CHECK=off", "init race exit_five").code(), 5);
}

TEST_F(ProcessTest, OtherEndsKeepTheirs) {
  EXPECT_EQ(run("", "init race underscore_exit").code(), 6);
  EXPECT_EQ(run("", "init race die").code(), -SIGABRT);
  EXPECT_EQ(run("", "init exit_five").code(), 5);
}

TEST_F(ProcessTest, MissingEntryPointsAreNamedOnce) {
  const Outcome outcome = run("", "init stub");
  EXPECT_EQ(outcome.out, "cuDestroyExternalMemory: 801\ncuDestroyExternalMemory: 801\ncalls: 2\ndone\n");
  EXPECT_EQ(outcome.err, "cudasim: cuDestroyExternalMemory is not implemented; it returns CUDA_ERROR_NOT_SUPPORTED\n");
}

TEST_F(ProcessTest, HelpIsTheOptionsTable) {
  const Outcome outcome = run("CUDASIM_HELP=1", "init");
  for (const char* name : {"CUDASIM_DEVICE", "CUDASIM_INJECT", "CUDASIM_SERIALIZE", "CUDASIM_REPORT"})
    EXPECT_CONTAINS(outcome.err, name);
}

}  // namespace
