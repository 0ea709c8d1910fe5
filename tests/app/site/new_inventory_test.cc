// SPDX-License-Identifier: Apache-2.0
#include "app/site/new_inventory.h"

#include "tests/app/site_folder.h"

#include <gmock/gmock.h>

#include <sys/stat.h>

namespace muster::app {
namespace {

using ::testing::HasSubstr;

SiteAnswers small() {
  SiteAnswers out;
  out.name = "hall-2";
  out.network = "10.20.0.0/16";
  return out;
}

/// What the program says of it as an inventory.
std::string problemsOf(const std::string& text) {
  const test::TempFolder folder;
  EXPECT_TRUE(io::makeDirs(folder / "secrets", 0700));
  EXPECT_TRUE(io::writeFileAtomic(folder / "secrets/bmc", "x\n", 0600));
  EXPECT_TRUE(io::writeFileAtomic(folder / "cluster.yaml", text));
  Options options;
  options.inventory = folder / "cluster.yaml";
  std::string out;
  const auto loaded = loadDeclared(options);
  for (const auto& diagnostic : loaded.diagnostics.all())
    if (diagnostic.severity == Severity::Error) out += diagnostic.str() + "\n";
  return out;
}

TEST(NewInventory, passesTheCheckForEveryKindOfSite) {
  for (const auto* network : {"10.20.0.0/16", "192.168.7.0/28", "172.16.0.0/12"})
    for (const auto* dhcp : {"authoritative", "proxy"})
      for (const auto* scheduler : {"none", "slurm"})
        for (const auto* bmcs : {"", "10.30.0.0/24", "10.30.0.1-10.30.0.200"}) {
          auto answers = small();
          answers.network = network;
          answers.dhcp = dhcp;
          answers.scheduler = scheduler;
          answers.bmc_network = bmcs;
          const auto text = newInventory(answers);
          ASSERT_TRUE(text) << text.error().str();
          EXPECT_EQ(problemsOf(*text), "") << *text;
        }
}

TEST(NewInventory, namesTheAnswerThatIsWrong) {
  const auto refused = [](auto change, const char* said) {
    auto answers = small();
    change(answers);
    const auto text = newInventory(answers);
    ASSERT_FALSE(text) << *text;
    EXPECT_EQ(text.error().code(), ErrorCode::InvalidInput);
    EXPECT_THAT(text.error().str(), HasSubstr(said));
  };
  refused([](auto& a) { a.name = "Hall 2"; }, "the name of the cluster");
  refused([](auto& a) { a.name = "x}\nnodes: []"; }, "the name of the cluster");
  refused([](auto& a) { a.network = "10.20.0.0"; }, "the provisioning network");
  refused([](auto& a) { a.network = "10.20.0.0/30"; }, "a prefix of 8 to 28 bits");
  refused([](auto& a) { a.network = "0.0.0.0/0"; }, "a prefix of 8 to 28 bits");
  refused([](auto& a) { a.controller = "10.21.0.1"; }, "an address in 10.20.0.0/16");
  refused([](auto& a) { a.dhcp = "yes"; }, "authoritative or proxy");
  refused([](auto& a) { a.range = "all"; }, "two addresses");
  refused([](auto& a) { a.range = "192.0.2.5-192.0.2.9"; }, "two addresses in");
  refused([](auto& a) { a.range = "10.20.0.900-10.20.0.901"; }, "two addresses in");
  refused([](auto& a) { a.bmc_network = "everywhere"; }, "the BMCs' network");
  refused([](auto& a) { a.bmc_password_file = "a, b: c}"; }, "the file of the BMCs' password");
  refused([](auto& a) { a.bmc_user = "a\nb"; }, "the BMCs' user");
  refused([](auto& a) { a.scheduler = "kubernetes"; }, "none or slurm");
}

TEST(NewInventory, neverOverwrites) {
  const test::TempFolder folder;
  const auto file = folder / "new/cluster.yaml";
  ASSERT_TRUE(writeNewInventory(file, "first"));
  const auto again = writeNewInventory(file, "second");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::Conflict);
  EXPECT_EQ(io::readFile(file).value_or(""), "first");
  // Nor what a link leads to, though nothing is there yet.
  std::filesystem::create_symlink(folder / "target", folder / "link.yaml");
  EXPECT_FALSE(writeNewInventory(folder / "link.yaml", "third"));
  EXPECT_FALSE(std::filesystem::exists(folder / "target"));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "new"))
    files += entry.exists() ? 1 : 0;
  EXPECT_EQ(files, 1) << "nothing is left beside it";
}

}  // namespace
}  // namespace muster::app
