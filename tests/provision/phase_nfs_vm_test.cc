// SPDX-License-Identifier: Apache-2.0
// A file system of NFS on a virtual machine: a real server (nfs-ganesha) on the controller's
// network, a real kernel that mounts it, the agent that measures it. Some minutes under TCG, so on
// request only.
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/mounts.h"
#include "inventory/model/profile.h"
#include "provision/storage/storage.h"
#include "tests/provision/vm_site.h"

namespace muster::provision {
namespace {

using ::testing::HasSubstr;

constexpr const char* kServer =
    "NFS_CORE_PARAM {{ Protocols = 4; Bind_addr = 10.20.0.1; NFS_Port = 2049; Enable_NLM = false; "
    "Enable_RQUOTA = false; Enable_UDP = false; }}\n"
    "NFSv4 {{ Graceless = true; Only_Numeric_Owners = true; RecoveryRoot = {0}/recovery; }}\n"
    "EXPORT {{ Export_Id = 1; Path = {0}/export; Pseudo = /scratch; Access_Type = RW; Squash = "
    "No_Root_Squash; SecType = sys; Transports = TCP; FSAL {{ Name = VFS; }} }}\n";

class NfsVmTest : public VmSite {
 protected:
  std::optional<inventory::Image> image() override {
    return inventory::Image{
        "nfs-node",
        inventory::ImageBuild{"bookworm", {"linux-image-amd64", "nfs-common"}, ""},
        {},
        inventory::ImageKind::Live};
  }
  void declare(inventory::Profile& profile) override {
    profile.mounts = {"scratch"};
    cluster_.file_systems["scratch"] = {
        "scratch", inventory::MountKind::Nfs, "10.20.0.1:/scratch", "/scratch", {"vers=4.2"}, {}, 1,
        1};
  }
  void SetUp() override {
    VmSite::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(io::makeDirs(folder_ / "export"));
    ASSERT_TRUE(io::makeDirs(folder_ / "recovery"));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "ganesha.conf",
                                    fmt::format(kServer, folder_.path().string())));
    auto server =
        processes_->start({.program = "ganesha.nfsd",
                           .args = {"-F", "-f", folder_ / "ganesha.conf", "-L",
                                    folder_ / "ganesha.log", "-p", folder_ / "ganesha.pid"}},
                          folder_ / "ganesha.out");
    ASSERT_TRUE(server) << server.error().str();
    server_ = std::move(*server);
  }
  void TearDown() override {
    if (HasFailure())
      std::cerr << io::readFile(folder_ / "ganesha.log").value_or("no log of the NFS server")
                << "\n";
    VmSite::TearDown();
    if (server_) server_->terminate(std::chrono::seconds(10));
  }
  std::string fact() {
    auto facts =
        test::runAsync(io_, phase_->observe(lifecycle::Subject(node_)), std::chrono::seconds(60));
    if (!facts) return facts.error().str();
    return facts->empty() ? "no fact" : facts->front().value;
  }
  Result<lifecycle::Outcome> mount() {
    context_.intent = fmt::format("mount-{}", ++intents_);
    context_.recorded.clear();
    return test::runAsync(io_, actToEnd("storage.scratch", std::chrono::seconds(400)),
                          std::chrono::seconds(500));
  }
  std::unique_ptr<io::Child> server_;
};

TEST_F(NfsVmTest, isMountedAsDeclaredAndMeasured) {
  mustDo(kImage, std::chrono::seconds(900));
  phase_ = makeStoragePhase(cluster_, *gateway_, clock_);
  auto& scratch = cluster_.file_systems.at("scratch");
  EXPECT_EQ(fact(), "absent");
  mustDo("storage.scratch", std::chrono::seconds(400));
  EXPECT_EQ(fact(), storageValue(scratch));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "export"), {}), 0)
      << "what was measured with is still there";

  scratch.read_mb_s = 900'000;  // no such network
  const auto slow = mount();
  ASSERT_FALSE(slow && std::holds_alternative<lifecycle::Done>(*slow));
  const auto why = slow ? std::get<lifecycle::Blocked>(*slow).why : slow.error().str();
  EXPECT_THAT(why,
              testing::AllOf(HasSubstr("/scratch writes"), HasSubstr("declared are 1 and 900000")));
  std::cout << why << std::endl;

  scratch.read_mb_s = 1;
  scratch.source = "10.20.0.1:/elsewhere";
  const auto wrong = mount();
  ASSERT_FALSE(wrong && std::holds_alternative<lifecycle::Done>(*wrong))
      << "another export than the declared one is mounted";
  const auto refused = wrong ? std::get<lifecycle::Blocked>(*wrong).why : wrong.error().str();
  EXPECT_THAT(refused,
              testing::AllOf(HasSubstr("10.20.0.1:/elsewhere"), HasSubstr("No such file")));
  std::cout << refused << std::endl;
}

}  // namespace
}  // namespace muster::provision
