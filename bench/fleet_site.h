// SPDX-License-Identifier: Apache-2.0
// What the benches over the real protocols share: muster-fleet as a child, and a controller with
// everything but dnsmasq and a scheduler.
#pragma once

#include "base/ids.h"
#include "base/io/side_thread.h"
#include "base/ip_address.h"
#include "base/result.h"
#include "bench/lifecycle_bench.h"
#include "firmware/firmware.h"
#include "gateway/gateway_server.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "lab/fleet/fleet.h"
#include "lifecycle/executor/engine.h"
#include "provision/provision.h"
#include "tests/fakes/fake_image_store.h"
#include "validate/validate.h"

#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <map>

extern char** environ;

namespace muster::bench {

using namespace lifecycle;
namespace fleet = lab::fleet;

/// A number from the environment.
int numberFrom(const char* variable, int otherwise);
inline constexpr std::size_t kDescriptors =
    200'000;  ///< of 10,000 nodes, each with a few connections

/// The last stage, kept in memory: a scheduler is not what is measured here.
class Yard final : public Phase {
 public:
  std::string_view name() const override { return "pool"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                          const FactSet&) const override {
    if (subject.isCluster()) return {};
    return {{{subject, FacetName(std::string(kPoolFacet))},
             "in",
             Disruption::None,
             std::chrono::seconds(1),
             std::chrono::seconds(60),
             {{subject, FacetName("certificate")}},
             "the profile's pool"}};
  }
  Async<std::vector<Fact>> observe(Subject subject) override {
    co_return std::vector<Fact>(1, look(subject));
  }
  Async<Outcome> act(Action action, ActContext&) override {
    state_[action.facet.subject] = action.to;
    co_return Outcome(Done{});
  }
  Async<std::vector<Fact>> verify(Action action) override {
    co_return std::vector<Fact>(1, look(action.facet.subject));
  }
  std::size_t size() const {
    return static_cast<std::size_t>(std::count_if(
        state_.begin(), state_.end(), [](const auto& entry) { return entry.second == "in"; }));
  }

 private:
  Fact look(const Subject& subject) const {
    const auto known = state_.find(subject);
    return {subject,
            FacetName(std::string(kPoolFacet)),
            known == state_.end() ? "out" : known->second,
            {},
            "yard",
            ""};
  }
  std::map<Subject, std::string> state_;
};

/// Boot scripts without dnsmasq: the nodes ask over HTTP, as iPXE does.
class Scripts final : public provision::Netboot {
 public:
  Scripts(gateway::GatewayServer& gateway, const inventory::Cluster& cluster, std::string ca)
      : gateway_(gateway), cluster_(cluster), ca_(std::move(ca)) {
    for (const auto& node : cluster.nodes) by_mac_[node.mac.str()] = &node;
  }
  void callAt(std::string url) { url_ = std::move(url); }
  Result<void> start() override { return {}; }
  void stop() override {}
  Result<void> follow(const inventory::Cluster&) override { return {}; }
  Result<void> arm(const NodeName& node) override {
    TRY(enrollment, gateway_.openEnrollment(node, cluster_.findNode(node)->mac));
    enrollments_[node] = enrollment;
    return {};
  }
  void disarm(const NodeName& node) override { enrollments_.erase(node); }
  std::vector<io::Route> routes() override {
    auto handler = [this](io::ServerRequest request) { return script(std::move(request)); };
    return {{"GET", "/boot/ipxe", handler}};
  }

 private:
  Task<io::ServerResponse> script(io::ServerRequest request) {
    const auto node = by_mac_.find(io::queryOf(request.target)["mac"]);
    const auto enrollment =
        node == by_mac_.end() ? enrollments_.end() : enrollments_.find(node->second->name);
    if (enrollment == enrollments_.end()) co_return io::ServerResponse::text(200, "#!ipxe\nexit\n");
    co_return io::ServerResponse::text(
        200,
        fmt::format("#!ipxe\nkernel vmlinuz muster.url={} muster.ca={} muster.enrolment={}\nboot\n",
                    url_, ca_, enrollment->second));
  }
  gateway::GatewayServer& gateway_;
  const inventory::Cluster& cluster_;
  std::string ca_, url_;
  std::map<std::string, const inventory::Node*> by_mac_;
  std::map<NodeName, std::string> enrollments_;
};

/// muster-fleet as a child.
/// So many nodes as a process may have connections for where the limit of open files is 20,000.
inline constexpr int kNodesPerProcess = 2'500;

/// The simulated fleet, in as few processes as its connections need.
class Children {
 public:
  Children(int nodes, const std::string& boot_url, bool real) {
    for (int first = 1; first <= nodes; first += kNodesPerProcess)
      start(first, std::min(kNodesPerProcess, nodes - first + 1), boot_url, real);
  }
  Children(const Children&) = delete;
  ~Children() {
    for (const auto pid : pids_) {
      ::kill(pid, SIGTERM);
      ::waitpid(pid, nullptr, 0);
    }
  }
  /// What they have used so far.
  double cpuSeconds() const {
    double all = 0;
    clockid_t clock{};
    for (const auto pid : pids_)
      all += ::clock_getcpuclockid(pid, &clock) == 0 ? secondsOf(clock) : 0;
    return all;
  }

 private:
  void start(int first, int nodes, const std::string& boot_url, bool real);
  std::vector<pid_t> pids_;
};

/// `nodes` machines of one profile: two firmware components, an image, six drivers, seven gates.
inventory::Cluster clusterOf(int nodes, const std::filesystem::path& folder);

/// On loopback there are no neighbours: the bench's nodes are believed.
class Loopback final : public gateway::NetworkEvidence {
 public:
  Result<std::optional<gateway::DhcpLease>> leaseOf(const Mac&) const override {
    return std::nullopt;
  }
  Result<gateway::NeighbourMatch> neighbour(Ipv4, const Mac&) const override {
    return gateway::NeighbourMatch::Same;
  }
};

/// A controller with everything but dnsmasq and a scheduler.
class Site {
 public:
  Site(const inventory::Cluster& cluster, const Folder& folder)
      : ca_(*io::CertificateAuthority::loadOrCreate(folder / "ca", "bench")),
        key_(*io::SigningKey::generate()),
        store_(std::move(*openSqliteStore(folder / "muster.db"))),
        gateway_(gateway::makeGatewayServer(cluster, ca_, *store_, clock_, loopback_)),
        bmcs_(bmc::makeBmcFleet(cluster, *store_, clock_, workers_)),
        certificates_(validate::makeCertificateStore(cluster, *store_, clock_, key_,
                                                     folder / "certificates")),
        scripts_(*gateway_, cluster, ca_.fingerprint()) {
    io::SideThread::startFor(io);
    images_.add("bookworm", "sha256:bench");
    io::ServerOptions options;
    options.max_connections = 65'536;
    http_ = std::move(*io::startHttpServer(io.get_executor(), options));
    http_->addRoutes(scripts_.routes());
    options.identity = *ca_.issueServer("controller", {"127.0.0.1"}, std::chrono::hours(24));
    options.client_ca_pem = ca_.certificatePem();
    https_ = std::move(*io::startHttpServer(io.get_executor(), options));
    https_->addRoutes(gateway_->routes());
    const auto url = fmt::format("https://127.0.0.1:{}", https_->port());
    scripts_.callAt(url);
    provision_ =
        provision::makeProvisionPhase({cluster, *bmcs_, *gateway_, images_, scripts_, clock_,
                                       bootUrl(), url, ca_.certificatePem(), key_.public_pem});
    firmware_ = firmware::makeFirmwarePhase(cluster, *bmcs_, clock_, workers_);
    validate_ = validate::makeValidatePhase(
        cluster, *gateway_, *certificates_, *store_, clock_,
        [this](Subject subject) { return yard.observe(std::move(subject)); });
    phases = {provision_.get(), firmware_.get(), validate_.get(), &yard};
  }
  std::string bootUrl() const { return fmt::format("http://127.0.0.1:{}", http_->port()); }
  Store& store() { return *store_; }
  Clock& clock() { return clock_; }

  asio::io_context io;
  Yard yard;
  Phases phases;

 private:
  SystemClock clock_;
  Workers workers_{1};
  io::CertificateAuthority ca_;
  io::SigningKey key_;
  std::unique_ptr<Store> store_;
  Loopback loopback_;
  std::unique_ptr<gateway::GatewayServer> gateway_;
  std::unique_ptr<bmc::BmcFleet> bmcs_;
  std::unique_ptr<validate::CertificateStore> certificates_;
  test::FakeImageStore images_;
  Scripts scripts_;
  std::unique_ptr<io::HttpServer> http_, https_;
  std::unique_ptr<Phase> provision_, firmware_, validate_;
};

/// Rounds of observe, plan and apply until nothing is left. Answers how many actions were done.
Async<int> applyAll(Engine& engine, Site& site, const inventory::Cluster& cluster);
/// The same, to its end.
int runApply(Engine& engine, Site& site, const inventory::Cluster& cluster);

}  // namespace muster::bench
