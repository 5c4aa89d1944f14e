// A ring in shared memory and records to put into it, for tests of whatever reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "shm/ring.h"
#include "shm/sealed_memory.h"

namespace memopt::test {

class TestRing {
 public:
  explicit TestRing(std::uint32_t lane, std::size_t capacity = shm::kMinRingCapacity, bool sealed = true)
      : memory_(shm::create_memory("test-ring", shm::kRingDataOffset + capacity)) {
    if (memory_ && sealed) fcntl(memory_.get(), F_ADD_SEALS, shm::kSealsOfMemory);
    mapping_ = map();
    if (!mapping_) throw std::runtime_error("no memory for a test's ring");
    writer = shm::RingWriter::create(mapping_.data(), capacity, lane);
  }

  // Another mapping of the same memory, as another process has one.
  shm::SharedMapping map() const {
    return shm::SharedMapping::map(memory_.get(), bytes(), shm::SharedMapping::Access::kReadWrite);
  }
  int descriptor() const { return memory_.get(); }
  std::size_t bytes() const {
    struct stat info {};
    return fstat(memory_.get(), &info) == 0 ? static_cast<std::size_t>(info.st_size) : 0;
  }
  std::byte* data() const { return static_cast<std::byte*>(mapping_.data()); }
  shm::RingHeader& header() const { return *static_cast<shm::RingHeader*>(mapping_.data()); }

  shm::RingWriter writer;

 private:
  shm::Descriptor memory_;
  shm::SharedMapping mapping_;
};

// A record of fixed size. False: dropped.
template <typename Body>
bool write_record(shm::RingWriter& writer, shm::RecordKind kind, std::uint64_t sequence, const Body& body) {
  constexpr std::size_t kBytes = sizeof(shm::RecordHeader) + sizeof(Body);
  std::byte* const at = writer.reserve(kBytes);
  if (at == nullptr) return false;
  shm::RecordHeader header{};
  header.kind = static_cast<std::uint8_t>(kind);
  header.words = kBytes / 8;
  header.sequence = sequence;
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), &body, sizeof(body));
  writer.commit(kBytes);
  return true;
}

// The simplest one: block `sequence` is freed.
inline bool write_free(shm::RingWriter& writer, std::uint64_t sequence) {
  return write_record(writer, shm::RecordKind::kFree, sequence, shm::FreeBody{sequence, 0});
}

// One of `words` 8-byte words in all, at least 5: a name.
inline bool write_name(shm::RingWriter& writer, std::uint64_t sequence, std::size_t words) {
  const std::size_t bytes = words * 8;
  std::byte* const at = writer.reserve(bytes);
  if (at == nullptr) return false;
  shm::RecordHeader header{};
  header.kind = static_cast<std::uint8_t>(shm::RecordKind::kFunction);
  header.words = static_cast<std::uint16_t>(words);
  header.sequence = sequence;
  const shm::NameBody body{sequence, bytes - sizeof(header) - sizeof(shm::NameBody)};
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), &body, sizeof(body));
  std::memset(at + sizeof(header) + sizeof(body), static_cast<int>(sequence & 0xff), body.length);
  writer.commit(bytes);
  return true;
}

}  // namespace memopt::test
