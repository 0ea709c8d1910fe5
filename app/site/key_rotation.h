// SPDX-License-Identifier: Apache-2.0
// key rotate: changes one of the site's keys without breaking what it has signed. docs/keys.md
#pragma once

#include "app/site/options.h"
#include "app/site/site_keys.h"

namespace muster::app {

struct KeyState {
  KeyPurpose purpose;
  std::vector<std::string> ids;  ///< the first signs, all verify; empty: there is none yet
};
Result<std::vector<KeyState>> siteKeyStates(const Options& options);

/// The public halves that verify, PEM, the one that signs first. Where muster has worked before, a
/// key that was never needed is made. Errors: NotFound (no state of muster is there: nothing is
/// made, for another folder may have been meant)
Result<std::string> publicKey(const Options& options, KeyPurpose purpose);

struct StartedRotation {
  std::string new_id, previous_id;  ///< both verify until the rotation is finished
};
/// Errors: Conflict (an image is being written, or a rotation is under way)
Result<StartedRotation> startKeyRotation(const Options& options, KeyPurpose purpose);

/// What the previous key has signed counts no more. Answers where its public half is kept.
/// `force`: although nodes have certificates of the previous key; these end. Errors: Conflict,
/// NotFound (none is under way)
/// For a key whose file is gone: nothing that it has signed counts any more.
Result<std::string> replaceLostSiteKey(const Options& options, KeyPurpose purpose);

Result<std::filesystem::path> finishKeyRotation(const Options& options, KeyPurpose purpose,
                                                bool force);

}  // namespace muster::app
