#include "tools/fit.h"

#include <functional>

#include "base/text.h"
#include "train/memory.h"

namespace quell {
namespace {

// Values of one key, from the nearest to the present one to the farthest.
struct Candidates {
  std::string key, was;
  int64_t count = 0;
  std::function<std::string(RunConfig&, int64_t index)> set;  // applies one; returns it as text
};

using Setter = std::function<void(RunConfig&, int64_t)>;

Candidates listed(const std::string& key, int64_t was, const std::vector<int64_t>& values, const Setter& set) {
  return {key, cat(was), static_cast<int64_t>(values.size()), [values, set](RunConfig& config, int64_t i) {
            set(config, values[static_cast<size_t>(i)]);
            return cat(values[static_cast<size_t>(i)]);
          }};
}

// The multiples of `step` below the present value, downwards.
Candidates below(const std::string& key, int64_t was, int64_t step, const Setter& set) {
  const int64_t count = (was - 1) / step;
  return {key, cat(was), count, [count, step, set](RunConfig& config, int64_t i) {
            set(config, (count - i) * step);
            return cat((count - i) * step);
          }};
}

std::vector<int64_t> larger_divisors(int64_t batch, int64_t than) {
  std::vector<int64_t> small, large;
  for (int64_t d = 1; d <= batch / d; ++d) {
    if (batch % d != 0) continue;
    if (d > than) small.push_back(d);
    if (batch / d > than && batch / d != d) large.insert(large.begin(), batch / d);
  }
  small.insert(small.end(), large.begin(), large.end());
  return small;
}

// Multiples that leave every head even, as rotary embedding wants it, and if possible a multiple of 8.
int64_t width_step(const TransformerConfig& model) {
  if (model.head_width) return model.width % 64 == 0 ? 64 : 4;
  return model.heads * (model.head() % 8 == 0 ? 8 : 4);
}

Candidates lengths(const ModelConfig& model) {
  if (const auto* vit = std::get_if<VitConfig>(&model)) {
    return below("model.image", vit->image, vit->patch,
                 [](RunConfig& c, int64_t v) { std::get<VitConfig>(c.model).image = v; });
  }
  const int64_t context = std::get<DecoderConfig>(model).context;
  return below("model.context", context, context > 128 ? 64 : 1,
               [](RunConfig& c, int64_t v) { std::get<DecoderConfig>(c.model).context = v; });
}

Candidates precisions(Precision precision) {
  const bool narrowest = precision == Precision::bf16;
  return {"precision", std::string(name_of(precision)), narrowest ? 0 : 1, [](RunConfig& c, int64_t) {
            c.precision = c.precision == Precision::fp64 ? Precision::fp32 : Precision::bf16;
            return std::string(name_of(c.precision));
          }};
}

std::vector<Candidates> candidates(const RunConfig& config) {
  const TransformerConfig& model = transformer(config.model);
  const int64_t batch = batch_of(config.data);
  std::vector<Candidates> all{
      listed("micro_batches", config.micro_batches, larger_divisors(batch, config.micro_batches),
             [](RunConfig& c, int64_t v) { c.micro_batches = v; }),
      precisions(config.precision),
      below("data.batch", batch, config.micro_batches, [](RunConfig& c, int64_t v) { batch_of(c.data) = v; }),
      lengths(config.model),
      below("model.layers", model.layers, 1, [](RunConfig& c, int64_t v) { transformer(c.model).layers = v; }),
      below("model.width", model.width, width_step(model), [](RunConfig& c, int64_t v) { transformer(c.model).width = v; })};
  // A copy's context follows from data.length and cannot change alone.
  if (std::holds_alternative<CopyData>(config.data)) std::erase_if(all, [](const Candidates& c) { return c.key == "model.context"; });
  return all;
}

}  // namespace

std::vector<FittingChange> fitting_changes(const RunConfig& config, int64_t outputs, double limit) {
  std::vector<FittingChange> found;
  for (const Candidates& key : candidates(config)) {
    FittingChange best{"", key.was, 0};
    // Memory falls with the distance, but for a rounding of block sizes: halving finds the border.
    for (int64_t low = 0, high = key.count; low < high;) {
      const int64_t middle = low == 0 && high == key.count ? key.count - 1 : (low + high) / 2;
      RunConfig changed = config;
      const std::string value = key.set(changed, middle);
      const double bytes = total_of(memory_classes(changed, outputs));
      if (bytes <= limit) {
        best = {key.key + "=" + value, key.was, bytes};
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (!best.setting.empty()) found.push_back(best);
  }
  return found;
}

}  // namespace quell
