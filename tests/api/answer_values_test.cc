// SPDX-License-Identifier: Apache-2.0
// Answers as values: what a newer server adds is no matter, what is missing or of another kind is
// named.
#include "api/answer_values.h"

#include "lifecycle/model/json.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const WallTime kAt = std::chrono::sys_days{std::chrono::year{2026} / 11 / 26};

TEST(AnswerValues, anEventIsWhatItWas) {
  const lifecycle::Event event{7,
                               kAt,
                               lifecycle::EventKind::ActionProgress,
                               lifecycle::Subject(NodeName("gpu001")),
                               "gpu001/image",
                               "writing",
                               0.25};
  auto said = lifecycle::toJson(event);
  said["of_a_newer_muster"] = {1, 2};
  const auto read = eventFrom(said);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->sequence, 7);
  EXPECT_EQ(read->at, kAt);
  EXPECT_EQ(read->kind, lifecycle::EventKind::ActionProgress);
  EXPECT_EQ(read->subject.str(), "gpu001");
  EXPECT_EQ(read->action_id, "gpu001/image");
  EXPECT_EQ(read->text, "writing");
  EXPECT_EQ(read->fraction, 0.25);
  said["kind"] = "kind-of-a-newer-muster";
  EXPECT_EQ(eventFrom(said)->kind, lifecycle::EventKind::Note);
}

TEST(AnswerValues, aFindingKeepsItsEvidenceAsJsonOrAsText) {
  lifecycle::Finding finding{{lifecycle::Subject::cluster(), FacetName("fabric.sm")},
                             Severity::Warning,
                             "slow",
                             R"({"ms": 12})",
                             "look",
                             kAt,
                             "monitor"};
  EXPECT_EQ(findingFrom(lifecycle::toJson(finding))->evidence, R"({"ms":12})");
  finding.evidence = "12 ms";
  const auto read = findingFrom(lifecycle::toJson(finding));
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->evidence, "12 ms");
  EXPECT_EQ(read->severity, Severity::Warning);
  EXPECT_TRUE(read->facet.subject.isCluster());
}

TEST(AnswerValues, whatIsStaleHasItsAge) {
  const json node = {{"node", "gpu001"},
                     {"state", "in pool"},
                     {"pool", "in"},
                     {"image", "-"},
                     {"certificate", "-"},
                     {"rack", "r1"},
                     {"profile", "p"},
                     {"findings", 2},
                     {"stale",
                      {{{"what", "firmware"},
                        {"code", "denied"},
                        {"reason", "refused"},
                        {"since", muster::toString(kAt)},
                        {"last_read", muster::toString(kAt)}}}}};
  const auto read = nodeStatusFrom(node);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->findings, 2u);
  ASSERT_EQ(read->stale.size(), 1u);
  EXPECT_EQ(read->stale[0].since, kAt);
  EXPECT_EQ(read->stale[0].last_read, kAt);
}

TEST(AnswerValues, whatIsMissingOrOfAnotherKindIsNamed) {
  const auto errorOf = [](const auto& read) {
    EXPECT_FALSE(read);
    return read ? std::string()
                : std::string(toString(read.error().code())) + " " + read.error().str();
  };
  EXPECT_THAT(errorOf(eventFrom(json::array())), HasSubstr("corrupt"));
  EXPECT_THAT(errorOf(eventFrom({{"sequence", -1}, {"kind", "note"}, {"text", "x"}})),
              HasSubstr("event.sequence"));
  EXPECT_THAT(errorOf(eventFrom({{"sequence", 1}, {"kind", "note"}, {"text", 5}})),
              HasSubstr("event.text"));
  EXPECT_THAT(
      errorOf(eventFrom({{"sequence", 1}, {"kind", "note"}, {"text", "x"}, {"at", "yesterday"}})),
      HasSubstr("event.at"));
  EXPECT_THAT(errorOf(siteStatusFrom({{"several_controllers", "no"}})),
              HasSubstr("site.several_controllers"));
  EXPECT_THAT(errorOf(runFrom(json::object())), HasSubstr("run.id"));
  EXPECT_THAT(errorOf(impactFrom({{"actions", "many"}})), HasSubstr("impact.actions"));
  EXPECT_THAT(errorOf(findingFrom({{"subject", "a"},
                                   {"facet", "b"},
                                   {"severity", "awful"},
                                   {"text", ""},
                                   {"what_to_do", ""}})),
              HasSubstr("finding.severity"));
}

}  // namespace
}  // namespace muster::api
