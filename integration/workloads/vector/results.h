// Results on the host: verified word by word, and folded into one checksum.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "vector_math.h"

namespace vector {

class Results {
 public:
  explicit Results(const char* program) : program_(program) {}

  // Ends the program (exit code 1) at the first word that is not what it should be.
  void verify(const unsigned* words, int count, unsigned seed) {
    for (int i = 0; i < count; ++i) {
      const unsigned right = expected(seed, static_cast<unsigned>(i));
      if (words[i] != right) {
        std::fprintf(stderr, "%s: word %d of %d in round %u is 0x%08x, expected 0x%08x\n", program_, i, count, seed,
                     words[i], right);
        std::exit(1);
      }
      for (int shift = 0; shift < 32; shift += 8) {
        checksum_ = (checksum_ ^ (words[i] >> shift & 0xff)) * 0x100000001b3;  // FNV-1a
      }
    }
  }

  void print() const { std::printf("checksum %016llx\n", static_cast<unsigned long long>(checksum_)); }

 private:
  const char* program_;
  std::uint64_t checksum_ = 0xcbf29ce484222325;
};

}  // namespace vector
