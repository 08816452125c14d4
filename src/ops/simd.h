// As many floats at a time as the instruction set of the file has in a register, by GCC's vector extensions, for the kernels of
// this room. Loads and stores of fp32 and bf16 (rounded to nearest, ties to even, as LibTorch does), sums in one order for every
// instruction set, exponential and sigmoid. Results depend on the instruction set by the contraction of a * b + c alone.
// Included by *_cpu.cpp only. No torch header.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "ops/rows.h"

namespace quell::ops::QUELL_ISA {

#define QUELL_INLINE inline __attribute__((always_inline))

// Never wider than a register: GCC 12 takes comparisons and choices of wider vectors apart into single lanes.
#if defined(__AVX512F__)
inline constexpr int64_t lanes = 16;
#elif defined(__AVX2__)
inline constexpr int64_t lanes = 8;
#else
inline constexpr int64_t lanes = 4;
#endif
using Floats = float __attribute__((vector_size(4 * lanes)));
using Ints = int32_t __attribute__((vector_size(4 * lanes)));
using Words = uint32_t __attribute__((vector_size(4 * lanes)));
using Shorts = uint16_t __attribute__((vector_size(2 * lanes)));

struct Bf16 {
  uint16_t bits;
};

// A block of a row: all lanes, or the first `count` of them.
struct Full {};
struct Part {
  int64_t count;
};

// A product that is rounded before anything is added to it.
QUELL_INLINE Floats alone(Floats product) { return __builtin_assoc_barrier(product); }

// Minus zero and not plus: that leaves every x as it is, so nothing is computed and x is spread by the load itself.
QUELL_INLINE Floats all(float x) { return x - Floats{}; }

QUELL_INLINE Ints lane_numbers() {
  Ints lane{};
  for (int32_t i = 0; i < lanes; ++i) lane[i] = i;
  return lane;
}

QUELL_INLINE Floats keep(Floats x, Full) { return x; }
QUELL_INLINE Floats keep(Floats x, Part part) {
  return lane_numbers() < static_cast<int32_t>(part.count) ? x : Floats{};
}

// ---- memory -----------------------------------------------------------------------------------------------------------

QUELL_INLINE Floats load(const float* from, Full) {
  Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
QUELL_INLINE void store(float* to, Floats x, Full) { std::memcpy(to, &x, sizeof x); }

// GCC 12 takes conversions between vectors of different widths apart: the instructions by name where there are some.
#if defined(__AVX512BW__)
QUELL_INLINE Words to_words(Shorts bits) {
  return reinterpret_cast<Words>(_mm512_maskz_cvtepu16_epi32(0xffff, reinterpret_cast<__m256i>(bits)));
}
QUELL_INLINE Shorts to_shorts(Words bits) {
  return reinterpret_cast<Shorts>(_mm512_maskz_cvtepi32_epi16(0xffff, reinterpret_cast<__m512i>(bits)));
}
#elif defined(__AVX2__)
QUELL_INLINE Words to_words(Shorts bits) {
  return reinterpret_cast<Words>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(bits)));
}
QUELL_INLINE Shorts to_shorts(Words bits) {
  const __m256i wide = reinterpret_cast<__m256i>(bits);
  return reinterpret_cast<Shorts>(_mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
}
#else
QUELL_INLINE Words to_words(Shorts bits) { return __builtin_convertvector(bits, Words); }
QUELL_INLINE Shorts to_shorts(Words bits) { return __builtin_convertvector(bits, Shorts); }
#endif

QUELL_INLINE Floats widen(Shorts bits) { return reinterpret_cast<Floats>(to_words(bits) << 16); }

// The upper half of each word is the rounded bf16, the lower half whatever the addition leaves.
QUELL_INLINE Words rounded(Floats x) {
  const Words bits = reinterpret_cast<Words>(x);
  const Words up = bits + 0x7fffu + ((bits >> 16) & 1u);
  return x == x ? up : Words{} + 0x7fc00000u;
}
QUELL_INLINE Shorts narrow(Floats x) { return to_shorts(rounded(x) >> 16); }

QUELL_INLINE Floats load(const Bf16* from, Full) {
  Shorts bits;
  std::memcpy(&bits, from, sizeof bits);
  return widen(bits);
}
QUELL_INLINE void store(Bf16* to, Floats x, Full) {
  const Shorts bits = narrow(x);
  std::memcpy(to, &bits, sizeof bits);
}

template <class T>
QUELL_INLINE Floats load(const T* from, Part part) {
  T block[lanes] = {};
  for (int64_t i = 0; i < part.count; ++i) block[i] = from[i];
  return load(block, Full{});
}
template <class T>
QUELL_INLINE void store(T* to, Floats x, Part part) {
  T block[lanes];
  store(block, x, Full{});
  for (int64_t i = 0; i < part.count; ++i) to[i] = block[i];
}

// To T's precision and back.
template <class T> QUELL_INLINE Floats round_to(Floats x);
template <> QUELL_INLINE Floats round_to<float>(Floats x) { return x; }
template <> QUELL_INLINE Floats round_to<Bf16>(Floats x) { return reinterpret_cast<Floats>(rounded(x) & 0xffff0000u); }
template <class T> QUELL_INLINE float round_to(float x) { return round_to<T>(all(x))[0]; }

// f(j, Full or Part) for the blocks of a row that start at j = 0, lanes, ...
template <class F>
QUELL_INLINE void blocks(int64_t width, F&& f) {
  int64_t j = 0;
  for (; j + lanes <= width; j += lanes) f(j, Full{});
  if (j < width) f(j, Part{width - j});
}

// The two levels of strided rows, walked without a division a row.
struct Walk {
  int64_t outer, inner;
  Walk(const Rows& rows, int64_t row) : outer(row / rows.inner_count), inner(row % rows.inner_count) {}
  void next(const Rows& rows) {
    if (++inner == rows.inner_count) inner = 0, ++outer;
  }
  int64_t start(const Rows& rows) const { return outer * rows.outer_stride + inner * rows.inner_stride; }
};

// ---- sums -------------------------------------------------------------------------------------------------------------

// Halves, quarters, ...
using Four = float __attribute__((vector_size(16)));
using Eight = float __attribute__((vector_size(32)));
using Sixteen = float __attribute__((vector_size(64)));
QUELL_INLINE float sum(Four x) {
  x += __builtin_shufflevector(x, x, 2, 3, 2, 3);
  return x[0] + x[1];
}
QUELL_INLINE float sum(Eight x) {
  return sum(__builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7));
}
QUELL_INLINE float sum(Sixteen x) {
  return sum(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));
}

// Sum over a row of f(j, block), whose lanes outside the row are 0. Element j goes to the sum j mod 64, however wide a vector
// is, and the 64 sums are added by halves. So many also hide the latency of the additions.
template <class F>
QUELL_INLINE float sum_blocks(int64_t width, F&& f) {
  constexpr int64_t streams = 64 / lanes;
  Floats s[streams] = {};
  int64_t j = 0;
  for (; j + 64 <= width; j += 64) {
    for (int64_t i = 0; i < streams; ++i) s[i] += f(j + i * lanes, Full{});
  }
#pragma GCC unroll 16  // so that the sums stay in registers
  for (int64_t i = 0; i < streams; ++i, j += lanes) {
    if (j + lanes <= width) s[i] += f(j, Full{});
    else if (j < width) s[i] += f(j, Part{width - j});
  }
  for (int64_t n = streams / 2; n > 0; n /= 2) {
    for (int64_t i = 0; i < n; ++i) s[i] += s[i + n];
  }
  return sum(s[0]);
}

// ---- functions ----------------------------------------------------------------------------------------------------------

QUELL_INLINE Floats magnitude(Floats x) { return reinterpret_cast<Floats>(reinterpret_cast<Words>(x) & 0x7fffffffu); }

// 2^r * 2^n for the n to which adding 1.5 * 2^23 rounded a number; r in [-1/2, 1/2].
QUELL_INLINE Floats power_of_two(Floats r, Floats shifted) {
  Floats p = all(0.00015353362f);  // 2^r, relative error 2e-9, fitted for this program
  p = p * r + 0.00133988750f;
  p = p * r + 0.00961843692f;
  p = p * r + 0.0555033237f;
  p = p * r + 0.240226477f;
  p = p * r + 0.693147182f;
  p = p * r + 1.0f;
  return p * reinterpret_cast<Floats>((reinterpret_cast<Ints>(shifted) << 23) + 0x3f800000);
}
inline constexpr float to_integer = 12582912.0f;  // 1.5 * 2^23

// e^d for d <= 0 within 2 ulp, or, without fused multiply-adds, 2 ulp and |d| 2^-24. 0 below -87, where fp32 ends; NaN stays NaN.
QUELL_INLINE Floats exp_below(Floats d) {
  constexpr float per_octave = 1.44269502f, rest = 1.92596299e-8f;  // together 1 / log 2 to 48 bits
  const Floats shifted = d * per_octave + to_integer;
  return d < -87.0f ? Floats{} : power_of_two(d * per_octave - (shifted - to_integer) + d * rest, shifted);
}

// 2^d for d <= 0 within 2 ulp; 0 below -126.
QUELL_INLINE Floats exp2_below(Floats d) {
  const Floats shifted = d + to_integer;
  return d < -126.0f ? Floats{} : power_of_two(d - (shifted - to_integer), shifted);
}

// 1 / (1 + e^-x) and one minus it, each with its own relative accuracy.
struct Sigmoid {
  Floats value, rest;
};
QUELL_INLINE Sigmoid sigmoid(Floats x) {
  const Floats e = exp_below(-magnitude(x));
  const Floats larger = 1.0f / (1.0f + e), smaller = e * larger;
  return {x < 0.0f ? smaller : larger, x < 0.0f ? larger : smaller};
}

}  // namespace quell::ops::QUELL_ISA
