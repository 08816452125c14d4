// Norm kernels over rows, fp32 and bf16 storage, all arithmetic in fp32. A row is read once from memory: its second and third
// passes find it in the first cache.
#include "ops/norm_cpu.h"

#include "ops/simd.h"

namespace quell::ops::QUELL_ISA {
namespace {

template <class T>
float inverse_size(const NormForward& a, float sum_of_squares) {
  if (a.statistics == NormStatistics::l2) {
    const float size = round_to<T>(__builtin_sqrtf(sum_of_squares)), least = round_to<T>(a.eps);
    return round_to<T>(size < least ? -1.0f / least : 1.0f / size);
  }
  const float mean = round_to<T>(sum_of_squares / static_cast<float>(a.width));
  return round_to<T>(1.0f / __builtin_sqrtf(round_to<T>(mean + a.eps)));
}

// S is the type that intermediate values are rounded to: T with rounding everywhere, else float (no rounding).
template <class T, class S, NormRounding rounding>
void forward_rows(const NormForward& a, int64_t begin, int64_t end) {
  const bool centred = a.statistics == NormStatistics::centred, l2 = a.statistics == NormStatistics::l2;
  Walk walk(a.x_rows, begin);
  for (int64_t row = begin; row < end; ++row, walk.next(a.x_rows)) {
    const T* x = static_cast<const T*>(a.x) + walk.start(a.x_rows);
    float mean = 0;
    if (centred) {
      const float total = sum_blocks(a.width, [&](int64_t j, auto n) { return load(x + j, n); });
      mean = a.mean[row] = round_to<S>(total / static_cast<float>(a.width));
    }
    const float squares = sum_blocks(a.width, [&](int64_t j, auto n) {
      const Floats c = round_to<S>(keep(load(x + j, n) - mean, n));
      return l2 ? c * c : round_to<S>(c * c);
    });
    a.size[row] = inverse_size<S>(a, squares);
    const float size = __builtin_fabsf(a.size[row]);
    const float* factor = a.factor == nullptr ? nullptr : a.factor + walk.inner * a.factor_stride;
    const float* bias = a.bias == nullptr ? nullptr : a.bias + walk.inner * a.factor_stride;
    T* y = static_cast<T*>(a.y) + row * a.width;
    blocks(a.width, [&](int64_t j, auto n) {
      Floats v = round_to<S>(round_to<S>(load(x + j, n) - mean) * size);
      if constexpr (rounding == NormRounding::normalised || rounding == NormRounding::product) v = round_to<T>(v);
      if (factor != nullptr) v = round_to<S>(v * load(factor + j, n));
      if constexpr (rounding == NormRounding::product) v = round_to<T>(v);
      if (bias != nullptr) v = v + load(bias + j, n);
      store(y + j, v, n);
    });
  }
}

void forward(const NormForward& a, bool bf16, int64_t begin, int64_t end) {
  if (!bf16) return forward_rows<float, float, NormRounding::once>(a, begin, end);
  switch (a.rounding) {
    case NormRounding::once: return forward_rows<Bf16, float, NormRounding::once>(a, begin, end);
    case NormRounding::normalised: return forward_rows<Bf16, float, NormRounding::normalised>(a, begin, end);
    case NormRounding::product: return forward_rows<Bf16, float, NormRounding::product>(a, begin, end);
    case NormRounding::everywhere: return forward_rows<Bf16, Bf16, NormRounding::everywhere>(a, begin, end);
  }
}

// n = (x - mean) * r, g = dy * factor; dx = r * (g - n * a - b) with a = mean(g n), b = mean(g) (centred only); for l2 a is the
// sum, and 0 where eps decided r, which then is a constant.
template <class T>
void backward_rows(const NormBackward& a, int64_t begin, int64_t end, float* dfactor, float* dbias) {
  const bool centred = a.statistics == NormStatistics::centred;
  const float share = a.statistics == NormStatistics::l2 ? 1.0f : 1.0f / static_cast<float>(a.width);
  Walk walk(a.x_rows, begin);
  for (int64_t row = begin; row < end; ++row, walk.next(a.x_rows)) {
    const T* x = static_cast<const T*>(a.x) + walk.start(a.x_rows);
    const T* dy = static_cast<const T*>(a.dy) + walk.start(a.dy_rows);
    const float size = __builtin_fabsf(a.size[row]), mean = centred ? a.mean[row] : 0.0f;
    const int64_t at = walk.inner * a.factor_stride;
    const auto gradient = [&](int64_t j, auto n) {
      const Floats g = load(dy + j, n);
      return a.factor == nullptr ? g : g * load(a.factor + at + j, n);
    };
    const auto normalised = [&](int64_t j, auto n) { return keep((load(x + j, n) - mean) * size, n); };
    float along = 0, average = 0;
    if (!(a.size[row] < 0)) {
      along = share * sum_blocks(a.width, [&](int64_t j, auto n) { return gradient(j, n) * normalised(j, n); });
    }
    if (centred) average = share * sum_blocks(a.width, gradient);
    T* dx = static_cast<T*>(a.dx) + row * a.width;
    blocks(a.width, [&](int64_t j, auto n) {
      const Floats v = normalised(j, n);
      store(dx + j, size * (gradient(j, n) - v * along - average), n);
      if (dfactor != nullptr) store(dfactor + at + j, load(dfactor + at + j, n) + load(dy + j, n) * v, n);
      if (dbias != nullptr) store(dbias + at + j, load(dbias + at + j, n) + load(dy + j, n), n);
    });
  }
}

void backward(const NormBackward& a, bool bf16, int64_t begin, int64_t end, float* dfactor, float* dbias) {
  return bf16 ? backward_rows<Bf16>(a, begin, end, dfactor, dbias) : backward_rows<float>(a, begin, end, dfactor, dbias);
}

void fold(float* part, double* sum, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    sum[j] += static_cast<double>(part[j]);
    part[j] = 0;
  }
}

}  // namespace

extern const NormKernels norm_kernels{forward, backward, fold};

}  // namespace quell::ops::QUELL_ISA
