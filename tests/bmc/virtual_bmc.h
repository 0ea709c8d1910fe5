// SPDX-License-Identifier: Apache-2.0
// The lab's Redfish service in memory, in virtual time, as the other end of a FakeHttp.
#pragma once

#include "base/ids.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/fwd.h"
#include "inventory/model/profile.h"
#include "lab/vbmc/firmware_file.h"
#include "lab/vbmc/redfish_service.h"
#include "tests/fakes/fake_http.h"
#include "tests/fakes/fake_machine.h"
#include "tests/virtual_loop.h"

#include <cstdlib>

namespace muster::test {

inline lab::vbmc::ServiceOptions virtualBmcOptions(const std::filesystem::path& folder,
                                                   std::string_view vendor_profile = "muster") {
  lab::vbmc::ServiceOptions options;
  options.vendor_profile = *lab::vbmc::findVendorProfile(vendor_profile);
  options.identity = {.node = "gpu001",
                      .serial = "SN-1",
                      .uuid = "11111111-2222-4333-8444-555555555555",
                      .macs = {"52:54:00:20:00:01"}};
  options.account = lab::vbmc::Account::make("admin", "right");
  options.state_file = folder / "state.json";
  options.staging_folder = folder;
  return options;
}

/// One node with its BMC at this port of this machine, and the account of virtualBmcOptions.
inline inventory::Cluster clusterWithBmcAt(std::uint16_t port) {
  ::setenv("MUSTER_BMC_TEST_PASSWORD", "right", 1);
  inventory::Credential credential{"bmc", "admin", {}};
  credential.password.env = "MUSTER_BMC_TEST_PASSWORD";
  inventory::Cluster cluster;
  cluster.credentials["bmc"] = credential;
  cluster.profiles["p"].name = "p";
  inventory::Node node;
  node.name = NodeName("gpu001");
  node.profile = "p";
  node.bmc.url = fmt::format("https://127.0.0.1:{}", port);
  cluster.nodes.push_back(node);
  return cluster;
}

class VirtualBmc {
 public:
  explicit VirtualBmc(VirtualLoop& loop, std::string_view vendor_profile = "muster",
                      lab::vbmc::Timings timings = {},
                      std::vector<lab::vbmc::RaidDrive> raid_drives = {})
      : loop_(loop) {
    char name[] = "/tmp/muster-bmc-test-XXXXXX";
    folder = ::mkdtemp(name);
    auto options = virtualBmcOptions(folder, vendor_profile);
    options.timings = timings;
    options.raid_drives = std::move(raid_drives);
    options.fetch = [this](std::string url) { return fetch(std::move(url)); };
    options.new_identity = [this](const io::TlsIdentity& identity) {
      next_fingerprint = io::describeCertificate(identity.certificate_pem)->sha256_fingerprint;
      if (!certificate_waits_for_reset) net.fingerprint = next_fingerprint;
    };
    options.came_back = [this] {
      if (!next_fingerprint.empty()) net.fingerprint = next_fingerprint;
    };
    auto made =
        lab::vbmc::RedfishService::make(loop.clock, loop.workers, machine, std::move(options));
    if (!made) throw std::runtime_error(made.error().str());
    service = std::move(*made);
    loop_.spawn(service->run());
    net.handle = [this](io::HttpRequest request) { return serve(std::move(request)); };
  }
  ~VirtualBmc() {
    service->stop();
    loop_.settle();
    std::filesystem::remove_all(folder);
  }

  std::filesystem::path firmwareFile(const std::string& component, const std::string& version) {
    auto path = folder / (component + "-" + version + ".fw");
    if (!io::writeFileAtomic(path, lab::vbmc::makeFirmware(component, version)))
      throw std::runtime_error("cannot write " + path.string());
    return path;
  }
  int logins() const { return net.count("POST", "/redfish/v1/SessionService/Sessions"); }

  std::filesystem::path folder;
  FakeHttp net;
  lab::vbmc::FakeMachine machine;
  std::unique_ptr<lab::vbmc::RedfishService> service;
  std::function<Async<std::string>(std::string url)> fetch =
      {};                                    ///< what a BMC that fetches for itself finds
  bool certificate_waits_for_reset = false;  ///< iDRAC
  std::string next_fingerprint;

 private:
  Async<io::HttpResponse> serve(io::HttpRequest request) {
    if (service->away()) co_return fail(ErrorCode::Unavailable, "connection refused");
    io::ServerRequest received;
    received.method = request.method;
    received.target = request.url.target;
    received.headers = request.headers;
    received.body = request.body + (request.attachment ? *request.attachment : std::string()) +
                    request.body_end;
    io::ServerResponse response;
    try {
      response = co_await service->handle(std::move(received));
    } catch (const boost::system::system_error&) {
      co_return fail(ErrorCode::Unavailable, "the connection broke");
    }
    auto* text = std::get_if<std::string>(&response.body);
    co_return io::HttpResponse{response.status, response.headers, text ? *text : std::string()};
  }

  VirtualLoop& loop_;
};

}  // namespace muster::test
