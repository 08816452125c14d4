#include "train/share.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "config/print.h"
#include "dist/agreement.h"
#include "train/data_record.h"
#include "train/resume.h"

namespace quell {
namespace {

// Numbers by name, in the order of names, which is the same on all ranks.
template <class Number>
void broadcast(const World& world, std::map<std::string, Number>& numbers) {
  std::vector<Number> values;
  for (const auto& [name, value] : numbers) values.push_back(value);
  at::Tensor all = at::tensor(values, c10::CppTypeToScalarType<Number>::value);
  world.broadcast(all, 0);
  int64_t i = 0;
  for (auto& [name, value] : numbers) value = all[i++].template item<Number>();
}

}  // namespace

void require_one_run(const Run& run) {
  Json data = data_record(run);
  for (Json& set : data) set.erase("parts");  // whose times differ where each machine has a copy
  RunConfig config = run.config;
  config.resume = "never";  // how it is started, not what it is
  const std::string own = cat(xxh3_128_hex(config::print(config)), " ", xxh3_128_hex(data.dump())), first = run.world.first_said(own).text;
  together(run.world, [&] {
    if (own == first) return;
    const bool same_file = own.substr(0, own.find(' ')) == first.substr(0, first.find(' '));
    throw UsageError(same_file ? "data: they are not those of rank 0; all ranks need the same"
                               : "run file: it gives another configuration than on rank 0; start all ranks with the same file and overrides");
  });
}

void share_state(Run& run) {
  State state = state_of(run);
  for (auto& [name, tensor] : state.tensors) run.world.broadcast(tensor, 0);  // views of the run's own memory
  broadcast(run.world, state.integers);
  broadcast(run.world, state.numbers);
  set_state(run, state);
}

}  // namespace quell
