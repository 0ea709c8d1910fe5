// SPDX-License-Identifier: Apache-2.0
#include "wire/delta_poll.h"

#include <algorithm>

namespace muster::wire {
namespace {

/// Results apart: they are sent once, and kept by who got them.
bool sameReport(const AgentTaskReport& a, const AgentTaskReport& b) {
  return a.id == b.id && a.phase == b.phase && a.fraction == b.fraction && a.text == b.text &&
         a.code == b.code && a.reasons == b.reasons;
}

bool repeats(const PollRequest& reported, const PollRequest& poll) {
  const bool nothing_new = poll.hardware.empty() && poll.health.empty() && !poll.wants_answer;
  return nothing_new && poll.session == reported.session && poll.mode == reported.mode &&
         poll.boot_id == reported.boot_id && poll.agent_version == reported.agent_version &&
         poll.image_digest == reported.image_digest && poll.fresh == reported.fresh &&
         poll.health_rules == reported.health_rules && poll.probes == reported.probes &&
         std::equal(poll.reports.begin(), poll.reports.end(), reported.reports.begin(),
                    reported.reports.end(), sameReport);
}

}  // namespace

PollRequest DeltaPoll::deltaOf(const PollRequest& poll) const {
  if (!reported_ || !repeats(*reported_, poll)) return poll;
  PollRequest same;
  same.mode = poll.mode;
  same.boot_id = poll.boot_id;
  same.session = poll.session;
  same.sequence = poll.sequence;
  same.unchanged_since = reported_->sequence;
  same.wants_answer = false;
  return same;
}

void DeltaPoll::acknowledged(const PollRequest& poll, const PollResponse& response) {
  if (!response.supports_delta || poll.session.empty() || response.session != poll.session)
    return forget();
  reported_ = poll;
  for (auto& report : reported_->reports) report.result.clear();
  reported_->hardware.clear();
  reported_->health.clear();
}

}  // namespace muster::wire
