#include "module/launch.h"

#include <cxxabi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device_attributes.h"
#include "driver.h"
#include "memory/fault_guard.h"
#include "module/function_attributes.h"
#include "module/illegal_address.h"
#include "module/next_launch.h"
#include "module/ptx_kernels.h"

namespace cudasim {
namespace {

constexpr std::uint32_t kMaxPieces = 4;
constexpr std::size_t kMaxParameterBytes = 32764;

// A launch of a host kernel, queued: it outlives the module that named it, and owns its parameters.
struct QueuedLaunch {
  std::string name;
  const HostKernel* host;
  const Memory* memory;
  CudasimLaunch dimensions;
  std::vector<std::byte> buffer;
  std::vector<const void*> parameters;  // into buffer
  std::uint64_t blocks;
  std::uint32_t pieces;
  LaunchEffectPtr effect;  // only its preparation; may be null

  CUresult run(std::uint32_t piece, const AccessLog& log) const;
};

std::uint64_t blocks_of(const LaunchRequest& r) {
  return std::uint64_t{r.grid[0]} * r.grid[1] * r.grid[2];  // below 2^63
}

std::uint32_t pieces_of(std::uint64_t blocks) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, kMaxPieces));
}

std::uint64_t first_block(std::uint64_t blocks, std::uint32_t pieces, std::uint64_t piece) {
  return blocks / pieces * piece + blocks % pieces * piece / pieces;
}

std::string triple(const std::uint32_t (&n)[3]) {
  if (n[1] == 1 && n[2] == 1) return std::to_string(n[0]);
  return "(" + std::to_string(n[0]) + "," + std::to_string(n[1]) + "," + std::to_string(n[2]) + ")";
}

CudasimLaunch dimensions_of(const LaunchRequest& r) {
  return {{r.grid[0], r.grid[1], r.grid[2]}, {r.block[0], r.block[1], r.block[2]}, r.dynamic_shared_bytes};
}

std::string shown(const LoadedFunction& function, const CudasimLaunch& d) {
  return "kernel " + function.readable_name + "<<<" + triple(d.grid) + "," + triple(d.block) + ">>>";
}

bool fits(const DeviceModel& device, CUdevice_attribute attribute, unsigned value) {
  const auto limit = device_attribute(device, attribute);
  return value != 0 && (!limit || value <= static_cast<unsigned>(*limit));
}

CUresult check_dimensions(const DeviceModel& device, const LoadedFunction& function, const LaunchRequest& r) {
  const bool fit = fits(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, r.grid[0]) &&
                   fits(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, r.grid[1]) &&
                   fits(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, r.grid[2]) &&
                   fits(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, r.block[0]) &&
                   fits(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, r.block[1]) &&
                   fits(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, r.block[2]);
  if (!fit) return CUDA_ERROR_INVALID_VALUE;
  const unsigned threads = r.block[0] * r.block[1] * r.block[2];  // at most 2^26
  if (!fits(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, threads) || threads > function.image->max_threads)
    return CUDA_ERROR_INVALID_VALUE;
  if (r.dynamic_shared_bytes > static_cast<unsigned>(function.settings.max_dynamic_shared_bytes))
    return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t shared = std::uint64_t{function.image->static_shared_bytes} + r.dynamic_shared_bytes;
  const auto most =
      std::max(device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN).value_or(0),
               device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK).value_or(0));
  if (most != 0 && shared > static_cast<std::uint64_t>(most)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

// The packed buffer of `extra`; null when the list is not as it should be.
const std::byte* packed_buffer(void* const* extra, std::size_t needed) {
  const std::byte* buffer = nullptr;
  const std::size_t* size = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<const std::byte*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const std::size_t*>(extra[1]);
    } else {
      return nullptr;
    }
  }
  if (size == nullptr || *size < needed || *size > kMaxParameterBytes) return nullptr;
  return buffer;
}

CUresult copy_parameters(const KernelImage& kernel, const LaunchRequest& r, std::vector<std::byte>& buffer) {
  if (r.parameters != nullptr && r.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  buffer.resize(kernel.parameter_bytes());
  if (buffer.empty()) return CUDA_SUCCESS;
  if (r.extra != nullptr) {
    const std::byte* const packed = packed_buffer(r.extra, buffer.size());
    if (packed == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(buffer.data(), packed, buffer.size());
    return CUDA_SUCCESS;
  }
  if (r.parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (r.parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(buffer.data() + kernel.parameters[i].offset, r.parameters[i], kernel.parameters[i].size);
  }
  return CUDA_SUCCESS;
}

std::string sizes_text(const std::vector<std::uint32_t>& sizes) {
  std::string text;
  for (const std::uint32_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return text.empty() ? "none" : text;
}

// A plug-in made from another version of the source would read the wrong bytes.
bool same_parameters(const KernelImage& image, const HostKernel& host) {
  const std::vector<std::uint32_t> plugin(host.kernel->parameter_sizes,
                                          host.kernel->parameter_sizes + host.kernel->parameter_count);
  std::vector<std::uint32_t> module;
  for (const KernelParameter& parameter : image.parameters) module.push_back(parameter.size);
  if (plugin == module) return true;
  std::fprintf(
      stderr,
      "cudasim: kernel %s: its parameters have sizes %s in the program and %s in plug-in %s: build the plug-in again\n",
      image.name.c_str(), sizes_text(module).c_str(), sizes_text(plugin).c_str(), host.path.c_str());
  return false;
}

void resolve(Driver& driver, Modules::Impl& modules, LoadedFunction& function) {
  function.host = modules.plugins.find(function.image->name);
  function.readable_name = readable_name(function.image->name);
  function.resolved = true;
  if (function.host != nullptr && !function.host->shadowed.empty()) {
    std::fprintf(stderr, "cudasim: kernel %s is in %s and in %s: the first is run\n", function.image->name.c_str(),
                 function.host->path.c_str(), function.host->shadowed.c_str());
    function.host->shadowed.clear();
  }
  if (function.host == nullptr) resolve_ptx(driver, function);
}

void count_unknown(Driver& driver, const LoadedFunction& function) {
  const std::string& name = function.image->name;
  ++driver.counters.totals.unknown_kernels;
  if (++driver.counters.unknown_kernels[name] > 1) return;
  const std::string why =
      function.ptx_problem.empty() ? "" : " and its PTX can't be run (" + function.ptx_problem + ")";
  std::fprintf(stderr, "cudasim: no plug-in has kernel %s%s: its launches take %lld ns and change no bytes\n",
               name.c_str(), why.c_str(), static_cast<long long>(driver.config.device.unknown_kernel.count()));
}

Duration modelled(const DeviceModel& device, const CudasimCost& cost) {
  static constexpr double kLongest = 1e15;  // eleven days
  const auto whole = [](double ns) {
    return Duration(std::llround(std::isnan(ns) ? 0 : std::clamp(ns, 0.0, kLongest)));
  };
  if (cost.nanoseconds > 0) return whole(cost.nanoseconds);
  return whole(std::max(cost.flops / device.flops_per_ns, cost.bytes / device.memory_bytes_per_ns)) +
         device.kernel_latency;
}

CUresult QueuedLaunch::run(std::uint32_t piece, const AccessLog& log) const {
  const auto fault = FaultGuard::run([&] {
    if (piece == 0 && effect != nullptr && effect->given.prepare != nullptr)
      effect->given.prepare(effect->given.argument);
    host->kernel->run(parameters.data(), &dimensions, first_block(blocks, pieces, piece),
                      first_block(blocks, pieces, piece + 1));
  });
  if (host->plugin->flush != nullptr) host->plugin->flush();
  if (fault) return illegal_address(name, "touches", *fault);
  if (host->plugin->instrumented == 0) return CUDA_SUCCESS;
  if (const auto at = outside_of_memory(*memory, log.writes())) return illegal_address(name, "writes", *at);
  if (const auto at = outside_of_memory(*memory, log.reads())) return illegal_address(name, "reads", *at);
  return CUDA_SUCCESS;
}

// One of the two pieces of an effect: reads, then writes.
CUresult run_effect(const std::string& name, const LaunchEffect& effect, const Memory& memory, std::uint32_t piece,
                    AccessLog& log) {
  const CudasimEffect& given = effect.given;
  for (const CudasimTouched& touched : effect.touched) {
    if (piece == 0 && touched.reads != 0) log.read(touched.address, touched.size);
    if (piece == 1 && touched.writes != 0) log.write(touched.address, touched.size);
  }
  if (const auto at = outside_of_memory(memory, piece == 0 ? log.reads() : log.writes()))
    return illegal_address(name, piece == 0 ? "reads" : "writes", *at);
  const auto fault = FaultGuard::run([&] {
    if (const auto run = piece == 0 ? given.read : given.write; run != nullptr) run(given.argument);
  });
  return fault ? illegal_address(name, "touches", *fault) : CUDA_SUCCESS;
}

// What runs; nothing for an unknown kernel without an effect.
CUresult make_work(Driver& driver, LoadedFunction& function, const LaunchRequest& request, LaunchEffectPtr effect,
                   Work& work) {
  const CudasimLaunch dimensions = dimensions_of(request);
  std::vector<std::byte> buffer;
  if (const CUresult result = copy_parameters(*function.image, request, buffer); result != CUDA_SUCCESS) return result;
  work.name = shown(function, dimensions);
  work.resource = Resource::kCompute;
  if (function.host == nullptr && effect != nullptr) {
    work.duration = modelled(driver.config.device, effect->given.cost);
    work.pieces = 2;
    work.run = [effect = std::move(effect), name = work.name, memory = &driver.memory](
                   std::uint32_t piece, AccessLog& log) { return run_effect(name, *effect, *memory, piece, log); };
    return CUDA_SUCCESS;
  }
  if (function.host == nullptr && function.executable != nullptr) {
    const auto ptx = std::make_shared<PtxLaunch>(driver, function, work.name, dimensions, buffer, request.cooperative);
    const std::uint64_t blocks = blocks_of(request);
    const std::uint32_t pieces = request.cooperative ? 1 : pieces_of(blocks);
    work.duration = modelled(driver.config.device, ptx->cost());
    work.pieces = pieces;
    work.run = [ptx, blocks, pieces](std::uint32_t piece, AccessLog& log) {
      return ptx->run(first_block(blocks, pieces, piece), first_block(blocks, pieces, piece + 1), log);
    };
    return CUDA_SUCCESS;
  }
  if (function.host == nullptr) {
    work.duration = driver.config.device.unknown_kernel;
    work.run = [](std::uint32_t, AccessLog&) { return CUDA_SUCCESS; };
    return CUDA_SUCCESS;
  }
  if (!same_parameters(*function.image, *function.host)) return CUDA_ERROR_INVALID_IMAGE;
  const auto queued = std::make_shared<QueuedLaunch>();
  queued->name = work.name;
  queued->host = function.host;
  queued->effect = std::move(effect);
  queued->memory = &driver.memory;
  queued->dimensions = dimensions;
  queued->buffer = std::move(buffer);
  for (const KernelParameter& parameter : function.image->parameters)
    queued->parameters.push_back(queued->buffer.data() + parameter.offset);
  queued->blocks = blocks_of(request);
  queued->pieces = pieces_of(queued->blocks);
  work.duration = modelled(driver.config.device, function.host->kernel->cost(queued->parameters.data(), &dimensions));
  work.pieces = queued->pieces;
  work.run = [queued](std::uint32_t piece, AccessLog& log) { return queued->run(piece, log); };
  return CUDA_SUCCESS;
}

}  // namespace

std::string readable_name(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || demangled == nullptr || mangled.rfind("_Z", 0) != 0) return mangled;
  std::string name = demangled.get();
  // The parameters are the last parenthesis at depth 0; templates' return types come before the first blank outside of
  // brackets.
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '(' && depth == 0 && i != begin && name.compare(i, 11, "(anonymous ") != 0) {
      name.resize(i);
      break;
    }
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
    if (c == ' ' && depth == 0) begin = i + 1;
  }
  return name.substr(begin);
}

CUresult check_launch(Driver& driver, ContextId context, const LaunchRequest& request, std::vector<std::byte>& buffer,
                      std::vector<std::size_t>& offsets) {
  LoadedFunction* function = nullptr;
  if (const CUresult result = driver.modules.impl().function_of(request.function, context, &function);
      result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = check_dimensions(driver.config.device, *function, request); result != CUDA_SUCCESS)
    return result;
  for (const KernelParameter& parameter : function->image->parameters) offsets.push_back(parameter.offset);
  return copy_parameters(*function->image, request, buffer);
}

CUresult launch(Driver& driver, ContextId context, const LaunchRequest& request) {
  Modules::Impl& modules = driver.modules.impl();
  Stream* const stream = driver.engine.find_stream(context, request.stream, request.mode);
  if (request.function == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LoadedFunction* function = nullptr;
  if (const CUresult result = modules.function_of(request.function, driver.engine.context_of(*stream), &function);
      result != CUDA_SUCCESS)
    return result;
  if (function->module->context != driver.engine.context_of(*stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = check_dimensions(driver.config.device, *function, request); result != CUDA_SUCCESS)
    return result;
  if (request.cooperative) {
    const int threads = static_cast<int>(request.block[0] * request.block[1] * request.block[2]);
    const int together = active_blocks(driver.config.device, *function->image, threads, request.dynamic_shared_bytes) *
                         driver.config.device.multiprocessors;
    if (blocks_of(request) > static_cast<std::uint64_t>(together)) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  if (!function->resolved) resolve(driver, modules, *function);
  Work work;
  LaunchEffectPtr effect = take_next_launch_effect(request.function);
  const bool unknown = function->host == nullptr && function->executable == nullptr && effect == nullptr;
  if (const CUresult result = make_work(driver, *function, request, std::move(effect), work); result != CUDA_SUCCESS)
    return result;
  if (const auto given = take_next_launch_duration()) work.duration = *given;
  note_launch_duration(work.duration);
  if (unknown) count_unknown(driver, *function);
  ++driver.counters.totals.launches;
  driver.engine.enqueue(*stream, std::move(work));
  return CUDA_SUCCESS;
}

}  // namespace cudasim
