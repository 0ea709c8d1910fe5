// SPDX-License-Identifier: Apache-2.0
// The virtual BMCs of a rack in one process: a service, a listener and a libvirt domain each.
#pragma once

#include "lab/vbmc/config.h"
#include "lab/virt.h"

namespace muster::lab::vbmc {

/// A libvirt domain as the machine behind a BMC.
class DomainMachine final : public Machine {
 public:
  /// `folder`: where it keeps the image of its virtual CD.
  DomainMachine(Virt& virt, Workers& workers, DomainSpec spec, const std::filesystem::path& folder)
      : virt_(virt),
        workers_(workers),
        spec_(std::move(spec)),
        cd_(folder / (spec_.name + ".iso")) {}
  Async<bool> isOn() override;
  Async<void> start(StartOptions options) override;
  Async<void> stop() override;
  Async<void> pressButton() override;
  Async<void> emptyDrive() override;

 private:
  Virt& virt_;
  Workers& workers_;
  DomainSpec spec_;
  std::filesystem::path cd_;
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
  BmcHost(asio::any_io_executor executor, Workers& workers, Virt& virt,
          const std::filesystem::path& folder, const BmcConfig& config)
      : executor_(std::move(executor)), machine_(virt, workers, config.domain, folder) {}
  Result<void> listen();

  asio::any_io_executor executor_;
  DomainMachine machine_;
  io::ServerOptions listener_;
  std::unique_ptr<RedfishService> service_;
  std::unique_ptr<io::HttpServer> server_;
};

}  // namespace muster::lab::vbmc
