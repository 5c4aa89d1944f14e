#include "planner/layout/files/csv.h"

#include <gtest/gtest.h>

#include "tests/planner/layout/brute_force.h"

namespace memopt::layout {
namespace {

std::string fault(std::string_view text) {
  try {
    read_csv(text);
  } catch (const CsvError& error) {
    return error.what();
  }
  return "";
}

TEST(CsvReader, ReadsTheColumnsInAnyOrder) {
  const Instance instance = read_csv("size,upper,id,alignment,lower\n12,9,first one,4,3\n7,5,b2,1,0\n");
  ASSERT_EQ(instance.problem.buffers.size(), 2U);
  EXPECT_EQ(instance.ids, (std::vector<std::string>{"first one", "b2"}));
  EXPECT_EQ(instance.lines, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(instance.problem.buffers[0].bytes, 12U);
  EXPECT_EQ(instance.problem.buffers[0].alignment, 4U);
  EXPECT_EQ(instance.problem.hull(0), (Interval{3, 9}));
  EXPECT_EQ(instance.problem.hull(1), (Interval{0, 5}));
  EXPECT_TRUE(instance.offsets.empty());
  EXPECT_EQ(instance.problem.buffers[0].fixed, kAnywhere);
}

TEST(CsvReader, TakesWhatOtherProgramsWrite) {
  const Instance plain = read_csv("id,lower,upper,size\n1,0,2,3\n");
  for (const std::string_view text :
       {"id,lower,upper,size\r\n1,0,2,3\r\n", "\xef\xbb\xbfid, lower ,upper,size\n1,0, 2,\t3",
        "id,lower,upper,size\n1,0,2,3\n\n\n"}) {
    input::File file = input::File::holding(std::string(text), "held");
    const Instance instance = read_csv(file);
    EXPECT_EQ(instance.ids, plain.ids);
    EXPECT_EQ(instance.problem.intervals, plain.problem.intervals);
    EXPECT_EQ(instance.problem.buffers[0].bytes, 3U);
  }
  EXPECT_TRUE(read_csv("id,lower,upper,size\n").problem.buffers.empty());
}

// "end" names the last time that is part of the lifetime, of gaps too.
TEST(CsvReader, TakesTheOlderNames) {
  const Instance instance = read_csv("buffer_id,start,end,size,gaps\nb,0,9,4,3-4\n");
  EXPECT_EQ(instance.problem.intervals, (std::vector<Interval>{{0, 3}, {5, 10}}));
  EXPECT_EQ(read_csv("buffer,begin,upper,size\nb,0,9,4\n").problem.hull(0), (Interval{0, 9}));
}

TEST(CsvReader, LeavesOutGaps) {
  const auto intervals = [](const std::string& gaps) {
    return read_csv("id,lower,upper,gaps,size\nb,10,20," + gaps + ",4\n").problem.intervals;
  };
  EXPECT_EQ(intervals(""), (std::vector<Interval>{{10, 20}}));
  EXPECT_EQ(intervals("12-14"), (std::vector<Interval>{{10, 12}, {14, 20}}));
  EXPECT_EQ(intervals("16-17 12-14"), (std::vector<Interval>{{10, 12}, {14, 16}, {17, 20}}));
  EXPECT_EQ(intervals("12-15  13-14 14-17 17-18"), (std::vector<Interval>{{10, 12}, {18, 20}}));
  EXPECT_EQ(intervals("10-12 19-20"), (std::vector<Interval>{{12, 19}}));
}

TEST(CsvReader, FixedPlacesAndPlacementsAreTwoThings) {
  const Instance instance = read_csv("id,lower,upper,size,fixed,offset\na,0,2,4,8,8\nb,0,2,4,,0\n");
  EXPECT_EQ(instance.problem.buffers[0].fixed, 8U);
  EXPECT_EQ(instance.problem.buffers[1].fixed, kAnywhere);
  EXPECT_EQ(instance.offsets, (std::vector<std::uint64_t>{8, 0}));
}

TEST(CsvReader, SaysWhatIsWrongWithTheHeader) {
  EXPECT_EQ(fault(""), "line 1: empty; expected a header: id,lower,upper,size");
  EXPECT_EQ(fault("\n"), "line 1: empty; expected a header: id,lower,upper,size");
  EXPECT_EQ(fault("id,lower,upper\n"), "line 1: the column 'size' is missing");
  EXPECT_EQ(fault("id,lower,upper,size,size\n"), "line 1: the column 'size' is there twice");
  EXPECT_EQ(fault("id,lower,upper,end,size\n"), "line 1: the column 'upper' is there twice");
  EXPECT_EQ(fault("0,1,2,3\n"),
            "line 1: unknown column '0'; there are id, lower, upper, size, alignment, gaps, fixed, offset and hint");
}

TEST(CsvReader, SaysWhatIsWrongWithARow) {
  const auto row = [](const std::string& text) { return fault("id,lower,upper,size\na,0,4,1\n" + text + "\n"); };
  EXPECT_EQ(row("b,1,2,3"), "");
  EXPECT_EQ(row("b,1,2"), "line 3: it has 3 columns, the header 4");
  EXPECT_EQ(row("b,1,2,3,4"), "line 3: it has 5 columns, the header 4");
  EXPECT_EQ(row("b,-1,2,3"), "line 3: lower is negative: -1");
  EXPECT_EQ(row("b,1,-2,3"), "line 3: upper is negative: -2");
  EXPECT_EQ(row("b,1,2,-3"), "line 3: size is negative: -3");
  EXPECT_EQ(row("b,2,2,3"), "line 3: lower must be below upper, but there is 2 and 2");
  EXPECT_EQ(row("b,3,2,3"), "line 3: lower must be below upper, but there is 3 and 2");
  EXPECT_EQ(row("b,1,2,0"), "line 3: size is 0");
  EXPECT_EQ(row("b,1,2,"), "line 3: size is not an integer: ''");
  EXPECT_EQ(row("b,1,2,3x"), "line 3: size is not an integer: '3x'");
  EXPECT_EQ(row("b,1,2,3.5"), "line 3: size is not an integer: '3.5'");
  EXPECT_EQ(row("b,1,2,0x10"), "line 3: size is not an integer: '0x10'");
  EXPECT_EQ(row("b,1,2,\x1b[31m"), "line 3: size is not an integer: '?[31m'");
  EXPECT_EQ(row("b,1,2,9223372036854775808"), "line 3: size is 2^63 or more: 9223372036854775808");
  EXPECT_EQ(row("b,1,2,99999999999999999999"), "line 3: size is 2^63 or more: 99999999999999999999");
  EXPECT_EQ(row("b,1,9223372036854775808,1"), "line 3: upper is 2^63 or more: 9223372036854775808");
  EXPECT_EQ(row("b,1,2,9223372036854775807"), "line 3: the sizes up to here, aligned, add up to 2^63 or more");
  EXPECT_EQ(row("a,1,2,3"), "line 3: the id 'a' was already in line 2");
  EXPECT_EQ(row(",1,2,3"), "line 3: the id is empty");
  EXPECT_EQ(row("\nb,1,2,3"), "line 3: empty, but rows follow");
}

TEST(CsvReader, SaysWhatIsWrongWithTheOtherColumns) {
  const auto row = [](const std::string& text) {
    return fault("id,lower,upper,size,alignment,gaps,fixed,offset\n" + text + "\n");
  };
  EXPECT_EQ(row("b,1,9,3,1,,,0"), "");
  EXPECT_EQ(row("b,1,9,3,0,,,0"), "line 2: alignment is 0");
  EXPECT_EQ(row("b,1,9,3,-1,,,0"), "line 2: alignment is negative: -1");
  EXPECT_EQ(row("b,1,9,3,1,4,,0"), "line 2: gap '4' is not of the form LOWER-UPPER");
  EXPECT_EQ(row("b,1,9,3,1,4-x,,0"), "line 2: a gap's upper is not an integer: 'x'");
  EXPECT_EQ(row("b,1,9,3,1,4-4,,0"), "line 2: a gap's lower must be below a gap's upper, but there is 4 and 4");
  EXPECT_EQ(row("b,1,9,3,1,0-4,,0"), "line 2: the gap '0-4' is not within the lifetime");
  EXPECT_EQ(row("b,1,9,3,1,1-5 5-9,,0"), "line 2: nothing is left of the lifetime between the gaps");
  EXPECT_EQ(row("b,1,9,3,1,4-5@0:1,,0"),
            "line 2: gap '4-5@0:1': gaps with a window (@) in which part of the buffer stays are not supported");
  EXPECT_EQ(row("b,1,9,3,1,,-1,0"), "line 2: fixed is negative: -1");
  EXPECT_EQ(row("b,1,9,3,1,,9223372036854775806,0"), "line 2: it is fixed beyond 2^63");
  EXPECT_EQ(row("b,1,9,3,1,,,"), "line 2: offset is not an integer: ''");
  EXPECT_EQ(row("b,1,9,3,1,,4,0\nc,2,5,3,1,,5,0"),
            "fixed: line 2 (id b) and line 3 (id c) share the bytes [5, 7) at time 2");
  EXPECT_EQ(fault("id,lower,end,size\na,0,9223372036854775807,1\n"), "line 2: upper is 2^63 or more");
}

TEST(CsvWriter, LeavesOutWhatNoBufferNeeds) {
  const Instance plain = read_csv("size,id,lower,upper,alignment,gaps,fixed\n3,a,0,2,1,,\n");
  EXPECT_EQ(write_csv(plain), "id,lower,upper,size\na,0,2,3\n");
  const std::vector<std::uint64_t> offsets{4};
  EXPECT_EQ(write_csv(plain, offsets), "id,lower,upper,size,offset\na,0,2,3,4\n");
  const Instance full = read_csv("id,lower,upper,size,alignment,gaps,fixed\na,0,9,3,2,4-5 6-7,6\nb,9,10,1,1,,\n");
  EXPECT_EQ(write_csv(full), "id,lower,upper,size,alignment,gaps,fixed\na,0,9,3,2,4-5 6-7,6\nb,9,10,1,1,,\n");
}

TEST(CsvWriter, IsReadAgainAsTheSame) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 1000; ++round) {
    Instance instance;
    instance.problem = brute_force::random_problem(random, {.buffers = 30, .bytes = 1000, .times = 50});
    for (std::size_t i = 0; i < instance.problem.buffers.size(); ++i) {
      instance.ids.push_back("b" + std::to_string(i));
      instance.offsets.push_back(random() % 1000);
    }
    const Instance again = read_csv(write_csv(instance, instance.offsets));
    ASSERT_EQ(again.ids, instance.ids);
    ASSERT_EQ(again.offsets, instance.offsets);
    ASSERT_EQ(again.problem.intervals, instance.problem.intervals);
    for (std::size_t i = 0; i < instance.problem.buffers.size(); ++i) {
      const Buffer& before = instance.problem.buffers[i];
      const Buffer& after = again.problem.buffers[i];
      ASSERT_EQ(std::tie(after.bytes, after.alignment, after.fixed, after.first, after.count),
                std::tie(before.bytes, before.alignment, before.fixed, before.first, before.count));
    }
  }
}

}  // namespace
}  // namespace memopt::layout
