// The whole road over the real protocols: muster-fleet in a process of its own serves a BMC (HTTPS) and an agent (mutual TLS) a
// node; the controller here drives them with the real phases on a real store. Both share the machine.
//
// MUSTER_FLEET_NODES: how many (default 500). MUSTER_FLEET_REAL=1: latencies as metal has them; then the wall time is compared
// with the slowest node's own road.
#include "agent/protocol/gateway_server.h"
#include "base/io/files.h"
#include "bench/lifecycle_bench.h"
#include "firmware/firmware.h"
#include "lab/fleet/fleet.h"
#include "lab/vbmc/firmware_file.h"
#include "lifecycle/engine.h"
#include "provision/provision.h"
#include "tests/fakes/fake_image_store.h"
#include "validate/validate.h"

#include <boost/asio/co_spawn.hpp>

#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <iostream>

extern char** environ;

namespace muster::bench {
namespace {

using namespace lifecycle;
namespace fleet = lab::fleet;

constexpr double kNodesPerSecond = 50, kMebibytes = 1536, kIdlePercent = 15, kOverSlowest = 1.2;
constexpr int kMaxRounds = 4;
constexpr std::size_t kFirmwareBytes = 64u << 10;  ///< the protocol is measured, not the network
constexpr int kDrivers = 6, kGates = 7;
constexpr std::chrono::seconds kIdle{20};

int numberFrom(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

/// The last step of the road, kept in memory: a scheduler is not what is measured here.
class Yard final : public Phase {
 public:
  std::string_view name() const override { return "pool"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject, const FactSet&) const override {
    if (subject.isCluster()) return {};
    return {{{subject, FacetName(std::string(kPoolFacet))}, "in", Disruption::None, std::chrono::seconds(1), std::chrono::seconds(60),
             {{subject, FacetName("certificate")}}, "the profile's pool"}};
  }
  Async<std::vector<Fact>> observe(Subject subject) override { co_return std::vector<Fact>(1, look(subject)); }
  Async<Outcome> act(Action action, ActContext&) override {
    in_.insert(action.facet.subject);
    co_return Outcome(Done{});
  }
  Async<std::vector<Fact>> verify(Action action) override { co_return std::vector<Fact>(1, look(action.facet.subject)); }
  std::size_t size() const { return in_.size(); }

 private:
  Fact look(const Subject& subject) const {
    return {subject, FacetName(std::string(kPoolFacet)), in_.contains(subject) ? "in" : "out", {}, "yard", ""};
  }
  std::set<Subject> in_;
};

/// Boot scripts without dnsmasq: the nodes ask over HTTP, as iPXE does.
class Scripts final : public provision::Netboot {
 public:
  Scripts(agent::GatewayServer& gateway, const inventory::Cluster& cluster, std::string ca) : gateway_(gateway), cluster_(cluster), ca_(std::move(ca)) {
    for (const auto& node : cluster.nodes) by_mac_[node.mac.str()] = &node;
  }
  void callAt(std::string url) { url_ = std::move(url); }
  Result<void> start() override { return {}; }
  void stop() override {}
  Result<void> arm(const NodeName& node) override {
    TRY(token, gateway_.issueToken(node, cluster_.findNode(node)->mac));
    tokens_[node] = token;
    return {};
  }
  void disarm(const NodeName& node) override { tokens_.erase(node); }
  std::vector<io::Route> routes() override {
    auto handler = [this](io::ServerRequest request) { return script(std::move(request)); };
    return {{"GET", "/boot/ipxe", handler}};
  }

 private:
  Task<io::ServerResponse> script(io::ServerRequest request) {
    const auto node = by_mac_.find(io::queryOf(request.target)["mac"]);
    const auto token = node == by_mac_.end() ? tokens_.end() : tokens_.find(node->second->name);
    if (token == tokens_.end()) co_return io::ServerResponse::text(200, "#!ipxe\nexit\n");
    co_return io::ServerResponse::text(
        200, fmt::format("#!ipxe\nkernel vmlinuz muster.url={} muster.ca={} muster.token={}\nboot\n", url_, ca_, token->second));
  }
  agent::GatewayServer& gateway_;
  const inventory::Cluster& cluster_;
  std::string ca_, url_;
  std::map<std::string, const inventory::Node*> by_mac_;
  std::map<NodeName, std::string> tokens_;
};

/// muster-fleet as a child.
class Child {
 public:
  Child(int nodes, const std::string& boot_url, bool real) {
    const auto program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-fleet").string();
    std::vector<std::string> words{program, "serve", "--nodes", std::to_string(nodes), "--boot-url", boot_url};
    if (real) words.emplace_back("--real");
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ) != 0) std::abort();
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    char first = 0;
    if (::read(ends[0], &first, 1) != 1) std::abort();  // it says so when it answers
    ::close(ends[0]);
  }
  Child(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  /// What it has used so far.
  double cpuSeconds() const {
    clockid_t clock{};
    return ::clock_getcpuclockid(pid_, &clock) == 0 ? secondsOf(clock) : 0;
  }

 private:
  pid_t pid_ = 0;
};

inventory::Cluster clusterOf(int nodes, const std::filesystem::path& folder) {
  inventory::Cluster cluster;
  cluster.name = "fleet";
  cluster.digest = "fleet";
  inventory::Network network;
  network.name = "provisioning";
  network.cidr = *Cidr::parse("127.0.0.0/8");
  network.controller = *Ipv4::parse("127.0.0.1");
  network.dhcp_mode = inventory::DhcpMode::None;
  cluster.networks.push_back(network);
  inventory::Credential credential{"bmc", fleet::kUsername, {}};
  credential.password.env = "MUSTER_FLEET_PASSWORD";
  cluster.credentials["bmc"] = credential;
  cluster.images["bookworm"].name = "bookworm";
  inventory::Profile profile;
  profile.name = "sim";
  profile.image = "bookworm";
  profile.firmware = "2026.1";
  for (int i = 0; i < kDrivers; ++i) {
    inventory::Driver driver;
    driver.name = fmt::format("driver{}", i);
    driver.packages = {driver.name};
    driver.verify = {{"package." + driver.name, "44.*"}};
    cluster.drivers[driver.name] = driver;
    profile.drivers.push_back(driver.name);
  }
  for (int i = 0; i < kGates; ++i) {
    const auto name = fmt::format("gate{}", i);
    cluster.gates[name] = {name, inventory::GateLevel::Quick, {"host"}, false};
    profile.gates.push_back(name);
  }
  auto& baseline = cluster.firmware["2026.1"];
  baseline.name = "2026.1";
  for (const auto& [component, version] : {std::pair{"BMC", "2.1.0"}, {"BIOS", "1.5.0"}}) {
    const auto image = lab::vbmc::makeFirmware(component, version, kFirmwareBytes);
    const auto file = folder / (std::string(component) + ".fw");
    if (!io::writeFileAtomic(file, image)) std::abort();
    baseline.components.push_back({component, version, file, io::sha256Hex(image)});
    baseline.order.emplace_back(component);
  }
  cluster.profiles["sim"] = profile;
  for (int number = 1; number <= nodes; ++number) {
    const auto spec = fleet::specOf(number);
    inventory::Node node;
    node.name = NodeName(spec.name);
    node.profile = "sim";
    node.mac = *Mac::parse(spec.mac);
    node.serial = spec.serial;
    node.bmc.url = fmt::format("https://{}:{}", spec.bmc_address, spec.bmc_port);
    cluster.nodes.push_back(node);
  }
  return cluster;
}

/// A controller with everything but dnsmasq and a scheduler.
class Site {
 public:
  Site(const inventory::Cluster& cluster, const Folder& folder)
      : ca_(*io::CertificateAuthority::loadOrCreate(folder / "ca", "bench")),
        key_(*io::SigningKey::generate()),
        store_(std::move(*openSqliteStore(folder / "muster.db"))),
        gateway_(agent::makeGatewayServer(cluster, ca_, *store_, clock_)),
        bmcs_(bmc::makeBmcFleet(cluster, *store_, clock_, workers_)),
        certificates_(validate::makeCertificateStore(cluster, *store_, clock_, key_, folder / "certificates")),
        scripts_(*gateway_, cluster, ca_.fingerprint()) {
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
    provision_ = provision::makeProvisionPhase(
        {cluster, *bmcs_, *gateway_, images_, scripts_, clock_, bootUrl(), url, ca_.certificatePem(), key_.public_pem});
    firmware_ = firmware::makeFirmwarePhase(cluster, *bmcs_, clock_, workers_);
    validate_ = validate::makeValidatePhase(cluster, *gateway_, *certificates_, *store_, clock_,
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
  std::unique_ptr<agent::GatewayServer> gateway_;
  std::unique_ptr<bmc::BmcFleet> bmcs_;
  std::unique_ptr<validate::CertificateStore> certificates_;
  test::FakeImageStore images_;
  Scripts scripts_;
  std::unique_ptr<io::HttpServer> http_, https_;
  std::unique_ptr<Phase> provision_, firmware_, validate_;
};

/// Rounds of observe, plan and apply until nothing is left. Answers how many actions were done.
Async<int> goTheRoad(Engine& engine, Site& site, const inventory::Cluster& cluster) {
  int done = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    auto observe = engine.observe({});
    CO_TRY(facts, co_await std::move(observe));
    CO_TRY(policy, policyOf(site.store(), {}));
    CO_TRY(plan, makePlan(cluster, facts, policy, site.phases));
    if (plan.empty()) co_return done;
    auto apply = engine.apply(plan);
    CO_TRY(report, co_await std::move(apply));
    done += report.done;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, report.problems.size()); ++i) std::cerr << report.problems[i] << "\n";
  }
  co_return done;
}

/// Seconds of the slowest node from its first intent to its last.
double slowestRoad(Store& store, const inventory::Cluster& cluster) {
  double slowest = 0;
  for (const auto& node : cluster.nodes) {
    WallTime first = WallTime::max(), last{};
    const auto intents = *store.intentsOf(Subject(node.name), 1'000);
    for (const auto& intent : intents) {
      first = std::min(first, intent.opened_at);
      last = std::max(last, intent.closed_at);
    }
    slowest = std::max(slowest, std::chrono::duration<double>(last - first).count());
  }
  return slowest;
}

void raiseFileLimit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int benchFleet(Report& report) {
  const int nodes = numberFrom("MUSTER_FLEET_NODES", 500);
  const bool real = numberFrom("MUSTER_FLEET_REAL", 0) != 0;
  raiseFileLimit();
  ::setenv("MUSTER_FLEET_PASSWORD", "fleet", 1);
  Folder folder;
  const auto cluster = clusterOf(nodes, folder.path());
  Site site(cluster, folder);
  Child child(nodes, site.bootUrl(), real);
  Engine engine(cluster, site.phases, site.store(), site.clock(), nullptr);

  const double cpu = secondsOf(CLOCK_PROCESS_CPUTIME_ID), fleet_cpu = child.cpuSeconds();
  int done = 0;
  const double wall = fastestSeconds(1, [&] {
    asio::co_spawn(site.io, goTheRoad(engine, site, cluster), [&](std::exception_ptr, Result<int> ended) {
      if (ended) done = *ended;
      site.io.stop();
    });
    site.io.run();
  });
  const double cpu_s = secondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu, fleet_s = child.cpuSeconds() - fleet_cpu;
  const bool arrived = site.yard.size() == static_cast<std::size_t>(nodes);
  const auto what = fmt::format("{} nodes, {:.1f} journaled actions each, {} latency: ", nodes, static_cast<double>(done) / nodes, real ? "real" : "no");
  report.record({.name = what + "in the pool", .value = static_cast<double>(site.yard.size()), .unit = "nodes", .bar = nodes, .direction = Bar::AtLeast});
  if (real) {
    const double slowest = slowestRoad(site.store(), cluster);
    report.record({.name = what + "wall time", .value = wall, .unit = "s", .bar = kOverSlowest * slowest, .versus = slowest});
  } else {
    report.record({.name = what + "wall", .value = nodes / wall, .unit = "nodes/s", .bar = kNodesPerSecond, .direction = Bar::AtLeast});
  }
  report.record({.name = what + "controller's memory", .value = peakMebibytes(), .unit = "MiB", .bar = kMebibytes});

  const double idle_begin = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
  site.io.restart();
  site.io.run_for(kIdle);
  const double share = (secondsOf(CLOCK_PROCESS_CPUTIME_ID) - idle_begin) / static_cast<double>(kIdle.count());
  const double reports_per_s = nodes / static_cast<double>(agent::kPollWait.count());
  report.record({.name = fmt::format("{} connected agents: a core's share for 10,000 reporting every 10 s, scaled from {:.0f} reports/s", nodes, reports_per_s),
                 .value = 100 * share / reports_per_s * 1'000,
                 .unit = "%",
                 .bar = kIdlePercent});
  report.record({.name = what + "CPU of the controller a node", .value = cpu_s / nodes * 1e3, .unit = "ms"});
  report.record({.name = what + "CPU of the simulated fleet a node", .value = fleet_s / nodes * 1e3, .unit = "ms"});
  report.record({.name = what + "nodes a second of two cores' CPU", .value = 2 * nodes / (cpu_s + fleet_s), .unit = "nodes/s"});
  return arrived ? report.exitCode() : 1;
}

}  // namespace
}  // namespace muster::bench

int main() {
  muster::startLog({}, muster::LogLevel::Error);
  muster::bench::Report report("fleet");
  return muster::bench::benchFleet(report);
}
