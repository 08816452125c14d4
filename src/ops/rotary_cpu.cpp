// The rotary kernel: both pairings, fp32 and bf16 storage, arithmetic in fp32.
#include "ops/rotary_cpu.h"

#include "ops/simd.h"

namespace quell::ops::QUELL_ISA {
namespace {

template <class T>
void turn_halves(const T* x, T* y, const float* cos, const float* sin, float direction, int64_t pairs) {
  blocks(pairs, [&](int64_t j, auto n) {
    const Floats x1 = load(x + j, n), x2 = load(x + pairs + j, n), c = load(cos + j, n), s = direction * load(sin + j, n);
    store(y + j, x1 * c - x2 * s, n);
    store(y + pairs + j, x2 * c + x1 * s, n);
  });
}

using Two = float __attribute__((vector_size(8)));
QUELL_INLINE Four twice(Two x) { return __builtin_shufflevector(x, x, 0, 0, 1, 1); }
QUELL_INLINE Eight twice(Four x) { return __builtin_shufflevector(x, x, 0, 0, 1, 1, 2, 2, 3, 3); }
QUELL_INLINE Sixteen twice(Eight x) { return __builtin_shufflevector(x, x, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7); }

// a, b, ... as a, a, b, b, ...: one number of the table for both lanes of a pair.
QUELL_INLINE Floats load_twice(const float* from, Full) {
  float __attribute__((vector_size(2 * lanes))) half;
  std::memcpy(&half, from, sizeof half);
  return twice(half);
}
QUELL_INLINE Floats load_twice(const float* from, Part part) {
  float block[lanes / 2] = {};
  for (int64_t i = 0; i < part.count / 2; ++i) block[i] = from[i];
  return load_twice(block, Full{});
}

// Neighbouring lanes are a pair (even, odd): the partner of each lane is its neighbour, and the sine's sign alternates.
template <class T>
void turn_interleaved(const T* x, T* y, const float* cos, const float* sin, float direction, int64_t pairs) {
  const Ints lane = lane_numbers();
  const Floats sign = (lane & 1) == 1 ? all(direction) : all(-direction);
  blocks(2 * pairs, [&](int64_t j, auto n) {
    const Floats v = load(x + j, n), c = load_twice(cos + j / 2, n), s = load_twice(sin + j / 2, n);
    store(y + j, v * c + __builtin_shuffle(v, lane ^ 1) * (s * sign), n);
  });
}

template <class T>
void rotate_rows(const RotaryRows& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t b = row / a.length, t = row % a.length;
    const float *cos = a.cos + t * a.pairs, *sin = a.sin + t * a.pairs;
    for (int64_t h = 0; h < a.heads; ++h) {
      const T* x = static_cast<const T*>(a.x) + b * a.batch_stride + t * a.position_stride + h * a.head_stride;
      T* y = static_cast<T*>(a.y) + (row * a.heads + h) * a.width;
      if (a.interleaved) turn_interleaved(x, y, cos, sin, a.direction, a.pairs);
      else turn_halves(x, y, cos, sin, a.direction, a.pairs);
      const int64_t turned = 2 * a.pairs;
      if (turned < a.width) std::memcpy(y + turned, x + turned, static_cast<size_t>(a.width - turned) * sizeof(T));
    }
  }
}

void rotate(const RotaryRows& a, int64_t begin, int64_t end) {
  return a.bf16 ? rotate_rows<Bf16>(a, begin, end) : rotate_rows<float>(a, begin, end);
}

}  // namespace

extern const RotaryKernels rotary_kernels{rotate};

}  // namespace quell::ops::QUELL_ISA
