// SPDX-License-Identifier: Apache-2.0
// Stands in for muster-agent in the RAM OS of a test: fetches its task from muster.test=URL on the
// kernel command line, writes the disk, says how it went on the console, powers off. The identity
// that it installs is made up. On the installed system, where it is copied like the agent, it says
// that it was started.
#include "agent/imaging/writer.h"
#include "base/io/files.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <sys/reboot.h>
#include <unistd.h>
#include <fstream>
#include <iostream>

using namespace muster;

namespace {

Async<agent::InstalledIdentity> madeUp() {
  co_return agent::InstalledIdentity{Secret("key of the test\n"), "certificate of the test\n"};
}

Async<> work(std::string url, std::string mac, Workers* workers, Clock* clock) {
  auto http = io::makeHttpClient();
  io::HttpRequest request;
  auto parsed = io::Url::parse(url);
  if (!parsed) co_return fail(std::move(parsed).error());
  request.url = *parsed;
  CO_TRY(answer, co_await http->send(std::move(request)));
  CO_TRY(params, wire::parseWriteImageParams(answer.body));
  agent::WriterDeps deps{[] { return io::makeHttpClient(); },
                         *workers,
                         *clock,
                         madeUp,
                         [](double fraction, const std::string& text) {
                           std::cout << "writer: " << static_cast<int>(fraction * 100) << "% "
                                     << text << std::endl;
                         },
                         mac};
  CO_TRY(report, co_await agent::writeImage(params, std::move(deps), std::chrono::seconds(540)));
  std::cout << "writer: done " << report.json() << std::endl;
  co_return Result<void>();
}

}  // namespace

int main() {
  std::ifstream file("/proc/cmdline");
  std::string url, mac;
  for (std::string word; file >> word;) {
    if (word.starts_with("muster.test=")) url = word.substr(12);
    if (word.starts_with("muster.mac=")) mac = word.substr(11);
  }
  if (url.empty()) {
    std::ofstream("/dev/console") << "\ninstalled system: the agent runs, started by systemd\n"
                                  << std::flush;
    ::pause();
  }
  Workers workers(3);
  SystemClock clock;
  asio::io_context control;
  asio::co_spawn(control, work(url, mac, &workers, &clock),
                 [](std::exception_ptr, Result<void> result) {
                   if (!result)
                     std::cout << "writer: failed: " << result.error().str() << std::endl;
                 });
  control.run();
  ::sync();
  ::reboot(RB_POWER_OFF);
}
