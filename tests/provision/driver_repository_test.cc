#include "base/io/files.h"
#include "provision/provision.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

namespace muster::provision {
namespace {

Async<io::ServerResponse> call(io::Route route, std::string target) {
  io::ServerRequest request;
  request.method = "GET";
  request.target = std::move(target);
  auto work = route.handle(std::move(request));
  co_return co_await std::move(work);
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
  const auto get = [&](const std::string& target) { return muster::test::runAsync(call(routes[0], target)).value(); };
  for (const auto* good : {"/repo/rdma/Packages", "/repo/rdma/./Packages", "/repo/rdma/pool/x.deb"}) {
    const auto response = get(good);
    ASSERT_TRUE(std::holds_alternative<io::FileBody>(response.body)) << good;
  }
  for (const auto* bad : {"/repo/", "/repo/rdma", "/repo/rdma/", "/repo/rdma/pool", "/repo/rdma/none", "/repo/other/Packages",
                          "/repo/rdma/link", "/repo/rdma/../secret", "/repo/rdma//etc/passwd", "/repo/rdma/%2e%2e/secret"}) {
    EXPECT_EQ(get(bad).status, 404) << bad;
  }
}

}  // namespace
}  // namespace muster::provision
