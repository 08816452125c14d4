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

// Neighbouring lanes are a pair (even, odd): the partner of each lane is its neighbour, and the sine's sign alternates.
template <class T>
void turn_interleaved(const T* x, T* y, const float* cos, const float* sin, float direction, int64_t pairs) {
  const Ints lane = lane_numbers();
  const Floats sign = ((lane & 1) == 1 ? all(1) : all(-1)) * direction;
  const auto twice = [&](const float* from, int64_t count) {
    Floats v{};
    if (count >= lanes / 2) std::memcpy(&v, from, sizeof v / 2);
    else std::memcpy(&v, from, static_cast<size_t>(count) * sizeof(float));
    return __builtin_shuffle(v, lane >> 1);
  };
  blocks(2 * pairs, [&](int64_t j, auto n) {
    const Floats v = load(x + j, n), c = twice(cos + j / 2, pairs - j / 2), s = twice(sin + j / 2, pairs - j / 2);
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
