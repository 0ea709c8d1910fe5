// SPDX-License-Identifier: Apache-2.0
// A management network in memory: virtual BMCs at addresses, and a cluster that looks for them.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "base/result.h"
#include "discovery/scanner.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/discovery.h"
#include "inventory/model/fwd.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "lab/vbmc/redfish_service.h"
#include "tests/bmc/values_store.h"
#include "tests/fakes/fake_http.h"
#include "tests/fakes/fake_machine.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <cstdlib>

namespace muster::test {

inline inventory::Cluster discoveringCluster() {
  inventory::Cluster cluster;
  cluster.networks.push_back({.name = "provisioning",
                              .cidr = *Cidr::parse("10.20.0.0/16"),
                              .controller = *Ipv4::parse("10.20.0.1")});
  cluster.profiles["hgx"].name = "hgx";
  cluster.profiles["storage"].name = "storage";
  cluster.node_files = {{"/inv/racks.csv", "hgx", {"gpu001", "gpu002", "gpu003"}}};
  return cluster;
}

class BmcWorld {
 public:
  BmcWorld() {
    net.handle = [this](io::HttpRequest request) { return serve(std::move(request)); };
  }
  ~BmcWorld() {
    for (auto& [host, unit] : units) unit.service->stop();
    loop.settle();
  }

  struct Unit {
    lab::vbmc::FakeMachine machine;
    std::unique_ptr<lab::vbmc::RedfishService> service;
  };

  Unit& add(const std::string& host, lab::vbmc::Identity identity, const std::string& password) {
    auto& unit = units[host];
    lab::vbmc::ServiceOptions options;
    options.identity = std::move(identity);
    options.account = lab::vbmc::Account::make("admin", password);
    options.staging_folder = folder.path();
    unit.service = std::move(*lab::vbmc::RedfishService::make(loop.clock, loop.workers,
                                                              unit.machine, std::move(options)));
    loop.spawn(unit.service->run());
    return unit;
  }
  void credential(inventory::Cluster& cluster, const std::string& name, const std::string& user,
                  const std::string& password) {
    const auto variable = "MUSTER_TEST_DISCOVER_" + name;
    ::setenv(variable.c_str(), password.c_str(), 1);
    auto& credential = cluster.credentials[name];
    credential.name = name;
    credential.username = user;
    credential.password.env = variable;
    cluster.discovery->credentials.push_back(name);
  }
  Result<discovery::ScanReport> scan(const inventory::Cluster& cluster, const std::string& range,
                                     std::vector<discovery::Machine>& seen,
                                     discovery::Approver approve = {}) {
    auto fleet = bmc::makeBmcFleet(cluster, store, loop.clock, loop.workers);
    discovery::ScanDeps deps{cluster,      *fleet,        store, loop.clock,
                             loop.workers, net.factory(), 443,   std::move(approve)};
    return loop.run(
        discovery::scan(std::move(deps), *discovery::Ranges::parse({range}),
                        [&](discovery::Machine machine) { seen.push_back(std::move(machine)); }));
  }
  int logins(const std::string& host) const {
    int count = 0;
    for (const auto& request : net.requests)
      count += request.url.host == host && request.method == "POST" &&
               request.url.target.ends_with("/Sessions");
    return count;
  }

  VirtualLoop loop;
  TempFolder folder;
  FakeHttp net;
  ValuesStore store;
  std::map<std::string, Unit> units;
  std::map<std::string, std::string>
      others;  ///< host → what its web server says instead of Redfish

 private:
  Async<io::HttpResponse> serve(io::HttpRequest request) {
    if (const auto other = others.find(request.url.host); other != others.end())
      co_return FakeHttp::json(200, other->second);
    const auto unit = units.find(request.url.host);
    if (unit == units.end()) co_return fail(ErrorCode::Unavailable, "connection refused");
    io::ServerRequest received;
    received.method = request.method;
    received.target = request.url.target;
    received.headers = request.headers;
    received.body = request.body;
    auto response = co_await unit->second.service->handle(std::move(received));
    auto* text = std::get_if<std::string>(&response.body);
    co_return io::HttpResponse{response.status, response.headers, text ? *text : std::string()};
  }
};

}  // namespace muster::test
