// A checkpoint that is damaged in any way: found, named, passed over.
#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/text.h"
#include "cases.h"
#include "saves.h"
#include "temporary.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::Cases;
using testing::newest_step;
using testing::save;
using testing::TemporaryFolder;

}  // namespace

TEST_CASE("every damage is found, named, and passed over for the one before", "[unit][K8]") {
  Cases cases("K8");
  const TemporaryFolder home;
  const std::string folder = home / "c", path = folder + "/step-00000002";
  save(folder, 1);
  save(folder, 2);
  std::map<std::string, std::string> whole;
  for (const std::string& name : files::list(path)) whole[name] = files::read(path + "/" + name);
  const auto damage = [&](const std::string& name, const std::string& bytes) {
    cases.add();
    std::ofstream(path + "/" + name, std::ios::binary) << bytes;
    std::string told;
    const auto newest = newest_sound(folder, testing::run_a, [&](const std::string& note) { told += note; });
    const bool found = newest && newest->manifest.step == 1 && told.find(path + "/" + name) != std::string::npos;
    if (!found) FAIL_CHECK(name << " of " << bytes.size() << " bytes: " << told);
    std::ofstream(path + "/" + name, std::ios::binary) << whole[name];
  };
  for (const auto& [name, bytes] : whole) {
    const size_t bit_step = name == manifest_name && !testing::in_full() ? 5 : 1;  // every bit of the data, a fifth of the manifest's
    for (size_t bit = 0; bit < 8 * bytes.size(); bit += bit_step) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      damage(name, flipped);
    }
    for (size_t length = 0; length < bytes.size(); length += 7) damage(name, bytes.substr(0, length));
    damage(name, bytes + '\0');
    damage(name, bytes + bytes);
  }
  // Files of another step, swapped, and missing.
  for (const char* name : {"weights.safetensors", "optimizer.safetensors"}) damage(name, files::read(cat(folder, "/step-00000001/", name)));
  damage("weights.safetensors", whole["optimizer.safetensors"]);
  damage(manifest_name, files::read(cat(folder, "/step-00000001/", manifest_name)));  // sealed, but of another step
  for (const auto& [name, bytes] : whole) {
    fs::remove(path + "/" + name);
    CHECK(newest_step(folder) == 1);
    std::ofstream(path + "/" + name, std::ios::binary) << bytes;
  }
  CHECK(newest_step(folder) == 2);
  CHECK(cases.done() >= 2400);
}

}  // namespace quell
