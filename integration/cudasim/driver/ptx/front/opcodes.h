// The one table of PTX opcodes: how each is written, and the enumerators by which parser, interpreter and a compiler
// know it. What is not in it is missing: a kernel that uses it does not compute. "Parallel Thread Execution ISA",
// chapter 9, is the reference for what each does.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cudasim::ptx {

// .type words. The order within a family is by width.
enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF32x2,
  kF64,
  kE4m3,
  kE5m2,
  kE4m3x2,
  kE5m2x2,
  kU16x2,
  kS16x2,
  kTexture,  // .texref, .samplerref, .surfref: declared, never computed with
};
// Bytes that a value takes in memory; kPred counts as 1, kNone as 0.
std::uint32_t bytes_of(Type type);
// Of ".f32" without the dot; nothing for another word.
std::optional<Type> type_named(std::string_view word);
std::string_view name_of(Type type);
bool is_floating(Type type);  // f16, bf16, tf32, f32, f64 and their pairs
bool is_signed(Type type);    // s8 to s64, s16x2

enum class Op : std::uint8_t {
  kAbs,
  kActivemask,
  kAdd,
  kAddc,
  kAnd,
  kAtom,
  kBar,
  kBfe,
  kBfi,
  kBfind,
  kBmsk,
  kBra,
  kBrev,
  kBrkpt,
  kBrx,
  kCall,
  kClz,
  kCnot,
  kCopysign,
  kCos,
  kCp,
  kCreatepolicy,
  kCvt,
  kCvta,
  kDiscard,
  kDiv,
  kDp2a,
  kDp4a,
  kElect,
  kEx2,
  kExit,
  kFence,
  kFma,
  kFns,
  kGriddepcontrol,
  kIsspacep,
  kLd,
  kLdmatrix,
  kLg2,
  kLop3,
  kMad,
  kMad24,
  kMadc,
  kMatch,
  kMax,
  kMbarrier,
  kMembar,
  kMin,
  kMma,
  kMov,
  kMovmatrix,
  kMul,
  kMul24,
  kNanosleep,
  kNeg,
  kNot,
  kOr,
  kPmevent,
  kPopc,
  kPrefetch,
  kPrmt,
  kRcp,
  kRed,
  kRedux,
  kRem,
  kRet,
  kRsqrt,
  kSad,
  kSelp,
  kSet,
  kSetmaxnreg,
  kSetp,
  kShf,
  kShfl,
  kShl,
  kShr,
  kSin,
  kSlct,
  kSqrt,
  kSt,
  kStmatrix,
  kSub,
  kSubc,
  kSuld,
  kSuq,
  kSust,
  kSzext,
  kTanh,
  kTestp,
  kTex,
  kTld4,
  kTrap,
  kTxq,
  kVote,
  kXor,
};

// About speed, and nothing that a kernel computes.
constexpr bool is_hint(Op op) {
  return op == Op::kNanosleep || op == Op::kPmevent || op == Op::kGriddepcontrol || op == Op::kSetmaxnreg ||
         op == Op::kPrefetch || op == Op::kDiscard;
}

// What stands between opcode and types. `kCacheHint` (L2::cache_hint) brings an operand along; all other L1::, L2:: and
// eviction words are accepted where the row has "cache" and mean nothing.
enum class Modifier : std::uint8_t {
  kRn,
  kRz,
  kRm,
  kRp,
  kRna,
  kRni,
  kRzi,
  kRmi,
  kRpi,
  kSat,
  kSatfinite,
  kRelu,
  kFtz,
  kApprox,
  kFull,
  kLo,
  kHi,
  kWide,
  kCc,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kLs,
  kHs,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan,
  kAnd,
  kOr,
  kXor,
  kAdd,
  kInc,
  kDec,
  kMin,
  kMax,
  kExch,
  kCas,
  kPopc,
  kNoftz,
  kNaN,
  kXorsign,
  kAbs,
  kShiftamt,
  kClamp,
  kWrap,
  kLeft,
  kRight,
  kUp,
  kDown,
  kBfly,
  kIdx,
  kF4e,
  kB4e,
  kRc8,
  kEcl,
  kEcr,
  kRc16,
  kGlobal,
  kShared,
  kSharedCta,
  kLocal,
  kParam,
  kConst,
  kTo,
  kV2,
  kV4,
  kV8,
  kVolatile,
  kRelaxed,
  kAcquire,
  kRelease,
  kAcqRel,
  kWeak,
  kSc,
  kMmio,
  kCta,
  kCluster,
  kGpu,
  kGl,
  kSys,
  kCa,
  kCg,
  kCs,
  kLu,
  kCv,
  kWb,
  kWt,
  kNc,
  kUni,
  kSync,
  kArrive,
  kRed,
  kWarp,
  kAligned,
  kAll,
  kAny,
  kBallot,
  kFinite,
  kInfinite,
  kNumber,
  kNotanumber,
  kNormal,
  kSubnormal,
  kRow,
  kCol,
  kX1,
  kX2,
  kX4,
  kTrans,
  kM8n8,
  kM8n8k4,
  kM8n8k16,
  kM16n8k4,
  kM16n8k8,
  kM16n8k16,
  kM16n8k32,
  kAsync,
  kCommitGroup,
  kWaitGroup,
  kWaitAll,
  kPack,
  kCacheHint,
  kLaunchDependents,
  kWait,
  kFractional,
  kProxy,
  kAlias,
  kL1,
  kL2,
  kMask,
  kEvictLast,
  kEvictNormal,
  k1d,
  k2d,
  k3d,
  kA1d,
  kA2d,
  kCube,
  kAcube,
  kLevel,
  kGrad,
  kB,  // of surfaces' bits, and of blue
  kTrapping,
  kZeroing,
  kGreen,
  kAlpha,
  kWidth,
  kHeight,
  kDepth,
  kArraySize,
  kMipmapLevels,
  kMbarrier,
  kInit,
  kInval,
  kArriveDrop,
  kNoComplete,
  kNoinc,
  kTestWait,
  kTryWait,
  kParity,
  kPendingCount,
  kCount,
};
std::optional<Modifier> modifier_named(std::string_view word);
std::string_view name_of(Modifier modifier);

// A set of modifiers.
class Modifiers {
 public:
  bool has(Modifier m) const { return (words_[index(m) / 64] >> (index(m) % 64) & 1) != 0; }
  void add(Modifier m) { words_[index(m) / 64] |= std::uint64_t{1} << (index(m) % 64); }
  bool operator==(const Modifiers&) const = default;

 private:
  static constexpr std::size_t index(Modifier m) { return static_cast<std::size_t>(m); }
  std::array<std::uint64_t, (static_cast<std::size_t>(Modifier::kCount) + 63) / 64> words_{};
};

// One row. Lists are words between blanks.
struct Opcode {
  Op op;
  std::string_view name;
  // How many type words it takes; `types` are those that may stand there, in any place.
  std::uint8_t min_types;
  std::uint8_t max_types;
  std::string_view types;
  std::string_view modifiers;  // "cache" stands for all L1::, L2:: and eviction words
  // A letter for each operand: d destination register, vector or sink (_), perhaps a pair p|q; s source (register,
  // vector, immediate, special register, address of a symbol); m address in brackets; l label; t list of labels;
  // f what follows a call; x any of these. What follows '?' may be left out.
  std::string_view operands;
};

std::span<const Opcode> opcodes();
// Null for a word that is not in the table.
const Opcode* opcode_named(std::string_view word);
const Opcode& opcode_of(Op op);
// `word` is one of the words of `list`.
bool list_has(std::string_view list, std::string_view word);

}  // namespace cudasim::ptx
