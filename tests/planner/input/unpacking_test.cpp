#include "planner/input/unpacking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/planner/input/packed.h"

namespace memopt::input {
namespace {

// A few bytes at a time, as a slow pipe gives them.
class Dripping : public Bytes {
 public:
  Dripping(std::string all, std::size_t step) : all_(std::move(all)), step_(step) {}
  std::size_t read(char* to, std::size_t size) override {
    const std::size_t got = std::min({size, step_, all_.size() - at_});
    std::memcpy(to, all_.data() + at_, got);
    at_ += got;
    return got;
  }

 private:
  std::string all_;
  std::size_t step_, at_ = 0;
};

std::string unpacked(const std::string& packed, std::size_t step, std::size_t room) {
  const auto bytes = unpack(packing_of(packed), std::make_unique<Dripping>(packed, step), "f");
  std::string all, piece(room, '\0');
  while (const std::size_t got = bytes->read(piece.data(), piece.size())) all.append(piece, 0, got);
  EXPECT_EQ(bytes->read(piece.data(), piece.size()), 0u);
  return all;
}

std::string fault(const std::string& packed) {
  try {
    unpacked(packed, 1000, 1000);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string sample() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 10007) + '\n';
  return text;
}

TEST(Unpacking, GivesWhatWasPackedInPiecesOfAnySize) {
  const std::string text = sample();
  for (const std::string& packed : {text, test::gzip(text), test::zstd(text)}) {
    EXPECT_EQ(unpacked(packed, 1 << 20, 1 << 20), text);
    EXPECT_EQ(unpacked(packed, 1, 1 << 20), text);
    EXPECT_EQ(unpacked(packed, 1 << 20, 1), text);
    EXPECT_EQ(unpacked(packed, 777, 333), text);
  }
  EXPECT_EQ(unpacked(test::gzip(""), 1, 1), "");
  EXPECT_EQ(unpacked(test::zstd(""), 1, 1), "");
}

TEST(Unpacking, TakesSeveralPackedFilesInARowForOne) {
  EXPECT_EQ(unpacked(test::gzip("ab") + test::gzip("") + test::gzip("c"), 1, 7), "abc");
  EXPECT_EQ(unpacked(test::zstd("ab") + test::zstd("") + test::zstd("c"), 1, 7), "abc");
}

TEST(Unpacking, SaysWhatIsWrong) {
  for (const std::string& packed : {test::gzip(sample()), test::zstd(sample())}) {
    for (const std::size_t left : {std::size_t{5}, packed.size() / 2, packed.size() - 1}) {
      EXPECT_EQ(fault(packed.substr(0, left)), "f: cannot be read: ends within its packed data") << left;
    }
    EXPECT_EQ(fault(packed + "more").find("f: cannot be read: its packed data is damaged"), 0u);
    std::string damaged = packed;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
    EXPECT_NE(fault(damaged), "");
  }
}

TEST(Unpacking, IsKnownByTheFirstBytes) {
  EXPECT_EQ(packing_of(""), Packing::kNone);
  EXPECT_EQ(packing_of("\x1f\x8b"), Packing::kNone);
  EXPECT_EQ(packing_of(test::gzip("")), Packing::kGzip);
  EXPECT_EQ(packing_of(test::zstd("")), Packing::kZstd);
}

}  // namespace
}  // namespace memopt::input
