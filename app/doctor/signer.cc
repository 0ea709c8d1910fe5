// SPDX-License-Identifier: Apache-2.0
#include "app/doctor/checks.h"

#include "base/io/trusted_keys.h"
#include "signer/signer_client.h"

#include <fmt/format.h>

namespace muster::app::doctor {

using enum DoctorVerdict;

void lookAtSigner(const Options& options, Lines& out) {
  const auto held = signer::signerOf(options.state);
  if (!held) {
    // A folder that this user may not read is said above.
    if (held.error().code() != ErrorCode::Corrupt) return;
    out.push_back(
        {"signer", Bad, held.error().str(), "nothing can be signed", "/usr/lib/muster/own-state"});
    return;
  }
  if (!*held) return;
  const auto halves = signer::signerAt(**held).publicHalves();
  if (!halves) {
    out.push_back({"signer", Bad, halves.error().str(),
                   "no node enrolls, no gate's pass becomes a certificate, nothing is revoked",
                   "systemctl enable --now muster-signer.socket; journalctl -u muster-signer"});
    return;
  }
  const auto here = signer::readPublicHalves(options.state);
  if (!here && here.error().code() == ErrorCode::NotFound)
    return ok(out, "signer", "answers; the site has no keys yet");
  if (here && here->ca == halves->ca && here->certificates == halves->certificates)
    return ok(out, "signer",
              fmt::format("holds the CA's key and the one for certificates ({})",
                          io::publicKeyIds(halves->certificates).front()));
  out.push_back({"signer", Bad,
                 fmt::format("{} has public halves of other keys than the signer holds",
                             options.state.string()),
                 "what it signs is refused here", "/usr/lib/muster/own-state"});
}

}  // namespace muster::app::doctor
