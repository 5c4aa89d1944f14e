// LLVM's builder, for values of 32 lanes. Addresses are integers until they are used.
#pragma once
#include <llvm-c/Core.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace cudasim::ptx::jit {

using Value = LLVMValueRef;
using LlvmType = LLVMTypeRef;

class Emitter {
 public:
  explicit Emitter(LLVMModuleRef module);
  ~Emitter() { LLVMDisposeBuilder(builder); }
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  LlvmType integer(unsigned bits) const { return LLVMIntTypeInContext(context, bits); }
  LlvmType floating(unsigned bits) const {
    return bits == 64 ? LLVMDoubleTypeInContext(context) : LLVMFloatTypeInContext(context);
  }
  static LlvmType vector(LlvmType element) { return LLVMVectorType(element, 32); }
  LlvmType integers(unsigned bits) const { return vector(integer(bits)); }
  LlvmType floats(unsigned bits) const { return vector(floating(bits)); }

  Value constant(unsigned bits, std::uint64_t value) const { return LLVMConstInt(integer(bits), value, 0); }
  // The same in all lanes.
  Value all(unsigned bits, std::uint64_t value) const;
  Value spread(Value scalar) const;
  // first, first + step, ...
  Value ramp(unsigned bits, std::uint64_t first, std::uint64_t step) const;
  // A mask as lanes and back.
  Value lanes(Value mask) const { return LLVMBuildBitCast(builder, mask, integers(1), ""); }
  Value mask(Value lanes) const { return LLVMBuildBitCast(builder, lanes, integer(32), ""); }
  // Unsigned, wider or narrower; scalars and vectors.
  Value resized(Value value, unsigned bits) const;
  Value extended(Value value, unsigned bits) const;  // signed
  Value as_floats(Value value, unsigned bits) const { return LLVMBuildBitCast(builder, value, floats(bits), ""); }
  Value as_integers(Value value, unsigned bits) const { return LLVMBuildBitCast(builder, value, integers(bits), ""); }
  static unsigned bits_of(Value value);

  Value add(Value a, Value b) const { return LLVMBuildAdd(builder, a, b, ""); }
  Value sub(Value a, Value b) const { return LLVMBuildSub(builder, a, b, ""); }
  Value mul(Value a, Value b) const { return LLVMBuildMul(builder, a, b, ""); }
  Value both(Value a, Value b) const { return LLVMBuildAnd(builder, a, b, ""); }
  Value either(Value a, Value b) const { return LLVMBuildOr(builder, a, b, ""); }
  Value exclusive(Value a, Value b) const { return LLVMBuildXor(builder, a, b, ""); }
  Value inverse(Value a) const { return LLVMBuildNot(builder, a, ""); }
  Value without(Value a, Value b) const { return both(a, inverse(b)); }
  Value is(LLVMIntPredicate p, Value a, Value b) const { return LLVMBuildICmp(builder, p, a, b, ""); }
  Value select(Value c, Value a, Value b) const { return LLVMBuildSelect(builder, c, a, b, ""); }
  Value is_zero(Value v) const { return is(LLVMIntEQ, v, LLVMConstNull(LLVMTypeOf(v))); }
  Value lane(Value v, Value index) const { return LLVMBuildExtractElement(builder, v, index, ""); }

  Value pointer(Value address, LlvmType to) const {
    return LLVMBuildIntToPtr(builder, address, LLVMPointerType(to, 0), "");
  }
  Value load(LlvmType type, Value address, unsigned alignment, bool invariant = false) const;
  void store(Value value, Value address, unsigned alignment) const;
  // Lanes whose bit is not set keep memory as it is, and read as zero.
  Value load_lanes(LlvmType element, Value address, unsigned alignment, Value mask) const;
  void store_lanes(Value value, Value address, unsigned alignment, Value mask) const;
  Value gather(LlvmType element, Value addresses, unsigned alignment, Value mask) const;
  void scatter(Value value, Value addresses, unsigned alignment, Value mask) const;

  Value intrinsic(std::string_view name, std::initializer_list<LlvmType> types,
                  std::initializer_list<Value> arguments) const;
  // Number of the first lane of a mask that is not empty.
  Value first_lane(Value mask) const;

  LLVMBasicBlockRef block(const char* name) const;
  void at(LLVMBasicBlockRef where) const { LLVMPositionBuilderAtEnd(builder, where); }
  void go(LLVMBasicBlockRef to) const { LLVMBuildBr(builder, to); }
  void branch(Value c, LLVMBasicBlockRef yes, LLVMBasicBlockRef no) const { LLVMBuildCondBr(builder, c, yes, no); }
  LLVMBasicBlockRef here() const { return LLVMGetInsertBlock(builder); }

  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  Value function = nullptr;

 private:
  unsigned invariant_;
};

}  // namespace cudasim::ptx::jit
