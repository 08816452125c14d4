#include "train/sources.h"

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

// One overload a kind of data; `model` takes what the configuration leaves to the data.
Source open(const TokenData& data, ModelConfig& model, uint64_t seed, const Progress& progress) {
  auto& decoder = std::get<DecoderConfig>(model);
  TokenSet set = TokenSet::open(data.train, data.type, decoder.vocabulary.value_or(0), progress, data.verify);
  if (!decoder.vocabulary) decoder.vocabulary = set.vocabulary_size();
  return TokenSource(std::move(set), decoder.context, seed, data.cross_documents);
}

Source open(const ImageData& data, ModelConfig& model, uint64_t seed, const Progress& progress) {
  auto& vit = std::get<VitConfig>(model);
  ImageSet set = ImageSet::open(data.train, progress);
  if (!vit.classes) vit.classes = set.classes();
  set.check_classes(*vit.classes);
  return ImageSource(std::move(set), vit.image, vit.channels, seed, data);
}

Source open(const CopyData& data, ModelConfig& model, uint64_t seed, const Progress&) {
  auto& decoder = std::get<DecoderConfig>(model);
  if (!decoder.vocabulary) decoder.vocabulary = data.vocabulary();
  return CopySource(training_key(seed, data.kind_name), data);
}

Source open(const RandomData& data, ModelConfig& model, uint64_t seed, const Progress&) {
  auto& decoder = std::get<DecoderConfig>(model);
  if (!decoder.vocabulary) decoder.vocabulary = data.vocabulary;
  return RandomSource(training_key(seed, data.kind_name), decoder.context, data);
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
    if (i >= ours.size() && set.class_names()[i] == std::to_string(i)) continue;  // a number that training did not meet
    throw DataError(cat(set.path(), ": its class ", i, " is ", set.class_names()[i], ", but that of ", labels.from, " is ",
                        i < ours.size() ? ours[i] : "not there", "; both need the same classes"));
  }
}

FixedSet open_fixed(const EvaluationSet& of, const TokenData& data, const RunConfig& config, const Labels& labels, int64_t count,
                    const Progress& progress) {
  const auto& model = std::get<DecoderConfig>(config.model);
  TokenSet set = TokenSet::open(of.data, data.type, model.vocabulary.value(), progress, data.verify);
  require_same_vocabulary(set, labels);
  return FixedTokens(std::move(set), model.context, count, data.cross_documents);
}

FixedSet open_fixed(const EvaluationSet& of, const ImageData& data, const RunConfig& config, const Labels& labels, int64_t count,
                    const Progress& progress) {
  const auto& model = std::get<VitConfig>(config.model);
  ImageSet set = ImageSet::open(of.data, progress);
  require_same_classes(set, labels);
  set.check_classes(model.classes.value());
  return FixedImages(std::move(set), model.image, model.channels, count, data);
}

FixedSet open_fixed(const EvaluationSet& of, const CopyData& data, const RunConfig&, const Labels&, int64_t count, const Progress&) {
  return FixedCopies(CopySource(evaluation_key(of.name, data.kind_name), data), count);
}

FixedSet open_fixed(const EvaluationSet& of, const RandomData& data, const RunConfig& config, const Labels&, int64_t count,
                    const Progress&) {
  const int64_t context = std::get<DecoderConfig>(config.model).context;
  return FixedRandom(RandomSource(evaluation_key(of.name, data.kind_name), context, data), count);
}

}  // namespace

Source open_source(RunConfig& config, const Progress& progress) {
  return std::visit([&](const auto& data) { return open(data, config.model, static_cast<uint64_t>(config.seed), progress); },
                    config.data);
}

Labels labels_of(const Source& source) {
  Labels labels{.from = facts_of(source).path, .vocabulary = {}, .classes = {}};
  if (const Vocabulary* vocabulary = vocabulary_of(source)) labels.vocabulary = *vocabulary;
  if (const auto* images = std::get_if<ImageSource>(&source)) labels.classes = images->set().class_names();
  return labels;
}

FixedSet open_set(const RunConfig& config, const EvaluationSet& set, int64_t count, const Labels& labels, const Progress& progress) {
  return std::visit([&](const auto& data) { return open_fixed(set, data, config, labels, count, progress); }, config.data);
}

std::vector<EvaluationData> open_evaluations(const RunConfig& config, const Labels& labels, const Progress& progress) {
  const int64_t count = config.evaluate.batches ? *config.evaluate.batches * batch_of(config.data) : 0;
  std::vector<EvaluationData> sets;
  for (const EvaluationSet& set : config.evaluate.sets) sets.push_back({set.name, open_set(config, set, count, labels, progress)});
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
