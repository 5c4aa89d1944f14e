// Stands in for CUPTI: at the flush it hands over the activities that the file FAKE_CUPTI_FOLDER/PROGRAM lists, in
// CUPTI's records and through the caller's buffers. A line is "kernel COUNT NAME", "copy COUNT KIND BYTES" or "memset
// COUNT BYTES" (KIND as in CUpti_ActivityMemcpyKind, BYTES of each), or "dropped COUNT". FAKE_CUPTI_VERSION is its
// version, FAKE_CUPTI_BROKEN the function that fails.
#include <cupti.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

CUpti_BuffersCallbackRequestFunc g_request = nullptr;
CUpti_BuffersCallbackCompleteFunc g_complete = nullptr;
std::set<CUpti_ActivityKind> g_enabled;
std::size_t g_dropped = 0;

CUptiResult unless_broken(const char* function) {
  const char* const broken = std::getenv("FAKE_CUPTI_BROKEN");
  return broken != nullptr && std::strcmp(broken, function) == 0 ? CUPTI_ERROR_NOT_COMPATIBLE : CUPTI_SUCCESS;
}

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    default:
      return sizeof(CUpti_ActivityMemset4);
  }
}

// Fills the caller's buffers, one after the other.
class Buffers {
 public:
  ~Buffers() { hand_over(); }

  template <typename Record>
  void add(const Record& record) {
    if (g_enabled.count(record.kind) == 0) return;
    if (buffer_ == nullptr || used_ + sizeof record > size_) {
      hand_over();
      std::size_t most = 0;
      g_request(&buffer_, &size_, &most);
      if (buffer_ == nullptr) std::abort();
    }
    std::memcpy(buffer_ + used_, &record, sizeof record);
    used_ += sizeof record;
  }

 private:
  void hand_over() {
    if (buffer_ != nullptr) g_complete(nullptr, 0, buffer_, size_, used_);
    buffer_ = nullptr;
    used_ = 0;
  }

  std::uint8_t* buffer_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

void add_line(std::ifstream& file, const std::string& what, Buffers& buffers) {
  static std::set<std::string> names;  // outlive the records
  unsigned long long count = 0, bytes = 0;
  file >> count;
  if (what == "kernel") {
    std::string name;
    file >> name;
    CUpti_ActivityKernel10 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.name = names.insert(name).first->c_str();
    while (count-- > 0) buffers.add(record);
  } else if (what == "copy") {
    unsigned kind = 0;
    CUpti_ActivityMemcpy6 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    file >> kind >> bytes;
    record.bytes = bytes;
    record.copyKind = static_cast<std::uint8_t>(kind);
    while (count-- > 0) buffers.add(record);
  } else if (what == "memset") {
    CUpti_ActivityMemset4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    file >> bytes;
    record.bytes = bytes;
    while (count-- > 0) buffers.add(record);
  } else if (what == "dropped") {
    g_dropped = count;
  } else {
    std::abort();
  }
}

}  // namespace

EXPORTED CUptiResult cuptiGetVersion(std::uint32_t* version) {
  const char* const text = std::getenv("FAKE_CUPTI_VERSION");
  *version = text == nullptr ? CUPTI_API_VERSION : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  return unless_broken("cuptiGetVersion");
}

EXPORTED CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_NOT_COMPATIBLE ? "CUPTI_ERROR_NOT_COMPATIBLE" : "another result";
  return CUPTI_SUCCESS;
}

EXPORTED CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  g_request = request;
  g_complete = complete;
  return unless_broken("cuptiActivityRegisterCallbacks");
}

EXPORTED CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  g_enabled.insert(kind);
  return unless_broken("cuptiActivityEnable");
}

EXPORTED CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  const char* const folder = std::getenv("FAKE_CUPTI_FOLDER");
  std::ifstream file(std::string(folder == nullptr ? "" : folder) + "/" + program_invocation_short_name);
  Buffers buffers;
  for (std::string what; file >> what;) add_line(file, what, buffers);
  return unless_broken("cuptiActivityFlushAll");
}

EXPORTED CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::size_t next = 0;
  if (*record != nullptr) {
    next = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer) + size_of((*record)->kind);
  }
  if (next >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + next);
  return unless_broken("cuptiActivityGetNextRecord");
}

EXPORTED CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = g_dropped;
  g_dropped = 0;
  return CUPTI_SUCCESS;
}
