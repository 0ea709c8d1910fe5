// SPDX-License-Identifier: Apache-2.0
// muster's command line: words → options → one command.
#include "api/site_choice.h"
#include "app/backup/backup.h"
#include "app/build_unit.h"
#include "app/daemon_units.h"
#include "app/site/actor.h"
#include "app/site/service_user.h"
#include "app/site/settings_file.h"
#include "base/json_output.h"
#include "base/main_guard.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "cli/arguments/command_line.h"
#include "cli/arguments/host_commands.h"
#include "cli/exit_code.h"
#include "cli/tree/command_tree.h"
#include "cli/tree/shut_word.h"
#include "provision/images/fetch/fetch_socket.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

using namespace muster;
using namespace muster::cli;

namespace {

/// Cuts the line behind `lab exec`; answers what stood there.
std::vector<std::string> splitForeignCommand(int& argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i - 1]) != "lab" || std::string_view(argv[i]) != "exec") continue;
    if (i + 1 < argc && std::string_view(argv[i + 1]) == "--help") break;
    std::vector<std::string> command(argv + i + 1, argv + argc);
    argc = i + 1;
    return command;
  }
  return {};
}

constexpr std::size_t kMaxCommandBytes = 2'000;

/// The line for the journal; what stands between ':' and '@' of a URL is a password.
std::string journaled(int argc, char** argv) {
  std::string out = "muster";
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    const auto scheme = word.find("://"), at = word.find('@');
    if (scheme != std::string::npos && at != std::string::npos && at > scheme)
      if (const auto colon = word.find(':', scheme + 3); colon < at)
        word.replace(colon + 1, at - colon - 1, "…");
    out += " " + word;
  }
  return std::string(cutToBytes(out, kMaxCommandBytes));
}

/// Commands that change something and work on the host's own state only.
const std::set<std::string> kActsHere{"apply", "bmc", "cert",    "erase",    "fabric", "firmware",
                                      "image", "key", "rollout", "validate", "wipe"};

/// Commands that need root: the twin makes machines and namespaces, the others write beside the
/// state folder.
const std::set<std::string> kStayRoot{"init", "lab", "login", "logout", "restore"};

/// Root who works with the folder of the services' user becomes that user
/// (app/site/service_user.h); who asked stays known. Answers whether it did.
Result<bool> leaveRoot(Invocation& call, const std::string& command) {
  if (kStayRoot.contains(command)) return false;
  if (command == "backup") TRY_OK(app::takeSignerKeys(call.options));
  auto actor = app::actorText();
  TRY(left, app::becomeOwnerOf(call.options.state));
  if (left && call.options.actor.empty()) call.options.actor = std::move(actor);
  return left;
}

/// After a failure of a command that has left root: its user wonders what root cannot read.
void sayWhatIsShut(const Invocation& call, int argc, char** argv) {
  const auto access = accessOfThisProcess();
  const char* shut = shutWord({argv + 1, static_cast<std::size_t>(argc - 1)}, access);
  if (!shut && access(call.options.inventory, R_OK) == EACCES)
    shut = call.options.inventory.c_str();
  if (!shut) return;
  std::cerr << fmt::format(
      "muster: this command worked as user {}, whom {} belongs to, and \"{}\" is shut to that "
      "user: let it read or write there, or put the file elsewhere\n",
      app::kServiceUser, call.options.state.string(), shut);
}

/// The one word of muster-build@.service, which no person types: a build for a muster that is not
/// root. Its connection is standard input.
constexpr std::string_view kServeBuild = "serve-build";
constexpr const char* kBuildFolder = "/var/cache/muster-build";

int serveBuild() {
  const char* folder = std::getenv("CACHE_DIRECTORY");  // of systemd
  const char* fetch = std::getenv(provision::kFetchSocketVariable);
  const auto done = app::serveBuild(app::defaultOptions(), STDIN_FILENO,
                                    folder ? folder : kBuildFolder, fetch ? fetch : "");
  return done ? kOk : report(done.error());
}

/// Of muster-dnsmasq.service and muster-subnet-manager.service, which read no settings.
constexpr std::string_view kServeDaemon = "serve-daemon";

int run(int argc, char** argv) {
  if (argc == 3 && argv[1] == kServeDaemon) {
    const auto done = app::serveDaemon(argv[2]);
    return done ? kOk : report(done.error());
  }
  if (const auto applied = app::applySettingsFile(); !applied) {
    report(applied.error());
    return kUsage;
  }
  if (argc == 2 && argv[1] == kServeBuild) return serveBuild();
  Invocation call;
  call.options.command_line = journaled(argc, argv) + app::sudoClaimText();
  const auto foreign = splitForeignCommand(argc, argv);
  CLI::App app{"muster: from bare metal to a trusted pool"};
  buildCommandLine(app, call, foreign);
  const bool json = std::any_of(
      argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  if (json) reportAsJson();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    if (!json) return app.exit(version) == 0 ? kOk : kUsage;
    std::cout << jsonText(nlohmann::json{{"version", version.what()}}) << '\n';
    return kOk;
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return kOk;
    const auto advice = adviceOnWords(app, std::vector<std::string>(argv + 1, argv + argc));
    if (!advice.empty()) std::cerr << advice << '\n';
    if (json)
      std::cout << errorJson(
                       Error(ErrorCode::InvalidInput,
                             std::string(error.what()) + (advice.empty() ? "" : "; ") + advice))
                << '\n';
    return kUsage;
  }
  if (call.options.server_given && !call.asks_server) {
    const auto words = commandWords(app);
    const auto* here = hostCommandOf(words);
    report(Error(ErrorCode::InvalidInput,
                 here ? refusalText(*here, words)
                      : fmt::format("`muster {}` asks no server; leave out --server", words)));
    return kUsage;
  }
  const bool asks_named = call.asks_server && !call.options.server.empty() &&
                          (!call.options.direct || call.options.server_given);
  if (const auto named = asks_named ? api::checkServerName(call.options.server) : Result<void>();
      !named) {
    report(named.error());
    return kUsage;
  }
  // Who set it for all commands may take this one for the server's as well.
  const auto* acts = app.get_subcommands().empty() ? nullptr : app.get_subcommands().front();
  if (!call.options.server.empty() && !call.asks_server && acts &&
      kActsHere.contains(acts->get_name()))
    std::cerr << fmt::format(
        "muster: MUSTER_SERVER is not asked by `{}`: it works on this host's state folder\n",
        acts->get_name());
  const auto left = leaveRoot(call, acts ? acts->get_name() : "");
  if (!left) return report(left.error());
  const int code = call.run();
  if (*left && code == kFailed) sayWhatIsShut(call, argc, argv);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const RefusedOutput closed;
  const PrintableStream out(std::cout),
      problems(std::cerr);  // whatever a command prints of what machines say
  const int code = guardedMain("muster", [&] { return run(argc, argv); });
  return codeOnceWritten("muster", code, std::cout, STDOUT_FILENO);
}
