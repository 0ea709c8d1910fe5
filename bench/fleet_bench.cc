// SPDX-License-Identifier: Apache-2.0
// All stages over the real protocols: muster-fleet in a process of its own serves a BMC (HTTPS)
// and an agent (mutual TLS) a node; the controller here drives them with the real phases on a real
// store. Both share the machine.
//
// MUSTER_FLEET_NODES: how many (default 500). MUSTER_FLEET_REAL=1: latencies as metal has them;
// then the wall time is compared with the slowest node's own time.
//
// MUSTER_FLEET_API_PAIRS=2: instead, what the API costs the engine. The same stages without anybody
// asking, and with 200 requests a second of the API, in the order without, with, with, without, …
// so that a machine that becomes slower does not decide. The API is in the engine's process and on
// its store, as in `muster server`.
#include "api/server.h"
#include "base/io/files.h"
#include "bench/fleet_site.h"
#include "bench/handshake_cost.h"
#include "inventory/model/cluster.h"
#include "inventory/model/node.h"

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace muster::bench {
namespace {

constexpr double kMebibytes = 1536, kIdlePercent = 15, kOverSlowest = 1.2;
/// Both are ratios, so that machines can be compared: wall time beside what the CPU of both sides
/// allows on two cores, and CPU beside that of full TLS 1.3 handshakes of the same run.
constexpr double kOfCpuPercent = 80, kHandshakes = 22;
constexpr int kHandshakesMeasured = 2'000;
constexpr std::chrono::seconds kSettle{30};  ///< connections to BMCs are kept for 20 s after the
                                             ///< last request; their end is not measured
constexpr std::chrono::seconds kIdle{40};

/// Seconds of the slowest node from its first intent to its last.
double slowestNode(Store& store, const inventory::Cluster& cluster) {
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

/// CPU of both sides over the wall time: how busy the cores are at the beginning, in the middle and
/// at the end.
class Timeline {
 public:
  Timeline(asio::io_context& io, std::function<double()> cpu_s)
      : timer_(io), cpu_s_(std::move(cpu_s)) {}

  void start() {
    begin_ = std::chrono::steady_clock::now();
    first_s_ = cpu_s_();
    look();
  }
  void end() {
    take();
    timer_.cancel();
  }

  struct Shares {
    double middle_percent = 0;  ///< of two cores, between a tenth and nine tenths of the CPU
    double idle_first_s = 0, idle_last_s = 0;  ///< of one core, in the tenths before and after
  };
  Shares shares() const {
    const double all = samples_.back().cpu_s, wall = samples_.back().wall_s;
    const double from = wallAt(kTail * all), to = wallAt((1 - kTail) * all);
    return {100 * (1 - 2 * kTail) * all / (kCores * (to - from)), kCores * from - kTail * all,
            kCores * (wall - to) - kTail * all};
  }

 private:
  static constexpr double kTail = 0.1, kCores = 2;
  static constexpr std::chrono::milliseconds kEvery{100};
  struct Sample {
    double wall_s = 0, cpu_s = 0;
  };
  void take() {
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin_;
    samples_.push_back({wall.count(), cpu_s_() - first_s_});
  }
  void look() {
    take();
    timer_.expires_after(kEvery);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) look();
    });
  }
  double wallAt(double cpu_s) const {
    return std::ranges::lower_bound(samples_, cpu_s, {}, &Sample::cpu_s)->wall_s;
  }

  asio::steady_timer timer_;
  std::function<double()> cpu_s_;
  std::chrono::steady_clock::time_point begin_;
  double first_s_ = 0;
  std::vector<Sample> samples_;
};

void recordTimeline(Report& report, const std::string& what, const Timeline& timeline) {
  const auto shares = timeline.shares();
  report.record({.name = what + "wall, of what the CPU of both sides allows, without the first and "
                                "the last tenth of the CPU",
                 .value = shares.middle_percent,
                 .unit = "%"});
  report.record({.name = what + "idle seconds of a core in the first tenth",
                 .value = shares.idle_first_s,
                 .unit = "s"});
  report.record({.name = what + "idle seconds of a core in the last tenth",
                 .value = shares.idle_last_s,
                 .unit = "s"});
}

double aloneSeconds();

int benchFleet(Report& report) {
  const int nodes = numberFrom("MUSTER_FLEET_NODES", 500);
  const bool real = numberFrom("MUSTER_FLEET_REAL", 0) != 0;
  io::raiseDescriptorLimit(kDescriptors);
  ::setenv("MUSTER_FLEET_PASSWORD", "fleet", 1);
  const double alone = real ? 0 : aloneSeconds();
  Folder folder;
  const auto cluster = clusterOf(nodes, folder.path());
  Site site(cluster, folder);
  Children fleet_processes(nodes, site.bootUrl(), real);
  Engine engine(cluster, site.phases, site.store(), site.clock(), nullptr);

  const double before = handshakeCpuSeconds(kHandshakesMeasured);
  const double cpu = secondsOf(CLOCK_PROCESS_CPUTIME_ID), fleet_cpu = fleet_processes.cpuSeconds();
  int done = 0;
  Timeline timeline(
      site.io, [&] { return secondsOf(CLOCK_PROCESS_CPUTIME_ID) + fleet_processes.cpuSeconds(); });
  timeline.start();
  const double wall = fastestSeconds(1, [&] { done = runApply(engine, site, cluster); });
  timeline.end();
  const double cpu_s = secondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               fleet_s = fleet_processes.cpuSeconds() - fleet_cpu;
  const double handshake = (before + handshakeCpuSeconds(kHandshakesMeasured)) / 2;
  const bool arrived = site.yard.size() == static_cast<std::size_t>(nodes);
  const auto what = fmt::format("{} nodes, {:.1f} journaled actions each, {} latency: ", nodes,
                                static_cast<double>(done) / nodes, real ? "real" : "no");
  report.record({.name = what + "in the pool",
                 .value = static_cast<double>(site.yard.size()),
                 .unit = "nodes",
                 .bar = nodes,
                 .direction = Bar::AtLeast});
  if (real) {
    const double slowest = slowestNode(site.store(), cluster);
    report.record({.name = what + "wall time",
                   .value = wall,
                   .unit = "s",
                   .bar = kOverSlowest * slowest,
                   .versus = slowest});
  } else {
    report.record({.name = what + "wall", .value = nodes / wall, .unit = "nodes/s"});
    report.record({.name = what + "wall, of what the CPU of both sides allows on two cores",
                   .value = 100 * (cpu_s + fleet_s) / (2 * wall),
                   .unit = "%",
                   .bar = kOfCpuPercent,
                   .direction = Bar::AtLeast});
    // Waits that decisions ask for (adr/0100) are no loss: the last node to begin has them before
    // it.
    report.record({.name = what + "wall, of that CPU on two cores and one node's own time",
                   .value = 100 * ((cpu_s + fleet_s) / 2 + alone) / wall,
                   .unit = "%",
                   .bar = kOfCpuPercent,
                   .direction = Bar::AtLeast});
    report.record({.name = "one node alone", .value = alone, .unit = "s"});
    recordTimeline(report, what, timeline);
  }
  report.record({.name = what + "controller's memory",
                 .value = peakMebibytes(),
                 .unit = "MiB",
                 .bar = kMebibytes});

  site.io.restart();
  site.io.run_for(kSettle);
  const double idle_begin = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
  site.io.run_for(kIdle);
  const double share =
      (secondsOf(CLOCK_PROCESS_CPUTIME_ID) - idle_begin) / static_cast<double>(kIdle.count());
  const double reports_per_s = nodes / static_cast<double>(wire::kPollWait.count());
  report.record({.name = fmt::format("{} connected agents: a core's share for 10,000 reporting "
                                     "every 10 s, scaled from {:.0f} reports/s",
                                     nodes, reports_per_s),
                 .value = 100 * share / reports_per_s * 1'000,
                 .unit = "%",
                 .bar = kIdlePercent});
  report.record(
      {.name = what + "CPU of the controller a node", .value = cpu_s / nodes * 1e3, .unit = "ms"});
  report.record({.name = what + "CPU of the controller a node, in full TLS 1.3 handshakes",
                 .value = cpu_s / nodes / handshake,
                 .unit = "handshakes",
                 .bar = real ? std::nullopt : std::optional(kHandshakes)});
  report.record({.name = "a full TLS 1.3 handshake, both sides, before and after",
                 .value = handshake * 1e3,
                 .unit = "ms CPU"});
  report.record({.name = what + "CPU of the simulated fleet a node",
                 .value = fleet_s / nodes * 1e3,
                 .unit = "ms"});
  report.record({.name = what + "nodes a second of two cores' CPU",
                 .value = 2 * nodes / (cpu_s + fleet_s),
                 .unit = "nodes/s"});
  return arrived ? report.exitCode() : 1;
}

constexpr double kSlowerPercent = 5, kRequestsPerSecond = 200, kLeastOfRate = 0.95;
constexpr int kClientsOfAKind = 5;
constexpr int kAgain = 100;  ///< one list of addresses in one process of curl

/// The same nodes for the API, which reads files.
std::string inventoryText(const inventory::Cluster& cluster) {
  std::string out = R"(cluster: {name: fleet}
networks:
  provisioning: {cidr: 127.0.0.0/8, controller: 127.0.0.1, dhcp: {mode: none}}
credentials:
  bmc: {username: admin, password: {env: MUSTER_FLEET_PASSWORD}}
images:
  bookworm: {build: {suite: bookworm, packages: [linux-image-amd64]}}
profiles:
  sim: {expect: {gpus: 0}, image: bookworm}
nodes:
)";
  std::uint32_t address = (127u << 24) + (80u << 16);
  for (const auto& node : cluster.nodes)
    out += fmt::format(
        "  - {{names: {}, profile: sim, mac: \"{}\", address: {}, bmc: \"{}\", serial: {}}}\n",
        node.name.str(), node.mac.str(), Ipv4(++address).str(), node.bmc.url, node.serial);
  return out;
}

/// One kind of request, so many times a second, until it is ended.
class Client {
 public:
  Client(const std::filesystem::path& folder, const std::string& name, const std::string& url,
         int per_second)
      : codes_(folder / (name + ".codes")) {
    // Many times, so that few processes begin.
    std::string urls;
    for (int each = 0; each < kAgain; ++each) urls += fmt::format(" -o /dev/null '{}'", url);
    io::Command command;
    command.program = "sh";
    // Standard error is not buffered: what was answered counts at once.
    command.args = {"-c", fmt::format("while :; do curl -s -w '%{{stderr}}%{{http_code}}\\n' "
                                      "--unix-socket {}/api.sock --rate {}/s{} 2>&1; done",
                                      folder.string(), per_second, urls)};
    child_ = need(io::makeProcessRunner()->start(std::move(command), codes_));
  }
  /// Answers: all, and those that were not 200.
  std::pair<int, int> end() {
    child_->terminate(std::chrono::seconds(1));
    std::ifstream in(codes_);
    int all = 0, bad = 0;
    for (std::string code; in >> code; ++all) bad += code != "200";
    return {all, bad};
  }

 private:
  std::filesystem::path codes_;
  std::unique_ptr<io::Child> child_;
};

struct Run {
  double wall_s = 0, cpu_s = 0;
  double requests_per_s = 0;
  int refused = 0;
  bool arrived = false;
};

Run runOnce(int nodes, bool is_asked) {
  Folder folder;
  const auto cluster = clusterOf(nodes, folder.path());
  Site site(cluster, folder);
  Children fleet_processes(nodes, site.bootUrl(), false);
  Engine engine(cluster, site.phases, site.store(), site.clock(), nullptr);
  need(io::writeFileAtomic(folder / "cluster.yaml", inventoryText(cluster)));
  app::Options options;
  options.inventory = folder / "cluster.yaml";
  options.state = folder.path();
  options.cache = folder / "cache";
  options.lab = folder / "no-lab";
  // It is there in both runs: what is compared is being asked.
  const auto server =
      need(api::ApiServer::start(options, {folder / "api.sock", "", folder / "access"}));
  std::vector<Client> clients;
  if (is_asked) {
    const auto last = fmt::format("{:05}", std::min(nodes, 99'999));
    // Clients ask one after the other: several, so that what they ask a second does not depend on
    // how long an answer takes on cores that are full.
    for (int each = 0; each < kClientsOfAKind; ++each) {
      const auto ask = [&](const std::string& kind, const std::string& url, int per_second) {
        clients.emplace_back(folder.path(), kind + std::to_string(each), "http://x/api/v1/" + url,
                             per_second / kClientsOfAKind);
      };
      ask("why", fmt::format("nodes/node[00001-{}]/why", last), 100);
      ask("one", fmt::format("nodes?nodes=node[00001-{}]", last), 80);
      ask("page", "nodes?limit=[10-100]", 20);
    }
  }
  Run out;
  const double cpu = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
  out.wall_s = fastestSeconds(1, [&] { (void)runApply(engine, site, cluster); });
  out.cpu_s = secondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  for (auto& client : clients) {
    const auto [all, bad] = client.end();
    out.requests_per_s += all / out.wall_s;
    out.refused += bad;
  }
  out.arrived = site.yard.size() == static_cast<std::size_t>(nodes);
  server->stop();
  return out;
}

double aloneSeconds() { return runOnce(1, false).wall_s; }

double mean(const std::vector<Run>& runs, double Run::* what) {
  return std::accumulate(runs.begin(), runs.end(), 0.0,
                         [what](double sum, const Run& run) { return sum + run.*what; }) /
         static_cast<double>(runs.size());
}

int benchFleetApi(Report& report, int pairs) {
  const int nodes = numberFrom("MUSTER_FLEET_NODES", 500);
  io::raiseDescriptorLimit(kDescriptors);
  ::setenv("MUSTER_FLEET_PASSWORD", "fleet", 1);
  std::vector<Run> quiet, asked;
  for (int pair = 0; pair < pairs; ++pair)
    for (const bool second : {false, true}) {
      const bool is_asked = second == (pair % 2 == 0);
      (is_asked ? asked : quiet).push_back(runOnce(nodes, is_asked));
    }
  const auto what = fmt::format("{} nodes, {} pairs: ", nodes, pairs);
  const double without = mean(quiet, &Run::wall_s), with = mean(asked, &Run::wall_s);
  report.record({.name = what + "wall time with 200 requests a second, longer by",
                 .value = 100 * (with / without - 1),
                 .unit = "%",
                 .bar = kSlowerPercent});
  report.record({.name = what + "requests answered a second",
                 .value = mean(asked, &Run::requests_per_s),
                 .unit = "1/s",
                 .bar = kRequestsPerSecond * kLeastOfRate,
                 .direction = Bar::AtLeast});
  report.record({.name = what + "wall time without", .value = without, .unit = "s"});
  report.record({.name = what + "controller's CPU, more by",
                 .value = 100 * (mean(asked, &Run::cpu_s) / mean(quiet, &Run::cpu_s) - 1),
                 .unit = "%"});
  int refused = 0;
  bool arrived = true;
  for (const auto* runs : {&quiet, &asked})
    for (const auto& run : *runs) {
      refused += run.refused;
      arrived = arrived && run.arrived;
    }
  report.record({.name = what + "requests refused",
                 .value = static_cast<double>(refused),
                 .unit = "",
                 .bar = 0});
  return arrived ? report.exitCode() : 1;
}

int benchEither(Report& report) {
  const int pairs = numberFrom("MUSTER_FLEET_API_PAIRS", 0);
  return pairs > 0 ? benchFleetApi(report, pairs) : benchFleet(report);
}

}  // namespace

int run() {
  Report report("fleet");
  return benchEither(report);
}

}  // namespace muster::bench

int main() {
  muster::startLog({}, muster::LogLevel::Error);
  return muster::bench::run();
}
