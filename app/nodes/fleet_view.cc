// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/fleet_view.h"

#include "inventory/model/cluster.h"

#include <algorithm>
#include <utility>

namespace muster::app {
namespace {

using lifecycle::Fact;
using lifecycle::Intent;
using lifecycle::Subject;

bool sameFact(const Fact& one, const Fact& other) {
  return one.facet == other.facet && one.value == other.value && one.evidence == other.evidence &&
         one.observed_at == other.observed_at && one.source == other.source;
}

/// What a row shows of it: which there are, and of what.
bool sameIntents(const std::vector<Intent>& some, const std::vector<Intent>& others) {
  return std::ranges::equal(some, others, {}, &Intent::id, &Intent::id);
}

}  // namespace

FleetView::FleetView(Session& session) : session_(session) {
  const auto& nodes = session.cluster().nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) rows_of_.emplace(nodes[i].name.str(), i);
}

Result<FleetLook> FleetView::follow(std::size_t in_turn) {
  if (!std::exchange(is_whole_, false)) return readAll();
  auto& store = session_.store();
  TRY(ends, store.lastEvents(1, nullptr));
  const auto end = ends.empty() ? 0 : ends.back().sequence;
  if (end < last_event_) return readAll();
  TRY(events, store.events(last_event_, kMostFollowed, nullptr));
  if (events.size() >= kMostFollowed) return readAll();
  FleetLook out;
  std::set<std::string> subjects{std::string(Subject::kCluster)};  // goals of nodes may ask for it
  for (const auto& event : events) {
    last_event_ = event.sequence;
    if (!event.subject.str().empty()) subjects.insert(event.subject.str());
  }
  out.named = subjects.size();
  const auto& nodes = session_.cluster().nodes;
  for (std::size_t i = 0; i < std::min(in_turn, nodes.size()); ++i) {
    out.in_turn += subjects.insert(nodes[turn_].name.str()).second;
    turn_ = (turn_ + 1) % nodes.size();
  }
  std::set<std::size_t> rows;
  TRY_OK(readIntents(rows));
  for (const auto& subject : subjects) TRY_OK(readAgain(subject, rows));
  // A node's goals may also follow from what is in no store: so all that were read.
  for (const auto& subject : subjects)
    if (const auto row = rows_of_.find(subject); row != rows_of_.end()) rows.insert(row->second);
  for (const auto row : rows) compute(row);
  out.computed = rows.size();
  TRY(watch, readWatch(session_));
  watch.nodes = std::move(status_.nodes);
  status_ = std::move(watch);
  is_whole_ = true;
  return out;
}

Result<void> FleetView::readNow(const Subject& subject) {
  std::set<std::size_t> rows;
  if (const auto own = rows_of_.find(subject.str()); own != rows_of_.end())
    rows.insert(own->second);
  TRY_OK(readAgain(subject.str(), rows));
  for (const auto row : rows) compute(row);
  return {};
}

Result<FleetLook> FleetView::readAll() {
  auto& store = session_.store();
  TRY(ends, store.lastEvents(1, nullptr));  // first: what is written meanwhile is read twice
  TRY(facts, store.facts());
  TRY(findings, store.findings(nullptr));
  TRY(intents, store.openIntents());
  TRY(watch, readWatch(session_));
  last_event_ = ends.empty() ? 0 : ends.back().sequence;
  facts_ = std::move(facts);
  findings_.clear();
  intents_.clear();
  for (auto& finding : findings)
    findings_[finding.facet.subject.str()].push_back(std::move(finding));
  for (auto& intent : intents)
    intents_[intent.action.facet.subject.str()].push_back(std::move(intent));
  const auto rows = session_.cluster().nodes.size();
  watch.nodes = std::move(status_.nodes);
  status_ = std::move(watch);
  status_.nodes.resize(rows);
  revisions_.resize(rows);
  read_by_row_.resize(rows);
  for (std::size_t row = 0; row < rows; ++row) compute(row);
  is_whole_ = true;
  return FleetLook{true, 0, 0, rows};
}

Result<void> FleetView::readIntents(std::set<std::size_t>& rows) {
  TRY(open, session_.store().openIntents());
  std::map<std::string, std::vector<Intent>> intents;
  for (auto& intent : open) intents[intent.action.facet.subject.str()].push_back(std::move(intent));
  const auto note = [&](const std::string& subject) {
    if (const auto row = rows_of_.find(subject); row != rows_of_.end()) rows.insert(row->second);
  };
  for (const auto& [subject, now] : intents)
    if (const auto before = intents_.find(subject);
        before == intents_.end() || !sameIntents(before->second, now))
      note(subject);
  for (const auto& [subject, before] : intents_)
    if (!intents.contains(subject)) note(subject);
  intents_ = std::move(intents);
  return {};
}

Result<void> FleetView::readAgain(const std::string& name, std::set<std::size_t>& rows) {
  const auto subject = Subject::parse(name);
  TRY(facts, session_.store().factsOf(subject));
  TRY(findings, session_.store().findings(&subject));
  if (findings.empty())
    findings_.erase(name);
  else
    findings_[name] = std::move(findings);
  const auto before = facts_.of(subject);
  if (std::ranges::equal(before, facts, sameFact)) return {};
  std::set<FacetName> kept;
  for (auto& fact : facts) {
    kept.insert(fact.facet);
    facts_.put(std::move(fact));
  }
  for (const auto& fact : before)
    if (!kept.contains(fact.facet)) facts_.forget(subject, fact.facet);
  if (const auto readers = readers_.find(name); readers != readers_.end())
    rows.insert(readers->second.begin(), readers->second.end());
  if (const auto readers = readers_.find(""); readers != readers_.end())
    rows.insert(readers->second.begin(), readers->second.end());
  return {};
}

void FleetView::compute(std::size_t row) {
  const auto& node = session_.cluster().nodes[row];
  const auto& name = node.name.str();
  static const std::vector<lifecycle::Finding> kNoFindings;
  static const std::vector<Intent> kNoIntents;
  const auto findings = findings_.find(name);
  const auto intents = intents_.find(name);
  lifecycle::FactSet::Reads reads;
  NodeStatus now;
  {
    const lifecycle::FactSet::Watch watch(facts_, reads);
    now = nodeStatusOf(*session_.controller, node, facts_,
                       findings == findings_.end() ? kNoFindings : findings->second,
                       intents == intents_.end() ? kNoIntents : intents->second);
  }
  for (const auto& of : read_by_row_[row])
    if (const auto found = readers_.find(of); found != readers_.end()) found->second.erase(row);
  reads.subjects.erase(name);
  if (reads.all) reads.subjects.insert("");  // of nobody in particular: of all
  for (const auto& of : reads.subjects) readers_[of].insert(row);
  read_by_row_[row] = std::move(reads.subjects);
  if (revisions_[row] != 0 && status_.nodes[row] == now) return;
  ++revisions_[row];
  status_.nodes[row] = std::move(now);
}

}  // namespace muster::app
