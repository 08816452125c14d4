#include "train/sources.h"

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

TokenSource open(const TokenData& data, DecoderConfig& model, uint64_t seed, const Progress& progress) {
  TokenSet set = TokenSet::open(data.train, data.type, model.vocabulary.value_or(0), progress);
  if (!model.vocabulary) model.vocabulary = set.vocabulary_size();
  return TokenSource(std::move(set), model.context, seed, data.cross_documents);
}

ImageSource open(const ImageData& data, VitConfig& model, uint64_t seed, const Progress& progress) {
  ImageSet set = ImageSet::open(data.train, progress);
  if (!model.classes) model.classes = set.classes();
  set.check_classes(*model.classes);
  return ImageSource(std::move(set), model.image, model.channels, seed, data);
}

// Ids that mean other characters would be scored without a sign of it.
void require_same_vocabulary(const TokenSet& set, const Labels& labels) {
  if (!labels.vocabulary || set.vocabulary() == nullptr || labels.vocabulary->to_json() == set.vocabulary()->to_json()) return;
  throw DataError(cat(set.path(), ": its vocabulary is not that of ", labels.from, "; prepare both with one call of `quell data prepare`"));
}

// Likewise classes of other names, or in another order.
void require_same_classes(const ImageSet& set, const Labels& labels) {
  const std::vector<std::string>& ours = labels.classes;
  if (ours.empty()) return;  // not known
  for (size_t i = 0; i < set.class_names().size(); ++i) {
    if (i < ours.size() && ours[i] == set.class_names()[i]) continue;
    throw DataError(cat(set.path(), ": its class ", i, " is ", set.class_names()[i], ", but that of ", labels.from, " is ",
                        i < ours.size() ? ours[i] : "not there", "; both need the same classes"));
  }
}

FixedSet open_fixed(const std::string& path, const TokenData& data, const DecoderConfig& model, const Labels& labels, int64_t count,
                    const Progress& progress) {
  TokenSet set = TokenSet::open(path, data.type, model.vocabulary.value(), progress);
  require_same_vocabulary(set, labels);
  return FixedTokens(std::move(set), model.context, count, data.cross_documents);
}

FixedSet open_fixed(const std::string& path, const ImageData& data, const VitConfig& model, const Labels& labels, int64_t count,
                    const Progress& progress) {
  ImageSet set = ImageSet::open(path, progress);
  require_same_classes(set, labels);
  set.check_classes(model.classes.value());
  return FixedImages(std::move(set), model.image, model.channels, count, data);
}

}  // namespace

Source open_source(RunConfig& config, const Progress& progress) {
  const auto seed = static_cast<uint64_t>(config.seed);
  if (auto* model = std::get_if<VitConfig>(&config.model)) return open(std::get<ImageData>(config.data), *model, seed, progress);
  return open(std::get<TokenData>(config.data), std::get<DecoderConfig>(config.model), seed, progress);
}

Labels labels_of(const Source& source) {
  Labels labels{.from = facts_of(source).path, .vocabulary = {}, .classes = {}};
  if (const Vocabulary* vocabulary = vocabulary_of(source)) labels.vocabulary = *vocabulary;
  if (const auto* images = std::get_if<ImageSource>(&source)) labels.classes = images->set().class_names();
  return labels;
}

FixedSet open_set(const RunConfig& config, const std::string& path, int64_t count, const Labels& labels, const Progress& progress) {
  if (const auto* model = std::get_if<VitConfig>(&config.model)) {
    return open_fixed(path, std::get<ImageData>(config.data), *model, labels, count, progress);
  }
  return open_fixed(path, std::get<TokenData>(config.data), std::get<DecoderConfig>(config.model), labels, count, progress);
}

std::vector<EvaluationData> open_evaluations(const RunConfig& config, const Labels& labels, const Progress& progress) {
  const int64_t count = config.evaluate.batches ? *config.evaluate.batches * batch_of(config.data) : 0;
  std::vector<EvaluationData> sets;
  for (const EvaluationSet& set : config.evaluate.sets) sets.push_back({set.name, open_set(config, set.data, count, labels, progress)});
  return sets;
}

int64_t outputs_of(RunConfig config) {
  if (auto* vit = std::get_if<VitConfig>(&config.model)) {
    if (!vit->classes) open_source(config, {});
    return *std::get<VitConfig>(config.model).classes;
  }
  if (!std::get<DecoderConfig>(config.model).vocabulary) open_source(config, {});
  return *std::get<DecoderConfig>(config.model).vocabulary;
}

}  // namespace quell
