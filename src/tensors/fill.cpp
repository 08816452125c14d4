// Draws from counters: element i of a tensor is a function of (key, i), whichever thread computes it. Normal values
// come in pairs, (2j, 2j + 1) from one Philox block, by Box and Muller's transform in double precision.
#include "tensors/fill.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"

namespace quell {
namespace {

constexpr int64_t grain = 4096;
constexpr double truncation = 3;

double unit_of(uint32_t high, uint32_t low) {
  return static_cast<double>((static_cast<uint64_t>(high) << 32 | low) >> 11) * 0x1p-53;
}

std::array<double, 2> normal_pair(uint64_t key, uint64_t pair, uint64_t attempt) {
  const auto bits = philox(key, pair, attempt);
  // 1 - u lies in (0, 1], where the logarithm is finite.
  const double radius = std::sqrt(-2 * std::log(1 - unit_of(bits[0], bits[1])));
  const double angle = 2 * std::numbers::pi * unit_of(bits[2], bits[3]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

std::array<double, 2> truncated_pair(uint64_t key, uint64_t pair) {
  std::array<double, 2> drawn = normal_pair(key, pair, 0);
  for (size_t side = 0; side < 2; ++side) {
    for (uint64_t attempt = 1; std::abs(drawn[side]) > truncation; ++attempt) {
      drawn[side] = normal_pair(key, pair, attempt)[side];
    }
  }
  return drawn;
}

template <class T>
void fill_normal(T* out, int64_t size, const Initial& initial, uint64_t key) {
  const bool truncated = initial.kind == Initial::Kind::truncated_normal;
  at::parallel_for(0, (size + 1) / 2, grain, [&](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      const auto drawn = truncated ? truncated_pair(key, pair) : normal_pair(key, pair, 0);
      out[2 * pair] = static_cast<T>(initial.a * drawn[0]);
      if (2 * pair + 1 < size) out[2 * pair + 1] = static_cast<T>(initial.a * drawn[1]);
    }
  });
}

template <class T>
void fill_mask(T* out, int64_t size, double probability, uint64_t key) {
  const T kept = static_cast<T>(1 / (1 - probability));
  at::parallel_for(0, (size + 3) / 4, grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto bits = philox(key, block);
      for (int64_t i = 4 * block; i < std::min(4 * block + 4, size); ++i) {
        out[i] = bits[i - 4 * block] * 0x1p-32 < probability ? T(0) : kept;
      }
    }
  });
}

}  // namespace

void fill(at::Tensor& flat, const Initial& initial, uint64_t key) {
  require(flat.device().is_cpu() && flat.dim() == 1 && flat.is_contiguous(), "fill: wants a flat CPU tensor");
  if (initial.kind == Initial::Kind::constant) {
    flat.fill_(initial.a);
  } else if (flat.scalar_type() == at::kDouble) {
    fill_normal(flat.mutable_data_ptr<double>(), flat.numel(), initial, key);
  } else {
    fill_normal(flat.mutable_data_ptr<float>(), flat.numel(), initial, key);
  }
}

void fill(ParameterList& parameters, Arena& arena, uint64_t seed) {
  for (Parameter& parameter : parameters) {
    at::Tensor flat = parameter.value.detach().view({-1});
    at::Tensor drawn = flat.device().is_cpu() ? flat : at::empty_like(flat, flat.options().device(at::kCPU));
    fill(drawn, parameter.initial, key_of(seed, "initial " + parameter.name));
    if (!drawn.is_same(flat)) flat.copy_(drawn);
  }
  arena.refresh_compute();
}

at::Tensor dropout_mask(const at::Tensor& like, double probability, uint64_t key) {
  require(probability >= 0 && probability < 1, "dropout_mask: the probability lies outside [0, 1)");
  const at::ScalarType type = like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor mask = at::empty(like.sizes(), at::TensorOptions().dtype(type));
  if (type == at::kDouble) {
    fill_mask(mask.mutable_data_ptr<double>(), mask.numel(), probability, key);
  } else {
    fill_mask(mask.mutable_data_ptr<float>(), mask.numel(), probability, key);
  }
  return mask.to(like.options());
}

at::Tensor dropout_masks(const at::Tensor& like_B, double probability, uint64_t key, const at::Tensor& samples_B) {
  require(samples_B.defined() && samples_B.size(0) == like_B.size(0),
          "dropout: a sample index for each sample is needed");
  const auto samples = samples_B.accessor<int64_t, 1>();
  std::vector<at::Tensor> masks;
  for (int64_t b = 0; b < like_B.size(0); ++b) {
    masks.push_back(dropout_mask(like_B[b], probability, key_of(key, static_cast<uint64_t>(samples[b]))));
  }
  return at::stack(masks);
}

}  // namespace quell
