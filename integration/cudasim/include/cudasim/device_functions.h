// CUDA's device functions that the C library lacks, for kernel_plugin.h. Fast approximations are computed exactly;
// single precision follows the C library, so values may differ from a GPU's in the last bits. Intrinsics with a
// rounding mode exist for round-to-nearest only.
#pragma once
#ifndef CUDASIM_KERNEL
#error "include cudasim/kernel_plugin.h"
#endif

// Macros where the C library has declared the same reserved name for itself.
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)
#define __sincosf(x, s, c) sincosf(x, s, c)

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float fdividef(float x, float y) { return x / y; }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }

inline int min(int a, int b) { return b < a ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline long min(long a, long b) { return b < a ? b : a; }
inline unsigned long min(unsigned long a, unsigned long b) { return b < a ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long max(long a, long b) { return a < b ? b : a; }
inline unsigned long max(unsigned long a, unsigned long b) { return a < b ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __ffsll(long long x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1; }
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}

// Loads and stores with a cache hint are loads and stores.
template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldca(const T* p) {
  return *p;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline T __ldlu(const T* p) {
  return *p;
}
template <class T>
inline T __ldcv(const T* p) {
  return *p;
}
template <class T>
inline void __stwb(T* p, std::type_identity_t<T> v) {
  *p = v;
}
template <class T>
inline void __stcg(T* p, std::type_identity_t<T> v) {
  *p = v;
}
template <class T>
inline void __stcs(T* p, std::type_identity_t<T> v) {
  *p = v;
}
template <class T>
inline void __stwt(T* p, std::type_identity_t<T> v) {
  *p = v;
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}

template <class T>
inline T atomicAdd(T* p, std::type_identity_t<T> v) {
  return std::exchange(*p, static_cast<T>(*p + v));
}
template <class T>
inline T atomicSub(T* p, std::type_identity_t<T> v) {
  return std::exchange(*p, static_cast<T>(*p - v));
}
template <class T>
inline T atomicExch(T* p, std::type_identity_t<T> v) {
  return std::exchange(*p, v);
}
template <class T>
inline T atomicMin(T* p, std::type_identity_t<T> v) {
  return std::exchange(*p, v < *p ? v : *p);
}
template <class T>
inline T atomicMax(T* p, std::type_identity_t<T> v) {
  return std::exchange(*p, *p < v ? v : *p);
}
template <class T>
inline T atomicAnd(T* p, std::type_identity_t<T> v) {
  return std::exchange(*p, static_cast<T>(*p & v));
}
template <class T>
inline T atomicOr(T* p, std::type_identity_t<T> v) {
  return std::exchange(*p, static_cast<T>(*p | v));
}
template <class T>
inline T atomicXor(T* p, std::type_identity_t<T> v) {
  return std::exchange(*p, static_cast<T>(*p ^ v));
}
template <class T>
inline T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  return std::exchange(*p, *p == expected ? desired : *p);
}
inline unsigned atomicInc(unsigned* p, unsigned limit) { return std::exchange(*p, *p >= limit ? 0u : *p + 1); }
inline unsigned atomicDec(unsigned* p, unsigned limit) {
  return std::exchange(*p, *p == 0 || *p > limit ? limit : *p - 1);
}
