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
void require_same_vocabulary(const TokenSet& training, const TokenSet& evaluated) {
  const Vocabulary *ours = training.vocabulary(), *theirs = evaluated.vocabulary();
  if (ours == nullptr || theirs == nullptr || ours->to_json() == theirs->to_json()) return;
  throw DataError(cat(evaluated.path(), ": its vocabulary is not that of ", training.path(),
                      "; prepare both with one call of `quell data prepare`"));
}

// Likewise classes of other names, or in another order.
void require_same_classes(const ImageSet& training, const ImageSet& evaluated) {
  const std::vector<std::string>&ours = training.class_names(), &theirs = evaluated.class_names();
  for (size_t i = 0; i < theirs.size(); ++i) {
    if (i < ours.size() && ours[i] == theirs[i]) continue;
    throw DataError(cat(evaluated.path(), ": its class ", i, " is ", theirs[i], ", but that of ", training.path(), " is ",
                        i < ours.size() ? ours[i] : "not there", "; both need the same classes"));
  }
}

FixedSet open_fixed(const std::string& path, const TokenData& data, const DecoderConfig& model, const TokenSource& training, int64_t count,
                    const Progress& progress) {
  TokenSet set = TokenSet::open(path, data.type, *model.vocabulary, progress);
  require_same_vocabulary(training.tokens(), set);
  return FixedTokens(std::move(set), model.context, count, data.cross_documents);
}

FixedSet open_fixed(const std::string& path, const ImageData& data, const VitConfig& model, const ImageSource& training, int64_t count,
                    const Progress& progress) {
  ImageSet set = ImageSet::open(path, progress);
  require_same_classes(training.set(), set);
  set.check_classes(*model.classes);
  return FixedImages(std::move(set), model.image, model.channels, count, data);
}

}  // namespace

Source open_source(RunConfig& config, const Progress& progress) {
  const auto seed = static_cast<uint64_t>(config.seed);
  if (auto* model = std::get_if<VitConfig>(&config.model)) return open(std::get<ImageData>(config.data), *model, seed, progress);
  return open(std::get<TokenData>(config.data), std::get<DecoderConfig>(config.model), seed, progress);
}

std::vector<EvaluationData> open_evaluations(const RunConfig& config, const Source& training, const Progress& progress) {
  const int64_t count = config.evaluate.batches ? *config.evaluate.batches * batch_of(config.data) : 0;
  std::vector<EvaluationData> sets;
  for (const EvaluationSet& set : config.evaluate.sets) {
    if (const auto* images = std::get_if<ImageSource>(&training)) {
      sets.push_back({set.name, open_fixed(set.data, std::get<ImageData>(config.data), std::get<VitConfig>(config.model), *images, count, progress)});
    } else {
      sets.push_back({set.name, open_fixed(set.data, std::get<TokenData>(config.data), std::get<DecoderConfig>(config.model),
                                           std::get<TokenSource>(training), count, progress)});
    }
  }
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
