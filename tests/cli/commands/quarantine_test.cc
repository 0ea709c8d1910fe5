// SPDX-License-Identifier: Apache-2.0
// quarantine and the acknowledgement, as the real program does them: beside whatever else works
// with the state folder.
#include "cli/exit_code.h"
#include "tests/cli/muster_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class QuarantineCommands : public ::testing::Test {
 protected:
  test::MusterFolder folder_;
};

TEST_F(QuarantineCommands, quarantineIsHeldListedAndLiftedForAReason) {
  EXPECT_EQ(folder_.muster({"quarantine", "add", "gpu001", "--reason", "smells burnt"}).code, kOk);
  EXPECT_THAT(folder_.muster({"quarantine", "add", "gpu001", "--reason", "again"}).out,
              HasSubstr("was in quarantine already"));
  EXPECT_EQ(folder_.muster({"quarantine", "add", "gpu009", "--reason", "x"}).code, kFailed);
  const auto listed = folder_.muster({"quarantine", "list", "--json"});
  const auto entries = nlohmann::json::parse(listed.out);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0]["reason"], "smells burnt");
  EXPECT_THAT(folder_.muster({"why", "gpu001"}).out, HasSubstr("in quarantine: smells burnt"));
  EXPECT_THAT(folder_.muster({"findings"}).out,
              AllOf(HasSubstr("gpu001  quarantine  error  raised by quarantine"),
                    HasSubstr("in quarantine: smells burnt")));
  EXPECT_THAT(folder_.muster({"findings", "gpu001", "--json"}).out,
              HasSubstr("\"source\": \"quarantine\""));
  for (const auto* others : {"gpu002", "@cluster"})
    EXPECT_EQ(folder_.muster({"findings", others}).out, "no finding is open\n");
  const auto clear = [this](const std::string& facet) {
    return folder_.muster({"findings", "gpu001", "--clear", facet, "--reason", "seen"});
  };
  EXPECT_THAT(clear("quarantine").err,
              HasSubstr("`muster quarantine remove gpu001 --reason TEXT`; nothing was cleared"));
  EXPECT_THAT(clear("image").err, HasSubstr("gpu001 has no finding of facet image"));
  EXPECT_NE(folder_.muster({"findings", "--clear", "quarantine", "--reason", "seen"}).code, kOk)
      << "of which node?";
  EXPECT_NE(folder_.muster({"quarantine", "remove", "gpu001"}).code, kOk) << "without a reason";
  EXPECT_EQ(folder_.muster({"quarantine", "remove", "gpu001", "--reason", "board replaced"}).code,
            kOk);
  EXPECT_THAT(folder_.muster({"quarantine", "list"}).out, HasSubstr("no node is in quarantine"));
  EXPECT_EQ(folder_.muster({"findings"}).out, "no finding is open\n");
  EXPECT_THAT(folder_.muster({"events", "gpu001"}).out,
              HasSubstr("lifts its quarantine: board replaced"));
}

TEST_F(QuarantineCommands, anAcknowledgementNeedsAReasonAndSaysWhatItLetsGo) {
  EXPECT_EQ(folder_.muster({"quarantine", "add", "gpu001", "--reason", "makes the store"}).code,
            kOk);
  EXPECT_EQ(folder_.muster({"monitor", "--acknowledge"}).code, kFailed);
  EXPECT_THAT(folder_.muster({"monitor", "--acknowledge", "--reason", "none"}).out,
              HasSubstr("no circuit breaker is open"));
}

TEST_F(QuarantineCommands, theRmaBundleIsOneArchiveThatTarReads) {
  EXPECT_EQ(folder_.muster({"quarantine", "add", "gpu001", "--reason", "smells burnt"}).code, kOk);
  EXPECT_EQ(folder_.muster({"rma", "gpu001", "--out", (folder_ / "gpu001.zip").string()}).code,
            kFailed);
  EXPECT_EQ(folder_.muster({"rma", "nobody", "--out", (folder_ / "x.tar.gz").string()}).code,
            kFailed);
}

}  // namespace
}  // namespace muster::cli
