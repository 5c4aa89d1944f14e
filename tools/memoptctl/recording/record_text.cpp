#include "tools/memoptctl/recording/record_text.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

using shm::RecordKind;
using shm::RecordView;

constexpr std::array<std::string_view, shm::kLastRecordKind + 1> kNames = {
    "pad",          "malloc",     "free",         "launch",        "copy",           "memset",
    "event record", "event wait", "synchronize",  "stream create", "stream destroy", "host function",
    "function",     "stack",      "parameters",   "module",        "kernel time",    "state",
    "clock",        "escape",     "python frame", "python stack"};

// A row of blocks or addresses is cut here.
constexpr std::size_t kShown = 16;

std::string stream(std::uint64_t name) { return name == 0 ? "" : fmt::format(" stream {:#x}", name); }

std::string launch(const RecordView& record, const std::map<std::uint64_t, std::string>& kernels) {
  const auto body = record.as<shm::LaunchBody>();
  const auto name = kernels.find(record.header.aux);
  std::string text = name == kernels.end() ? fmt::format("function {}", record.header.aux) : printable(name->second);
  text += fmt::format(" <<<{}x{}x{}, {}x{}x{}", body.grid[0], body.grid[1], body.grid[2], body.block[0], body.block[1],
                      body.block[2]);
  text += (body.shared_bytes == 0 ? ">>>" : fmt::format(", {}>>>", body.shared_bytes)) + stream(body.stream);
  for (std::size_t i = 0; i < body.accesses; ++i) {
    if (i == kShown) return text + fmt::format(" and {} more", body.accesses - kShown);
    const std::uint64_t access = record.word_behind<shm::LaunchBody>(i);
    const bool reads = (access & shm::kAccessReads) != 0;
    const bool writes = (access & shm::kAccessWrites) != 0;
    text += fmt::format(" {}{}",
                        reads && writes ? "rw:"
                        : reads         ? "r:"
                        : writes        ? "w:"
                                        : "",
                        access & shm::kAccessBlock);
  }
  if ((record.header.flags & shm::kBlindLaunch) != 0) text += " (parameters not readable)";
  return text;
}

std::string copy(const RecordView& record) {
  const auto body = record.as<shm::CopyBody>();
  const auto side = [](std::uint64_t block) { return block == 0 ? std::string("-") : fmt::to_string(block); };
  std::string_view kind = "unknown direction";
  switch (static_cast<shm::CopyKind>(record.header.aux)) {
    case shm::CopyKind::kToDevice:
      kind = "to device";
      break;
    case shm::CopyKind::kToHost:
      kind = "to host";
      break;
    case shm::CopyKind::kOnDevice:
      kind = "on device";
      break;
    case shm::CopyKind::kUnknown:
      break;
  }
  return fmt::format("{}: block {} -> {}, {} bytes{}", kind, side(body.from), side(body.to), body.bytes,
                     stream(body.stream));
}

std::string_view scope(std::uint64_t scope) {
  switch (static_cast<shm::Scope>(scope)) {
    case shm::Scope::kContext:
      return "context";
    case shm::Scope::kStream:
      return "stream";
    case shm::Scope::kEvent:
      return "event";
  }
  return "unknown";
}

std::string_view change(std::uint32_t change) {
  switch (static_cast<shm::StateChange>(change)) {
    case shm::StateChange::kLive:
      return "plan live";
    case shm::StateChange::kDeviated:
      return "deviated";
    case shm::StateChange::kRestarted:
      return "restarted";
    case shm::StateChange::kNewContext:
      return "new context";
  }
  return "unknown change";
}

std::string text_of(const RecordView& record) {
  const auto bytes = record.bytes_behind<shm::NameBody>(record.as<shm::NameBody>().length);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string stack(const RecordView& record) {
  const auto body = record.as<shm::StackBody>();
  std::string text = fmt::format("{:#x}:", body.hash);
  for (std::size_t i = 0; i < body.frames; ++i) {
    if (i == kShown) return text + fmt::format(" and {} more", body.frames - kShown);
    text += fmt::format(" {:#x}", record.word_behind<shm::StackBody>(i));
  }
  return text;
}

std::string flags(const RecordView& record) {
  std::string text;
  if ((record.header.flags & shm::kStreamOrdered) != 0) text += " stream-ordered";
  if ((record.header.flags & shm::kForeign) != 0) text += " of the driver";
  return text;
}

}  // namespace

std::string_view kind_name(RecordKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::string describe(const RecordView& record, const std::map<std::uint64_t, std::string>& kernels) {
  switch (record.kind()) {
    case RecordKind::kMalloc: {
      const auto body = record.as<shm::MallocBody>();
      return fmt::format("block {}, {} bytes at {:#x}, stack {:#x}, from {:#x}{}{}", body.block, body.bytes,
                         body.address, body.stack, body.return_address, stream(body.stream), flags(record));
    }
    case RecordKind::kFree: {
      const auto body = record.as<shm::FreeBody>();
      return fmt::format("block {}{}{}", body.block, stream(body.stream), flags(record));
    }
    case RecordKind::kLaunch:
      return launch(record, kernels);
    case RecordKind::kCopy:
      return copy(record);
    case RecordKind::kMemset: {
      const auto body = record.as<shm::MemsetBody>();
      return fmt::format("block {}, {} bytes{}", body.block, body.bytes, stream(body.stream));
    }
    case RecordKind::kEventRecord:
    case RecordKind::kEventWait: {
      const auto body = record.as<shm::EventBody>();
      return fmt::format("event {:#x}{}", body.event, stream(body.stream));
    }
    case RecordKind::kSynchronize: {
      const auto body = record.as<shm::SynchronizeBody>();
      return fmt::format("{} {:#x}", scope(body.scope), body.object);
    }
    case RecordKind::kStreamCreate:
    case RecordKind::kStreamDestroy:
    case RecordKind::kHostFunction:
      return fmt::format("stream {:#x}", record.as<shm::StreamBody>().stream);
    case RecordKind::kFunction:
      return fmt::format("{} is {}", record.as<shm::NameBody>().id, printable(text_of(record)));
    case RecordKind::kModule: {
      const std::string text = text_of(record);
      const std::size_t line = text.find('\n');
      return fmt::format("{:#x} is {}{}", record.as<shm::NameBody>().id, printable(text.substr(0, line)),
                         line == std::string::npos ? "" : ", build id " + printable(text.substr(line + 1)));
    }
    case RecordKind::kStack:
      return stack(record);
    case RecordKind::kParameters: {
      const auto body = record.as<shm::ParametersBody>();
      std::string text = fmt::format("of launch {}, {} bytes:", body.launch, body.length);
      for (std::size_t i = 0; i < body.length && i < 4 * kShown; ++i) {
        text += fmt::format("{}{:02x}", i % 8 == 0 ? " " : "",
                            std::to_integer<unsigned>(record.body[sizeof(shm::ParametersBody) + i]));
      }
      return body.length > 4 * kShown ? text + " …" : text;
    }
    case RecordKind::kKernelTime: {
      const auto body = record.as<shm::KernelTimeBody>();
      std::string text = fmt::format("operation {} took {} ns", body.launch, body.nanoseconds);
      if (record.header.aux != shm::kIdleUnknown) text += fmt::format(", idle for {} ns before", record.header.aux);
      return body.end == 0 ? text : text + fmt::format(", until {} ns", body.end);
    }
    case RecordKind::kState: {
      const auto body = record.as<shm::StateBody>();
      return fmt::format("{}, plan {}, places from {:#x} on", change(record.header.aux), body.generation, body.slab);
    }
    case RecordKind::kClock:
      return fmt::format("{} ns", record.as<shm::ClockBody>().nanoseconds);
    case RecordKind::kEscape:
      return fmt::format("block {}: its address is stored where its uses are not seen",
                         record.as<shm::EscapeBody>().block);
    case RecordKind::kPythonFrame:
      return fmt::format("{:#x} is {}", record.as<shm::NameBody>().id, printable(text_of(record)));
    case RecordKind::kPythonStack:
      return record.as<shm::StackBody>().hash == 0 ? "none" : stack(record);
    case RecordKind::kPad:
      break;
  }
  return "";
}

}  // namespace memopt::tools
