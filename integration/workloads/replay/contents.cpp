#include "contents.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace replay {
namespace {

constexpr std::uint64_t kWindowPages = 16;
constexpr std::uint64_t kWindowBytes = kWindowPages * kPageBytes;
constexpr std::size_t kHostBytes = 1 << 20;
constexpr unsigned kThreads = 128;
// How many of 16 writes, and of 16 reads, are what; the others are one kernel each, with pointer and size.
constexpr std::uint64_t kCopied = 1, kFilled = 1;
constexpr std::uint64_t kSplit = 2, kByRange = 4, kThroughDevice = 1, kThroughHost = 1;

std::uint64_t pages_of(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

std::uint64_t take(std::uint64_t& choice, std::uint64_t of) {
  const std::uint64_t result = choice % of;
  choice /= of;
  return result;
}

}  // namespace

Contents::Contents(const Device& device, const Simulator& simulator, unsigned streams, bool legacy_stream,
                   unsigned salt)
    : device_(device),
      simulator_(simulator),
      salt_(salt),
      streams_(streams, legacy_stream),
      findings_(streams * sizeof(Findings)),
      scratch_(streams * kWindowBytes),
      host_findings_(streams * sizeof(Findings)),
      host_windows_(kHostBytes) {
  CHECK_DRIVER(cuMemsetD8Async(findings_.address(), 0, streams * sizeof(Findings), streams_.handle(0)));
  streams_.issue(0);
  streams_.synchronize();
}

Contents::~Contents() { streams_.synchronize(); }

void Contents::write(LiveBlock& block, unsigned stream, std::uint64_t choice) {
  const std::uint64_t kind = take(choice, 16);
  ++block.version;
  if (kind < kCopied && last_read_ != nullptr && last_read_ != &block && last_read_->bytes >= block.bytes) {
    LiveBlock& from = *last_read_;
    begin_read(from, stream);
    begin_write(block, stream);
    CHECK_DRIVER(cuMemcpyDtoDAsync(block.base, from.base, block.bytes, streams_.handle(stream)));
    block.content = from.content;
    const Work work = streams_.issue(stream);
    from.readers.push_back(work);
    block.writer = work;
  } else if (kind >= kCopied && kind < kCopied + kFilled && block.bytes % 4 == 0) {
    begin_write(block, stream);
    block.content = {block.number, block.version, salt_, 1};
    CHECK_DRIVER(cuMemsetD32Async(block.base, fill_word(block.content), block.bytes / 4, streams_.handle(stream)));
    block.writer = streams_.issue(stream);
  } else {
    begin_write(block, stream);
    block.content = {block.number, block.version, salt_, 0};
    stamp(stream, block.base, block.bytes, 0, block.content);
    block.writer = streams_.issue(stream);
  }
  block.written = true;
}

void Contents::read(LiveBlock& block, unsigned stream, std::uint64_t choice) {
  begin_read(block, stream);
  std::uint64_t kind = take(choice, 16);
  const std::uint64_t pages = pages_of(block.bytes);
  const auto is = [&kind](std::uint64_t share) {
    if (kind < share) return true;
    kind -= share;
    return false;
  };
  if (is(kSplit) && pages > 1) {
    const std::uint64_t middle = (1 + choice % (pages - 1)) * kPageBytes;
    verify(block, stream, 0, middle, true);
    verify(block, stream, middle, block.bytes, (choice & 1) != 0);
  } else if (is(kByRange)) {
    verify(block, stream, 0, block.bytes, true);
  } else if (is(kThroughDevice)) {
    verify_through_copy(block, stream, choice, false);
  } else if (is(kThroughHost)) {
    verify_through_copy(block, stream, choice, true);
  } else {
    verify(block, stream, 0, block.bytes, false);
  }
  verified_.bytes += block.bytes;
  block.readers.push_back(streams_.issue(stream));
  last_read_ = &block;
}

void Contents::forget(const LiveBlock& block) {
  if (last_read_ == &block) last_read_ = nullptr;
}

void Contents::corrupt(LiveBlock& block, unsigned stream) {
  begin_write(block, stream);
  const std::uint64_t page = pages_of(block.bytes) / 2;
  const std::uint64_t begin = page * kPageBytes;
  const Content foreign{~block.number, 0, salt_, 0};
  stamp(stream, block.base + begin, std::min<std::uint64_t>(kPageBytes, block.bytes - begin),
        static_cast<unsigned>(page), foreign);
  block.writer = streams_.issue(stream);
}

void Contents::begin_write(LiveBlock& block, unsigned stream) {
  streams_.order_after(stream, block.writer);
  for (const Work& reader : block.readers) streams_.order_after(stream, reader);
  block.readers.clear();
}

void Contents::begin_read(LiveBlock& block, unsigned stream) {
  streams_.order_after(stream, block.writer);
  // The newest read of a stream stands for its older ones.
  std::erase_if(block.readers, [stream](const Work& reader) { return reader.stream == stream; });
}

void Contents::stamp(unsigned stream, CUdeviceptr begin, std::uint64_t bytes, unsigned first_page, Content content) {
  std::uint64_t cost_bytes = bytes;
  void* parameters[] = {&begin, &bytes, &first_page, &content, &cost_bytes};
  launch(device_.stamp(), stream, bytes, parameters);
}

void Contents::verify(const LiveBlock& block, unsigned stream, std::uint64_t begin, std::uint64_t end, bool by_range) {
  if (begin == end) return;
  const std::uint64_t bytes = end - begin;
  launch_verify(by_range ? device_.verify_range() : device_.verify(), stream, block.base + begin, bytes,
                by_range ? block.base + end : bytes, static_cast<unsigned>(begin / kPageBytes), block.content);
}

// `second`: the size, or the end pointer; either has eight bytes.
void Contents::launch_verify(CUfunction function, unsigned stream, CUdeviceptr begin, std::uint64_t bytes,
                             std::uint64_t second, unsigned first_page, Content content) {
  CUdeviceptr findings = findings_.address() + stream * sizeof(Findings);
  void* parameters[] = {&begin, &second, &first_page, &content, &findings};
  launch(function, stream, bytes, parameters);
}

void Contents::launch(CUfunction function, unsigned stream, std::uint64_t bytes, void** parameters) {
  if (takes_ns_ != 0) simulator_.next_launch_takes(takes_ns_);
  takes_ns_ = 0;
  const auto blocks = static_cast<unsigned>((pages_of(bytes) + kThreads - 1) / kThreads);
  CHECK_DRIVER(cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, streams_.handle(stream), parameters, nullptr));
}

// A window is copied and verified there, what lies before and behind it in place.
void Contents::verify_through_copy(const LiveBlock& block, unsigned stream, std::uint64_t choice, bool to_host) {
  const std::uint64_t pages = pages_of(block.bytes);
  const std::uint64_t first = choice % pages;
  const std::uint64_t begin = first * kPageBytes;
  const std::uint64_t end = std::min(begin + kWindowBytes, block.bytes);
  const std::uint64_t bytes = end - begin;
  if (to_host && host_bytes_used_ + kWindowBytes > kHostBytes) {
    verify(block, stream, 0, block.bytes, false);
    return;
  }
  verify(block, stream, 0, begin, true);
  if (to_host) {
    CHECK_DRIVER(
        cuMemcpyDtoHAsync(host_windows_.data() + host_bytes_used_, block.base + begin, bytes, streams_.handle(stream)));
    host_copies_.push_back({host_bytes_used_, bytes, static_cast<unsigned>(first), block.content});
    host_bytes_used_ += kWindowBytes;
  } else {
    const CUdeviceptr window = scratch_.address() + stream * kWindowBytes;
    CHECK_DRIVER(cuMemcpyDtoDAsync(window, block.base + begin, bytes, streams_.handle(stream)));
    launch_verify(device_.verify(), stream, window, bytes, bytes, static_cast<unsigned>(first), block.content);
  }
  verify(block, stream, end, block.bytes, true);
}

void Contents::settle() {
  // Stream 0 reads what kernels of all streams have added to.
  for (unsigned i = 1; i < streams_.count(); ++i) streams_.order_after(0, streams_.last(i));
  const std::size_t bytes = streams_.count() * sizeof(Findings);
  CHECK_DRIVER(cuMemcpyDtoHAsync(host_findings_.data(), findings_.address(), bytes, streams_.handle(0)));
  streams_.issue(0);
  streams_.synchronize();
  std::uint64_t device_pages = 0, device_checksum = 0, device_mismatches = 0;
  for (unsigned i = 0; i < streams_.count(); ++i) {
    Findings findings;
    std::memcpy(&findings, host_findings_.data() + i * sizeof(Findings), sizeof(Findings));
    device_pages += findings.pages;
    device_checksum += findings.checksum;
    device_mismatches += findings.mismatches;
    if (findings.taken != 0) report(findings.expected, findings.page, findings.valid_bytes, findings.found);
  }
  for (const HostCopy& copy : host_copies_) check(copy);
  host_copies_.clear();
  host_bytes_used_ = 0;
  verified_.pages = device_pages + host_.pages;
  verified_.checksum = device_checksum + host_.checksum;
  verified_.mismatches = device_mismatches + host_.mismatches;
}

void Contents::check(const HostCopy& copy) {
  for (std::uint64_t offset = 0; offset < copy.bytes; offset += kPageBytes) {
    const unsigned page = copy.first_page + static_cast<unsigned>(offset / kPageBytes);
    const unsigned valid = stamp_bytes(copy.bytes - offset);
    unsigned found[kStampWords];
    unsigned expected[kStampWords];
    load_stamp(host_windows_.data() + copy.offset + offset, valid, found);
    expected_stamp(copy.content, page, valid, expected);
    ++host_.pages;
    host_.checksum += stamp_hash(found);
    if (std::equal(found, found + kStampWords, expected)) continue;
    ++host_.mismatches;
    report(copy.content, page, valid, found);
  }
}

void Contents::report(const Content& expected, unsigned page, unsigned valid, const unsigned* found) {
  if (reported_) return;
  reported_ = true;
  unsigned words[kStampWords];
  expected_stamp(expected, page, valid, words);
  std::fprintf(
      stderr,
      "replay: mismatch in block %u, page %u: expected version %u of it (%08x %08x %08x %08x), found %08x %08x %08x "
      "%08x (block, version, page, check word)%s\n",
      expected.block, page, expected.version, words[0], words[1], words[2], words[3], found[0], found[1], found[2],
      found[3], expected.filled != 0 ? "; the block was filled with one word" : "");
}

}  // namespace replay
