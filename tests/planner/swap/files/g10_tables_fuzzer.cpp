// Bytes from anywhere as a kernel table of G10's.
#include <cstddef>
#include <cstdint>

#include "planner/swap/files/g10_tables.h"
#include "tests/planner/swap/files/reader_fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  memopt::swap::testing::fuzz_reader(memopt::swap::read_g10_table, data, size);
  return 0;
}
