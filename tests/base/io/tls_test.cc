// SPDX-License-Identifier: Apache-2.0
// TLS over loopback: who is trusted, and what happens when trust is broken.
#include "base/io/files.h"
#include "base/io/http.h"
#include "base/io/openssl.h"
#include "base/io/process.h"
#include "base/io/side_thread.h"
#include "base/io/tls_sessions.h"
#include "tests/run_async.h"

#include <openssl/pem.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <map>
#include <thread>

namespace muster::io {
namespace {

using test::runAsync;
using namespace std::chrono_literals;

Task<ServerResponse> whoAmI(ServerRequest request) {
  co_return ServerResponse::text(200, "client=" + request.client_common_name);
}
Task<ServerResponse> expiredName(ServerRequest request) {
  co_return ServerResponse::text(200, "expired=" + request.expired_client_common_name);
}

/// With and without a side thread: who is trusted does not depend on where OpenSSL works.
class Tls : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) SideThread::startFor(io);
    auto made = CertificateAuthority::loadOrCreate(folder / "ca", "muster test root");
    ASSERT_TRUE(made) << made.error().str();
    ca = std::make_unique<CertificateAuthority>(*made);
  }
  void start(bool require_client = false, std::vector<std::string> names = {"127.0.0.1"}) {
    ServerOptions options;
    options.identity = *ca->issueServer("controller", names, 24h);
    options.client_ca_pem = ca->certificatePem();
    options.require_client_certificate = require_client;
    startWith(std::move(options));
  }
  void startWith(ServerOptions options) {
    auto started = startHttpServer(io.get_executor(), std::move(options));
    ASSERT_TRUE(started) << started.error().str();
    server = std::move(*started);
    server->addRoutes({{"GET", "/who", whoAmI}});
  }
  Result<HttpResponse> ask(TlsTrust trust, const std::string& target = "/who") {
    client = makeHttpClient(std::move(trust));
    HttpRequest request;
    request.url = {"https", "127.0.0.1", server->port(), target};
    request.timeout = 5s;
    return runAsync(io, client->send(request));
  }
  TlsTrust trustCa() const {
    TlsTrust trust;
    trust.ca_pem = ca->certificatePem();
    return trust;
  }
  TlsTrust pin(const std::string& fingerprint, bool root) const {
    TlsTrust trust;
    trust.pinned_fingerprint = fingerprint;
    trust.pin_is_root = root;
    return trust;
  }
  TlsIdentity clientOf(const CertificateAuthority& authority, const std::string& name,
                       std::chrono::hours lifetime = 24h) const {
    auto request = makeKeyAndRequest("ignored");
    return {request->key_pem, *authority.signClient(request->csr_pem, name, lifetime)};
  }
  static void expectDenied(const Result<HttpResponse>& answer, const std::string& part) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), ErrorCode::Denied) << answer.error().str();
    EXPECT_NE(answer.error().str().find(part), std::string::npos) << answer.error().str();
  }

  asio::io_context io;
  test::TempFolder folder;
  std::unique_ptr<CertificateAuthority> ca;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<HttpClient> client;
};

/// As a BMC: no certificate asked of clients, and sessions can be taken up again.
class PinnedServer : public Tls {
 protected:
  void begin(std::uint16_t port = 0) {
    ServerOptions options;
    options.port = port;
    options.identity = *selfSigned("bmc", {"127.0.0.1"});
    fingerprint = describeCertificate(options.identity->certificate_pem)->sha256_fingerprint;
    startWith(std::move(options));
  }
  std::string fingerprint;
};

TEST_P(PinnedServer, aSessionIsTakenUpAndStillNamesThePin) {
  begin();
  const auto before = TlsSessions::ofProcess().takenUp();
  for (int connection = 0; connection < 4; ++connection) {
    auto answer = ask(pin(fingerprint, false));
    ASSERT_TRUE(answer) << answer.error().str();
    EXPECT_EQ(client->peerFingerprint(), fingerprint);
  }
  EXPECT_EQ(TlsSessions::ofProcess().takenUp() - before, 3u);
}

TEST_P(PinnedServer, aSessionOfOnePinIsNoneOfAnother) {
  begin();
  ASSERT_TRUE(ask(pin(fingerprint, false)));
  ASSERT_TRUE(ask(pin(fingerprint, false)));
  expectDenied(ask(pin(std::string(64, '0'), false)), "is not the pinned");
}

TEST_P(PinnedServer, anotherServerAtTheAddressIsRefusedWhateverSessionWasKept) {
  begin();
  const auto port = server->port();
  const auto first = fingerprint;
  ASSERT_TRUE(ask(pin(first, false)));
  server->stop();
  io.restart();
  io.poll();
  begin(port);
  ASSERT_NE(fingerprint, first);
  expectDenied(ask(pin(first, false)), "is not the pinned");
  EXPECT_TRUE(ask(pin(fingerprint, false)));
}

TEST_P(Tls, caPinAndRootPinAreAccepted) {
  start();
  auto by_ca = ask(trustCa());
  ASSERT_TRUE(by_ca) << by_ca.error().str();
  EXPECT_EQ(by_ca->body, "client=");
  const auto leaf = client->peerFingerprint();
  EXPECT_EQ(leaf.size(), 64u);
  EXPECT_TRUE(ask(pin(leaf, false)));
  auto by_root = ask(pin(ca->fingerprint(), true));
  EXPECT_TRUE(by_root) << by_root.error().str();
}

TEST_P(Tls, wrongPinsAreDenied) {
  start();
  expectDenied(ask(pin(std::string(64, 'a'), false)), "is not the pinned");
  expectDenied(ask(pin(std::string(64, 'a'), true)), "does not present the pinned root");
}

TEST_P(Tls, pinnedRootThatDidNotSignTheLeafIsDenied) {
  // An impostor presents its own leaf with our root appended.
  auto other = CertificateAuthority::loadOrCreate(folder / "other", "muster test root");
  ServerOptions options;
  options.identity = *other->issueServer("controller", {"127.0.0.1"}, 24h);
  const auto& pem = options.identity->certificate_pem;
  options.identity->certificate_pem =
      pem.substr(0, pem.find("-----BEGIN", 10)) + ca->certificatePem();
  startWith(options);
  expectDenied(ask(pin(ca->fingerprint(), true)), "not trusted");
}

TEST_P(Tls, clientCertificateDoesNotMakeAServer) {
  auto identity = clientOf(*ca, "gpu001");
  identity.certificate_pem += ca->certificatePem();
  ServerOptions options;
  options.identity = identity;
  startWith(options);
  expectDenied(ask(pin(ca->fingerprint(), true)), "not trusted");
}

TEST_P(Tls, otherCaOtherNameAndNoTrustAreDenied) {
  start(false, {"10.9.9.9"});
  expectDenied(ask(trustCa()), "IP address mismatch");
  expectDenied(ask(TlsTrust{}), "no certificate authority and no pin");
  auto other = CertificateAuthority::loadOrCreate(folder / "other", "another root");
  TlsTrust wrong;
  wrong.ca_pem = other->certificatePem();
  expectDenied(ask(wrong), "not trusted");
}

TEST_P(Tls, environmentDoesNotAddTrust) {
  start();
  ::setenv("SSL_CERT_FILE", (folder / "ca/ca.crt").c_str(), 1);
  auto other = CertificateAuthority::loadOrCreate(folder / "other", "another root");
  TlsTrust wrong;
  wrong.ca_pem = other->certificatePem();
  expectDenied(ask(wrong), "not trusted");
  ::unsetenv("SSL_CERT_FILE");
}

TEST_P(Tls, firstContactReportsTheFingerprint) {
  ServerOptions options;
  options.identity = *selfSigned("bmc", {});
  startWith(options);
  TlsTrust any;
  any.accept_first = true;
  auto answer = ask(any);
  ASSERT_TRUE(answer) << answer.error().str();
  EXPECT_EQ(client->peerFingerprint(),
            describeCertificate(options.identity->certificate_pem)->sha256_fingerprint);
  expectDenied(ask(trustCa()), "not trusted");
}

TEST_P(Tls, afterTheFirstContactTheClientTakesNoOther) {
  ServerOptions options;
  options.identity = *selfSigned("bmc", {});
  startWith(options);
  TlsTrust first;
  first.accept_first = true;
  ASSERT_TRUE(ask(first));
  options.port = server->port();
  server.reset();
  options.identity = *selfSigned("impostor", {});
  startWith(options);
  HttpRequest again;
  again.url = {"https", "127.0.0.1", server->port(), "/who"};
  again.timeout = 5s;
  expectDenied(runAsync(io, client->send(again)), "not the pinned");
}

TEST_P(Tls, mutualTlsTellsTheClientsName) {
  start(true);
  auto trust = trustCa();
  trust.identity = clientOf(*ca, "gpu001");
  auto answer = ask(trust);
  ASSERT_TRUE(answer) << answer.error().str();
  EXPECT_EQ(answer->body, "client=gpu001");
}

TEST_P(Tls, foreignExpiredAndMissingClientCertificatesAreRefused) {
  start(true);
  expectDenied(ask(trustCa()), "TLS");
  auto other = CertificateAuthority::loadOrCreate(folder / "other", "muster test root");
  auto trust = trustCa();
  trust.identity = clientOf(*other, "gpu001");
  expectDenied(ask(trust), "TLS");
  trust.identity = clientOf(*ca, "gpu001", -1h);
  expectDenied(ask(trust), "TLS");
}

/// A certificate of our root, by OpenSSL alone, with this extended key usage; "": without any.
TlsIdentity withUsage(const std::filesystem::path& ca_folder, const std::string& usage) {
  const auto key_of = readPrivateKey(Secret(*readFile(ca_folder / "ca.key", 1u << 16)));
  const auto root = certificatesOf(*readFile(ca_folder / "ca.crt", 1u << 16));
  const auto made = makeKeyAndRequest("gpu001");
  const auto key = readPrivateKey(made->key_pem);
  Handle<X509> leaf(X509_new());
  X509_set_version(leaf.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(leaf.get()), 7);
  X509_gmtime_adj(X509_getm_notBefore(leaf.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(leaf.get()), 3600);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(leaf.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("gpu001"), -1, -1, 0);
  X509_set_issuer_name(leaf.get(), X509_get_subject_name(root.front().get()));
  X509_set_pubkey(leaf.get(), key->get());
  const auto add = [&leaf](int nid, const std::string& value) {
    const Handle<X509_EXTENSION> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()));
    EXPECT_EQ(X509_add_ext(leaf.get(), extension.get(), -1), 1);
  };
  add(NID_basic_constraints, "critical,CA:FALSE");
  add(NID_subject_alt_name, "IP:127.0.0.1");
  if (!usage.empty()) add(NID_ext_key_usage, usage);
  EXPECT_GT(X509_sign(leaf.get(), key_of->get(), EVP_sha256()), 0);
  const Handle<BIO> bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), leaf.get());
  return {made->key_pem, textOf(bio.get())};
}

TEST_P(Tls, aCertificateWithoutTheUsageOfItsEndIsRefusedThere) {
  for (const bool admit_expired : {false, true}) {
    ServerOptions options;
    options.identity = *ca->issueServer("controller", {"127.0.0.1"}, 24h);
    options.client_ca_pem = ca->certificatePem();
    options.admit_expired_clients = admit_expired;
    startWith(std::move(options));
    auto trust = trustCa();
    trust.identity = withUsage(folder / "ca", "clientAuth");
    const auto good = ask(trust);
    ASSERT_TRUE(good) << good.error().str();
    EXPECT_EQ(good->body, "client=gpu001");
    for (const auto* usage : {"serverAuth", "codeSigning", ""}) {
      trust.identity = withUsage(folder / "ca", usage);
      EXPECT_FALSE(ask(trust)) << "\"" << usage << "\"";
    }
  }
  for (const auto& [usage, fine] :
       std::map<std::string, bool>{{"serverAuth", true}, {"clientAuth", false}, {"", false}}) {
    ServerOptions options;
    options.identity = withUsage(folder / "ca", usage);
    options.identity->certificate_pem += ca->certificatePem();
    startWith(std::move(options));
    EXPECT_EQ(ask(trustCa()).has_value(), fine) << usage;
    EXPECT_EQ(ask(pin(ca->fingerprint(), true)).has_value(), fine) << usage;
  }
}

/// `line` to openssl's client within the time of a test; what it said.
std::string opensslClient(std::uint16_t port, const std::string& options, const std::string& line) {
  Command command;
  command.program = "sh";
  command.args = {"-c", "(printf '" + line +
                            "\\n'; sleep 1) | timeout 10 openssl s_client -connect 127.0.0.1:" +
                            std::to_string(port) + " " + options + " 2>&1"};
  auto done = runBlocking(command);
  return done ? done->out : done.error().str();
}

TEST_P(Tls, oldVersionsWeakCiphersAndRenegotiationAreRefused) {
  start();
  std::thread serving([this] { io.run_for(60s); });
  const auto v12 = opensslClient(server->port(), "-tls1_2", "Q");
  EXPECT_NE(v12.find("Cipher is ECDHE-"), std::string::npos) << v12;
  const auto weak = opensslClient(
      server->port(), "-tls1_2 -cipher AES128-SHA:ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0", "Q");
  EXPECT_EQ(weak.find("Cipher is ECDHE-"), std::string::npos) << weak;
  EXPECT_NE(weak.find("handshake failure"), std::string::npos) << weak;
  const auto v11 = opensslClient(server->port(), "-tls1_1 -cipher ALL:@SECLEVEL=0", "Q");
  EXPECT_NE(v11.find("Cipher is (NONE)"), std::string::npos) << v11;
  const auto again = opensslClient(server->port(), "-tls1_2", "R");
  EXPECT_NE(again.find("no renegotiation"), std::string::npos) << again;
  io.stop();
  serving.join();
}

TEST_P(Tls, plainHttpToATlsPortIsAnError) {
  start();
  client = makeHttpClient();
  HttpRequest request;
  request.url = {"http", "127.0.0.1", server->port(), "/who"};
  request.timeout = 5s;
  EXPECT_FALSE(runAsync(io, client->send(request)));
}

TEST_P(Tls, brokenIdentityIsInvalidInput) {
  ServerOptions options;
  options.identity = TlsIdentity{Secret("nonsense"), "nonsense"};
  auto started = startHttpServer(io.get_executor(), options);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), ErrorCode::InvalidInput);
  auto a = selfSigned("a", {});
  auto b = selfSigned("b", {});
  options.identity = TlsIdentity{a->key_pem, b->certificate_pem};
  EXPECT_FALSE(startHttpServer(io.get_executor(), options));
}

TEST_P(Tls, onlyTheAgeOfAClientsCertificateIsForgivenAndItIsNotItsName) {
  ServerOptions options;
  options.identity = *ca->issueServer("controller", {"127.0.0.1"}, 24h);
  options.client_ca_pem = ca->certificatePem();
  options.admit_expired_clients = true;
  startWith(std::move(options));
  server->addRoutes(
      {{"GET", "/expired", [](ServerRequest request) { return expiredName(std::move(request)); }}});
  const auto trust = [&](TlsIdentity identity) {
    auto out = trustCa();
    out.identity = std::move(identity);
    return out;
  };
  EXPECT_EQ(ask(trust(clientOf(*ca, "gpu001")))->body, "client=gpu001");
  EXPECT_EQ(ask(trust(clientOf(*ca, "gpu001")), "/expired")->body, "expired=");
  EXPECT_EQ(ask(trust(clientOf(*ca, "gpu001", -1h)))->body, "client=");
  EXPECT_EQ(ask(trust(clientOf(*ca, "gpu001", -1h)), "/expired")->body, "expired=gpu001");
  const auto other = CertificateAuthority::loadOrCreate(folder / "other", "muster test root");
  EXPECT_FALSE(ask(trust(clientOf(*other, "gpu001", -1h))));
}

TEST_P(PinnedServer, theSessionOfTheFirstContactIsTakenUp) {
  begin();
  TlsTrust first;
  first.accept_first = true;
  ASSERT_TRUE(ask(first));
  const auto seen = client->peerFingerprint();
  const auto before = TlsSessions::ofProcess().takenUp();
  ASSERT_TRUE(ask(pin(seen, false)));
  EXPECT_EQ(TlsSessions::ofProcess().takenUp() - before, 1u);
}

/// Two first contacts of one client; one of them meets somebody else.
TEST_P(PinnedServer, ofTwoFirstContactsAtOnceOneCertificateCounts) {
  begin();
  ServerOptions options;
  options.identity = *selfSigned("somebody else", {"127.0.0.1"});
  auto other = startHttpServer(io.get_executor(), options);
  ASSERT_TRUE(other);
  (*other)->addRoutes({{"GET", "/who", whoAmI}});
  TlsTrust first;
  first.accept_first = true;
  const auto shared = makeHttpClient(first);
  int answered = 0, refused = 0;
  for (const auto port : {server->port(), (*other)->port()}) {
    HttpRequest request;
    request.url = {"https", "127.0.0.1", port, "/who"};
    asio::co_spawn(io, shared->send(request),
                   [&](const std::exception_ptr&, const Result<HttpResponse>& answer) {
                     ++(answer ? answered : refused);
                   });
  }
  while (answered + refused < 2 && io.run_one_for(10s)) {
  }
  EXPECT_EQ(answered, 1);
  EXPECT_EQ(refused, 1);
}

TEST_P(PinnedServer, manyAtOnceAreAllGreeted) {
  begin();
  std::vector<std::unique_ptr<HttpClient>> clients;
  int answered = 0;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(makeHttpClient(pin(fingerprint, false)));
    HttpRequest request;
    request.url = {"https", "127.0.0.1", server->port(), "/who"};
    asio::co_spawn(io, clients.back()->send(request),
                   [&](const std::exception_ptr&, const Result<HttpResponse>& answer) {
                     answered += answer.has_value();
                   });
  }
  while (answered < 50 && io.run_one_for(10s)) {
  }
  EXPECT_EQ(answered, 50);
}

TEST_P(PinnedServer, aGreetingUnderWayEndsWithItsContext) {
  begin();
  auto context = std::make_unique<asio::io_context>();
  if (GetParam()) SideThread::startFor(*context);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(makeHttpClient(pin(fingerprint, false)));
    HttpRequest request;
    request.url = {"https", "127.0.0.1", server->port(), "/who"};
    asio::co_spawn(*context, clients.back()->send(request),
                   [](const std::exception_ptr&, const Result<HttpResponse>&) {});
  }
  for (int turn = 0; turn < 60; ++turn)
    context->poll_one();  // dialled, and handed to the side thread
  context.reset();
  EXPECT_TRUE(ask(pin(fingerprint, false)));
}

TEST_P(Tls, whoSendsNoTlsAndWhoLeavesInTheMiddleIsGivenUp) {
  start();
  for (const auto& bytes : {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"),
                            std::string("\x16\x03\x01\x00\xff\x01", 6)}) {
    boost::asio::ip::tcp::socket socket(io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), server->port()});
    asio::write(socket, asio::buffer(bytes));
    socket.shutdown(boost::asio::ip::tcp::socket::shutdown_send);
    std::string answer;
    bool over = false;
    asio::async_read(socket, asio::dynamic_buffer(answer),
                     [&](boost::system::error_code, std::size_t) { over = true; });
    while (!over && io.run_one_for(10s)) {
    }
    EXPECT_TRUE(over) << "the server neither answered nor closed";
    EXPECT_EQ(answer.find("client="), std::string::npos);
  }
  EXPECT_TRUE(ask(trustCa()));
}

INSTANTIATE_TEST_SUITE_P(Threads, PinnedServer, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "sideThread" : "oneThread"; });
INSTANTIATE_TEST_SUITE_P(Threads, Tls, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "sideThread" : "oneThread"; });

}  // namespace
}  // namespace muster::io
