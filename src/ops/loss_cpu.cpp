// Kernels of the losses on output logits, fp32 and bf16 storage, arithmetic in fp32, sums along a row in fp64 over
// pieces of fp32. A row is read from memory once a pass: its second sweep finds it in the second cache.
#include "ops/loss_cpu.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/isa.h"
#include "ops/simd.h"

namespace quell::ops::QUELL_ISA {
namespace {

constexpr int64_t piece = 4096;  // elements whose sum stays in fp32

// tanh within 3 ulp: an odd polynomial (fitted for this program, relative error 5e-9) below 0.625, else by e^(-2 |x|).
QUELL_INLINE Floats tanh(Floats x) {
  const Floats a = x < 0.0f ? -x : x, square = x * x;
  Floats p = all(-0.00570497103f);
  p = p * square + 0.0206390712f;
  p = p * square - 0.0537397079f;
  p = p * square + 0.133314416f;
  p = p * square - 0.333332807f;
  const Floats e = exp_below(-2.0f * a);
  const Floats large = (1.0f - e) / (1.0f + e);
  return a < 0.625f ? x + x * square * p : (x < 0.0f ? -large : large);
}

struct Uncapped {
  QUELL_INLINE Floats value(Floats x) const { return x; }
  QUELL_INLINE Floats slope(Floats) const { return all(1.0f); }  // of value, given the value
};

struct Capped {
  float cap, inverse;
  QUELL_INLINE Floats value(Floats x) const { return cap * tanh(x * inverse); }
  QUELL_INLINE Floats slope(Floats y) const { return 1.0f - (y * inverse) * (y * inverse); }
};

// The end of a row whose width is no multiple of the lanes. Where the row is long enough it is a full block that
// overlaps the one before it, since loading and storing parts is slow.
template <class T>
struct RowEnd {
  Floats x;
  Ints fresh;  // lanes that no full block has
  int64_t begin;
  Part part;

  QUELL_INLINE RowEnd(const T* row, int64_t width) {
    const int32_t left = static_cast<int32_t>(width % lanes);
    part = {width < lanes ? left : lanes};
    begin = width - part.count;
    fresh = width < lanes ? lane_numbers() < left : lane_numbers() >= static_cast<int32_t>(lanes) - left;
    x = width < lanes ? load(row, part) : load(row + begin, Full{});
  }
  QUELL_INLINE void write(T* row, Floats y) const {
    if (part.count == lanes) return store(row + begin, y, Full{});
    store(row, y, part);
  }
};

// pick() over all lanes, in every lane.
template <class Vector, class Pick>
QUELL_INLINE Vector across(Vector x, Pick&& pick) {
  for (int32_t step = lanes / 2; step > 0; step /= 2) x = pick(x, __builtin_shuffle(x, lane_numbers() ^ step));
  return x;
}

// A running maximum in each lane and its first place. NaN is passed over: it comes to light in the sum of exponentials.
struct Largest {
  Floats value = all(-std::numeric_limits<float>::infinity());
  Ints place{};

  QUELL_INLINE void take(Floats x, Ints at) {
    place = x > value ? at : place;
    value = x > value ? x : value;
  }
  QUELL_INLINE void take(const Largest& other) {
    const Ints better = (other.value > value) | ((other.value == value) & (other.place < place));
    place = better ? other.place : place;
    value = better ? other.value : value;
  }
};

struct Found {
  float value;
  int64_t place;  // the first of equal ones
};

template <class T>
Found largest_of(const T* x, int64_t width) {
  constexpr int streams = 4;
  Largest most[streams];
  int64_t j = 0;
  const Ints lane = lane_numbers();
  const auto take = [&](int stream, int64_t from) {
    most[stream].take(load(x + from, Full{}), lane + static_cast<int32_t>(from));
  };
  for (; j + streams * lanes <= width; j += streams * lanes) {
    for (int s = 0; s < streams; ++s) take(s, j + s * lanes);
  }
  for (; j + lanes <= width; j += lanes) take(0, j);
  if (j < width) {
    const RowEnd<T> end(x, width);
    most[1].take(end.fresh ? end.x : most[1].value, lane + static_cast<int32_t>(end.begin));
  }
  for (int s = 1; s < streams; ++s) most[0].take(most[s]);
  const Floats value = across(most[0].value, [](Floats a, Floats b) { return a > b ? a : b; });
  const Ints places = most[0].value == value ? most[0].place : Ints{} + std::numeric_limits<int32_t>::max();
  return {value[0], across(places, [](Ints a, Ints b) { return a < b ? a : b; })[0]};
}

// Sum over a row of f(block).
template <class T, class F>
QUELL_INLINE double sum_of_row(const T* x, int64_t width, F&& f) {
  const int64_t whole = width / lanes * lanes;
  double total = 0;
  for (int64_t begin = 0; begin < whole; begin += piece) {
    const T* const at = x + begin;
    total += sum_blocks(std::min(piece, whole - begin), [&](int64_t j, auto n) { return f(load(at + j, n)); });
  }
  if (whole == width) return total;
  const RowEnd<T> end(x, width);
  return total + sum(end.fresh ? f(end.x) : Floats{});
}

QUELL_INLINE Floats element(const float* x) { return all(*x); }
QUELL_INLINE Floats element(const Bf16* x) {
  return all(__builtin_bit_cast(float, static_cast<uint32_t>(x->bits) << 16));
}

// Two sweeps over a few rows that stay in the cache: so the chains of dependent steps of different rows overlap.
template <class T, class Cap>
void forward_rows(const LossRows& a, const Cap& cap, int64_t begin, int64_t end) {
  const int64_t together = std::max<int64_t>(1, piece / a.vocabulary);
  const auto row_at = [&](int64_t row) { return static_cast<const T*>(a.logits) + row * a.row_stride; };
  for (int64_t first = begin; first < end; first += together) {
    const int64_t last = std::min(first + together, end);
    for (int64_t row = first; row < last; ++row) {
      if (a.targets[row] < 0) continue;
      const Found found = largest_of(row_at(row), a.vocabulary);
      a.largest[row] = cap.value(all(found.value))[0];
      a.argmax[row] = found.place;
    }
    for (int64_t row = first; row < last; ++row) {
      if (a.targets[row] < 0) continue;
      const T* x = row_at(row);
      const float largest = static_cast<float>(a.largest[row]);
      a.sum[row] = sum_of_row(x, a.vocabulary, [&](Floats v) { return exp_below(cap.value(v) - largest); });
      a.target_logit[row] = cap.value(element(x + a.targets[row]))[0];
      if (a.label_smoothing != 0) a.total[row] = sum_of_row(x, a.vocabulary, [&](Floats v) { return cap.value(v); });
    }
  }
}

template <class T, class F>
QUELL_INLINE void replace_row(T* x, int64_t width, F&& slope) {
  const int64_t whole = width / lanes * lanes;
  if (whole == width) return blocks(whole, [&](int64_t j, auto n) { store(x + j, slope(load(x + j, n)), n); });
  const RowEnd<T> end(x, width);  // read before the block that it overlaps is overwritten
  blocks(whole, [&](int64_t j, auto n) { store(x + j, slope(load(x + j, n)), n); });
  end.write(x, slope(end.x));
}

// d objective / d logit = gradient * (p * (1 + 2 z lse) - s / V - [target] (1 - s) + [argmax] 2 max_z largest), times
// the slope of the cap. The two single places are computed from the logits first and written last, so that each is
// rounded once.
template <class T, class Cap>
void backward_rows(const LossRows& a, const Cap& cap, int64_t begin, int64_t end) {
  const float uniform = static_cast<float>(a.gradient * a.label_smoothing / static_cast<double>(a.vocabulary));
  const float to_target = static_cast<float>(a.gradient * (1 - a.label_smoothing));
  for (int64_t row = begin; row < end; ++row) {
    T* x = static_cast<T*>(a.logits) + row * a.row_stride;
    const int64_t target = a.targets[row], argmax = a.argmax[row];
    if (target < 0) {
      std::fill_n(x, a.vocabulary, T{});
      continue;
    }
    const float largest = static_cast<float>(a.largest[row]);
    const double z_factor = a.z == 0 ? 1 : 1 + 2 * a.z * (a.largest[row] + std::log(a.sum[row]));
    const float factor = static_cast<float>(a.gradient * z_factor / a.sum[row]);
    const float to_largest = static_cast<float>(a.gradient * 2 * a.max_z * a.largest[row]);
    const auto slope = [&](Floats v, float shift) {
      const Floats y = cap.value(v);
      return (factor * exp_below(y - largest) + shift) * cap.slope(y);
    };
    const bool pulls_largest = a.max_z != 0 && target != argmax;
    const Floats at_target = slope(element(x + target), (target == argmax ? to_largest : 0.0f) - to_target - uniform);
    const Floats at_largest = pulls_largest ? slope(element(x + argmax), to_largest - uniform) : Floats{};
    replace_row(x, a.vocabulary, [&](Floats v) { return slope(v, -uniform); });
    store(x + target, at_target, Part{1});
    if (pulls_largest) store(x + argmax, at_largest, Part{1});
  }
}

template <class Cap>
void forward_with(const LossRows& a, const Cap& cap, int64_t begin, int64_t end) {
  return a.bf16 ? forward_rows<Bf16>(a, cap, begin, end) : forward_rows<float>(a, cap, begin, end);
}

template <class Cap>
void backward_with(const LossRows& a, const Cap& cap, int64_t begin, int64_t end) {
  return a.bf16 ? backward_rows<Bf16>(a, cap, begin, end) : backward_rows<float>(a, cap, begin, end);
}

Capped cap_of(const LossRows& a) { return {static_cast<float>(a.softcap), static_cast<float>(1 / a.softcap)}; }

void forward(const LossRows& a, int64_t begin, int64_t end) {
  return a.softcap > 0 ? forward_with(a, cap_of(a), begin, end) : forward_with(a, Uncapped{}, begin, end);
}

void backward(const LossRows& a, int64_t begin, int64_t end) {
  return a.softcap > 0 ? backward_with(a, cap_of(a), begin, end) : backward_with(a, Uncapped{}, begin, end);
}

}  // namespace

extern const LossKernels loss_kernels{forward, backward};

}  // namespace quell::ops::QUELL_ISA
