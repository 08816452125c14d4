// Parameter groups, and the update. Everything that depends on the gradients' values (clipping, the bad step) stays on
// the device, so that no step waits for it.
#include "optim/adamw.h"

#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace quell {

namespace {

bool decays_by_default(Role role) {
  return role == Role::matrix || role == Role::embedding || role == Role::output;
}

}  // namespace

std::vector<ParameterGroup> groups_of(const ParameterList& parameters, const OptimizerConfig& config) {
  std::vector<ParameterGroup> groups;
  for (const Role role : all_roles) {
    const GroupConfig& of_role = config.groups.of(role);
    const double decay = of_role.decay.value_or(decays_by_default(role) ? config.weight_decay : 0);
    ParameterGroup group{role, decay, of_role.lr_factor, of_role.clamp, {}, 0};
    for (const Parameter& parameter : parameters) {
      if (parameter.frozen || parameter.role != role) continue;
      group.parameters.push_back(&parameter);
      group.numel += parameter.numel();
    }
    if (!group.parameters.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

AdamW::AdamW(ParameterList& parameters, Arena& arena, const OptimizerConfig& config, const World& owners)
    : arena_(arena),
      config_(config),
      owners_(owners),
      pieces_(pieces_of(arena, parameters, {owners.rank(), owners.size()})),
      groups_(groups_of(parameters, config)),
      first_(at::zeros({share_size(arena, {owners.rank(), owners.size()})}, arena.gradients().options())),
      second_(at::zeros_like(first_)),
      updates_(at::zeros({}, first_.options().dtype(at::kFloat))) {
  for (const ParameterGroup& group : groups_) {
    Views views;
    for (const Piece& piece : pieces_) {
      const Range at = piece.in_arena;
      if (piece.parameter->role != group.role || at.size() == 0) continue;
      views.values.push_back(arena.values().narrow(0, at.begin, at.size()));
      views.gradients.push_back(arena.gradients().narrow(0, at.begin, at.size()));
      views.first.push_back(first_.narrow(0, piece.in_share, at.size()));
      views.second.push_back(second_.narrow(0, piece.in_share, at.size()));
      views.counts.push_back(updates_);
    }
    views_.push_back(std::move(views));
  }
}

at::Tensor AdamW::gradient_norm() const {
  // In two levels: one fp32 sum over everything loses digits as the model grows.
  constexpr int64_t width = 1024;
  const at::Tensor& flat = arena_.gradients();
  const int64_t rows = flat.numel() / width, even = rows * width;
  const at::Tensor parts = at::linalg_vector_norm(flat.narrow(0, 0, even).view({rows, width}), 2, at::IntArrayRef{1});
  const at::Tensor rest = at::linalg_vector_norm(flat.narrow(0, even, flat.numel() - even), 2).view({1});
  return at::linalg_vector_norm(at::cat({parts, rest}).to(at::kDouble), 2).to(flat.scalar_type());
}

void AdamW::update(double factor, const at::Tensor& norm, const at::Tensor& bad) {
  const at::NoGradGuard no_grad;
  const std::optional<at::Tensor> scale = clip(norm);
  updates_.add_(bad.logical_not());
  for (size_t i = 0; i < groups_.size(); ++i) update_group(i, factor, scale, bad);
  gather_values();
  arena_.refresh_compute();
}

void AdamW::gather_values() {
  std::vector<Pending> pending;
  for (const Range& unit : arena_.units()) pending.push_back(owners_.begin_gather(arena_.values().narrow(0, unit.begin, unit.size())));
  for (const Pending& gather : pending) gather.wait();
}

// By value: at once. By norm: what the operator is to divide gradients by, so that clipping is no pass of its own.
std::optional<at::Tensor> AdamW::clip(const at::Tensor& norm) {
  const ClipConfig& clip = config_.clip;
  at::Tensor gradients = arena_.gradients();
  if (clip.kind == ClipKind::value) gradients.clamp_(-clip.limit, clip.limit);
  if (clip.kind != ClipKind::norm) return std::nullopt;
  const at::Tensor scale = ((norm + 1e-6) / clip.limit).clamp_min(1);
  if (scale.scalar_type() == at::kFloat) return scale;
  gradients.div_(scale);  // the operator takes an fp32 scale only
  return std::nullopt;
}

void AdamW::update_group(size_t index, double factor, const std::optional<at::Tensor>& scale, const at::Tensor& bad) {
  const ParameterGroup& group = groups_[index];
  Views& views = views_[index];
  if (views.values.empty()) return;  // all of it is others'
  const bool coupled = config_.decay == Decay::coupled;
  if (!coupled && group.decay > 0) {
    // Not by the operator, whose decay is a multiple of the learning rate and so gone where that is 0.
    at::_foreach_mul_(views.values, at::where(bad, scalar(1), scalar(1 - factor * group.decay)));
  }
  const double lr = config_.lr * factor * group.lr_factor;
  const auto [beta1, beta2] = config_.betas;
  at::_fused_adamw_(views.values, views.gradients, views.first, views.second, {}, views.counts, lr, beta1, beta2,
                    coupled ? group.decay : 0, config_.eps, /*amsgrad=*/false, /*maximize=*/false, scale,
                    /*found_inf=*/bad.to(at::kFloat));
  if (group.clamp) {
    const at::Tensor bound = at::where(bad, scalar(std::numeric_limits<double>::infinity()), scalar(*group.clamp));
    for (at::Tensor& value : views.values) value.clamp_(-bound, bound);
  }
}

at::Tensor AdamW::scalar(double value) const { return at::full({}, value, first_.options()); }

int64_t AdamW::updates() const { return static_cast<int64_t>(updates_.item<float>()); }

State AdamW::state() const {
  State state{{}, {{"updates", updates()}}, {}};
  const auto add = [&](const std::string& name, const at::Tensor& moments, const Piece& piece) {
    const at::Tensor own = moments.narrow(0, piece.in_share, piece.in_arena.size());
    if (owners_.size() == 1) {
      state.tensors[name] = own.view(piece.parameter->shape);
    } else {
      state.tensors[name] = own;
      state.extracts[name] = {piece.parameter->shape, piece.begin};
    }
  };
  for (const Piece& piece : pieces_) {
    add("first." + piece.parameter->name, first_, piece);
    add("second." + piece.parameter->name, second_, piece);
  }
  return state;
}

void AdamW::restore(const State& stored) {
  const State live = state();
  const std::vector<std::string> problems = misfits(live, stored);
  if (!problems.empty()) throw CheckpointError("optimizer state:\n  " + join(problems, "\n  "));
  copy_tensors(live, stored);
  updates_.fill_(stored.integers.at("updates"));
}

}  // namespace quell
