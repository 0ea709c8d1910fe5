// SPDX-License-Identifier: Apache-2.0
#include "bench/netboot_start.h"

#include "base/ip_address.h"

#include "base/io/files.h"
#include "base/io/http.h"
#include "inventory/model/cluster.h"
#include "provision/netboot/netboot.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/provision/dhcp_packets.h"
#include "tests/provision/enrollment_gateway.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>

namespace muster::provision {

namespace {

using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;

constexpr int kStarting = 1000;
constexpr std::chrono::milliseconds kBetweenNodes{10};
constexpr std::chrono::seconds kDhcpRepeat{1};
constexpr int kDhcpTries = 4, kTriesUntilUp = 60;
constexpr std::size_t kIndexBytes = 500'000;  ///< of an image of 2 GiB: 2,048 chunks
constexpr const char *kController = "10.20.0.1", *kIndexPath = "/images/index.json",
                     *kUnknownMac = "52:54:00:ff:ff:ff";
constexpr std::uint16_t kHttpPort = 8080;
constexpr int kOffered = 2, kConfirmed = 5;

io::Fd ownNetwork() { return io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)); }

/// Two namespaces joined by a cable: the controller's, in which this thread stays, and that of all
/// nodes.
class Wire {
 public:
  explicit Wire(const inventory::Cluster& cluster) {
    if (::geteuid() != 0 || ::unshare(CLONE_NEWNET) != 0)
      fatal("needs root for network namespaces");
    nodes_ = ownNetwork();
    if (::unshare(CLONE_NEWNET) != 0) fatal("no second namespace");
    controller_ = ownNetwork();
    bench::sh(
        fmt::format("ip link set lo up; ip link add server type veth peer name nodes; ip link set "
                    "nodes netns /proc/{}/fd/{}\n"
                    "ip link set server up; ip addr add {}/16 dev server",
                    ::getpid(), nodes_.get(), kController));
    std::string addresses;
    for (int i = 0; i < kStarting; ++i)
      addresses += fmt::format("addr add {}/16 dev nodes\n",
                               cluster.nodes[static_cast<std::size_t>(i)].address.str());
    onNodes([&] { bench::sh("ip link set nodes up; ip -batch - <<'END'\n" + addresses + "END"); });
  }
  /// Sockets that are opened in `work` are the nodes'.
  template <class Work>
  void onNodes(Work work) const {
    if (::setns(nodes_.get(), CLONE_NEWNET) != 0) fatal("the nodes' namespace is gone");
    work();
    if (::setns(controller_.get(), CLONE_NEWNET) != 0) fatal("the controller's namespace is gone");
  }

 private:
  [[noreturn]] static void fatal(const char* why) {
    fmt::print(stderr, "bench: {}: {}\n", why, std::strerror(errno));
    std::exit(2);
  }
  io::Fd nodes_, controller_;
};

/// Port 68 of all nodes: answers are broadcast and find their question by its transaction number.
class DhcpClient {
 public:
  DhcpClient(asio::io_context& io, const Wire& wire) : socket_(io) {
    wire.onNodes([this] { socket_.open(udp::v4()); });
    socket_.set_option(asio::socket_base::broadcast(true));
    if (::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_BINDTODEVICE, "nodes",
                     sizeof "nodes") != 0)
      std::abort();
    socket_.bind({asio::ip::address_v4::any(), 68});
  }

  /// Asks as firmware does, again when nobody answers.
  Task<std::optional<Offer>> ask(std::string question, int tries) {
    auto waiting = std::make_shared<Waiting>(
        Waiting{question, std::nullopt, asio::steady_timer(socket_.get_executor())});
    const std::string number = question.substr(4, 4);
    waiting_[number] = waiting;
    for (int i = 0; i < tries && !waiting->answer; ++i) {
      error_code ignored;
      socket_.send_to(asio::buffer(question), {asio::ip::address_v4::broadcast(), 67}, 0, ignored);
      waiting->bell.expires_after(kDhcpRepeat);
      co_await waiting->bell.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    waiting_.erase(number);
    co_return waiting->answer;
  }

  Task<void> listen() {
    for (;;) {
      char packet[2048];
      error_code error;
      const auto size = co_await socket_.async_receive(
          asio::buffer(packet), asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      const std::string_view answer(packet, size);
      const auto found =
          size < 8 ? waiting_.end() : waiting_.find(std::string(answer.substr(4, 4)));
      if (found == waiting_.end()) continue;
      if (auto offer = parseOffer(answer, found->second->question)) {
        found->second->answer = std::move(offer);
        found->second->bell.cancel();
      }
    }
  }

 private:
  struct Waiting {
    std::string question;
    std::optional<Offer> answer;
    asio::steady_timer bell;
  };
  udp::socket socket_;
  std::map<std::string, std::shared_ptr<Waiting>> waiting_;
};

/// One GET on a connection of its own, from the node's own address; everything that came.
Task<std::string> get(const Wire& wire, Ipv4 from, std::string path) {
  tcp::socket socket(co_await asio::this_coro::executor);
  wire.onNodes([&socket] { socket.open(tcp::v4()); });
  error_code error;
  socket.bind({asio::ip::make_address_v4(from.str()), 0}, error);
  const tcp::endpoint controller(asio::ip::make_address_v4(kController), kHttpPort);
  co_await socket.async_connect(controller, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return error.message();
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", path, kController);
  co_await asio::async_write(socket, asio::buffer(request),
                             asio::redirect_error(asio::use_awaitable, error));
  std::string answer;
  co_await asio::async_read(socket, asio::dynamic_buffer(answer),
                            asio::redirect_error(asio::use_awaitable, error));
  co_return answer;
}

/// What was asked of the controller by all nodes, and how long each answer took.
struct Answers {
  std::vector<double> address, script, index;  ///< ms
  int failed = 0;
};

struct Site {
  const Wire& wire;
  DhcpClient& dhcp;
  Answers& answers;
};

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// Whether the node got what is its own, step by step as iPXE asks.
Task<bool> startNode(Site site, const inventory::Node& node) {
  const auto asking = std::chrono::steady_clock::now();
  const auto question = discover(node.mac, 7, true);
  const auto offer = co_await site.dhcp.ask(question, kDhcpTries);
  if (!offer || offer->kind != kOffered || offer->address != node.address.str()) co_return false;
  const auto taken = co_await site.dhcp.ask(requestFor(question, *offer), kDhcpTries);
  if (!taken || taken->kind != kConfirmed || taken->address != offer->address) co_return false;
  site.answers.address.push_back(since(asking));

  const auto booting = std::chrono::steady_clock::now();
  auto script = get(site.wire, node.address, "/boot/ipxe?mac=" + node.mac.str());
  const auto text = co_await std::move(script);
  if (text.find("muster.node=" + node.name.str() + " ") == std::string::npos) co_return false;
  site.answers.script.push_back(since(booting));

  const auto imaging = std::chrono::steady_clock::now();
  auto index = get(site.wire, node.address, kIndexPath);
  const auto whole = co_await std::move(index);
  if (whole.size() < kIndexBytes) co_return false;
  site.answers.index.push_back(since(imaging));
  co_return true;
}

Task<void> startInTurn(Site site, const inventory::Node& node, int turn) {
  asio::steady_timer timer(co_await asio::this_coro::executor, turn * kBetweenNodes);
  co_await timer.async_wait(asio::use_awaitable);
  if (!co_await startNode(site, node)) ++site.answers.failed;
}

Task<void> startAll(asio::io_context& io, Site site, const inventory::Cluster& cluster) {
  const auto up =
      co_await site.dhcp.ask(discover(*Mac::parse(kUnknownMac), 7, true), kTriesUntilUp);
  if (!up) std::abort();  // dnsmasq has not read the hosts within a minute
  auto left = std::make_shared<int>(kStarting);
  for (int i = 0; i < kStarting; ++i) {
    const std::function<void(std::exception_ptr)> ended = [&io,
                                                           left](const std::exception_ptr& thrown) {
      if (thrown) std::rethrow_exception(thrown);
      if (--*left == 0) io.stop();
    };
    asio::co_spawn(io, startInTurn(site, cluster.nodes[static_cast<std::size_t>(i)], i), ended);
  }
}

Task<io::ServerResponse> indexFile(std::filesystem::path file) {
  co_return io::ServerResponse::file({std::move(file), "application/json"});
}

double ninetyNinth(std::vector<double> all) {
  if (all.empty()) return std::numeric_limits<double>::infinity();
  std::sort(all.begin(), all.end());
  return all[all.size() * 99 / 100];
}

}  // namespace

void startTogether(bench::Report& report, int declared) {
  const Folder folder;
  std::filesystem::permissions(
      folder.path, std::filesystem::perms(0755));  // dnsmasq reads there without root's rights
  bench::need(io::writeFileAtomic(folder.path / "index.json", std::string(kIndexBytes, 'i')));
  const auto cluster = manyNodes(declared);
  const Wire wire(cluster);
  asio::io_context io;
  muster::test::FakeImageStore images;
  EnrollmentGateway gateway;
  const auto processes = io::makeProcessRunner();
  const auto netboot = makeNetboot(cluster, images, gateway, *processes, io.get_executor(),
                                   {folder.path / "run", kHttpPort, 8443, std::string(64, 'c'),
                                    folder.path / "hosts", folder.path / "tftp"});
  bench::need(netboot->start());
  for (int i = 0; i < kStarting; ++i)
    bench::need(netboot->arm(cluster.nodes[static_cast<std::size_t>(i)].name));
  io::ServerOptions options;
  options.address = kController;
  options.port = kHttpPort;
  auto server = bench::need(io::startHttpServer(io.get_executor(), options));
  server->addRoutes(netboot->routes());
  server->addRoutes({{"GET", kIndexPath, [file = folder.path / "index.json"](io::ServerRequest) {
                        return indexFile(file);
                      }}});

  DhcpClient dhcp(io, wire);
  Answers answers;
  asio::co_spawn(io, dhcp.listen(), asio::detached);
  asio::co_spawn(io, startAll(io, {wire, dhcp, answers}, cluster), asio::detached);
  io.run();
  report.record({"1,000 of 10,000 nodes start within 10 s: without address, boot script or index",
                 static_cast<double>(answers.failed), "", 0.0});
  report.record({"… an address of dnsmasq, offer and confirmation: 99 in 100",
                 ninetyNinth(answers.address), "ms", 200.0});
  report.record({"… the boot script: 99 in 100", ninetyNinth(answers.script), "ms", 200.0});
  report.record(
      {"… the index of a 2 GiB image: 99 in 100", ninetyNinth(answers.index), "ms", 200.0});
  server->stop();
  netboot->stop();
}

}  // namespace muster::provision
