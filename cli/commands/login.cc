// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/login.h"

#include "api/oidc/login_client.h"
#include "base/json_output.h"
#include "cli/exit_code.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {

int login(const app::Options& options) {
  const auto file = api::LoginFile::ofUser();
  if (!file) return report(file.error());
  const auto done = api::logIn(options, *file, [](const api::LoginPrompt& prompt) {
    const auto minutes = std::chrono::ceil<std::chrono::minutes>(prompt.expires_in).count();
    std::cerr << fmt::format("Open {} in a browser and enter the code: {}\n",
                             prompt.verification_uri, prompt.user_code);
    if (!prompt.verification_uri_complete.empty())
      std::cerr << fmt::format("or open {}\n", prompt.verification_uri_complete);
    std::cerr << fmt::format(
        "Enter it only if you have just begun this login yourself. It is good "
        "for {} min.\n",
        minutes);
  });
  if (!done) return report(done.error());
  if (options.json)
    std::cout << jsonText(nlohmann::json{{"principal", done->principal},
                                         {"expires_at", muster::toString(done->expires_at)},
                                         {"file", file->path().string()}},
                          2)
              << "\n";
  else
    std::cout << fmt::format("{} until {}, for {} (kept in {})\n", done->principal,
                             muster::toString(done->expires_at), options.server,
                             file->path().string());
  return kOk;
}

int logout(const app::Options& options) {
  const auto file = api::LoginFile::ofUser();
  if (!file) return report(file.error());
  const auto done = api::logOut(options, *file);
  if (!done) return report(done.error());
  if (options.json)
    std::cout << jsonText(nlohmann::json{{"logged_out", *done}}, 2) << "\n";
  else
    std::cout << (*done ? "logged out of " : "nobody was logged in to ") << options.server << "\n";
  return kOk;
}

}  // namespace muster::cli
