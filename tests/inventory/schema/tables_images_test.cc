// SPDX-License-Identifier: Apache-2.0
// `ram_os`: what is read, and what is refused with what to do.
#include "tests/inventory/inventory_fixture.h"

#include "inventory/model/cluster.h"
#include "inventory/model/images.h"

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RamOsTest : public InventoryTest {
 protected:
  static std::string yaml(std::string_view ram_os) {
    return with("drivers:", "ram_os: {" + std::string(ram_os) + "}\ndrivers:");
  }
  std::vector<std::string> saying(std::string_view ram_os) { return lines(loadYaml(yaml(ram_os))); }
};

TEST_F(RamOsTest, isReadWhole) {
  write("debian.gpg", "a key");
  const auto loaded = loadYaml(
      yaml("kernel: linux-image-amd64=6.12.43-1~bpo12+1, packages: [firmware-misc-nonfree, "
           "mstflint=4.21.0+1-2], modules: [\"drivers/net/ethernet/ti/*\"], archives: {backports: "
           "{url: \"http://deb.debian.org/debian\", suite: bookworm-backports, components: [main], "
           "key: debian.gpg}}"));
  ASSERT_TRUE(loaded.cluster) << ::testing::PrintToString(lines(loaded));
  EXPECT_THAT(lines(loaded), IsEmpty());
  const RamOsSpec& ram_os = loaded.cluster->ram_os;
  EXPECT_EQ(ram_os.kernel, "linux-image-amd64=6.12.43-1~bpo12+1");
  EXPECT_THAT(ram_os.packages, ElementsAre("firmware-misc-nonfree", "mstflint=4.21.0+1-2"));
  EXPECT_THAT(ram_os.modules, ElementsAre("drivers/net/ethernet/ti/*"));
  ASSERT_EQ(ram_os.archives.size(), 1u);
  EXPECT_EQ(ram_os.archives[0].suite, "bookworm-backports");
  EXPECT_TRUE(ram_os.archives[0].key.is_absolute());
}

TEST_F(RamOsTest, anInventoryWithoutOneHasMustersOwn) {
  const auto loaded = loadYaml(yaml(""));
  ASSERT_TRUE(loaded.cluster) << ::testing::PrintToString(lines(loaded));
  EXPECT_EQ(*loaded.cluster->ram_os, RamOsSpec{});
}

TEST_F(RamOsTest, oneKernelUnderItsOwnKey) {
  EXPECT_THAT(saying("packages: [linux-image-rt-amd64]"),
              ElementsAre(AllOf(HasSubstr("has one kernel"),
                                HasSubstr("write kernel: linux-image-rt-amd64"))));
  EXPECT_THAT(saying("kernel: grub-pc"), ElementsAre(HasSubstr("a package of a kernel")));
  EXPECT_THAT(saying("packages: [ethtool, \"ethtool=6.1\"]"),
              ElementsAre(HasSubstr("ethtool is named twice")));
}

TEST_F(RamOsTest, whatCouldBeAnOptionOrLeadElsewhereIsRefused) {
  for (const char* package : {"-o", "--allow-unauthenticated", "a b", "foo;reboot", "foo,bar",
                              "?essential", "foo/bookworm", "../foo", ""})
    EXPECT_THAT(saying(fmt::format("packages: [\"{}\"]", package)),
                ElementsAre(HasSubstr("a package of apt or dnf")))
        << package;
  for (const char* kernel :
       {"linux-image-", "-linux-image-amd64", "linux-image-amd64 x", "linux-image-amd64,foo"})
    EXPECT_THAT(saying(fmt::format("kernel: \"{}\"", kernel)),
                ElementsAre(HasSubstr("a package of a kernel")))
        << kernel;
  EXPECT_THAT(saying("modules: [\"../../*\"]"), ElementsAre(HasSubstr("a shell pattern below")));
  EXPECT_THAT(saying("modules: [\"drivers/../../*\"]"), ElementsAre(HasSubstr("leads out")));
  EXPECT_THAT(saying("modules: [\"drivers/$(reboot)\"]"),
              ElementsAre(HasSubstr("a shell pattern below")));
  EXPECT_THAT(saying("suite: trixie"), ElementsAre(HasSubstr("suite")));
}

}  // namespace
}  // namespace muster::inventory
