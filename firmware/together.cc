// One package for several components of a tray: it goes there once, and is written into all of them, those of later waves too.
#include "bmc/shared_package.h"
#include "firmware/installation.h"

#include <algorithm>

namespace muster::firmware {

using lifecycle::Blocked;
using lifecycle::Outcome;

/// What else is written when this image is sent.
Async<std::vector<Target>> Installation::whatElseComes(Target first, std::vector<Wave> waves) {
  std::vector<Target> others;
  CO_TRY(image, imageOf(first));
  for (const auto& wave : waves) {
    for (const auto& step : wave.steps) {
      const auto& name = step.component->name;
      const auto isIt = [&name](const Target& each) { return each.component == name; };
      if (isIt(first) || step.image.sha256 != image.sha256 || std::any_of(progress_.staged.begin(), progress_.staged.end(), isIt) || std::any_of(others.begin(), others.end(), isIt)) continue;
      auto ask = bmc::bringsBoth(bmc_, first.component, name);
      CO_TRY(both, co_await std::move(ask));
      if (both) others.push_back({name, step.to});
    }
  }
  co_return others;
}

/// "": all of it may be written, and run together.
std::string Installation::whyNotTogether(const Target& first, const std::vector<Target>& others) const {
  Versions versions = probesOf(context_.facts(), action_.facet.subject);
  for (const auto& item : items_)
    if (item.unreadable.empty() && !item.version.empty()) versions[item.name] = item.version;
  const auto before = brokenConstraints(baseline_.constraints, versions);
  versions[first.component] = first.version;
  std::set<Activation> hows{activationOf(*baseline_.find(first.component))};
  for (const auto& other : others) hows.insert(activationOf(*baseline_.find(other.component)));
  if (hows.contains(Activation::BmcReset) && hows.contains(Activation::PowerCycle) && !hows.contains(Activation::AcCycle))
    return fmt::format("{} comes in the same package, and one needs a reset of the BMC, the other a power cycle; declare \"activation: ac-cycle\" for one of them, which does both", others.front().component);
  for (const auto& other : others) {
    versions[other.component] = other.version;
    if (auto again = whyNotAgain(*baseline_.find(other.component), action_.facet.subject, context_.facts()); !again.empty()) return again;
  }
  for (const auto& broken : brokenConstraints(baseline_.constraints, versions))
    if (std::find(before.begin(), before.end(), broken) == before.end()) return fmt::format("its package brings all of it at once, which is forbidden here: {}; put what it needs first in the baseline's order", broken);
  return {};
}

Async<Outcome> Installation::begin(Target next, std::vector<Wave> waves) {
  auto ask = whatElseComes(next, std::move(waves));
  CO_TRY(others, co_await std::move(ask));
  if (const auto why = others.empty() ? std::string() : whyNotTogether(next, others); !why.empty()) {
    const auto text = fmt::format("{} {} is not sent: {}", next.component, next.version, why);
    if (progress_.staged.empty()) co_return Blocked{text};
    auto before_it = activate();  // what is staged may be what it needs
    co_return co_await std::move(before_it);
  }
  progress_.current = next == Target{component_.name, component_.version} ? Target{} : next;
  progress_.with = std::move(others);
  progress_.uploads_tried = 0;
  auto first = look();
  co_return co_await std::move(first);
}

/// The current image, and what came with it, may be on the machine.
void Installation::stageCurrent() {
  progress_.staged.push_back(target());
  progress_.staged.insert(progress_.staged.end(), progress_.with.begin(), progress_.with.end());
  progress_.current = {};
  progress_.with.clear();
}

}  // namespace muster::firmware
