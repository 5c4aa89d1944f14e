// Bytes from anywhere as a recording. The first byte chooses: the file as it comes, or what comes as the payload of a
// block that is otherwise right (hashes would keep the fuzzer out of it).
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "planner/recording/reader.h"
#include "planner/recording/summary.h"
#include "planner/recording/trace.h"

namespace {

using namespace memopt::planner;

std::string wrapped(const std::uint8_t* data, std::size_t size) {
  const std::string json = "{}      ";
  recording::FileHeader file{recording::kFileMagic,   recording::kFormat, memopt::shm::kWireVersion, 2, 0,
                             XXH64(json.data(), 2, 0)};
  std::vector<char> packed(ZSTD_compressBound(size));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), data, size, 1));
  recording::BlockHeader block{};
  block.magic = recording::kBlockMagic;
  block.kind = 1;
  block.raw_bytes = static_cast<std::uint32_t>(size);
  block.packed_bytes = static_cast<std::uint32_t>(packed.size());
  block.payload_hash = XXH64(packed.data(), packed.size(), 0);
  block.header_hash = XXH64(&block, offsetof(recording::BlockHeader, header_hash), 0);
  std::string all(reinterpret_cast<const char*>(&file), sizeof file);
  all += json;
  all.append(reinterpret_cast<const char*>(&block), sizeof block);
  all.append(packed.data(), packed.size());
  return all;
}

class Nowhere : public std::streambuf {
  int overflow(int c) override { return c; }
  std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string file =
      data[0] % 2 == 0 ? std::string(reinterpret_cast<const char*>(data) + 1, size - 1) : wrapped(data + 1, size - 1);
  try {
    RecordingReader reader(std::make_unique<std::istringstream>(file));
    const Summary summary = summarise(reader);
    RecordingReader again(std::make_unique<std::istringstream>(file));
    Nowhere nowhere;
    std::ostream out(&nowhere);
    write_trace(again, summary.clock, out);
    if (summary.damage) to_string(*summary.damage);
  } catch (const RecordingError&) {
  }
  return 0;
}
