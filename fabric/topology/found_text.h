// SPDX-License-Identifier: Apache-2.0
// What people hand over as a found fabric: outputs of ibnetdiscover and iblinkinfo, copied from
// terminals and through other systems. Pure.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace muster::fabric {

enum class FoundForm { Ibnetdiscover, PortReport, Iblinkinfo };

struct FoundText {
  FoundForm form = FoundForm::Ibnetdiscover;
  /// Without a byte order mark, carriage returns, terminal colours, prompts, and progress of
  /// `ibnetdiscover -s`; those lines are empty now, so line numbers stay.
  std::string text;
};

/// Errors: Corrupt, naming what the text is instead and which output to hand over: no text at all,
/// UTF-16, a list without cables (ibnetdiscover -l, ibhosts, ibswitches), a difference
/// (ibnetdiscover --diff), a filtered output, ibsim's short form, ibdiagnet's and OpenSM's files,
/// JSON, a tool's messages
Result<FoundText> readFoundText(std::string_view text);

}  // namespace muster::fabric
