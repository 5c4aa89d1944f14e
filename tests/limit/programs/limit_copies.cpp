// Every kind of copy and fill, of a block that is away: part of it is read or written, and then all of it compared.
#include <array>
#include <cstring>
#include <functional>
#include <utility>

#include "limit_program.h"

namespace limit {
namespace {

// In words: a part in the middle of the block that crosses two of its pages.
constexpr std::size_t kAt = 300'001;
constexpr std::size_t kCount = 700'003;
// Of a part with rows.
constexpr std::size_t kRow = 100, kPitch = 1024, kRows = 1200;

struct Scene {
  Block away{kBytes, 7};   // what the operation names is not on the device
  Block other{kBytes, 9};  // nor is this
  std::vector<unsigned> pageable = std::vector<unsigned>(kBytes / sizeof(unsigned));
  unsigned* pinned = nullptr;
  CUstream stream = make_stream();
  std::size_t wrong_on_host = 0;

  CUdeviceptr at() const { return away.address() + kAt * sizeof(unsigned); }
  CUdeviceptr other_at() const { return other.address() + kAt * sizeof(unsigned); }

  // What the host has been given is what is in the block.
  void compare(const unsigned* host) {
    for (std::size_t i = 0; i < kCount; ++i) wrong_on_host += host[i] != away.words[kAt + i] ? 1 : 0;
  }
  // The block has been given what the host has.
  void given(const unsigned* host) { std::memcpy(&away.words[kAt], host, kCount * sizeof(unsigned)); }
  void prepare(unsigned seed) {
    for (std::size_t i = 0; i < pageable.size(); ++i)
      pageable[i] = pinned[i] = seed * 40503u + static_cast<unsigned>(i);
  }
  void wait() { check(cuStreamSynchronize(stream), "cuStreamSynchronize"); }
};

constexpr std::size_t kPart = kCount * sizeof(unsigned);

CUdeviceptr as_device(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

CUDA_MEMCPY2D rows(CUdeviceptr from, CUdeviceptr to) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = kPitch * sizeof(unsigned);
  copy.WidthInBytes = kRow * sizeof(unsigned);
  copy.Height = kRows;
  return copy;
}

CUDA_MEMCPY3D boxes(CUdeviceptr from, CUdeviceptr to) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = kPitch * sizeof(unsigned);
  copy.srcHeight = copy.dstHeight = kRows / 4;
  copy.WidthInBytes = kRow * sizeof(unsigned);
  copy.Height = kRows / 4;
  copy.Depth = 4;
  return copy;
}

void copy_rows(std::vector<unsigned>* to, const unsigned* from) {
  for (std::size_t row = 0; row < kRows; ++row) {
    std::memcpy(&(*to)[row * kPitch], from + row * kPitch, kRow * sizeof(unsigned));
  }
}

template <typename Word>
void set(std::vector<unsigned>* words, std::size_t offset, Word value, std::size_t count) {
  char* const begin = reinterpret_cast<char*>(words->data()) + offset;
  for (std::size_t i = 0; i < count; ++i) std::memcpy(begin + i * sizeof(Word), &value, sizeof(Word));
}

template <typename Word>
void set_rows(std::vector<unsigned>* words, Word value, std::size_t width) {
  for (std::size_t row = 0; row < kRows; ++row) set(words, row * kPitch * sizeof(unsigned), value, width);
}

using Operations = std::vector<std::pair<const char*, std::function<void(Scene&)>>>;

const Operations& to_host() {
  static const Operations operations{
      {"cuMemcpyDtoH",
       [](Scene& s) {
         check(cuMemcpyDtoH(s.pageable.data(), s.at(), kPart), "copy");
         s.compare(s.pageable.data());
       }},
      {"cuMemcpyDtoHAsync",
       [](Scene& s) {
         check(cuMemcpyDtoHAsync(s.pinned, s.at(), kPart, s.stream), "copy");
         s.wait();
         s.compare(s.pinned);
       }},
      {"cuMemcpyDtoHAsync, pageable",
       [](Scene& s) {
         check(cuMemcpyDtoHAsync(s.pageable.data(), s.at(), kPart, s.stream), "copy");
         s.wait();
         s.compare(s.pageable.data());
       }},
      {"cuMemcpy to the host",
       [](Scene& s) {
         check(cuMemcpy(as_device(s.pinned), s.at(), kPart), "copy");
         s.compare(s.pinned);
       }},
      {"cuMemcpyAsync to the host",
       [](Scene& s) {
         check(cuMemcpyAsync(as_device(s.pinned), s.at(), kPart, s.stream), "copy");
         s.wait();
         s.compare(s.pinned);
       }},
      {"cuMemcpy2D to the host",
       [](Scene& s) {
         CUDA_MEMCPY2D copy = rows(s.away.address(), 0);
         copy.dstMemoryType = CU_MEMORYTYPE_HOST;
         copy.dstHost = s.pageable.data();
         std::vector<unsigned> expected = s.pageable;
         copy_rows(&expected, s.away.words.data());
         check(cuMemcpy2D(&copy), "copy");
         s.wrong_on_host += s.pageable != expected ? 1 : 0;
       }},
  };
  return operations;
}

const Operations& from_host() {
  static const Operations operations{
      {"cuMemcpyHtoD",
       [](Scene& s) {
         check(cuMemcpyHtoD(s.at(), s.pageable.data(), kPart), "copy");
         s.given(s.pageable.data());
       }},
      {"cuMemcpyHtoDAsync",
       [](Scene& s) {
         check(cuMemcpyHtoDAsync(s.at(), s.pinned, kPart, s.stream), "copy");
         s.wait();
         s.given(s.pinned);
       }},
      {"cuMemcpy from the host",
       [](Scene& s) {
         check(cuMemcpy(s.at(), as_device(s.pinned), kPart), "copy");
         s.given(s.pinned);
       }},
      {"cuMemcpy2D from the host",
       [](Scene& s) {
         CUDA_MEMCPY2D copy = rows(0, s.away.address());
         copy.srcMemoryType = CU_MEMORYTYPE_HOST;
         copy.srcHost = s.pageable.data();
         check(cuMemcpy2D(&copy), "copy");
         copy_rows(&s.away.words, s.pageable.data());
       }},
      {"cuMemcpy3D from the host",
       [](Scene& s) {
         CUDA_MEMCPY3D copy = boxes(0, s.away.address());
         copy.srcMemoryType = CU_MEMORYTYPE_HOST;
         copy.srcHost = s.pageable.data();
         check(cuMemcpy3D(&copy), "copy");
         copy_rows(&s.away.words, s.pageable.data());
       }},
  };
  return operations;
}

void part_from_other(Scene& s) { s.given(&s.other.words[kAt]); }

// From one block that is away to another.
const Operations& on_device() {
  static const Operations operations{
      {"cuMemcpyDtoD",
       [](Scene& s) {
         check(cuMemcpyDtoD(s.at(), s.other_at(), kPart), "copy");
         part_from_other(s);
       }},
      {"cuMemcpyDtoDAsync",
       [](Scene& s) {
         check(cuMemcpyDtoDAsync(s.at(), s.other_at(), kPart, s.stream), "copy");
         part_from_other(s);
       }},
      {"cuMemcpy on the device",
       [](Scene& s) {
         check(cuMemcpy(s.at(), s.other_at(), kPart), "copy");
         part_from_other(s);
       }},
      {"cuMemcpyPeerAsync",
       [](Scene& s) {
         check(cuMemcpyPeerAsync(s.at(), context, s.other_at(), context, kPart, s.stream), "copy");
         part_from_other(s);
       }},
      {"cuMemcpyBatchAsync",
       [](Scene& s) {
         CUdeviceptr to[] = {s.at(), s.away.address()}, from[] = {s.other_at(), s.other.address()};
         std::size_t bytes[] = {kPart, 64};
         CUmemcpyAttributes attributes{};
         attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
         std::size_t first = 0;
         check(cuMemcpyBatchAsync(to, from, bytes, 2, &attributes, &first, 1, s.stream), "copy");
         part_from_other(s);
         std::memcpy(s.away.words.data(), s.other.words.data(), 64);
       }},
      {"cuMemcpy2D",
       [](Scene& s) {
         const CUDA_MEMCPY2D copy = rows(s.other.address(), s.away.address());
         check(cuMemcpy2D(&copy), "copy");
         copy_rows(&s.away.words, s.other.words.data());
       }},
      {"cuMemcpy2DUnaligned",
       [](Scene& s) {
         const CUDA_MEMCPY2D copy = rows(s.other.address(), s.away.address());
         check(cuMemcpy2DUnaligned(&copy), "copy");
         copy_rows(&s.away.words, s.other.words.data());
       }},
      {"cuMemcpy2DAsync",
       [](Scene& s) {
         const CUDA_MEMCPY2D copy = rows(s.other.address(), s.away.address());
         check(cuMemcpy2DAsync(&copy, s.stream), "copy");
         copy_rows(&s.away.words, s.other.words.data());
       }},
      {"cuMemcpy3DAsync",
       [](Scene& s) {
         const CUDA_MEMCPY3D copy = boxes(s.other.address(), s.away.address());
         check(cuMemcpy3DAsync(&copy, s.stream), "copy");
         copy_rows(&s.away.words, s.other.words.data());
       }},
  };
  return operations;
}

const Operations& fills() {
  static const Operations operations{
      {"cuMemsetD8",
       [](Scene& s) {
         check(cuMemsetD8(s.at(), 0x5a, kPart), "set");
         set<unsigned char>(&s.away.words, kAt * sizeof(unsigned), 0x5a, kPart);
       }},
      {"cuMemsetD16Async",
       [](Scene& s) {
         check(cuMemsetD16Async(s.at(), 0x1234, kPart / 2, s.stream), "set");
         set<unsigned short>(&s.away.words, kAt * sizeof(unsigned), 0x1234, kPart / 2);
       }},
      {"cuMemsetD32",
       [](Scene& s) {
         check(cuMemsetD32(s.at(), 0xdeadbeef, kCount), "set");
         set<unsigned>(&s.away.words, kAt * sizeof(unsigned), 0xdeadbeef, kCount);
       }},
      {"cuMemsetD32Async",
       [](Scene& s) {
         check(cuMemsetD32Async(s.at(), 0xfeedface, kCount, s.stream), "set");
         set<unsigned>(&s.away.words, kAt * sizeof(unsigned), 0xfeedface, kCount);
       }},
      {"cuMemsetD2D8",
       [](Scene& s) {
         check(cuMemsetD2D8(s.away.address(), kPitch * sizeof(unsigned), 3, kRow, kRows), "set");
         set_rows<unsigned char>(&s.away.words, 3, kRow);
       }},
      {"cuMemsetD2D32Async",
       [](Scene& s) {
         check(cuMemsetD2D32Async(s.away.address(), kPitch * sizeof(unsigned), 0xabcd, kRow, kRows, s.stream), "set");
         set_rows<unsigned>(&s.away.words, 0xabcd, kRow);
       }},
  };
  return operations;
}

void run(const Operations& operations) {
  Scene scene;
  check(cuMemAllocHost(reinterpret_cast<void**>(&scene.pinned), kBytes), "cuMemAllocHost");
  Crowd crowd;
  unsigned seed = 0;
  for (const auto& [name, operation] : operations) {
    scene.away.fill(++seed);
    scene.prepare(++seed);
    scene.wrong_on_host = 0;
    crowd.drive_away();
    operation(scene);
    scene.wait();
    say(name, scene.wrong_on_host + scene.away.wrong() + scene.other.wrong());
    // Unchanged since it left the last time.
    crowd.drive_away();
    say("  and again", scene.away.wrong());
  }
  say("the crowd", crowd.wrong());
}

// Of copies of the program's own, on a stream of their own, beside an iteration whose blocks leave and come back.
class SmallCopies {
 public:
  SmallCopies() {
    check(cuMemAlloc(&device_, kPiece), "cuMemAlloc");
    check(cuMemAllocHost(&host_, kPiece), "cuMemAllocHost");
    for (const bool out : {false, true}) {
      float both = 0;
      for (const std::size_t bytes : {kSmall, kPiece}) {
        queue(bytes, out);
        both += took(last());
      }
      (out ? longest_out_ : longest_in_) = both * 1.1f;
    }
    timed_.clear();
    // What is small does not leave.
    check(cuMemFree(device_), "cuMemFree");
    check(cuMemAlloc(&device_, kSmall), "cuMemAlloc");
  }

  void queue(bool out) { queue(kSmall, out); }
  // Behind two copies of a piece at once: what a program must not see of swaps, to show that it would be seen.
  void queue_behind_two() {
    finish();
    CUdeviceptr target = 0;
    check(cuMemAlloc(&target, 2 * kPiece), "cuMemAlloc");
    for (unsigned i = 0; i < 2; ++i)
      check(cuMemcpyHtoDAsync(target + i * kPiece, host_, kPiece, make_stream()), "a copy before it");
    queue(kSmall, false);
    finish();
    check(cuMemFree(target), "cuMemFree");
  }
  // Those since the last call that took longer than one of a piece, which may be in front of them, and their own.
  std::size_t late() {
    std::size_t count = 0;
    for (const Timed& one : timed_) count += took(one) > (one.out ? longest_out_ : longest_in_) ? 1 : 0;
    timed_.clear();
    return count;
  }

 private:
  struct Timed {
    CUevent before, after;
    bool out;
  };
  static constexpr std::size_t kSmall = 4096;
  static constexpr std::size_t kPiece = 4 * kMib;  // of a swap's copy, at most

  void queue(std::size_t bytes, bool out) {
    Timed one{nullptr, nullptr, out};
    for (CUevent* event : {&one.before, &one.after}) check(cuEventCreate(event, CU_EVENT_DEFAULT), "cuEventCreate");
    check(cuEventRecord(one.before, stream_), "cuEventRecord");
    check(out ? cuMemcpyDtoHAsync(host_, device_, bytes, stream_) : cuMemcpyHtoDAsync(device_, host_, bytes, stream_),
          "a copy of the program's");
    check(cuEventRecord(one.after, stream_), "cuEventRecord");
    timed_.push_back(one);
  }
  const Timed& last() const { return timed_.back(); }
  static float took(const Timed& one) {
    float milliseconds = 0;
    check(cuEventSynchronize(one.after), "cuEventSynchronize");
    check(cuEventElapsedTime(&milliseconds, one.before, one.after), "cuEventElapsedTime");
    for (CUevent event : {one.before, one.after}) check(cuEventDestroy(event), "cuEventDestroy");
    return milliseconds;
  }

  CUstream stream_ = make_stream();
  CUdeviceptr device_ = 0;
  void* host_ = nullptr;
  float longest_in_ = 0, longest_out_ = 0;  // milliseconds
  std::vector<Timed> timed_;
};

void beside_small_copies(int count) {
  constexpr unsigned kUnplanned = 16;  // iterations
  const CUstream stream = make_stream();
  SmallCopies small;
  small.queue_behind_two();
  std::printf("behind two pieces: %zu late\n", small.late());
  std::size_t wrong = 0, late = 0;
  for (unsigned round = 0; round < static_cast<unsigned>(count); ++round) {
    std::vector<Block> blocks;
    for (unsigned i = 0; i < 14; ++i) {
      blocks.emplace_back(kBytes + 4096 * i, round + i, stream);
      for (const bool out : {false, true}) small.queue(out);
    }
    for (unsigned i = 13; i > 0; --i) {
      blocks[i - 1].add(blocks[i], stream);
      for (const bool out : {false, true}) small.queue(out);
    }
    // Until swaps are planned, blocks leave and come back on demand, where the next operation needs room at once.
    const std::size_t more = small.late();
    if (round >= kUnplanned) late += more;
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    wrong += blocks[0].wrong();
    // Not before: work that is queued behind a free is behind all before it.
    for (Block& block : blocks) block.free();
  }
  say("iterations", wrong);
  say("small copies that took longer than a piece and themselves", late);
}

}  // namespace

std::span<const Case> copy_cases() {
  static constexpr std::array kCases = {
      Case{"beside-small-copies", [] { beside_small_copies(number(argument.c_str(), "beside-small-copies")); }},
      Case{"copies-to-the-host", [] { run(to_host()); }}, Case{"copies-from-the-host", [] { run(from_host()); }},
      Case{"copies-on-the-device", [] { run(on_device()); }}, Case{"fills", [] { run(fills()); }}};
  return kCases;
}

}  // namespace limit
