// SPDX-License-Identifier: Apache-2.0
#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "provision/provision.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <unistd.h>

namespace muster::provision {
namespace {

Async<io::ServerResponse> call(io::Route route, std::string target) {
  io::ServerRequest request;
  request.method = "GET";
  request.target = std::move(target);
  co_return co_await route.handle(std::move(request));
}

TEST(DriverRepository, servesOnlyWhatLiesInTheFolder) {
  muster::test::TempFolder folder;
  auto cluster = twoNodes();
  cluster.folder = folder.path();
  cluster.drivers["rdma"].repository = "repo";
  ASSERT_TRUE(io::makeDirs(folder / "repo/pool"));
  ASSERT_TRUE(io::writeFileAtomic(folder / "repo/Packages", "Package: x\n"));
  ASSERT_TRUE(io::writeFileAtomic(folder / "repo/pool/x.deb", "deb"));
  ASSERT_TRUE(io::writeFileAtomic(folder / "secret", "no"));
  std::filesystem::create_symlink(folder / "secret", folder / "repo/link");
  const auto routes = driverRepositoryRoutes(cluster);
  ASSERT_EQ(routes.size(), 1u);
  const auto get = [&](const std::string& target) {
    return muster::test::runAsync(call(routes[0], target)).value();
  };
  for (const auto* name : {"", "gpu099"}) {
    io::ServerRequest head;
    head.client_common_name = name;
    head.expired_client_common_name = cluster.nodes[0].name.str();
    const auto admission = routes[0].admit(head);
    ASSERT_TRUE(admission.refusal) << "\"" << name << '"';
    EXPECT_EQ(admission.refusal->status, 403);
  }
  io::ServerRequest node;
  node.client_common_name = cluster.nodes[0].name.str();
  EXPECT_FALSE(routes[0].admit(node).refusal);
  for (const auto* good :
       {"/repo/rdma/Packages", "/repo/rdma/./Packages", "/repo/rdma/pool/x.deb"}) {
    const auto response = get(good);
    ASSERT_TRUE(std::holds_alternative<io::FileBody>(response.body)) << good;
  }
  for (const auto* bad :
       {"/repo/", "/repo/rdma", "/repo/rdma/", "/repo/rdma/pool", "/repo/rdma/none",
        "/repo/other/Packages", "/repo/rdma/link", "/repo/rdma/../secret", "/repo/rdma//etc/passwd",
        "/repo/rdma/%2e%2e/secret"}) {
    EXPECT_EQ(get(bad).status, 404) << bad;
  }
}

/// apt itself against our own TLS: it takes the root that it is given for this host, and nothing
/// else will do.
class AptOverTls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access("/usr/bin/apt-get", X_OK) != 0) GTEST_SKIP() << "no apt-get here";
    cluster.folder = folder.path();
    cluster.drivers["rdma"].repository = "repo";
    for (const auto* path :
         {"repo", "etc/sources.list.d", "state/lists/partial", "cache/archives/partial"})
      ASSERT_TRUE(io::makeDirs(folder / path));
    ASSERT_TRUE(io::writeFileAtomic(folder / "status", ""));
    ASSERT_TRUE(io::writeFileAtomic(
        folder / "repo/Packages",
        "Package: x\nVersion: 1\nArchitecture: all\nFilename: x.deb\nSize: 3\n\n"));
    ca = std::make_unique<io::CertificateAuthority>(
        *io::CertificateAuthority::loadOrCreate(folder / "ca", "muster CA"));
    io::ServerOptions options;
    options.identity = *ca->issueServer("muster", {"127.0.0.1"}, std::chrono::hours(1));
    options.client_ca_pem = ca->certificatePem();
    auto started = io::startHttpServer(context.get_executor(), options);
    ASSERT_TRUE(started) << started.error().str();
    server = std::move(*started);
    server->addRoutes(driverRepositoryRoutes(cluster));
    ASSERT_TRUE(io::writeFileAtomic(
        folder / "etc/sources.list.d/muster-rdma.list",
        fmt::format("deb [trusted=yes] https://127.0.0.1:{}/repo/rdma/ ./\n", server->port())));
  }
  /// `node`: whose certificate apt shows; none when empty.
  Result<io::ProcessExit> update(const std::string& root_pem, const std::string& node) {
    EXPECT_TRUE(io::writeFileAtomic(folder / "root.pem", root_pem));
    std::filesystem::remove_all(folder / "state/lists");
    EXPECT_TRUE(io::makeDirs(folder / "state/lists/partial"));
    const auto request = io::makeKeyAndRequest("x");
    EXPECT_TRUE(io::writeFileAtomic(folder / "node.key", request->key_pem.reveal(), 0600));
    if (!node.empty())
      EXPECT_TRUE(io::writeFileAtomic(
          folder / "node.pem", *ca->signClient(request->csr_pem, node, std::chrono::hours(1))));
    io::Command command;
    command.program = "apt-get";
    command.args = {"update"};
    for (const auto& [key, path] :
         std::map<std::string, std::string>{{"Dir::Etc", "etc"},
                                            {"Dir::State", "state"},
                                            {"Dir::Cache", "cache"},
                                            {"Dir::State::status", "status"},
                                            {"Acquire::https::127.0.0.1::CAInfo", "root.pem"}})
      command.args.insert(command.args.end(), {"-o", key + "=" + (folder / path).string()});
    if (!node.empty())
      for (const auto& [key, path] :
           std::map<std::string, std::string>{{"SslCert", "node.pem"}, {"SslKey", "node.key"}})
        command.args.insert(command.args.end(), {"-o", "Acquire::https::127.0.0.1::" + key + "=" +
                                                           (folder / path).string()});
    for (const auto* word :
         {"Dir::Etc::sourcelist=sources.list.d/muster-rdma.list", "Dir::Etc::sourceparts=-",
          "APT::Sandbox::User=root", "APT::Update::Error-Mode=any", "Acquire::https::Proxy=DIRECT"})
      command.args.insert(command.args.end(), {"-o", word});
    command.timeout = std::chrono::seconds(60);
    auto processes = io::makeProcessRunner();
    return muster::test::runAsync(context, processes->run(std::move(command)));
  }
  muster::test::TempFolder folder;
  asio::io_context context;
  inventory::Cluster cluster = twoNodes();
  std::unique_ptr<io::CertificateAuthority> ca;
  std::unique_ptr<io::HttpServer> server;
};

TEST_F(AptOverTls, takesTheControllersRootAndNoOther) {
  const auto name = cluster.nodes[0].name.str();
  const auto right = update(ca->certificatePem(), name);
  ASSERT_TRUE(right) << right.error().str();
  EXPECT_EQ(right->code, 0) << right->out << right->err;
  const auto unknown = io::CertificateAuthority::loadOrCreate(folder / "other", "muster CA");
  const auto wrong = update(unknown->certificatePem(), name);
  ASSERT_TRUE(wrong) << wrong.error().str();
  EXPECT_NE(wrong->code, 0);
  EXPECT_THAT(
      wrong->out + wrong->err,  // by GnuTLS (Debian 12), by OpenSSL (13)
      ::testing::ContainsRegex("Certificate verification failed|certificate verify failed"));
}

TEST_F(AptOverTls, getsNothingWithoutTheCertificateOfANode) {
  for (const auto* name : {"", "gpu099"}) {
    const auto refused = update(ca->certificatePem(), name);
    ASSERT_TRUE(refused) << refused.error().str();
    EXPECT_NE(refused->code, 0);
    EXPECT_NE((refused->out + refused->err).find("403"), std::string::npos) << refused->err;
  }
}

}  // namespace
}  // namespace muster::provision
