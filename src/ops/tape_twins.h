// The twins on the tape: the plain operations of ops/reference*.cpp, in their order.
#pragma once

#include "ops/tape.h"

namespace quell::ops::twins {

Sized norm(Tape& tape, const Sized& x, bool centred, bool weight, bool bias);
Sized rotate(Tape& tape, const Sized& x);
Sized activate(Tape& tape, const Sized& x, MlpKind kind);
Sized gated(Tape& tape, const Sized& gate, const Sized& up, MlpKind kind);
Sized output_loss(Tape& tape, const Sized& logits, bool softcap);

}  // namespace quell::ops::twins
