// No dead switch: every key that may stand in a run file, changed alone, changes something that can be observed: the rows of
// metrics.jsonl (all digits, but for times and rates), the files written, the bits of the final weights, or the exit code. The
// echo of the configuration is not looked at. A key of describe() that is neither in the table nor an exception fails the test.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "config/keys.h"
#include "config/load.h"
#include "train/session.h"
#include "train_support.h"

namespace quell {
namespace {

using Settings = std::vector<std::string>;

// What a key is changed to (whole settings, with `; ` between them, where another key must follow), and the settings in which it can
// act at all. An enum without values takes all its choices.
struct Change {
  Settings values;
  Settings context;
};

// clang-format off
const std::map<std::string, Change> changes{
    {"name", {{"other"}, {}}}, {"seed", {{"2"}, {}}},
    {"steps", {{"3"}, {}}}, {"tokens", {{"256"}, {}}}, {"epochs", {{"0.01"}, {}}}, {"time", {{"1e-9"}, {}}}, {"stop_code", {{"9"}, {"time=1e-9"}}},
    {"micro_batches", {{"2"}, {}}}, {"precision", {{}, {}}}, {"device", {{"cuda:0"}, {}}}, {"kernels", {{"reference"}, {}}},
    {"model.vocabulary", {{"64"}, {}}}, {"model.context", {{"12"}, {}}}, {"model.width", {{"24"}, {}}},
    {"model.layers", {{"1"}, {}}}, {"model.heads", {{"4"}, {}}}, {"model.kv_heads", {{"1"}, {}}},
    {"model.head_width", {{"8"}, {}}}, {"model.block", {{}, {}}}, {"model.drop_path", {{"0.5"}, {}}}, {"model.layer_scale", {{"0.1"}, {}}},
    {"model.norm.kind", {{"layernorm"}, {}}}, {"model.norm.eps", {{"0.1"}, {}}}, {"model.norm.weight", {{"false"}, {}}},
    {"model.norm.bias", {{"true"}, {"model.norm.kind=layernorm"}}}, {"model.norm.zero_centered", {{"true"}, {"optimizer.groups.norm_weight.decay=0.1"}}},
    {"model.norm.cast", {{}, {"precision=bf16", "model.norm.kind=rmsnorm"}}}, {"model.norm.place", {{}, {}}},
    {"model.mlp.kind", {{}, {}}}, {"model.mlp.width", {{"32"}, {}}}, {"model.mlp.bias", {{"true"}, {}}},
    {"model.position.kind", {{"learned", "none"}, {}}}, {"model.position.base", {{"100"}, {}}}, {"model.position.width", {{"4"}, {}}},
    {"model.position.pairing", {{}, {}}}, {"model.position.scaling.kind", {{}, {"model.position.scaling.original=8"}}},
    {"model.position.scaling.factor", {{"4"}, {"model.position.scaling.kind=linear"}}},
    {"model.position.scaling.low", {{"2"}, {"model.position.scaling={kind: llama3, original: 16}"}}},
    {"model.position.scaling.high", {{"8"}, {"model.position.scaling={kind: llama3, original: 16}"}}},
    {"model.position.scaling.original", {{"32"}, {"model.position.scaling={kind: llama3, original: 16}"}}},
    {"model.attention.preset", {{"olmo2", "gemma3", "cohere", "chameleon", "llama4", "nanochat", "ngpt", "swinv2"}, {}}},
    {"model.attention.qk_norm.kind", {{}, {"model.attention.qk_norm={eps: 1e-3}"}}},
    {"model.attention.qk_norm.axis", {{}, {"model.attention.qk_norm.weight=none"}}},
    {"model.attention.qk_norm.weight", {{"none", "per_head"}, {}}}, {"model.attention.qk_norm.tie_qk", {{"true"}, {}}},
    {"model.attention.qk_norm.zero_centered", {{"true"}, {"optimizer.groups.qk_norm_weight.decay=0.1"}}},
    {"model.attention.qk_norm.center", {{"false"}, {"model.attention.qk_norm.kind=layernorm"}}},
    {"model.attention.qk_norm.bias", {{"true"}, {"model.attention.qk_norm.kind=layernorm"}}},
    {"model.attention.qk_norm.eps", {{"0.1"}, {}}}, {"model.attention.qk_norm.cast", {{}, {"precision=bf16"}}},
    {"model.attention.qk_norm.rope", {{}, {}}},
    {"model.attention.scale.kind", {{"model.attention.scale={kind: learned, init: 1}", "model.attention.scale={kind: constant, value: 0.3}"}, {}}},
    {"model.attention.scale.value", {{"0.3"}, {"model.attention.scale={kind: constant, value: 0.2}"}}},
    {"model.attention.scale.per_head", {{"true"}, {"model.attention.scale={kind: learned, init: 1}"}}},
    {"model.attention.scale.form", {{}, {"model.attention.scale={kind: learned, init: 2}"}}},
    {"model.attention.scale.init", {{"2"}, {"model.attention.scale={kind: learned, init: 1}"}}},
    {"model.attention.scale.length", {{"9"}, {"model.attention.scale={kind: learned, length: 8}"}}},
    {"model.attention.scale.max", {{"2"}, {"model.attention.scale={kind: learned, form: exp, init: 2}"}}},
    {"model.attention.softcap", {{"0.5"}, {}}}, {"model.attention.dropout", {{"0.3"}, {}}},
    {"model.attention.bias", {{}, {}}}, {"model.attention.window", {{"3"}, {}}}, {"model.attention.causal", {{"false"}, {}}},
    {"model.embedding.norm", {{"true"}, {}}}, {"model.embedding.scale", {{"3"}, {}}},
    {"model.output.tied", {{"true"}, {}}}, {"model.output.softcap", {{"1"}, {}}},
    {"model.init.kind", {{}, {}}}, {"model.init.residual", {{}, {}}}, {"model.init.head", {{"zero"}, {"model.init.head=as_matrix"}}},
    {"model.init.from", {{"nowhere.safetensors"}, {}}},
    {"model.dropout", {{"0.3"}, {}}}, {"model.pattern", {{"[base, alt]"}, {"model.variants={alt: {window: 3}}", "model.pattern=[alt]"}}},
    {"data.train", {{"VALID"}, {}}}, {"data.batch", {{"4"}, {}}}, {"data.type", {{"uint32"}, {}}},
    {"data.cross_documents", {{"false"}, {"data.train=LINES", "evaluate.sets=[]"}}},
    {"data.verify", {{}, {"data.train=DAMAGED", "evaluate.sets=[]"}}},
    {"evaluate.sets.N.name", {{"held"}, {}}}, {"evaluate.sets.N.data", {{"TRAIN"}, {}}}, {"evaluate.every", {{"2"}, {}}},
    {"evaluate.batches", {{"1"}, {}}}, {"evaluate.sample", {{"3"}, {}}}, {"evaluate.prompt", {{"line"}, {"evaluate.sample=3"}}},
    {"loss.z", {{"0.1"}, {}}}, {"loss.max_z", {{"0.1"}, {}}}, {"loss.label_smoothing", {{"0.1"}, {}}},
    {"optimizer.lr", {{"0.002"}, {}}}, {"optimizer.betas", {{"[0.8, 0.95]", "[0.9, 0.9]"}, {}}}, {"optimizer.eps", {{"0.1"}, {}}},
    {"optimizer.weight_decay", {{"0.5"}, {}}}, {"optimizer.decay", {{}, {}}}, {"optimizer.clip.kind", {{}, {"optimizer.clip.limit=0.01", "optimizer.eps=1e-3"}}},
    {"optimizer.clip.limit", {{"0.02"}, {"optimizer.clip.limit=0.01", "optimizer.eps=1e-3"}}},
    {"optimizer.schedule.kind", {{}, {"steps=20", "optimizer.schedule.warmup=2"}}}, {"optimizer.schedule.warmup", {{"3"}, {}}},
    {"optimizer.schedule.final", {{"0.5"}, {}}}, {"optimizer.schedule.steps", {{"3"}, {}}},
    {"optimizer.schedule.decay_steps", {{"3"}, {"optimizer.schedule={kind: wsd, decay_steps: 2}"}}},
    {"optimizer.freeze", {{"[blocks.0.*]"}, {}}},
    {"health.every", {{"2"}, {}}}, {"health.entropy_every", {{"2"}, {}}},
    {"stability.on_nonfinite", {{}, {"optimizer.lr=1e30", "optimizer.schedule.kind=constant"}}},
    {"stability.skip_limit", {{"1"}, {"optimizer.lr=1e30", "optimizer.schedule.kind=constant", "stability.on_nonfinite=skip"}}},
    {"ema", {{"0.5"}, {}}}, {"report.every", {{"2"}, {"health.every=0", "health.entropy_every=0"}}}};

// Keys that only a vision transformer or images have, or whose choices differ there.
const std::map<std::string, Change> vision_changes{
    {"model.image", {{"8"}, {}}}, {"model.channels", {{"3"}, {}}}, {"model.patch", {{"6"}, {}}}, {"model.classes", {{"5"}, {}}},
    {"model.class_token", {{"true"}, {}}}, {"model.registers", {{"2"}, {}}},
    {"model.pool.kind", {{}, {"model.class_token=true"}}}, {"model.pool.norm", {{}, {}}},
    {"model.pool.qk_norm", {{"true"}, {"model.pool.kind=attention"}}},
    {"model.position.kind", {{"sincos", "none"}, {}}},
    {"data.mean", {{"[0.3]"}, {}}}, {"data.std", {{"[0.2]"}, {}}}, {"data.crop", {{"0.5"}, {}}},
    {"resume", {{"must"}, {}}}, {"checkpoint.every", {{"2"}, {}}}, {"checkpoint.keep_last", {{"3"}, {"checkpoint.every=1"}}},
    {"checkpoint.keep_every", {{"1"}, {"checkpoint.every=1"}}},
    {"checkpoint.keep_best", {{"test.accuracy"}, {"checkpoint.every=1", "evaluate.every=1", "optimizer.lr=1"}}},
    {"data.augment.flip", {{"true"}, {}}}, {"data.augment.crop_padding", {{"2"}, {}}}, {"data.augment.random_resized_crop", {{"0.3"}, {}}},
    {"data.on_broken", {{}, {"data.train=BROKEN", "evaluate.sets=[]"}}},
    {"loss.kind", {{}, {}}}};

// Keys of data that are drawn, with the base of each kind.
const std::map<std::string, Change> copy_changes{
    {"data.symbols", {{"5"}, {}}}, {"data.length", {{"data.length=6; model.context=12"}, {}}}};
const std::map<std::string, Change> random_changes{{"data.vocabulary", {{"12"}, {}}}};

const std::map<std::string, std::string> exceptions{
    {"threads", "only speed may depend on it"}, {"data.decode_threads", "likewise"},
    {"model.kind", "the bases below differ in it"}, {"data.kind", "likewise"},
    {"checkpoint.verify", "what is looked at before a save counts: tested with broken disks"}, {"checkpoint.on_save_error", "likewise"},
    {"parallel.verify_every", "acts between ranks only: tested with ranks"},
    {"optimizer.kind", "one alternative so far"},
    {"model.variants", "its keys are those of model.attention and model.position, tested there and by model.pattern"},
    {"optimizer.groups", "seven roles of one struct: tested below, role by role"}};
// clang-format on

// Of runs that are to end otherwise than by their plan.
const std::map<std::string, std::string> other_endings{
    {"stability.on_nonfinite", "exit 5"}, {"data.on_broken", "exit 3"}, {"data.verify", "exit 3"}, {"stop_code", "exit 75"}};

enum class Base { text, vision, copy, random };

class Bench {
 public:
  Bench() : home_(std::filesystem::current_path()) {
    std::filesystem::current_path(text_.folder().path());
    std::ofstream lines("lines.jsonl");
    for (int i = 0; i < 300; ++i) lines << "{\"text\": \"line " << i * i % 97 << " of the tiny text,\\n\"}\n";
    lines.close();
    const std::string picture = files::read(std::string(QUELL_GOLDEN) + "/images/basn0g08.png");
    for (const auto& [path, bytes] : {std::pair{"broken/a/good.png", picture}, {"broken/b/bad.png", picture.substr(0, 90)}}) {
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      std::ofstream(path) << bytes;
    }
    prepare_tokens({.files = {"lines.jsonl"}, .out = "lines", .tokenizer = "char", .valid = 0.1}, {});
    std::filesystem::copy(text_.train(), "damaged");
    std::fstream("damaged/00000.bin", std::ios::in | std::ios::out | std::ios::binary) << '\3';  // an id, but another
  }
  ~Bench() { std::filesystem::current_path(home_); }

  // Everything that can be observed of a run with these settings, as text.
  std::string observe(Settings settings, Base kind = Base::text) {
    const std::vector<std::pair<std::string, std::string>> paths{
        {"VALID", text_.valid()}, {"TRAIN", text_.train()}, {"LINES", "lines/train"}, {"BROKEN", "broken"}, {"DAMAGED", "damaged"}};
    for (std::string& setting : settings) {
      for (const auto& [word, path] : paths) {
        if (const size_t at = setting.find(word); at != std::string::npos) setting.replace(at, word.size(), path);
      }
    }
    std::filesystem::remove_all("runs");
    std::vector<config::Override> overrides;
    for (const std::string& setting : settings) overrides.push_back({setting, false});
    std::string seen;
    try {
      RunConfig config;
      try {
        config = config::load<RunConfig>(config::Source::from_text(base(kind), "base", overrides));
      } catch (const UsageError& problem) {
        FAIL_CHECK(problem.what());  // a refused setting shows nothing
        return "";
      }
      seen = cat("exit ", run_training(config, {.quiet = true}), "\n");
    } catch (const Error& problem) {
      seen = cat("exit ", static_cast<int>(problem.exit()), " ", problem.what(), "\n");
    } catch (const std::exception& problem) {
      FAIL_CHECK("a bug: " << std::string(problem.what()).substr(0, 200));
    }
    return seen + files_seen();
  }

 private:
  std::string base(Base kind) const {
    if (kind == Base::vision) return vision_base();
    if (kind == Base::text) return text_base();
    const bool copy = kind == Base::copy;
    return cat("name: bench\nsteps: 4\nthreads: 1\nmodel: {context: 16, width: 32, layers: 2, heads: 2, mlp: {width: 48}}\ndata: {",
               copy ? "kind: copy, length: 8" : "kind: random", ", batch: 8}\nevaluate: {every: 0, batches: 2, sets: [{name: valid, data: ",
               copy ? "copy" : "random", "}]}\nreport: {every: 1}\n");
  }

  std::string text_base() const {
    return cat("name: bench\nsteps: 4\nthreads: 1\nmodel: {context: 16, width: 32, layers: 2, heads: 2, mlp: {width: 48}, "
               "init: {head: as_matrix}}\ndata: {train: ", text_.train(), ", batch: 8}\nevaluate: {every: 0, batches: 2, sets: [{name: valid, data: ",
               text_.valid(), "}]}\nreport: {every: 1}\n");
  }

  std::string vision_base() const {
    return cat("name: bench\nsteps: 4\nthreads: 1\nmodel: {kind: vit, image: 12, channels: 1, patch: 4, width: 32, layers: 2, heads: 2, "
               "mlp: {width: 48}, init: {head: as_matrix}}\ndata: {kind: images, train: ", images_.train(),
               ", batch: 8}\nevaluate: {every: 0, batches: 2, sets: [{name: test, data: ", images_.test(), "}]}\nreport: {every: 1}\n");
  }

  std::string files_seen() const {
    std::string seen;
    std::vector<std::string> names;
    if (!std::filesystem::exists("runs")) return seen;
    for (const auto& entry : std::filesystem::recursive_directory_iterator("runs")) names.push_back(entry.path().string());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      seen += name + "\n";
      if (name.ends_with(".safetensors")) seen += xxh3_64_hex(files::read(name)) + "\n";
      if (name.ends_with("metrics.jsonl")) seen += rows(files::read(name));
    }
    return seen;
  }

  static std::string rows(const std::string& text) {
    std::string seen;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      Json row = parse_json(line, "metrics");
      row.erase("time");
      row.erase("tokens_per_s");
      row.erase("images_per_s");
      seen += row.dump() + "\n";
    }
    return seen;
  }

  testing::TinyText text_;
  testing::TinyImages images_;
  std::filesystem::path home_;
};

// "evaluate.sets.N.name" is written "evaluate.sets.0.name".
std::string writable(std::string key) {
  if (const size_t at = key.find(".N."); at != std::string::npos) key.replace(at, 3, ".0.");
  return key;
}

bool excepted(const std::string& key) {
  for (const auto& [prefix, reason] : exceptions) {
    if (key == prefix || key.starts_with(prefix + ".")) return true;
  }
  return false;
}

Settings with(Settings context, const std::string& key, const std::string& value) {
  if (value.find('=') == std::string::npos) {
    context.push_back(writable(key) + "=" + value);
    return context;
  }
  for (size_t begin = 0, end; begin < value.size(); begin = end + 2) {
    end = std::min(value.find("; ", begin), value.size());
    context.push_back(value.substr(begin, end - begin));
  }
  return context;
}

// Checks one key: each value differs from the base, or, of an enum's choices (one of which is the base), each from all others.
class Switches {
 public:
  Switches(Bench& bench, Base base, const std::map<std::string, Change>& table) : bench_(bench), base_(base), table_(table) {}

  bool has(const std::string& key) const { return table_.contains(key); }
  const std::map<std::string, Change>& table() const { return table_; }

  void check(const config::Key& key) {
    const Change& change = table_.at(key.path);
    Settings values = change.values;
    for (const config::ChoiceText& choice : key.type.choices) {
      if (change.values.empty()) values.push_back(choice.name);
    }
    const Settings& context = change.context;
    if (!bases_.contains(context)) bases_[context] = bench_.observe(context, base_);
    const auto ending = other_endings.find(key.path);
    CHECK(bases_[context].starts_with(ending == other_endings.end() ? "exit 0" : ending->second));
    std::set<std::string> seen{bases_[context]};
    for (const std::string& value : values) seen.insert(bench_.observe(with(context, key.path, value), base_));
    CHECK(seen.size() == (change.values.empty() ? values.size() : values.size() + 1));
  }

 private:
  Bench& bench_;
  Base base_;
  const std::map<std::string, Change>& table_;
  std::map<Settings, std::string> bases_;  // contexts are shared by many keys
};

}  // namespace

TEST_CASE("every key of the run file changes something that can be observed", "[unit]") {
  REQUIRE(exceptions.size() <= 10);
  Bench bench;
  Switches all[] = {{bench, Base::text, changes}, {bench, Base::vision, vision_changes}, {bench, Base::copy, copy_changes},
                    {bench, Base::random, random_changes}};
  std::set<std::string> met;
  for (const config::Key& key : config::keys_of<RunConfig>()) {
    if (!met.insert(key.path).second || config::is_section(key.type) || excepted(key.path)) continue;
    INFO(key.path);
    REQUIRE(std::any_of(std::begin(all), std::end(all), [&](const Switches& switches) { return switches.has(key.path); }));
    for (Switches& switches : all) {
      if (switches.has(key.path)) switches.check(key);
    }
  }
  for (const Switches& switches : all) {
    for (const auto& [key, change] : switches.table()) {
      INFO(key);
      CHECK(met.contains(key));
    }
  }
}

TEST_CASE("decay, learning-rate factor and clamp act on each role", "[unit]") {
  Bench bench;
  const Settings context{"model.norm.kind=layernorm", "model.norm.bias=true", "model.attention.scale={kind: learned, init: 1}"};
  const std::string base = bench.observe(context);
  for (const Role role : all_roles) {
    const std::string group = cat("optimizer.groups.", name_of(role), ".");
    for (const char* change : {"decay=3", "lr_factor=0.5", "clamp=0.001"}) {
      INFO(group << change);
      Settings settings = context;
      settings.push_back(group + change);
      CHECK(bench.observe(settings) != base);
    }
  }
}

TEST_CASE("the same settings are observed the same", "[unit]") {
  Bench bench;
  CHECK(bench.observe({}) == bench.observe({}));
}

}  // namespace quell
