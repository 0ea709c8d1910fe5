// Netboot: ten thousand hosts for dnsmasq, and a thousand nodes that ask for their boot script within ten seconds over the
// real HTTP routes (loopback; every node a connection of its own, as iPXE does).
#include "bench/bench.h"

#include "base/io/http.h"
#include "provision/netboot/dnsmasq_config.h"
#include "provision/netboot/netboot.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/provision/clusters.h"
#include "tests/provision/token_gateway.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>

#include <ctime>

namespace muster::provision {
namespace {

constexpr int kHosts = 10000;
constexpr int kNodes = 1000;
constexpr std::chrono::milliseconds kBetweenNodes{10};

double cpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// Gone with its content when the bench ends.
struct Folder {
  std::filesystem::path path;
  Folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "muster-bench-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    path = pattern;
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

/// Beside another DHCP server a node may call from any address, so all of them can be on loopback here.
inventory::Cluster manyNodes(int count, inventory::DhcpMode mode) {
  auto cluster = twoNodes();
  const auto pattern = cluster.nodes[0];
  cluster.networks[0].dhcp_mode = mode;
  cluster.nodes.clear();
  for (int i = 0; i < count; ++i) {
    auto node = pattern;
    node.name = NodeName(fmt::format("gpu{:05}", i));
    node.mac = *Mac::parse(fmt::format("52:54:00:00:{:02x}:{:02x}", i >> 8, i & 255));
    node.address = *Ipv4::parse(fmt::format("10.20.{}.{}", 64 + (i >> 8), i & 255));
    cluster.nodes.push_back(node);
  }
  return cluster;
}

void hosts(bench::Report& report) {
  const Folder folder;
  auto cluster = manyNodes(kHosts, inventory::DhcpMode::Authoritative);
  HostFiles files(folder.path / "hosts");
  const auto take = [&](std::size_t expected) {
    const auto before = cpuSeconds();
    const auto change = files.write(renderHosts(cluster));
    const auto spent = cpuSeconds() - before;
    if (!change || change->added + change->removed != expected) std::abort();
    return spent;
  };
  report.record({"10,000 hosts rendered and written for dnsmasq, CPU", take(kHosts), "s", 2.0});
  cluster.nodes.pop_back();
  report.record({"one of 10,000 hosts removed, CPU", take(1) * 1e3, "ms", 50.0});
}

struct Asking {
  std::string origin;
  std::vector<double> milliseconds;
  int failed = 0;
};

Task<void> askAsNode(const inventory::Node& node, int turn, std::shared_ptr<Asking> asking) {
  asio::steady_timer timer(co_await asio::this_coro::executor, turn * kBetweenNodes);
  auto wait = timer.async_wait(asio::use_awaitable);
  co_await std::move(wait);
  const auto began = std::chrono::steady_clock::now();
  const auto client = io::makeHttpClient();
  io::HttpRequest request;
  request.url = *io::Url::parse(asking->origin + "/boot/ipxe?mac=" + node.mac.str());
  auto send = client->send(std::move(request));
  const auto answer = co_await std::move(send);
  asking->milliseconds.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
  const bool right = answer && answer->status == 200 && answer->body.find("muster.node=" + node.name.str() + " ") != std::string::npos;
  if (!right) ++asking->failed;
}

void bootScripts(bench::Report& report) {
  const Folder folder;
  asio::io_context io;
  muster::test::FakeImageStore images;
  muster::test::FakeProcessRunner processes;
  TokenGateway gateway;
  const auto cluster = manyNodes(kNodes, inventory::DhcpMode::Proxy);
  const auto netboot = makeNetboot(cluster, images, gateway, processes, io.get_executor(), {folder.path / "run", 8080, 8443, std::string(64, 'c')});
  for (const auto& node : cluster.nodes)
    if (!netboot->arm(node.name)) std::abort();
  auto server = io::startHttpServer(io.get_executor(), {});
  if (!server) std::abort();
  (*server)->addRoutes(netboot->routes());
  const auto asking = std::make_shared<Asking>();
  asking->origin = fmt::format("http://127.0.0.1:{}", (*server)->port());
  int left = kNodes;
  for (int i = 0; i < kNodes; ++i) {
    asio::co_spawn(io, askAsNode(cluster.nodes[static_cast<std::size_t>(i)], i, asking), [&](const std::exception_ptr& thrown) {
      if (thrown) std::rethrow_exception(thrown);
      if (--left == 0) io.stop();
    });
  }
  io.run();
  auto& all = asking->milliseconds;
  std::sort(all.begin(), all.end());
  report.record({"boot scripts of 1,000 nodes within 10 s that failed", static_cast<double>(asking->failed), "", 0.0});
  report.record({"… the median answer", all[all.size() / 2], "ms", std::nullopt});
  report.record({"… 99 in 100 answers", all[all.size() * 99 / 100], "ms", 200.0});
  (*server)->stop();
}

}  // namespace
}  // namespace muster::provision

int main() {
  muster::bench::Report report("netboot");
  muster::provision::hosts(report);
  muster::provision::bootScripts(report);
  return report.exitCode();
}
