#include "planner/input/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <istream>
#include <iterator>

#include "tests/planner/input/packed.h"

namespace memopt::input {
namespace {

std::string all_of(std::istream& stream) { return {std::istreambuf_iterator<char>(stream), {}}; }

std::string all_of(Bytes& bytes) {
  std::string all, piece(1000, '\0');
  while (const std::size_t got = bytes.read(piece.data(), piece.size())) all.append(piece, 0, got);
  return all;
}

std::string text_of(std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += std::to_string(text.size()) + '\n';
  return text;
}

class InputFile : public testing::Test {
 protected:
  InputFile() : path_(testing::TempDir() + "memopt_input_file_test." + std::to_string(::getpid())) {}
  ~InputFile() override { ::unlink(path_.c_str()); }

  std::string path(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }
  // The other end of a pipe that was filled, by the name that a shell gives it.
  class Pipe {
   public:
    explicit Pipe(const std::string& content) {
      EXPECT_EQ(::pipe(ends_), 0);
      EXPECT_EQ(::write(ends_[1], content.data(), content.size()), static_cast<ssize_t>(content.size()));
      ::close(ends_[1]);
    }
    ~Pipe() { ::close(ends_[0]); }
    std::string path() const { return "/dev/fd/" + std::to_string(ends_[0]); }

   private:
    int ends_[2] = {-1, -1};
  };

  std::string path_;
};

TEST_F(InputFile, IsReadFromItsBeginningAsOftenAsItTakes) {
  const std::string text = text_of(30'000);  // less than a pipe holds
  for (const std::string& content : {text, test::gzip(text), test::zstd(text)}) {
    const Pipe pipe(content);
    for (const std::string& path : {path(content), pipe.path()}) {
      File file(path);
      EXPECT_EQ(file.head(), text.substr(0, file.head().size()));
      EXPECT_GE(file.head().size(), 4096u);
      EXPECT_EQ(all_of(*file.stream()), text) << path;
      const auto first = file.stream(), second = file.stream();
      std::string word;
      *first >> word;
      EXPECT_EQ(all_of(*second), text) << path;
      EXPECT_EQ(word + all_of(*first), text) << path;
      EXPECT_EQ(all_of(*file.take()), text) << path;
    }
  }
}

TEST_F(InputFile, WhatIsNoFileIsGoneOnceItWasTaken) {
  const Pipe pipe("text");
  File file(pipe.path());
  EXPECT_EQ(all_of(*file.take()), "text");
  EXPECT_THROW(file.stream(), std::logic_error);
  File regular(path("text"));
  EXPECT_EQ(all_of(*regular.take()), "text");
  EXPECT_EQ(all_of(*regular.take()), "text");
}

TEST_F(InputFile, AByteOrderMarkIsLeftOut) {
  for (const std::string& content :
       {std::string("\xef\xbb\xbf {"), test::gzip("\xef\xbb\xbf {"), test::zstd("\xef\xbb\xbf {")}) {
    File file = File::holding(content, "held");
    EXPECT_EQ(file.head(), " {");
    EXPECT_TRUE(file.begins_with('{'));
    EXPECT_FALSE(file.begins_with(' '));
    EXPECT_EQ(all_of(*file.stream()), " {");
    EXPECT_EQ(all_of(*file.take()), " {");
  }
  EXPECT_EQ(File::holding("\xef\xbb", "held").head(), "\xef\xbb");
  EXPECT_EQ(File::holding("", "held").head(), "");
  EXPECT_FALSE(File::holding(" ", "held").begins_with('{'));
}

// Not as a short file: what reads a stream is told.
TEST_F(InputFile, AStreamThrowsWhatReadingThrows) {
  const std::string packed = test::gzip(text_of(1 << 20));
  File file = File::holding(packed.substr(0, packed.size() - 9), "held");
  std::string all(2 << 20, '\0');
  try {
    file.stream()->read(all.data(), static_cast<std::streamsize>(all.size()));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "held: cannot be read: ends within its packed data");
  }
}

TEST_F(InputFile, WhatIsReadTwiceIsKeptUpToABound) {
  File file("/dev/zero");
  const auto stream = file.stream();
  std::string piece(1 << 20, 'x');
  EXPECT_THROW(
      {
        for (std::size_t i = 0; i <= File::kMostKept >> 20; ++i) stream->read(piece.data(), 1 << 20);
      },
      InputError);
}

TEST_F(InputFile, SaysWhyThereIsNone) {
  const auto fault = [](const std::string& path) -> std::string {
    try {
      File file(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault("/nowhere/at all"), "/nowhere/at all: cannot be opened: No such file or directory");
  EXPECT_EQ(fault("/"), "/: is a folder");
}

}  // namespace
}  // namespace memopt::input
