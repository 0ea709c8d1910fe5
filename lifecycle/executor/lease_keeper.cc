// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/executor/lease_keeper.h"

#include "base/log.h"
#include "lifecycle/model/unread.h"

#include <utility>

namespace muster::lifecycle {
namespace {

constexpr int kRenewalsPerLease = 3;

}  // namespace

Result<void> LeaseKeeper::signOn(const Services& services) {
  if (*services.runs != 0) return {};
  return services.store.signOn(services.origin.holder, services.origin.lease);
}

Result<void> LeaseKeeper::begin() {
  if (*services_.runs == 0) renewed();
  TRY_OK(signOn(services_));
  begun_ = true;
  ++*services_.runs;
  return {};
}

LeaseKeeper::~LeaseKeeper() {
  for (const auto& subject : mine_) services_.book->held.erase(subject);
  if (begun_) --*services_.runs;
}

Async<Claim> LeaseKeeper::claim(Subject subject) {
  auto& book = *services_.book;
  const auto [entry, is_free] = book.held.try_emplace(subject, services_.worker);
  if (!is_free && entry->second != services_.worker)
    co_return Claim{subject, entry->second, 0, false, ""};
  if (is_free) mine_.insert(subject);
  auto claim = co_await services_.journal->write<Claim>(
      [subject](Store& store) { return store.claim(subject); });
  if (!claim || !claim->ours) {
    if (mine_.erase(subject) > 0) book.held.erase(subject);
    co_return claim;
  }
  const auto had = std::exchange(book.last[subject], services_.worker);
  const bool is_known = had == services_.worker || had.empty();
  if (!is_known && claim->taken_from.empty()) claim->taken_from = had;
  co_return claim;
}

Task<void> LeaseKeeper::release(Subject subject) {
  if (auto released = co_await services_.journal->write<void>(
          [subject](Store& store) { return store.release(subject); });
      !released)
    logWarning("lifecycle", "{} could not be released and stays claimed until the lease ends: {}",
               subject.str(), released.error().str());
  if (mine_.erase(subject) > 0) services_.book->held.erase(subject);
}

Task<void> LeaseKeeper::renewForever() {
  for (;;) {
    co_await services_.clock.sleep(services_.origin.lease / kRenewalsPerLease);
    const auto before = services_.clock.steady();
    if (auto extended = services_.store.renewLease())
      held_until_ = before + services_.origin.lease / 2;
    else
      logWarning("lifecycle", "the lease could not be renewed: {}", extended.error().str());
  }
}

Result<void> LeaseKeeper::ensureHeld(const Subject& subject) {
  const auto before = services_.clock.steady();
  if (before < held_until_) return {};
  TRY_OK(services_.store.checkClaim(subject));
  held_until_ = before + services_.origin.lease / 2;
  return {};
}

std::vector<std::string> changedFacts(const Plan& plan, const Subject& subject,
                                      const std::vector<Fact>& now) {
  std::map<FacetName, std::string> is;
  // Plans hold nothing of what could not be read, nor that it can be read again (staleReasons).
  for (const auto& fact : now)
    if (!isUnreadFacet(fact.facet)) is[fact.facet] = fact.value;
  std::vector<std::string> out;
  for (auto it = plan.facts_used.lower_bound({subject, FacetName()});
       it != plan.facts_used.end() && it->first.subject == subject; ++it) {
    const auto& [facet, was] = *it;
    const auto value = is[facet.facet];
    if (value != was) out.push_back(fmt::format("{} was '{}', is '{}'", facet.str(), was, value));
    is.erase(facet.facet);
  }
  for (const auto& [facet, value] : is)
    out.push_back(fmt::format("{}/{} was not known, is '{}'", subject.str(), facet.str(), value));
  return out;
}

}  // namespace muster::lifecycle
