// SPDX-License-Identifier: Apache-2.0
// Client certificates as identities: issued and revoked by openssl, shown by curl and by openssl
// s_client to a real server.
#include "api/doors.h"

#include "api/remote_site.h"
#include "api/site_choice.h"
#include "tests/api/api_site.h"
#include "tests/client_pki.h"

#include <future>

namespace muster::api {
namespace {

using test::ClientPki;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Certificates : public ApiSite {
 protected:
  Certificates() {
    pki_.issue("anna", "/O=HPC Team/OU=ops/CN=anna");
    site_.write("access.conf", "client-ca " + (pki_ / "ca.crt").string() + "\nclient-crl " +
                                   (pki_ / "ca.crl").string() + R"(
certificate cn=anna o="HPC Team" operator
certificate email=ben@example.org approver
certificate ou=ci                 robot    pools=batch
person ben cert:Ben-Laptop
)");
  }

  /// What curl gets that shows a certificate of `pki`.
  Said shows(const std::string& name, Ask what, const ClientPki& pki) {
    what.over_https = true;
    auto command = curlFor(what);
    command.args.insert(command.args.end(), {"--cert", (pki / (name + ".crt")).string(), "--key",
                                             (pki / (name + ".key")).string()});
    const auto ended = io::runBlocking(std::move(command));
    if (!ended || ended->code != 0) {
      ADD_FAILURE() << name << ": " << (ended ? ended->err : ended.error().str());
      return {};
    }
    auto said = parseAnswer(ended->out);
    if (what.record) record(what, said);
    return said;
  }
  Said shows(const std::string& name, const std::string& target = "/api/v1/me") {
    return shows(name, {.target = target}, pki_);
  }
  void expectRefused(const Said& said, const std::string& detail, const std::string& what_to_do) {
    EXPECT_EQ(said.status, 401) << said.body;
    ASSERT_TRUE(said.json.is_object()) << said.body;
    EXPECT_EQ(said.json["code"], "unauthenticated");
    EXPECT_THAT(said.json["detail"].get<std::string>(), HasSubstr(detail));
    EXPECT_THAT(said.json["what_to_do"].get<std::string>(), HasSubstr(what_to_do));
  }
  std::string url() const { return fmt::format("https://localhost:{}", server_->port()); }
  /// Asked again until it is answered so, or 20 s are over: files are looked at once a second.
  Said until(int status, const std::string& name) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    auto said = shows(name);
    while (said.status != status && std::chrono::steady_clock::now() < limit) said = shows(name);
    EXPECT_EQ(said.status, status) << said.body;
    return said;
  }

  ClientPki pki_;
};

TEST_F(Certificates, nameWhoAsksAndWhatTheyMay) {
  pki_.issue("ci", "/O=HPC Team/OU=ci/CN=pipeline 7");
  pki_.issue("ben", "/CN=Ben-Laptop", "client", "-days 10",
             "email:ben@example.org,DNS:laptop.example.org");
  start("127.0.0.1:0");
  const auto anna = shows("anna");
  ASSERT_EQ(anna.status, 200) << anna.body;
  EXPECT_EQ(anna.json["principal"], "cert:anna");
  EXPECT_EQ(anna.json["way"], "certificate");
  EXPECT_EQ(anna.json["role"], "operator");
  EXPECT_EQ(anna.json["person"], "anna");
  EXPECT_TRUE(anna.json.contains("expires_at"));
  const auto ben = shows("ben");
  EXPECT_EQ(ben.json["person"], "ben") << "as the row says: Ben-Laptop is ben";
  EXPECT_EQ(ben.json["role"], "approver");
  const auto ci = shows("ci");
  EXPECT_EQ(ci.json["principal"], "cert:pipeline 7");
  EXPECT_EQ(ci.json["scope"]["pools"], nlohmann::json::array({"batch"}));
  EXPECT_EQ(shows("ci", "/api/v1/nodes/login1").status, 404) << "outside of its pools";
  EXPECT_EQ(shows("ci",
                  {.method = "POST",
                   .target = "/api/v1/quarantine",
                   .headers = {"Content-Type: application/json"},
                   .body = R"({"nodes": "gpu001", "reason": "x"})"},
                  pki_)
                .status,
            403);
  const auto done = shows("anna",
                          {.method = "POST",
                           .target = "/api/v1/quarantine",
                           .headers = {"Content-Type: application/json"},
                           .body = R"({"nodes": "gpu001", "reason": "x"})"},
                          pki_);
  EXPECT_EQ(done.status, 200) << done.body;
  EXPECT_THAT(get("/quarantine").items()[0]["by"].get<std::string>(),
              HasSubstr("cert:anna (API, 127.0.0.1"));
}

TEST_F(Certificates, areRefusedInWordsThatHelp) {
  ClientPki other("Clients of hall-2");  // which calls itself as the right one
  other.issue("anna", "/O=HPC Team/OU=ops/CN=anna");
  pki_.issue("old", "/O=HPC Team/CN=anna", "client",
             "-startdate 20200101000000Z -enddate 20210101000000Z");
  pki_.issue("early", "/O=HPC Team/CN=anna", "client",
             "-startdate 20400101000000Z -enddate 20410101000000Z");
  pki_.issue("web", "/O=HPC Team/CN=anna", "server");
  pki_.issue("anything", "/O=HPC Team/CN=anna", "both");
  pki_.issue("carla", "/O=HPC Team/CN=carla");
  pki_.issue("forger", "/O=HPC Team/CN=anna (API, Unix socket, request 1)");
  pki_.issue("gone", "/O=HPC Team/CN=anna");
  pki_.revoke("gone");
  pki_.run(
      "openssl req -x509 -newkey rsa:2048 -nodes -keyout self.key -out self.crt -days 3 -subj "
      "'/O=HPC Team/CN=anna' -addext extendedKeyUsage=clientAuth");
  start("127.0.0.1:0");
  expectRefused(shows("old"), "has expired", "get a new one");
  expectRefused(shows("early"), "is not valid yet", "clocks");
  expectRefused(shows("web"), "not made for clients", "ask the authority");
  expectRefused(shows("anything"), "not made for clients", "ask the authority");
  expectRefused(shows("carla"), "says of nobody like that", "certificate cn=\"carla\" viewer");
  expectRefused(shows("forger"), "says of nobody like that", "an administrator");
  expectRefused(shows("gone"), "has been revoked", "get a new one");
  expectRefused(shows("self"), "no authority that this server believes", "client-ca");
  expectRefused(shows("anna", {.target = "/api/v1/me"}, other),
                "no authority that this server believes", "client-ca");
  expectRefused(ask({.target = "/api/v1/me", .over_https = true}), "says not who asks", "");
  // What anybody may see is seen, and who shows a token is known by that.
  EXPECT_EQ(shows("old", {.target = "/", .record = false}, pki_).status, 200);
  const auto token = post("/tokens", {{"name", "ci"}, {"role", "viewer"}}).json["token"];
  const auto by_token =
      shows("gone", {.target = "/api/v1/me", .token = token.get<std::string>()}, pki_);
  EXPECT_EQ(by_token.json["principal"], "token:ci");
  const auto bad_token = shows("anna", {.target = "/api/v1/me", .token = "muster_no"}, pki_);
  expectRefused(bad_token, "token", "");
}

TEST_F(Certificates, countOnlyWhileARevocationListDoes) {
  pki_.renewList("-crl_lastupdate 20200101000000Z -crl_nextupdate 20200201000000Z");
  start("127.0.0.1:0");
  expectRefused(shows("anna"), "nobody can say whether", "client-crl");
  pki_.renewList();
  EXPECT_EQ(until(200, "anna").json["principal"], "cert:anna");
  pki_.run("echo nothing > ca.crl");
  const auto unreadable = until(503, "anna");
  EXPECT_THAT(unreadable.json["detail"].get<std::string>(), HasSubstr("no revocation list in it"));
  EXPECT_EQ(get("/me").status, 200) << "other ways go on";
  pki_.renewList();
  (void)until(200, "anna");
  pki_.run("chmod 666 ca.crl");
  EXPECT_THAT(until(503, "anna").json["detail"].get<std::string>(), HasSubstr("chmod 644"));
}

TEST_F(Certificates, thatAreRevokedEndStreamsThatAreOpen) {
  start("127.0.0.1:0");
  auto command = curlFor({.target = "/api/v1/events/stream", .over_https = true});
  command.args.insert(command.args.end(),
                      {"-N", "--max-time", "90", "--cert", (pki_ / "anna.crt").string(), "--key",
                       (pki_ / "anna.key").string()});
  auto stream = std::async(std::launch::async, [&command] { return io::runBlocking(command); });
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto open = [this] {
    return ask({.target = "/metrics", .record = false})
               .body.find("\nmuster_api_event_streams 1\n") != std::string::npos;
  };
  while (!open() && std::chrono::steady_clock::now() < limit) {
  }
  ASSERT_TRUE(open());
  pki_.revoke("anna");
  const auto ended = stream.get();  // with the next heartbeat
  ASSERT_TRUE(ended) << ended.error().str();
  EXPECT_EQ(ended->code, 0) << "the server ended it, not curl's patience: " << ended->err;
  expectRefused(shows("anna"), "has been revoked", "get a new one");
}

/// Browsers show a certificate by themselves, to whatever page asks.
TEST_F(Certificates, ofABrowserGiveOrdersFromTheOwnPageAlone) {
  start("127.0.0.1:0");
  const auto order = [this](std::vector<std::string> headers) {
    headers.push_back("Content-Type: application/json");
    return shows("anna",
                 {.method = "POST",
                  .target = "/api/v1/quarantine",
                  .headers = std::move(headers),
                  .body = R"({"nodes": "gpu001", "reason": "x"})"},
                 pki_);
  };
  EXPECT_EQ(order({"Origin: https://evil.example"}).status, 403);
  EXPECT_EQ(order({"Sec-Fetch-Site: cross-site"}).status, 403);
  EXPECT_EQ(order({"Sec-Fetch-Site: none"}).status, 403);
  EXPECT_EQ(order({"Sec-Fetch-Site: same-origin"}).status, 200);
  EXPECT_EQ(order({"Origin: " + url()}).status, 200);
}

TEST_F(Certificates, areAskedForByTheNamesOfTheAuthority) {
  start("127.0.0.1:0");
  const auto client = [this](const std::string& more) {
    const auto ended = io::runBlocking(
        {"bash",
         {"-c",
          fmt::format("printf 'GET /api/v1/me HTTP/1.1\\r\\nHost: x\\r\\nConnection: "
                      "close\\r\\n\\r\\n' | openssl s_client -ign_eof -connect localhost:{} "
                      "-CAfile {} {} 2>&1",
                      server_->port(), (site_.options().state / "ca/ca.crt").string(), more)}});
    return ended ? ended->out : ended.error().str();
  };
  const auto identity =
      fmt::format("-cert {} -key {}", (pki_ / "anna.crt").string(), (pki_ / "anna.key").string());
  for (const auto* version : {"-tls1_2", "-tls1_3"}) {
    const auto said = client(fmt::format("{} {}", version, identity));
    EXPECT_THAT(said, AllOf(HasSubstr("Acceptable client certificate CA names"),
                            ContainsRegex("CN ?= ?Clients of hall-2"),  // by OpenSSL's release
                            HasSubstr("HTTP/1.1 200 OK"), HasSubstr("cert:anna")))
        << version;
    EXPECT_THAT(client(version), HasSubstr("HTTP/1.1 401"));
  }
  // Another's certificate without its key is nothing.
  ClientPki other;
  other.issue("anna", "/CN=anna");
  const auto stolen = client(
      fmt::format("-cert {} -key {}", (pki_ / "anna.crt").string(), (other / "anna.key").string()));
  EXPECT_THAT(stolen, ::testing::Not(HasSubstr("HTTP/1.1 200")));
}

/// Authorities below authorities: each chain's own lists, and what is above the one that is named
/// is nobody's business.
TEST(ClientTrust, followsChainsDownFromWhatIsNamed) {
  ClientPki root("Root"), sub("Sub"), other("Other");
  sub.putBelow(root, "Sub");
  other.putBelow(root, "Other");
  sub.issue("anna", "/CN=anna");
  sub.issue("gone", "/CN=gone");
  sub.revoke("gone");
  other.issue("anna", "/CN=anna");
  const auto shown = [](ClientPki& pki, const std::string& name, bool with_authority = true) {
    io::ShownCertificate out;
    for (const auto& each : {name, std::string("ca")}) {
      if (each == "ca" && !with_authority) continue;
      pki.run("openssl x509 -in " + each + ".crt -outform DER -out " + each + ".der");
      out.chain_der.push_back(*io::readFile(pki / (each + ".der")));
    }
    return out;
  };
  const auto text = [](const std::filesystem::path& file) { return *io::readFile(file); };
  using Fault = io::CertificateFault;
  const auto fault = [](const std::string& ca, std::optional<std::string> lists,
                        const io::ShownCertificate& certificate) {
    const auto trust = io::ClientTrust::make(ca, lists);
    EXPECT_TRUE(trust) << trust.error().str();
    return trust->evaluate(certificate, SystemClock().now()).fault;
  };
  const auto top = text(root / "ca.crt"), below = text(sub / "ca.crt");
  const auto root_list = text(root / "ca.crl"), sub_list = text(sub / "ca.crl");
  EXPECT_EQ(fault(top, {}, shown(sub, "anna")), Fault::None);
  EXPECT_EQ(fault(top, {}, shown(sub, "anna", false)), Fault::Foreign) << "what is between";
  EXPECT_EQ(fault(top, {}, shown(sub, "gone")), Fault::None) << "nobody asks";
  EXPECT_EQ(fault(top, root_list + sub_list, shown(sub, "anna")), Fault::None);
  EXPECT_EQ(fault(top, root_list + sub_list, shown(sub, "gone")), Fault::Revoked);
  EXPECT_EQ(fault(top, sub_list, shown(sub, "anna")), Fault::RevocationUnknown);
  EXPECT_EQ(fault(top, root_list, shown(sub, "anna")), Fault::RevocationUnknown);
  EXPECT_EQ(fault(top, root_list + sub_list, shown(other, "anna")), Fault::RevocationUnknown);
  EXPECT_EQ(fault(below, sub_list, shown(sub, "anna")), Fault::None);
  EXPECT_EQ(fault(below, sub_list, shown(sub, "anna", false)), Fault::None);
  EXPECT_EQ(fault(below, sub_list, shown(sub, "gone")), Fault::Revoked);
  EXPECT_EQ(fault(below, root_list, shown(sub, "anna")), Fault::RevocationUnknown);
  EXPECT_EQ(fault(below, root_list + sub_list, shown(sub, "anna")), Fault::None)
      << "one file of all lists of the site";
  EXPECT_EQ(fault(below, sub_list + root_list, shown(sub, "gone")), Fault::Revoked);
  EXPECT_EQ(fault(below, {}, shown(other, "anna")), Fault::Foreign) << "its sibling's";
  root.revoke("Sub");
  EXPECT_EQ(fault(top, text(root / "ca.crl") + sub_list, shown(sub, "anna")), Fault::Revoked);
  // The authority's own certificate is nobody's.
  EXPECT_NE(fault(top, {}, shown(root, "ca", false)), Fault::None);
  io::ShownCertificate junk{{std::string(1000, 'x')}, ""};
  EXPECT_EQ(fault(top, {}, junk), Fault::Unreadable);
  EXPECT_EQ(fault(top, {}, {}), Fault::Unreadable);
  auto cut = shown(sub, "anna");
  cut.chain_der[0].resize(200);
  EXPECT_EQ(fault(top, {}, cut), Fault::Unreadable);
  EXPECT_FALSE(io::ClientTrust::make("", {}));
  EXPECT_FALSE(io::ClientTrust::make(top, "-----BEGIN X509 CRL-----\nAAAA\n"));
}

/// One word too much in one row shut everybody out, and only the log said so.
TEST_F(Certificates, ofOthersCountWhereARowIsWrongAndAnAdminIsTold) {
  pki_.issue("ci", "/O=HPC Team/OU=ci/CN=pipeline 7");
  const auto file = *io::readFile(site_ / "access.conf");
  start("127.0.0.1:0");
  EXPECT_TRUE(get("/site").json["access_problems"].empty());
  const auto ci = "certificate ou=ci                 robot";
  auto wrong = file;
  wrong.replace(wrong.find(ci), std::string_view(ci).size(), "certificate ou=ci       robot robot");
  site_.write("access.conf", wrong);
  const auto refused = until(503, "ci");
  EXPECT_THAT(refused.json["detail"].get<std::string>(), HasSubstr("access.conf:5:1"));
  EXPECT_EQ(shows("anna").status, 200) << "another row is about her";
  const auto told = get("/site").json["access_problems"];
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0].get<std::string>(), HasSubstr("access.conf:5:1"));
  EXPECT_TRUE(shows("anna", "/api/v1/site").json["access_problems"].empty()) << "she is no admin";
  site_.write("access.conf", file);
  (void)until(200, "ci");
  EXPECT_TRUE(get("/site").json["access_problems"].empty());
}

/// Nodes have certificates of the site's own authority, and are no people.
TEST_F(Certificates, ofTheSitesOwnAuthorityAreNone) {
  start("127.0.0.1:0");
  site_.write("access.conf", "client-ca " + (site_.options().state / "ca/ca.crt").string() +
                                 "\ncertificate cn=anna admin\n");
  EXPECT_THAT(until(503, "anna").json["detail"].get<std::string>(),
              HasSubstr("the site's own authority"));
  site_.write("access.conf", "certificate cn=anna\n");
  const auto broken = [&] {
    return shows("anna").json.value("detail", "").find("access.conf:1:1") != std::string::npos;
  };
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!broken() && std::chrono::steady_clock::now() < limit) {
  }
  EXPECT_TRUE(broken());
}

TEST_F(Certificates, areWhatACommandShows) {
  start("127.0.0.1:0");
  auto options = site_.options();
  options.server = url();
  options.server_given = true;
  options.server_ca = site_.options().state / "ca/ca.crt";
  options.client_cert = pki_ / "anna.crt";
  const auto half = chooseSite(options, [](const std::string&) {});
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().str(), HasSubstr("--client-key"));
  options.client_key = pki_ / "anna.key";
  const auto site = chooseSite(options, [](const std::string&) {});
  ASSERT_TRUE(site) << site.error().str();
  EXPECT_EQ(*(*site)->principal(), "cert:anna");
  pki_.issue("old", "/O=HPC Team/CN=anna", "client",
             "-startdate 20200101000000Z -enddate 20210101000000Z");
  options.client_cert = pki_ / "old.crt";
  options.client_key = pki_ / "old.key";
  const auto refused = chooseSite(options, [](const std::string&) {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), AllOf(HasSubstr("has expired"), HasSubstr("get a new one")));
}

}  // namespace
}  // namespace muster::api
