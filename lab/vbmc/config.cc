// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/config.h"

#include "base/json_input.h"
#include "base/json_output.h"

namespace muster::lab::vbmc {

using nlohmann::json;

std::string Config::str() const {
  json root = {{"libvirt_uri", libvirt_uri}, {"folder", folder.string()}, {"bmcs", json::array()}};
  for (const auto& bmc : bmcs)
    root["bmcs"].push_back({{"address", bmc.address},
                            {"port", bmc.port},
                            {"username", bmc.account.username},
                            {"salt", bmc.account.salt},
                            {"password_sha256", bmc.account.password_sha256},
                            {"domain", toJson(bmc.domain)},
                            {"vendor_profile", bmc.vendor_profile}});
  return jsonText(root, 2) + "\n";
}

Result<Config> Config::parse(std::string_view text) {
  auto root = jsonOrNone(text, kKeptJson);
  try {
    Config config;
    config.libvirt_uri = root.at("libvirt_uri");
    config.folder = root.at("folder").get<std::string>();
    for (const auto& entry : root.at("bmcs")) {
      TRY(domain, domainFromJson(entry.at("domain")));
      config.bmcs.push_back({entry.at("address"),
                             entry.at("port"),
                             {entry.at("username"), entry.at("salt"), entry.at("password_sha256")},
                             domain,
                             entry.value("vendor_profile", "muster")});
    }
    return config;
  } catch (const json::exception& problem) {
    return fail(ErrorCode::Corrupt,
                fmt::format("not a configuration of muster-vbmc: {}", problem.what()));
  }
}

}  // namespace muster::lab::vbmc
