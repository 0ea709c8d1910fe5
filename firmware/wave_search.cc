// SPDX-License-Identifier: Apache-2.0
// Iterative deepening: how many waves are needed at least is known from the lines alone (each takes
// a wave a step; lines of one activation share), and is nearly always enough.
#include "firmware/wave_search.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

namespace muster::firmware {
namespace {

constexpr std::size_t kMostTogether = 6;  ///< all sets of so many candidates are tried
constexpr std::size_t kMostMaximal = 32;  ///< of more: so many sets that nothing can be added to
constexpr std::size_t kActivations = 4;

class WaveSearch {
 public:
  WaveSearch(const std::vector<WaveLine>& lines, const ConstraintTable& constraints,
             const Places& start, const std::vector<std::size_t>& sequence, std::size_t most_states)
      : lines_(lines),
        constraints_(constraints),
        at_(start),
        left_(lines.size()),
        states_left_(most_states) {
    for (std::size_t i = 0; i < lines.size(); ++i) left_[i] = lines[i].steps;
    for (const std::size_t line : sequence)
      if (lines[line].ordered) ordered_.push_back(line);
    by_rank_.resize(lines.size());
    std::iota(by_rank_.begin(), by_rank_.end(), 0u);
    std::ranges::sort(by_rank_, {}, [&](std::size_t line) { return lines[line].rank; });
    most_waves_ = sequence.size();
  }

  std::optional<std::vector<Moves>> run() {
    for (std::size_t waves = atLeast(); waves <= most_waves_; ++waves) {
      if (walk(waves)) return std::move(path_);
      if (states_left_ == 0) break;
    }
    return std::nullopt;
  }

 private:
  std::size_t atLeast() const {
    std::size_t alone = 0;
    std::array<std::size_t, kActivations> longest = {};
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      auto& shared = longest.at(static_cast<std::size_t>(lines_[i].activation));
      if (lines_[i].alone)
        alone += left_[i];
      else
        shared = std::max(shared, left_[i]);
    }
    return std::accumulate(longest.begin(), longest.end(), alone);
  }

  bool walk(std::size_t waves) {
    const std::size_t needed = atLeast();
    if (needed == 0) return true;
    if (needed > waves || states_left_ == 0) return false;
    auto& tried = tried_[left_];  // with so many waves it was not enough
    if (tried >= waves) return false;
    --states_left_;
    for (const auto& moves : choices()) {
      move(moves, 1);
      path_.push_back(moves);
      if (walk(waves - 1)) return true;
      path_.pop_back();
      move(moves, -1);
    }
    if (states_left_ > 0) tried_[left_] = waves;
    return false;
  }

  void move(const Moves& moves, int direction) {
    for (const std::size_t line : moves) {
      at_[line] += static_cast<std::size_t>(direction);
      left_[line] -= static_cast<std::size_t>(direction);
      if (lines_[line].ordered) ordered_done_ += static_cast<std::size_t>(direction);
    }
  }

  /// What the next wave may be: by rank of its first line, the larger first.
  std::vector<Moves> choices() const {
    std::vector<Moves> out;
    std::vector<char> grouped(kActivations);
    for (const std::size_t line : by_rank_) {
      if (left_[line] == 0) continue;
      if (lines_[line].alone) {
        if (mayComeNext({line})) out.push_back({line});
        continue;
      }
      auto& seen = grouped[static_cast<std::size_t>(lines_[line].activation)];
      if (!std::exchange(seen, 1)) addShared(lines_[line].activation, out);
    }
    std::ranges::stable_sort(out, [&](const Moves& a, const Moves& b) {
      const auto first = lines_[a.front()].rank, second = lines_[b.front()].rank;
      return first != second ? first < second : a.size() > b.size();
    });
    return out;
  }

  void addShared(Activation activation, std::vector<Moves>& out) const {
    Moves candidates;
    for (const std::size_t line : by_rank_)
      if (left_[line] > 0 && !lines_[line].alone && lines_[line].activation == activation &&
          constraints_.mayMove(at_, {line}))
        candidates.push_back(line);
    if (candidates.size() <= kMostTogether) {
      for (unsigned set = (1u << candidates.size()) - 1; set > 0; --set) {
        Moves some;
        for (std::size_t i = 0; i < candidates.size(); ++i)
          if (set >> i & 1) some.push_back(candidates[i]);
        if (mayComeNext(some)) out.push_back(std::move(some));
      }
      return;
    }
    // As large as it gets, beginning with each in turn; and each alone.
    for (std::size_t first = 0; first < std::min(candidates.size(), kMostMaximal); ++first) {
      Moves some = {candidates[first]};
      for (const std::size_t line : candidates) {
        if (line == candidates[first]) continue;
        some.push_back(line);
        if (!mayComeNext(some)) some.pop_back();
      }
      std::ranges::sort(some, {}, [&](std::size_t line) { return lines_[line].rank; });
      if (mayComeNext(some) && std::ranges::find(out, some) == out.end())
        out.push_back(std::move(some));
    }
    for (const std::size_t line : candidates)
      if (const Moves one = {line}; mayComeNext(one) && std::ranges::find(out, one) == out.end())
        out.push_back(one);
  }

  /// Constraints allow it, and the lines with an order are the next ones of it.
  bool mayComeNext(const Moves& moves) const {
    const auto ordered = static_cast<std::size_t>(
        std::ranges::count_if(moves, [&](std::size_t line) { return lines_[line].ordered; }));
    for (std::size_t i = 0; i < ordered; ++i)
      if (std::ranges::find(moves, ordered_[ordered_done_ + i]) == moves.end()) return false;
    // Two steps of one line would pass for two lines.
    for (std::size_t i = 1; i < ordered; ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (ordered_[ordered_done_ + i] == ordered_[ordered_done_ + j]) return false;
    return constraints_.mayMove(at_, moves);
  }

  const std::vector<WaveLine>& lines_;
  const ConstraintTable& constraints_;
  Places at_;
  std::vector<std::size_t> left_;  ///< steps of each line
  std::vector<std::size_t> ordered_, by_rank_;
  std::size_t ordered_done_ = 0, most_waves_ = 0, states_left_ = 0;
  std::map<std::vector<std::size_t>, std::size_t> tried_;
  std::vector<Moves> path_;
};

}  // namespace

std::optional<std::vector<Moves>> fewestWaves(const std::vector<WaveLine>& lines,
                                              const ConstraintTable& constraints,
                                              const Places& start,
                                              const std::vector<std::size_t>& sequence,
                                              std::size_t most_states) {
  return WaveSearch(lines, constraints, start, sequence, most_states).run();
}

}  // namespace muster::firmware
