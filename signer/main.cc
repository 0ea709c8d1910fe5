// SPDX-License-Identifier: Apache-2.0
// muster-signer: holds the site's most valuable keys, in a process that parses nothing but its own
// small requests (docs/adr/0367).
//
//   muster-signer serve                     by muster-signer.service, for its socket
//   muster-signer adopt STATE [--replace]   by root: the keys of a state folder become the signer's
#include "base/io/spawn.h"
#include "base/log.h"
#include "base/main_guard.h"
#include "base/printable.h"
#include "signer/adoption.h"
#include "signer/signer_server.h"

#include <fmt/format.h>

#include <grp.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

using namespace muster;

namespace {

constexpr int kOk = 0, kFailed = 1, kUsage = 2;
constexpr int kFirstSocket = 3;  // SD_LISTEN_FDS_START
using signer::kServiceUser, signer::kSignerUser, signer::userOf;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int report(const Error& error) {
  std::cerr << "muster-signer: " << printable(error.str()) << "\n";
  return kFailed;
}

int serve() {
  const std::string folder = environment("STATE_DIRECTORY");
  if (::geteuid() == 0 || folder.empty() ||
      environment("LISTEN_PID") != std::to_string(::getpid()) || environment("LISTEN_FDS") != "1")
    return report(Error(ErrorCode::Denied, "the signer is started by systemd, for its socket"));
  const auto asker = userOf(kServiceUser);
  if (!asker)
    return report(
        Error(ErrorCode::NotFound, fmt::format("this host has no user {}", kServiceUser)));
  startLog({}, LogLevel::Info);
  signer::SignerServerOptions options;
  options.folder = folder;
  options.asker = asker->uid;
  const auto done = signer::serveSigner(kFirstSocket, options);
  return done ? kOk : report(done.error());
}

int adopt(const std::string& state, bool replace) {
  const auto service = userOf(kServiceUser), own = userOf(kSignerUser);
  if (::geteuid() != 0 || !service || !own)
    return report(Error(ErrorCode::Denied, fmt::format("only root can do this, on a host with the "
                                                       "users {} and {}",
                                                       kServiceUser, kSignerUser)));
  (void)!::setgroups(0, nullptr);  // what it reads as another user, it reads as that user alone
  const auto done = signer::adoptKeys(
      {state, signer::kSignerFolder, signer::kSignerSocket, service, own, replace});
  if (!done) return report(done.error());
  for (const auto& line : *done) std::cerr << "muster: " << printable(line) << "\n";
  return kOk;
}

int run(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "serve") return serve();
  const bool replace = argc == 4 && std::string_view(argv[3]) == "--replace";
  if ((argc == 3 || replace) && std::string_view(argv[1]) == "adopt")
    return adopt(argv[2], replace);
  std::cerr << "muster-signer serve | adopt STATE [--replace]\n";
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  return guardedMain("muster-signer", [&] { return run(argc, argv); });
}
