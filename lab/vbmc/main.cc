// SPDX-License-Identifier: Apache-2.0
// muster-vbmc: the virtual BMCs of a rack, and the maker of firmware files for them.
#include "base/io/files.h"
#include "base/main_guard.h"
#include "lab/vbmc/bmc_host.h"
#include "lab/vbmc/firmware_file.h"

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <iostream>

namespace muster::lab::vbmc {
namespace {

constexpr std::size_t kWorkers = 4;

Result<void> serve(const std::filesystem::path& config_file) {
  TRY(text, io::readFile(config_file));
  TRY(config, Config::parse(text));
  SystemClock clock;
  TRY(virt, Virt::connect(config.libvirt_uri));
  asio::io_context io;
  Workers workers(kWorkers);  // gone first: what they still do answers to the loop
  std::vector<std::unique_ptr<BmcHost>> hosts;
  for (const auto& bmc : config.bmcs) {
    auto host = BmcHost::make(io.get_executor(), clock, workers, *virt, config.folder, bmc);
    if (!host) return fail(host.error().within("BMC of " + bmc.domain.name));
    asio::co_spawn(io, (*host)->run(), asio::detached);
    hosts.push_back(std::move(*host));
  }
  asio::signal_set ends(io, SIGTERM, SIGINT);
  ends.async_wait([&](const boost::system::error_code&, int) {
    for (auto& host : hosts) host->stop();
    io.stop();
  });
  logInfo("vbmc", "{} BMCs are up", hosts.size());
  io.run();
  return {};
}

Result<void> makeFirmwareFile(const std::string& component, const std::string& version,
                              const std::filesystem::path& out) {
  auto image = makeFirmware(component, version);
  if (out.has_parent_path()) TRY_OK(io::makeDirs(out.parent_path()));
  TRY_OK(io::writeFileAtomic(out, image));
  std::cout << io::sha256Hex(image) << "  " << out.string() << "\n";
  return {};
}

}  // namespace
}  // namespace muster::lab::vbmc

namespace muster {

int run(int argc, char** argv) {
  CLI::App app("Virtual BMCs of a muster lab");
  app.require_subcommand(1);
  std::string config, component, version, out;
  auto* serving =
      app.add_subcommand("serve", "Serve the BMCs of a configuration that 'muster lab up' wrote");
  serving->add_option("config", config)->required();
  auto* making = app.add_subcommand(
      "make-firmware", "Write a firmware file that the virtual BMCs accept; prints its SHA-256");
  making->add_option("--component", component, "BMC or BIOS")->required();
  making->add_option("--version", version)->required();
  making->add_option("--out", out)->required();
  CLI11_PARSE(app, argc, argv);
  startLog({}, LogLevel::Info);
  auto done = serving->parsed() ? lab::vbmc::serve(config)
                                : lab::vbmc::makeFirmwareFile(component, version, out);
  if (done) return 0;
  std::cerr << "muster-vbmc: " << done.error().str() << "\n";
  return 1;
}

}  // namespace muster

int main(int argc, char** argv) {
  return muster::guardedMain("muster-vbmc", [&] { return muster::run(argc, argv); });
}
