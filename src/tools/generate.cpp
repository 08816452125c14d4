#include "tools/generate.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/weights.h"
#include "tools/run_files.h"
#include "train/start.h"

namespace quell {
namespace {

// Bytes of an incomplete UTF-8 character stay behind until the rest has come.
class Utf8Stream {
 public:
  explicit Utf8Stream(const std::function<void(const std::string&)>& write) : write_(write) {}
  void push(const std::string& bytes) {
    waiting_ += bytes;
    const size_t bad = first_invalid_utf8(waiting_);
    const bool incomplete = bad != std::string::npos && waiting_.size() - bad < 4;
    const size_t ready = incomplete ? bad : waiting_.size();
    if (ready > 0) write_(waiting_.substr(0, ready));
    waiting_.erase(0, ready);
  }
  ~Utf8Stream() {
    if (!waiting_.empty()) write_(waiting_);
  }

 private:
  const std::function<void(const std::string&)>& write_;
  std::string waiting_;
};

void check(const SampleOptions& options) {
  // Written so that a NaN, which passes the parser's ranges, is refused too.
  // The parser makes the largest integer of one that is too large, and the text would have no end.
  constexpr int64_t most = 1'000'000'000;
  if (options.tokens < 0 || options.tokens > most) throw UsageError(cat("--tokens: ", options.tokens, " is not in [0, ", most, "]"));
  if (!(options.temperature >= 0)) throw UsageError(cat("--temperature: ", options.temperature, " is not a number from 0 up"));
  if (!(options.top_p >= 0 && options.top_p <= 1)) throw UsageError(cat("--top-p: ", options.top_p, " is not in [0, 1]"));
}

// Here a character that the vocabulary lacks is a mistake of the command line, not of data.
std::vector<uint32_t> prompt_ids(const Vocabulary& vocabulary, const std::string& prompt) {
  if (prompt.empty()) throw UsageError("--prompt: empty; give at least one character, or leave it out to begin with a new line");
  try {
    return vocabulary.encode(prompt, "--prompt");
  } catch (const DataError& problem) {
    const bool is_standard = prompt == GenerateOptions{}.prompt;
    throw UsageError(cat(problem.what(), is_standard ? "; give a --prompt that it has, in place of the new line that is the default" : ""));
  }
}

}  // namespace

void generate(const GenerateOptions& options, const std::function<void(const std::string&)>& write) {
  check(options.sample);
  const RunConfig config = config_of_run(options.run);
  const auto* decoder = std::get_if<DecoderConfig>(&config.model);
  if (decoder == nullptr) throw UsageError(options.run + ": a vision transformer writes no text");
  const std::string vocabulary_path = require_file(options.run, "vocabulary.json", "vocabulary: its data were token ids without text");
  const std::string weights_path = require_file(options.run, "weights.safetensors", "weights: the run has not ended");
  const Vocabulary vocabulary = Vocabulary::from_json(parse_json(files::read(vocabulary_path, 64 << 20), vocabulary_path),
                                                      vocabulary_path);
  const std::vector<uint32_t> ids = prompt_ids(vocabulary, options.prompt);  // before the weights, which may take long
  prepare_process(config);

  ParameterList parameters;
  const Decoder model(parameters, *decoder);
  Arena arena(parameters, {.precision = config.precision, .world = 1, .device = at::kCPU});
  load_weights(weights_path, parameters, arena);

  const Kernels kernels = config.precision == Precision::fp64 ? Kernels::reference : config.kernels;
  write(options.prompt);
  Utf8Stream stream(write);
  sample(model, kernels, {ids.begin(), ids.end()}, options.sample,
         [&](int64_t token) { stream.push(vocabulary.decode({token})); });
}

}  // namespace quell
