// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/notify.h"

#include "app/records/notifications.h"
#include "app/site/site_records.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "monitor/notify/webhook.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {

int notifyList(const app::Options& options) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto receivers = (*site)->records().receivers();
  if (!receivers) return report(receivers.error());
  if (options.json) {
    auto all = nlohmann::json::array();
    for (const auto& each : *receivers)
      all.push_back({{"name", each.name},
                     {"url", each.url},
                     {"format", each.format},
                     {"told", each.is_told},
                     {"waiting", each.waiting},
                     {"trouble", each.trouble}});
    std::cout << jsonText(all) << '\n';
    return kOk;
  }
  if (receivers->empty())
    std::cout << "nobody outside is told: the inventory has no notifications "
                 "(docs/notifications.md)\n";
  for (const auto& each : *receivers) {
    std::string state = "alerts are sent while a monitor or server runs";
    if (each.format != "alertmanager")
      state = each.is_told ? fmt::format("{} waiting", each.waiting) : "was never told of anything";
    std::cout << fmt::format("{:<16} {:<18} {}  {}\n", each.name, each.format, each.url,
                             each.trouble.empty() ? state : each.trouble);
  }
  return kOk;
}

int notifyTest(const app::Options& options, const NotifyTestArgs& args) {
  if (const auto sent = app::tryReceiver(options, args.name); !sent) return report(sent.error());
  if (options.json)
    std::cout << jsonText(nlohmann::json{{"name", args.name}, {"taken", true}}) << '\n';
  else
    std::cout << fmt::format("{} has taken a trial message\n", args.name);
  return kOk;
}

int notifySecret(const app::Options& options) {
  const auto secret = monitor::newWebhookSecret();
  if (options.json)
    std::cout << jsonText(nlohmann::json{{"secret", secret.reveal()}}) << '\n';
  else
    std::cout << secret.reveal() << '\n';
  return kOk;
}

}  // namespace muster::cli
