// SPDX-License-Identifier: Apache-2.0
// One side of a pair test over a perftest that answers as the real one prints.
#include "tests/validate/fake_host.h"
#include "wire/task_params.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::CheckStatus;

const std::string kBandwidth =
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 65536      200              391.20             390.85             0.745\n";
std::string latency(const std::string& typical, const std::string& most = "12.00") {
  return " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
         "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n 2       5000          "
         "1.10           " +
         most + "         " + typical +
         "                2.20             0.06            2.90                    6.12\n";
}

class RdmaPair : public FakeHost {
 protected:
  RdmaPair() {
    params_.device = "mlx5_0", params_.role = wire::PairRole::Client, params_.peer = "10.0.0.2";
    params_.min_gbits = 380, params_.latency_iterations = 5000, params_.max_us = 5;
    outputs_["ib_write_bw"] = {0, kBandwidth, ""};
    outputs_["ib_write_lat"] = {0, latency("2.05"), ""};
  }
  wire::CheckResult result() { return runRdmaPair(wire::toJson(params_), host_); }
  wire::RdmaPairParams params_;
};

TEST_F(RdmaPair, measuresBandwidthAndThenLatency) {
  const auto seen = result();
  EXPECT_EQ(seen.status, CheckStatus::Pass) << seen.text;
  EXPECT_EQ(seen.values.at("rdma_write_gbits"), 390.85);
  EXPECT_EQ(seen.values.at("rdma_latency_us"), 2.05);
  EXPECT_EQ(seen.values.at("rdma_latency_p99_us"), 2.90);
  ASSERT_EQ(ran_.size(), 2u);
  EXPECT_EQ(ran_[1].program, "ib_write_lat");
  EXPECT_THAT(ran_[1].args, Contains("18516")) << "another port than the first test's";
  EXPECT_THAT(ran_[1].args, Contains("10.0.0.2"));
  EXPECT_THAT(ran_[1].args, Not(Contains("--report_gbits"))) << "which it does not know";
}

TEST_F(RdmaPair, asksForNoLatencyThatNobodyWants) {
  params_.latency_iterations = 0;
  EXPECT_EQ(result().status, CheckStatus::Pass);
  EXPECT_EQ(ran_.size(), 1u);
}

TEST_F(RdmaPair, aHighLatencyFails) {
  outputs_["ib_write_lat"] = {0, latency("5.31"), ""};
  const auto seen = result();
  EXPECT_EQ(seen.status, CheckStatus::Fail);
  EXPECT_THAT(seen.text, HasSubstr("5.31 µs one way against 10.0.0.2, expected at most 5.00"));
  EXPECT_EQ(seen.values.at("rdma_latency_us"), 5.31);
  params_.role = wire::PairRole::Server;
  EXPECT_EQ(result().status, CheckStatus::Pass) << "the client evaluates";
}

TEST_F(RdmaPair, withoutACeilingItSaysSo) {
  params_.max_us = 0;
  outputs_["ib_write_lat"] = {0, latency("11.5"), ""};
  const auto seen = result();
  EXPECT_EQ(seen.status, CheckStatus::Pass);
  EXPECT_THAT(seen.text, HasSubstr("no ceiling is known"));
}

TEST_F(RdmaPair, aLatencyThatCannotBeReadIsNoPass) {
  for (const std::string& output :
       {std::string(), latency("-nan"), latency("2.05").substr(0, 190)}) {
    outputs_["ib_write_lat"] = {0, output, ""};
    EXPECT_EQ(result().status, CheckStatus::NoData) << output;
  }
  outputs_["ib_write_lat"] = {1, "", "Failed to modify QP to RTR\n"};
  EXPECT_EQ(result().status, CheckStatus::Fail);
  outputs_.erase("ib_write_lat");
  EXPECT_EQ(result().status, CheckStatus::Error) << "perftest is there in part";
}

/// The server waits for it.
TEST_F(RdmaPair, aSlowLinkIsMeasuredToItsEnd) {
  params_.min_gbits = 395;
  const auto seen = result();
  EXPECT_EQ(seen.status, CheckStatus::Fail);
  EXPECT_THAT(seen.text, HasSubstr("expected at least 395"));
  EXPECT_EQ(seen.values.at("rdma_latency_us"), 2.05);
}

TEST_F(RdmaPair, aBandwidthTestThatBrokeOffIsNotFollowedByAnother) {
  outputs_["ib_write_bw"] = {1, "", "Completion with error at client\n"};
  EXPECT_EQ(result().status, CheckStatus::Fail);
  EXPECT_EQ(ran_.size(), 1u);
}

TEST_F(RdmaPair, aServerDoesNotWaitLongForAClientThatStaysAway) {
  params_.role = wire::PairRole::Server;
  params_.limit = std::chrono::seconds(900);
  result();
  ASSERT_EQ(ran_.size(), 2u);
  EXPECT_GT(ran_[0].timeout, std::chrono::seconds(800));
  EXPECT_LE(ran_[1].timeout, std::chrono::seconds(20));
}

TEST_F(RdmaPair, gpuMemoryIsMeantForBoth) {
  params_.gpu = 3;
  result();
  ASSERT_EQ(ran_.size(), 2u);
  for (const auto& command : ran_) EXPECT_THAT(command.args, Contains("--use_cuda=3"));
}

}  // namespace
}  // namespace muster::validate
