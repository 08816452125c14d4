#include "train/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace quell {
namespace {

// Ids by falling logit, cut by top-k; equal logits keep the order of ids.
std::vector<int64_t> ranked(const std::vector<double>& logits, const std::optional<int64_t>& top_k) {
  std::vector<int64_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int64_t a, int64_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
  if (top_k && *top_k < static_cast<int64_t>(ids.size())) ids.resize(static_cast<size_t>(*top_k));
  return ids;
}

int64_t draw(const std::vector<double>& logits, const SampleOptions& options, double uniform) {
  const std::vector<int64_t> ids = ranked(logits, options.top_k);
  if (options.temperature == 0) return ids.front();
  std::vector<double> weights;
  double total = 0;
  for (const int64_t id : ids) {
    weights.push_back(std::exp((logits[size_t(id)] - logits[size_t(ids.front())]) / options.temperature));
    total += weights.back();
  }
  size_t kept = 0;
  double mass = 0;
  while (kept < weights.size() && (kept == 0 || mass < options.top_p * total)) mass += weights[kept++];
  double left = uniform * mass;
  for (size_t i = 0; i < kept; ++i) {
    left -= weights[i];
    if (left < 0) return ids[i];
  }
  return ids[kept - 1];
}

std::vector<double> last_logits(const Decoder& model, Kernels kernels, const std::vector<int64_t>& tokens) {
  const auto context = static_cast<size_t>(model.config().context);
  const size_t first = tokens.size() > context ? tokens.size() - context : 0;
  const at::Tensor input = at::tensor(std::vector<int64_t>(tokens.begin() + static_cast<int64_t>(first), tokens.end())).unsqueeze(0);
  Forward forward;
  forward.kernels = kernels;
  const at::Tensor x_BTC = model(forward, input);
  at::Tensor logits = model.logits(x_BTC.select(1, x_BTC.size(1) - 1), kernels).to(at::kDouble).squeeze(0).contiguous();
  if (const auto cap = model.config().output.softcap) logits = (logits / *cap).tanh() * *cap;
  return {logits.data_ptr<double>(), logits.data_ptr<double>() + logits.numel()};
}

}  // namespace

std::vector<int64_t> sample(const Decoder& model, Kernels kernels, std::vector<int64_t> tokens, const SampleOptions& options,
                            const std::function<void(int64_t)>& each) {
  require(!tokens.empty(), "sample: the prompt has no token");
  at::NoGradGuard no_gradients;
  const uint64_t key = key_of(options.seed, "sample");
  for (int64_t i = 0; i < options.tokens; ++i) {
    const std::vector<double> logits = last_logits(model, kernels, tokens);
    tokens.push_back(draw(logits, options, unit_double(key, static_cast<uint64_t>(i))));
    if (each) each(tokens.back());
  }
  return tokens;
}

std::string sample_text(const Run& run, const std::function<void(int64_t)>& each) {
  const Vocabulary* vocabulary = vocabulary_of(run.source);
  std::vector<int64_t> prompt{0};
  if (vocabulary != nullptr) {
    const std::string& text = run.config.evaluate.prompt;
    const std::vector<uint32_t> ids = vocabulary->encode(text.empty() ? "\n" : text, "evaluate.prompt");
    prompt.assign(ids.begin(), ids.end());
  }
  SampleOptions options;
  options.tokens = run.config.evaluate.sample;
  options.seed = static_cast<uint64_t>(run.config.seed);
  const std::vector<int64_t> tokens = sample(std::get<Decoder>(run.model), run.config.kernels, prompt, options, each);
  if (vocabulary != nullptr) return vocabulary->decode(tokens);
  std::vector<std::string> ids;
  for (const int64_t token : tokens) ids.push_back(std::to_string(token));
  return join(ids, " ");
}

}  // namespace quell
