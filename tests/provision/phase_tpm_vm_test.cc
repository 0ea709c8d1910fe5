// SPDX-License-Identifier: Apache-2.0
// A machine with a TPM whose PCRs its firmware, iPXE and kernel have filled: refused while they are
// not declared, let in once they are, and the same at its next start. Minutes under TCG, so on
// request only.
#include "inventory/model/access.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "tests/provision/vm_site.h"
#include "tests/provision/vm_tpm.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <regex>

namespace muster::provision {
namespace {

using ::testing::HasSubstr;

class TpmVmTest : public VmSite {
 protected:
  static constexpr std::size_t kMaxRefusals = 3;  ///< one a PCR

  std::optional<inventory::Image> image() override { return std::nullopt; }
  void declare(inventory::Profile& profile) override {
    const std::string nothing(64, '0');
    profile.tpm = inventory::TpmSpec{{{"0", {nothing}}, {"4", {nothing}}, {"7", {nothing}}}, {}};
  }
  std::vector<std::string> parts() override {
    const auto disk = folder_ / "disk";
    if (!std::filesystem::exists(disk)) {
      EXPECT_TRUE(io::writeFileAtomic(disk, ""));
      std::filesystem::resize_file(disk, 8ull << 30);
    }
    auto words = tpm_.parts();
    words.insert(words.end(), {"-drive", "if=none,id=d,format=raw,file=" + disk.string(), "-device",
                               "virtio-blk-pci,drive=d,serial=DISK1"});
    return words;
  }

  std::string refusals() {
    std::string out;
    const auto findings = *store_->findings(nullptr);
    for (const auto& finding : findings) out += finding.text + "\n";
    return out;
  }
  /// As a person who reads `muster why`: declares what each refusal names.
  Task<void> declareWhatIsMeasured() {
    static const std::regex words(
        "PCR ([0-9]+) is ([0-9a-f]{64}), which its profile does not list");
    while (declared_.size() < kMaxRefusals) {
      co_await clock_.sleep(std::chrono::milliseconds(500));
      const auto said = refusals();
      for (std::sregex_iterator found(said.begin(), said.end(), words), end; found != end;
           ++found) {
        if (!declared_.emplace((*found)[1].str(), (*found)[2].str()).second) continue;
        EXPECT_FALSE(state()) << "it got in with another PCR than declared";
        cluster_.profiles.at("uefi").tpm->pcrs[(*found)[1].str()] = {(*found)[2].str()};
      }
    }
  }

  VmTpm tpm_{folder_.path()};
  std::map<std::string, std::string> declared_;
};

TEST_F(TpmVmTest, whatWasMeasuredDecidesAndIsTheSameTheNextTime) {
  asio::co_spawn(io_, declareWhatIsMeasured(), asio::detached);
  mustDo(kInspected, std::chrono::seconds(600));
  ASSERT_TRUE(state());
  EXPECT_EQ(declared_.size(), kMaxRefusals) << refusals();
  EXPECT_NE(**store_->getValue("tpm.ek.gpu001"), "");
  for (const auto& [pcr, value] : declared_)
    std::cout << "PCR " << pcr << " is " << value << std::endl;

  ASSERT_TRUE(store_->clearFindings({lifecycle::Subject(node_), FacetName("enrolled")}));
  const auto before = state()->boot_id;
  ASSERT_TRUE(netboot_->arm(node_));
  power(bmc::PowerState::On);
  const auto again = test::runAsync(
      io_, gateway_->waitFor(node_, wire::Mode::Ram, before, std::chrono::seconds(300)),
      std::chrono::seconds(330));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(refusals(), "");
}

}  // namespace
}  // namespace muster::provision
