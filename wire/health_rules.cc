// SPDX-License-Identifier: Apache-2.0
#include "wire/health_rules.h"

#include "base/io/crypto.h"
#include "wire/fields.h"
#include "wire/messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::wire {

template <>
inline constexpr auto kFields<HealthRule> =
    std::tuple(field("symptom", &HealthRule::symptom, Text{kMaxNameBytes}).checked(kNotEmpty),
               field("text", &HealthRule::text, Text{kMaxSymptomTextBytes}).omitted(),
               field("at_least", &HealthRule::at_least, Whole{}).omitted(),
               field("per_hour", &HealthRule::per_hour, Whole{}).omitted(),
               field("takes_out", &HealthRule::takes_out, Flag{}).omitted());

template <>
inline constexpr auto kFields<HealthRules> =
    std::tuple(field("rules", &HealthRules::rules, Items{kMaxHealthRules}),
               field("expects_gpus", &HealthRules::expects_gpus, Flag{}).omitted());

namespace {

constexpr std::size_t kDigestDigits = 16;

}  // namespace

std::string toJson(const HealthRules& rules) { return printMessage(rules); }

Result<HealthRules> parseHealthRules(std::string_view text) {
  return parseMessage<HealthRules>(text, kMaxResultBytes, "health rules", "health rules");
}

std::string digestOfHealthRules(std::string_view text) {
  return io::sha256Hex(text).substr(0, kDigestDigits);
}

std::vector<Symptom> withBlindness(const HealthReport& report, bool expects_gpus) {
  auto out = report.symptoms;
  for (const auto& [source, state] : report.sources) {
    const bool is_gpu = source == "gpu";
    if (state == kSourceOk || state == kSourceStarting || (is_gpu && !expects_gpus) ||
        (state == kSourceAbsent && !is_gpu))
      continue;
    out.push_back({std::string(kBlindPrefix) + source, source, 1, state, std::nullopt});
  }
  return out;
}

bool isEnough(const Symptom& symptom, std::uint64_t at_least, std::uint64_t per_hour) {
  return per_hour > 0 && symptom.last_hour ? *symptom.last_hour >= per_hour
                                           : symptom.count >= at_least;
}

bool fitsSymptom(std::string_view pattern, std::string_view id) {
  if (!pattern.ends_with('*')) return pattern == id;
  return id.starts_with(pattern.substr(0, pattern.size() - 1));
}

std::string_view outcomeOf(std::string_view text) {
  const auto to = text.rfind(" to ");
  return to == std::string_view::npos ? text : text.substr(to);
}

std::optional<std::string> whyUnfit(const HealthReport& report, const HealthRules& rules) {
  for (const auto& symptom : withBlindness(report, rules.expects_gpus)) {
    const auto rule = std::ranges::find_if(rules.rules, [&](const HealthRule& each) {
      return fitsSymptom(each.symptom, symptom.id) &&
             outcomeOf(symptom.text).find(each.text) != std::string_view::npos;
    });
    if (rule == rules.rules.end() || !rule->takes_out ||
        !isEnough(symptom, rule->at_least, rule->per_hour))
      continue;
    return fmt::format("{}{}{}{}{}", symptom.id, symptom.device.empty() ? "" : " at ",
                       symptom.device, symptom.text.empty() ? "" : ": ", symptom.text);
  }
  return std::nullopt;
}

}  // namespace muster::wire
