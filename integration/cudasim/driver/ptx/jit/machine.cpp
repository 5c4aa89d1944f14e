#include "ptx/jit/machine.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <utility>

namespace cudasim::ptx::jit {
namespace {

// Variables to values, then what pays for code of this kind; not the vectorizers, as everything is a vector.
constexpr const char* kPasses =
    "function(mem2reg,instcombine,simplifycfg,early-cse,gvn,loop-mssa(licm),instcombine,simplifycfg,dce)";

std::string text_of_error(LLVMErrorRef error) {
  char* const text = LLVMGetErrorMessage(error);
  std::string result = text;
  LLVMDisposeErrorMessage(text);
  return result;
}

std::string taken(char* message) {
  std::string result = message == nullptr ? "" : message;
  LLVMDisposeMessage(message);
  return result;
}

}  // namespace

Machine* Machine::get(std::string& problem) {
  // Never destroyed: kernels may run while the process ends.
  static std::string* const why = new std::string;
  static Machine* const machine = new Machine(*why);
  problem = *why;
  return why->empty() ? machine : nullptr;
}

Machine::Machine(std::string& problem) {
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  triple_ = taken(LLVMGetDefaultTargetTriple());
  const std::string cpu = taken(LLVMGetHostCPUName()), features = taken(LLVMGetHostCPUFeatures());
  identity_ = std::string(CUDASIM_LLVM_VERSION) + " " + cpu + " " + features;
  has_gather_ = features.find("+avx512f") != std::string::npos && features.find("+avx512dq") != std::string::npos;
  LLVMTargetRef target = nullptr;
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(triple_.c_str(), &target, &message) != 0) {
    problem = taken(message);
    return;
  }
  // Absolute addresses of 64 bits: the linker puts code and its constants where it finds room, not always within the
  // 2 GiB that a short address spans.
  target_ = LLVMCreateTargetMachine(target, triple_.c_str(), cpu.c_str(), features.c_str(), LLVMCodeGenLevelDefault,
                                    LLVMRelocStatic, LLVMCodeModelLarge);
  if (const LLVMErrorRef error = LLVMOrcCreateLLJIT(&linker_, nullptr)) problem = text_of_error(error);
}

std::string Machine::compile(LLVMModuleRef module, std::string& problem) {
  LLVMSetTarget(module, triple_.c_str());
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(target_);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  char* message = nullptr;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message) != 0) {
    problem = taken(message);
    return {};
  }
  LLVMDisposeMessage(message);
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(module, kPasses, target_, options);
  LLVMDisposePassBuilderOptions(options);
  if (error != nullptr) {
    problem = text_of_error(error);
    return {};
  }
  LLVMMemoryBufferRef buffer = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(target_, module, LLVMObjectFile, &message, &buffer) != 0) {
    problem = taken(message);
    return {};
  }
  std::string object(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return object;
}

void* Machine::load(const std::string& object, const char* name, std::string& problem) {
  const LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(linker_);
  LLVMErrorRef error = nullptr;
  if (!std::exchange(sees_process_, true)) {
    // The C library's functions, which LLVM calls where the CPU lacks an instruction.
    LLVMOrcDefinitionGeneratorRef process = nullptr;
    error = LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&process, LLVMOrcLLJITGetGlobalPrefix(linker_),
                                                                 nullptr, nullptr);
    if (error == nullptr) LLVMOrcJITDylibAddGenerator(library, process);
  }
  if (error == nullptr) {
    error = LLVMOrcLLJITAddObjectFile(
        linker_, library, LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "kernel"));
  }
  LLVMOrcExecutorAddress address = 0;
  if (error == nullptr) error = LLVMOrcLLJITLookup(linker_, &address, name);
  if (error != nullptr) {
    problem = text_of_error(error);
    return nullptr;
  }
  return reinterpret_cast<void*>(address);
}

}  // namespace cudasim::ptx::jit
