// The parts of Memory; for memory/*.cpp and the api files of memory.
#pragma once
#include "memory/device_blocks.h"
#include "memory/device_space.h"
#include "memory/host_memory.h"
#include "memory/memory.h"
#include "memory/virtual_memory.h"

namespace cudasim {

struct Memory::Impl {
  Impl(const Config& config, Counters& counters) : space(config, counters), blocks(space), vmm(space) {}

  DeviceSpace space;
  DeviceBlocks blocks;
  VirtualMemory vmm;
  HostMemory host;
};

}  // namespace cudasim
