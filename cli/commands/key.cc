// SPDX-License-Identifier: Apache-2.0
// key: the site's keys, one a purpose, and how they are changed.
#include "app/site_keys.h"
#include "base/json_output.h"
#include "cli/commands/commands.h"
#include "cli/session.h"

#include "base/io/trusted_keys.h"
#include "lifecycle/model/certificate_keys.h"
#include "validate/revocations.h"
#include "validate/validate.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

constexpr std::size_t kNodesNamed = 5;
constexpr std::string_view kCaCannot =
    "ca            cannot be rotated yet: nodes pin its fingerprint when they boot and keep its "
    "root; a new one means to image every node anew (docs/keys.md)\n";

/// What happens outside the state folder: how others learn of the new key.
std::string_view afterwards(app::KeyPurpose purpose) {
  switch (purpose) {
    case app::KeyPurpose::Images:
      return "nodes are told both keys with every order; other sites that take your exported "
             "images need: muster key show images";
    case app::KeyPurpose::Certificates:
      return "whoever verifies certificates far from here needs both keys now: muster key show "
             "certificates";
    case app::KeyPurpose::Firmware:
      return "put `muster key show firmware` into the baselines' `signer` file: it holds both "
             "keys; then sign each baseline again: muster firmware sign BASELINE";
    case app::KeyPurpose::Audit:
      return "keep `muster key show audit` where the exported heads are kept";
  }
  return "";
}

bool hasOpenImage(const std::vector<lifecycle::Intent>& open, std::string& who) {
  for (const auto& intent : open)
    if (intent.action.facet.facet.str() == "image") {
      who = intent.action.facet.subject.str();
      return true;
    }
  return false;
}

bool storeIsThere(const app::Options& options) {
  std::error_code ignored;
  return !options.store.empty() || std::filesystem::exists(options.state / "muster.db", ignored);
}

/// An order names the key whose index it believes; one that is under way would be refused its
/// image.
Result<void> mayRotate(const app::Options& options, app::KeyPurpose purpose) {
  if (purpose != app::KeyPurpose::Images || !storeIsThere(options)) return {};
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY(open, store->openIntents());
  std::string who;
  if (hasOpenImage(open, who))
    return fail(ErrorCode::Conflict,
                fmt::format("{} is being imaged, and would refuse an image signed by a new key; "
                            "let it end first: muster apply",
                            who));
  return {};
}

/// Nodes whose certificates would not hold any more.
Result<std::vector<std::string>> heldByTheKeyBefore(const inventory::Cluster& cluster,
                                                    lifecycle::Store& store,
                                                    const io::SigningKey& key) {
  std::vector<std::string> out;
  const auto now = SystemClock().now();
  for (const auto& node : cluster.nodes) {
    TRY(text, store.getValue(lifecycle::certificateKey(node.name)));
    const auto certificate = text ? validate::Certificate::fromJson(*text)
                                  : Result<validate::Certificate>(fail(ErrorCode::NotFound, ""));
    if (certificate && certificate->expires_at > now && certificate->key_id != key.id())
      out.push_back(node.name.str());
  }
  return out;
}

Result<void> mayFinish(const app::Options& options, app::KeyPurpose purpose, bool force) {
  if (purpose != app::KeyPurpose::Certificates || !storeIsThere(options)) return {};
  TRY(live, effectiveCluster(options));
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY(key, app::loadKey(options.state, purpose));
  TRY(held, heldByTheKeyBefore(live->cluster(), *store, key));
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
  validate::Revocations revocations(*store, options.state / "certificates", key);
  TRY_OK(revocations.signAgain());
  return {};
}

Result<std::string> rotated(const app::Options& options, app::KeyPurpose purpose) {
  TRY(turn, app::acquireLock(options.state));
  (void)turn;  // held to the end
  TRY_OK(mayRotate(options, purpose));
  TRY(before, app::loadKey(options.state, purpose));
  TRY(key, app::rotateKey(options.state, purpose));
  return fmt::format(
      "{0}: key {1} signs from now on; what {2} has signed still counts until: muster key rotate "
      "{0} --finish\n{3}\n"
      "with several controllers, copy {4}/keys to the other hosts before they serve "
      "(docs/two-hosts.md)\n",
      app::rowOf(purpose).name, key.id(), before.id(), afterwards(purpose), options.state.string());
}

Result<std::string> finished(const app::Options& options, app::KeyPurpose purpose, bool force) {
  TRY(turn, app::acquireLock(options.state));
  (void)turn;  // held to the end
  TRY_OK(mayFinish(options, purpose, force));
  TRY(retired, app::finishRotation(options.state, purpose));
  return fmt::format(
      "{}: only the present key counts now. The public half of the one before is kept: {}\n",
      app::rowOf(purpose).name, retired.string());
}

}  // namespace

int keyList(const app::Options& options) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& row : app::kKeyPurposes) {
    const auto pem = app::publicKeyOf(options.state, row.purpose);
    if (!pem && pem.error().code() != ErrorCode::NotFound) return report(pem.error());
    const auto ids = pem ? io::publicKeyIds(*pem) : std::vector<std::string>();
    if (!options.json)
      std::cout << fmt::format(
          "{:<14}{}{}  {}\n", row.name, ids.empty() ? "none yet" : ids.front(),
          ids.size() > 1 ? fmt::format(" signs, {} still verifies", ids[1]) : "", row.signs);
    all.push_back({{"purpose", row.name},
                   {"signs", ids.empty() ? nlohmann::json() : nlohmann::json(ids.front())},
                   {"verifies", ids}});
  }
  if (options.json)
    std::cout << jsonText(all, 2) << "\n";
  else
    std::cout << kCaCannot;
  return kOk;
}

int keyShow(const app::Options& options, const std::string& name) {
  const auto purpose = app::parseKeyPurpose(name);
  if (!purpose) return report(purpose.error());
  const auto key = app::loadKey(options.state, *purpose);
  if (!key) return report(key.error());
  std::cout << key->public_pem;
  return kOk;
}

int keyRotate(const app::Options& options, const KeyFlags& flags) {
  const auto purpose = app::parseKeyPurpose(flags.purpose);
  if (!purpose) return report(purpose.error());
  const auto done =
      flags.finish ? finished(options, *purpose, flags.force) : rotated(options, *purpose);
  if (!done) return report(done.error());
  std::cout << *done;
  return kOk;
}

}  // namespace muster::cli
