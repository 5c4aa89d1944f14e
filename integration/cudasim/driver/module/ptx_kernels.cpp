#include "module/ptx_kernels.h"

#include <cstdio>
#include <cstring>

#include "access_log.h"
#include "driver.h"
#include "memory/fault_guard.h"
#include "module/illegal_address.h"
#include "ptx/front/program.h"
#include "ptx/loader/compiler.h"

namespace cudasim {
namespace {

// A warp that is sampled stops here: kernels that wait for what zeros never bring.
constexpr std::uint64_t kMostSampled = 1 << 16;

// Bytes of kernels' accesses, into the log of the piece that runs. What is neither device nor pinned memory (the
// device's heap, parameters) is the kernel's alone.
void on_touched(void* context, std::uint64_t address, std::uint32_t bytes, ptx::Access access) {
  AccessLog* const log = current_access_log();
  if (log == nullptr || !static_cast<const Memory*>(context)->is_tracked(reinterpret_cast<const void*>(address)))
    return;
  if (access != ptx::Access::kWrite) log->read(address, bytes);
  if (access != ptx::Access::kRead) log->write(address, bytes);
}

// Its memory; zero where the device has none left.
std::uint64_t address_of(Driver& driver, LoadedModule& module, const ptx::Variable& variable) {
  const auto found = module.globals.find(variable.name);
  if (found != module.globals.end()) return found->second.address;
  if (variable.external || variable.size == 0) return 0;
  LoadedGlobal loaded{0, variable.size};
  if (driver.memory.allocate(module.context, variable.size, &loaded.address) != CUDA_SUCCESS) return 0;
  set_initial_bytes(loaded, variable.initial);
  module.globals.emplace(variable.name, loaded);
  return loaded.address;
}

}  // namespace

void apply_relocations(Driver& driver, LoadedModule& module, const ptx::Program& program) {
  if (module.relocated) return;
  module.relocated = true;
  const auto address = [&](const std::string& symbol) -> std::uint64_t {
    for (const std::uint32_t index : program.module_variables) {
      if (program.variables[index].name == symbol) return address_of(driver, module, program.variables[index]);
    }
    for (std::size_t f = 0; f < program.functions.size(); ++f) {
      if (program.functions[f].name == symbol) return ptx::kFunctionTag | f;
    }
    return 0;
  };
  for (const std::uint32_t index : program.module_variables) {
    const ptx::Variable& v = program.variables[index];
    if (v.relocations.empty() || v.external) continue;
    const std::uint64_t base = address_of(driver, module, v);
    for (const ptx::Relocation& r : v.relocations) {
      if (base == 0 || r.bytes > 8 || r.offset + r.bytes > v.size) continue;
      std::uint64_t value = address(r.symbol) + static_cast<std::uint64_t>(r.addend);
      if (r.mask != 0) value = (value & r.mask) >> r.shift;
      FaultGuard::run([&] {
        // What the program has written there since the module was loaded stays.
        std::uint64_t present = 0;
        std::memcpy(&present, reinterpret_cast<const void*>(base + r.offset), r.bytes);
        if (present == 0) std::memcpy(reinterpret_cast<void*>(base + r.offset), &value, r.bytes);
      });
    }
  }
}

void resolve_ptx(Driver& driver, LoadedFunction& function) {
  if (!driver.config.ptx) return;
  LoadedModule& module = *function.module;
  std::shared_ptr<const ptx::Program> program = module.image->program;
  if (program == nullptr && module.image->later_program != nullptr) {
    try {
      program = module.image->later_program();
    } catch (const ImageError& problem) {
      function.ptx_problem = problem.what();
    }
  }
  if (program == nullptr) return;
  const ptx::Function* const kernel = program->kernel(function.image->name);
  if (kernel == nullptr) {
    function.ptx_problem = "the module's PTX does not have it";
    return;
  }
  if (kernel->parameter_bytes != function.image->parameter_bytes()) {
    function.ptx_problem = "its PTX has other parameters than its machine code";
    return;
  }
  apply_relocations(driver, module, *program);
  function.executable = ptx::Executable::make(
      program, *kernel, [&](const ptx::Variable& v) { return address_of(driver, module, v); }, function.ptx_problem);
  if (function.executable == nullptr || !driver.config.native_ptx || driver.config.instrument) return;
  const ptx::Compiled compiled = ptx::compile(*function.executable, driver.config.ptx_cache);
  const std::string& interpreted = compiled.problem.empty() ? compiled.interpreted : compiled.problem;
  if (!interpreted.empty()) driver.counters.interpreted_ptx[function.image->name] = interpreted;
}

PtxLaunch::PtxLaunch(Driver& driver, const LoadedFunction& function, std::string name, const CudasimLaunch& d,
                     std::span<const std::byte> parameters, bool cooperative)
    : memory_(driver.memory),
      name_(std::move(name)),
      instrumented_(driver.config.instrument),
      blocks_(std::uint64_t{d.grid[0]} * d.grid[1] * d.grid[2]),
      warps_((std::uint64_t{d.block[0]} * d.block[1] * d.block[2] + ptx::kLanes - 1) / ptx::kLanes),
      launch_(function.executable,
              ptx::Shape{{d.grid[0], d.grid[1], d.grid[2]},
                         {d.block[0], d.block[1], d.block[2]},
                         d.dynamic_shared_bytes,
                         cooperative},
              parameters, instrumented_ ? ptx::Observer{on_touched, const_cast<Memory*>(&memory_)} : ptx::Observer{}) {}

CudasimCost PtxLaunch::cost() {
  ptx::Counts counts;
  FaultGuard::run([&] { counts = launch_.sample(blocks_ / 2, kMostSampled); });
  const auto warps = static_cast<double>(blocks_) * static_cast<double>(warps_);
  // A device's peak counts a multiply-add as two.
  return {2.0 * static_cast<double>(counts.operations) * warps, static_cast<double>(counts.global_bytes) * warps, 0};
}

CUresult PtxLaunch::run(std::uint64_t first_block, std::uint64_t last_block, const AccessLog& log) {
  ptx::Outcome outcome;
  const auto fault = FaultGuard::run([&] { outcome = launch_.run(first_block, last_block); });
  if (fault) return illegal_address(name_, "touches", *fault);
  if (outcome.stop == ptx::Stop::kDone) {
    if (!instrumented_) return CUDA_SUCCESS;
    if (const auto at = outside_of_memory(memory_, log.writes())) return illegal_address(name_, "writes", *at);
    if (const auto at = outside_of_memory(memory_, log.reads())) return illegal_address(name_, "reads", *at);
    return CUDA_SUCCESS;
  }
  if (outcome.stop == ptx::Stop::kAssert) {
    std::fprintf(stderr, "%s\n", outcome.text.c_str());
    return CUDA_ERROR_ASSERT;
  }
  const struct {
    ptx::Stop stop;
    CUresult error;
    const char* text;
  } kStops[] = {{ptx::Stop::kTrap, CUDA_ERROR_LAUNCH_FAILED, "trap"},
                {ptx::Stop::kMisaligned, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"},
                {ptx::Stop::kAddress, CUDA_ERROR_ILLEGAL_ADDRESS, "illegal address"},
                {ptx::Stop::kInstruction, CUDA_ERROR_INVALID_PC, "invalid program counter"},
                {ptx::Stop::kDeadlock, CUDA_ERROR_LAUNCH_TIMEOUT, "no thread can go on"}};
  for (const auto& row : kStops) {
    if (row.stop != outcome.stop) continue;
    std::fprintf(stderr, "cudasim: %s: %s 0x%llx: %s\n", name_.c_str(), row.text,
                 static_cast<unsigned long long>(outcome.address), outcome.text.c_str());
    return row.error;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace cudasim
