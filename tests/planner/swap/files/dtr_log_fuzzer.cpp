// Bytes from anywhere as a log for DTR's simulator.
#include <cstddef>
#include <cstdint>

#include "planner/swap/files/dtr_log.h"
#include "tests/planner/swap/files/reader_fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  memopt::swap::testing::fuzz_reader(memopt::swap::read_dtr_log, data, size);
  return 0;
}
