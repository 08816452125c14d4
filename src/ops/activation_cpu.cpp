// Activation kernels. Each function f is written once as {f(x), f'(x)}; the forward pass uses the first and the compiler drops
// the rest.
#include "ops/activation_cpu.h"

#include "ops/simd.h"

namespace quell::ops::QUELL_ISA {
namespace {

struct Value {
  Floats f, slope;
};

// x * P(X < x) for a standard normal X. The tail P(X < -|x|) is exp(-x^2 / 2) * t * p(t) with t = 1 / (1 + 0.34 |x|) and p a
// minimax polynomial fitted for this program (relative error 3e-8 on [0, 13]), so negative inputs keep their relative accuracy.
struct Gelu {
  QUELL_INLINE static Value at(Floats x) {
    const Floats a = magnitude(x);
    const Floats t = 1.0f / (1.0f + 0.34f * a);
    Floats p = all(-0.0263702534f);
    p = p * t + 0.140672088f;
    p = p * t - 0.27546227f;
    p = p * t + 0.204732612f;
    p = p * t - 0.0463950336f;
    p = p * t + 0.116034947f;
    p = p * t + 0.115035094f;
    p = p * t + 0.136133477f;
    p = p * t + 0.135619342f;
    constexpr float half_per_octave = 0.721347511f, inverse_root_two_pi = 0.39894228f;
    const Floats bell = exp2_below(a * a * -half_per_octave);
    const Floats tail = bell * (t * p);
    const Floats below = x > 0.0f ? 1.0f - tail : tail;
    return {x * below, below + x * (bell * inverse_root_two_pi)};
  }
};

// 0.5 x (1 + tanh(u)) = x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  QUELL_INLINE static Value at(Floats x) {
    constexpr float twice = 1.59576912f;
    const Floats square = x * x;
    const Sigmoid s = sigmoid(twice * x * (1.0f + 0.044715f * square));
    return {x * s.value, s.value + x * s.value * s.rest * (twice * (1.0f + 3 * 0.044715f * square))};
  }
};

struct Silu {
  QUELL_INLINE static Value at(Floats x) {
    const Sigmoid s = sigmoid(x);
    return {x * s.value, s.value * (1.0f + x * s.rest)};
  }
};

struct ReluSquared {
  QUELL_INLINE static Value at(Floats x) {
    const Floats positive = x < 0.0f ? Floats{} : x;
    return {positive * positive, 2.0f * positive};
  }
};

template <class T>
QUELL_INLINE T* row_of(const void* base, const Rows& rows, int64_t row) {
  const int64_t start = row / rows.inner_count * rows.outer_stride + row % rows.inner_count * rows.inner_stride;
  return const_cast<T*>(static_cast<const T*>(base)) + start;
}

template <class T, class F>
void forward_rows(const ActivationRows& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const T* gate = row_of<T>(a.gate, a.gate_rows, row);
    const T* up = a.up == nullptr ? nullptr : row_of<T>(a.up, a.up_rows, row);
    T* y = static_cast<T*>(a.out) + row * a.width;
    blocks(a.width, [&](int64_t j, auto n) {
      const Floats f = F::at(load(gate + j, n)).f;
      store(y + j, up == nullptr ? f : f * load(up + j, n), n);
    });
  }
}

template <class T, class F>
void backward_rows(const ActivationRows& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const T* gate = row_of<T>(a.gate, a.gate_rows, row);
    const T* up = a.up == nullptr ? nullptr : row_of<T>(a.up, a.up_rows, row);
    const T* dy = row_of<T>(a.dy, a.dy_rows, row);
    T* d_gate = static_cast<T*>(a.out) + row * a.width;
    T* d_up = static_cast<T*>(a.d_up) + row * a.width;
    blocks(a.width, [&](int64_t j, auto n) {
      const Value value = F::at(load(gate + j, n));
      const Floats g = load(dy + j, n);
      if (up == nullptr) return store(d_gate + j, g * value.slope, n);
      store(d_gate + j, g * load(up + j, n) * value.slope, n);
      store(d_up + j, g * value.f, n);
    });
  }
}

template <class F>
void run(const ActivationRows& a, int64_t begin, int64_t end, bool back) {
  if (back) return a.bf16 ? backward_rows<Bf16, F>(a, begin, end) : backward_rows<float, F>(a, begin, end);
  return a.bf16 ? forward_rows<Bf16, F>(a, begin, end) : forward_rows<float, F>(a, begin, end);
}

void run(const ActivationRows& a, int64_t begin, int64_t end, bool back) {
  switch (a.kind) {
    case MlpKind::gelu:
    case MlpKind::geglu: return run<Gelu>(a, begin, end, back);
    case MlpKind::gelu_tanh:
    case MlpKind::geglu_tanh: return run<GeluTanh>(a, begin, end, back);
    case MlpKind::swiglu: return run<Silu>(a, begin, end, back);
    case MlpKind::relu_squared: return run<ReluSquared>(a, begin, end, back);
  }
}

void forward(const ActivationRows& a, int64_t begin, int64_t end) { run(a, begin, end, false); }
void backward(const ActivationRows& a, int64_t begin, int64_t end) { run(a, begin, end, true); }

}  // namespace

extern const ActivationKernels activation_kernels{forward, backward};

}  // namespace quell::ops::QUELL_ISA
