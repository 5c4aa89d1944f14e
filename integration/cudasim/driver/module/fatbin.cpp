// Fatbins: one container, an entry for each architecture.
//
//   container: u32 magic 0xba55ed50, u16 version 1, u16 header size, u64 bytes of all entries
//
//   entry:
//    0 u16 kind (1 PTX, 2 ELF)         2 u16 version             4 u32 header size    8 u64 payload bytes with padding
//   16 u32 compressed bytes           20 u32 offset of options  24 u16 minor, u16 major of the code's version
//   28 u32 architecture               32 u32, u32 source name   40 u64 flags         48 u64 reserved
//   56 u64 uncompressed bytes         64 options, then the payload
//
//   flags: 0x2000 LZ4 block, 0x8000 zstd frame, 0x100000 one architecture only (sm_90a), 0x200000 its family (sm_100f)
//
// Seen from nvcc and fatbinary 13.0 with every compression mode.
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <tuple>

#include "module/bytes.h"
#include "module/compatibility.h"

namespace cudasim {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::uint16_t kKindPtx = 1, kKindElf = 2;
constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000, kArchOnly = 0x100000, kFamily = 0x200000;
constexpr std::uint64_t kMaxUncompressed = std::uint64_t{1} << 31;

struct Entry {
  std::uint16_t kind;
  int arch;
  char suffix;
  std::uint64_t flags;
  std::uint64_t compressed;
  std::uint64_t uncompressed;
  std::span<const std::byte> payload;
};

[[noreturn]] void fail(const std::string& text) { throw ImageError(CUDA_ERROR_INVALID_IMAGE, "fatbin: " + text); }

std::vector<Entry> read_entries(std::span<const std::byte> bytes) {
  const Bytes file(bytes, "fatbin");
  if (file.read<std::uint32_t>(0) != kMagic) fail("its magic number is missing");
  const std::uint64_t header = file.read<std::uint16_t>(6);
  if (header < 16) fail("header of " + std::to_string(header) + " bytes");
  const Bytes entries(file.part(header, file.read<std::uint64_t>(8)), "fatbin entries");
  std::vector<Entry> result;
  for (std::uint64_t at = 0; at < entries.size();) {
    const std::uint64_t entry_header = entries.read<std::uint32_t>(at + 4);
    if (entry_header < 64) fail("entry header of " + std::to_string(entry_header) + " bytes");
    entries.part(at, entry_header);
    Entry entry{.kind = entries.read<std::uint16_t>(at),
                .arch = static_cast<int>(std::min(entries.read<std::uint32_t>(at + 28), 9999u)),
                .suffix = 0,
                .flags = entries.read<std::uint64_t>(at + 40),
                .compressed = entries.read<std::uint32_t>(at + 16),
                .uncompressed = entries.read<std::uint64_t>(at + 56),
                .payload = entries.part(at + entry_header, entries.read<std::uint64_t>(at + 8))};
    if ((entry.flags & kFamily) != 0) entry.suffix = 'f';
    if ((entry.flags & kArchOnly) != 0) entry.suffix = 'a';
    result.push_back(entry);
    at += entry_header + entry.payload.size();
  }
  return result;
}

// The payload as it is to be read; `buffer` holds it where it was compressed.
std::span<const std::byte> uncompress(const Entry& entry, std::vector<std::byte>& buffer) {
  if ((entry.flags & (kLz4 | kZstd)) == 0) return entry.payload;
  if (entry.uncompressed > kMaxUncompressed)
    fail("an entry says that it has " + std::to_string(entry.uncompressed) + " bytes uncompressed");
  const auto source = Bytes(entry.payload, "fatbin entry").part(0, entry.compressed);
  // A zstd frame or LZ4 block makes at most so much of its bytes; more is a lie, and its buffer need not be made.
  if (entry.uncompressed / 4096 > entry.compressed * 32)
    fail("an entry says that it grows by more than its compression can");
  buffer.resize(entry.uncompressed);
  if ((entry.flags & kLz4) != 0) {
    if (source.size() > LZ4_MAX_INPUT_SIZE) fail("an LZ4 entry has " + std::to_string(source.size()) + " bytes");
    const int size =
        LZ4_decompress_safe(reinterpret_cast<const char*>(source.data()), reinterpret_cast<char*>(buffer.data()),
                            static_cast<int>(source.size()), static_cast<int>(buffer.size()));
    if (size < 0 || static_cast<std::size_t>(size) != buffer.size()) fail("an LZ4 entry is damaged");
  } else {
    const std::size_t size = ZSTD_decompress(buffer.data(), buffer.size(), source.data(), source.size());
    if (ZSTD_isError(size) != 0) fail(std::string("a zstd entry is damaged: ") + ZSTD_getErrorName(size));
    if (size != buffer.size()) fail("a zstd entry has another size than it says");
  }
  return buffer;
}

// Machine code before PTX, the latest architecture of what fits; exactly fitting variants before general ones.
const Entry* choose(const std::vector<Entry>& entries, int device, bool only_ptx = false) {
  const Entry* best = nullptr;
  const auto rank = [](const Entry& e) {
    return std::tuple(e.kind == kKindElf, e.arch, e.suffix == 'a', e.suffix == 'f');
  };
  for (const Entry& entry : entries) {
    if (entry.kind != kKindPtx && (entry.kind != kKindElf || only_ptx)) continue;
    const bool fits = entry.kind == kKindElf ? machine_code_fits(entry.arch, entry.suffix, device)
                                             : ptx_fits(entry.arch, entry.suffix, device);
    if (fits && (best == nullptr || rank(entry) > rank(*best))) best = &entry;
  }
  return best;
}

// PTX that is parsed at most once.
struct Later {
  std::vector<std::byte> bytes;
  Entry entry;
  std::shared_ptr<const ptx::Program> program;

  std::shared_ptr<const ptx::Program> get() {
    if (program != nullptr) return program;
    entry.payload = bytes;
    std::vector<std::byte> buffer;
    program = parse_ptx(uncompress(entry, buffer));
    bytes = {};
    return program;
  }
};

std::string architectures(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& entry : entries) {
    if (!text.empty()) text += ", ";
    text += entry.kind == kKindPtx   ? "compute_"
            : entry.kind == kKindElf ? "sm_"
                                     : "kind " + std::to_string(entry.kind) + " for ";
    text += std::to_string(entry.arch);
    if (entry.suffix != 0) text += entry.suffix;
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

Image read_fatbin(std::span<const std::byte> bytes, int arch) {
  const std::vector<Entry> entries = read_entries(bytes);
  const Entry* entry = choose(entries, effective_arch(arch));
  if (entry == nullptr) {
    throw ImageError(CUDA_ERROR_NO_BINARY_FOR_GPU,
                     "fatbin: has code for " + architectures(entries) + ", the device is sm_" + std::to_string(arch));
  }
  std::vector<std::byte> buffer;
  const auto payload = uncompress(*entry, buffer);
  if (entry->kind != kKindElf) return read_ptx(payload);
  Image image = read_cubin(payload);
  const Entry* const ptx = choose(entries, effective_arch(arch), true);
  if (ptx == nullptr) return image;
  // The program's bytes may go away after the load: a copy, as compressed as it came.
  const auto kept = std::make_shared<Later>();
  kept->bytes.assign(ptx->payload.begin(), ptx->payload.end());
  kept->entry = *ptx;
  image.later_program = [kept] { return kept->get(); };
  return image;
}

}  // namespace cudasim
