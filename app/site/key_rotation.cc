// SPDX-License-Identifier: Apache-2.0
#include "app/site/key_rotation.h"

#include "app/site/effective_cluster.h"
#include "app/site/state_lock.h"
#include "base/io/trusted_keys.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/certificate_keys.h"
#include "validate/revocations.h"
#include "validate/validate.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace muster::app {
namespace {

constexpr std::size_t kNodesNamed = 5;

/// An order names the key whose index it accepts; one that is under way would be refused its image.
Result<void> mayRotate(const Options& options, KeyPurpose purpose) {
  if (purpose != KeyPurpose::Images || !storeExists(options)) return {};
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY(open, store->openIntents());
  for (const auto& intent : open)
    if (intent.action.facet.facet.str() == "image")
      return fail(ErrorCode::Conflict,
                  fmt::format("{} is being imaged, and would refuse an image signed by a new key; "
                              "let it end first: muster apply",
                              intent.action.facet.subject.str()));
  return {};
}

/// Nodes whose certificates hold, and would not any more. What was revoked or has run out keeps
/// nobody waiting.
Result<std::vector<std::string>> nodesOfPreviousKey(const inventory::Cluster& cluster,
                                                    lifecycle::Store& store,
                                                    const signer::CertificateKey& key,
                                                    const validate::Revocations& revocations) {
  std::vector<std::string> out;
  const auto now = SystemClock().now();
  TRY(revoked, revocations.list());
  for (const auto& node : cluster.nodes) {
    TRY(text, store.getValue(lifecycle::certificateKey(node.name)));
    const auto certificate = text ? validate::Certificate::fromJson(*text)
                                  : Result<validate::Certificate>(fail(ErrorCode::NotFound, ""));
    if (certificate && certificate->key_id != key.id() &&
        validate::verifyOffline(*certificate, key.public_pem, now, *revoked))
      out.push_back(node.name.str());
  }
  return out;
}

Result<void> prepareFinish(const Options& options, KeyPurpose purpose, bool force) {
  if (purpose != KeyPurpose::Certificates || !storeExists(options)) return {};
  TRY(live, effectiveCluster(options));
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY(key, certificateKey(options.state));
  validate::Revocations revocations(*store, options.state / "certificates", key);
  TRY(held, nodesOfPreviousKey(live->cluster(), *store, key, revocations));
  if (!held.empty() && !force) {
    const auto count = held.size();
    held.resize(std::min(count, kNodesNamed));
    return fail(
        ErrorCode::Conflict,
        fmt::format(
            "{} nodes still have a certificate of the key before ({}{}): they get one of the new "
            "key when they are validated again (`muster validate run`, or when "
            "the old one runs out). To end them now, because the key is lost to somebody: --force",
            count, fmt::join(held, ", "), count > kNodesNamed ? ", …" : ""));
  }
  TRY_OK(revocations.signAgain());
  return {};
}

}  // namespace

Result<std::vector<KeyState>> siteKeyStates(const Options& options) {
  std::vector<KeyState> out;
  for (const auto& row : kKeyPurposes) {
    const auto pem = publicKeyOf(options.state, row.purpose);
    if (!pem && pem.error().code() != ErrorCode::NotFound) return fail(pem.error());
    out.push_back({row.purpose, pem ? io::publicKeyIds(*pem) : std::vector<std::string>()});
  }
  return out;
}

Result<std::string> publicKey(const Options& options, KeyPurpose purpose) {
  auto key = publicKeyOf(options.state, purpose);
  if (key || key.error().code() != ErrorCode::NotFound) return key;
  std::error_code ignored;
  if (!storeExists(options) && !std::filesystem::exists(options.state / "keys", ignored))
    return fail(ErrorCode::NotFound,
                fmt::format("{} is no state folder of muster, so it has no keys; name the right "
                            "one: --state FOLDER. A new site gets its keys with its first image: "
                            "muster image build",
                            options.state.string()));
  TRY(made, loadKey(options.state, purpose));
  return std::move(made.public_pem);
}

Result<StartedRotation> startKeyRotation(const Options& options, KeyPurpose purpose) {
  TRY(lock, acquireLock(options.state));
  (void)lock;  // held to the end
  TRY_OK(mayRotate(options, purpose));
  TRY(before, loadKey(options.state, purpose));
  TRY(key, rotateKey(options.state, purpose));
  return StartedRotation{key.id(), before.id()};
}

Result<std::string> replaceLostSiteKey(const Options& options, KeyPurpose purpose) {
  TRY(lock, acquireLock(options.state));
  (void)lock;  // held to the end
  TRY(key, replaceLostKey(options.state, purpose));
  return key.id();
}

Result<std::filesystem::path> finishKeyRotation(const Options& options, KeyPurpose purpose,
                                                bool force) {
  TRY(lock, acquireLock(options.state));
  (void)lock;  // held to the end
  TRY_OK(prepareFinish(options, purpose, force));
  return finishRotation(options.state, purpose);
}

}  // namespace muster::app
