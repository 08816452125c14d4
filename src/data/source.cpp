#include "data/source.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

template <class Value>
at::Tensor take(std::vector<Value>&& values, std::initializer_list<int64_t> shape) {
  auto* owned = new std::vector<Value>(std::move(values));
  return at::from_blob(
      owned->data(), shape, [owned](void*) { delete owned; }, at::TensorOptions().dtype(c10::CppTypeToScalarType<Value>::value));
}

// Attention and targets need the documents only where a window can hold more than one.
bool separates(const TokenSet& set, bool cross_documents) { return !cross_documents && set.document_count() > 1; }

void check_usable(const TokenSet& set, int64_t context, bool cross_documents) {
  if (set.tokens() < context + 1) {
    throw DataError(cat(set.path(), ": ", set.tokens(), " tokens are too few for one window of model.context + 1 = ", context + 1,
                        ": use a longer text or a smaller context"));
  }
  if (!cross_documents && !set.has_documents()) {
    throw DataError(set.path() +
                    ": data.cross_documents: false needs to know where documents begin, which a raw file does not "
                    "say: prepare the text with quell data prepare, or leave the key out");
  }
}

// Fills samples of one shape from windows of `set`. begin_of(row) is the first token, position_of(row) the sample's
// number.
template <class Begin, class Position>
HostBatch fill(const TokenSet& set, int64_t samples, int64_t context, bool separate, const Begin& begin_of,
               const Position& position_of) {
  HostBatch batch;
  batch.samples = samples;
  batch.context = context;
  const auto size = static_cast<size_t>(samples * context), width = static_cast<size_t>(context);
  batch.inputs.resize(size);
  batch.targets.resize(size);
  if (separate) batch.documents.resize(size);
  std::vector<int64_t> window(width + 1), documents(separate ? width + 1 : 0);
  const auto scored = std::make_unique<bool[]>(width);
  for (int64_t row = 0; row < samples; ++row) {
    const int64_t begin = begin_of(row);
    const size_t at = static_cast<size_t>(row) * width;
    set.read(begin, context + 1, window.data());
    set.scored(begin + 1, context, scored.get());
    std::copy_n(window.begin(), width, batch.inputs.begin() + static_cast<std::ptrdiff_t>(at));
    for (size_t i = 0; i < width; ++i) batch.targets[at + i] = scored[i] ? window[i + 1] : -1;
    if (separate) {
      set.documents(begin, context + 1, documents.data());
      for (size_t i = 0; i < width; ++i) {
        batch.documents[at + i] = documents[i];
        if (documents[i + 1] != documents[i]) batch.targets[at + i] = -1;
      }
    }
    batch.positions.push_back(position_of(row));
  }
  return batch;
}

}  // namespace

Batch to_tensors(HostBatch&& host) {
  const int64_t b = host.samples, t = host.context;
  Batch batch;
  if (host.channels > 0) {
    batch.images_BCHW = take(std::move(host.images), {b, host.channels, host.height, host.width});
    batch.targets_BT = take(std::move(host.targets), {b});
    batch.samples_B = take(std::move(host.positions), {b});
    return batch;
  }
  batch.inputs_BT = take(std::move(host.inputs), {b, t});
  batch.targets_BT = take(std::move(host.targets), {b, t});
  if (!host.documents.empty()) batch.documents_BT = take(std::move(host.documents), {b, t});
  if (!host.answers.empty()) batch.answers_BT = take(std::move(host.answers), {b, t});
  batch.samples_B = take(std::move(host.positions), {b});
  return batch;
}

TokenSource::TokenSource(TokenSet set, int64_t context, uint64_t seed, bool cross_documents)
    : set_((check_usable(set, context, cross_documents), std::move(set))),
      windows_(set_.tokens(), context, seed),
      context_(context),
      cross_documents_(cross_documents) {}

HostBatch TokenSource::read(int64_t first, int64_t count) const {
  return fill(
      set_, count, context_, separates(set_, cross_documents_), [&](int64_t row) { return windows_.begin(first + row); },
      [&](int64_t row) { return first + row; });
}

int64_t TokenSource::epoch_samples() const { return windows_.count(); }

FixedTokens::FixedTokens(TokenSet set, int64_t context, int64_t count, bool cross_documents)
    : set_(std::move(set)), context_(context), cross_documents_(cross_documents) {
  check_usable(set_, context, cross_documents);
  const int64_t all = fixed_window_count(set_.tokens(), context);
  count_ = count == 0 ? all : std::min(count, all);
}

HostBatch FixedTokens::read(int64_t first, int64_t count) const {
  require(first >= 0 && count >= 0 && first + count <= count_, "FixedTokens: samples outside the set");
  return fill(
      set_, count, context_, separates(set_, cross_documents_),
      [&](int64_t row) { return fixed_window(first + row, count_, set_.tokens(), context_); },
      [&](int64_t row) { return first + row; });
}

}  // namespace quell
