// Counts what CUPTI sees of the program that it is loaded into, and writes it down when the program ends. The driver
// loads it where CUDA_INJECTION64_PATH names it, and calls InitializeInjection during cuInit; preloaded, with
// GPU_KIT_CUPTI_AT_START set, it begins by itself. Whatever goes wrong is written down, and the program goes on.
//
//   GPU_KIT_CUPTI=PATH         the library libcupti.so.N
//   GPU_KIT_CUPTI_OUTPUT=FILE  written to FILE.PID: at the beginning, and once more at the end ("complete")
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>

#include "activities.h"
#include "cupti_library.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

struct State {
  std::mutex mutex;  // CUPTI hands buffers over on threads of its own
  gpu_kit::CuptiLibrary cupti;
  gpu_kit::Activities activities;
  std::string output;
  std::string error;
  pid_t pid = 0;
};
State* g_state = nullptr;  // never given back: CUPTI may call until the last moment

void write_down(const State& state, bool complete) {
  nlohmann::json all = state.activities.to_json();
  all["format"] = 1;
  all["program"] = program_invocation_short_name;
  all["cupti"] = state.cupti.version;
  all["complete"] = complete;
  if (!state.error.empty()) all["error"] = state.error;
  const std::string path = state.output + "." + std::to_string(state.pid), beside = path + ".new";
  {
    std::ofstream file(beside, std::ios::binary);
    file << all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    file.close();
    if (!file) return;
  }
  std::rename(beside.c_str(), path.c_str());
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  State& state = *g_state;
  try {
    const std::lock_guard lock(state.mutex);
    if (buffer == nullptr) {
      state.activities.add_failure();
    } else {
      CUpti_Activity* record = nullptr;
      CUptiResult result;
      while ((result = state.cupti.next_record(buffer, valid, &record)) == CUPTI_SUCCESS) state.activities.add(*record);
      if (valid != 0 && result != CUPTI_ERROR_MAX_LIMIT_REACHED) state.activities.add_failure();
    }
    std::size_t dropped = 0;
    if (state.cupti.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) state.activities.add_dropped(dropped);
  } catch (const std::exception&) {  // no memory: CUPTI's thread must go on, and the count is wrong
    const std::lock_guard lock(state.mutex);
    state.activities.add_failure();
  }
  std::free(buffer);
}

void finish() {
  State& state = *g_state;
  if (::getpid() != state.pid) return;  // a forked child has nothing of CUPTI
  try {
    const CUptiResult result = state.cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::lock_guard lock(state.mutex);
    if (result != CUPTI_SUCCESS) state.error = "cuptiActivityFlushAll: " + state.cupti.text(result);
    write_down(state, state.error.empty());
  } catch (const std::exception&) {  // what was written at the beginning says that it is not complete
  }
}

bool begin(State& state) {
  const char* const path = std::getenv("GPU_KIT_CUPTI");
  if (path == nullptr) {
    state.error = "GPU_KIT_CUPTI names no library";
    return false;
  }
  if (!state.cupti.load(path, state.error)) {
    state.error = std::string(path) + ": " + state.error;
    return false;
  }
  CUptiResult result = state.cupti.register_callbacks(give_buffer, take_buffer);
  if (result != CUPTI_SUCCESS) {
    state.error = "cuptiActivityRegisterCallbacks: " + state.cupti.text(result);
    return false;
  }
  constexpr struct {
    CUpti_ActivityKind kind;
    const char* name;
  } kKinds[] = {{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels"},
                {CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
                {CUPTI_ACTIVITY_KIND_MEMCPY2, "copies between devices"},
                {CUPTI_ACTIVITY_KIND_MEMSET, "memsets"}};
  for (const auto& [kind, name] : kKinds) {
    if ((result = state.cupti.enable(kind)) != CUPTI_SUCCESS) {
      state.error = std::string("cuptiActivityEnable, ") + name + ": " + state.cupti.text(result);
      return false;
    }
  }
  return true;
}

void initialise() {
  const char* const output = std::getenv("GPU_KIT_CUPTI_OUTPUT");
  if (output == nullptr || g_state != nullptr) return;
  try {
    g_state = new State;
    g_state->output = output;
    g_state->pid = ::getpid();
    const bool begun = begin(*g_state);
    {
      const std::lock_guard lock(g_state->mutex);
      write_down(*g_state, false);
    }
    if (begun) std::atexit(finish);
  } catch (const std::exception&) {  // nothing is written: that says it
  }
}

__attribute__((constructor)) void at_start() {
  if (std::getenv("GPU_KIT_CUPTI_AT_START") != nullptr) initialise();
}

}  // namespace

// Called by the driver; not 0: the program goes on.
EXPORTED int InitializeInjection() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, initialise);
  return 1;
}

// 1 if the CUPTI at `path` can be used; `text` becomes its version, or why not.
EXPORTED int gpu_kit_probe_cupti(const char* path, char* text, int bytes) {
  gpu_kit::CuptiLibrary cupti;
  std::string said;
  const bool usable = cupti.load(path, said);
  if (usable) said = std::to_string(cupti.version);
  if (bytes > 0) {
    const std::size_t length = std::min(said.size(), static_cast<std::size_t>(bytes) - 1);
    std::memcpy(text, said.data(), length);
    text[length] = '\0';
  }
  return usable ? 1 : 0;
}
