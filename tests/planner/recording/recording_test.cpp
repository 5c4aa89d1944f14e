// Writer and reader together.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "planner/recording/reader.h"
#include "planner/recording/sink.h"
#include "planner/recording/writer.h"
#include "tests/planner/recording/records.h"
#include "tests/planner/recording/scratch_file.h"

namespace memopt::planner {
namespace {

using recording::BlockHeader;
using recording::EntryKind;
using test::Record;
using test::ScratchFile;

RecordingInfo some_info() {
  RecordingInfo info;
  info.program = "/bin/x";
  info.arguments = {"x", "a b", ""};
  info.version = "9.8.7";
  info.agent_version = "9.8.6";
  info.device = "a100-40g";
  info.pid = 4711;
  info.started = 1'700'000'000'000'000'000;
  return info;
}

RecordingReader reader_of(std::string bytes) {
  return RecordingReader(std::make_unique<std::istringstream>(std::move(bytes)));
}

struct Seen {
  EntryKind kind;
  std::uint32_t lane;
  std::vector<std::byte> bytes;  // of the record
  ClockPair clock;
  friend bool operator==(const Seen&, const Seen&) = default;
};

// A script of random entries, also given to `writer`.
std::vector<Seen> write_random(RecordingWriter& writer, std::mt19937_64& random, std::size_t entries) {
  std::vector<Seen> script;
  std::uint64_t sequence = 0;
  for (std::size_t i = 0; i < entries; ++i) {
    const auto choice = random() % 40;
    if (choice == 0) {
      writer.add_gap();
      script.push_back({EntryKind::kGap, 0, {}, {}});
    } else if (choice == 1) {
      const ClockPair clock{random(), random()};
      writer.add_clock(clock);
      script.push_back({EntryKind::kClock, 0, {}, clock});
    } else {
      Record record = Record::random(random).at(++sequence, random());
      const auto lane = static_cast<std::uint32_t>(random() % 5);
      writer.add(lane, record.view());
      script.push_back({EntryKind::kRecord, lane, record.bytes(), {}});
    }
    if (random() % 200 == 0) writer.flush();
  }
  return script;
}

std::vector<Seen> read_all(RecordingReader& reader) {
  std::vector<Seen> seen;
  while (const auto entry = reader.next()) {
    Seen one{entry->kind, entry->lane, {}, entry->clock};
    if (entry->kind == EntryKind::kRecord) {
      const auto* header = reinterpret_cast<const std::byte*>(&entry->record.header);
      one.bytes.assign(header, header + sizeof(shm::RecordHeader));
      one.bytes.insert(one.bytes.end(), entry->record.body.begin(), entry->record.body.end());
    }
    seen.push_back(std::move(one));
  }
  return seen;
}

// A recording of `records` small ones in blocks of `per_block`.
std::string small_recording(std::uint64_t records, std::uint64_t per_block, bool finished = true) {
  ScratchFile file;
  {
    RecordingWriter writer(file.fd(), some_info(), {});
    for (std::uint64_t i = 1; i <= records; ++i) {
      writer.add(0, Record::malloc(i, 64 * i, 512 * i).at(i, i).view());
      if (i % per_block == 0) writer.flush();
    }
    if (finished) {
      EXPECT_TRUE(writer.finish());
    }
  }
  return file.bytes();
}

TEST(Recording, RoundTripOfAnything) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::mt19937_64 random(seed);
    ScratchFile file;
    std::vector<Seen> script;
    {
      RecordingWriter writer(file.fd(), some_info(), {});
      script = write_random(writer, random, seed == 1 ? 0 : 1 + random() % 6000);
      ASSERT_TRUE(writer.finish());
      EXPECT_EQ(writer.lost(), 0u);
      EXPECT_EQ(writer.bytes(), file.bytes().size());
    }
    RecordingReader reader = RecordingReader::open(file.path());
    EXPECT_EQ(reader.info().program, "/bin/x");
    EXPECT_EQ(reader.info().arguments, (std::vector<std::string>{"x", "a b", ""}));
    EXPECT_EQ(reader.info().version, "9.8.7");
    EXPECT_EQ(reader.info().agent_version, "9.8.6");
    EXPECT_EQ(reader.info().device, "a100-40g");
    EXPECT_EQ(reader.info().pid, 4711);
    EXPECT_EQ(reader.info().started, 1'700'000'000'000'000'000u);
    EXPECT_TRUE(read_all(reader) == script) << "seed " << seed;
    EXPECT_FALSE(reader.damage()) << to_string(*reader.damage());
  }
}

TEST(Recording, ArgumentsMayBeAnything) {
  RecordingInfo info = some_info();
  info.arguments = {"\xff\xfe", std::string(3 << 20, 'x')};
  ScratchFile file;
  {
    RecordingWriter writer(file.fd(), info, {});
    ASSERT_TRUE(writer.finish());
  }
  RecordingReader reader = RecordingReader::open(file.path());
  EXPECT_EQ(reader.info().arguments, (std::vector<std::string>{"\xEF\xBF\xBD\xEF\xBF\xBD"}));
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.damage());
}

TEST(Recording, EveryCutLeavesTheWholeBlocks) {
  const std::string whole = small_recording(40, 5);
  const std::size_t header = sizeof(recording::FileHeader) + (to_json(some_info()).size() + 7) / 8 * 8;
  std::uint64_t last = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    if (size < header) {
      EXPECT_THROW(reader_of(whole.substr(0, size)), RecordingError);
      continue;
    }
    RecordingReader reader = reader_of(whole.substr(0, size));
    const std::size_t records = read_all(reader).size();
    ASSERT_TRUE(reader.damage());
    EXPECT_EQ(records % 5, 0u);
    EXPECT_EQ(reader.damage()->last_sequence, records);
    EXPECT_EQ(reader.damage()->offset + reader.damage()->bytes, size);
    EXPECT_GE(records, last);
    last = records;
  }
  EXPECT_EQ(last, 40u);
  RecordingReader reader = reader_of(whole);
  EXPECT_EQ(read_all(reader).size(), 40u);
  EXPECT_FALSE(reader.damage());
}

TEST(Recording, ADestroyedWriterLeavesAllButTheEndMark) {
  RecordingReader reader = reader_of(small_recording(7, 100, false));
  EXPECT_EQ(read_all(reader).size(), 7u);
  ASSERT_TRUE(reader.damage());
  EXPECT_EQ(reader.damage()->bytes, 0u);
  EXPECT_NE(to_string(*reader.damage()).find("its end is missing"), std::string::npos);
  EXPECT_NE(to_string(*reader.damage()).find("records up to number 7 are there"), std::string::npos);
}

// Every changed byte is found: nothing that was not written is ever read.
TEST(Recording, EveryChangedByteEndsTheReading) {
  const std::string whole = small_recording(20, 5);
  RecordingReader good = reader_of(whole);
  const std::vector<Seen> script = read_all(good);
  std::mt19937_64 random(3);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1 + random() % 255));
    try {
      RecordingReader reader = reader_of(changed);
      const std::vector<Seen> seen = read_all(reader);
      ASSERT_LE(seen.size(), script.size());
      EXPECT_TRUE(std::equal(seen.begin(), seen.end(), script.begin())) << at;
      // `reserved` and the padding of the info mean nothing.
      if (seen.size() == script.size() && !reader.damage()) {
        EXPECT_LT(at, sizeof(recording::FileHeader) + (to_json(some_info()).size() + 7) / 8 * 8) << at;
      }
    } catch (const RecordingError&) {
    }
  }
}

TEST(Recording, SurvivesAnyMutation) {
  std::mt19937_64 random(7);
  ScratchFile file;
  {
    RecordingWriter writer(file.fd(), some_info(), {});
    write_random(writer, random, 800);
    writer.finish();
  }
  const std::string whole = file.bytes();
  std::size_t readable = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string changed = whole;
    for (auto changes = 1 + random() % 4; changes != 0; --changes) {
      const std::size_t at = random() % changed.size();
      switch (random() % 4) {
        case 0:
          changed[at] = static_cast<char>(random());
          break;
        case 1:
          changed.erase(at, random() % 100);
          break;
        case 2:
          changed.insert(at, changed.substr(random() % changed.size(), random() % 100));
          break;
        default:
          for (std::size_t i = at; i < std::min(at + 8, changed.size()); ++i) changed[i] = static_cast<char>(0xff);
      }
    }
    try {
      RecordingReader reader = reader_of(changed);
      readable += !read_all(reader).empty();
    } catch (const RecordingError&) {
    }
  }
  EXPECT_GT(readable, 100u);
}

// A block whose hashes are right, with contents of the test's choosing.
std::string block_of(const std::string& payload, std::uint32_t records, std::uint32_t claimed_raw,
                     std::uint32_t kind = 1) {
  std::string packed(ZSTD_compressBound(payload.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), payload.data(), payload.size(), 1));
  BlockHeader block{};
  block.magic = recording::kBlockMagic;
  block.kind = kind;
  block.raw_bytes = claimed_raw;
  block.packed_bytes = static_cast<std::uint32_t>(packed.size());
  block.records = records;
  block.payload_hash = XXH64(packed.data(), packed.size(), 0);
  block.header_hash = XXH64(&block, offsetof(BlockHeader, header_hash), 0);
  return std::string(reinterpret_cast<const char*>(&block), sizeof block) + packed;
}

std::string reason_with(const std::string& block) {
  const std::string empty = small_recording(0, 1, false);
  RecordingReader reader = reader_of(empty + block);
  read_all(reader);
  return reader.damage() ? reader.damage()->reason : "";
}

TEST(Recording, HostileBlocksAreNamed) {
  Record record = Record::free(1).at(1, 1);
  std::string entry(sizeof(recording::EntryHeader), '\0');
  entry.append(reinterpret_cast<const char*>(record.bytes().data()), record.bytes().size());
  const auto size = static_cast<std::uint32_t>(entry.size());

  EXPECT_NE(reason_with(block_of(entry, 1, size)).find("its end is missing"), std::string::npos);  // this one is good
  EXPECT_NE(reason_with(block_of(entry, 2, size)).find("other records than its header says"), std::string::npos);
  EXPECT_NE(reason_with(block_of(entry, 1, size + 8)).find("another size"), std::string::npos);
  EXPECT_NE(reason_with(block_of(entry, 1, size - 8)).find("decompressed"), std::string::npos);
  EXPECT_NE(reason_with(block_of(entry, 1, 0x7fffffff)).find("larger than any"), std::string::npos);
  EXPECT_NE(reason_with(block_of(entry, 1, size, 99)).find("kind 99"), std::string::npos);
  // A gigabyte of zeros in a few bytes, said to be small.
  EXPECT_NE(reason_with(block_of(std::string(100 << 20, '\0'), 0, 4096)).find("decompressed"), std::string::npos);
  const std::string cut = entry.substr(0, entry.size() - 8);
  EXPECT_NE(reason_with(block_of(cut, 1, size - 8)).find("no record"), std::string::npos);
  EXPECT_NE(reason_with(block_of("abcd", 0, 4)).find("ends within an entry"), std::string::npos);
  std::string unknown = entry;
  unknown[4] = 77;
  EXPECT_NE(reason_with(block_of(unknown, 0, size)).find("entry of a kind"), std::string::npos);
}

TEST(Recording, SomethingBehindTheEndIsDamage) {
  RecordingReader reader = reader_of(small_recording(3, 1) + "x");
  EXPECT_EQ(read_all(reader).size(), 3u);
  ASSERT_TRUE(reader.damage());
  EXPECT_EQ(reader.damage()->bytes, 1u);
}

std::string refusal(const std::string& bytes) {
  try {
    reader_of(bytes);
  } catch (const RecordingError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Recording, RefusesWhatItDoesNotKnow) {
  const std::string whole = small_recording(1, 1);
  std::string newer = whole;
  newer[8] = 2;
  EXPECT_EQ(refusal(newer),
            "it has format 2 with records of version 1; this memoptctl reads format 1 with records of "
            "version 1: use the memoptctl of memopt 9.8.7, which wrote it");
  newer[24] = static_cast<char>(newer[24] + 1);  // the info's hash
  EXPECT_EQ(refusal(newer),
            "it has format 2 with records of version 1; this memoptctl reads format 1 with records of "
            "version 1: use the memoptctl that wrote it");
  std::string wire = whole;
  wire[12] = 7;
  EXPECT_NE(refusal(wire).find("records of version 7;"), std::string::npos);
  EXPECT_EQ(refusal(""), "it is empty");
  EXPECT_EQ(refusal("#!/bin/sh\n"), "it is no recording of memopt");
  std::string large = whole;
  large[19] = 0x7f;
  EXPECT_NE(refusal(large).find("its header is damaged"), std::string::npos);
  try {
    RecordingReader::open("/nonexistent/file");
    FAIL();
  } catch (const RecordingError& error) {
    EXPECT_STREQ(error.what(), "No such file or directory");
  }
}

// In a child, so that the limit is nobody else's.
TEST(Recording, AFullDiskIsToldOnceAndLeavesWhatFitted) {
  for (const rlim_t limit : {rlim_t{0}, rlim_t{20}, rlim_t{5000}, rlim_t{100'000}}) {
    SCOPED_TRACE(limit);
    ScratchFile file;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit small{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &small);
      int complaints = 0;
      std::string why;
      RecordingWriter writer(file.fd(), some_info(), [&](const std::string& reason) {
        ++complaints;
        why = reason;
      });
      std::mt19937_64 random(1);
      write_random(writer, random, 20000);
      const bool told = !writer.finish() && complaints == 1 && why.find("File too large") != std::string::npos;
      const bool counted = writer.lost() != 0 && writer.bytes() <= limit;
      ::_exit(told && counted ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    if (limit < 1000) {
      EXPECT_EQ(file.bytes().size(), 0u);
      continue;
    }
    RecordingReader reader = RecordingReader::open(file.path());
    const std::size_t entries = read_all(reader).size();
    if (limit > 50'000) {
      EXPECT_GT(entries, 100u);
    }
    ASSERT_TRUE(reader.damage());
    EXPECT_NE(reader.damage()->reason.find("its end is missing"), std::string::npos) << reader.damage()->reason;
  }
}

TEST(Recording, KilledAtAnyMomentTheFileIsReadable) {
  std::mt19937_64 random(11);
  std::size_t records = 0;
  for (int round = 0; round < 25; ++round) {
    ScratchFile file;
    int started[2];
    ASSERT_EQ(::pipe(started), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      RecordingWriter writer(file.fd(), some_info(), {});
      [[maybe_unused]] const ssize_t told = ::write(started[1], "x", 1);
      for (std::uint64_t i = 1;; ++i) {
        writer.add(0, Record::malloc(i, i).at(i, i).view());
        if (i % 10 == 0) writer.flush();
      }
    }
    char byte = 0;
    ASSERT_EQ(::read(started[0], &byte, 1), 1);
    ::close(started[0]);
    ::close(started[1]);
    ::usleep(static_cast<useconds_t>(random() % 5000));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    RecordingReader reader = RecordingReader::open(file.path());
    std::uint64_t expected = 0;
    while (const auto entry = reader.next()) ASSERT_EQ(entry->record.header.sequence, ++expected);
    ASSERT_TRUE(reader.damage());
    EXPECT_EQ(reader.damage()->last_sequence, expected);
    EXPECT_EQ(expected % 10, 0u);
    records += expected;
  }
  EXPECT_GT(records, 0u);
}

TEST(RecordingSink, CountsWhatIsMissing) {
  ScratchFile file;
  int calls = 0;
  RecordingEnd end;
  {
    RecordingSink sink(std::make_unique<RecordingWriter>(file.fd(), some_info(), nullptr),
                       [&](const RecordingEnd& how) {
                         ++calls;
                         end = how;
                       });
    for (const std::uint64_t sequence : {1u, 2u, 5u, 6u}) {
      if (sequence == 5) sink.gap();
      sink.record(0, Record::free(1).at(sequence, 1).view());
    }
    sink.clock({3, 4});
    EXPECT_EQ(sink.note(), "recording to a file: nothing is planned");
    sink.closed();
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(end.records, 4u);
  EXPECT_EQ(end.missing, 2u);
  EXPECT_EQ(end.lost, 0u);
  EXPECT_TRUE(end.whole);
  EXPECT_EQ(end.bytes, file.bytes().size());
  RecordingReader reader = RecordingReader::open(file.path());
  EXPECT_EQ(read_all(reader).size(), 6u);
  EXPECT_FALSE(reader.damage());
}

}  // namespace
}  // namespace memopt::planner
