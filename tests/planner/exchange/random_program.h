// Programs made up for tests: every kind of record as an agent writes it, in a recording.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "planner/exchange/record_target.h"
#include "planner/recording/writer.h"
#include "tests/planner/recording/scratch_file.h"

namespace memopt::exchange::test {

struct ProgramTerms {
  bool only_blocks = false;  // allocations and frees alone
  bool one_thread = false;
  std::uint64_t time_step = 1;  // times are multiples of it
};

// A recording of some hundred operations, as its bytes.
inline std::string random_program(std::mt19937_64& random, const ProgramTerms& terms) {
  const planner::test::ScratchFile file;
  planner::RecordingWriter writer(file.fd(), {}, {});
  RecordTarget target(writer);
  std::vector<std::uint64_t> live;
  std::uint64_t next = 0, time = random() % 1'000'000;
  const auto frame = [&](std::uint32_t aux = 0) {
    time = (time / terms.time_step + 1 + random() % 3) * terms.time_step;
    RecordFrame result;
    // Now and then some are missing.
    if (!terms.only_blocks && random() % 40 == 0) {
      target.gap();
      result.number = target.number() + 2 + random() % 5;
    }
    result.time = time;
    result.thread = terms.one_thread ? 0 : static_cast<std::uint32_t>(random() % 3);
    result.aux = aux;
    return result;
  };
  const auto text = [&] {
    static constexpr std::string_view kLetters = "abc,\"\\\n\x01\x7f\xc3\xa9 :x0";
    std::string result;
    for (std::uint64_t i = random() % 20; i > 0; --i) result += kLetters[random() % kLetters.size()];
    return result;
  };
  const auto words = [&](std::size_t count) {
    std::vector<std::uint64_t> result(count);
    for (std::uint64_t& word : result) word = random() >> random() % 64;
    return result;
  };
  for (std::uint64_t left = 200 + random() % 200; left > 0; --left) {
    const std::uint64_t stream = random() % 2 == 0 ? 0 : random() >> 20;
    const bool more = live.empty() || (live.size() < 30 && random() % 2 == 0);
    std::uint64_t kind = random() % 12;
    if (terms.only_blocks) kind = more ? 0 : 1;
    if (kind == 0) {
      RecordFrame its = frame();
      its.flags = terms.only_blocks ? 0 : static_cast<std::uint8_t>(random() % 32);
      live.push_back(++next);
      target.put(shm::RecordKind::kMalloc, its,
                 shm::MallocBody{next, 1 + (random() >> random() % 60) % (std::uint64_t{1} << 40), random(), random(),
                                 stream, (next << 42) + 512});
      continue;
    }
    if (kind == 1) {
      if (live.empty()) continue;
      const std::size_t at = random() % live.size();
      target.put(shm::RecordKind::kFree, frame(), shm::FreeBody{live[at], stream});
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    if (kind == 2) {
      std::vector<std::uint64_t> accesses;
      for (std::uint64_t i = random() % 6; i > 0; --i) {
        std::uint64_t access = 1 + random() % 50;
        if (random() % 2 == 0) access |= shm::kAccessReads;
        if (random() % 2 == 0) access |= shm::kAccessWrites;
        if (random() % 8 == 0) access |= shm::kAccessAmbiguous;
        accesses.push_back(access);
      }
      RecordFrame its = frame(static_cast<std::uint32_t>(random() % 5));
      its.flags = random() % 5 == 0 ? shm::kBlindLaunch : 0;
      target.put(shm::RecordKind::kLaunch, its,
                 shm::LaunchBody{stream,
                                 {1, 2, static_cast<std::uint32_t>(random())},
                                 {3, 4, 5},
                                 6,
                                 static_cast<std::uint32_t>(accesses.size())},
                 std::span<const std::uint64_t>(accesses));
    } else if (kind == 3) {
      target.put(shm::RecordKind::kCopy, frame(static_cast<std::uint32_t>(random() % 6)),
                 shm::CopyBody{stream, random() % 3 == 0 ? 0 : 1 + random() % 40,
                               random() % 3 == 0 ? 0 : 1 + random() % 40, random()});
    } else if (kind == 4) {
      target.put(shm::RecordKind::kMemset, frame(), shm::MemsetBody{stream, 1 + random() % 40, random()});
    } else if (kind == 5) {
      target.put(random() % 2 == 0 ? shm::RecordKind::kEventRecord : shm::RecordKind::kEventWait, frame(),
                 shm::EventBody{random(), stream});
    } else if (kind == 6) {
      target.put(shm::RecordKind::kSynchronize, frame(), shm::SynchronizeBody{random() % 5, random()});
    } else if (kind == 7) {
      target.name(random() % 2 == 0 ? shm::RecordKind::kFunction : shm::RecordKind::kModule, frame(), random() % 8,
                  text());
    } else if (kind == 8) {
      const std::vector<std::uint64_t> frames = words(random() % 6);
      target.put(shm::RecordKind::kStack, frame(), shm::StackBody{random(), frames.size()},
                 std::span<const std::uint64_t>(frames));
    } else if (kind == 9) {
      target.with_text(shm::RecordKind::kParameters, frame(), shm::ParametersBody{random(), 0}, "");
      const std::string bytes = text();
      target.with_text(shm::RecordKind::kParameters, frame(), shm::ParametersBody{random() % 100, bytes.size()}, bytes);
    } else if (kind == 10) {
      target.put(shm::RecordKind::kKernelTime, frame(static_cast<std::uint32_t>(random())),
                 shm::KernelTimeBody{random() % 100, random(), random()});
      target.put(shm::RecordKind::kState, frame(static_cast<std::uint32_t>(random() % 6)),
                 shm::StateBody{random(), random()});
    } else {
      target.put(shm::RecordKind::kEscape, frame(), shm::EscapeBody{1 + random() % 40});
      target.put(shm::RecordKind::kStreamCreate, frame(), shm::StreamBody{stream});
    }
  }
  writer.finish();
  return file.bytes();
}

}  // namespace memopt::exchange::test
