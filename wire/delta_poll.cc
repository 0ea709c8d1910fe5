// SPDX-License-Identifier: Apache-2.0
#include "wire/delta_poll.h"

#include <algorithm>

namespace muster::wire {
namespace {

/// Results apart: they are told once, and kept where they were told.
bool sameReport(const AgentTaskReport& a, const AgentTaskReport& b) {
  return a.id == b.id && a.phase == b.phase && a.fraction == b.fraction && a.text == b.text &&
         a.code == b.code && a.reasons == b.reasons;
}

bool says(const PollRequest& told, const PollRequest& poll) {
  const bool nothing_new = poll.hardware.empty() && poll.health.empty() && !poll.wants_answer;
  return nothing_new && poll.session == told.session && poll.mode == told.mode &&
         poll.boot_id == told.boot_id && poll.agent_version == told.agent_version &&
         poll.image_digest == told.image_digest && poll.fresh == told.fresh &&
         poll.probes == told.probes &&
         std::equal(poll.reports.begin(), poll.reports.end(), told.reports.begin(),
                    told.reports.end(), sameReport);
}

}  // namespace

PollRequest ToldPoll::shortened(const PollRequest& poll) const {
  if (!told_ || !says(*told_, poll)) return poll;
  PollRequest same;
  same.mode = poll.mode;
  same.boot_id = poll.boot_id;
  same.session = poll.session;
  same.sequence = poll.sequence;
  same.as_before = told_->sequence;
  same.wants_answer = false;
  return same;
}

void ToldPoll::answered(const PollRequest& poll, const PollResponse& response) {
  if (!response.takes_short || poll.session.empty() || response.session != poll.session)
    return forget();
  told_ = poll;
  for (auto& report : told_->reports) report.result.clear();
  told_->hardware.clear();
  told_->health.clear();
}

}  // namespace muster::wire
