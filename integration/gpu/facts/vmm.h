// Chunks, and a range of addresses to map them at; everything is given back, whatever happens in between.
#pragma once

#include <cstddef>
#include <vector>

#include "device.h"

namespace facts {

class Chunk {
 public:
  Chunk(const Device& device, std::size_t bytes) {
    const CUmemAllocationProp properties = physical(device.number());
    CALL(cuMemCreate, &handle_, bytes, &properties, 0);
  }
  ~Chunk() {
    if (handle_ != 0) driver().cuMemRelease(handle_);
  }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  Chunk(Chunk&& other) noexcept : handle_(other.handle_) { other.handle_ = 0; }
  CUmemGenericAllocationHandle handle() const { return handle_; }
  void release() {
    CALL(cuMemRelease, handle_);
    handle_ = 0;
  }

 private:
  CUmemGenericAllocationHandle handle_ = 0;
};

class Range {
 public:
  Range(std::size_t bytes, std::size_t piece) : bytes_(bytes), piece_(piece), mapped_(bytes / piece, false) {
    CALL(cuMemAddressReserve, &address_, bytes, 0, 0, 0);
  }
  ~Range() {
    for (std::size_t i = 0; i < mapped_.size(); ++i) {
      if (mapped_[i]) driver().cuMemUnmap(at(i), piece_);
    }
    driver().cuMemAddressFree(address_, bytes_);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  CUdeviceptr at(std::size_t piece) const { return address_ + piece * piece_; }
  bool is_mapped(std::size_t piece) const { return mapped_[piece]; }
  void map(std::size_t piece, const Chunk& chunk) {
    CALL(cuMemMap, at(piece), piece_, 0, chunk.handle(), 0);
    mapped_[piece] = true;
  }
  void allow(const Device& device, std::size_t piece, std::size_t pieces = 1) {
    const CUmemAccessDesc access = read_and_write(device.number());
    CALL(cuMemSetAccess, at(piece), pieces * piece_, &access, 1);
  }
  void unmap(std::size_t piece) {
    CALL(cuMemUnmap, at(piece), piece_);
    mapped_[piece] = false;
  }

 private:
  CUdeviceptr address_ = 0;
  std::size_t bytes_;
  std::size_t piece_;
  std::vector<bool> mapped_;
};

}  // namespace facts
