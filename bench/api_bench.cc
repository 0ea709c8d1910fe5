// SPDX-License-Identifier: Apache-2.0
// The API before a large fleet: 10,000 nodes listed, plain and compressed; what a listing costs
// when it must be made anew; small requests a second.
#include "api/server.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "bench/bench.h"
#include "lifecycle/store/store.h"

#include <sys/resource.h>

namespace {

using namespace muster;

constexpr int kNodes = 10'000, kFactsOfNode = 40;
constexpr int kSmallRequests = 200, kExplained = 100;

std::string inventoryText() {
  std::string out = R"(cluster: {name: large}
networks:
  provisioning: {cidr: 10.0.0.0/8, dhcp: {mode: authoritative, range: 10.250.0.1-10.250.255.254}}
credentials:
  bmc: {username: admin, password: {file: bmc-password}}
images:
  bookworm: {build: {suite: bookworm, packages: [linux-image-amd64]}}
pools:
  batch: {slurm: {partition: gpu}}
profiles:
  gpu-node: {expect: {gpus: 8}, image: bookworm, pool: batch}
nodes:
)";
  for (int i = 0; i < kNodes; ++i)
    out += fmt::format(
        "  - {{names: gpu{0:05}, profile: gpu-node, mac: \"52:54:00:{1:02x}:{2:02x}:01\", address: "
        "10.1.{1}.{2}, bmc: \"https://10.2.{1}.{2}\", rack: r{3}, unit: {4}}}\n",
        i, i / 250, i % 250 + 1, i / 16, i % 16 + 1);
  return out;
}

void fill(lifecycle::Store& store) {
  const auto now = SystemClock().now();
  for (int i = 0; i < kNodes; ++i) {
    const lifecycle::Subject subject(NodeName(fmt::format("gpu{:05}", i)));
    std::vector<lifecycle::Fact> facts{{subject, FacetName("enrolled"), "yes", now, "bench", ""},
                                       {subject, FacetName("pool"), "in", now, "bench", ""}};
    for (int f = 2; f < kFactsOfNode; ++f)
      facts.push_back({subject, FacetName(fmt::format("firmware.COMPONENT_{}", f)), "1.2.3", now,
                       "bench", R"({"source": "Redfish"})"});
    bench::need(store.putFacts(facts));
  }
}

double cpuSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

}  // namespace

int main() {
  bench::Report report("api");
  char folder[] = "/tmp/muster-bench-XXXXXX";
  if (!::mkdtemp(folder)) return 2;
  const std::filesystem::path site(folder);
  app::Options options;
  options.inventory = site / "cluster.yaml";
  options.state = site / "state";
  options.cache = site / "cache";
  options.lab = site / "no-lab";
  bench::need(io::writeFileAtomic(site / "bmc-password", "x\n", 0600));
  bench::need(io::writeFileAtomic(options.inventory, inventoryText()));
  bench::need(io::makeDirs(options.state, 0700));
  {
    auto store = bench::need(lifecycle::openStore(options.storeUrl()));
    fill(*store);
  }
  auto server =
      bench::need(api::ApiServer::start(options, {site / "api.sock", "", site / "access"}));
  const auto curl = [&](const std::string& more) {
    bench::sh(
        fmt::format("curl -sSf -o {0}/out --unix-socket {0}/api.sock {1}", site.string(), more));
  };
  const std::string all = "'http://x/api/v1/nodes?limit=20000'";
  const auto anew = bench::fastestSeconds(1, [&] { curl(all); });
  report.record({"first listing: inventory read, every node's state made", anew, "s"});
  const auto listed = bench::fastestSeconds(10, [&] { curl("-H 'Accept-Encoding: gzip' " + all); });
  report.record({"10,000 nodes listed, gzip", listed * 1e3, "ms", 100});
  report.record(
      {"… bytes", static_cast<double>(std::filesystem::file_size(site / "out")) / 1e6, "MB", 1});
  const auto plain = bench::fastestSeconds(10, [&] { curl(all); });
  report.record({"10,000 nodes listed, plain", plain * 1e3, "ms"});
  const auto page = bench::fastestSeconds(10, [&] { curl("'http://x/api/v1/nodes?limit=100'"); });
  report.record({"a page of 100 of them", page * 1e3, "ms"});
  {
    auto store = bench::need(lifecycle::openStore(options.storeUrl()));
    double slowest = 0;
    for (int turn = 0; turn < 5; ++turn) {
      const lifecycle::Subject subject(NodeName(fmt::format("gpu{:05}", 5'000 + turn)));
      bench::need(store->putFacts(
          {{subject, FacetName("pool"), "drained", SystemClock().now(), "bench", ""}}));
      bench::need(store->addEvent(
          {0, SystemClock().now(), lifecycle::EventKind::Observed, subject, "", "drained"}));
      const auto began = std::chrono::steady_clock::now();
      do {
        curl("'http://x/api/v1/nodes?nodes=" + subject.str() + "'");
      } while (bench::need(io::readFile(site / "out")).find("\"maintenance\"") ==
               std::string::npos);
      slowest = std::max(
          slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    }
    report.record(
        {"a change of one node in the store until it is listed, slowest of 5", slowest, "s", 2});
  }
  const auto before_why = cpuSeconds();
  curl(fmt::format("'http://x/api/v1/nodes/gpu[{:05}-{:05}]/why'", 1, kExplained));
  report.record({"why of one node", (cpuSeconds() - before_why) / kExplained * 1e3, "ms CPU", 20});
  std::string many;
  for (int i = 0; i < kSmallRequests; ++i) many += "http://x/api/v1/events?limit=10 ";
  const auto before = cpuSeconds();
  curl(many + "2>&1 >/dev/null");
  report.record({"one small request", (cpuSeconds() - before) / kSmallRequests * 1e3, "ms CPU"});
  server->stop();
  std::filesystem::remove_all(site);
  return report.exitCode();
}
