#include "agent/scan/address_scan.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "agent/process/mapped_memory.h"
#include "agent/scan/scan_kernel.h"

namespace memopt::agent {

constinit std::uint64_t suspect_functions[kSuspectBits / 64] = {};

namespace {

// Tables of addresses are no larger, as a rule.
constexpr std::uint64_t kSmall = std::uint64_t{64} << 10;
// Functions and blocks that are told apart; behind so many all is looked at anew.
constexpr std::size_t kMostCounted = std::size_t{1} << 16;

constexpr unsigned kThreads = 256;
constexpr std::uint64_t kWordsPerThread = 16;
constexpr std::uint64_t kMostBlocks = 1024;  // of threads, for a range

constexpr std::size_t kSlotsBytes = AddressScan::kScans * sizeof(ScanSlot);

// Made once, whatever the context: by the one thread that makes the kernel, and under the arena's lock.
constinit Scan* g_scans = nullptr;
constinit ScanSlot* g_slots = nullptr;
constinit std::size_t g_bytes = 0;  // of these and the pages

// splitmix64's finalizer (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t word) noexcept {
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  return word ^ word >> 31;
}

std::uint64_t key_of(std::uint32_t function, std::uint64_t base, std::uint64_t bytes) noexcept {
  return std::max(mixed(mixed(mixed(function) ^ base) ^ bytes), std::uint64_t{1});
}

}  // namespace

bool AddressScan::make(const Driver& driver, std::uint64_t range_bytes, ScanKernel* kernel, std::string* why) noexcept {
  const char* what = "load the kernel that looks for addresses";
  CUmodule module = nullptr;
  CUresult result = driver.module_load(&module, kScanKernel);
  if (result == CUDA_SUCCESS) {
    what = "find the kernel that looks for addresses";
    result = driver.module_function(&kernel->function, module, kScanKernelName);
  }
  if (result == CUDA_SUCCESS) {
    what = "map host memory for addresses that are found";
    // The same in each context, where it is large enough: a thread may be about to write to it.
    const auto bytes = kSlotsBytes + static_cast<std::size_t>(range_bytes >> kScanPageShift) + 1;
    if (g_slots == nullptr || g_bytes < bytes) {
      g_slots = static_cast<ScanSlot*>(map_pages(bytes));
      g_bytes = bytes;
      // A child's copy would part the process from what the device writes to.
      if (g_slots != nullptr) madvise(g_slots, bytes, MADV_DONTFORK);
    }
    kernel->slots = g_slots;
    result = g_slots == nullptr
                 ? CUDA_ERROR_OUT_OF_MEMORY
                 : driver.host_register(g_slots, g_bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result == CUDA_SUCCESS) result = driver.host_device_pointer(&kernel->slots_on_device, g_slots, 0);
  }
  if (result == CUDA_SUCCESS) return true;
  kernel->function = nullptr;
  try {
    *why = fmt::format("the driver does not {} (error {})", what, static_cast<int>(result));
  } catch (const std::bad_alloc&) {
  }
  return false;
}

bool AddressScan::use(const ScanKernel& kernel, std::uint64_t range_begin) noexcept {
  if (g_scans == nullptr) {
    auto* const memory = static_cast<Scan*>(map_pages(kScans * sizeof(Scan)));
    if (memory == nullptr) return false;
    for (std::size_t i = 0; i < kScans; ++i) new (memory + i) Scan();
    g_scans = memory;
  }
  scans_ = g_scans;
  kernel_ = kernel;
  range_begin_ = range_begin;
  for (std::size_t i = 0; i < kScans; ++i) {
    scans_[i].slot = kernel.slots + i;
    scans_[i].slot_on_device = kernel.slots_on_device + i * sizeof(ScanSlot);
  }
  return true;
}

void AddressScan::stop() noexcept {
  kernel_ = {};
  for (std::size_t i = 0; scans_ != nullptr && i < kScans; ++i) {
    // One that another thread fills in is freed when it is read.
    if (__atomic_load_n(&scans_[i].state, __ATOMIC_ACQUIRE) != Scan::State::kFilling) end(scans_[i]);
  }
}

void AddressScan::end(const Driver& driver) noexcept {
  // Refused where the context is gone already: it is registered no more then.
  if (kernel_.slots != nullptr) driver.host_unregister(kernel_.slots);
  stop();
  times_.release();
  counted_ = 0;
}

void AddressScan::forget_after_fork() noexcept {
  g_scans = nullptr;
  g_slots = nullptr;
}

std::uint64_t AddressScan::count(std::uint64_t key) noexcept {
  if (Times* const known = times_.find(key)) return ++known->times;
  if (counted_ >= kMostCounted) {
    times_.release();
    counted_ = 0;
  }
  if (!times_.reserve_one()) return 1;
  times_.insert({key, 1});
  ++counted_;
  return 1;
}

bool AddressScan::is_due(std::uint32_t function, std::uint64_t base, std::uint64_t bytes) noexcept {
  if (bytes < sizeof(std::uint64_t)) return false;
  const bool suspect = is_suspect(function);
  const bool small = bytes <= kSmall;
  if (suspect && small) return true;
  return std::has_single_bit(count(key_of(function, suspect || small ? base : 0, bytes)));
}

void AddressScan::found_behind(std::uint32_t function) noexcept {
  const std::uint32_t bit = function % kSuspectBits;
  __atomic_fetch_or(&suspect_functions[bit / 64], std::uint64_t{1} << (bit % 64), __ATOMIC_RELAXED);
}

Scan* AddressScan::begin(std::uint32_t function, StreamName stream, StreamUse use, std::uint64_t range_end) noexcept {
  if (!is_ready()) return nullptr;
  for (std::size_t i = 0; i < kScans; ++i) {
    Scan& scan = scans_[i];
    if (__atomic_load_n(&scan.state, __ATOMIC_ACQUIRE) != Scan::State::kFree) continue;
    scan.state = Scan::State::kFilling;
    scan.serial = std::max(++serial_, std::uint32_t{1});
    scan.function = function;
    scan.ranges = 0;
    scan.named = 0;
    scan.most_words = 0;
    scan.kernel = kernel_.function;
    scan.pages = kernel_.slots_on_device + kSlotsBytes;
    scan.range_begin = range_begin_;
    scan.range_bytes = range_end - range_begin_;
    scan.stream = stream;
    scan.use = use;
    scan.slot->found = 0;
    scan.slot->serial = 0;
    return &scan;
  }
  return nullptr;
}

bool AddressScan::add(Scan& scan, std::uint64_t base, std::uint64_t bytes) noexcept {
  if (scan.ranges == ScanSlot::kMostRanges) return false;
  const std::uint64_t words = bytes / sizeof(std::uint64_t);
  scan.slot->ranges[scan.ranges++] = {base, words};
  scan.most_words = std::max(scan.most_words, words);
  return true;
}

void AddressScan::name(Scan& scan, const NamedBlock& block) noexcept {
  if (scan.named < ScanSlot::kMostRanges) scan.blocks[scan.named++] = block;
}

CUresult AddressScan::queue(const Driver& driver, Scan& scan) noexcept {
  void* parameters[] = {&scan.slot_on_device, &scan.pages, &scan.range_begin, &scan.range_bytes, &scan.serial};
  const std::uint64_t blocks = scan.most_words / (kThreads * kWordsPerThread) + 1;
  const CUstream stream = is_own_default(scan.stream) ? CU_STREAM_PER_THREAD : scan.stream.handle;
  return driver.launch_kernel(scan.kernel, static_cast<unsigned>(std::min(blocks, kMostBlocks)), scan.ranges, 1,
                              kThreads, 1, 1, 0, stream, parameters, nullptr);
}

bool AddressScan::is_marked(std::uint64_t base, std::uint64_t bytes) const noexcept {
  const auto* const pages = reinterpret_cast<const volatile std::uint8_t*>(kernel_.slots) + kSlotsBytes;
  const std::uint64_t first = (base - range_begin_) >> kScanPageShift;
  const std::uint64_t last = (base + bytes - range_begin_) >> kScanPageShift;
  for (std::uint64_t page = first; page <= last; ++page) {
    if (pages[page] != 0) return true;
  }
  return false;
}

void AddressScan::end(Scan& scan) noexcept { __atomic_store_n(&scan.state, Scan::State::kFree, __ATOMIC_RELEASE); }

}  // namespace memopt::agent
