#include <fmt/format.h>

#include <iterator>
#include <ostream>
#include <string>
#include <unordered_map>

#include "planner/exchange/exchange.h"
#include "planner/exchange/operation_names.h"
#include "planner/recording/clock_line.h"
#include "planner/recording/reader.h"

namespace memopt::exchange {
namespace {

using shm::RecordKind;
using shm::RecordView;

constexpr std::size_t kFlushed = std::size_t{1} << 16;
constexpr std::size_t kMostKernels = 1'000'000;

// A field of text: no line break, no NUL, and quoted where CSV needs it. docs/formats/exchange.md.
void add_text(fmt::memory_buffer& to, std::string_view text) {
  const auto out = std::back_inserter(to);
  const bool quoted = text.find_first_of(",\"") != std::string_view::npos;
  if (quoted) to.push_back('"');
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\\') {
      fmt::format_to(out, "\\\\");
    } else if (letter == '\n') {
      fmt::format_to(out, "\\n");
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(out, "\\x{:02x}", byte);
    } else if (letter == '"') {
      fmt::format_to(out, "\"\"");
    } else {
      to.push_back(letter);
    }
  }
  if (quoted) to.push_back('"');
}

class RowWriter {
 public:
  RowWriter(const planner::ClockLine& clock, std::ostream& to) : clock_(clock), to_(to) {
    for (std::size_t i = 0; i < kColumnNames.size(); ++i) print("{}{}", i == 0 ? "" : ",", kColumnNames[i]);
    buffer_.push_back('\n');
  }

  void gap() {
    print(",,,{}", kGapName);
    end(kOperation);
  }

  void add(std::uint32_t lane, const RecordView& record) {
    print("{},{},{},{},", record.header.sequence, lane, clock_.nanoseconds(record.header.ticks),
          kOperationNames[record.header.kind]);
    add_flags(record.header.flags);
    buffer_.push_back(',');
    add_body(record);
    ++rows_;
  }

  void flush() {
    to_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }
  std::uint64_t rows() const { return rows_; }

 private:
  template <typename... Arguments>
  void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Arguments>(arguments)...);
  }

  // The row ends behind that column.
  void end(Column last) {
    for (std::size_t i = last; i + 1 < kColumns; ++i) buffer_.push_back(',');
    buffer_.push_back('\n');
    if (buffer_.size() >= kFlushed) flush();
  }

  void add_flags(std::uint8_t flags) {
    bool first = true;
    for (const auto& [bit, name] : kFlagNames) {
      if ((flags & bit) == 0) continue;
      print("{}{}", first ? "" : " ", name);
      first = false;
      flags = static_cast<std::uint8_t>(flags & ~bit);
    }
    if (flags != 0) print("{}{}", first ? "" : " ", flags);
  }

  template <std::size_t Count>
  void add_named(const std::array<Named, Count>& names, std::uint64_t number) {
    if (const auto name = name_of(names, number)) {
      print("{}", *name);
    } else {
      print("{}", number);
    }
  }

  static std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // From the column `stream` on.
  void add_body(const RecordView& record) {
    switch (record.kind()) {
      case RecordKind::kMalloc: {
        const auto body = record.as<shm::MallocBody>();
        print("{},{},{},{:#x},{:#x},{:#x}", body.stream, body.block, body.bytes, body.address, body.stack,
              body.return_address);
        return end(kCaller);
      }
      case RecordKind::kFree: {
        const auto body = record.as<shm::FreeBody>();
        print("{},{}", body.stream, body.block);
        return end(kBlock);
      }
      case RecordKind::kLaunch: {
        const auto body = record.as<shm::LaunchBody>();
        print("{},,,,,,", body.stream);
        for (std::uint32_t i = 0; i < body.accesses; ++i) {
          if (i != 0) buffer_.push_back(' ');
          add_access(record.word_behind<shm::LaunchBody>(i));
        }
        buffer_.push_back(',');
        if (const auto kernel = kernels_.find(record.header.aux); kernel != kernels_.end()) {
          add_text(buffer_, kernel->second);
        }
        print(",{} {} {} {} {} {} {} {}", record.header.aux, body.grid[0], body.grid[1], body.grid[2], body.block[0],
              body.block[1], body.block[2], body.shared_bytes);
        return end(kValues);
      }
      case RecordKind::kCopy: {
        const auto body = record.as<shm::CopyBody>();
        print("{},,{},,,,", body.stream, body.bytes);
        if (body.from != 0) print("{}:r", body.from);
        if (body.to != 0) print("{}{}:w", body.from != 0 ? " " : "", body.to);
        buffer_.push_back(',');
        add_named(kCopyNames, record.header.aux);
        return end(kName);
      }
      case RecordKind::kMemset: {
        const auto body = record.as<shm::MemsetBody>();
        print("{},{},{}", body.stream, body.block, body.bytes);
        return end(kBytes);
      }
      case RecordKind::kEventRecord:
      case RecordKind::kEventWait: {
        const auto body = record.as<shm::EventBody>();
        print("{},,,,,,,,{}", body.stream, body.event);
        return end(kValues);
      }
      case RecordKind::kSynchronize: {
        const auto body = record.as<shm::SynchronizeBody>();
        print(",,,,,,,");
        add_named(kScopeNames, body.scope);
        print(",{}", body.object);
        return end(kValues);
      }
      case RecordKind::kStreamCreate:
      case RecordKind::kStreamDestroy:
      case RecordKind::kHostFunction:
        print("{}", record.as<shm::StreamBody>().stream);
        return end(kStream);
      case RecordKind::kFunction:
      case RecordKind::kModule:
      case RecordKind::kPythonFrame: {
        const auto body = record.as<shm::NameBody>();
        const std::string_view text = text_of(record.bytes_behind<shm::NameBody>(body.length));
        if (record.kind() == RecordKind::kFunction && kernels_.size() < kMostKernels) kernels_[body.id] = text;
        print(",,,,,,,");
        add_text(buffer_, text);
        print(",{}", body.id);
        return end(kValues);
      }
      case RecordKind::kStack:
      case RecordKind::kPythonStack: {
        const auto body = record.as<shm::StackBody>();
        print(",,,,{:#x},,,,", body.hash);
        for (std::uint64_t i = 0; i < body.frames; ++i) {
          print("{}{:#x}", i == 0 ? "" : " ", record.word_behind<shm::StackBody>(i));
        }
        return end(kValues);
      }
      case RecordKind::kParameters: {
        const auto body = record.as<shm::ParametersBody>();
        print(",,,,,,,,{} ", body.launch);
        for (const std::byte byte : record.bytes_behind<shm::ParametersBody>(body.length)) {
          print("{:02x}", static_cast<unsigned>(byte));
        }
        return end(kValues);
      }
      case RecordKind::kKernelTime: {
        const auto body = record.as<shm::KernelTimeBody>();
        print(",,,,,,,,{} {} {} {}", body.launch, body.nanoseconds, record.header.aux, body.end);
        return end(kValues);
      }
      case RecordKind::kState: {
        const auto body = record.as<shm::StateBody>();
        print(",,,,,,,");
        add_named(kStateNames, record.header.aux);
        print(",{} {}", body.generation, body.slab);
        return end(kValues);
      }
      case RecordKind::kEscape:
        print(",{}", record.as<shm::EscapeBody>().block);
        return end(kBlock);
      case RecordKind::kClock:
      case RecordKind::kPad:
        return end(kStream);
    }
  }

  void add_access(std::uint64_t access) {
    print("{}", access & shm::kAccessBlock);
    const bool reads = (access & shm::kAccessReads) != 0, writes = (access & shm::kAccessWrites) != 0;
    if (reads || writes) print(":{}{}", reads ? "r" : "", writes ? "w" : "");
    if ((access & shm::kAccessAmbiguous) != 0) buffer_.push_back('?');
  }

  const planner::ClockLine& clock_;
  std::ostream& to_;
  fmt::memory_buffer buffer_;
  std::unordered_map<std::uint64_t, std::string> kernels_;
  std::uint64_t rows_ = 0;
};

}  // namespace

Counts write_operations_csv(input::File& recording, std::ostream& to) {
  planner::RecordingReader first(recording.stream());
  const planner::ClockLine clock = planner::read_clock(first);
  planner::RecordingReader reader(recording.stream());
  RowWriter rows(clock, to);
  while (const auto entry = reader.next()) {
    if (entry->kind == planner::recording::EntryKind::kRecord) {
      rows.add(entry->lane, entry->record);
    } else if (entry->kind == planner::recording::EntryKind::kGap) {
      rows.gap();
    }
  }
  rows.flush();
  Counts counts;
  counts.operations = rows.rows();
  if (reader.damage()) counts.damage = to_string(*reader.damage());
  return counts;
}

}  // namespace memopt::exchange
