// SPDX-License-Identifier: Apache-2.0
// XGMI. What amd-smi prints is built here as its own sources print it
// (amdsmi_cli/amdsmi_commands.py of ROCm 6.2 and 6.4; 7 wraps lists into objects), with the
// addresses of an MI300X board from its change log.
#include "tests/validate/fake_host.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using wire::CheckStatus;

const char* const kPlaces[] = {"0000:0c:00.0", "0000:22:00.0", "0000:38:00.0", "0000:5c:00.0",
                               "0000:9f:00.0", "0000:af:00.0", "0000:bf:00.0", "0000:df:00.0"};

class AmdLinks : public FakeHost {
 protected:
  AmdLinks() {
    for (int from = 0; from < 8; ++from) {
      auto links = json::array();
      for (int to = 0; to < 8; ++to)
        links.push_back({{"gpu", to},
                         {"bdf", kPlaces[to]},
                         {"weight", from == to ? 0 : 15},
                         {"link_status", "ENABLED"},
                         {"link_type", from == to ? "SELF" : "XGMI"},
                         {"num_hops", from == to ? 0 : 1},
                         {"bandwidth", from == to ? "N/A" : "50000-50000"},
                         {"coherent", from == to ? "SELF" : "C"}});
      topology_.push_back({{"gpu", from}, {"bdf", kPlaces[from]}, {"links", links}});
      auto status = json::array();
      for (int link = 0; link < 8; ++link) status.push_back(link == from ? "X" : "U");
      status_.push_back({{"gpu", from}, {"bdf", kPlaces[from]}, {"link_status", status}});
      known_.push_back({{"gpu", from}, {"bdf", kPlaces[from]}});
    }
  }
  /// ROCm 6.4: the GPUs without, then those with their links' status, two lists one after the
  /// other.
  Verdict seen(json params = {{"gpus", 8}}) {
    outputs_["amd-smi topology"] = {0, topology_.dump(4) + "\n", ""};
    outputs_["amd-smi xgmi"] = {0, known_.dump(4) + "\n" + status_.dump(4) + "\n", ""};
    return check("gpu.xgmi", params);
  }

  json topology_ = json::array(), status_ = json::array(), known_ = json::array();
};

TEST_F(AmdLinks, everyLinkUpAndEveryPairReachedPasses) {
  const auto verdict = seen();
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_EQ(verdict.values.at("links_up"), 56);
  ASSERT_EQ(ran_.size(), 2u);
  EXPECT_EQ(ran_[1].args, (std::vector<std::string>{"xgmi", "--link-status", "--json"}));
}

TEST_F(AmdLinks, formsOfOtherReleasesAreReadToo) {
  outputs_["amd-smi topology"] = {0, json{{"gpu_data", topology_}}.dump(), ""};
  outputs_["amd-smi xgmi"] = {0, json{{"link_status", status_}}.dump(), ""};
  EXPECT_EQ(check("gpu.xgmi", {{"gpus", 8}}).status, CheckStatus::Pass) << "ROCm 7";
  outputs_["amd-smi topology"] = {0, topology_.dump(), ""};
  outputs_["amd-smi xgmi"] = {0, json{{"xgmi_metric", known_}, {"link_status", status_}}.dump(),
                              ""};
  EXPECT_EQ(check("gpu.xgmi", {{"gpus", 8}}).status, CheckStatus::Pass);
  for (int gpu = 0; gpu < 8; ++gpu) status_[gpu]["link_status"][gpu] = "SELF";
  outputs_["amd-smi xgmi"] = {0, status_.dump(), ""};
  EXPECT_EQ(check("gpu.xgmi", {{"gpus", 8}}).status, CheckStatus::Pass);
}

TEST_F(AmdLinks, aLinkThatIsDownNamesItsGpu) {
  status_[3]["link_status"][5] = "D";
  const auto verdict = seen();
  EXPECT_EQ(verdict.status, CheckStatus::Fail);
  EXPECT_THAT(verdict.text,
              AllOf(HasSubstr("GPU 3 (0000:5c:00.0): 6 of 7 XGMI links are up, 1 down"),
                    ::testing::Not(HasSubstr("GPU 5"))));
}

TEST_F(AmdLinks, aDisabledLinkIsNotUp) {
  status_[3]["link_status"][5] = "X";
  EXPECT_THAT(seen().text, HasSubstr("6 of 7 XGMI links are up, 0 down, 2 disabled"));
  EXPECT_EQ(seen({{"gpus", 8}, {"links", 6}}).status, CheckStatus::Fail) << "the others have seven";
}

TEST_F(AmdLinks, aPairOverPcieOrOutOfReachFails) {
  topology_[2]["links"][6]["link_type"] = "PCIE";
  EXPECT_THAT(seen().text, HasSubstr("GPU 2 reaches GPU 6 by PCIE, not by XGMI"));
  topology_[2]["links"][6]["link_type"] = "XGMI";
  topology_[2]["links"][6]["num_hops"] = 2;
  EXPECT_THAT(seen().text, HasSubstr("GPU 2 is 2 XGMI links from GPU 6, not one"));
  topology_[2]["links"][6]["num_hops"] = "N/A";
  EXPECT_EQ(seen().status, CheckStatus::Fail);
  topology_[2]["links"][6]["num_hops"] = 1;
  topology_[2]["links"][6]["link_status"] = "DISABLED";
  EXPECT_THAT(seen().text, HasSubstr("GPU 2 may not reach GPU 6: DISABLED"));
  EXPECT_EQ(seen().status, CheckStatus::Fail);
}

TEST_F(AmdLinks, whatIsMissingIsNoPass) {
  const auto whole = status_, all = topology_;
  status_.erase(7);
  EXPECT_EQ(seen().status, CheckStatus::NoData) << "amd-smi leaves out a GPU that does not answer";
  status_ = whole;
  status_[1]["link_status"] = "N/A";
  EXPECT_EQ(seen().status, CheckStatus::NoData);
  status_ = whole;
  status_[1]["link_status"][0] = "N/A";
  EXPECT_EQ(seen().status, CheckStatus::NoData);
  status_ = whole;
  status_[1]["gpu"] = 0;
  EXPECT_EQ(seen().status, CheckStatus::NoData) << "one twice";
  status_ = whole;
  topology_[4]["links"].erase(2);
  EXPECT_EQ(seen().status, CheckStatus::NoData);
  topology_ = all;
  topology_[4]["links"][2].erase("link_type");
  EXPECT_EQ(seen().status, CheckStatus::NoData);
  topology_ = all;
  EXPECT_EQ(seen({{"gpus", 4}}).status, CheckStatus::NoData);
  EXPECT_EQ(seen(json::object()).status, CheckStatus::Pass);
}

TEST_F(AmdLinks, anotherAnswerIsNoPass) {
  seen();
  const auto topology = outputs_["amd-smi topology"], status = outputs_["amd-smi xgmi"];
  for (const char* text : {"", "[]", "{}", "[1]", "[[", "null",
                           "WARNING: User is missing the following required groups",
                           R"([{"gpu":0,"links":{}}])", R"([{"gpu":"0","links":[]}])"}) {
    outputs_["amd-smi topology"] = {0, text, ""};
    EXPECT_EQ(check("gpu.xgmi", {{"gpus", 8}}).status, CheckStatus::NoData) << text;
    outputs_["amd-smi topology"] = topology;
    outputs_["amd-smi xgmi"] = {0, text, ""};
    EXPECT_EQ(check("gpu.xgmi", {{"gpus", 8}}).status, CheckStatus::NoData) << text;
    outputs_["amd-smi xgmi"] = status;
  }
  outputs_["amd-smi xgmi"] = {2, "", "amd-smi: error: unrecognized arguments: --link-status"};
  EXPECT_THAT(check("gpu.xgmi", {{"gpus", 8}}).text, HasSubstr("unrecognized arguments"))
      << "ROCm before 6.4";
  outputs_.clear();
  EXPECT_EQ(check("gpu.xgmi", {{"gpus", 8}}).status, CheckStatus::NoData);
}

/// Cut anywhere, it never passes.
TEST_F(AmdLinks, anOutputThatIsCutIsNoPass) {
  seen();
  const auto whole = outputs_["amd-smi xgmi"].out;
  const auto last = whole.find_last_of(']');
  for (std::size_t bytes = 0; bytes <= last; bytes += 61) {
    outputs_["amd-smi xgmi"].out = whole.substr(0, bytes);
    EXPECT_NE(check("gpu.xgmi", {{"gpus", 8}}).status, CheckStatus::Pass) << bytes;
  }
}

}  // namespace
}  // namespace muster::validate
