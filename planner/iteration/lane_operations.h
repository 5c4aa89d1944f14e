// The operations of one thread: their tokens and their positions in the store, in order. Kept in chunks, so that
// growing copies nothing and the oldest are given up without moving the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace memopt::planner {

// Indices begin at the oldest operation that is kept, positions at the oldest of the store: both shift when something
// is forgotten.
class LaneOperations {
  static constexpr std::uint32_t kChunkBits = 14;
  static constexpr std::uint32_t kChunkMask = (1u << kChunkBits) - 1;

 public:
  struct Chunk {
    std::uint64_t tokens[kChunkMask + 1];
    std::uint32_t positions[kChunkMask + 1];  // the lowest bits of absolute ones
  };
  using Pool = std::vector<std::unique_ptr<Chunk>>;  // chunks to be used again

  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  bool empty() const { return end_ == begin_; }
  // Operations that have been forgotten: index + forgotten() names the same operation for ever.
  std::uint64_t forgotten() const { return begin_; }

  // Position in the store.
  std::uint32_t operator[](std::size_t index) const {
    const std::uint64_t at = begin_ + index;
    return chunk(at).positions[at & kChunkMask] - base_;
  }
  std::uint32_t back() const { return (*this)[size() - 1]; }
  std::uint64_t token(std::size_t index) const {
    const std::uint64_t at = begin_ + index;
    return chunk(at).tokens[at & kChunkMask];
  }
  // The tokens from `first` on, which fill `tokens`.
  void copy_tokens(std::size_t first, std::vector<std::uint64_t>& tokens) const {
    for (std::size_t done = 0; done < tokens.size();) {
      const std::uint64_t at = begin_ + first + done;
      const std::size_t count = std::min<std::size_t>(tokens.size() - done, kChunkMask + 1 - (at & kChunkMask));
      std::memcpy(tokens.data() + done, chunk(at).tokens + (at & kChunkMask), count * sizeof(std::uint64_t));
      done += count;
    }
  }
  // The last index in [low, high) with this token; `high` where there is none. `high` is at most size().
  std::size_t find_last(std::uint64_t token, std::size_t low, std::size_t high) const {
    for (std::size_t end = high; end > low;) {
      const std::uint64_t last = begin_ + end - 1;
      const std::uint64_t* const tokens = chunk(last).tokens;
      const std::size_t in_chunk = static_cast<std::size_t>(last & kChunkMask) + 1;
      const std::size_t count = std::min(end - low, in_chunk);
      const std::size_t stop = in_chunk - count;
      const auto differs = [&](std::size_t i) { return tokens[i] != token; };
      for (std::size_t at = in_chunk; at > stop;) {
        // Four by four, since nearly all are different.
        if (at >= stop + 4 && (differs(at - 1) & differs(at - 2) & differs(at - 3) & differs(at - 4))) {
          at -= 4;
          continue;
        }
        if (!differs(at - 1)) return end - 1 - (in_chunk - at);
        --at;
      }
      end -= count;
    }
    return high;
  }
  // How many lie before `position` in the store.
  std::uint32_t count_before(std::uint32_t position) const {
    std::uint32_t low = 0, high = static_cast<std::uint32_t>(size());
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if ((*this)[middle] < position) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // For the store. `position` is absolute, as are the arguments of forget(): the lane's operations and the store's
  // positions from which on they are kept.
  std::uint32_t next_index() const { return static_cast<std::uint32_t>(end_); }
  std::uint32_t first_index() const { return static_cast<std::uint32_t>(begin_); }
  std::uint64_t end() const { return end_; }
  void append(std::uint64_t position, std::uint64_t token, Pool& pool) {
    const std::uint32_t at = static_cast<std::uint32_t>(end_) & kChunkMask;
    if (at == 0) [[unlikely]]
      add_chunk(pool);
    last_->tokens[at] = token;
    last_->positions[at] = static_cast<std::uint32_t>(position);
    ++end_;
  }
  void forget(std::uint64_t begin, std::uint64_t position, Pool& pool) {
    begin_ = begin;
    base_ = static_cast<std::uint32_t>(position);
    // The chunk that is being filled stays.
    const std::uint64_t unused = std::min<std::uint64_t>((begin_ >> kChunkBits) - first_chunk_, chunks_.size());
    if (unused == 0) return;
    const auto last = chunks_.begin() + static_cast<std::ptrdiff_t>(unused);
    for (auto each = chunks_.begin(); each != last; ++each) pool.push_back(std::move(*each));
    chunks_.erase(chunks_.begin(), last);
    first_chunk_ += unused;
  }

 private:
  const Chunk& chunk(std::uint64_t at) const { return *chunks_[(at >> kChunkBits) - first_chunk_]; }
  void add_chunk(Pool& pool) {
    if (pool.empty()) {
      chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
    } else {
      chunks_.push_back(std::move(pool.back()));
      pool.pop_back();
    }
    last_ = chunks_.back().get();
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;
  Chunk* last_ = nullptr;          // the one that is being filled
  std::uint64_t first_chunk_ = 0;  // number of chunks_[0]
  std::uint64_t begin_ = 0;        // absolute
  std::uint64_t end_ = 0;
  std::uint32_t base_ = 0;
};

}  // namespace memopt::planner
