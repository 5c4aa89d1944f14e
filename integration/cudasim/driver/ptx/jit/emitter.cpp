#include "ptx/jit/emitter.h"

#include <array>

namespace cudasim::ptx::jit {

Emitter::Emitter(LLVMModuleRef module_)
    : context(LLVMGetModuleContext(module_)),
      module(module_),
      builder(LLVMCreateBuilderInContext(context)),
      invariant_(LLVMGetMDKindIDInContext(context, "invariant.load", 14)) {}

unsigned Emitter::bits_of(Value value) {
  LlvmType type = LLVMTypeOf(value);
  if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
  return LLVMGetIntTypeWidth(type);
}

Value Emitter::all(unsigned bits, std::uint64_t value) const { return ramp(bits, value, 0); }

Value Emitter::ramp(unsigned bits, std::uint64_t first, std::uint64_t step) const {
  std::array<Value, 32> lanes;
  for (std::uint64_t lane = 0; lane < 32; ++lane) lanes[lane] = constant(bits, first + lane * step);
  return LLVMConstVector(lanes.data(), 32);
}

Value Emitter::spread(Value scalar) const {
  const LlvmType type = vector(LLVMTypeOf(scalar));
  const Value one = LLVMBuildInsertElement(builder, LLVMGetPoison(type), scalar, constant(32, 0), "");
  return LLVMBuildShuffleVector(builder, one, LLVMGetPoison(type), all(32, 0), "");
}

Value Emitter::resized(Value value, unsigned bits) const {
  const unsigned from = bits_of(value);
  if (from == bits) return value;
  const bool is_vector = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind;
  const LlvmType to = is_vector ? integers(bits) : integer(bits);
  return from < bits ? LLVMBuildZExt(builder, value, to, "") : LLVMBuildTrunc(builder, value, to, "");
}

Value Emitter::extended(Value value, unsigned bits) const {
  if (bits_of(value) >= bits) return resized(value, bits);
  return LLVMBuildSExt(builder, value, integers(bits), "");
}

Value Emitter::load(LlvmType type, Value address, unsigned alignment, bool invariant) const {
  const Value result = LLVMBuildLoad2(builder, type, pointer(address, type), "");
  LLVMSetAlignment(result, alignment);
  if (invariant)
    LLVMSetMetadata(result, invariant_, LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, nullptr, 0)));
  return result;
}

void Emitter::store(Value value, Value address, unsigned alignment) const {
  LLVMSetAlignment(LLVMBuildStore(builder, value, pointer(address, LLVMTypeOf(value))), alignment);
}

Value Emitter::load_lanes(LlvmType element, Value address, unsigned alignment, Value mask) const {
  const LlvmType type = vector(element);
  const Value from = pointer(address, type);
  return intrinsic("llvm.masked.load", {type, LLVMTypeOf(from)},
                   {from, constant(32, alignment), lanes(mask), LLVMConstNull(type)});
}

void Emitter::store_lanes(Value value, Value address, unsigned alignment, Value mask) const {
  const LlvmType type = LLVMTypeOf(value);
  const Value to = pointer(address, type);
  intrinsic("llvm.masked.store", {type, LLVMTypeOf(to)}, {value, to, constant(32, alignment), lanes(mask)});
}

Value Emitter::gather(LlvmType element, Value addresses, unsigned alignment, Value mask) const {
  const LlvmType type = vector(element);
  const Value from = LLVMBuildIntToPtr(builder, addresses, vector(LLVMPointerType(element, 0)), "");
  return intrinsic("llvm.masked.gather", {type, LLVMTypeOf(from)},
                   {from, constant(32, alignment), lanes(mask), LLVMConstNull(type)});
}

void Emitter::scatter(Value value, Value addresses, unsigned alignment, Value mask) const {
  const LlvmType type = LLVMTypeOf(value);
  const Value to = LLVMBuildIntToPtr(builder, addresses, vector(LLVMPointerType(LLVMGetElementType(type), 0)), "");
  intrinsic("llvm.masked.scatter", {type, LLVMTypeOf(to)}, {value, to, constant(32, alignment), lanes(mask)});
}

Value Emitter::intrinsic(std::string_view name, std::initializer_list<LlvmType> types,
                         std::initializer_list<Value> arguments) const {
  const unsigned id = LLVMLookupIntrinsicID(name.data(), name.size());
  auto* const t = const_cast<LlvmType*>(types.begin());
  const Value callee = LLVMGetIntrinsicDeclaration(module, id, t, types.size());
  return LLVMBuildCall2(builder, LLVMIntrinsicGetType(context, id, t, types.size()), callee,
                        const_cast<Value*>(arguments.begin()), static_cast<unsigned>(arguments.size()), "");
}

Value Emitter::first_lane(Value mask) const { return intrinsic("llvm.cttz", {integer(32)}, {mask, constant(1, 1)}); }

LLVMBasicBlockRef Emitter::block(const char* name) const {
  return LLVMAppendBasicBlockInContext(context, function, name);
}

}  // namespace cudasim::ptx::jit
