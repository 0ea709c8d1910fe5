#include "validate/revocations.h"

#include "base/io/files.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::validate {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "muster-revocations/1";
constexpr std::size_t kMaxBytes = 64u << 20;

json unsignedJson(const RevocationList& list) {
  json revoked = json::array();
  for (const auto& each : list.revoked)
    revoked.push_back({{"certificate", each.certificate}, {"node", each.node.str()}, {"at", toString(each.at)}, {"by", each.by}, {"reason", each.reason}});
  return {{"format", kFormat}, {"number", list.number}, {"issued_at", toString(list.issued_at)}, {"revoked", std::move(revoked)}};
}

/// What is signed: one line, whatever bytes a reason has.
std::string canonical(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

const Revocation* RevocationList::find(std::string_view certificate_id) const {
  const auto found = std::find_if(revoked.begin(), revoked.end(), [&](const auto& each) { return !each.certificate.empty() && each.certificate == certificate_id; });
  return found == revoked.end() ? nullptr : &*found;
}

const Revocation* RevocationList::newestOf(const NodeName& node) const {
  const Revocation* newest = nullptr;
  for (const auto& each : revoked)
    if (each.node == node && (!newest || each.at >= newest->at)) newest = &each;
  return newest;
}

Result<std::string> RevocationList::signedJson(const io::SigningKey& key) const {
  json out = json::parse(canonical(unsignedJson(*this)));
  TRY(signature, io::sign(key, canonical(out)));
  out["signature"] = signature;
  return out.dump(1) + "\n";
}

Result<RevocationList> RevocationList::fromJson(std::string_view text, std::string_view public_pem) {
  auto parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object() || parsed.value("format", "") != kFormat) return fail(ErrorCode::Corrupt, "this is not a list of revocations");
  try {
    const auto signature = parsed.at("signature").get<std::string>();
    parsed.erase("signature");
    if (!io::verify(public_pem, canonical(parsed), signature)) return fail(ErrorCode::Corrupt, "the list of revocations is not signed by this key, or was changed");
    RevocationList out;
    parsed.at("number").get_to(out.number);
    TRY(issued, parseWallTime(parsed.at("issued_at").get<std::string>()));
    out.issued_at = issued;
    for (const auto& each : parsed.at("revoked")) {
      TRY(at, parseWallTime(each.at("at").get<std::string>()));
      out.revoked.push_back({each.at("certificate").get<std::string>(), NodeName(each.at("node").get<std::string>()), at, each.at("by").get<std::string>(), each.at("reason").get<std::string>()});
    }
    return out;
  } catch (const json::exception& error) {
    return fail(ErrorCode::Corrupt, std::string("the list of revocations is damaged: ") + error.what());
  }
}

Result<RevocationList> Revocations::read() const {
  std::error_code unknown;
  if (!std::filesystem::exists(file_, unknown) && !unknown) return RevocationList{};
  TRY(text, io::readFile(file_, kMaxBytes));
  auto list = RevocationList::fromJson(text, key_.public_pem);
  if (!list) return fail(std::move(list).error().within(file_.string()));
  return list;
}

Result<void> Revocations::add(Revocation revocation) {
  if (revocation.reason.empty()) return fail(ErrorCode::InvalidInput, "say why it is revoked: --reason TEXT");
  TRY(list, read());
  list.issued_at = revocation.at;
  ++list.number;
  list.revoked.push_back(std::move(revocation));
  TRY(text, list.signedJson(key_));
  TRY_OK(io::makeDirs(file_.parent_path()));
  return io::writeFileAtomic(file_, text);
}

}  // namespace muster::validate
