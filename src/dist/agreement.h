// What one rank cannot do ends it on all of them: an error that only one has thrown would leave the others waiting.
#pragma once

#include <exception>
#include <string>

#include "base/error.h"
#include "dist/world.h"

namespace quell {

// Work of this rank that may have failed with an Error (other exceptions pass).
class Attempt {
 public:
  template <class Work>
  explicit Attempt(const Work& work) {
    try {
      work();
    } catch (const Error& problem) {
      keep(problem);
    }
  }
  bool failed() const { return problem_ != nullptr; }

  // On every rank. Where none failed it returns. Else every rank throws the same type: the lowest rank that failed what it has caught, the
  // others an error that names that rank; of those only rank 0 still says anything.
  void settle(const World& world) const;

 private:
  void keep(const Error& problem);
  std::exception_ptr problem_;
  std::string said_;
};

template <class Work>
void together(const World& world, const Work& work) {
  Attempt(work).settle(world);
}

}  // namespace quell
