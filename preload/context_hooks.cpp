// A context takes its memory with it: no free is seen for it. Which blocks those are, the driver says, while the
// context is still there.
#include <array>
#include <atomic>
#include <new>
#include <vector>

#include "agent/agent.h"
#include "agent/memory/arena.h"
#include "agent/operations/launch_parameters.h"
#include "agent/order/current_context.h"
#include "agent/process/uncancellable.h"
#include "preload/relief.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

struct Block {
  CUdeviceptr address;
  shm::Bytes size;
};

constexpr std::size_t kMaxDevices = 128;
// Primary contexts as the program was given them; a device keeps its own for the life of the process.
constinit std::array<std::atomic<CUcontext>, kMaxDevices> g_primary{};

CUcontext primary_context(CUdevice device) noexcept {
  return device >= 0 && static_cast<std::size_t>(device) < kMaxDevices
             ? g_primary[static_cast<std::size_t>(device)].load()
             : nullptr;
}

// Stream-ordered allocations belong to a pool of the device, not to a context: for them the driver names none.
std::vector<Block> blocks_of(CUcontext context) noexcept {
  std::vector<Block> found;
  if (context == nullptr) return found;
  const auto get_attribute = real<Hook::cuPointerGetAttribute>();
  try {
    agent::blocks().for_each([&](CUdeviceptr address, shm::Bytes size) {
      CUcontext owner = nullptr;
      if (get_attribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address) == CUDA_SUCCESS && owner == context) {
        found.push_back({address, size});
      }
    });
  } catch (const std::bad_alloc&) {
    agent::log(agent::LogLevel::kWarn, "out of memory: blocks of a destroyed context stay in the count");
  }
  return found;
}

void drop(const std::vector<Block>& blocks) noexcept {
  shm::Bytes size;
  for (const Block& block : blocks) agent::blocks().erase(block.address, &size);
}

// Its functions are gone too: the driver may give others the same handles.
void note_gone(CUcontext context) noexcept {
  agent::functions_were_unloaded();
  agent::note_context_destroyed(context);
}

template <typename Destroy>
CUresult destroy_with_blocks(CUcontext context, Destroy&& destroy) noexcept {
  const agent::Uncancellable scope;
  const std::vector<Block> blocks = blocks_of(context);
  drop(blocks);
  const CUresult result = destroy();
  if (result != CUDA_SUCCESS) {
    for (const Block& block : blocks) agent::blocks().insert(block.address, block.size);
  } else {
    note_gone(context);
  }
  return result;
}

// The last release takes the context's memory; whether it was the last, the driver says afterwards.
template <typename Release>
CUresult release_primary(CUdevice device, Release&& release) noexcept {
  const agent::Uncancellable scope;
  const CUcontext context = primary_context(device);
  const std::vector<Block> blocks = blocks_of(context);
  const CUresult result = release();
  if (result != CUDA_SUCCESS) return result;
  unsigned int flags = 0;
  int active = 1;
  if (real<Hook::cuDevicePrimaryCtxGetState>()(device, &flags, &active) == CUDA_SUCCESS && active == 0) {
    drop(blocks);
    note_gone(context);
  }
  return result;
}

// The context is destroyed when the last one attached to it has left; whether it was, the driver says afterwards.
template <typename Detach>
CUresult detach(CUcontext context, Detach&& detach) noexcept {
  const agent::Uncancellable scope;
  const std::vector<Block> blocks = blocks_of(context);
  const CUresult result = detach();
  if (result != CUDA_SUCCESS) return result;
  unsigned int version = 0;
  if (real<Hook::cuCtxGetApiVersion>()(context, &version) != CUDA_SUCCESS) {
    drop(blocks);
    note_gone(context);
  } else {
    agent::note_context_change();
  }
  return result;
}

}  // namespace

CUresult cuCtxDestroy(CUcontext context) noexcept {
  return destroy_with_blocks(context, [&] { return real<Hook::cuCtxDestroy>()(context); });
}

CUresult cuCtxDestroy_v2(CUcontext context) noexcept {
  return destroy_with_blocks(context, [&] { return real<Hook::cuCtxDestroy_v2>()(context); });
}

CUresult cuCtxDetach(CUcontext context) noexcept {
  return detach(context, [&] { return real<Hook::cuCtxDetach>()(context); });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) noexcept {
  const CUresult result = with_relief([&] { return real<Hook::cuDevicePrimaryCtxRetain>()(context, device); });
  if (result == CUDA_SUCCESS && context != nullptr && device >= 0 && static_cast<std::size_t>(device) < kMaxDevices) {
    g_primary[static_cast<std::size_t>(device)].store(*context);
  }
  return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) noexcept {
  return release_primary(device, [&] { return real<Hook::cuDevicePrimaryCtxRelease>()(device); });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) noexcept {
  return release_primary(device, [&] { return real<Hook::cuDevicePrimaryCtxRelease_v2>()(device); });
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) noexcept {
  return destroy_with_blocks(primary_context(device), [&] { return real<Hook::cuDevicePrimaryCtxReset>()(device); });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) noexcept {
  return destroy_with_blocks(primary_context(device), [&] { return real<Hook::cuDevicePrimaryCtxReset_v2>()(device); });
}

}  // namespace memopt::preload::hooks
