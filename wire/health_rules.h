// SPDX-License-Identifier: Apache-2.0
// What symptoms mean, as the controller tells its agents, so that a node can answer for itself
// whether it may start a job, also while no controller is there. The agent decides nothing of its
// own: without these rules it does not know. docs/pools.md, docs/adr/0339
#pragma once

#include "wire/health.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

inline constexpr std::size_t kMaxHealthRules = 1024;
inline constexpr std::string_view kBlindPrefix = "system.blind.";  ///< then a source

struct HealthRule {
  std::string symptom;         ///< id; a trailing '*' stands for any ending
  std::string text;            ///< only when the words hold this; of a change of state its outcome
  std::uint64_t at_least = 1;  ///< since the node's boot
  std::uint64_t per_hour = 0;  ///< of a counter: in the place of at_least where a rate is told
  bool takes_out = false;      ///< a node with it gets no work

  friend bool operator==(const HealthRule&, const HealthRule&) = default;
};

struct HealthRules {
  std::vector<HealthRule> rules;  ///< the first that fits a symptom counts
  bool expects_gpus = false;      ///< GPUs that cannot be watched are a symptom

  friend bool operator==(const HealthRules&, const HealthRules&) = default;
};

std::string toJson(const HealthRules& rules);
/// Errors: Corrupt, InvalidInput
Result<HealthRules> parseHealthRules(std::string_view text);

/// What an agent that watches its node's health says instead of a digest while it has no rules.
inline constexpr std::string_view kNoHealthRules = "none";
/// By which an agent says which rules it has: 16 hex digits.
std::string digestOfHealthRules(std::string_view text);

/// Symptoms, and what must be there and cannot be watched as a symptom of its own. Pure.
std::vector<Symptom> withBlindness(const HealthReport& report, bool expects_gpus);

/// Whether `count`, or the rate, of a symptom is enough. Pure.
bool isEnough(const Symptom& symptom, std::uint64_t at_least, std::uint64_t per_hour);
/// Whether an id is meant by a pattern. Pure.
bool fitsSymptom(std::string_view pattern, std::string_view id);
/// What a change of state has led to; the state before it is in the same line ("changed from 0x1
/// (GPU Reset Required) to 0x0 (None)"). Pure.
std::string_view outcomeOf(std::string_view text);

/// Why the node may start no job: "xid.79 at 0000:18:00.0: what was seen". nullopt: it
/// may. Pure.
std::optional<std::string> whyUnfit(const HealthReport& report, const HealthRules& rules);

}  // namespace muster::wire
