// SIMD vectors of the widest kind of the target: loads, stores and lane sums. Tiles are written
// with them rather than with plain loops: see tiles.h.
#pragma once
#include <cstddef>

namespace tiles {

typedef std::ptrdiff_t isize;

#if defined(__GNUC__) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define FASTDISC_VECTOR 1
#endif
#endif

template <class T> struct simd;

#ifdef FASTDISC_VECTOR
#if defined(__AVX512F__)
#define FASTDISC_BYTES 64
#elif defined(__AVX__)
#define FASTDISC_BYTES 32
#else
#define FASTDISC_BYTES 16
#endif
#define FASTDISC_TYPE(T, bytes) T __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias))

template <> struct simd<double> { typedef FASTDISC_TYPE(double, FASTDISC_BYTES) vec; };
template <> struct simd<float> { typedef FASTDISC_TYPE(float, FASTDISC_BYTES) vec; };

typedef FASTDISC_TYPE(double, 16) d2;
typedef FASTDISC_TYPE(double, 32) d4;
typedef FASTDISC_TYPE(double, 64) d8;
typedef FASTDISC_TYPE(float, 16) f4;
typedef FASTDISC_TYPE(float, 32) f8;
typedef FASTDISC_TYPE(float, 64) f16;

static inline d4 half(d8 a) {
    return __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
}
static inline f8 half(f16 a) {
    return __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7)
         + __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
}
static inline f4 half(f8 a) {
    return __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
}

// The lane sums of four vectors at once: two rounds of shuffle and add instead of four separate
// reductions.
template <class V> static inline V transpose_sum(V a, V b, V c, V d) {
    V ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
    V cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5)
         + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}
static inline void sum4(d2 a, d2 b, d2 c, d2 d, double *z) {
    ((d2 *)z)[0] = __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3);
    ((d2 *)z)[1] = __builtin_shufflevector(c, d, 0, 2) + __builtin_shufflevector(c, d, 1, 3);
}
static inline void sum4(d4 a, d4 b, d4 c, d4 d, double *z) { *(d4 *)z = transpose_sum(a, b, c, d); }
static inline void sum4(f4 a, f4 b, f4 c, f4 d, float *z) { *(f4 *)z = transpose_sum(a, b, c, d); }
static inline void sum4(d8 a, d8 b, d8 c, d8 d, double *z) {
    sum4(half(a), half(b), half(c), half(d), z);
}
static inline void sum4(f8 a, f8 b, f8 c, f8 d, float *z) {
    sum4(half(a), half(b), half(c), half(d), z);
}
static inline void sum4(f16 a, f16 b, f16 c, f16 d, float *z) {
    sum4(half(a), half(b), half(c), half(d), z);
}

// The lane sum of one vector.
static inline double total(d2 a) { return a[0] + a[1]; }
static inline double total(d4 a) {
    return total(__builtin_shufflevector(a, a, 0, 1) + __builtin_shufflevector(a, a, 2, 3));
}
static inline double total(d8 a) { return total(half(a)); }
static inline float total(f4 a) { return (a[0] + a[2]) + (a[1] + a[3]); }
static inline float total(f8 a) { return total(half(a)); }
static inline float total(f16 a) { return total(half(a)); }

#else  // a compiler without vector types: vectors of one lane, the same code
template <> struct simd<double> { typedef double vec; };
template <> struct simd<float> { typedef float vec; };
template <class T> static inline T total(T a) { return a; }
template <class T> static inline void sum4(T a, T b, T c, T d, T *z) {
    z[0] = a; z[1] = b; z[2] = c; z[3] = d;
}
#endif

template <class T> static inline isize lanes() {
    return sizeof(typename simd<T>::vec) / sizeof(T);
}
template <class T> static inline typename simd<T>::vec fill(T a) {
    return a - typename simd<T>::vec();
}
template <class T> static inline typename simd<T>::vec load(const T *p) {
    return *(const typename simd<T>::vec *)p;
}
template <class T> static inline void store(T *p, typename simd<T>::vec a) {
    *(typename simd<T>::vec *)p = a;
}

// z += the lane sums of four vectors.
template <class T, class V> static inline void add4(V a, V b, V c, V d, T *z) {
    T part[4];
    sum4(a, b, c, d, part);
    z[0] += part[0]; z[1] += part[1]; z[2] += part[2]; z[3] += part[3];
}

}  // namespace tiles
