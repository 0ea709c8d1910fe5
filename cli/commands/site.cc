// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/site.h"

#include "api/access_doctor.h"
#include "api/access_file.h"
#include "app/site/service_user.h"
#include "base/json_output.h"
#include "cli/commands/site_questions.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace muster::cli {

int initSite(const app::Options& options, const InitArgs& args) {
  auto answers = args.answers;
  if (::isatty(STDIN_FILENO) != 0 && (answers.name.empty() || answers.network.empty()) &&
      !askForAnswers(std::cin, std::cout, answers))
    return report(Error(ErrorCode::InvalidInput,
                        "the input ended before all was answered: nothing was written"));
  if (answers.name.empty() || answers.network.empty())
    return report(Error(ErrorCode::InvalidInput,
                        "give --name and --network, or run it on a terminal, where it asks"));
  const auto text = app::newInventory(answers);
  if (!text) return report(text.error());
  const auto written = app::writeNewInventory(options.inventory, *text);
  if (!written) return report(written.error());
  const auto file = options.inventory.string();
  if (options.json) {
    std::cout << jsonText(nlohmann::json{{"inventory", file}}) << '\n';
    return kOk;
  }
  const std::filesystem::path named = answers.bmc_password_file;
  const auto secret = named.is_absolute()
                          ? named
                          : std::filesystem::absolute(options.inventory).parent_path() / named;
  std::error_code unknown;
  std::cout << fmt::format("{}: written\nnext:\n", file);
  if (!std::filesystem::exists(secret, unknown)) {
    // Typed by root, the file would be one that the service cannot read.
    if (app::belongsToServiceUser(options.state))
      std::cout << fmt::format(
          "  install -o {} -m 0600 /dev/stdin {}   # the BMCs' password, Ctrl-D\n",
          app::kServiceUser, secret.string());
    else
      std::cout << fmt::format(
          "  (umask 077; mkdir -p {}; cat > {})   # the BMCs' password, Ctrl-D\n",
          secret.parent_path().string(), secret.string());
  }
  std::cout << fmt::format(
      "  muster inventory check\n  muster doctor\n  muster discover scan   # then approve, --write "
      "(docs/first-machine.md)\n");
  return kOk;
}

int doctor(const app::Options& options, const DoctorArgs& args) {
  auto request = args.request;
  request.besides = [&](const inventory::Cluster* cluster, std::vector<app::DoctorLine>& out) {
    const auto file =
        args.access_file.empty() ? std::filesystem::path(api::kAccessFile) : args.access_file;
    for (auto& line : api::examineAccess(file, options.state / "ca/ca.crt", cluster))
      out.push_back(std::move(line));
  };
  const auto lines = app::examineHost(options, request);
  const bool bad = std::ranges::any_of(
      lines, [](const auto& line) { return line.verdict == app::DoctorVerdict::Bad; });
  if (options.json) {
    auto all = nlohmann::json::array();
    for (const auto& line : lines)
      all.push_back({{"what", line.what},
                     {"verdict", app::wordOf(line.verdict)},
                     {"text", line.text},
                     {"why", line.why},
                     {"mend", line.mend}});
    std::cout << jsonText(nlohmann::json{{"ok", !bad}, {"lines", all}}, 2) << '\n';
    return bad ? kFailed : kOk;
  }
  for (const auto& line : lines) {
    std::cout << fmt::format("{:<9}{:<13}{}\n", app::wordOf(line.verdict), line.what, line.text);
    if (line.verdict == app::DoctorVerdict::Ok) continue;
    std::cout << fmt::format("{:22}why:  {}\n{:22}mend: {}\n", "", line.why, "", line.mend);
  }
  return bad ? kFailed : kOk;
}

}  // namespace muster::cli
