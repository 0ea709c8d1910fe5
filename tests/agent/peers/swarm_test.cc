// SPDX-License-Identifier: Apache-2.0
// Nodes as coroutines on loopback addresses, each with the real engine, the real writer and a file
// for a disk; one server with the real tracker. Nothing limits the links: what is tested is that
// the right image is there in the end, whatever the others do.
#include "agent/imaging/chunk_writer.h"
#include "agent/peers/peer_client.h"
#include "base/io/files.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "provision/images/image_store.h"
#include "provision/images/packed_image.h"
#include "provision/peers/metainfo.h"
#include "provision/peers/peer_service.h"
#include "tests/agent/imaging/pack_server.h"
#include "tests/paths.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sys/mount.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using ::testing::HasSubstr;

constexpr std::size_t kChunks = 60;

/// The same for all tests: it takes a second to make.
const test::SamplePack& sample() {
  static const test::SamplePack pack(kChunks);
  return pack;
}

/// A peer that claims to have everything, and sends something else. Only what a client asks is
/// answered.
class CorruptPeer {
 public:
  CorruptPeer(asio::io_context& context, std::string info_hash, std::uint32_t pieces)
      : acceptor_(context, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
        hello_(
            "\x13"
            "BitTorrent protocol" +
            std::string(8, '\0') + info_hash + "-LI0001-liarliarliar") {
    std::string bits((pieces + 7) / 8, '\xff');
    if (pieces % 8 != 0) bits.back() = static_cast<char>(0xff << (8 - pieces % 8));
    hello_ += message('\x05', bits) + message('\x01', "");  // bitfield, unchoke
    asio::co_spawn(context, accept(), asio::detached);
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  int lies() const { return lies_; }

 private:
  static std::string number(std::uint32_t value) {
    return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
            static_cast<char>(value >> 8), static_cast<char>(value)};
  }
  static std::uint32_t numberAt(const std::string& text, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i)
      value = value << 8 | static_cast<unsigned char>(text[i]);
    return value;
  }
  static std::string message(char kind, const std::string& body) {
    return number(static_cast<std::uint32_t>(body.size() + 1)) + kind + body;
  }

  Task<void> accept() {
    try {
      for (;;) {
        auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
        asio::co_spawn(acceptor_.get_executor(), talk(std::move(socket)), asio::detached);
      }
    } catch (const std::exception&) {
    }
  }

  Task<void> talk(tcp::socket socket) {
    try {
      std::string in(68, '\0');
      co_await asio::async_read(socket, asio::buffer(in), asio::use_awaitable);
      co_await asio::async_write(socket, asio::buffer(hello_), asio::use_awaitable);
      for (;;) {
        in.resize(4);
        co_await asio::async_read(socket, asio::buffer(in), asio::use_awaitable);
        in.resize(std::min<std::uint32_t>(numberAt(in, 0), 1u << 20));
        co_await asio::async_read(socket, asio::buffer(in), asio::use_awaitable);
        if (in.size() != 13 || in[0] != '\x06') continue;  // a request: piece, offset, length
        ++lies_;
        const std::string lie =
            message('\x07', in.substr(1, 8) + std::string(numberAt(in, 9), 'L'));
        co_await asio::async_write(socket, asio::buffer(lie), asio::use_awaitable);
      }
    } catch (const std::exception&) {  // it hung up
    }
  }

  tcp::acceptor acceptor_;
  std::string hello_;
  int lies_ = 0;
};

class SwarmTest : public ::testing::Test {
 protected:
  struct Node {
    std::filesystem::path disk;
    std::unique_ptr<BlockTarget> target;
    std::unique_ptr<PeerSource> source;
    std::optional<Result<ChunkReport>> report;
  };

  SwarmTest() {
    const auto pattern = cluster.nodes[0];
    cluster.nodes.clear();
    for (int i = 1; i <= 4; ++i) {
      auto node = pattern;
      node.name = NodeName(fmt::format("gpu{}", i));
      node.rack = "r1";
      node.address = Ipv4();  // loopback connections come from where the kernel likes
      cluster.nodes.push_back(node);
    }
    EXPECT_TRUE(io::writeFileAtomic(folder / "pack", sample().pack));
    auto started = io::startHttpServer(context.get_executor(), {});
    EXPECT_TRUE(started);
    server = std::move(*started);
    url = fmt::format("http://127.0.0.1:{}", server->port());
    service = provision::makePeerService(cluster, clock, {url, "secret"});
    server->addRoutes(service->routes());
    server->addRoutes({{"GET", "/pack",
                        [this](io::ServerRequest request) { return serve(std::move(request)); }}});
  }
  ~SwarmTest() override {
    nodes.clear();
    server->stop();
    context.run_for(100ms);
  }

  Task<io::ServerResponse> serve(io::ServerRequest) {
    co_return io::ServerResponse::file({folder / "pack", "application/octet-stream"});
  }

  wire::PeerParams offer(std::size_t node) {
    const provision::PackedImage image{"sample", std::string(64, 'd'), folder / "pack",
                                       folder / "index", 1};
    auto offered = service->offer(cluster.nodes[node], image);
    while (!offered) {
      std::this_thread::yield();
      offered = service->offer(cluster.nodes[node], image);
    }
    return *offered;
  }

  /// Begins to write node `number` (1…); `disk` keeps what it holds.
  Node& begin(int number, bool resume = false) {
    auto& node = nodes[number];
    node.disk = folder / fmt::format("disk{}", number);
    if (!resume) {
      std::ofstream(node.disk).flush();
      std::filesystem::resize_file(node.disk, sample().raw.size());
    }
    node.target = std::move(*openBlockTarget(node.disk));
    PeerOptions options;
    options.swarm = {test::binFolder() / "muster-peer", memory / fmt::format("swarm{}", number),
                     fmt::format("127.0.77.{}:0", number)};
    const std::string pack_url = url + "/pack";
    node.source = std::make_unique<PeerSource>(offer(static_cast<std::size_t>(number) - 1),
                                               std::vector{pack_url}, options, *processes, clock,
                                               [] { return io::makeHttpClient(); });
    auto* source = node.source.get();
    ChunkJob job{.index = sample().index,
                 .pack_url = pack_url,
                 .mirror_urls = {},
                 .target = *node.target,
                 .keep_matching_chunks = resume,
                 .deadline = 60s,
                 .make_http = [source] { return source->client(); },
                 .workers = workers,
                 .clock = clock,
                 .progress = [](double, const std::string&) {}};
    job.scanned = [source](const wire::PackIndex& index, const std::vector<char>& right) {
      source->scanned(index, right);
    };
    asio::co_spawn(context, writeAndVerify(std::move(job)),
                   [&node](std::exception_ptr problem, Result<ChunkReport> report) {
                     node.report =
                         problem ? Result<ChunkReport>(fail(ErrorCode::Internal, "an exception"))
                                 : std::move(report);
                   });
    return node;
  }

  /// Runs everything until `done`. Not for ever.
  bool runUntil(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!done() && std::chrono::steady_clock::now() < end) context.run_one_for(20ms);
    return done();
  }
  bool allWritten() {
    return runUntil([this] {
      return std::ranges::all_of(nodes,
                                 [](const auto& entry) { return entry.second.report.has_value(); });
    });
  }
  void expectRight() {
    for (const auto& [number, node] : nodes) {
      ASSERT_TRUE(node.report && *node.report)
          << number << ": " << (node.report ? node.report->error().str() : "not written");
      EXPECT_TRUE(*io::readFile(node.disk) == sample().raw)
          << "node " << number << " has another image";
      EXPECT_LE((*node.report)->peak_buffer_bytes, windowBytes(sample().index));
    }
  }

  test::TempFolder folder;
  std::filesystem::path memory = folder.path();  ///< where engines keep their pieces
  asio::io_context context{1};
  SystemClock clock;
  Workers workers{2};
  std::unique_ptr<io::ProcessRunner> processes = io::makeProcessRunner();
  inventory::Cluster cluster = provision::twoNodes();
  std::unique_ptr<provision::PeerService> service;
  std::unique_ptr<io::HttpServer> server;
  std::string url;
  std::optional<CorruptPeer> corrupt;  ///< as long as engines may talk to it
  std::map<int, Node> nodes;
};

TEST_F(SwarmTest, nodesBringEachOtherTheImageAndTheServerSendsItOnce) {
  for (const int number : {1, 2, 3}) begin(number);
  ASSERT_TRUE(allWritten());
  expectRight();
  std::uint64_t from_servers = 0, from_peers = 0;
  for (const auto& [number, node] : nodes) {
    const auto report = node.source->report();
    EXPECT_TRUE(report.joined) << report.why_not;
    from_servers += report.shared_bytes + report.asked_servers_bytes;
    from_peers += report.status.from_peers;
  }
  EXPECT_LE(from_servers, sample().pack.size() * 3 / 2);
  EXPECT_GE(from_peers, sample().pack.size());
}

TEST_F(SwarmTest, aPeerThatLiesDoesNotMatter) {
  const auto info = provision::makeMetainfo(folder / "pack", false);
  ASSERT_TRUE(info);
  corrupt.emplace(context, info->info_hash, info->pieces);
  // It has its word from the controller: a node that was broken into while it is imaged.
  io::HttpRequest announce;
  announce.url =
      *io::Url::parse(offer(3).announce_url + "?info_hash=" + io::percentEncode(info->info_hash) +
                      fmt::format("&peer_id=-LI0001-liarliarliar&left=0&port={}", corrupt->port()));
  auto http = io::makeHttpClient();
  const auto told = test::runAsync(context, http->send(announce));
  ASSERT_TRUE(told && told->status == 200);
  ASSERT_THAT(told->body, HasSubstr("5:peers0:"));
  context.restart();
  for (const int number : {1, 2, 3}) begin(number);
  ASSERT_TRUE(allWritten());
  expectRight();
  EXPECT_GT(corrupt->lies(), 0) << "nobody asked it, so nothing was tested";
  std::uint32_t wrong = 0;
  for (const auto& [number, node] : nodes) wrong += node.source->report().status.wrong_pieces;
  EXPECT_GT(wrong, 0u);
}

TEST_F(SwarmTest, peersThatVanishLeaveHttp) {
  for (const int number : {1, 2, 3}) begin(number);
  ASSERT_TRUE(runUntil([this] { return nodes[1].source->report().served_bytes > 0; }));
  for (auto& [number, node] : nodes) {
    service->dismiss(cluster.nodes[static_cast<std::size_t>(number) - 1]
                         .name);  // nor is there a tracker any more
    if (auto* swarm = node.source->swarm()) ::kill(swarm->pid(), SIGKILL);
  }
  ASSERT_TRUE(allWritten());
  expectRight();
  EXPECT_GT(nodes[1].source->report().asked_servers_bytes, 0u);
  EXPECT_THAT(nodes[1].source->report().why_not, HasSubstr("ended"));
}

TEST_F(SwarmTest, aFullRamDiskLeavesHttp) {
  if (::geteuid() != 0) GTEST_SKIP() << "a small RAM disk needs root";
  memory = folder / "small";
  ASSERT_TRUE(io::makeDirs(memory));
  ASSERT_TRUE(io::runChecked(
      {.program = "mount", .args = {"-t", "tmpfs", "-o", "size=1m", "small", memory.string()}}));
  begin(1);
  const bool written = allWritten();
  EXPECT_THAT(nodes[1].source->report().why_not, HasSubstr("no room"));
  nodes[1].source.reset();  // what it lays there must be closed
  ::umount2(memory.c_str(), MNT_DETACH);
  ASSERT_TRUE(written);
  expectRight();
}

TEST_F(SwarmTest, aPowerCutGoesOnWhereItWas) {
  begin(1);
  begin(2);
  ASSERT_TRUE(runUntil(
      [this] { return nodes[1].source->report().served_bytes > sample().pack.size() / 4; }));
  // Cut: the writer, its engine and its memory are gone; the disk keeps what it has.
  const auto disk = *io::readFile(nodes[1].disk);
  ASSERT_FALSE(nodes[1].report) << "it was too fast to be cut";
  ASSERT_TRUE(io::writeFileAtomic(folder / "disk3", disk));
  begin(3, true);
  ASSERT_TRUE(allWritten());
  expectRight();
  EXPECT_GT((*nodes[3].report)->bytes_skipped, 0u);
  EXPECT_LT((*nodes[3].report)->bytes_fetched, sample().pack.size());
}

}  // namespace
}  // namespace muster::agent
