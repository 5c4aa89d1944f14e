// LLVM's compiler for this CPU, and its linker for code in memory.
#pragma once
#include <llvm-c/LLJIT.h>
#include <llvm-c/TargetMachine.h>

#include <string>

namespace cudasim::ptx::jit {

class Machine {
 public:
  // The only one; null, and why in `problem`, where LLVM does not know this CPU.
  static Machine* get(std::string& problem);

  // Machine code of a module, optimised: an object file. Empty, and why, on failure.
  std::string compile(LLVMModuleRef module, std::string& problem);
  // The address of `name`, which no other object has, in an object file, which stays for the life of the process. Null,
  // and why, on failure.
  void* load(const std::string& object, const char* name, std::string& problem);

  const std::string& identity() const { return identity_; }  // LLVM, CPU and its features
  bool has_gather() const { return has_gather_; }            // and scatter, in hardware

 private:
  explicit Machine(std::string& problem);

  LLVMTargetMachineRef target_ = nullptr;
  LLVMOrcLLJITRef linker_ = nullptr;
  std::string identity_, triple_;
  bool has_gather_ = false;
  bool sees_process_ = false;
};

}  // namespace cudasim::ptx::jit
