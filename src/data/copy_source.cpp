#include "data/copy_source.h"

#include <algorithm>

#include "base/error.h"

namespace quell {

HostBatch CopySource::read(int64_t first, int64_t count) const {
  const int64_t length = config_.length, context = config_.context();
  HostBatch batch;
  batch.samples = count;
  batch.context = context;
  batch.inputs.resize(static_cast<size_t>(count * context));
  batch.targets.assign(static_cast<size_t>(count * context), -1);
  std::vector<int64_t> string(static_cast<size_t>(length));
  for (int64_t row = 0; row < count; ++row) {
    draw_ids(key_, first + row, config_.symbols, length, string.data());
    const auto inputs = batch.inputs.begin() + row * context, targets = batch.targets.begin() + row * context;
    std::copy(string.begin(), string.end(), inputs);
    inputs[length] = config_.symbols;
    std::copy(string.begin(), string.end() - 1, inputs + length + 1);
    std::copy(string.begin(), string.end(), targets + length);
    batch.positions.push_back(first + row);
  }
  return batch;
}

HostBatch FixedCopies::read(int64_t first, int64_t count) const {
  require(first >= 0 && count >= 0 && first + count <= count_, "FixedCopies: samples outside the set");
  HostBatch batch = source_.read(first, count);
  const int64_t length = config().length, context = config().context();
  batch.answers.assign(batch.targets.size(), -1);
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t i = 0; i < length; ++i) batch.answers[static_cast<size_t>(row * context + length + i)] = i;
  }
  return batch;
}

}  // namespace quell
