#include "agent/operations/operations.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "agent/operations/launch_parameters.h"
#include "agent/operations/pinned_memory.h"
#include "agent/recording/recorder.h"
#include "tests/agent/fake_arena.h"
#include "tests/agent/fake_kernels.h"
#include "tests/agent/fake_link.h"

namespace memopt::agent {
namespace {

using shm::CopyKind;
using shm::RecordKind;

constexpr std::uint64_t kRange = 0x7000'0000'0000;
constexpr std::uint64_t kRangeBytes = 1u << 30;
CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(number * 0x100); }

class Operations : public testing::Test {
 protected:
  void SetUp() override {
    test::reset_arena(kRange, kRangeBytes);
    test::reset_link();
    test::read_records();
    a_ = test::add_block(kRange + 0x1000, 0x1000);
    b_ = test::add_block(kRange + 0x4000, 0x2000);
  }
  void TearDown() override { stop_recording(); }

  std::vector<test::ReadRecord> recorded(RecordKind kind) { return test::records_of_kind(test::read_records(), kind); }

  std::uint64_t a_ = 0;
  std::uint64_t b_ = 0;
};

std::vector<std::uint64_t> used_blocks() {
  std::vector<std::uint64_t> numbers;
  for (const test::Use& use : test::uses()) numbers.push_back(use.block);
  return numbers;
}

struct Mixed {  // a pointer that is aligned in the kernel's view although it comes late
  int count;
  int padding;
  std::uint64_t pointer;
};

TEST_F(Operations, ALaunchUsesTheBlocksThatItsParametersMean) {
  const CUfunction function = test::make_function("k", {{0, 8}, {8, 4}, {16, 16}, {32, 8}});
  std::uint64_t first = kRange + 0x1000;
  int count = 3;
  Mixed mixed{1, 0, kRange + 0x4800};
  std::uint64_t end_of_b = kRange + 0x6000;
  void* parameters[] = {&first, &count, &mixed, &end_of_b};
  before_launch({.function = function, .stream = {stream(1), false}, .parameters = parameters});
  EXPECT_EQ(test::uses(), (std::vector<test::Use>{{a_, stream(1), 1}, {b_, stream(1), 1}, {b_, stream(1), 1}}));
  EXPECT_EQ(test::visible_operations(), 0);
}

TEST_F(Operations, ALaunchWithoutOurAddressesHasItsPlaceAndUsesNothing) {
  const CUfunction function = test::make_function("k", {{0, 8}});
  std::uint64_t elsewhere = 0x1234;
  void* parameters[] = {&elsewhere};
  before_launch({.function = function, .parameters = parameters});
  EXPECT_EQ(test::operations(), 1);
  EXPECT_TRUE(test::uses().empty());
}

// An optimizer's kernel is given lists of hundreds of tensors, and each address is the end of another tensor.
TEST_F(Operations, ALaunchIsRecordedWithAllThatTheLargestParametersMean) {
  constexpr std::size_t kWords = 4096;  // 32 KiB, the most that a kernel can be given
  std::vector<std::uint64_t> words;
  std::set<std::uint64_t> wanted;
  for (std::size_t i = 0; i < kWords; ++i) {
    words.push_back(kRange + 0x100000 + 0x200 * i);
    wanted.insert(test::add_block(words.back(), 0x200));
  }
  std::size_t bytes = kWords * sizeof(words[0]);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, words.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  start_recording(false);
  before_launch({.function = test::make_function("k", {{0, 8}}), .stream = {stream(1), false}, .extra = extra});
  const auto launches = recorded(RecordKind::kLaunch);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].view().header.flags, 0);
  ASSERT_EQ(launches[0].view().as<shm::LaunchBody>().accesses, kWords);
  std::set<std::uint64_t> accesses;
  for (std::size_t i = 0; i < kWords; ++i) {
    accesses.insert(launches[0].view().word_behind<shm::LaunchBody>(i) & shm::kAccessBlock);
  }
  EXPECT_EQ(accesses, wanted);
}

// Nothing could leave for it at its first places: what it names counts at the last one, and is recorded and looked at
// once.
TEST_F(Operations, ALaunchThatBeginsAgainIsOneLaunch) {
  test::begin_again(2);
  start_recording(false);
  scan_mode = ScanMode::kAll;
  std::uint64_t first = kRange + 0x1000, second = kRange + 0x4000;
  void* parameters[] = {&first, &second};
  before_launch({.function = test::make_function("k", {{0, 8}, {8, 8}}), .parameters = parameters});
  scan_mode = ScanMode::kOff;
  EXPECT_EQ(test::operations(), 3) << "places on its stream";
  ASSERT_EQ(test::uses().size(), 6u);
  EXPECT_EQ(test::uses()[4].block, a_);
  EXPECT_EQ(test::uses()[4].position, 3u);
  EXPECT_EQ(test::uses()[5].position, 3u);
  EXPECT_EQ(test::scans_forgotten(), 2);
  EXPECT_TRUE(scans_due);
  forget_due_scans();
  const auto launches = recorded(RecordKind::kLaunch);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].view().as<shm::LaunchBody>().accesses, 2u);
}

// Its first addresses were looked up under another holding of the lock: what it has touched is not all known any more.
TEST_F(Operations, ALaunchOfManyAddressesDoesNotBeginAgainOnItsWay) {
  test::begin_again(1);
  start_recording(false);
  constexpr std::size_t kWords = 100;
  std::vector<std::uint64_t> words(kWords, kRange + 0x1000);
  void* parameters[] = {words.data()};
  before_launch({.function = test::make_function("k", {{0, kWords * 8}}), .parameters = parameters});
  EXPECT_EQ(test::operations(), 2) << "in its first batch it can";
  EXPECT_EQ(recorded(RecordKind::kLaunch).size(), 1u);
}

TEST_F(Operations, PackedParametersAreReadWithoutALayout) {
  std::uint64_t words[3] = {7, kRange + 0x1000, kRange + 0x4000};
  std::size_t bytes = sizeof(words);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, words, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  before_launch({.function = test::make_function("k", {}), .extra = extra});
  EXPECT_EQ(used_blocks(), (std::vector<std::uint64_t>{a_, b_}));
  EXPECT_EQ(test::uses_of_everything(), 0);
}

TEST_F(Operations, AnUnreadableLaunchUsesEverything) {
  start_recording(false);
  test::hide_parameters(true);
  std::uint64_t word = 0;
  void* parameters[] = {&word};
  before_launch({.function = test::make_function("hidden", {{0, 8}}), .parameters = parameters});
  test::hide_parameters(false);
  EXPECT_EQ(test::uses_of_everything(), 1);
  EXPECT_EQ(test::visible_operations(), 1);
  const auto launches = recorded(RecordKind::kLaunch);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].view().header.flags, shm::kBlindLaunch);
  EXPECT_EQ(launches[0].view().as<shm::LaunchBody>().accesses, 0u);
}

TEST_F(Operations, MoreAddressesThanOneBatchAreAllUsed) {
  constexpr std::size_t kWords = 300;
  std::vector<std::uint64_t> words(kWords, kRange + 0x1000);
  words.back() = kRange + 0x4000;
  void* parameters[] = {words.data()};
  before_launch({.function = test::make_function("k", {{0, kWords * 8}}), .parameters = parameters});
  ASSERT_EQ(test::uses().size(), kWords);
  EXPECT_EQ(test::uses().back().block, b_);
  EXPECT_EQ(test::operations(), 1) << "one launch has one position";
}

// As PyTorch's optimizers launch: lists of tensors, of which the last entries are left over from launches before.
TEST_F(Operations, WhatIsLeftOverInListsOfTensorsIsNotUsed) {
  struct Lists {
    std::uint64_t addresses[110];
    std::int64_t elements[110];
    unsigned char tensor_of_block[320];
    int chunk_of_block[320];
    int first;
  } lists{};
  std::uint64_t beside = kRange + 0x1000;
  const CUfunction function =
      test::make_function("_ZN2at6native25multi_tensor_apply_kernelINS1_18TensorListMetadataILi1EEEEEvT_",
                          {{0, sizeof(Lists)}, {sizeof(Lists), 8}});
  void* parameters[] = {&lists, &beside};
  const auto launch = [&](unsigned thread_blocks) {
    test::reset_arena(kRange, kRangeBytes);
    a_ = test::add_block(kRange + 0x1000, 0x1000);
    b_ = test::add_block(kRange + 0x4000, 0x2000);
    before_launch({.function = function, .grid = {thread_blocks, 1, 1}, .parameters = parameters});
    return used_blocks();
  };
  lists.addresses[0] = 0x1234;
  lists.addresses[1] = kRange + 0x4000;
  lists.elements[0] = lists.elements[1] = 1;
  lists.tensor_of_block[1] = 1;
  using Used = std::vector<std::uint64_t>;
  EXPECT_EQ(launch(2), (Used{b_, a_})) << "and what is no list";
  EXPECT_EQ(launch(1), (Used{a_}));
  lists.chunk_of_block[0] = 1;  // there is none
  EXPECT_EQ(launch(1), (Used{b_, a_}));
  lists.chunk_of_block[0] = 0;
  lists.addresses[109] = kRange + 0x4800;
  EXPECT_EQ(launch(1), (Used{a_}));
  EXPECT_EQ(launch(321), (Used{b_, b_, a_})) << "more than there is room for";
}

TEST_F(Operations, WhatIsLeftOverBehindTheInputsOfAConcatenationIsNotUsed) {
  struct Inputs {
    std::uint64_t addresses[128];
    unsigned offset[128];
    unsigned size[128];
    unsigned elements[128];
    bool contiguous[128];
    unsigned strides[8];
  } inputs{};
  std::uint64_t output = kRange + 0x1000;
  std::uint64_t behind = kRange + 0x4000;
  const CUfunction function = test::make_function(
      "_ZN2at6native19CatArrayBatchedCopyIfjLi1ELi128ELi1EEEvPT_NS0_25CatArrInputTensorMetadataIS2_T0_XT2_EXT3_EEE",
      {{0, 8}, {8, sizeof(Inputs)}, {8 + sizeof(Inputs), 8}});
  void* parameters[] = {&output, &inputs, &behind};
  const auto launch = [&](unsigned count) {
    test::reset_arena(kRange, kRangeBytes);
    a_ = test::add_block(kRange + 0x1000, 0x1000);
    b_ = test::add_block(kRange + 0x4000, 0x2000);
    const auto c = test::add_block(kRange + 0x8000, 0x1000);
    before_launch({.function = function, .grid = {216, count, 1}, .parameters = parameters});
    const std::vector<std::uint64_t> used = used_blocks();
    return std::pair(used.size(), std::count(used.begin(), used.end(), c));
  };
  inputs.addresses[0] = kRange + 0x4000;
  inputs.addresses[1] = kRange + 0x5000;
  inputs.addresses[2] = kRange + 0x8000;
  for (unsigned i = 0; i < 2; ++i) {
    inputs.offset[i] = 4 * i;
    inputs.size[i] = 4;
    inputs.elements[i] = 8;
  }
  EXPECT_EQ(launch(2), std::pair(std::size_t{4}, std::ptrdiff_t{0})) << "the output, both inputs, what comes behind";
  EXPECT_EQ(launch(3), std::pair(std::size_t{5}, std::ptrdiff_t{1})) << "not as expected";
}

TEST_F(Operations, LaunchesAreRecordedWithNamesBlocksAndParameters) {
  const CUfunction function = test::make_function("named", {{0, 8}, {8, 8}, {16, 4}});
  std::uint64_t from = kRange + 0x1000;
  std::uint64_t to = kRange + 0x4000;
  std::uint32_t value = 0xAABBCCDD;
  void* parameters[] = {&from, &to, &value};
  const LaunchCall call{.function = function,
                        .grid = {1, 2, 3},
                        .block = {4, 5, 6},
                        .shared_bytes = 7,
                        .stream = {stream(2), false},
                        .parameters = parameters};
  start_recording(true);
  before_launch(call);
  before_launch(call);
  const auto records = test::read_records();
  const auto names = test::records_of_kind(records, RecordKind::kFunction);
  ASSERT_EQ(names.size(), 1u) << "a name is written once";
  const auto name = names[0].view();
  const auto text = name.bytes_behind<shm::NameBody>(name.as<shm::NameBody>().length);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(text.data()), text.size()), "named");
  const auto launches = test::records_of_kind(records, RecordKind::kLaunch);
  ASSERT_EQ(launches.size(), 2u);
  const auto launch = launches[0].view();
  EXPECT_LT(name.header.sequence, launch.header.sequence);
  EXPECT_EQ(launch.header.aux, name.as<shm::NameBody>().id);
  const auto body = launch.as<shm::LaunchBody>();
  EXPECT_EQ(body.stream, reinterpret_cast<std::uint64_t>(stream(2)));
  EXPECT_EQ(body.grid[2], 3u);
  EXPECT_EQ(body.block[0], 4u);
  EXPECT_EQ(body.shared_bytes, 7u);
  ASSERT_EQ(body.accesses, 2u);
  EXPECT_EQ(launch.word_behind<shm::LaunchBody>(0), a_);
  EXPECT_EQ(launch.word_behind<shm::LaunchBody>(1), b_);
  const auto saved = test::records_of_kind(records, RecordKind::kParameters);
  ASSERT_EQ(saved.size(), 2u);
  const auto view = saved[0].view();
  EXPECT_EQ(view.as<shm::ParametersBody>().launch, launch.header.sequence);
  ASSERT_EQ(view.as<shm::ParametersBody>().length, 20u);
  const auto bytes = view.bytes_behind<shm::ParametersBody>(20);
  EXPECT_EQ(std::memcmp(bytes.data(), &from, 8), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 16, &value, 4), 0);
}

TEST_F(Operations, PageLockedPointersMakeALaunchVisible) {
  pinned_memory_added(0x5000'0000, 0x1000);
  std::uint64_t pointer = 0x5000'0FFF;
  void* parameters[] = {&pointer};
  const CUfunction function = test::make_function("k", {{0, 8}});
  before_launch({.function = function, .parameters = parameters});
  EXPECT_EQ(test::visible_operations(), 1);
  pointer = 0x5000'1000;
  before_launch({.function = function, .parameters = parameters});
  EXPECT_EQ(test::visible_operations(), 1);
  EXPECT_EQ(pinned_memory_removed(0x5000'0000), 0x1000u);
}

TEST_F(Operations, OverlappingLaunchesThatNameBlocksAreSerialized) {
  const CUfunction function = test::make_function("k", {{0, 8}});
  std::uint64_t pointer = kRange + 0x1000;
  void* parameters[] = {&pointer};
  LaunchCall call{.function = function, .parameters = parameters};
  EXPECT_FALSE(before_launch(call));
  call.overlaps_previous = true;
  EXPECT_TRUE(before_launch(call));
  pointer = 0;
  EXPECT_FALSE(before_launch(call));
}

TEST_F(Operations, ACopyUsesBothSidesAndNotTheNeighbour) {
  const std::uint64_t behind_a = test::add_block(kRange + 0x2000, 0x100);
  start_recording(false);
  before_copy({.kind = CopyKind::kOnDevice,
               .to = kRange + 0x2000,
               .from = kRange + 0x4000,
               .bytes = 0x100,
               .to_extent = 0x100,
               .from_extent = 0x100,
               .stream = {stream(3), false}});
  for (const test::Use& use : test::uses()) EXPECT_NE(use.block, a_) << "which only ends where the copy begins";
  const auto copies = recorded(RecordKind::kCopy);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].view().header.aux, static_cast<std::uint32_t>(CopyKind::kOnDevice));
  const auto body = copies[0].view().as<shm::CopyBody>();
  EXPECT_EQ(body.to, behind_a);
  EXPECT_EQ(body.from, b_);
  EXPECT_EQ(body.bytes, 0x100u);
}

TEST_F(Operations, AddressesInAPayloadEscape) {
  std::vector<std::uint64_t> payload(1000, 1);
  payload[777] = kRange + 0x4010;
  before_copy({.kind = CopyKind::kToDevice,
               .to = kRange + 0x1000,
               .from_host = payload.data(),
               .bytes = payload.size() * 8,
               .to_extent = 0x1000});
  EXPECT_TRUE(test::block_with(b_).escaped);
  EXPECT_FALSE(test::block_with(a_).escaped);
}

TEST_F(Operations, AllOfAPayloadIsRead) {
  std::mt19937_64 random(1);
  for (const std::size_t words : {1ul, 3ul, 8ul, 63ul, 511ul, 512ul, 513ul, 1040ul, (8ul << 20) / 8 + 5}) {
    // Words of any value, on both sides of the range and of the sign.
    std::vector<std::uint64_t> payload(words);
    for (std::uint64_t& word : payload) {
      do {
        word = random() % 2 != 0   ? random()
               : random() % 2 != 0 ? kRange - 1 - random() % 1000
                                   : ~std::uint64_t{0} - random() % 9;
      } while (agent::arena_may_own(word));
    }
    const CopyCall call{.kind = CopyKind::kToDevice, .from_host = payload.data(), .bytes = words * 8};
    test::reset_arena(kRange, kRangeBytes);
    const std::uint64_t block = test::add_block(kRange + 0x4000, 0x1000);
    before_copy(call);
    EXPECT_FALSE(test::block_with(block).escaped) << words;
    for (const std::size_t at : {std::size_t{0}, words / 2, words - 1}) {
      test::reset_arena(kRange, kRangeBytes);
      const std::uint64_t escapes = test::add_block(kRange + 0x4000, 0x1000);
      const std::uint64_t kept = std::exchange(payload[at], kRange + 0x4fff);
      before_copy(call);
      EXPECT_TRUE(test::block_with(escapes).escaped) << words << " words, at " << at;
      payload[at] = kept;
    }
  }
}

// Tables have headers, structures are packed, and the host's memory is aligned as it comes.
TEST_F(Operations, AddressesInAPayloadEscapeWhereverTheyStand) {
  const std::uint64_t address = kRange + 0x4010;
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{1000}, std::size_t{1} << 20}) {
    // Every byte of what may be a table, multiples of four of what is larger.
    for (std::size_t at = 0; at + 8 <= bytes && at <= 16; at += bytes > 65536 ? 4 : 1) {
      test::reset_arena(kRange, kRangeBytes);
      const std::uint64_t block = test::add_block(kRange + 0x4000, 0x1000);
      std::vector<unsigned char> payload(bytes, 1);
      std::memcpy(payload.data() + bytes - 8 - at, &address, sizeof(address));
      before_copy({.kind = CopyKind::kToDevice, .from_host = payload.data(), .bytes = bytes});
      EXPECT_TRUE(test::block_with(block).escaped) << bytes << " bytes, " << at << " before the end";
    }
  }
}

// Of an address that is written in pieces the upper half is known.
TEST_F(Operations, HalvesOfAddressesAreLookedForInMemory) {
  const std::uint64_t address = kRange + 0x4010;
  const auto low = static_cast<std::uint32_t>(address), high = static_cast<std::uint32_t>(address >> 32);
  const auto copy = [](const std::uint32_t* from, std::size_t bytes, std::uint64_t to) {
    before_copy({.kind = CopyKind::kToDevice, .to = to, .from_host = from, .bytes = bytes, .to_extent = bytes});
  };
  copy(&high, 4, kRange + 0x1004);
  EXPECT_EQ(test::scans_missed(), 0) << "nothing leaves without a limit";
  agent::arena_limited = true;
  copy(&low, 4, kRange + 0x1000);
  EXPECT_EQ(test::scans_missed(), 0);
  copy(&high, 4, kRange + 0x1004);
  EXPECT_GE(test::scans_missed(), 1);
  const int before = test::scans_missed();
  before_memset({kRange + 0x1000, 4, {nullptr, false}, low});
  before_memset({kRange + 0x1000, 64, {nullptr, false}, 0});
  EXPECT_EQ(test::scans_missed(), before);
  before_memset({kRange + 0x1004, 4, {nullptr, false}, high});
  EXPECT_EQ(test::scans_missed(), before + 1);
  agent::arena_limited = false;
}

// Arrays whose first index is 1 are known by the address before their first element.
TEST_F(Operations, AnAddressRightBeforeABlockMeansItToo) {
  const CUfunction function = test::make_function("k", {{0, 8}});
  for (const auto& [bias, means] : {std::pair{4, true}, {8, true}, {16, true}, {20, false}}) {
    test::reset_arena(kRange, kRangeBytes);
    const std::uint64_t block = test::add_block(kRange + 0x8000, 0x1000);
    std::uint64_t before = kRange + 0x8000 - static_cast<std::uint64_t>(bias);
    void* parameters[] = {&before};
    before_launch({.function = function, .stream = {stream(1), false}, .parameters = parameters});
    EXPECT_EQ(used_blocks(), means ? std::vector<std::uint64_t>{block} : std::vector<std::uint64_t>{}) << bias;
  }
}

TEST_F(Operations, CopiesToTheHostAreVisibleUnlessTheCallWaits) {
  char host[16];
  CopyCall call{.kind = CopyKind::kToHost, .from = kRange + 0x1000, .to_host = host, .bytes = 16, .from_extent = 16};
  call.host_waits = true;
  before_copy(call);
  EXPECT_EQ(test::visible_operations(), 0);
  call.host_waits = false;
  before_copy(call);
  EXPECT_EQ(test::visible_operations(), 1);
  before_host_function({stream(1), false});
  EXPECT_EQ(test::visible_operations(), 2);
}

TEST_F(Operations, AnUnknownCopyUsesEverything) {
  before_copy({.kind = CopyKind::kUnknown, .bytes = 1});
  EXPECT_EQ(test::uses_of_everything(), 1);
}

TEST_F(Operations, MemsetsAreUsedAndRecorded) {
  start_recording(false);
  before_memset({kRange + 0x4FFF, 0x100, {nullptr, false}});
  EXPECT_EQ(used_blocks(), (std::vector<std::uint64_t>{b_, b_}));
  const auto sets = recorded(RecordKind::kMemset);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].view().as<shm::MemsetBody>().block, b_);
  EXPECT_EQ(sets[0].view().as<shm::MemsetBody>().bytes, 0x100u);
}

TEST_F(Operations, CapturedWorkIsNotRecordedAndKeepsItsBlocks) {
  start_recording(false);
  before_capture(stream(4));
  test::set_capturing(stream(4), true);
  std::uint64_t pointer = kRange + 0x1000;
  void* parameters[] = {&pointer};
  const CUfunction function = test::make_function("k", {{0, 8}});
  before_launch({.function = function, .stream = {stream(4), false}, .parameters = parameters});
  EXPECT_TRUE(test::block_with(a_).kept);
  EXPECT_TRUE(recorded(RecordKind::kLaunch).empty());
  // Another stream goes on as ever.
  before_launch({.function = function, .stream = {stream(5), false}, .parameters = parameters});
  EXPECT_EQ(recorded(RecordKind::kLaunch).size(), 1u);
  test::set_capturing(stream(4), false);
  capture_ended(stream(4));
  EXPECT_EQ(test::captures_begun(), std::vector<CUstream>{stream(4)});
  EXPECT_EQ(test::captures_ended(), std::vector<CUstream>{stream(4)});
}

TEST_F(Operations, UnknownWorkUsesEverythingAndEscapesPin) {
  before_unknown_work({stream(1), false});
  EXPECT_EQ(test::uses_of_everything(), 1);
  note_escape(kRange + 0x1800);
  EXPECT_TRUE(test::block_with(a_).escaped);
  note_escape(0x1800);
}

// What a launch may have stored is looked at behind it, where something may leave, and not else.
TEST_F(Operations, LaunchesAreLookedAtBehindThemWhereBlocksMayLeave) {
  std::uint64_t pointer = kRange + 0x1000;
  void* parameters[] = {&pointer};
  const CUfunction function = test::make_function("looked at", {{0, 8}});
  const auto launch = [&](CUresult result) {
    const QueuedAtEnd scope;
    before_launch({.function = function, .stream = {stream(1), false}, .parameters = parameters});
    EXPECT_EQ(scope.made([&] { return result; }), result);
  };
  const std::uint32_t id = launch_layout(function).id;
  launch(CUDA_SUCCESS);
  EXPECT_TRUE(test::looked_at().empty());
  scan_mode = ScanMode::kAll;
  launch(CUDA_SUCCESS);
  EXPECT_EQ(test::looked_at(), (std::vector<test::Looked>{{a_, id}}));
  EXPECT_EQ(test::scans_queued(), 1);
  launch(CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(test::scans_queued(), 1);
  EXPECT_EQ(test::scans_forgotten(), 1);
  // Where a plan is followed, what is recorded.
  scan_mode = ScanMode::kSuspects;
  launch(CUDA_SUCCESS);
  EXPECT_EQ(test::scans_queued(), 1);
  start_recording(false);
  launch(CUDA_SUCCESS);
  EXPECT_EQ(test::scans_queued(), 2);
  // While something is captured a kernel of ours may not be launched.
  EXPECT_EQ(test::scans_missed(), 0);
  before_capture(stream(4));
  launch(CUDA_SUCCESS);
  EXPECT_EQ(test::scans_queued(), 2);
  EXPECT_EQ(test::scans_missed(), 1);
  capture_ended(stream(4));
  scan_mode = ScanMode::kOff;
}

TEST_F(Operations, NothingHappensWhileNobodyListens) {
  test::reset_arena(0, 0);
  const int before = test::driver_questions();
  std::uint64_t pointer = kRange;
  void* parameters[] = {&pointer};
  EXPECT_FALSE(operations_are_watched());
  before_launch({.function = test::make_function("k", {{0, 8}}), .parameters = parameters});
  before_copy({.kind = CopyKind::kUnknown, .bytes = 1});
  before_memset({0, 1, {}});
  before_host_function({});
  before_unknown_work({});
  EXPECT_EQ(test::driver_questions(), before);
  EXPECT_EQ(test::operations(), 0);
}

TEST_F(Operations, ErrnoIsKept) {
  start_recording(true);
  errno = 4711;
  std::uint64_t pointer = kRange + 0x1000;
  void* parameters[] = {&pointer};
  before_launch({.function = test::make_function("never seen", {{0, 8}}), .parameters = parameters});
  EXPECT_EQ(errno, 4711);
}

}  // namespace
}  // namespace memopt::agent
