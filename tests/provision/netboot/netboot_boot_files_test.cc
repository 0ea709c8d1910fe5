// SPDX-License-Identifier: Apache-2.0
// What another host on the network gets out of the boot files of an armed node, with the real
// dnsmasq and the real gateway.
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "tests/provision/dhcp_site.h"
#include "wire/messages.h"

#include <boost/asio/co_spawn.hpp>

#include <future>
#include <thread>

namespace muster::provision {
namespace {

constexpr const char* kNodeMac = "52:54:00:00:00:01";

/// The other host is `client` (another MAC and address), the node is behind a bridge beside it.
class BootFilesTest : public DhcpTest {
 protected:
  void declare() override {
    cluster_.profiles.at("uefi").secure_boot = true;
    for (const auto* name : {"vmlinuz", "initrd.img", "agent.img"})
      ASSERT_TRUE(io::writeFileAtomic(folder_ / name, name));
    images_.ram_os = RamOs{folder_ / "vmlinuz", folder_ / "initrd.img", folder_ / "agent.img"};
  }
  void surround() override {
    node_ = &makeSpace();
    joinLan(*node_, "nic");
    in(*node_, [this] {
      ip(std::string("link set nic address ") + kNodeMac);
      node_dhcp_ = openSocket(68, "nic");
    });
    in(client_, [this] { ip("addr add 10.20.1.77/16 dev client"); });
  }
  /// Netboot with the real gateway, which believes the real leases and neighbours.
  void startGateway() {
    netboot_->stop();
    store_ = std::move(*lifecycle::openSqliteStore(folder_ / "muster.db"));
    ca_.emplace(*io::CertificateAuthority::loadOrCreate(folder_ / "ca", "test root"));
    evidence_ = gateway::makeNetworkEvidence(dnsmasqLeaseFile(folder_ / "run"));
    agents_ = gateway::makeGatewayServer(cluster_, *ca_, *store_, clock_, *evidence_);
    netboot_ = makeNetboot(
        cluster_, images_, *agents_, *processes_, io_.get_executor(),
        {folder_ / "run", 8080, 8443, ca_->fingerprint(), folder_ / "hosts", folder_ / "tftp"});
    const auto started = netboot_->start();
    ASSERT_TRUE(started) << started.error().str();
    io::ServerOptions tls, plain;
    tls.address = plain.address = "10.20.0.1";
    tls.identity = *ca_->issueServer("controller", {"10.20.0.1"}, std::chrono::hours(1));
    auto https = io::startHttpServer(io_.get_executor(), tls),
         http = io::startHttpServer(io_.get_executor(), plain);
    ASSERT_TRUE(https && http);
    https_ = std::move(*https);
    http_ = std::move(*http);
    https_->addRoutes(agents_->routes());
    http_->addRoutes(netboot_->routes());
  }
  void TearDown() override {
    https_.reset();
    http_.reset();
    DhcpTest::TearDown();
  }
  /// Sends from that host, while the controller works here.
  Result<io::HttpResponse> sendFrom(const Netns& space, io::HttpRequest request) {
    std::promise<Result<io::HttpResponse>> promise;
    auto answer = promise.get_future();
    std::thread sender([&] {
      if (::setns(space.fd.get(), CLONE_NEWNET) != 0)
        return promise.set_value(fail(ErrorCode::Internal, "no namespace"));
      io::TlsTrust trust;
      trust.ca_pem = ca_->certificatePem();
      auto client = io::makeHttpClient(trust);
      promise.set_value(muster::test::runAsync(client->send(std::move(request))));
    });
    while (answer.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) {
      io_.restart();
      io_.run_for(std::chrono::milliseconds(5));
    }
    sender.join();
    return answer.get();
  }
  int enrollFrom(const Netns& space, const std::string& id) {
    io::HttpRequest request;
    request.method = "POST";
    request.url = {"https", "10.20.0.1", https_->port(), "/agent/v1/enrol"};
    request.body =
        wire::toJson(wire::EnrollRequest{id, io::makeKeyAndRequest("x")->csr_pem, kNodeMac});
    const auto answer = sendFrom(space, std::move(request));
    EXPECT_TRUE(answer) << answer.error().str();
    if (answer) said_ = answer->body;
    return answer ? answer->status : 0;
  }
  /// A file by TFTP, in 512-byte blocks; nothing when the server refuses it.
  std::optional<std::string> fetch(const Netns& space, const char* device,
                                   const std::string& name) {
    io::Fd socket;
    in(space, [&] { socket = openSocket(0, device); });
    sockaddr_in to{AF_INET, htons(69), {}, {}};
    ::inet_pton(AF_INET, "10.20.0.1", &to.sin_addr);
    auto packet = std::string("\0\1", 2) + name + '\0' + "octet" + '\0';
    std::string content;
    for (int block = 1, tries = 0; tries < kTries;) {
      ::sendto(socket.get(), packet.data(), packet.size(), 0,
               reinterpret_cast<const sockaddr*>(&to), sizeof to);
      char answer[1024];
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const auto n = ::recvfrom(socket.get(), answer, sizeof answer, 0,
                                reinterpret_cast<sockaddr*>(&from), &size);
      ++tries;
      if (n < 4) continue;
      if (answer[1] == 5) return std::nullopt;
      if (answer[1] != 3 || ((answer[2] & 0xff) << 8 | (answer[3] & 0xff)) != block) continue;
      content.append(answer + 4, static_cast<std::size_t>(n - 4));
      to = from;
      packet = std::string("\0\4", 2) + answer[2] + answer[3];
      tries = 0;
      ++block;
      if (n < 516) {
        ::sendto(socket.get(), packet.data(), packet.size(), 0,
                 reinterpret_cast<const sockaddr*>(&to), sizeof to);
        return content;
      }
    }
    return std::nullopt;
  }
  /// The node's firmware takes its address.
  void leaseToNode() {
    const sockaddr_in all{AF_INET, htons(67), {INADDR_BROADCAST}, {}};
    std::optional<Offer> confirmed;
    for (int i = 0; i < kTries && !(confirmed && confirmed->kind == 5); ++i) {
      const auto question = discover(*Mac::parse(kNodeMac), 7, false);
      const auto read = [&question](std::string_view answer) {
        return parseOffer(answer, question);
      };
      const auto offer = ask(node_dhcp_, question, all, read);
      ASSERT_TRUE(offer);
      confirmed = ask(node_dhcp_, requestFor(question, *offer), all, [&](std::string_view answer) {
        auto heard = parseOffer(answer, question);
        if (heard && heard->kind != 5) heard.reset();
        return heard;
      });
    }
    ASSERT_TRUE(confirmed);
    EXPECT_EQ(confirmed->address, "10.20.1.1");
    in(*node_, [this] { ip("addr replace 10.20.1.1/16 dev nic"); });
  }
  std::string idIn(const std::string& text) {
    const std::string key = "'muster.enrolment=";
    const auto at = text.find(key);
    return at == std::string::npos
               ? ""
               : text.substr(at + key.size(), text.find('\'', at + key.size()) - at - key.size());
  }

  Netns* node_ = nullptr;
  io::Fd node_dhcp_;
  SystemClock clock_;
  std::unique_ptr<lifecycle::Store> store_;
  std::optional<io::CertificateAuthority> ca_;
  std::unique_ptr<gateway::NetworkEvidence> evidence_;
  std::unique_ptr<gateway::GatewayServer> agents_;
  std::unique_ptr<io::HttpServer> https_, http_;
  std::string said_;
};

TEST_F(BootFilesTest, anotherHostReadsEveryFileAndCannotEnrollAndTheNodeCan) {
  if (!std::filesystem::exists("/usr/lib/shim/shimx64.efi.signed"))
    GTEST_SKIP() << "shim-signed is not installed";
  startGateway();
  leaseToNode();  // an earlier start's: it must not count
  const auto armed = netboot_->arm(NodeName("gpu001"));
  ASSERT_TRUE(armed) << armed.error().str();

  // Every file below the root, by its name, by the node's folder, and by climbing.
  std::string id;
  std::size_t fetched = 0;
  const auto root = folder_ / "tftp";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    const auto name = std::filesystem::relative(entry.path(), root).string();
    for (const auto& path : {name, "/" + name, "../tftp/" + name, "10.20.1.77/../" + name}) {
      const auto content = fetch(client_, "client", path);
      if (!content) continue;
      ++fetched;
      if (const auto found = idIn(*content); !found.empty()) id = found;
      for (const auto* secret : {"PRIVATE", "token", "password"})
        EXPECT_EQ(content->find(secret), std::string::npos) << path << " holds a " << secret;
    }
  }
  EXPECT_GT(fetched, 3u);
  ASSERT_FALSE(id.empty())
      << "the premise: dnsmasq gives the node's grub.cfg to a host without a folder";
  for (const auto* path : {"../dnsmasq.leases", "../../ca/ca.key", "../../muster.db"})
    EXPECT_FALSE(fetch(client_, "client", path)) << path;

  for (const auto* path : {"/boot/ipxe?mac=52:54:00:00:00:01", "/boot/ipxe", "/boot/../ca/ca.key",
                           "/agent/v1/enrol", "/"}) {
    io::HttpRequest request;
    request.url = {"http", "10.20.0.1", http_->port(), path};
    const auto answer = sendFrom(client_, std::move(request));
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->body.find("muster.enrolment"), std::string::npos) << path;
    EXPECT_EQ(answer->body.find("PRIVATE"), std::string::npos) << path;
  }

  EXPECT_EQ(enrollFrom(client_, id), 403) << said_;
  EXPECT_NE(said_.find("10.20.1.77 asked to enroll as this node"), std::string::npos) << said_;
  EXPECT_EQ(enrollFrom(*node_, id), 403) << "the node's address without a lease since it was armed";
  EXPECT_NE(said_.find("is older than this start"), std::string::npos) << said_;

  const auto mac = *Mac::parse(kNodeMac);
  const auto before =
      (*evidence_->leaseOf(mac))
          ->expires;  // in seconds: within the same one a new lease looks like the old one
  for (int i = 0; i < kTries && (*evidence_->leaseOf(mac))->expires == before; ++i) {
    leaseToNode();
    io_.restart();
    io_.run_for(std::chrono::milliseconds(100));
  }

  // A thief at the node's address, with its own MAC: the node is away.
  in(*node_, [this] { ip("addr del 10.20.1.1/16 dev nic"); });
  in(client_, [this] { ip("addr flush dev client && ip addr add 10.20.1.1/16 dev client"); });
  ip("neigh flush dev lan");
  EXPECT_EQ(enrollFrom(client_, id), 403) << said_;
  EXPECT_NE(said_.find("shows another MAC"), std::string::npos) << said_;
  in(client_, [this] { ip("addr flush dev client && ip addr add 10.20.1.77/16 dev client"); });
  in(*node_, [this] { ip("addr add 10.20.1.1/16 dev nic"); });
  ip("neigh flush dev lan");

  EXPECT_EQ(enrollFrom(*node_, id), 200) << said_;
}

}  // namespace
}  // namespace muster::provision
