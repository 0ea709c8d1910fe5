// SPDX-License-Identifier: Apache-2.0
#include "validate/offline_verification.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::validate {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "muster-revocations-as-of/1";
constexpr std::chrono::minutes kClockSkew{5};  ///< by which two machines' clocks may differ

json unsignedJson(const ListAsOf& statement) {
  return {{"format", kFormat}, {"number", statement.number}, {"as_of", toString(statement.as_of)}};
}

std::string printed(const ListAsOf& statement, const std::string& signature) {
  auto out = unsignedJson(statement);
  out["signature"] = signature;
  return jsonText(out, 1) + "\n";
}

}  // namespace

Result<std::string> ListAsOf::signedJson(const signer::CertificateKey& key) const {
  const auto text = jsonText(unsignedJson(*this));
  TRY(signature, key.sign(signer::Statement::ListAsOf, text, text));
  return printed(*this, signature);
}

Result<ListAsOf> ListAsOf::fromJson(std::string_view text, std::string_view public_pem) {
  const auto parsed = jsonOrNone(text, kFileJson);
  if (!parsed.is_object() || !parsed.contains("format") || parsed["format"] != kFormat)
    return fail(ErrorCode::Corrupt, "this is not a statement of how old a list of revocations is");
  try {
    ListAsOf out;
    const auto signature = parsed.at("signature").get<std::string>();
    parsed.at("number").get_to(out.number);
    TRY(as_of, parseWallTime(parsed.at("as_of").get<std::string>()));
    out.as_of = as_of;
    if (printed(out, signature) != text ||
        !io::verify(public_pem, jsonText(unsignedJson(out)), signature))
      return fail(
          ErrorCode::Corrupt,
          "the statement of how old the list is was not signed by this key, or was changed");
    return out;
  } catch (const json::exception& error) {
    return fail(ErrorCode::Corrupt,
                std::string("the statement of how old the list is is damaged: ") + error.what());
  }
}

Result<void> requireFresh(const RevocationList& list, const std::optional<ListAsOf>& as_of,
                          const ListPolicy& policy, WallTime now) {
  if (list.number < policy.least_number)
    return fail(
        ErrorCode::Denied,
        fmt::format("this is list {} of revocations, and list {} or a newer one is asked for",
                    list.number, policy.least_number));
  if (as_of && list.number < as_of->number)
    return fail(ErrorCode::Denied,
                fmt::format("this is list {} of revocations, and at {} list {} was the newest",
                            list.number, toString(as_of->as_of), as_of->number));
  if (policy.max_age.count() <= 0) return {};
  if (!as_of)
    return fail(ErrorCode::Denied,
                fmt::format("how old the list of revocations is is unknown: carry {} with it "
                            "(`muster cert export` writes both)",
                            Revocations::kAsOfFile));
  if (as_of->as_of > now + kClockSkew)
    return fail(ErrorCode::Denied,
                fmt::format("the list of revocations is of {}, which is in the future: check the "
                            "clock here",
                            toString(as_of->as_of)));
  if (now - as_of->as_of > policy.max_age)
    return fail(
        ErrorCode::Denied,
        fmt::format("list {} of revocations was last known to be the newest at {}, more than "
                    "{} hours ago: carry a new export here",
                    list.number, toString(as_of->as_of), policy.max_age.count()));
  return {};
}

}  // namespace muster::validate
