#include "data/sources.h"

#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace quell {
namespace {

constexpr int64_t endless = std::numeric_limits<int64_t>::max();

DataFacts facts(const TokenSource& source) { return facts_of(source.tokens()); }
DataFacts facts(const ImageSource& source) { return facts_of(source.set()); }
DataFacts facts(const CopySource&) { return {CopyData::kind_name, "", "samples", endless}; }
DataFacts facts(const RandomSource&) { return {RandomData::kind_name, "", "samples", endless}; }
DataFacts facts(const FixedTokens& set) { return facts_of(set.tokens()); }
DataFacts facts(const FixedImages& set) { return facts_of(set.set()); }
DataFacts facts(const FixedCopies& set) { return {CopyData::kind_name, "", "samples", set.samples()}; }
DataFacts facts(const FixedRandom& set) { return {RandomData::kind_name, "", "samples", set.samples()}; }

template <class Any>
HostBatch read_any(const Any& of, int64_t first, int64_t count) try {
  return std::visit([&](const auto& s) { return s.read(first, count); }, of);
} catch (const MachineError& problem) {
  throw UnreadableData(problem.what());
}

template <class Config>
constexpr bool is_read = requires(const Config& config) { config.train; };

std::string text_of(const std::string& path, const BrokenImages& broken) {
  if (broken.count() == 0) return "";
  return cat(path, ": ", broken.count(), " samples were left out as broken (data.on_broken: skip); the first: ", broken.first());
}

}  // namespace

std::string broken_text(const Source& source) {
  const auto* images = std::get_if<ImageSource>(&source);
  return images == nullptr ? "" : text_of(images->set().path(), images->broken());
}
std::string broken_text(const FixedSet& set) {
  const auto* images = std::get_if<FixedImages>(&set);
  return images == nullptr ? "" : text_of(images->set().path(), images->broken());
}

const std::string* train_path(const DataConfig& config) {
  return std::visit(
      [](const auto& c) -> const std::string* {
        if constexpr (is_read<std::decay_t<decltype(c)>>) return &c.train;
        return nullptr;
      },
      config);
}
std::string kind_of(const DataConfig& config) {
  return std::visit([](const auto& c) -> std::string { return c.kind_name; }, config);
}
int64_t& batch_of(DataConfig& config) {
  return std::visit([](auto& c) -> int64_t& { return c.batch; }, config);
}
int64_t batch_of(const DataConfig& config) {
  return std::visit([](const auto& c) { return c.batch; }, config);
}

HostBatch read(const Source& source, int64_t first, int64_t count) { return read_any(source, first, count); }
int64_t epoch_samples(const Source& source) {
  if (const auto* tokens = std::get_if<TokenSource>(&source)) return tokens->epoch_samples();
  if (const auto* images = std::get_if<ImageSource>(&source)) return images->epoch_samples();
  return endless;
}
const Vocabulary* vocabulary_of(const Source& source) {
  const auto* tokens = std::get_if<TokenSource>(&source);
  return tokens == nullptr ? nullptr : tokens->tokens().vocabulary();
}

HostBatch read(const FixedSet& set, int64_t first, int64_t count) { return read_any(set, first, count); }
int64_t samples_of(const FixedSet& set) {
  return std::visit([](const auto& s) { return s.samples(); }, set);
}

DataFacts facts_of(const TokenSet& set) {
  const Vocabulary* vocabulary = set.vocabulary();
  return {set.path(), set.digest(), "tokens", set.tokens(), set.parts(), vocabulary == nullptr ? "" : xxh3_128_hex(vocabulary->to_json().dump())};
}
DataFacts facts_of(const ImageSet& set) { return {set.path(), set.digest(), "images", set.size(), set.parts()}; }
DataFacts facts_of(const Source& source) {
  return std::visit([](const auto& s) { return facts(s); }, source);
}
DataFacts facts_of(const FixedSet& set) {
  return std::visit([](const auto& s) { return facts(s); }, set);
}

}  // namespace quell
