#include <string>
#include <utility>
#include <vector>

#include "fact.h"
#include "vmm.h"

namespace facts {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{2} << 20;
constexpr std::uint64_t kWords = kChunkBytes / sizeof(std::uint32_t);

enum class Writer { kKernel, kCopyIn, kCopyOnDevice, kMemset };
enum class Reader { kKernel, kCopyOut };
enum class Order { kSameStream, kEvent };

class Aliases {
 public:
  Aliases(Device& device, const Settings& settings)
      : device_(device),
        chunk_(device, kChunkBytes),
        range_(2 * kChunkBytes, kChunkBytes),
        different_(1),
        rounds_(settings.small ? 3 : 400) {
    range_.map(0, chunk_);
    range_.map(1, chunk_);
    range_.allow(device, 0, 2);
    CALL(cuMemHostAlloc, &host_, 2 * kChunkBytes, 0);
    CALL(cuMemAlloc, &elsewhere_, kChunkBytes);
    device_.fill(one_, range_.at(0), kWords, 0);
    CALL(cuStreamSynchronize, one_);
  }
  ~Aliases() {
    driver().cuMemFreeHost(host_);
    driver().cuMemFree(elsewhere_);
  }

  Json rounds(Writer writer, Reader reader, Order order) {
    different_.clear(one_);
    CALL(cuStreamSynchronize, one_);
    counted_ = 0;
    std::uint64_t different = 0;
    std::uint64_t first_look = 0;
    std::uint64_t bad_rounds = 0;
    CUstream const reading = order == Order::kSameStream ? one_ : two_;
    for (unsigned round = 0; round < rounds_; ++round) {
      // A and B change sides, so that neither is always the stale one.
      const CUdeviceptr a = range_.at(round % 2), b = range_.at(1 - round % 2);
      const std::uint32_t first = next_;
      next_ += 1000003;
      // What is there now is read through B first: lines of it are where a later read would find them.
      device_.compare(reading, b, kWords, current_, different_.address());
      CALL(cuStreamSynchronize, reading);
      first_look += different_.read()[0] - counted_;
      counted_ = different_.read()[0];
      write(writer, a, first);
      if (order == Order::kEvent) {
        CALL(cuEventRecord, event_, one_);
        CALL(cuStreamWaitEvent, two_, event_, 0);
      }
      const std::uint64_t found = read(reader, reading, b, first, writer == Writer::kMemset);
      different += found;
      bad_rounds += found != 0;
    }
    return {{"rounds", rounds_},
            {"words_per_round", kWords},
            {"rounds_with_a_difference", bad_rounds},
            {"words_different", different},
            {"words_different_at_first_look", first_look}};
  }

  // Both mappings within one running grid: reported, never relied upon.
  Json within_one_grid() {
    different_.clear(one_);
    const CUdeviceptr a = range_.at(0), b = range_.at(1), count_at = different_.address();
    const std::uint64_t words = kWords;
    for (unsigned round = 0; round < rounds_; ++round) {
      const std::uint32_t first = next_;
      next_ += 1000003;
      device_.launch(device_.within(), kWords, one_, {&a, &b, &words, &first, &count_at});
    }
    CALL(cuStreamSynchronize, one_);
    device_.fill(one_, a, kWords, current_);
    CALL(cuStreamSynchronize, one_);
    return {{"rounds", rounds_}, {"words_per_round", kWords}, {"words_that_looked_old", different_.read()[0]}};
  }

 private:
  void write(Writer writer, CUdeviceptr to, std::uint32_t first) {
    auto* const words = static_cast<std::uint32_t*>(host_);
    switch (writer) {
      case Writer::kKernel:
        device_.fill(one_, to, kWords, first);
        break;
      case Writer::kCopyIn:
        for (std::uint64_t i = 0; i < kWords; ++i) words[i] = first + static_cast<std::uint32_t>(i);
        CALL(cuMemcpyHtoDAsync, to, host_, kChunkBytes, one_);
        break;
      case Writer::kCopyOnDevice:
        device_.fill(one_, elsewhere_, kWords, first);
        CALL(cuMemcpyDtoDAsync, to, elsewhere_, kChunkBytes, one_);
        break;
      case Writer::kMemset:
        CALL(cuMemsetD32Async, to, first, kWords, one_);
        break;
    }
  }

  // How many words are not what they should be. `even`: all the same.
  std::uint64_t read(Reader reader, CUstream stream, CUdeviceptr from, std::uint32_t first, bool even) {
    if (reader == Reader::kKernel && !even) {
      device_.compare(stream, from, kWords, first, different_.address());
      CALL(cuStreamSynchronize, stream);
      current_ = first;
      const std::uint64_t found = different_.read()[0] - counted_;
      counted_ += found;
      return found;
    }
    auto* const words = static_cast<std::uint32_t*>(host_) + kWords;
    CALL(cuMemcpyDtoHAsync, words, from, kChunkBytes, stream);
    CALL(cuStreamSynchronize, stream);
    std::uint64_t different = 0;
    for (std::uint64_t i = 0; i < kWords; ++i) {
      different += words[i] != first + (even ? 0u : static_cast<std::uint32_t>(i));
    }
    if (even) {
      // The next round expects what fill() writes.
      device_.fill(one_, from, kWords, first);
      CALL(cuStreamSynchronize, one_);
    }
    current_ = first;
    return different;
  }

  Device& device_;
  Chunk chunk_;
  Range range_;
  Words different_;
  unsigned rounds_;
  CUstream one_ = new_stream();
  CUstream two_ = new_stream();
  CUevent event_ = new_event();
  void* host_ = nullptr;
  CUdeviceptr elsewhere_ = 0;
  std::uint32_t current_ = 0;  // what the chunk's first word holds
  std::uint32_t next_ = 12345;
  std::uint64_t counted_ = 0;  // of different_, seen so far
};

}  // namespace

void alias_coherence(const Settings& settings, Findings& findings) {
  Device device;
  Aliases aliases(device, settings);
  constexpr std::pair<const char*, Writer> kWriters[] = {{"kernel", Writer::kKernel},
                                                         {"copy_in", Writer::kCopyIn},
                                                         {"copy_on_device", Writer::kCopyOnDevice},
                                                         {"memset", Writer::kMemset}};
  for (const auto& [order_name, order] :
       {std::pair{"by_stream", Order::kSameStream}, std::pair{"by_event", Order::kEvent}}) {
    for (const auto& [writer_name, writer] : kWriters) {
      for (const auto& [reader_name, reader] :
           {std::pair{"kernel", Reader::kKernel}, std::pair{"copy_out", Reader::kCopyOut}}) {
        // A memset's words are all the same: only the copy looks at those.
        if (writer == Writer::kMemset && reader == Reader::kKernel) continue;
        findings.attempt(
            std::string(writer_name) + "_then_" + reader_name + "_" + order_name,
            [&, writer = writer, reader = reader, order = order] { return aliases.rounds(writer, reader, order); });
      }
    }
  }
  findings.attempt("within_one_grid_unordered", [&] { return aliases.within_one_grid(); });
}

}  // namespace facts
