// A trainable (or frozen) tensor and what the rest of the program must know of it: its name in files, its role in the
// optimiser, the unit of memory that it lives in, and how its initial values are drawn. Modules declare their parameters in a
// ParameterList in order of first use; an Arena (tensors/arena.h) then gives them memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace quell {

// Decides decay, learning-rate factor and clamp (optimizer.groups.<role>). A tied embedding counts as embedding.
enum class Role { matrix, embedding, output, norm_weight, qk_norm_weight, scale, bias };
inline constexpr std::array all_roles{Role::matrix,         Role::embedding, Role::output, Role::norm_weight,
                                      Role::qk_norm_weight, Role::scale,     Role::bias};
const char* name_of(Role role);

// How initial values are drawn (tensors/fill.h). For `normal` and `truncated_normal` `a` is the standard deviation (the
// truncation is at three of them); for `constant` it is the value.
struct Initial {
  enum class Kind { constant, normal, truncated_normal } kind = Kind::constant;
  double a = 0;
  static Initial constant(double value) { return {Kind::constant, value}; }
  static Initial normal(double deviation) { return {Kind::normal, deviation}; }
  static Initial truncated_normal(double deviation) { return {Kind::truncated_normal, deviation}; }
};

struct Parameter {
  std::string name;                 // "blocks.3.attention.q.weight"
  Role role = Role::matrix;
  int64_t unit = 0;                 // position in order of first use: 0 the embedding, then each block, then the head
  std::vector<int64_t> shape;
  Initial initial;
  bool frozen = false;              // no gradient, no moments

  // Set by the arena. `value` is the fp32 (or fp64) master, a view of the arena. `compute` is what a forward multiplies by: the
  // same tensor, or under bf16, for matrices, embeddings and outputs, a bf16 leaf. Where not frozen, `compute.grad()` is a view
  // of the gradient arena in the master's type, and every backward adds into it in place.
  at::Tensor value;
  at::Tensor compute;

  int64_t numel() const;
};

// Parameters with stable addresses, in order of declaration.
class ParameterList {
 public:
  // Throws Bug on a name that is there already. The pointer is valid as long as the list.
  Parameter* add(std::string name, Role role, int64_t unit, std::vector<int64_t> shape, Initial initial);
  Parameter* find(std::string_view name);  // null where absent

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  size_t size() const { return all_.size(); }
  int64_t numel() const;  // of all parameters together

  // Marks every parameter whose name matches one of the shell-style patterns ("blocks.0.*") as frozen, before the arena is
  // built. Returns the patterns that matched nothing.
  std::vector<std::string> freeze(const std::vector<std::string>& patterns);

 private:
  std::deque<Parameter> all_;
};

}  // namespace quell
