// A tiny run for tests of room train: real text prepared by our own data room, a model of a few thousand parameters.
#pragma once

#include <fstream>
#include <string>

#include "data/prepare.h"
#include "temporary.h"
#include "tiny_images.h"
#include "train/run.h"

namespace quell::testing {

// A folder with `text/train` and `text/valid`: 12,000 characters of a repeating but not periodic text.
class TinyText {
 public:
  TinyText() {
    std::ofstream out(folder_ / "text.txt");
    for (int i = 0; i < 400; ++i) out << "line " << i * i % 97 << " of the tiny text,\n" << (i % 3 == 0 ? "a b c\n" : "cab\n");
    out.close();
    prepare_tokens({.files = {folder_ / "text.txt"}, .out = folder_ / "text", .tokenizer = "char", .valid = 0.1}, {});
  }
  std::string train() const { return folder_ / "text/train"; }
  std::string valid() const { return folder_ / "text/valid"; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

// IDX pairs `train` (64) and `test` (32) of tiny_images.h.
class TinyImages {
 public:
  TinyImages() {
    write_tiny_images(train(), 64);
    write_tiny_images(test(), 32);
  }
  std::string train() const { return folder_ / "train"; }
  std::string test() const { return folder_ / "test"; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

// Four steps of eight samples; `model` becomes two layers of width 32.
template <class Model>
RunConfig tiny_run(const std::string& name, Model model, const DataConfig& data, const EvaluationSet& set) {
  model.width = 32;
  model.layers = 2;
  model.heads = 2;
  model.mlp.width = 48;
  model.init.head = InitHead::as_matrix;  // a zero head would make the first step's gradients of everything else zero
  RunConfig config;
  config.name = name;
  config.steps = 4;
  config.model = model;
  config.data = data;
  batch_of(config.data) = 8;
  config.evaluate.sets = {set};
  config.evaluate.every = 0;
  config.evaluate.batches = 2;
  config.optimizer.lr = 1e-2;
  config.report.every = 1;
  return config;
}

inline RunConfig tiny_vision(const TinyImages& images) {
  VitConfig model;
  model.image = 12;
  model.channels = 1;
  model.patch = 4;
  return tiny_run("tiny_vision", model, ImageData{.train = images.train()}, {"test", images.test()});
}

inline RunConfig tiny_config(const TinyText& text) {
  DecoderConfig model;
  model.context = 16;
  return tiny_run("tiny", model, TokenData{.train = text.train()}, {"valid", text.valid()});
}

inline DecoderConfig& model_of(RunConfig& config) { return std::get<DecoderConfig>(config.model); }
inline TokenData& data_of(RunConfig& config) { return std::get<TokenData>(config.data); }

}  // namespace quell::testing
