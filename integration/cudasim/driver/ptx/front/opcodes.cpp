#include "ptx/front/opcodes.h"

#include <algorithm>
#include <unordered_map>

namespace cudasim::ptx {
namespace {

struct TypeRow {
  Type type;
  std::string_view name;
  std::uint32_t bytes;
};

constexpr TypeRow kTypes[] = {
    {Type::kNone, "", 0},           {Type::kPred, "pred", 1},
    {Type::kB8, "b8", 1},           {Type::kB16, "b16", 2},
    {Type::kB32, "b32", 4},         {Type::kB64, "b64", 8},
    {Type::kB128, "b128", 16},      {Type::kU8, "u8", 1},
    {Type::kU16, "u16", 2},         {Type::kU32, "u32", 4},
    {Type::kU64, "u64", 8},         {Type::kS8, "s8", 1},
    {Type::kS16, "s16", 2},         {Type::kS32, "s32", 4},
    {Type::kS64, "s64", 8},         {Type::kF16, "f16", 2},
    {Type::kF16x2, "f16x2", 4},     {Type::kBf16, "bf16", 2},
    {Type::kBf16x2, "bf16x2", 4},   {Type::kTf32, "tf32", 4},
    {Type::kF32, "f32", 4},         {Type::kF32x2, "f32x2", 8},
    {Type::kF64, "f64", 8},         {Type::kE4m3, "e4m3", 1},
    {Type::kE5m2, "e5m2", 1},       {Type::kE4m3x2, "e4m3x2", 2},
    {Type::kE5m2x2, "e5m2x2", 2},   {Type::kU16x2, "u16x2", 4},
    {Type::kS16x2, "s16x2", 4},     {Type::kTexture, "texref", 8},
    {Type::kTexture, "surfref", 8}, {Type::kTexture, "samplerref", 8},
};

struct ModifierRow {
  Modifier modifier;
  std::string_view name;
};

// In the order of the enumerators.
constexpr ModifierRow kModifiers[] = {
    {Modifier::kRn, "rn"},
    {Modifier::kRz, "rz"},
    {Modifier::kRm, "rm"},
    {Modifier::kRp, "rp"},
    {Modifier::kRna, "rna"},
    {Modifier::kRni, "rni"},
    {Modifier::kRzi, "rzi"},
    {Modifier::kRmi, "rmi"},
    {Modifier::kRpi, "rpi"},
    {Modifier::kSat, "sat"},
    {Modifier::kSatfinite, "satfinite"},
    {Modifier::kRelu, "relu"},
    {Modifier::kFtz, "ftz"},
    {Modifier::kApprox, "approx"},
    {Modifier::kFull, "full"},
    {Modifier::kLo, "lo"},
    {Modifier::kHi, "hi"},
    {Modifier::kWide, "wide"},
    {Modifier::kCc, "cc"},
    {Modifier::kEq, "eq"},
    {Modifier::kNe, "ne"},
    {Modifier::kLt, "lt"},
    {Modifier::kLe, "le"},
    {Modifier::kGt, "gt"},
    {Modifier::kGe, "ge"},
    {Modifier::kLs, "ls"},
    {Modifier::kHs, "hs"},
    {Modifier::kEqu, "equ"},
    {Modifier::kNeu, "neu"},
    {Modifier::kLtu, "ltu"},
    {Modifier::kLeu, "leu"},
    {Modifier::kGtu, "gtu"},
    {Modifier::kGeu, "geu"},
    {Modifier::kNum, "num"},
    {Modifier::kNan, "nan"},
    {Modifier::kAnd, "and"},
    {Modifier::kOr, "or"},
    {Modifier::kXor, "xor"},
    {Modifier::kAdd, "add"},
    {Modifier::kInc, "inc"},
    {Modifier::kDec, "dec"},
    {Modifier::kMin, "min"},
    {Modifier::kMax, "max"},
    {Modifier::kExch, "exch"},
    {Modifier::kCas, "cas"},
    {Modifier::kPopc, "popc"},
    {Modifier::kNoftz, "noftz"},
    {Modifier::kNaN, "NaN"},
    {Modifier::kXorsign, "xorsign"},
    {Modifier::kAbs, "abs"},
    {Modifier::kShiftamt, "shiftamt"},
    {Modifier::kClamp, "clamp"},
    {Modifier::kWrap, "wrap"},
    {Modifier::kLeft, "l"},
    {Modifier::kRight, "r"},
    {Modifier::kUp, "up"},
    {Modifier::kDown, "down"},
    {Modifier::kBfly, "bfly"},
    {Modifier::kIdx, "idx"},
    {Modifier::kF4e, "f4e"},
    {Modifier::kB4e, "b4e"},
    {Modifier::kRc8, "rc8"},
    {Modifier::kEcl, "ecl"},
    {Modifier::kEcr, "ecr"},
    {Modifier::kRc16, "rc16"},
    {Modifier::kGlobal, "global"},
    {Modifier::kShared, "shared"},
    {Modifier::kSharedCta, "shared::cta"},
    {Modifier::kLocal, "local"},
    {Modifier::kParam, "param"},
    {Modifier::kConst, "const"},
    {Modifier::kTo, "to"},
    {Modifier::kV2, "v2"},
    {Modifier::kV4, "v4"},
    {Modifier::kV8, "v8"},
    {Modifier::kVolatile, "volatile"},
    {Modifier::kRelaxed, "relaxed"},
    {Modifier::kAcquire, "acquire"},
    {Modifier::kRelease, "release"},
    {Modifier::kAcqRel, "acq_rel"},
    {Modifier::kWeak, "weak"},
    {Modifier::kSc, "sc"},
    {Modifier::kMmio, "mmio"},
    {Modifier::kCta, "cta"},
    {Modifier::kCluster, "cluster"},
    {Modifier::kGpu, "gpu"},
    {Modifier::kGl, "gl"},
    {Modifier::kSys, "sys"},
    {Modifier::kCa, "ca"},
    {Modifier::kCg, "cg"},
    {Modifier::kCs, "cs"},
    {Modifier::kLu, "lu"},
    {Modifier::kCv, "cv"},
    {Modifier::kWb, "wb"},
    {Modifier::kWt, "wt"},
    {Modifier::kNc, "nc"},
    {Modifier::kUni, "uni"},
    {Modifier::kSync, "sync"},
    {Modifier::kArrive, "arrive"},
    {Modifier::kRed, "red"},
    {Modifier::kWarp, "warp"},
    {Modifier::kAligned, "aligned"},
    {Modifier::kAll, "all"},
    {Modifier::kAny, "any"},
    {Modifier::kBallot, "ballot"},
    {Modifier::kFinite, "finite"},
    {Modifier::kInfinite, "infinite"},
    {Modifier::kNumber, "number"},
    {Modifier::kNotanumber, "notanumber"},
    {Modifier::kNormal, "normal"},
    {Modifier::kSubnormal, "subnormal"},
    {Modifier::kRow, "row"},
    {Modifier::kCol, "col"},
    {Modifier::kX1, "x1"},
    {Modifier::kX2, "x2"},
    {Modifier::kX4, "x4"},
    {Modifier::kTrans, "trans"},
    {Modifier::kM8n8, "m8n8"},
    {Modifier::kM8n8k4, "m8n8k4"},
    {Modifier::kM8n8k16, "m8n8k16"},
    {Modifier::kM16n8k4, "m16n8k4"},
    {Modifier::kM16n8k8, "m16n8k8"},
    {Modifier::kM16n8k16, "m16n8k16"},
    {Modifier::kM16n8k32, "m16n8k32"},
    {Modifier::kAsync, "async"},
    {Modifier::kCommitGroup, "commit_group"},
    {Modifier::kWaitGroup, "wait_group"},
    {Modifier::kWaitAll, "wait_all"},
    {Modifier::kPack, "pack"},
    {Modifier::kCacheHint, "L2::cache_hint"},
    {Modifier::kLaunchDependents, "launch_dependents"},
    {Modifier::kWait, "wait"},
    {Modifier::kFractional, "fractional"},
    {Modifier::kProxy, "proxy"},
    {Modifier::kAlias, "alias"},
    {Modifier::kL1, "L1"},
    {Modifier::kL2, "L2"},
    {Modifier::kMask, "mask"},
    {Modifier::kEvictLast, "evict_last"},
    {Modifier::kEvictNormal, "evict_normal"},
    {Modifier::k1d, "1d"},
    {Modifier::k2d, "2d"},
    {Modifier::k3d, "3d"},
    {Modifier::kA1d, "a1d"},
    {Modifier::kA2d, "a2d"},
    {Modifier::kCube, "cube"},
    {Modifier::kAcube, "acube"},
    {Modifier::kLevel, "level"},
    {Modifier::kGrad, "grad"},
    {Modifier::kB, "b"},
    {Modifier::kTrapping, "trap"},
    {Modifier::kZeroing, "zero"},
    {Modifier::kGreen, "g"},
    {Modifier::kAlpha, "a"},
    {Modifier::kWidth, "width"},
    {Modifier::kHeight, "height"},
    {Modifier::kDepth, "depth"},
    {Modifier::kArraySize, "array_size"},
    {Modifier::kMipmapLevels, "num_mipmap_levels"},
    {Modifier::kMbarrier, "mbarrier"},
    {Modifier::kInit, "init"},
    {Modifier::kInval, "inval"},
    {Modifier::kArriveDrop, "arrive_drop"},
    {Modifier::kNoComplete, "noComplete"},
    {Modifier::kNoinc, "noinc"},
    {Modifier::kTestWait, "test_wait"},
    {Modifier::kTryWait, "try_wait"},
    {Modifier::kParity, "parity"},
    {Modifier::kPendingCount, "pending_count"},
    {Modifier::kLoad, "load"},
    {Modifier::kStore, "store"},
    {Modifier::kMma, "mma"},
    {Modifier::kC, "c"},
    {Modifier::kD, "d"},
    {Modifier::kM16n16k16, "m16n16k16"},
    {Modifier::kM32n8k16, "m32n8k16"},
    {Modifier::kM8n32k16, "m8n32k16"},
    {Modifier::kM16n16k8, "m16n16k8"},
};
static_assert([] {
  std::size_t at = 0;
  for (const ModifierRow& row : kModifiers) {
    if (static_cast<std::size_t>(row.modifier) != at++) return false;
  }
  return at == static_cast<std::size_t>(Modifier::kCount);
}());

constexpr std::string_view kIntegers = "u16 u32 u64 s16 s32 s64";
constexpr std::string_view kArithmetic = "u16 u32 u64 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64 u16x2 s16x2 f32x2";
constexpr std::string_view kFloats = "f16 f16x2 bf16 bf16x2 f32 f64 f32x2";
constexpr std::string_view kBits = "pred b16 b32 b64";
constexpr std::string_view kAnyScalar =
    "pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64";
constexpr std::string_view kSelected = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64";
constexpr std::string_view kCompared = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64";
constexpr std::string_view kComparisons =
    "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz";
constexpr std::string_view kLoads =
    "global shared shared::cta local param const v2 v4 v8 volatile relaxed acquire release weak mmio cta cluster gpu "
    "sys ca cg cs lu cv wb "
    "wt nc cache L2::cache_hint";
constexpr std::string_view kAtomics =
    "global shared shared::cta relaxed acquire release acq_rel cta cluster gpu sys and or xor add inc dec min max exch "
    "cas noftz "
    "v2 v4 v8 cache L2::cache_hint";
constexpr std::string_view kAtomicTypes = "b16 b32 b64 b128 u32 u64 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64";
constexpr std::string_view kQueries = "width height depth array_size num_mipmap_levels";
constexpr std::string_view kRoundings = "rn rz rm rp ftz sat";

constexpr Opcode kOpcodes[] = {
    {Op::kAbs, "abs", 1, 1, "s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64", "ftz", "ds"},
    {Op::kActivemask, "activemask", 1, 1, "b32", "", "d"},
    {Op::kAdd, "add", 1, 2, kArithmetic, "rn rz rm rp ftz sat cc", "dss"},
    {Op::kAddc, "addc", 1, 1, "u32 s32 u64 s64", "cc", "dss"},
    {Op::kAnd, "and", 1, 1, kBits, "", "dss"},
    {Op::kAtom, "atom", 1, 1, kAtomicTypes, kAtomics, "dms?ss"},
    {Op::kBar, "bar", 0, 1, "pred u32", "sync arrive red warp aligned and or popc cta", "?xssss"},
    {Op::kBar, "barrier", 0, 1, "pred u32", "sync arrive red warp aligned and or popc cta", "?xssss"},
    {Op::kBfe, "bfe", 1, 1, "u32 u64 s32 s64", "", "dsss"},
    {Op::kBfi, "bfi", 1, 1, "b32 b64", "", "dssss"},
    {Op::kBfind, "bfind", 1, 1, "u32 u64 s32 s64", "shiftamt", "ds"},
    {Op::kBmsk, "bmsk", 1, 1, "b32", "clamp wrap", "dss"},
    {Op::kBra, "bra", 0, 0, "", "uni", "l"},
    {Op::kBrev, "brev", 1, 1, "b32 b64", "", "ds"},
    {Op::kBrkpt, "brkpt", 0, 0, "", "", ""},
    {Op::kBrx, "brx", 0, 0, "", "idx uni", "st"},
    {Op::kCall, "call", 0, 0, "", "uni", "f"},
    {Op::kClz, "clz", 1, 1, "b32 b64", "", "ds"},
    {Op::kCnot, "cnot", 1, 1, "b16 b32 b64", "", "ds"},
    {Op::kCopysign, "copysign", 1, 1, "f32 f64", "", "dss"},
    {Op::kCos, "cos", 1, 1, "f32", "approx ftz", "ds"},
    {Op::kCp, "cp", 0, 1, "b64",
     "async mbarrier arrive noinc commit_group wait_group wait_all ca cg shared shared::cta global cache "
     "L2::cache_hint",
     "?xxxxx"},
    {Op::kCreatepolicy, "createpolicy", 1, 1, "b64", "fractional cache", "d?ss"},
    {Op::kCvt, "cvt", 2, 3, "u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 tf32 f32 f64 e4m3x2 e5m2x2 b32",
     "rn rz rm rp rna rni rzi rmi rpi ftz sat satfinite relu pack", "ds?ss"},
    {Op::kCvta, "cvta", 1, 1, "u32 u64", "to global shared shared::cta local const param", "ds"},
    {Op::kDiscard, "discard", 0, 0, "", "global L2 cache", "ms"},
    {Op::kDiv, "div", 1, 1, "u16 u32 u64 s16 s32 s64 f32 f64", "rn rz rm rp approx full ftz", "dss"},
    {Op::kDp2a, "dp2a", 2, 2, "u32 s32", "lo hi", "dsss"},
    {Op::kDp4a, "dp4a", 2, 2, "u32 s32", "", "dsss"},
    {Op::kElect, "elect", 0, 0, "", "sync", "ds"},
    {Op::kEx2, "ex2", 1, 1, "f16 f16x2 bf16 bf16x2 f32", "approx ftz", "ds"},
    {Op::kExit, "exit", 0, 0, "", "", ""},
    {Op::kFence, "fence", 0, 0, "",
     "acq_rel acquire release sc relaxed cta cluster gpu sys proxy alias async global shared::cta", ""},
    {Op::kFma, "fma", 1, 1, kFloats, "rn rz rm rp ftz sat relu", "dsss"},
    {Op::kFns, "fns", 1, 1, "b32", "", "dsss"},
    {Op::kGriddepcontrol, "griddepcontrol", 0, 0, "", "launch_dependents wait", ""},
    {Op::kIsspacep, "isspacep", 0, 0, "", "global shared shared::cta local const param", "ds"},
    {Op::kLd, "ld", 1, 1, kAnyScalar, kLoads, "dm?s"},
    {Op::kLd, "ldu", 1, 1, kAnyScalar, "global v2 v4", "dm"},
    {Op::kLdmatrix, "ldmatrix", 1, 1, "b16", "sync aligned m8n8 x1 x2 x4 trans shared shared::cta", "dm"},
    {Op::kLg2, "lg2", 1, 1, "f32", "approx ftz", "ds"},
    {Op::kLop3, "lop3", 1, 1, "b32", "and or", "dssss?s"},
    {Op::kMad, "mad", 1, 1, "u16 u32 u64 s16 s32 s64 f32 f64", "lo hi wide sat rn rz rm rp ftz cc", "dsss"},
    {Op::kMad24, "mad24", 1, 1, "u32 s32", "lo hi sat", "dsss"},
    {Op::kMadc, "madc", 1, 1, "u32 s32 u64 s64", "lo hi cc", "dsss"},
    {Op::kMatch, "match", 1, 1, "b32 b64", "all any sync", "dss"},
    {Op::kMax, "max", 1, 1, kArithmetic, "ftz NaN xorsign abs relu", "dss?s"},
    {Op::kMbarrier, "mbarrier", 0, 1, "b64",
     "init inval arrive arrive_drop noComplete test_wait try_wait parity pending_count shared shared::cta acquire "
     "release relaxed cta cluster",
     "x?xxx"},
    {Op::kMembar, "membar", 0, 0, "", "cta gl sys", ""},
    {Op::kMin, "min", 1, 1, kArithmetic, "ftz NaN xorsign abs relu", "dss?s"},
    {Op::kMma, "mma", 4, 4, "f16 bf16 tf32 f32 f64 s8 u8 s32",
     "sync aligned m8n8k4 m8n8k16 m16n8k4 m16n8k8 m16n8k16 m16n8k32 row col satfinite", "dsss"},
    {Op::kMov, "mov", 1, 1, kAnyScalar, "", "ds"},
    {Op::kMovmatrix, "movmatrix", 1, 1, "b16", "sync aligned m8n8 trans", "ds"},
    {Op::kMul, "mul", 1, 1, kArithmetic, "lo hi wide rn rz rm rp ftz sat", "dss"},
    {Op::kMul24, "mul24", 1, 1, "u32 s32", "lo hi", "dss"},
    {Op::kNanosleep, "nanosleep", 1, 1, "u32", "", "s"},
    {Op::kNeg, "neg", 1, 1, "s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64", "ftz", "ds"},
    {Op::kNot, "not", 1, 1, kBits, "", "ds"},
    {Op::kOr, "or", 1, 1, kBits, "", "dss"},
    {Op::kPmevent, "pmevent", 0, 0, "", "mask", "s"},
    {Op::kPopc, "popc", 1, 1, "b32 b64", "", "ds"},
    {Op::kPrefetch, "prefetch", 0, 0, "", "global local L1 L2 const param cache evict_last evict_normal", "m"},
    {Op::kPrefetch, "prefetchu", 0, 0, "", "L1", "m"},
    {Op::kPrmt, "prmt", 1, 1, "b32", "f4e b4e rc8 ecl ecr rc16", "dsss"},
    {Op::kRcp, "rcp", 1, 1, "f32 f64", "approx rn rz rm rp ftz", "ds"},
    {Op::kRed, "red", 1, 1, kAtomicTypes, kAtomics, "ms?s"},
    {Op::kRedux, "redux", 1, 1, "b32 u32 s32 f32", "sync add min max and or xor abs NaN", "dss"},
    {Op::kRem, "rem", 1, 1, kIntegers, "", "dss"},
    {Op::kRet, "ret", 0, 0, "", "uni", ""},
    {Op::kRsqrt, "rsqrt", 1, 1, "f32 f64", "approx ftz", "ds"},
    {Op::kSad, "sad", 1, 1, kIntegers, "", "dsss"},
    {Op::kSelp, "selp", 1, 1, kSelected, "", "dsss"},
    {Op::kSet, "set", 2, 2, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64", kComparisons, "dss?s"},
    {Op::kSetmaxnreg, "setmaxnreg", 1, 1, "u32", "inc dec sync aligned", "s"},
    {Op::kSetp, "setp", 1, 1, kCompared, kComparisons, "dss?s"},
    {Op::kShf, "shf", 1, 1, "b32", "l r clamp wrap", "dsss"},
    {Op::kShfl, "shfl", 1, 1, "b32", "sync up down bfly idx", "dsss?s"},
    {Op::kShl, "shl", 1, 1, "b16 b32 b64", "", "dss"},
    {Op::kShr, "shr", 1, 1, "b16 b32 b64 u16 u32 u64 s16 s32 s64", "", "dss"},
    {Op::kSin, "sin", 1, 1, "f32", "approx ftz", "ds"},
    {Op::kSlct, "slct", 2, 2, kSelected, "ftz", "dsss"},
    {Op::kSqrt, "sqrt", 1, 1, "f32 f64", "approx rn rz rm rp ftz", "ds"},
    {Op::kSt, "st", 1, 1, kAnyScalar, kLoads, "ms?s"},
    {Op::kStmatrix, "stmatrix", 1, 1, "b16", "sync aligned m8n8 x1 x2 x4 trans shared shared::cta", "ms"},
    {Op::kSub, "sub", 1, 2, kArithmetic, "rn rz rm rp ftz sat cc", "dss"},
    {Op::kSubc, "subc", 1, 1, "u32 s32 u64 s64", "cc", "dss"},
    {Op::kSuld, "suld", 1, 1, "b8 b16 b32 b64", "b 1d 2d 3d a1d a2d ca cg cs cv v2 v4 trap clamp zero", "dm"},
    {Op::kSuq, "suq", 1, 1, "b32", kQueries, "dm"},
    {Op::kSust, "sust", 1, 1, "b8 b16 b32 b64", "b 1d 2d 3d a1d a2d wb cg cs wt v2 v4 trap clamp zero", "ms"},
    {Op::kSzext, "szext", 1, 1, "u32 s32", "clamp wrap", "dss"},
    {Op::kTanh, "tanh", 1, 1, "f16 f16x2 bf16 bf16x2 f32", "approx", "ds"},
    {Op::kTestp, "testp", 1, 1, "f32 f64", "finite infinite number notanumber normal subnormal", "ds"},
    {Op::kTex, "tex", 2, 2, "u32 s32 f16 f16x2 f32", "level grad 1d 2d 3d a1d a2d cube acube v2 v4", "dm?ss"},
    {Op::kTld4, "tld4", 2, 2, "u32 s32 f32", "r g b a 2d v4", "dm"},
    {Op::kTrap, "trap", 0, 0, "", "", ""},
    {Op::kTxq, "txq", 1, 1, "b32", kQueries, "dm"},
    {Op::kVote, "vote", 1, 1, "pred b32", "sync all any uni ballot", "ds?s"},
    {Op::kWmma, "wmma", 1, 4, "f16 bf16 tf32 f32 f64 s8 u8 s32",
     "load store mma a b c d sync aligned row col m16n16k16 m32n8k16 m8n32k16 m16n16k8 m8n8k4 global shared "
     "shared::cta rn satfinite",
     "xx?xx"},
    {Op::kXor, "xor", 1, 1, kBits, "", "dss"},
};

}  // namespace

std::uint32_t bytes_of(Type type) { return std::ranges::find(kTypes, type, &TypeRow::type)->bytes; }

std::optional<Type> type_named(std::string_view word) {
  const auto* const row = std::ranges::find(kTypes, word, &TypeRow::name);
  if (row == std::end(kTypes) || word.empty()) return std::nullopt;
  return row->type;
}

std::string_view name_of(Type type) { return std::ranges::find(kTypes, type, &TypeRow::type)->name; }

bool is_floating(Type type) { return type >= Type::kF16 && type <= Type::kF64; }

bool is_signed(Type type) { return (type >= Type::kS8 && type <= Type::kS64) || type == Type::kS16x2; }

std::optional<Modifier> modifier_named(std::string_view word) {
  const auto* const row = std::ranges::find(kModifiers, word, &ModifierRow::name);
  return row == std::end(kModifiers) ? std::nullopt : std::optional(row->modifier);
}

std::string_view name_of(Modifier modifier) { return kModifiers[static_cast<std::size_t>(modifier)].name; }

std::span<const Opcode> opcodes() { return kOpcodes; }

const Opcode* opcode_named(std::string_view word) {
  // Never destroyed: calls may arrive while the process ends.
  static const auto* const table = [] {
    auto* const map = new std::unordered_map<std::string_view, const Opcode*>;
    for (const Opcode& row : kOpcodes) map->emplace(row.name, &row);
    return map;
  }();
  const auto found = table->find(word);
  return found == table->end() ? nullptr : found->second;
}

const Opcode& opcode_of(Op op) { return *std::ranges::find(kOpcodes, op, &Opcode::op); }

bool list_has(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace cudasim::ptx
