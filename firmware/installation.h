// SPDX-License-Identifier: Apache-2.0
// One action's installation: wave by wave until its component runs its baseline version. At most
// one flash of an image in an intent. Whatever the journal or a task says, the inventory decides.
//
// A table says what each step of the journal needs and does; the parts that do it (upload, task,
// activation, stabilization) share a RunningWave and say what goes on at once.
#pragma once

#include "firmware/activation_sequence.h"
#include "firmware/failure.h"
#include "firmware/image_upload.h"
#include "firmware/next_upload.h"
#include "firmware/running_wave.h"
#include "firmware/stabilization.h"
#include "firmware/update_task.h"
#include "inventory/model/firmware.h"

#include <optional>

namespace muster::firmware {

class Installation {
 public:
  /// Everything referred to outlives it.
  Installation(InstallServices services, const inventory::FirmwareBaseline& baseline,
               const inventory::FirmwareComponent& component, const lifecycle::Action& action,
               lifecycle::ActContext& context, Progress progress)
      : wave_(std::move(services), baseline, component, action, context, std::move(progress)) {}
  Installation(const Installation&) = delete;
  Installation& operator=(const Installation&) = delete;

  /// One call of act: as far as it goes without waiting.
  Async<lifecycle::Outcome> go();
  /// Ends the intent; what is or may be on the machine is not flashed again by itself.
  Async<lifecycle::Outcome> abortWith(std::string why);

 private:
  enum class Needs;
  enum class Unanswered;
  struct StepRow;
  static const StepRow& stepRow(InstallStep step);
  bool isLate() const;
  Async<lifecycle::Outcome> step();
  /// Does it, and what it says that goes on at once, until there is an outcome.
  Async<lifecycle::Outcome> run(Continuation next);
  Async<StepResult> perform(Continuation next);
  Async<std::optional<lifecycle::Outcome>> switchedOn(Error problem);
  Async<lifecycle::Outcome> unanswered(Unanswered how, std::string why);

  RunningWave wave_;
  WaveFailure failure_{wave_};
  NextUpload next_upload_{wave_, failure_};
  ImageUpload upload_{wave_, failure_};
  UpdateTask task_{wave_, failure_};
  ActivationSequence activation_{wave_, failure_};
  Stabilization stabilization_{wave_, failure_};
};

}  // namespace muster::firmware
