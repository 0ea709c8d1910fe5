// SPDX-License-Identifier: Apache-2.0
// key: the site's keys, one a purpose, and how they are changed.
#include "app/site/key_rotation.h"

#include "base/io/trusted_keys.h"
#include "base/json_output.h"
#include "cli/commands/print_done.h"
#include "cli/commands/records.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

constexpr std::string_view kCaCannotRotate =
    "ca            cannot be rotated yet: nodes pin its fingerprint when they boot and keep its "
    "root; a new one means to image every node anew (docs/keys.md)\n";

/// What has to be done outside the state folder.
std::string_view afterRotation(app::KeyPurpose purpose) {
  switch (purpose) {
    case app::KeyPurpose::Images:
      return "nodes get both keys with every order; other sites that take your exported images "
             "need: muster key show images";
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

int start(const app::Options& options, app::KeyPurpose purpose) {
  const auto started = app::startKeyRotation(options, purpose);
  if (!started) return report(started.error());
  return printDone(
      options,
      {{"purpose", app::rowOf(purpose).name},
       {"signs", started->new_id},
       {"verifies", {started->new_id, started->previous_id}}},
      fmt::format("{0}: key {1} signs from now on; what {2} has signed still counts until: muster "
                  "key rotate "
                  "{0} --finish\n{3}\n"
                  "with several controllers, copy {4}/keys to the other hosts before they serve "
                  "(docs/two-hosts.md)\n",
                  app::rowOf(purpose).name, started->new_id, started->previous_id,
                  afterRotation(purpose), options.state.string()));
}

int finish(const app::Options& options, app::KeyPurpose purpose, bool force) {
  const auto retired = app::finishKeyRotation(options, purpose, force);
  if (!retired) return report(retired.error());
  return printDone(
      options, {{"purpose", app::rowOf(purpose).name}, {"retired", retired->string()}},
      fmt::format(
          "{}: only the present key counts now. The public half of the one before is kept: {}\n",
          app::rowOf(purpose).name, retired->string()));
}

int replaceLost(const app::Options& options, app::KeyPurpose purpose) {
  const auto id = app::replaceLostSiteKey(options, purpose);
  if (!id) return report(id.error());
  return printDone(
      options, {{"purpose", app::rowOf(purpose).name}, {"signs", *id}},
      fmt::format("{}: key {} signs from now on; what the lost one has signed no longer "
                  "counts\n{}\n",
                  app::rowOf(purpose).name, *id, afterRotation(purpose)));
}

}  // namespace

int keyList(const app::Options& options) {
  const auto keys = app::siteKeyStates(options);
  if (!keys) return report(keys.error());
  nlohmann::json all = nlohmann::json::array();
  for (const auto& key : *keys) {
    const auto& row = app::rowOf(key.purpose);
    const auto& ids = key.ids;
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
    std::cout << kCaCannotRotate;
  return kOk;
}

int keyShow(const app::Options& options, const KeyShowArgs& args) {
  const auto purpose = app::parseKeyPurpose(args.purpose);
  if (!purpose) return report(purpose.error());
  const auto key = app::publicKey(options, *purpose);
  if (!key) return report(key.error());
  if (options.json)
    std::cout << jsonText(nlohmann::json{{"purpose", args.purpose},
                                         {"verifies", io::publicKeyIds(*key)},
                                         {"public_pem", *key}})
              << '\n';
  else
    std::cout << *key;
  return kOk;
}

int keyRotate(const app::Options& options, const KeyRotateArgs& args) {
  const auto purpose = app::parseKeyPurpose(args.purpose);
  if (!purpose) return report(purpose.error());
  if (args.lost) return replaceLost(options, *purpose);
  return args.finish ? finish(options, *purpose, args.force) : start(options, *purpose);
}

}  // namespace muster::cli
