// SPDX-License-Identifier: Apache-2.0
// The virtual BMCs of a rack in one process: a service, a listener and a libvirt domain each.
#pragma once

#include "lab/vbmc/config.h"
#include "lab/virt.h"

namespace muster::lab::vbmc {

/// A libvirt domain as the machine behind a BMC.
class DomainMachine final : public Machine {
 public:
  DomainMachine(Virt& virt, Workers& workers, DomainSpec spec)
      : virt_(virt), workers_(workers), spec_(std::move(spec)) {}
  Async<bool> isOn() override;
  Async<void> start(StartOptions options) override;
  Async<void> stop() override;
  Async<void> pressButton() override;

 private:
  Virt& virt_;
  Workers& workers_;
  DomainSpec spec_;
};

/// One BMC: service and HTTPS listener. The listener is closed while the BMC restarts itself.
class BmcHost {
 public:
  static Result<std::unique_ptr<BmcHost>> make(asio::any_io_executor executor, Clock& clock,
                                               Workers& workers, Virt& virt,
                                               const std::filesystem::path& folder,
                                               const BmcConfig& config);
  Task<void> run() { return service_->run(); }
  void stop();

 private:
  BmcHost(asio::any_io_executor executor, Workers& workers, Virt& virt, const BmcConfig& config)
      : executor_(std::move(executor)), machine_(virt, workers, config.domain) {}
  Result<void> listen();

  asio::any_io_executor executor_;
  DomainMachine machine_;
  io::ServerOptions listener_;
  std::unique_ptr<RedfishService> service_;
  std::unique_ptr<io::HttpServer> server_;
};

}  // namespace muster::lab::vbmc
