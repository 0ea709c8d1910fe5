// SPDX-License-Identifier: Apache-2.0
// Who gets a BMC's password, over real TLS on loopback: an impostor in a BMC's place records every
// byte that it is sent after the handshake.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <mutex>
#include <thread>

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "bmc/fleet.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "lab/vbmc/redfish_service.h"
#include "tests/bmc/virtual_bmc.h"
#include "tests/fakes/fake_machine.h"
#include "tests/fakes/memory_store.h"
#include "tests/run_async.h"

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using tcp = asio::ip::tcp;

const std::string kRoot =
    R"({"@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot", "RedfishVersion": "1.9.0",
        "SessionService": {"@odata.id": "/redfish/v1/SessionService"},
        "Links": {"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions"}}})";

/// A TLS server of the test's own in a thread of its own. It takes every login and keeps what it
/// was sent.
class Impostor {
 public:
  explicit Impostor(const io::TlsIdentity& identity) {
    context_.use_certificate_chain(asio::buffer(identity.certificate_pem));
    context_.use_private_key(asio::buffer(identity.key_pem.reveal()), asio::ssl::context::pem);
    thread_ = std::thread([this] { serve(); });
  }
  ~Impostor() {
    stopped_ = true;
    boost::system::error_code ignored;
    tcp::socket wake(io_);
    wake.connect(acceptor_.local_endpoint(), ignored);
    wake.close(ignored);
    thread_.join();
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  std::string received() {
    const std::lock_guard lock(guard_);
    return received_;
  }
  int greeted() const { return greeted_; }

 private:
  void serve() {
    while (true) {
      boost::system::error_code error;
      tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      if (stopped_) return;
      if (!error) talk(std::move(socket));
    }
  }
  /// One request a connection.
  void talk(tcp::socket socket) {
    boost::system::error_code error;
    asio::ssl::stream<tcp::socket> stream(std::move(socket), context_);
    stream.handshake(asio::ssl::stream_base::server, error);
    if (error) return;
    std::string bytes;
    ++greeted_;
    const auto head = asio::read_until(stream, asio::dynamic_buffer(bytes), "\r\n\r\n", error);
    std::size_t body = 0;
    if (const auto at = bytes.find("Content-Length: "); at != std::string::npos)
      body = std::stoul(bytes.substr(at + 16));
    if (!error && bytes.size() < head + body)
      asio::read(stream, asio::dynamic_buffer(bytes),
                 asio::transfer_exactly(head + body - bytes.size()), error);
    {
      const std::lock_guard lock(guard_);
      received_ += bytes;
    }
    if (error) return;
    const auto answer = fmt::format(
        "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nX-Auth-Token: "
        "t\r\nLocation: /s/1\r\nConnection: close\r\n\r\n{}",
        bytes.starts_with("POST") ? "201 Created" : "200 OK", kRoot.size(), kRoot);
    asio::write(stream, asio::buffer(answer), error);
    stream.shutdown(error);
  }

  asio::io_context io_;
  tcp::acceptor acceptor_{io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  asio::ssl::context context_{asio::ssl::context::tls_server};
  std::mutex guard_;
  std::string received_;
  std::atomic<int> greeted_ = 0;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

class DeclaredTrust : public testing::Test {
 protected:
  DeclaredTrust() { ::setenv("MUSTER_BMC_TEST_PASSWORD", "right", 1); }

  static std::string fingerprint(const io::TlsIdentity& identity) {
    return io::describeCertificate(identity.certificate_pem)->sha256_fingerprint;
  }
  io::CertificateAuthority authority(const char* name) {
    return *io::CertificateAuthority::loadOrCreate(folder_ / name, name);
  }
  static std::string pemOf(const io::CertificateAuthority& ca) { return ca.certificatePem(); }

  /// Asks the BMC at this port as a new process would. Errors: as system()
  Result<SystemInfo> ask(std::uint16_t port, inventory::BmcTrustPolicy policy,
                         inventory::BmcTrust trust = {}) {
    auto cluster = test::clusterWithBmcAt(port);
    cluster.bmc_trust = policy;
    cluster.nodes.front().bmc.trust = std::move(trust);
    auto fleet = makeBmcFleet(cluster, store_, clock_, workers_);
    auto seen = test::runAsync(io_, fleet->at(NodeName("gpu001")).system(), 30s);
    (void)test::runAsync(io_, fleet->close(), 10s);
    return seen;
  }
  /// An emulated BMC that shows this identity. Answers its port.
  std::uint16_t honest(const io::TlsIdentity& identity) {
    service_ = *lab::vbmc::RedfishService::make(clock_, workers_, machine_,
                                                test::virtualBmcOptions(folder_.path()));
    io::ServerOptions listener;
    listener.identity = identity;
    server_ = *io::startHttpServer(io_.get_executor(), listener);
    server_->addRoutes(service_->routes());
    asio::co_spawn(io_, service_->run(), asio::detached);
    return server_->port();
  }
  ~DeclaredTrust() override {
    if (service_) service_->stop();
    if (server_) server_->stop();
  }
  static void expectNoSecret(const std::string& received) {
    EXPECT_THAT(received, AllOf(Not(HasSubstr("right")), Not(HasSubstr(io::toBase64("right"))),
                                Not(HasSubstr(io::toBase64("admin:right"))),
                                Not(HasSubstr("POST ")), Not(HasSubstr("Authorization"))));
  }

  SystemClock clock_;
  Workers workers_{2};
  test::TempFolder folder_;
  test::MemoryStore store_{std::make_shared<test::MemoryStore::Data>()};
  lab::vbmc::FakeMachine machine_;
  std::unique_ptr<lab::vbmc::RedfishService> service_;
  asio::io_context io_;
  std::unique_ptr<io::HttpServer> server_;
  const io::TlsIdentity own_ = *io::selfSigned("bmc", {"127.0.0.1"}),
                        foreign_ = *io::selfSigned("bmc", {"127.0.0.1"});
};

TEST_F(DeclaredTrust, theTrapWorks) {
  Impostor impostor(foreign_);
  (void)ask(impostor.port(), inventory::BmcTrustPolicy::FirstContact);
  EXPECT_THAT(impostor.received(),
              AllOf(HasSubstr("POST /redfish/v1/SessionService/Sessions"), HasSubstr("right")))
      << "first contact believes whoever answers";
}

TEST_F(DeclaredTrust, anImpostorInPlaceOfADeclaredBmcIsSentNothingAtAll) {
  for (const auto policy :
       {inventory::BmcTrustPolicy::FirstContact, inventory::BmcTrustPolicy::Declared}) {
    Impostor impostor(foreign_);
    const auto seen = ask(impostor.port(), policy, {.pin = fingerprint(own_)});
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().code(), ErrorCode::Denied);
    EXPECT_THAT(seen.error().str(),
                AllOf(HasSubstr(fingerprint(foreign_)), HasSubstr(fingerprint(own_)),
                      HasSubstr("bmc_pin of gpu001")));
    EXPECT_THAT(impostor.received(), IsEmpty());
  }
}

TEST_F(DeclaredTrust, aBmcOfWhichNothingIsDeclaredIsSentNoPassword) {
  Impostor impostor(foreign_);
  for (int process = 0; process < 2; ++process) {
    const auto seen = ask(impostor.port(), inventory::BmcTrustPolicy::Declared);
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().code(), ErrorCode::Denied);
    EXPECT_THAT(seen.error().str(),
                AllOf(HasSubstr("bmc_pin: " + fingerprint(foreign_)), HasSubstr("bmc_ca")));
  }
  EXPECT_GE(impostor.greeted(), 1) << "it was asked for its certificate";
  EXPECT_THAT(impostor.received(), HasSubstr("GET /redfish/v1/"));
  expectNoSecret(impostor.received());
}

TEST_F(DeclaredTrust, aDeclaredBmcIsLoggedInTo) {
  const auto port = honest(own_);
  const auto seen = ask(port, inventory::BmcTrustPolicy::Declared, {.pin = fingerprint(own_)});
  ASSERT_TRUE(seen) << seen.error().str();
  EXPECT_EQ(seen->serial, "SN-1");
}

TEST_F(DeclaredTrust, aCaVouchesForItsBmcs) {
  const auto ca = authority("site");
  const auto port = honest(*ca.issueServer("bmc", {"127.0.0.1"}, 24h));
  const auto seen =
      ask(port, inventory::BmcTrustPolicy::Declared, {.ca_file = "site.pem", .ca_pem = pemOf(ca)});
  ASSERT_TRUE(seen) << seen.error().str();
  EXPECT_EQ(seen->serial, "SN-1");
}

TEST_F(DeclaredTrust, whatTheCaDoesNotVouchForIsSentNothingAtAll) {
  const auto ca = authority("site"), other = authority("other");
  struct Case {
    const char* what;
    io::TlsIdentity shown;
    const char* words;
  };
  const Case cases[] = {
      {"another CA", *other.issueServer("bmc", {"127.0.0.1"}, 24h), ""},
      {"its own signature", foreign_, ""},
      {"expired", *ca.issueServer("bmc", {"127.0.0.1"}, -1h), "expired"},
      {"another host", *ca.issueServer("bmc", {"127.0.0.2", "gpu002-bmc"}, 24h), ""},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    Impostor impostor(one.shown);
    const auto seen = ask(impostor.port(), inventory::BmcTrustPolicy::FirstContact,
                          {.ca_file = "site.pem", .ca_pem = pemOf(ca)});
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().code(), ErrorCode::Denied);
    EXPECT_THAT(seen.error().str(), AllOf(HasSubstr(fingerprint(one.shown)), HasSubstr("site.pem"),
                                          HasSubstr(one.words)));
    EXPECT_THAT(impostor.received(), IsEmpty());
  }
}

TEST_F(DeclaredTrust, eachBmcGetsItsOwnPasswordAndAWrongOneStaysOneBmcsMatter) {
  Impostor first(own_), second(foreign_);
  ::setenv("MUSTER_BMC_TEST_FIRST", "alpha-secret", 1);
  ::setenv("MUSTER_BMC_TEST_SECOND", "beta-secret", 1);
  auto cluster = test::clusterWithBmcAt(first.port());
  for (const auto& [name, user, variable] : {std::tuple("one", "admin", "MUSTER_BMC_TEST_FIRST"),
                                             std::tuple("two", "root", "MUSTER_BMC_TEST_SECOND")}) {
    cluster.credentials[name] = {name, user, {}};
    cluster.credentials[name].password.env = variable;
  }
  cluster.nodes.push_back(cluster.nodes.front());
  cluster.nodes[0].bmc.credential = "one";
  cluster.nodes[1].name = NodeName("gpu002");
  cluster.nodes[1].bmc.url = fmt::format("https://127.0.0.1:{}", second.port());
  cluster.nodes[1].bmc.credential = "two";
  auto fleet = makeBmcFleet(cluster, store_, clock_, workers_);
  (void)test::runAsync(io_, fleet->at(NodeName("gpu001")).system(), 30s);
  (void)test::runAsync(io_, fleet->at(NodeName("gpu002")).system(), 30s);
  EXPECT_THAT(first.received(), AllOf(HasSubstr("alpha-secret"), Not(HasSubstr("beta-secret")),
                                      Not(HasSubstr("root"))));
  EXPECT_THAT(second.received(), AllOf(HasSubstr("beta-secret"), Not(HasSubstr("alpha-secret"))));
  (void)test::runAsync(io_, fleet->close(), 10s);

  const auto memory = [&](const char* node) {
    return *remembered(cluster, store_, NodeName(node));
  };
  EXPECT_FALSE(memory("gpu001").password_refused);
  ::setenv("MUSTER_BMC_TEST_FIRST", "wrong", 1);
  const auto port = honest(own_);  // takes admin and "right"
  cluster.nodes[0].bmc.url = fmt::format("https://127.0.0.1:{}", port);
  auto later = makeBmcFleet(cluster, store_, clock_, workers_);
  EXPECT_FALSE(test::runAsync(io_, later->at(NodeName("gpu001")).system(), 30s));
  EXPECT_TRUE(memory("gpu001").password_refused);
  EXPECT_FALSE(memory("gpu002").password_refused);
  EXPECT_EQ(service_->state().failed_logins, 1u);
  EXPECT_FALSE(test::runAsync(io_, later->at(NodeName("gpu001")).system(), 30s));
  EXPECT_EQ(service_->state().failed_logins, 1u) << "what was refused is not sent again";
  (void)test::runAsync(io_, later->close(), 10s);
}

}  // namespace
}  // namespace muster::bmc
