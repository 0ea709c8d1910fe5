// SPDX-License-Identifier: Apache-2.0
#include "tests/attack/attack_site.h"

#include "base/ip_address.h"

#include "tests/attack/raw_connection.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <fstream>
#include <iostream>

#include "base/io/process.h"
#include "base/io/side_thread.h"
#include "gateway/gateway_server.h"
#include "gateway/http_listeners.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "lifecycle/store/store.h"
#include "provision/images/image_store.h"
#include "tests/fakes/fake_network_evidence.h"
#include "tests/paths.h"

namespace muster::attack {
namespace {

namespace fs = std::filesystem;

Task<io::ServerResponse> boot(io::ServerRequest) {
  co_return io::ServerResponse::text(200, "#!ipxe\nexit\n");
}

/// Everything of the controller that a network sees.
class Attacked {
 public:
  Attacked(const fs::path& folder, const std::string& address, int control)
      : control_(io_, boost::asio::local::stream_protocol(), control) {
    io::SideThread::startFor(io_);
    ca_.emplace(*io::CertificateAuthority::loadOrCreate(folder / "ca", "attacked"));
    store_ = std::move(*lifecycle::openSqliteStore(folder / "muster.db"));
    for (int number = 1; number <= kNodes; ++number) {
      inventory::Node node;
      node.name = NodeName(nodeOf(number));
      node.mac = *Mac::parse(macOf(number));
      node.address = *Ipv4::parse("127.0.0.1");
      cluster_.nodes.push_back(node);
      neighbours_.show("127.0.0.1", macOf(number));
      neighbours_.show(kAttackersAddress, macOf(number));
      neighbours_.show(address, macOf(number));
    }
    inventory::Network network;
    network.name = "provisioning";
    network.controller = *Ipv4::parse(address);
    gateway_ = gateway::makeGatewayServer(cluster_, *ca_, *store_, clock_, neighbours_);
    images_ = provision::openImageStore(
        {folder / "cache", test::binFolder() / "muster-agent", *io::SigningKey::generate()});
    const auto file = folder / "file";
    std::ofstream(file).put('x');
    fs::resize_file(file, kServedFileBytes);
    auto send = [file](io::ServerRequest) -> Task<io::ServerResponse> {
      co_return io::ServerResponse::file({file});
    };
    std::vector<io::Route> plain = images_->routes();
    plain.push_back({"GET", "/boot/ipxe", boot});
    plain.push_back({"GET", "/file", send});
    auto started =
        gateway::start(io_.get_executor(), network, *ca_, std::move(plain), gateway_->routes());
    if (!started) {
      std::cerr << started.error().str() << "\n";
      ::_exit(1);
    }
    server_ = std::move(*started);
  }

  void run() {
    listen();
    io_.run();
  }

 private:
  /// "arm NUMBER\n", "findings\n"; answered by a line.
  void listen() {
    boost::asio::async_read_until(control_, boost::asio::dynamic_buffer(asked_), '\n',
                                  [this](boost::system::error_code error, std::size_t bytes) {
                                    if (error) ::_exit(0);  // the suite is over
                                    const auto line = asked_.substr(0, bytes - 1);
                                    asked_.erase(0, bytes);
                                    const auto text = answer(line) + "\n";
                                    boost::asio::write(control_, boost::asio::buffer(text), error);
                                    listen();
                                  });
  }
  std::string answer(const std::string& line) {
    if (line == "findings") {
      const auto open = store_->findings(nullptr);
      return open ? std::to_string(open->size()) : "-1";
    }
    const int node = std::atoi(line.substr(line.find(' ') + 1).c_str());
    const auto id = gateway_->openEnrollment(NodeName(nodeOf(node)), *Mac::parse(macOf(node)));
    return id ? *id : "";
  }

  asio::io_context io_;
  boost::asio::local::stream_protocol::socket control_;
  std::string asked_;
  SystemClock clock_;
  std::optional<io::CertificateAuthority> ca_;
  std::unique_ptr<lifecycle::Store> store_;
  inventory::Cluster cluster_;
  test::FakeNetworkEvidence
      neighbours_;  ///< all nodes are on loopback, as every attacker: the worst case
  std::unique_ptr<gateway::GatewayServer> gateway_;
  std::unique_ptr<provision::ImageStore> images_;
  std::unique_ptr<gateway::Server> server_;
};

std::size_t statusBytes(pid_t pid, const std::string& field) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field))
      return std::strtoull(line.c_str() + field.size() + 1, nullptr, 10) * 1024;
  return 0;
}

}  // namespace

std::string macOf(int node) { return fmt::format("52:54:00:00:00:{:02x}", node); }
std::string nodeOf(int node) { return fmt::format("gpu{:03}", node); }

AttackSite::AttackSite()
    : address_(fmt::format("127.67.{}.{}", ::getpid() / 250 % 250, ::getpid() % 250 + 1)) {
  ca_.emplace(*io::CertificateAuthority::loadOrCreate(folder_ / "ca", "attacked"));
  int ends[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    startLog(folder_ / "controller.log", LogLevel::Warning);
    Attacked(folder_.path(), address_, ends[1]).run();
    ::_exit(0);
  }
  ::close(ends[1]);
  control_ = ends[0];
  if (findings() != 0) {
    std::cerr << "the controller did not start\n";
    std::abort();
  }
}

AttackSite::~AttackSite() {
  ::close(control_);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string AttackSite::plainUrl(const std::string& target) const {
  return fmt::format("http://{}:{}{}", address_, kPlainPort, target);
}
std::string AttackSite::tlsUrl(const std::string& target) const {
  return fmt::format("https://{}:{}{}", address_, kTlsPort, target);
}

std::string AttackSite::ask(const std::string& what) {
  const auto line = what + "\n";
  if (::send(control_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return {};
  std::string answer;
  char letter = 0;
  while (::read(control_, &letter, 1) == 1 && letter != '\n') answer += letter;
  return answer;
}

std::string AttackSite::arm(int node) { return ask(fmt::format("arm {}", node)); }
int AttackSite::findings() {
  const auto count = ask("findings");
  return count.empty() ? -1 : std::atoi(count.c_str());
}

bool AttackSite::alive() {
  int status = 0;
  return ::waitpid(pid_, &status, WNOHANG) == 0 && findings() >= 0;
}
std::size_t AttackSite::residentBytes() const { return statusBytes(pid_, "VmRSS:"); }
std::size_t AttackSite::peakBytes() const { return statusBytes(pid_, "VmHWM:"); }
int AttackSite::openDescriptors() const {
  int count = 0;
  std::error_code error;
  for (auto entry = fs::directory_iterator(fmt::format("/proc/{}/fd", pid_), error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    ++count;
  return count;
}

}  // namespace muster::attack
