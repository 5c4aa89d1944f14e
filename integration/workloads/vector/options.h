// Command line of the vector programs.
#pragma once

#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace vector {

constexpr int kLeastElements = 16;  // every round has some

struct Options {
  int iterations = 30;
  int elements = 1 << 20;  // of the longest vector
};

inline void print_usage(std::FILE* file, const char* program) {
  std::fprintf(file,
               "usage: %s [--iterations N] [--elements N]\n"
               "  --iterations N  rounds of the loop (30)\n"
               "  --elements N    length of the longest vector, in words of 4 bytes (1048576)\n",
               program);
}

inline int parse_number(const char* program, const char* option, const char* text, int least, int most) {
  char* end = nullptr;
  errno = 0;
  const long value = std::isdigit(static_cast<unsigned char>(*text)) != 0 ? std::strtol(text, &end, 10) : 0;
  if (end == nullptr || *end != '\0' || errno != 0 || value < least || value > most) {
    std::fprintf(stderr, "%s: %s expects a number from %d to %d, not '%s'\n", program, option, least, most, text);
    print_usage(stderr, program);
    std::exit(2);
  }
  return static_cast<int>(value);
}

inline Options parse(int argc, char** argv, const char* program) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const char* const option = argv[i];
    if (std::strcmp(option, "--help") == 0 || std::strcmp(option, "-h") == 0) {
      print_usage(stdout, program);
      std::exit(0);
    }
    int* const wanted = std::strcmp(option, "--iterations") == 0 ? &options.iterations
                        : std::strcmp(option, "--elements") == 0 ? &options.elements
                                                                 : nullptr;
    if (wanted == nullptr || i + 1 == argc) {
      std::fprintf(stderr, wanted == nullptr ? "%s: unknown option '%s'\n" : "%s: %s expects a value\n", program,
                   option);
      print_usage(stderr, program);
      std::exit(2);
    }
    *wanted = parse_number(program, option, argv[++i], wanted == &options.elements ? kLeastElements : 1, 1 << 28);
  }
  return options;
}

}  // namespace vector
