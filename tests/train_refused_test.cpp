// Resumes that are refused: each with what was, what is and what may be done, and with nothing in the folder changed.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/error.h"
#include "checkpoint/commit.h"
#include "resumed.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::Cases;
using testing::leave_until;
using testing::model_of;
using testing::start;
using testing::tiny_config;
using testing::TinyText;

constexpr const char *cannot = "cannot be changed in a run:\n    ", *would = "would change its numbers (--accept KEY takes it):\n    ";

struct ChangedFile {
  std::function<void(RunConfig&)> change;
  std::string says;
};

const std::vector<ChangedFile> changed_files{
    {[](RunConfig& c) { model_of(c).width = 64; }, cat(cannot, "model.width: 32 -> 64 (the saved weights are of another model)")},
    {[](RunConfig& c) { model_of(c).layers = 3; }, cat(cannot, "model.layers: 2 -> 3 (the saved weights are of another model)")},
    {[](RunConfig& c) { model_of(c).heads = 4; }, "model.heads: 2 -> 4 (the saved weights are of another model)"},
    {[](RunConfig& c) { model_of(c).kv_heads = 1; }, "model.kv_heads: heads -> 1 (the saved weights are of another model)"},
    {[](RunConfig& c) { model_of(c).mlp.width = 64; }, cat(cannot, "model.mlp.width: 48 -> 64 (the saved weights are of another model)")},
    {[](RunConfig& c) { model_of(c).vocabulary = 40; }, "-> 40 (the saved weights are of another model)"},
    {[](RunConfig& c) { model_of(c).context = 8; }, cat(cannot, "model.context: 16 -> 8 (the saved weights are of another model)")},
    {[](RunConfig& c) { model_of(c).attention.qk_norm.kind = NormKind::none; }, cat(cannot, "model.attention.qk_norm.kind: rmsnorm -> none (the saved weights are of another model)")},
    {[](RunConfig& c) { model_of(c).output.tied = true; }, cat(cannot, "model.output.tied: false -> true (the saved weights are of another model)")},
    {[](RunConfig& c) { batch_of(c.data) = 16; }, cat(cannot, "data.batch: 8 -> 16 (the position in the data is counted in steps of this size)")},
    {[](RunConfig& c) { c.data = RandomData{.batch = 8, .vocabulary = 30}; }, "data.kind: tokens -> random (the position in the data would mean nothing)"},
    {[](RunConfig& c) { c.optimizer.freeze = {"blocks.0.*"}; }, cat(cannot, "optimizer.freeze: [] -> [blocks.0.*] (the saved moments are of other parameters)")},
    {[](RunConfig& c) { c.ema = {}; }, cat(cannot, "ema: 0.9 -> none (the checkpoint has no such average, or it would be lost)")},
    {[](RunConfig& c) { c.precision = Precision::fp64; }, cat(cannot, "precision: fp32 -> fp64 (the saved weights are of another type)")},
    {[](RunConfig& c) { c.seed = 2; }, cat(would, "seed: 1 -> 2 (data order, dropout and augmentation follow from it)")},
    {[](RunConfig& c) { c.steps = 30; }, cat(would, "steps: 24 -> 30 (optimizer.schedule.steps=24 keeps the learning rates as they were planned; --accept steps stretches them)")},
    {[](RunConfig& c) { c.micro_batches = 4; }, cat(would, "micro_batches: 2 -> 4 (sums are rounded otherwise)")},
    {[](RunConfig& c) { c.precision = Precision::bf16; }, cat(would, "precision: fp32 -> bf16 (sums are rounded otherwise)")},
    {[](RunConfig& c) { c.kernels = Kernels::reference; }, cat(would, "kernels: auto -> reference (sums are rounded otherwise)")},
    {[](RunConfig& c) { model_of(c).dropout = 0.1; }, cat(would, "model.dropout: 0 -> 0.1 (other activations are dropped)")},
    {[](RunConfig& c) { c.loss.z = 0.1; }, cat(would, "loss.z: 0.001 -> 0.1 (another loss is minimised)")},
    {[](RunConfig& c) { c.optimizer.lr = 0.02; }, cat(would, "optimizer.lr: 0.01 -> 0.02 (updates are others)")},
    {[](RunConfig& c) { c.optimizer.betas = {0.9, 0.99}; }, cat(would, "optimizer.betas: [0.9, 0.95] -> [0.9, 0.99] (updates are others)")},
    {[](RunConfig& c) { c.optimizer.schedule.warmup = 3; }, cat(would, "optimizer.schedule.warmup: 6 -> 3 (updates are others)")},
    {[](RunConfig& c) { c.ema = 0.99; }, cat(would, "ema: 0.9 -> 0.99 (the average is another)")},
    {[](RunConfig& c) { testing::data_of(c).cross_documents = false; }, cat(would, "data.cross_documents: true -> false (other samples are seen)")},
};

// What happened to a checkpoint or a folder; RUN stands for the run's folder, LAST for its newest checkpoint.
struct BrokenFolder {
  std::string resume;
  std::function<void(const std::string& run, const std::string& last)> harm;
  std::string says;
};

void replace_in(const std::string& path, const std::string& old, const std::string& now) {
  std::string text = files::read(path);
  const size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  std::ofstream(path, std::ios::binary) << text.replace(at, old.size(), now);
}
void flip_last_bit(const std::string& path) {
  std::string bytes = files::read(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
}
void no_harm(const std::string&, const std::string&) {}

const std::vector<BrokenFolder> broken_folders{
    {"RUN/checkpoint/step-00000010", no_harm, "RUN/checkpoint/step-00000010: "},
    {"RUN/checkpoints", no_harm, "RUN/checkpoints: holds checkpoints and is none; give the run's folder, or one of them, like LAST"},
    {"RUN/none.pt", no_harm, "RUN/none.pt: "},
    {"LAST", [](const auto&, const auto& last) { flip_last_bit(last + "/weights.safetensors"); }, "LAST/weights.safetensors: tensor "},
    {"LAST", [](const auto&, const auto& last) { fs::resize_file(last + "/optimizer.safetensors", 1000); }, "LAST/optimizer.safetensors: "},
    {"LAST", [](const auto&, const auto& last) { fs::remove(last + "/ema.safetensors"); }, "LAST/ema.safetensors: "},
    {"LAST", [](const auto&, const auto& last) { fs::remove(last + "/manifest.json"); }, "LAST/manifest.json: is not there: this is no checkpoint, or a save that was never finished"},
    {"LAST", [](const auto&, const auto& last) { replace_in(last + "/manifest.json", "\"step\":24", "\"step\":23"); }, "LAST/manifest.json: "},
    {"must", [](const auto& run, const auto&) { leave_until(run, 0); }, "RUN/checkpoints: holds no checkpoint to go on from; resume: auto begins anew where there is none"},
    {"must", [](const auto& run, const auto&) { fs::remove_all(run); }, "RUN: no such folder, so there is no run to go on with"},
    {"must", [](const auto& run, const auto&) { std::ofstream(run + "/run.json", std::ios::trunc) << "{}"; }, "RUN/run.json: holds no id of a run; remove it, and the newest checkpoint says whose run it is"},
    {"auto", [](const auto& run, const auto&) { for (const Entry& each : list_checkpoints(run + "/checkpoints")) fs::resize_file(each.path + "/weights.safetensors", 9); },
     "RUN/checkpoints: holds checkpoints, but none that is sound and of this run, as said above; move them away to begin anew"},
    {"auto", [](const auto& run, const auto&) { leave_until(run, 0); std::ofstream(run + "/weights.safetensors") << "a finished run's"; },
     "RUN: holds a run's weights but no checkpoint to go on from, and they are not written over; choose another --run DIR"},
    {"auto", [](const auto& run, const auto&) { fs::remove_all(run); files::make_folders(run); std::ofstream(run + "/thesis.tex") << "mine"; },
     "RUN: is no run's folder (there is no run.json), so nothing is written into it; choose another --run DIR"},
    {"never", no_harm, "RUN: exists already, and a run never overwrites another; go on with it by --resume, or choose another name or --run DIR"},
};

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& problem) {
    return problem.what();
  }
  return "(accepted)";
}

// Every file with its bytes, but for those that say who works there.
std::string contents_of(const std::string& folder) {
  std::string all;
  if (!files::exists(folder)) return all;
  std::set<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) paths.insert(entry.path());
  for (const std::string& path : paths) {
    if (path.ends_with("/lock") || path.ends_with("/log.txt")) continue;
    all += path + "\n" + (files::is_folder(path) ? "" : files::read(path));
  }
  return all;
}

std::string with(std::string text, const std::string& name, const std::string& value) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size())) text.replace(at, name.size(), value);
  return text;
}

}  // namespace

TEST_CASE("a resume that cannot be exact is refused, with what was, what is and what may be done, and nothing is changed", "[unit][R10]") {
  const TinyText text;
  const RunConfig config = testing::busy(tiny_config(text));
  const std::string folder = text.folder() / "run", whole = text.folder() / "whole", last = folder + "/checkpoints/" + checkpoint_name(24);
  start(config, folder, "never");
  fs::copy(folder, whole, fs::copy_options::recursive);
  Cases cases("R10");
  for (const ChangedFile& each : changed_files) {
    RunConfig changed = config;
    each.change(changed);
    const std::string before = contents_of(folder);
    CHECK_THAT(message_of([&] { start(changed, folder, "must"); }), Catch::Contains(each.says));
    const bool same = contents_of(folder) == before;
    CHECK(same);
    cases.add();
  }
  for (const BrokenFolder& each : broken_folders) {
    each.harm(folder, last);
    const std::string before = contents_of(folder), says = with(with(each.says, "LAST", last), "RUN", folder);
    const std::string resume = with(with(each.resume, "LAST", last), "RUN", folder);
    const bool is_path = resume.find('/') != std::string::npos;
    CHECK_THAT(message_of([&] { start(config, is_path ? text.folder() / "new" : folder, resume); }), Catch::Contains(says));
    const bool same = contents_of(folder) == before;
    CHECK(same);
    CHECK_FALSE(files::exists(text.folder() / "new"));
    fs::remove_all(folder);
    fs::copy(whole, folder, fs::copy_options::recursive);
    cases.add();
  }
  CHECK(cases.done() >= 30);
}

}  // namespace quell
