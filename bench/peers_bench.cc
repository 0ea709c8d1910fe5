// SPDX-License-Identifier: Apache-2.0
// Peers: sixteen nodes in namespaces with links of 200 Mbit/s, and a server with one of 200 Mbit/s,
// are imaged at once; first as a swarm, then by HTTP alone. Every part is the real one: muster's
// HTTP server, tracker and shares, the writer that verifies each chunk, the engine in its own
// process. Only the disks are none: what was verified is dropped, since sixteen disks of one
// machine would be measured.
//
// MUSTER_BENCH_PEERS_MIB (128) of noise, so that the pack is as long as the image. Frames of 9,000
// bytes: the shaper takes a timer a packet, and two cores that carry thirty-four shaped links would
// measure that.
#include "agent/imaging/chunk_writer.h"
#include "agent/peers/peer_client.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "base/ip_address.h"
#include "bench/bench.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "provision/images/image_store.h"
#include "provision/images/pack_writer.h"
#include "provision/images/packed_image.h"
#include "provision/peers/peer_service.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iostream>
#include <random>
#include <thread>

using namespace muster;
using bench::need, bench::sh;
namespace fs = std::filesystem;

namespace {

constexpr int kNodes = 16;
constexpr int kLinkMbit = 200;
constexpr std::uint16_t kPort = 8080;
constexpr double kMib = 1 << 20;
constexpr std::chrono::seconds kLimit{200};
constexpr std::chrono::milliseconds kPoll{5};
const char* const kPrefix = "muster-bp-";

std::string addressOf(int node) { return fmt::format("10.77.0.{}", node + 1); }  // 0 is the server
std::string spaceOf(int node) { return fmt::format("{}{}", kPrefix, node); }

void await(const fs::path& file) {
  const auto until = std::chrono::steady_clock::now() + kLimit;
  while (!fs::exists(file)) {
    if (std::chrono::steady_clock::now() > until)
      need(Result<void>(fail(ErrorCode::Timeout, file.string() + " did not come")));
    std::this_thread::sleep_for(kPoll);
  }
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}  // one clock for all processes

// ---- the server

inventory::Cluster cluster() {
  inventory::Cluster cluster;
  inventory::Network network;
  network.name = "provisioning";
  cluster.networks = {network};
  cluster.profiles["node"].name = "node";
  for (int i = 1; i <= kNodes; ++i) {
    inventory::Node node;
    node.name = NodeName(fmt::format("gpu{:02}", i));
    node.profile = "node";
    node.rack = "r1";
    node.address = *Ipv4::parse(addressOf(i));
    cluster.nodes.push_back(node);
  }
  return cluster;
}

Task<io::ServerResponse> packOf(fs::path pack) {
  co_return io::ServerResponse::file({std::move(pack), "application/octet-stream"});
}

int serve(const fs::path& folder) {
  asio::io_context context(1);
  SystemClock clock;
  const auto site = cluster();
  const auto url = fmt::format("http://{}:{}", addressOf(0), kPort);
  auto peers = provision::makePeerService(site, clock, {url, "secret of the bench"});
  const provision::PackedImage image{"bench", std::string(64, 'd'), folder / "pack",
                                     folder / "index", 0};
  for (const auto& node : site.nodes) {
    auto offered = peers->offer(node, image);
    for (; !offered; offered = peers->offer(node, image)) std::this_thread::sleep_for(kPoll);
    wire::WriteImageParams task;
    task.index_url = url + "/index";
    task.pack_url = url + "/pack";
    task.digest = image.digest;
    task.signing_public_pem = "none";
    task.hostname = node.name.str();
    task.agent = {url, "none"};
    task.peers = std::move(offered);
    need(io::writeFileAtomic(folder / (node.name.str() + ".json"), toJson(task)));
  }
  io::ServerOptions options;
  options.address = addressOf(0);
  options.port = kPort;
  auto server = need(io::startHttpServer(context.get_executor(), options));
  server->addRoutes(peers->routes());
  server->addRoutes(
      {{"GET", "/pack", [pack = image.pack](io::ServerRequest) { return packOf(pack); }}});
  need(io::writeFileAtomic(folder / "serving", ""));
  context.run();
  return 0;
}

// ---- a node

class NoDisk final : public agent::BlockTarget {
 public:
  explicit NoDisk(std::uint64_t size) : size_(size) {}
  std::uint64_t sizeBytes() const override { return size_; }
  Result<void> write(std::uint64_t, std::string_view) override { return {}; }
  Result<void> zero(std::uint64_t, std::uint64_t) override { return {}; }
  Result<void> read(std::uint64_t, std::span<char> out) override {
    std::ranges::fill(out, '\0');
    return {};
  }
  Result<void> flush() override { return {}; }

 private:
  std::uint64_t size_;
};

int image(const fs::path& folder, int node, const std::string& how) {
  asio::io_context context(1);
  SystemClock clock;
  Workers workers(2);
  auto processes = io::makeProcessRunner();
  const auto index = need(wire::readIndex(need(io::readFile(folder / "index"))));
  const auto task = need(
      wire::parseWriteImageParams(need(io::readFile(folder / fmt::format("gpu{:02}.json", node)))));
  const auto url = fmt::format("http://{}:{}/pack", addressOf(0), kPort);
  agent::PeerOptions options;
  options.swarm = {fs::read_symlink("/proc/self/exe").parent_path() / "muster-peer",
                   folder / fmt::format("swarm-{}", node), addressOf(node) + ":6881"};
  agent::PeerSource source(*task.peers, {url}, options, *processes, clock,
                           [] { return io::makeHttpClient(); });
  NoDisk disk(index.size_bytes);
  agent::ChunkJob job{.index = index,
                      .pack_url = url,
                      .mirror_urls = {},
                      .target = disk,
                      .deadline = kLimit,
                      .make_http = {},
                      .workers = workers,
                      .clock = clock,
                      .progress = [](double, const std::string&) {}};
  const bool swarm = how == "swarm";
  job.make_http = [&source, swarm] { return swarm ? source.client() : io::makeHttpClient(); };
  need(io::writeFileAtomic(folder / fmt::format("ready-{}-{}", how, node), ""));
  await(folder / ("go-" + how));
  asio::co_spawn(
      context, agent::writeChunks(std::move(job)),
      [&](std::exception_ptr problem, Result<agent::ChunkReport> report) {
        const double end = now();
        if (problem || !report)
          std::exit((std::cerr << (report ? "exception" : report.error().str()) << std::endl, 3));
        const auto peers = source.report();
        need(io::writeFileAtomic(folder / fmt::format("done-{}-{}", how, node),
                                 nlohmann::json{{"end", end},
                                                {"from_peers", peers.status.from_peers},
                                                {"shared", peers.shared_bytes},
                                                {"by_http", peers.asked_servers_bytes},
                                                {"wrong", peers.status.wrong_pieces},
                                                {"why_not", peers.why_not}}
                                     .dump()));
      });
  context.run();
  await(folder / ("end-" + how));  // it seeds until all have it
  return 0;
}

// ---- the whole

class Net {
 public:
  Net() {
    drop();
    const std::string hub = std::string(kPrefix) + "hub";
    std::string script = fmt::format(
        "ip netns add {0}; ip -n {0} link add br0 type bridge; ip -n {0} link set br0 up\n", hub);
    for (int i = 0; i <= kNodes; ++i)
      script += fmt::format(
          "ip netns add {0}; ip -n {0} link set lo up; ip link add e0 netns {0} type veth peer "
          "name p{1} netns {2}\n"
          "ip -n {0} addr add {3}/24 dev e0; ip -n {0} link set e0 mtu 9000 up; ip -n {2} link set "
          "p{1} mtu 9000 master br0 up\n"
          "ip netns exec {0} tc qdisc add dev e0 root tbf rate {4}mbit burst 128k latency 40ms\n"
          "ip netns exec {2} tc qdisc add dev p{1} root tbf rate {4}mbit burst 128k latency 40ms\n",
          spaceOf(i), i, hub, addressOf(i), kLinkMbit);
    sh(script);
  }
  Net(const Net&) = delete;
  ~Net() { drop(); }

 private:
  static void drop() {
    sh(fmt::format(
        "for n in $(ip netns list | cut -d' ' -f1 | grep '^{}'); do ip netns del $n; done; true",
        kPrefix));
  }
};

std::uint64_t sentByServer() {
  return std::stoull(need(io::runChecked(io::Command{
      .program = "ip",
      .args = {"netns", "exec", spaceOf(0), "cat", "/sys/class/net/e0/statistics/tx_bytes"}})));
}

double busySeconds() {
  const auto text = need(io::readFile("/proc/stat"));
  unsigned long long user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0;
  std::sscanf(text.c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
              &wait, &irq, &soft);
  return static_cast<double>(user + nice + system + irq + soft) /
         static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::string processor() {
  const auto text = need(io::readFile("/proc/cpuinfo"));
  const auto at = text.find("model name");
  const auto colon = text.find(':', at);
  return at == std::string::npos || colon == std::string::npos
             ? "an unknown processor"
             : text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

struct Outcome {
  double last_seconds = 0, first_seconds = 1e9, egress_bytes = 0, busy_seconds = 0;
  std::uint64_t from_peers = 0, shared = 0, by_http = 0, wrong = 0;
};

std::unique_ptr<io::Child> inSpace(io::ProcessRunner& processes, int node, const fs::path& folder,
                                   std::vector<std::string> words) {
  io::Command command{
      .program = "ip",
      .args = {"netns", "exec", spaceOf(node), fs::read_symlink("/proc/self/exe").string()}};
  command.args.insert(command.args.end(), words.begin(), words.end());
  return need(processes.start(std::move(command), folder / fmt::format("log-{}", node)));
}

Outcome run(io::ProcessRunner& processes, const fs::path& folder, const std::string& how) {
  std::vector<std::unique_ptr<io::Child>> nodes;
  for (int i = 1; i <= kNodes; ++i)
    nodes.push_back(
        inSpace(processes, i, folder, {"node", folder.string(), std::to_string(i), how}));
  for (int i = 1; i <= kNodes; ++i) await(folder / fmt::format("ready-{}-{}", how, i));
  Outcome outcome;
  const double begun = now(), busy = busySeconds();
  const auto sent = sentByServer();
  need(io::writeFileAtomic(folder / ("go-" + how), ""));
  for (int i = 1; i <= kNodes; ++i) {
    const auto file = folder / fmt::format("done-{}-{}", how, i);
    await(file);
    const auto told = nlohmann::json::parse(need(io::readFile(file)));
    const double seconds = told["end"].get<double>() - begun;
    outcome.last_seconds = std::max(outcome.last_seconds, seconds);
    outcome.first_seconds = std::min(outcome.first_seconds, seconds);
    outcome.from_peers += told["from_peers"].get<std::uint64_t>();
    outcome.shared += told["shared"].get<std::uint64_t>();
    outcome.by_http += told["by_http"].get<std::uint64_t>();
    outcome.wrong += told["wrong"].get<std::uint64_t>();
    if (how == "swarm" && told["why_not"] != "")
      std::cerr << "node " << i << ": " << told["why_not"] << std::endl;
  }
  outcome.egress_bytes = static_cast<double>(sentByServer() - sent);
  outcome.busy_seconds = busySeconds() - busy;
  need(io::writeFileAtomic(folder / ("end-" + how), ""));
  return outcome;
}

void makePack(const fs::path& folder, unsigned mib) {
  std::mt19937_64 random(7);
  std::string raw(std::size_t{mib} << 20, '\0');
  for (std::size_t at = 0; at < raw.size(); at += 8) {
    const auto word = random();
    std::memcpy(raw.data() + at, &word, 8);
  }
  need(io::writeFileAtomic(folder / "raw", raw));
  const auto index = need(provision::writePack(folder / "raw", folder / "pack", "bench", 2));
  need(io::writeFileAtomic(folder / "index", wire::canonicalJson(index)));
  fs::remove(folder / "raw");
}

int measure() {
  const char* wanted = std::getenv("MUSTER_BENCH_PEERS_MIB");
  const unsigned mib = wanted ? static_cast<unsigned>(std::stoul(wanted)) : 128;
  const fs::path folder = "/dev/shm/muster-bench-peers";
  fs::remove_all(folder);
  need(io::makeDirs(folder));
  makePack(folder, mib);
  const double bytes = static_cast<double>(fs::file_size(folder / "pack")),
               ideal = bytes * 8 / (kLinkMbit * 1e6);
  bench::Report report("peers");
  {
    const Net net;
    auto processes = io::makeProcessRunner();
    const auto server = inSpace(*processes, 0, folder, {"serve", folder.string()});
    await(folder / "serving");
    const auto swarm = run(*processes, folder, "swarm");
    const auto alone = run(*processes, folder, "http");
    const auto cores = std::thread::hardware_concurrency();
    fmt::print(stderr, "{} cores of {}; pack {:.0f} MiB, {:.2f} s at {} Mbit/s\n", cores,
               processor(), bytes / kMib, ideal, kLinkMbit);
    for (const auto& [name, it] : {std::pair("swarm", swarm), std::pair("http", alone)})
      fmt::print(stderr,
                 "{:>5}: first {:.2f} s, last {:.2f} s; server sent {:.0f} MiB; from peers {:.0f}, "
                 "shares {:.0f}, by HTTP {:.0f} MiB; {} wrong pieces; {:.1f} s of {:.1f} s CPU\n",
                 name, it.first_seconds, it.last_seconds, it.egress_bytes / kMib,
                 static_cast<double>(it.from_peers) / kMib, static_cast<double>(it.shared) / kMib,
                 static_cast<double>(it.by_http) / kMib, it.wrong, it.busy_seconds,
                 it.last_seconds * cores);
    report.record({"16 nodes, 200 Mbit/s: time to the last, of size / link rate",
                   swarm.last_seconds / ideal, "x", 1.3, bench::Bar::AtMost,
                   alone.last_seconds / ideal});
    report.record({"16 nodes: bytes sent by the server, of size", swarm.egress_bytes / bytes, "x",
                   2.0, bench::Bar::AtMost, alone.egress_bytes / bytes});
  }
  fs::remove_all(folder);
  return report.exitCode();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return measure();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (words.size() == 2 && words[0] == "serve") return serve(words[1]);
  if (words.size() == 4 && words[0] == "node")
    return image(words[1], std::stoi(words[2]), words[3]);
  return 2;
}
