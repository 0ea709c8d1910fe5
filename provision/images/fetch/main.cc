// SPDX-License-Identifier: Apache-2.0
// muster-fetch: what images are made of comes through it where the build unit has no network
// (docs/adr/0437).
//
//   muster-fetch serve   by muster-fetch@.service, for one connection: fetches, and is not root
//   …/http, …/https      by apt in the build unit, where it lies in the place of apt's own methods
#include "base/log.h"
#include "base/main_guard.h"
#include "base/printable.h"
#include "provision/images/fetch/apt_relay.h"
#include "provision/images/fetch/fetch_socket.h"
#include "provision/images/fetch/fetch_unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

using namespace muster;

namespace {

constexpr int kOk = 0, kFailed = 1, kUsage = 2;
constexpr const char* kDefaultFolder = "/var/tmp";

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

int report(const Result<void>& done) {
  if (done) return kOk;
  std::cerr << "muster-fetch: " << printable(done.error().str()) << "\n";
  return kFailed;
}

int run(int argc, char** argv) {
  const auto name = std::filesystem::path(argc > 0 ? argv[0] : "").filename();
  if (argc == 1 && (name == "http" || name == "https")) {
    std::signal(SIGPIPE, SIG_IGN);
    return report(provision::relayAptMethod(
        {.scheme = name.string(),
         .socket = environment(provision::kFetchSocketVariable, provision::kFetchSocket),
         .owner = ::geteuid()}));
  }
  if (argc == 2 && std::string_view(argv[1]) == "serve") {
    if (::geteuid() == 0)
      return report(fail(ErrorCode::Denied,
                         "fetching is not for root: muster-fetch.socket starts it as its user"));
    startLog({}, LogLevel::Info);
    ::umask(0077);
    return report(provision::serveFetchRequest(STDIN_FILENO,
                                               {.folder = environment("TMPDIR", kDefaultFolder)}));
  }
  std::cerr << "muster-fetch serve\n";
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  return guardedMain("muster-fetch", [&] { return run(argc, argv); });
}
