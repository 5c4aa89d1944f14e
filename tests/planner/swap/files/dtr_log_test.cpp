#include "planner/swap/files/dtr_log.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "planner/json/tree.h"
#include "planner/swap/model/liveness.h"

namespace memopt::swap {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

struct Result {
  std::string name;
  std::uint64_t bytes = 0;
  int alias = -1;
};

std::string line(const json& instruction) { return instruction.dump() + '\n'; }

std::string named(const char* instruction, const std::string& name) {
  return line({{"INSTRUCTION", instruction}, {"NAME", name}});
}

std::string annotation(const std::string& text) { return line({{"INSTRUCTION", "ANNOTATE"}, {"ANNOTATION", text}}); }

std::string memory(std::uint64_t bytes) {
  return line({{"INSTRUCTION", "MEMORY"}, {"NAME", "it"}, {"MEMORY", std::to_string(bytes)}});
}

std::string alias(int place) {
  return line({{"INSTRUCTION", "ALIAS"}, {"NAME", "it"}, {"ALIAS", std::to_string(place)}});
}

std::string constant(const std::string& name, std::uint64_t bytes) { return named("CONSTANT", name) + memory(bytes); }

std::string release(const std::string& name) { return named("RELEASE", name); }

std::string copy(const char* instruction, const std::string& to, const std::string& from) {
  return line({{"INSTRUCTION", instruction}, {"DST", to}, {"SRC", from}});
}

std::string call(const std::string& name, int ns, const Names& arguments, const std::vector<Result>& results = {}) {
  Names names;
  std::string behind;
  for (const Result& one : results) {
    names.push_back(one.name);
    behind += memory(one.bytes) + alias(one.alias);
  }
  return line({{"INSTRUCTION", "CALL"},
               {"NAME", name},
               {"ARGS", arguments},
               {"RESULT", names},
               {"TIME", std::to_string(ns)}}) +
         behind;
}

std::string mutate(int ns, const Names& arguments, const std::vector<int>& changed) {
  return line({{"INSTRUCTION", "MUTATE"},
               {"NAME", "add_"},
               {"ARGS", arguments},
               {"MUTATE", changed},
               {"TIME", std::to_string(ns)}});
}

const std::string kStart = annotation("START");

Problem read(const std::string& text) {
  input::File file = input::File::holding(text, "f");
  EXPECT_TRUE(is_dtr_log(file));
  Problem problem = read_dtr_log(file).problem;
  problem.machine = {10, 10, 0, 0};
  EXPECT_NO_THROW(find_liveness(problem));
  return problem;
}

// Each operation as in a plan's file, with its block and its time; "+" in front where it continues the one before.
std::string story(const Problem& problem) {
  std::ostringstream out;
  for (const Operation& one : problem.operations) {
    out << (one.continues ? " +" : " ") << "mfrwx"[static_cast<std::size_t>(one.kind)];
    if (one.block != kNoBlock) out << one.block;
    out << '@' << one.time;
  }
  return out.str().substr(1);
}

std::string refusal(const std::string& text) {
  input::File file = input::File::holding(text, "f");
  try {
    read_dtr_log(file);
  } catch (const Invalid& error) {
    return error.what();
  }
  return "";
}

TEST(DtrLog, ACallIsOneLaunch) {
  const Problem problem = read(kStart + constant("w", 100) + call("conv", 700, {"w"}, {{"x", 50}}) +
                               call("split", 300, {"x", "w"}, {{"y", 60}, {"z", 70}}) + release("x") + release("y") +
                               call("sum", 20, {"z"}) + release("z"));
  EXPECT_EQ(story(problem),
            "m1@0 r0@0 +w1@0 m2@700 m3@700 r1@700 +r0@700 +w2@700 +w3@700 f1@1000 f2@1000 r3@1000 f3@1020");
  EXPECT_EQ(problem.period, 1020);
  const std::vector<Block> blocks = {{.id = 0, .bytes = 100, .persistent = true, .name = "constant"},
                                     {.id = 1, .bytes = 50, .name = "conv"},
                                     {.id = 2, .bytes = 60, .name = "split"},
                                     {.id = 3, .bytes = 70, .name = "split"}};
  EXPECT_EQ(problem.blocks, blocks);
}

TEST(DtrLog, WhatACallTakesTwiceItReadsOnce) {
  const Problem problem =
      read(kStart + constant("w", 100) + copy("COPY", "v", "w") + call("mul", 10, {"w", "v", "w"}, {{"x", 8}}));
  EXPECT_EQ(story(problem), "m1@0 r0@0 +w1@0 f1@10");
}

TEST(DtrLog, ABlockIsFreedWithItsLastName) {
  const Problem problem =
      read(kStart + call("rand", 5, {}, {{"a", 100}}) + copy("COPY", "b", "a") + copy("COPY", "c", "b") + release("a") +
           call("abs", 5, {"c"}) + release("c") + call("abs", 5, {"b"}) + release("b") + call("abs", 5, {}));
  EXPECT_EQ(story(problem), "m0@0 w0@0 r0@5 r0@10 f0@15 x@15");
}

// A name that was released may be given again.
TEST(DtrLog, ANameCanComeAgain) {
  const Problem problem =
      read(kStart + call("a", 5, {}, {{"x", 100}}) + release("x") + call("b", 5, {}, {{"x", 200}}) + release("x"));
  EXPECT_EQ(story(problem), "m0@0 w0@0 f0@5 m1@5 w1@5 f1@10");
}

// The first result is its second argument, the other one is its own.
TEST(DtrLog, AnAliasIsItsArgument) {
  const Problem problem = read(kStart + call("rand", 5, {}, {{"a", 100}, {"b", 200}}) +
                               call("view", 5, {"a", "b"}, {{"v", 150, 1}, {"n", 50}}) + release("b") + release("a") +
                               release("n") + call("abs", 5, {"v"}) + release("v"));
  EXPECT_EQ(story(problem), "m0@0 m1@0 w0@0 +w1@0 m2@5 r0@5 +r1@5 +w2@5 f0@10 f2@10 r1@10 f1@15");
  EXPECT_EQ(problem.blocks.size(), 3u);
}

TEST(DtrLog, CopyFromGivesANameAnotherBlock) {
  const std::string made = kStart + call("rand", 5, {}, {{"a", 100}, {"b", 200}});
  EXPECT_EQ(story(read(made + copy("COPY_FROM", "a", "b") + release("b") + call("abs", 5, {"a"}) + release("a"))),
            "m0@0 m1@0 w0@0 +w1@0 f0@5 r1@5 f1@10");
  EXPECT_EQ(story(read(made + copy("COPY", "c", "a") + copy("COPY_FROM", "a", "b") + release("a") + release("b") +
                       call("abs", 5, {"c"}))),
            "m0@0 m1@0 w0@0 +w1@0 f1@5 r0@5 f0@10");
  EXPECT_EQ(story(read(made + copy("COPY_FROM", "a", "a") + release("b") + release("a"))),
            "m0@0 m1@0 w0@0 +w1@0 f1@5 f0@5");
}

TEST(DtrLog, WhatIsChangedInPlaceIsReadAndWritten) {
  const Problem problem = read(kStart + constant("w", 100) + constant("g", 100) + copy("COPY", "v", "w") +
                               mutate(7, {"g", "w"}, {1}) + mutate(8, {"v", "g"}, {0, 1, 0}));
  EXPECT_EQ(story(problem), "r1@0 +r0@0 +w0@0 r0@7 +r1@7 +w0@7 +w1@7");
  EXPECT_EQ(problem.period, 15);
}

TEST(DtrLog, ConstantsThatStayArePersistent) {
  const Problem problem =
      read(kStart + constant("w", 100) + constant("in", 200) + constant("unused", 300) + release("unused") +
           constant("copied", 400) + copy("COPY", "kept", "copied") + release("copied") + call("abs", 10, {"w", "in"}) +
           release("in") + constant("late", 500) + call("abs", 10, {"late"}));
  EXPECT_EQ(story(problem), "m1@0 m2@0 f2@0 r0@0 +r1@0 f1@10 m4@10 r4@10 f4@20");
  std::vector<bool> persistent;
  for (const Block& block : problem.blocks) persistent.push_back(block.persistent);
  EXPECT_EQ(persistent, std::vector<bool>({true, false, false, true, false}));
}

// The first call makes nothing that was there before it.
TEST(DtrLog, WhatCallsMakeAndKeepIsFreedAtTheEnd) {
  const Problem problem = read(kStart + constant("w", 100) + call("first", 10, {"w"}, {{"x", 50}, {"view", 100, 0}}) +
                               call("second", 20, {"x"}, {{"y", 60}}) + release("w"));
  EXPECT_EQ(story(problem), "m1@0 r0@0 +w1@0 m2@10 r1@10 +w2@10 f1@30 f2@30");
  EXPECT_TRUE(problem.blocks[0].persistent) << "its view has a name";
  EXPECT_FALSE(problem.blocks[1].persistent || problem.blocks[2].persistent);
  EXPECT_EQ(problem.period, 30);
}

TEST(DtrLog, NoBytesAreNoBlock) {
  const Problem problem = read(kStart + constant("none", 0) + call("empty", 4, {"none"}, {{"x", 0}, {"y", 8}}) +
                               mutate(5, {"x"}, {0}) + call("view", 6, {"x"}, {{"v", 0, 0}}) + release("x"));
  EXPECT_EQ(story(problem), "m0@0 w0@0 x@4 x@9 f0@15");
  EXPECT_EQ(problem.blocks.size(), 1u);
}

TEST(DtrLog, BeginsAtStart) {
  const std::string before = constant("w", 100) + call("abs", 900, {"w", "unknown"}, {{"x", 50}}) + annotation("BEGIN");
  const std::string after = call("rand", 5, {}, {{"x", 10}}) + annotation("BACKWARD") + annotation("START") +
                            release("w") + call("abs", 5, {"x"});
  EXPECT_EQ(story(read(before + kStart + after)), "m0@0 w0@0 r0@5 f0@10");
}

TEST(DtrLog, NumbersMayBeText) {
  std::string text = kStart + constant("w", 100) + call("view", 700, {"w"}, {{"v", 100, 0}, {"x", 50}}) +
                     mutate(30, {"w", "x"}, {1, 0});
  const Problem expected = read(text);
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  for (const std::string number : {"100", "700", "50", "30", "0", "-1"}) replace('"' + number + '"', number);
  replace("[1,0]", R"(["1",0])");
  EXPECT_EQ(read(text), expected);
}

// Whatever else instructions have, and however lines end.
TEST(DtrLog, WhatIsNoneOfItIsPassedOver) {
  const std::string text = kStart + constant("w", 100) + call("abs", 700, {"w"}, {{"x", 50}});
  std::string other;
  for (const char c : text) {
    if (c == '\n') {
      other += "\r\n\n \t\r\n";
    } else {
      other += c == '{' ? R"({ "DEVICE" : [{"a":[]}, null], )" : std::string(1, c);
    }
  }
  EXPECT_EQ(read(other), read(text));
  EXPECT_EQ(read("\xef\xbb\xbf" + text), read(text));
}

TEST(DtrLog, IsToldByItsFirstLine) {
  const auto is_log = [](const std::string& text) { return is_dtr_log(input::File::holding(text, "f")); };
  EXPECT_TRUE(is_log(R"({"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"})"));
  EXPECT_TRUE(is_log(R"( { "INSTRUCTION" : "RELEASE" })"));
  EXPECT_FALSE(is_log(""));
  EXPECT_FALSE(is_log("{\n" + kStart));
  EXPECT_FALSE(is_log("INSTRUCTION\n"));
  EXPECT_FALSE(is_log("\"INSTRUCTION\":\n"));
  EXPECT_FALSE(is_log(R"({"name":"INSTRUCTION","format":"memopt-plan-1"})"));
  EXPECT_FALSE(is_log(R"({"name":"\"INSTRUCTION\": ","format":"memopt-plan-1"})"));
}

// Find_liveness counts sizes up to 2^59; there is a block for two lines at most.
TEST(DtrLog, TheLargestSizesCanBeCounted) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 38;
  EXPECT_EQ(read(kStart + constant("w", kMost) + call("a", 1, {"w"})).blocks[0].bytes, kMost);
  EXPECT_EQ(refusal(kStart + constant("w", kMost + 1)),
            "f: line 3: expected MEMORY to be a number from 0 to 274877906944, found \"274877906945\"");
}

TEST(DtrLog, SaysWhatIsNoInstruction) {
  const std::string expected =
      R"(f: line 2: expected an instruction, such as {"INSTRUCTION":"RELEASE","NAME":"x1"}, found )";
  EXPECT_EQ(refusal(kStart + "Malloc 0xa0 1\n"), expected + "Malloc 0xa0 1");
  EXPECT_EQ(refusal(kStart + "[]\n"), expected + "[]");
  EXPECT_EQ(refusal(kStart + "{\"INSTRUCTION\":\"RELEASE\"\n"), expected + "{\"INSTRUCTION\":\"RELEASE\"");
  EXPECT_EQ(refusal(kStart + "{\"\x1b\": 1e999}"), expected + "{\"?\": 1e999}");
  EXPECT_EQ(refusal(kStart + "{\"a\": \"\xff\"}"), expected + "{\"a\": \"?\"}");
  EXPECT_EQ(refusal(kStart + "{}"), "f: line 2: expected INSTRUCTION, found an instruction without it");
  EXPECT_EQ(refusal("{\"INSTRUCTION\": 7}"), "f: line 1: expected INSTRUCTION to be text, found 7");
  EXPECT_EQ(refusal(kStart + named("SWAP", "x")),
            "f: line 2: expected CONSTANT, CALL, MUTATE, COPY, COPY_FROM, RELEASE or ANNOTATE, found SWAP");
  EXPECT_EQ(refusal(kStart + memory(5)),
            "f: line 2: expected CONSTANT, CALL, MUTATE, COPY, COPY_FROM, RELEASE or ANNOTATE, found MEMORY");
}

// The line is that of the instruction that is wrong, whatever lies behind it.
TEST(DtrLog, SaysWhatATensorCanNotBe) {
  const std::string made = kStart + call("rand", 5, {}, {{"a", 100}});
  const std::string unknown = "f: line 5: expected a tensor that there is, found b";
  EXPECT_EQ(refusal(made + call("abs", 5, {"a", "b"}, {{"x", 1}})), unknown);
  EXPECT_EQ(refusal(made + mutate(5, {"a", "b"}, {0})), unknown);
  EXPECT_EQ(refusal(made + mutate(5, {"b"}, {0})), unknown);
  EXPECT_EQ(refusal(made + copy("COPY", "c", "b")), unknown);
  EXPECT_EQ(refusal(made + copy("COPY_FROM", "a", "b")), unknown);
  EXPECT_EQ(refusal(made + copy("COPY_FROM", "b", "a")), unknown);
  EXPECT_EQ(refusal(made + release("a") + copy("COPY", "c", "a")),
            "f: line 6: expected a tensor that there is, found a");
  const std::string twice = "f: line 5: expected a new tensor, found a";
  EXPECT_EQ(refusal(made + constant("a", 5)), twice);
  EXPECT_EQ(refusal(made + copy("COPY", "a", "a")), twice);
  EXPECT_EQ(refusal(made + call("abs", 5, {"a"}, {{"b", 1}, {"a", 1}})), twice);
  EXPECT_EQ(refusal(made + call("abs", 5, {}, {{"b", 1}, {"b", 1}})), "f: line 5: expected a new tensor, found b");
  // Not yet there when it is called.
  EXPECT_EQ(refusal(made + call("abs", 5, {"b"}, {{"b", 1}})), unknown);
}

TEST(DtrLog, SaysWhatAnInstructionLacks) {
  const std::string made = constant("a", 100);
  const std::vector<std::pair<std::string, Names>> instructions = {
      {annotation("BACKWARD"), {"INSTRUCTION"}},
      {named("CONSTANT", "b"), {"INSTRUCTION", "NAME"}},
      {call("abs", 5, {"a"}, {{"b", 1}}), {"INSTRUCTION", "NAME", "ARGS", "RESULT", "TIME"}},
      {mutate(5, {"a"}, {0}), {"INSTRUCTION", "ARGS", "MUTATE", "TIME"}},
      {copy("COPY", "b", "a"), {"INSTRUCTION", "DST", "SRC"}},
      {copy("COPY_FROM", "a", "a"), {"INSTRUCTION", "DST", "SRC"}},
      {release("a"), {"INSTRUCTION", "NAME"}}};
  for (const auto& [text, members] : instructions) {
    const std::size_t end = text.find('\n');
    for (const std::string& member : members) {
      json instruction = json::parse(text.substr(0, end));
      instruction.erase(member);
      EXPECT_EQ(refusal(kStart + made + line(instruction) + text.substr(end + 1)),
                "f: line 4: expected " + member + ", found an instruction without it")
          << text;
      instruction[member] = nullptr;
      EXPECT_EQ(refusal(kStart + made + line(instruction) + text.substr(end + 1)).find("f: line 4: expected " + member),
                0u)
          << text;
    }
  }
  EXPECT_EQ(refusal(line({{"INSTRUCTION", "ANNOTATE"}})),
            "f: line 1: expected ANNOTATION, found an instruction without it");
}

TEST(DtrLog, SaysWhatAMemberCanNotBe) {
  const auto with = [](const char* member, const json& value) {
    json one = json::parse(mutate(5, {"a"}, {0}));
    one[member] = value;
    return refusal(kStart + constant("a", 100) + line(one));
  };
  const std::string time = "f: line 4: expected TIME to be a number from 0 to 1099511627776, found ";
  for (const json& value : {json("1099511627777"), json("99999999999999999999"), json(1099511627777), json(-1),
                            json("-1"), json("+1"), json("1.5"), json(1.5), json(""), json("5 "), json(true)}) {
    EXPECT_EQ(with("TIME", value), time + value.dump());
  }
  EXPECT_EQ(with("TIME", "1099511627776"), "");
  EXPECT_EQ(with("ARGS", "a"), "f: line 4: expected ARGS to be a list of names, found \"a\"");
  EXPECT_EQ(with("ARGS", {"a", 1}), "f: line 4: expected ARGS to be a list of names, found [\"a\",1]");
  const std::string places = "f: line 4: expected MUTATE to be a list of numbers below 1, found ";
  for (const json& value : {json(0), json({0, 1}), json({-1}), json({"a"}), json({{"a", 0}})}) {
    EXPECT_EQ(with("MUTATE", value), places + value.dump());
  }
  EXPECT_LT(with("ARGS", std::string(100'000, 'a')).size(), 200u);
}

// Printed as they are, they would take all of the stack.
TEST(DtrLog, ListsInEachOtherAreNotPrinted) {
  constexpr std::size_t kDeep = 200'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  for (const char* member : {"INSTRUCTION", "NAME", "ARGS", "RESULT", "TIME"}) {
    json one = json::parse(call("abs", 5, {}));
    one[member] = 12345678;
    std::string text = one.dump();
    text.replace(text.find("12345678"), 8, deep);
    const std::string said = refusal(kStart + text);
    EXPECT_EQ(said.find("f: line 2: expected " + std::string(member) + " to be "), 0u) << said;
    EXPECT_LT(said.size(), 200u);
  }
}

TEST(DtrLog, SaysWhatIsMissingBehindACall) {
  const std::string called =
      line({{"INSTRUCTION", "CALL"}, {"NAME", "f"}, {"ARGS", {"a"}}, {"RESULT", {"x", "y"}}, {"TIME", 5}});
  const std::string begin = kStart + constant("a", 100);
  EXPECT_EQ(refusal(kStart + named("CONSTANT", "a")), "f: line 2: expected MEMORY, found the end");
  EXPECT_EQ(refusal(kStart + named("CONSTANT", "a") + release("a")), "f: line 3: expected MEMORY, found RELEASE");
  EXPECT_EQ(refusal(begin + called), "f: line 4: expected MEMORY, found the end");
  EXPECT_EQ(refusal(begin + called + alias(0)), "f: line 5: expected MEMORY, found ALIAS");
  EXPECT_EQ(refusal(begin + called + memory(5)), "f: line 5: expected ALIAS, found the end");
  EXPECT_EQ(refusal(begin + called + memory(5) + memory(5)), "f: line 6: expected ALIAS, found MEMORY");
  EXPECT_EQ(refusal(begin + called + memory(5) + alias(-1) + release("x")),
            "f: line 7: expected MEMORY, found RELEASE");
  EXPECT_EQ(refusal(begin + called + memory(5) + "{}"),
            "f: line 6: expected INSTRUCTION, found an instruction without it");
  EXPECT_EQ(refusal(begin + called + line({{"INSTRUCTION", "MEMORY"}})),
            "f: line 5: expected MEMORY, found an instruction without it");
  EXPECT_EQ(refusal(begin + called + memory(5) + line({{"INSTRUCTION", "ALIAS"}})),
            "f: line 6: expected ALIAS, found an instruction without it");
  const std::string place = "f: line 6: expected ALIAS to be -1 or a number below 1, found ";
  for (const json& value : {json("1"), json(1), json("-2"), json(-2), json(""), json("0x"), json(nullptr)}) {
    EXPECT_EQ(refusal(begin + called + memory(5) + line({{"INSTRUCTION", "ALIAS"}, {"ALIAS", value}})),
              place + value.dump());
  }
}

TEST(DtrLog, SaysThatNothingIsCalled) {
  const std::string none = "expected a CALL behind the annotation START, found none";
  EXPECT_EQ(refusal(kStart), "f: line 1: " + none);
  EXPECT_EQ(refusal(kStart + constant("w", 100) + release("w")), "f: line 4: " + none);
  EXPECT_EQ(refusal(constant("w", 100) + call("abs", 5, {"w"})), "f: line 3: " + none);
  EXPECT_EQ(refusal(call("abs", 5, {}) + annotation("STOP") + kStart), "f: line 3: " + none);
}

TEST(DtrLog, BoundsAreKept) {
  const std::string expected = "expected a log for DTR's simulator ";
  EXPECT_EQ(refusal(kStart + std::string((1 << 20) + 1, ' ')),
            "f: line 2: " + expected + "in lines of at most 1 MiB, found a longer one");
  EXPECT_EQ(refusal(kStart + std::string(1 << 22, '\n')),
            "f: line 4194305: " + expected + "of at most 4194304 lines, found more");
}

// What is read of a log that was changed anywhere is an iteration, or it is refused.
TEST(DtrLog, MutationsDoNoHarm) {
  const std::string log =
      kStart + constant("w", 100) + constant("x", 8) + copy("COPY", "v", "w") +
      call("conv", 5, {"x", "v"}, {{"y", 50}, {"m", 0}, {"z", 0, 1}}) +
      line({{"INSTRUCTION", "MUTATE"}, {"NAME", "relu_"}, {"ARGS", Names{"y"}}, {"MUTATE", {0}}, {"TIME", "3"}}) +
      release("x") + call("sum", 2, {"y", "z"}, {{"s", 4}}) + copy("COPY_FROM", "v", "s") + release("y") + release("s");
  std::mt19937_64 random(1);
  const std::string alphabet = "0123456789-xwyz,:[]{}\"\n \xff";
  int read = 0;
  for (int k = 0; k < 5000; ++k) {
    std::string text = log;
    for (std::uint64_t change = 1 + random() % 3; change > 0; --change) {
      const std::size_t at = random() % text.size();
      const std::uint64_t how = random() % 4;
      if (how == 0) text.erase(at, 1 + random() % 8);
      if (how == 1) text.insert(at, 1, alphabet[random() % alphabet.size()]);
      if (how == 2) text[at] = alphabet[random() % alphabet.size()];
      if (how == 3) text.erase(text.rfind('\n', at) + 1, text.find('\n', at) - text.rfind('\n', at));  // a line
    }
    PlanFile plan;
    try {
      input::File file = input::File::holding(text, "f");
      plan = read_dtr_log(file);
    } catch (const Invalid&) {
      continue;
    }
    ++read;
    plan.problem.machine = {1, 1, 0, 0};
    EXPECT_NO_THROW(find_liveness(plan.problem)) << text;
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace memopt::swap
