// SPDX-License-Identifier: Apache-2.0
// One virtual BMC over HTTPS on a loopback port, with a machine in memory behind it: for validators
// and clients that somebody runs by hand. Usage: vbmc_alone PROFILE PORT PASSWORD
// [CERTIFICATE-FILE]
#include "base/io/files.h"
#include "base/io/http.h"
#include "lab/vbmc/redfish_service.h"
#include "tests/fakes/fake_machine.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <iostream>

namespace muster::lab::vbmc {
namespace {

Result<void> serveAlone(const std::string& vendor_profile, std::uint16_t port,
                        const std::string& password, const std::string& certificate_file) {
  asio::io_context io;
  SystemClock clock;
  Workers workers(1);
  FakeMachine machine;
  ServiceOptions options;
  options.identity = {.node = "gpu001",
                      .serial = "SN-1",
                      .uuid = "11111111-2222-4333-8444-555555555555",
                      .macs = {"52:54:00:20:00:01", "52:54:00:20:00:02"}};
  options.identity.bmc_mac = "52:54:00:20:00:ff";
  TRY(profile, findVendorProfile(vendor_profile));
  options.vendor_profile = profile;
  options.account = Account::make("admin", password);
  io::ServerOptions listener;
  listener.port = port;
  TRY(identity, io::selfSigned("bmc", {"127.0.0.1"}));
  if (!certificate_file.empty())
    TRY_OK(io::writeFileAtomic(certificate_file, identity.certificate_pem));
  listener.identity = identity;
  TRY(service, RedfishService::make(clock, workers, machine, std::move(options)));
  TRY(server, io::startHttpServer(io.get_executor(), listener));
  server->addRoutes(service->routes());
  asio::co_spawn(io, service->run(), asio::detached);
  asio::signal_set ends(io, SIGTERM, SIGINT);
  ends.async_wait([&](const boost::system::error_code&, int) {
    service->stop();
    server->stop();
    io.stop();
  });
  std::cout << "https://127.0.0.1:" << server->port() << std::endl;
  io.run();
  return {};
}

}  // namespace
}  // namespace muster::lab::vbmc

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) {
    std::cerr << "usage: vbmc_alone PROFILE PORT PASSWORD [CERTIFICATE-FILE]\n";
    return 2;
  }
  const auto port = std::strtoul(argv[2], nullptr, 10);
  const auto done = muster::lab::vbmc::serveAlone(argv[1], static_cast<std::uint16_t>(port),
                                                  argv[3], argc > 4 ? argv[4] : "");
  if (done) return 0;
  std::cerr << "vbmc_alone: " << done.error().str() << "\n";
  return 1;
}
