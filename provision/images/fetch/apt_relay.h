// SPDX-License-Identifier: Apache-2.0
// apt's method `http` and `https` in the build unit, which has no network: what apt asks for is
// fetched by the method of the same name in the fetch unit (docs/adr/0437).
//
// Nothing of what the fetch unit says is believed. Answers have the fields that are listed here and
// name what was asked for; a digest or a file name in them would be taken by apt for the method's
// own. So apt hashes each file itself, and it is one that the fetch unit has no hold of any more.
#pragma once

#include "base/result.h"

#include <chrono>
#include <filesystem>
#include <string>

#include <sys/types.h>

namespace muster::provision {

struct AptRelay {
  std::string scheme;  ///< "http", "https"
  std::filesystem::path socket;
  uid_t owner = 0;      ///< whose the socket must be
  int in = 0, out = 1;  ///< apt's ends
  /// How long the fetch unit may say nothing while something is asked for; where a file grows it
  /// sends empty lines.
  std::chrono::milliseconds silence_limit = std::chrono::minutes(30);
};

/// Until apt ends. A root process becomes the user of APT::Sandbox::User, as apt's methods do, when
/// apt has said who that is. Where the fetch unit cannot be asked, ends, or says nothing for too
/// long, each file that apt asks for fails with that reason. Errors: Corrupt (apt says what is no
/// message), Internal
Result<void> relayAptMethod(const AptRelay& relay);

}  // namespace muster::provision
