// SPDX-License-Identifier: Apache-2.0
// Feasibility is searched for in each group of components that constraints tie together; groups do
// not disturb each other, so their sequences are then merged by preference. The merged sequence
// says what can be reached and in which order declared components go; the waves are the fewest that
// lead there (firmware/wave_search.h).
#include "firmware/solver.h"

#include "firmware/comparable_versions.h"
#include "firmware/constraint_table.h"
#include "firmware/wave_search.h"
#include "inventory/model/firmware.h"
#include "lifecycle/model/facet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <tuple>

namespace muster::firmware {
namespace {

using inventory::FirmwareBaseline;
using inventory::FirmwareComponent;
using inventory::FirmwareConstraint;
using inventory::FirmwareTerm;

constexpr std::size_t kMaxStates = 50'000;     ///< looked at in one group; real ones have a handful
constexpr std::size_t kMaxWaveStates = 5'000;  ///< then the sequence is cut into waves as it stands

/// The versions that a component may have: the running one, and within a wave also the staged one.
using Possible = std::map<std::string, std::vector<std::string>>;

Possible onlyThese(const Versions& versions) {
  Possible out;
  for (const auto& [name, version] : versions) out[name] = {version};
  return out;
}

using Holds = FirmwareTerm::Holds;

/// Whether some choice of possible versions breaks it, or leaves open whether it does; then how, in
/// words.
std::optional<std::string> breach(const FirmwareConstraint& constraint, const Possible& possible,
                                  const ComparableVersions& order) {
  for (const auto& [left, left_versions] : possible) {
    if (!lifecycle::matches(constraint.when.component, left)) continue;
    for (const auto& seen : left_versions) {
      const auto applies = order.holds(constraint.when, left, seen);
      if (applies == Holds::Unknown) return order.whyUnknown(constraint.when, left, seen);
      if (applies == Holds::No) continue;
      bool known = false;
      for (const auto& [right, right_versions] : possible) {
        if (!lifecycle::matches(constraint.then.component, right)) continue;
        known = true;
        for (const auto& other : right == left ? std::vector{seen} : right_versions) {
          const auto holds = order.holds(constraint.then, right, other);
          if (holds == Holds::Unknown) return order.whyUnknown(constraint.then, right, other);
          if ((holds == Holds::Yes) == constraint.excludes)
            return fmt::format("{} {} with {} {}", left, seen, right, other);
        }
      }
      if (!known && !constraint.excludes && !isProbe(constraint.then.component))
        return fmt::format("{} {}, and {} is not known", left, seen, constraint.then.component);
    }
  }
  return std::nullopt;
}

/// Why it is open whether a constraint is kept; "" when it is not.
std::string openBy(const FirmwareConstraint& constraint, const Versions& versions,
                   const ComparableVersions& order) {
  bool applies = false;
  for (const auto& [name, version] : versions) {
    if (!lifecycle::matches(constraint.when.component, name)) continue;
    const auto holds = order.holds(constraint.when, name, version);
    if (holds == Holds::Unknown) return order.whyUnknown(constraint.when, name, version);
    applies = applies || holds == Holds::Yes;
  }
  for (const auto& [name, version] : versions)
    if (applies && lifecycle::matches(constraint.then.component, name) &&
        order.holds(constraint.then, name, version) == Holds::Unknown)
      return order.whyUnknown(constraint.then, name, version);
  return {};
}

/// Steps of one component, in their order.
using Chain = std::vector<UpdateStep>;

class Solver {
 public:
  Solver(const FirmwareBaseline& baseline, const Versions& running)
      : baseline_(baseline), running_(running), order_(baseline) {}

  Schedule solve() {
    for (const auto& name : baseline_.order)
      if (const auto* component = baseline_.find(name)) addChain(*component);
    const ConstraintTable table(baseline_, order_, versionLines());
    table_ = &table;
    std::vector<std::vector<UpdateStep>> sequences;
    for (const auto& group : groups()) sequences.push_back(sequenceOf(group));
    const auto sequence = merge(std::move(sequences));
    if (!packIntoFewest(sequence)) packAsItStands(sequence);
    return std::move(schedule_);
  }

 private:
  void addChain(const FirmwareComponent& component) {
    const auto seen = running_.find(component.name);
    if (seen == running_.end())
      return leave(component, "the BMC does not list it, or its version could not be read");
    if (lifecycle::matches(component.version, seen->second)) return;
    if (component.file.empty())
      return leave(component, "the baseline names no file, so it is only compared");
    for (const auto& constraint : baseline_.constraints) {
      if (!lifecycle::matches(constraint.when.component, component.name) &&
          !lifecycle::matches(constraint.then.component, component.name))
        continue;
      if (const auto open = openBy(constraint, running_, order_); !open.empty())
        return leave(component, fmt::format("whether \"{}\" is kept cannot be told: {}",
                                            constraint.str(), open));
    }
    const auto activation = activationOf(component);
    Chain chain;
    std::string from = seen->second;
    for (const auto& intermediate : component.intermediate) {
      const auto below = order_.isBelow(component.name, from, intermediate.version);
      if (!below) return leave(component, below.error().text());
      if (!*below) continue;
      chain.push_back({&component, from, intermediate.version, intermediate, activation});
      from = intermediate.version;
    }
    chain.push_back({&component,
                     from,
                     component.version,
                     {component.version, component.file, component.sha256},
                     activation});
    chains_.push_back(std::move(chain));
  }

  void leave(const FirmwareComponent& component, std::string why) {
    const auto seen = running_.find(component.name);
    schedule_.undone.push_back(
        {&component, seen == running_.end() ? std::string() : seen->second, std::move(why)});
  }

  /// The chains, then whatever else runs.
  std::vector<VersionLine> versionLines() const {
    std::vector<VersionLine> out;
    std::set<std::string> named;
    for (const auto& chain : chains_) {
      VersionLine line{chain.front().component->name, {chain.front().from}};
      for (const auto& step : chain) line.versions.push_back(step.to);
      named.insert(line.name);
      out.push_back(std::move(line));
    }
    for (const auto& [name, version] : running_)
      if (!named.contains(name)) out.push_back({name, {version}});
    return out;
  }

  /// Chains that a constraint ties together, directly or through others.
  std::vector<std::vector<std::size_t>> groups() const {
    std::vector<std::size_t> leader(chains_.size());
    std::iota(leader.begin(), leader.end(), 0u);
    auto root = [&](std::size_t i) {
      while (leader[i] != i) i = leader[i];
      return i;
    };
    for (const auto& constraint : baseline_.constraints) {
      std::optional<std::size_t> first;
      for (std::size_t i = 0; i < chains_.size(); ++i) {
        const auto& name = chains_[i].front().component->name;
        if (!lifecycle::matches(constraint.when.component, name) &&
            !lifecycle::matches(constraint.then.component, name))
          continue;
        if (first) leader[root(i)] = root(*first);
        first = root(i);
      }
    }
    std::map<std::size_t, std::vector<std::size_t>> by_root;
    for (std::size_t i = 0; i < chains_.size(); ++i) by_root[root(i)].push_back(i);
    std::vector<std::vector<std::size_t>> out;
    for (auto& [at, members] : by_root) out.push_back(std::move(members));
    return out;
  }

  std::tuple<std::size_t, int, std::string> preference(const UpdateStep& step) const {
    const auto place = static_cast<std::size_t>(
        std::find(baseline_.order.begin(), baseline_.order.end(), step.component->name) -
        baseline_.order.begin());
    constexpr std::array kRank = {
        3, 0, 1,
        2};  // none comes last: a power supply disturbs nobody, and its failure should stop nobody
    const int rank =
        place < baseline_.declared_order ? 0 : kRank.at(static_cast<std::size_t>(step.activation));
    return {std::min(place, baseline_.declared_order), rank, step.component->name};
  }

  std::set<std::size_t> brokenBy(const Possible& possible) const {
    std::set<std::size_t> out;
    for (std::size_t i = 0; i < baseline_.constraints.size(); ++i)
      if (breach(baseline_.constraints[i], possible, order_)) out.insert(i);
    return out;
  }

  // ---- one group

  struct Search {
    std::vector<std::size_t> group;  ///< chains, by preference
    Places at;                       ///< of each line of the table: steps done
    Versions versions;
    std::vector<UpdateStep> path, best_path;
    Versions best_versions;
    std::set<Places> dead;  ///< states from which the end is not reached
    std::size_t left = 0;
  };

  std::vector<UpdateStep> sequenceOf(const std::vector<std::size_t>& group) {
    Search search{group, Places(table_->lines()), running_, {}, {}, running_, {}, 0};
    std::sort(search.group.begin(), search.group.end(), [this](std::size_t a, std::size_t b) {
      return preference(chains_[a].front()) < preference(chains_[b].front());
    });
    for (const std::size_t chain : group) search.left += chains_[chain].size();
    if (walk(search)) return std::move(search.path);
    blame(search);
    return std::move(search.best_path);
  }

  bool walk(Search& search) {
    if (search.path.size() > search.best_path.size()) {
      search.best_path = search.path;
      search.best_versions = search.versions;
    }
    if (search.path.size() == search.left) return true;
    if (search.dead.size() > kMaxStates || search.dead.contains(search.at)) return false;
    for (const std::size_t line : search.group) {
      const auto& chain = chains_[line];
      if (search.at[line] == chain.size() || !table_->mayMove(search.at, {line})) continue;
      const UpdateStep& step = chain[search.at[line]];
      search.versions[step.component->name] = step.to;
      search.path.push_back(step);
      ++search.at[line];
      if (walk(search)) return true;
      --search.at[line];
      search.path.pop_back();
      search.versions[step.component->name] = step.from;
    }
    search.dead.insert(search.at);
    return false;
  }

  /// What was not reached, with the constraint that its next step would break.
  void blame(const Search& search) {
    const auto broken = brokenBy(onlyThese(search.best_versions));
    for (const std::size_t index : search.group) {
      const auto& chain = chains_[index];
      const auto& name = chain.front().component->name;
      const auto next = std::find_if(chain.begin(), chain.end(), [&](const UpdateStep& step) {
        return step.from == search.best_versions.at(name);
      });
      if (next == chain.end()) continue;
      auto versions = search.best_versions;
      versions[name] = next->to;
      std::string why =
          search.dead.size() > kMaxStates
              ? fmt::format("no order was found among the first {} combinations; ", kMaxStates)
              : std::string();
      for (std::size_t i = 0; i < baseline_.constraints.size(); ++i) {
        const auto how = broken.contains(i)
                             ? std::nullopt
                             : breach(baseline_.constraints[i], onlyThese(versions), order_);
        if (how)
          why += fmt::format("{}it would break \"{}\" ({})", why.empty() ? "" : "; ",
                             baseline_.constraints[i].str(), *how);
      }
      schedule_.undone.push_back({chain.front().component, search.best_versions.at(name), why});
    }
  }

  // ---- all groups

  std::vector<UpdateStep> merge(std::vector<std::vector<UpdateStep>> sequences) const {
    std::vector<std::size_t> heads(sequences.size());
    std::vector<UpdateStep> merged;
    while (true) {
      std::optional<std::size_t> next;
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        if (heads[i] == sequences[i].size()) continue;
        if (!next ||
            preference(sequences[i][heads[i]]) < preference(sequences[*next][heads[*next]]))
          next = i;
      }
      if (!next) return merged;
      merged.push_back(sequences[*next][heads[*next]++]);
    }
  }

  std::size_t lineOf(const UpdateStep& step) const {
    return static_cast<std::size_t>(std::ranges::find_if(chains_,
                                                         [&](const Chain& chain) {
                                                           return chain.front().component ==
                                                                  step.component;
                                                         }) -
                                    chains_.begin());
  }

  static bool goesAlone(const UpdateStep& step) {
    return rowOf(step.component->name).alone || step.activation == Activation::None;
  }

  /// False: it would take too long to find out.
  bool packIntoFewest(const std::vector<UpdateStep>& steps) {
    std::vector<WaveLine> lines(chains_.size());
    std::vector<std::size_t> by_rank(chains_.size()), sequence;
    std::iota(by_rank.begin(), by_rank.end(), 0u);
    std::ranges::sort(by_rank, [this](std::size_t a, std::size_t b) {
      return preference(chains_[a].front()) < preference(chains_[b].front());
    });
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      const UpdateStep& first = chains_[by_rank[rank]].front();
      const auto place = std::ranges::find(baseline_.order, first.component->name);
      lines[by_rank[rank]] = {.steps = 0,
                              .activation = first.activation,
                              .alone = goesAlone(first),
                              .ordered = static_cast<std::size_t>(place - baseline_.order.begin()) <
                                         baseline_.declared_order,
                              .rank = rank};
    }
    for (const auto& step : steps) {
      sequence.push_back(lineOf(step));
      ++lines[sequence.back()].steps;
    }
    Places at(table_->lines());
    const auto waves = fewestWaves(lines, *table_, at, sequence, kMaxWaveStates);
    if (!waves) return false;
    for (const auto& moves : *waves) {
      Wave wave{{}, lines[moves.front()].activation};
      for (const std::size_t line : moves) wave.steps.push_back(chains_[line][at[line]++]);
      schedule_.waves.push_back(std::move(wave));
    }
    return true;
  }

  void packAsItStands(const std::vector<UpdateStep>& steps) {
    Places before(table_->lines());
    Moves moving;  // the lines of the last wave
    for (const auto& step : steps) {
      const std::size_t line = lineOf(step);
      if (!fits(step, line, moving, before)) {
        for (const std::size_t moved : moving) ++before[moved];
        moving.clear();
        schedule_.waves.push_back({{}, step.activation});
      }
      moving.push_back(line);
      schedule_.waves.back().steps.push_back(step);
    }
  }

  /// Whether the last wave, of these lines, may have this step too.
  bool fits(const UpdateStep& step, std::size_t line, Moves moving, const Places& before) const {
    if (moving.empty()) return false;
    const Wave& wave = schedule_.waves.back();
    if (wave.activation != step.activation || goesAlone(step) || goesAlone(wave.steps.front()) ||
        std::ranges::find(moving, line) != moving.end())
      return false;
    moving.push_back(line);
    return table_->mayMove(before, moving);
  }

  const FirmwareBaseline& baseline_;
  const Versions& running_;
  ComparableVersions order_;
  const ConstraintTable* table_ = nullptr;  ///< of solve()
  std::vector<Chain> chains_;
  Schedule schedule_;
};

}  // namespace

const Undone* Schedule::undoneOf(std::string_view component) const {
  const auto found = std::find_if(undone.begin(), undone.end(), [&](const Undone& each) {
    return each.component->name == component;
  });
  return found == undone.end() ? nullptr : &*found;
}

const Wave* nextWaveFor(std::string_view component, const Schedule& schedule,
                        const FirmwareBaseline& baseline, const Versions& running) {
  if (schedule.waves.empty()) return nullptr;
  const auto own =
      std::find_if(schedule.waves.begin(), schedule.waves.end(), [&](const Wave& wave) {
        return std::any_of(wave.steps.begin(), wave.steps.end(), [&](const UpdateStep& step) {
          return step.component->name == component;
        });
      });
  if (own == schedule.waves.end()) return &schedule.waves.front();
  auto possible = onlyThese(running);
  for (const auto& step : own->steps) {
    if (running.at(step.component->name) != step.from)
      return &schedule.waves.front();  // another wave leads there
    possible[step.component->name].push_back(step.to);
  }
  const ComparableVersions order(baseline);
  const auto safe = std::all_of(baseline.constraints.begin(), baseline.constraints.end(),
                                [&](const FirmwareConstraint& constraint) {
                                  return !breach(constraint, possible, order) ||
                                         breach(constraint, onlyThese(running), order);
                                });
  return safe ? &*own : &schedule.waves.front();
}

Schedule solve(const inventory::FirmwareBaseline& baseline, const Versions& running) {
  return Solver(baseline, running).solve();
}

std::vector<std::string> brokenConstraints(const inventory::FirmwareBaseline& baseline,
                                           const Versions& versions) {
  const ComparableVersions order(baseline);
  std::vector<std::string> out;
  for (const auto& constraint : baseline.constraints)
    if (const auto how = breach(constraint, onlyThese(versions), order))
      out.push_back(fmt::format("{} ({})", constraint.str(), *how));
  return out;
}

}  // namespace muster::firmware
