// SPDX-License-Identifier: Apache-2.0
// The record of a run as the store keeps it.
#include "lifecycle/runs/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::lifecycle {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Run oneRun() {
  Run run;
  run.id = "r-1";
  run.asked_by = {"anna", "local", "ctl1"};
  return run;
}

TEST(RunRecord, keepsWhatEachKindWasAskedFor) {
  auto run = oneRun();
  run.kind = RunKind::Isolate;
  run.isolate = {"rdma", 362.5, 7, "good"};
  EXPECT_EQ(runFromRecord(recordOf(run))->isolate, run.isolate);
  run.kind = RunKind::FirmwareRetry;
  run.firmware_retry = {"reseated",
                        {{"gpu001", "firmware-failed.BIOS", "1.4.2 no answer",
                          WallTime(std::chrono::minutes(1)), "muster"}}};
  EXPECT_EQ(runFromRecord(recordOf(run))->firmware_retry, run.firmware_retry);
  run.kind = RunKind::ImageBuild;
  run.image_build = {"bookworm", "none"};
  EXPECT_EQ(runFromRecord(recordOf(run))->image_build, run.image_build);
  run.kind = RunKind::BmcCertificate;
  run.bmc_change = {"gpu[001-003]"};
  EXPECT_EQ(runFromRecord(recordOf(run))->bmc_change, run.bmc_change);
  run.kind = RunKind::Erase;
  run.erase = {{"S1", "S2"}, "leaves the site", "e-1"};
  const auto read = runFromRecord(recordOf(run));
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->erase.disks, run.erase.disks);
  EXPECT_EQ(read->erase.reason, "leaves the site");
  EXPECT_EQ(read->erase.request, "e-1");
}

TEST(RunRecord, refusesWhatItDoesNotUnderstandByName) {
  const auto record = json::parse(recordOf(oneRun()));
  const auto read = [](const json& changed) { return runFromRecord(changed.dump()); };
  ASSERT_TRUE(read(record));
  auto newer = record;
  newer["format"] = 2;
  EXPECT_EQ(read(newer).error().code(), ErrorCode::Conflict);
  EXPECT_THAT(read(newer).error().str(), HasSubstr("a newer muster"));
  auto odd = record;
  odd["run"]["apply"]["nodes"] = 7;
  EXPECT_THAT(read(odd).error().str(), HasSubstr("run.run.apply.nodes must be text"));
  odd = record;
  odd["run"]["order"] = "explode";
  EXPECT_THAT(read(odd).error().str(), HasSubstr("run.run.order is not a known word"));
  odd = record;
  odd["run"].erase("asked_by");
  EXPECT_THAT(read(odd).error().str(), HasSubstr("asked_by is missing"));
  EXPECT_EQ(runFromRecord("{").error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(runFromRecord("").error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(runFromRecord(std::string(10'000, '[')).error().code(), ErrorCode::Corrupt);
}

}  // namespace
}  // namespace muster::lifecycle
