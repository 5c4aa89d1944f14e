// A function's steps to a native function of LLVM's.
//
// Registers are variables of 32 lanes (predicates: masks), which LLVM turns into values. A write keeps the lanes that
// do not take part only where some lane that waits elsewhere may read the register later. Each block has a variable
// with the lanes that wait at it.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ptx/execution/native.h"
#include "ptx/jit/emitter.h"
#include "ptx/jit/flow.h"

namespace cudasim::ptx::jit {

// Values that may be addresses stay out of the code, so that it can be kept for other processes.
inline bool may_be_address(std::uint64_t value) { return value >> 32 != 0 && value >> 32 != 0xffffffff; }

class Translator {
 public:
  Translator(const Executable& executable, const Code& code, const Flow& flow, LLVMModuleRef module, bool has_gather);
  // The function, with external linkage. Throws Untranslated.
  void run(const char* name);
  std::uint32_t most_ways() const { return most_ways_; }
  std::uint32_t interpreted_steps() const { return interpreted_steps_; }
  const std::set<std::string>& interpreted() const { return interpreted_; }

 private:
  // Control flow (translator.cpp).
  void open_function(const char* name);
  void open_entries();
  void run_block(std::uint32_t block);
  void end_block(const FlowBlock& block);
  // To the first of `targets` at which lanes wait.
  void dispatch(std::vector<std::uint32_t> targets);
  void go_to(std::uint32_t target);
  void wait_at(std::uint32_t block, Value mask);
  void leave_at(std::uint32_t block, Value mask, const std::vector<std::uint32_t>& pending);
  void leave();

  // Registers (registers.cpp).
  struct Register {
    Value variable = nullptr;
    unsigned bits = 0;  // 0: a predicate
  };
  void make_registers();
  Value read(Ref ref, unsigned bits);
  Value read_floats(Ref ref, unsigned bits) { return e_.as_floats(read(ref, bits), bits); }
  Value read_mask(Ref ref);
  void write(Ref ref, Value value);  // integers, resized to the register
  void write_floats(Ref ref, Value value, unsigned bits) { write(ref, e_.as_integers(value, bits)); }
  void write_mask(Ref ref, Value value);
  void load_row(std::uint32_t row, Value mask);
  void store_row(std::uint32_t row, Value mask);
  Value field(std::size_t offset, unsigned bits);

  // Steps.
  void run_step(std::uint32_t at);
  void run_guarded(const std::function<void()>& body);
  void interpret(const Step& step);
  void wait_for_lanes(const Step& step);
  // Each returns false for what it does not translate, and has emitted nothing then.
  bool made_step(const Step& step);
  bool integer_step(const Step& step);  // integers.cpp
  bool bit_step(const Step& step);
  bool compare_step(const Step& step);  // comparisons.cpp
  bool move_step(const Step& step);
  bool floating_step(const Step& step);  // floats.cpp
  bool convert_step(const Step& step);   // conversions.cpp
  bool memory_step(const Step& step);    // memory.cpp
  bool warp_step(const Step& step);      // warps.cpp

  Value flushed(Value floats) const;
  Value canonical(Value floats, unsigned bits) const;
  // Memory.
  struct Place {
    Value same = nullptr;   // the address of all lanes, where that is known
    Value lanes = nullptr;  // else each lane's, without
    std::uint64_t offset = 0;
  };
  Place place_of(const Step& step);
  void stop_unless(Value good, const Step& step);
  void load(const Step& step);
  void store(const Step& step);
  // What memory has at the lanes' addresses, and back; lanes whose bit is not set read as zero, or store nothing.
  Value gathered(LlvmType element, Value addresses, unsigned bytes, Value mask);
  void scatter(Value values, Value addresses, unsigned bytes, Value mask);
  // A loop over the lanes of a mask, upwards, with the lane's number (64 bits).
  void each_lane(Value mask, const std::function<void(Value)>& body);
  Value kept_lanes(Value& array);       // 64 bits of each lane, a variable of the whole function: its address
  Value variable(LlvmType type) const;  // new, in the function's first block

  const Executable& executable_;
  const Code& code_;
  const Flow& flow_;
  Emitter e_;
  const bool has_gather_;

  Value call_ = nullptr;  // address of the NativeCall
  Value frame_ = nullptr, constants_ = nullptr, specials_ = nullptr, warp_ = nullptr, interpret_ = nullptr;
  Value shared_address_ = nullptr, shared_bytes_ = nullptr, local_address_ = nullptr, local_stride_ = nullptr;
  Value live_ = nullptr;
  Value lane_addresses_ = nullptr, lane_values_ = nullptr;
  Value turns_ = nullptr, returned_ = nullptr, exited_ = nullptr;  // variables
  LLVMBasicBlockRef stopped_ = nullptr;
  std::vector<Register> registers_;
  std::vector<LLVMBasicBlockRef> bodies_;
  std::vector<Value> waiting_;             // variables, by block
  std::vector<LLVMBasicBlockRef> turned_;  // by block: where a loop jumps back

  std::uint32_t block_ = 0;
  std::vector<bool> needed_elsewhere_;
  Value mask_ = nullptr;    // the block's lanes
  Value active_ = nullptr;  // those of the step, after its guard
  bool guarded_ = false;
  // Rows that have the same value in all lanes, known within a block: the value, in 64 bits.
  std::map<std::uint32_t, Value> uniform_;

  std::uint32_t most_ways_ = 1;
  std::uint32_t interpreted_steps_ = 0;
  std::set<std::string> interpreted_;
};

struct Untranslated {
  std::string why;
};

}  // namespace cudasim::ptx::jit
