// The handwritten digits: 1,797 images of 8 x 8 pixels with values 0..16, read from the CSV file (64 pixels and the
// label per line).
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

constexpr int kImageSide = 8;
constexpr int kPixels = kImageSide * kImageSide;
constexpr int kClasses = 10;

// SplitMix64: small, fixed for ever, so that results do not depend on a library's generator.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [-1, 1), on a grid of 2^-23, exact in float.
  float symmetric() {
    return static_cast<float>(static_cast<std::int64_t>(next() >> 40) - (1 << 23)) / static_cast<float>(1 << 23);
  }

  // Fisher-Yates.
  void shuffle(std::vector<int>& order) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next() % i]);
  }

 private:
  std::uint64_t state_;
};

struct Digits {
  std::vector<std::uint8_t> pixels;  // kPixels per image
  std::vector<std::uint8_t> labels;
  std::vector<int> train;  // indices of images
  std::vector<int> test;
};

// Reads the file and splits it, always in the same way: shuffled once, the last fifth less two is held out.
// Exits with a message where the file is missing or malformed.
inline Digits read_digits(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) {
    std::fprintf(stderr, "cannot open the digits at '%s': give the path of digits.csv by --data\n", path.c_str());
    std::exit(2);
  }
  Digits digits;
  std::vector<char> line(1024);
  for (int number = 1; std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr; ++number) {
    const char* at = line.data();
    for (int field = 0; field <= kPixels; ++field) {
      char* end = nullptr;
      const long value = std::strtol(at, &end, 10);
      const bool last = field == kPixels;
      const bool separated = last ? (*end == '\n' || *end == '\r' || *end == '\0') : *end == ',';
      if (end == at || !separated || value < 0 || value > (last ? kClasses - 1 : 16)) {
        std::fprintf(stderr, "%s:%d: field %d: expected 64 pixels 0..16 and a label 0..9, separated by commas\n",
                     path.c_str(), number, field + 1);
        std::exit(2);
      }
      (last ? digits.labels : digits.pixels).push_back(static_cast<std::uint8_t>(value));
      at = end + 1;
    }
  }
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  constexpr int kFewest = 100;
  if (failed || digits.labels.size() < kFewest) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), failed ? "read error" : "expected at least 100 images");
    std::exit(2);
  }
  std::vector<int> order(digits.labels.size());
  std::iota(order.begin(), order.end(), 0);
  Random(1998).shuffle(order);
  // 357 of 1,797: the 1,440 others are five batches of 288.
  const std::size_t held_out = order.size() / 5 - 2;
  digits.train.assign(order.begin(), order.end() - static_cast<std::ptrdiff_t>(held_out));
  digits.test.assign(order.end() - static_cast<std::ptrdiff_t>(held_out), order.end());
  return digits;
}
