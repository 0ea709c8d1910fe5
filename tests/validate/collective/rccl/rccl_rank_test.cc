// SPDX-License-Identifier: Apache-2.0
// The host side of ranks that talk by RCCL, over a HIP runtime and an RCCL of the tests, loaded as
// ROCm's are. What ranks do is tested over NCCL; here: that names, types and arguments are RCCL's.
#include "tests/fakes/hip/fake_hip.h"
#include "tests/fakes/nccl/fake_nccl.h"
#include "tests/paths.h"
#include "tests/validate/collective/group_of_ranks.h"
#include "validate/collective/rccl/rccl.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

namespace muster::collective {
namespace {

using test::fakeHip;
using test::fakeNccl;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

class Rccl : public testing::Test {
 protected:
  Rccl() {
    setenv("MUSTER_HIP", (test::binFolder() / "libfake_hip.so").c_str(), 1);
    setenv("MUSTER_RCCL", (test::binFolder() / "libfake_rccl.so").c_str(), 1);
    fakeHip() = {};
    fakeHip().gpus = 8;
    fakeNccl().reset();
  }
  ~Rccl() override {
    EXPECT_EQ(fakeHip().taken, 0u);
    EXPECT_EQ(fakeHip().handles, 0);
    EXPECT_EQ(fakeNccl().communicators, 0);
    unsetenv("MUSTER_HIP"), unsetenv("MUSTER_RCCL");
  }
  static JobReport run(int ranks, std::chrono::seconds limit = std::chrono::seconds(300)) {
    return runEveryOperation(openRccl(), ranks, limit);
  }
};

TEST_F(Rccl, everyOperationGivesWhatTheFormulaSays) {
  for (const int ranks : {2, 3, 8}) {
    const auto report = run(ranks);
    EXPECT_TRUE(report.passed) << testing::PrintToString(report.findings);
    std::set<Operation> seen;
    std::set<std::string> devices;
    for (const auto& row : report.rows) seen.insert(row.operation), devices.insert(row.device);
    EXPECT_EQ(seen.size(), 6u);
    EXPECT_EQ(devices.size(), static_cast<std::size_t>(ranks)) << "a GPU a rank";
  }
  EXPECT_GT(fakeHip().launches, 0);
  EXPECT_EQ(fakeNccl().aborted, 0);
}

TEST_F(Rccl, wrongAndMissingDataIsFound) {
  fakeNccl().corrupt = 1;
  EXPECT_FALSE(run(4).passed);
  fakeNccl().corrupt = -1, fakeNccl().silent = true;
  const auto report = run(2);
  for (const auto& row : report.rows) EXPECT_GT(row.wrong, 0u) << toString(row.operation);
}

TEST_F(Rccl, itsErrorsAreToldByItsName) {
  fakeNccl().failing = "ncclAllReduce";
  EXPECT_THAT(fmt::format("{}", fmt::join(run(2).findings, "; ")),
              AllOf(HasSubstr("ncclAllReduce"), HasSubstr("the cable was pulled")));
  fakeNccl().failing.clear();
  fakeNccl().remote_error = true, fakeHip().stalled = true;
  EXPECT_THAT(run(2).findings, Contains(HasSubstr("RCCL met an error while all-reduce ran")));
  fakeNccl().remote_error = false;
  EXPECT_THAT(fmt::format("{}", fmt::join(run(2, std::chrono::seconds(1)).findings, "; ")),
              HasSubstr("all-reduce stands still: RCCL reports no error"));
  fakeHip().stalled = false, fakeHip().lost = true;
  EXPECT_THAT(run(2).findings, Each(HasSubstr("hipStreamQuery")));
}

TEST_F(Rccl, whatIsThereIsTold) {
  const auto found = openRccl();
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(found->library, "RCCL");
  EXPECT_EQ(found->gpus, 8);
  EXPECT_EQ(found->version, "2.28.3");
  fakeHip().gpus = 0;
  EXPECT_THAT(openRccl().error().text(), HasSubstr("HIP sees no GPU"));
  setenv("MUSTER_RCCL", "/nonexistent/librccl.so.1", 1);
  EXPECT_THAT(openRccl().error().text(), AllOf(HasSubstr("librccl"), HasSubstr("ROCm")));
  EXPECT_EQ(openRccl().error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::collective
