// SPDX-License-Identifier: Apache-2.0
#include "fabric/compare/repair.h"

#include <algorithm>
#include <numeric>

namespace muster::fabric {

namespace {

using Slot = Wiring::Slot;

/// How unwelcome it is to carry a cable's end from one port to another.
int effort(const Wiring& w, Slot from, Slot to) {
  const auto &here = w.device(from), &there = w.device(to);
  if (&here == &there) return 0;
  if (hostOf(*here.name) == hostOf(*there.name)) return 1;
  return here.is_switch && there.is_switch ? 2 : 3;
}

class Planner {
 public:
  Planner(const Wiring& wiring, const Chain& chain)
      : w_(wiring), chain_(chain), n_(chain.cables()) {}

  std::vector<Step> run() {
    if (chain_.ring) {
      bool back = sum(true) <= sum(false);
      moveAll(back, 0, n_);
    } else if (n_ % 2 == 0) {
      moveAll(chain_.declared_first, 0, n_);
    } else {
      around(cheapestMiddle());
    }
    return std::move(steps_);
  }

 private:
  Slot port(std::size_t i) const { return chain_.ports[chain_.ring ? i % n_ : i]; }

  /// The found cable i takes the place of the wanted one before it (back) or behind it.
  Step step(std::size_t i, bool back) const {
    if (back)
      return {Move::Kind::MoveEnd, port(i), port(i + 1), port(chain_.ring ? i + n_ - 1 : i - 1)};
    return {Move::Kind::MoveEnd, port(i + 1), port(i), port(i + 2)};
  }
  int cost(std::size_t i, bool back) const {
    auto one = step(i, back);
    return effort(w_, one.from, one.to);
  }
  int sum(bool back) const {
    int total = 0;
    for (std::size_t i = 0; i < n_; ++i)
      if (!chain_.isDeclared(i)) total += cost(i, back);
    return total;
  }
  /// Back: the first goes first, into the port that is free in front of it. Else the last.
  void moveAll(bool back, std::size_t begin, std::size_t end) {
    for (std::size_t k = 0; k < end - begin; ++k) {
      auto i = back ? begin + k : end - 1 - k;
      if (!chain_.isDeclared(i)) steps_.push_back(step(i, back));
    }
  }

  /// An odd chain has one cable too many, or too few: the one in the middle, around which the
  /// others go to both sides.
  std::size_t cheapestMiddle() const {
    const bool pull =
        !chain_.declared_first;          // those in front go towards the middle, else away from it
    std::vector<int> behind(n_ + 2, 0);  // effort of what lies behind i
    for (std::size_t i = n_; i-- > 0;)
      behind[i] = behind[i + 1] + (chain_.isDeclared(i) || !movable(i, pull) ? 0 : cost(i, pull));
    std::size_t best = 0;
    int best_effort = std::numeric_limits<int>::max(), in_front = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      if (i % 2 == 0) {
        auto total = in_front + behind[i + 1] + (pull && !strange(i) ? 1 : 0);
        if (total < best_effort) best = i, best_effort = total;
      }
      if (!chain_.isDeclared(i) && movable(i, !pull)) in_front += cost(i, !pull);
    }
    return best;
  }
  bool movable(std::size_t i, bool back) const { return back ? i >= 1 : i + 2 <= n_; }
  /// A cable to something that nobody declared is the one to pull.
  bool strange(std::size_t i) const {
    return !w_.device(port(i)).is_declared || !w_.device(port(i + 1)).is_declared;
  }

  void around(std::size_t middle) {
    if (!chain_.declared_first) {
      steps_.push_back({Move::Kind::Pull, port(middle), port(middle + 1), Wiring::kNone});
      moveAll(false, 0, middle);
      moveAll(true, middle + 1, n_);
    } else {
      moveAll(true, 0, middle);
      moveAll(false, middle + 1, n_);
      steps_.push_back({Move::Kind::Plug, port(middle), Wiring::kNone, port(middle + 1)});
    }
  }

  const Wiring& w_;
  const Chain& chain_;
  const std::size_t n_;
  std::vector<Step> steps_;
};

std::string pairText(const Wiring& w, Slot one, Slot other) {
  auto a = w.port(one), b = w.port(other);
  if (b < a) std::swap(a, b);
  if (a.node == b.node) return fmt::format("in ports {} and {} of {}", a.number, b.number, a.node);
  return fmt::format("at {} and {}", toString(a), toString(b));
}

/// The HCA of a cable to plug in whose host is not seen at all.
std::optional<Slot> unseenHca(const Wiring& w, const Step& step) {
  if (step.kind != Move::Kind::Plug) return std::nullopt;
  for (const auto hca : {step.other, step.to})
    if (!w.device(hca).is_found && !w.device(hca).is_switch) return hca;
  return std::nullopt;
}

std::string stepText(const Wiring& w, const Step& step) {
  auto name = [&](Slot slot) { return toString(w.port(slot)); };
  switch (step.kind) {
    case Move::Kind::Pull:
      return fmt::format("pull the cable between {} and {}, or declare it", name(step.other),
                         name(step.from));
    case Move::Kind::MoveEnd:
      return fmt::format("move the cable of {} from {} to {}", name(step.other), name(step.from),
                         name(step.to));
    case Move::Kind::Plug:
      break;
  }
  if (const auto hca = unseenHca(w, step))
    return fmt::format("check that {} is powered and its driver runs, then the cable to {}",
                       *w.device(*hca).name, name(*hca == step.other ? step.to : step.other));
  return fmt::format("plug in or replace the cable between {} and {}",
                     name(std::min(step.other, step.to)), name(std::max(step.other, step.to)));
}

}  // namespace

std::vector<Step> planMoves(const Wiring& wiring, const Chain& chain) {
  return Planner(wiring, chain).run();
}

bool beginsWithPower(const Wiring& w, const Chain& chain, const std::vector<Step>& steps) {
  return !chain.ring && !steps.empty() && unseenHca(w, steps.front());
}

std::string textOf(const Wiring& w, const Chain& chain, const std::vector<Step>& steps) {
  auto name = [&](Slot slot) { return toString(w.port(slot)); };
  if (chain.ring && steps.size() == 2)
    return fmt::format("swap the cables {}", pairText(w, steps[0].from, steps[0].to));
  std::vector<std::string> words;
  if (!chain.ring) {
    for (const auto& step : steps) words.push_back(stepText(w, step));
  } else {
    words.push_back(fmt::format("take the cable of {} out of {}", name(steps.front().other),
                                name(steps.front().from)));
    for (std::size_t i = 1; i < steps.size(); ++i) words.push_back(stepText(w, steps[i]));
    words.push_back(fmt::format("put the first one into {}", name(steps.front().to)));
  }
  return fmt::format("{}", fmt::join(words, "; then "));
}

Move moveOf(const Wiring& w, const Step& step) {
  auto port = [&](Slot slot) { return slot == Wiring::kNone ? Port{} : w.port(slot); };
  return {step.kind, port(step.other), port(step.from), port(step.to)};
}

void apply(const Repair& repair, Topology& topology, const std::string& width_speed) {
  for (const auto& move : repair.moves)
    if (move.kind != Move::Kind::Plug)
      std::erase_if(topology.links,
                    [&](const Link& link) { return link.a == move.from || link.b == move.from; });
  for (const auto& move : repair.moves)
    if (move.kind != Move::Kind::Pull)
      topology.links.push_back(
          {std::min(move.other, move.to), std::max(move.other, move.to), width_speed});
  std::sort(topology.links.begin(), topology.links.end());
}

}  // namespace muster::fabric
