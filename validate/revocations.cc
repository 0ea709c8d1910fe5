// SPDX-License-Identifier: Apache-2.0
#include "validate/revocations.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/log.h"
#include "signer/forms.h"
#include "validate/certificate_migration.h"
#include "validate/offline_verification.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::validate {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "muster-revocations/1";
constexpr std::string_view kRecordFormat = "muster-revocation/1";
constexpr std::size_t kMaxBytes = 64u << 20;
constexpr int kMaxTries =
    1'000;  ///< others may add at the same moment; at each try one of them is done

json jsonOf(const Revocation& each) {
  return {{"certificate", each.certificate},
          {"node", each.node.str()},
          {"at", toString(each.at)},
          {"by", each.by},
          {"reason", each.reason}};
}

json unsignedJson(const RevocationList& list) {
  json revoked = json::array();
  for (const auto& each : list.revoked) revoked.push_back(jsonOf(each));
  return {{"format", kFormat},
          {"number", list.number},
          {"issued_at", toString(list.issued_at)},
          {"revoked", std::move(revoked)}};
}

/// What is signed: one line, whatever bytes a reason has.
std::string canonical(const json& value) { return jsonText(value); }

Result<Revocation> revocationOf(const json& each) {
  TRY(at, parseWallTime(each.at("at").get<std::string>()));
  return Revocation{each.at("certificate").get<std::string>(),
                    NodeName(each.at("node").get<std::string>()), at,
                    each.at("by").get<std::string>(), each.at("reason").get<std::string>()};
}

/// As it will be read again.
Result<Revocation> asKept(const Revocation& revocation) {
  return revocationOf(jsonOrNone(canonical(jsonOf(revocation)), kFileJson));
}

std::string recordKey(std::int64_t number) { return fmt::format("revocation.{}", number); }

/// The hash of records 1 to `number`, when `before` is that of those before it.
std::string chainOf(const std::string& before, std::int64_t number, const Revocation& revocation) {
  return signer::revocationChain(before, number, canonical(jsonOf(revocation)));
}

}  // namespace

const Revocation* RevocationList::find(std::string_view certificate_id) const {
  const auto found = std::find_if(revoked.begin(), revoked.end(), [&](const auto& each) {
    return !each.certificate.empty() && each.certificate == certificate_id;
  });
  return found == revoked.end() ? nullptr : &*found;
}

const Revocation* RevocationList::newestOf(const NodeName& node) const {
  const Revocation* newest = nullptr;
  for (const auto& each : revoked)
    if (each.node == node && (!newest || each.at >= newest->at)) newest = &each;
  return newest;
}

Result<std::string> RevocationList::signedJson(const signer::CertificateKey& key) const {
  json out = jsonOrNone(canonical(unsignedJson(*this)), kFileJson);
  const auto text = canonical(out);
  TRY(signature, key.sign(signer::Statement::RevocationList, text, text));
  out["signature"] = signature;
  return jsonText(out, 1) + "\n";
}

Result<RevocationList> RevocationList::fromJson(std::string_view text,
                                                std::string_view public_pem) {
  auto parsed = jsonOrNone(text, kFileJson);
  if (!parsed.is_object() || parsed.value("format", "") != kFormat)
    return fail(ErrorCode::Corrupt, "this is not a list of revocations");
  try {
    const auto signature = parsed.at("signature").get<std::string>();
    parsed.erase("signature");
    if (!io::verify(public_pem, canonical(parsed), signature))
      return fail(ErrorCode::Corrupt,
                  "the list of revocations is not signed by this key, or was changed");
    RevocationList out;
    parsed.at("number").get_to(out.number);
    TRY(issued, parseWallTime(parsed.at("issued_at").get<std::string>()));
    out.issued_at = issued;
    for (const auto& each : parsed.at("revoked")) {
      TRY(revocation, revocationOf(each));
      out.revoked.push_back(std::move(revocation));
    }
    json again = unsignedJson(out);
    again["signature"] = signature;
    if (jsonText(again, 1) + "\n" != text)
      return fail(ErrorCode::Corrupt,
                  "the list of revocations is not in the form in which it is signed: take the file "
                  "as `muster cert export` wrote it");
    return out;
  } catch (const json::exception& error) {
    return fail(ErrorCode::Corrupt,
                std::string("the list of revocations is damaged: ") + error.what());
  }
}

bool Revocations::has(const Revocation& revocation) const {
  return std::find(known_.revoked.begin(), known_.revoked.end(), revocation) !=
         known_.revoked.end();
}

void Revocations::adopt(Revocation revocation, std::string chain) const {
  ++known_.number;
  known_.issued_at = revocation.at;
  known_.revoked.push_back(std::move(revocation));
  chain_ = std::move(chain);
}

/// Answers whether there was one.
Result<bool> Revocations::readNext() const {
  const auto number = known_.number + 1;
  const auto damaged = [number](const std::string& how) {
    return fail(
        ErrorCode::Corrupt,
        fmt::format(
            "revocation {} of the store {}; nothing may pass: restore the store from a backup",
            number, how));
  };
  TRY(text, store_.getValue(recordKey(number)));
  if (!text) return false;
  const auto record = jsonOrNone(*text, kFileJson);
  if (!record.is_object() || record.value("format", "") != kRecordFormat)
    return damaged("is damaged");
  try {
    TRY(revocation, revocationOf(record));
    auto chain = chainOf(chain_, number, revocation);
    if (record.at("chain") != chain) return damaged("was changed, or those before it were");
    if (!io::verify(key_.public_pem, signer::revocationWords(number, chain),
                    record.at("signature").get<std::string>())) {
      TRY_OK(requireSiteKey(store_, key_));
      return damaged("is not signed by this site's key");
    }
    adopt(std::move(revocation), std::move(chain));
    return true;
  } catch (const json::exception&) {
    return damaged("is damaged");
  }
}

/// The file, when there is one that this key has signed. Errors: Corrupt
Result<std::optional<RevocationList>> Revocations::copy() const {
  std::error_code unknown;
  if (!std::filesystem::exists(file_, unknown) && !unknown) return std::optional<RevocationList>();
  TRY(text, io::readFile(file_, kMaxBytes));
  auto list = RevocationList::fromJson(text, key_.public_pem);
  if (!list) return fail(std::move(list).error().within(file_.string()));
  return std::optional(std::move(*list));
}

/// When the store's first records are just what the copy lists, they are taken from there:
/// thousands of reads become one.
Result<void> Revocations::readFrom(const RevocationList& copy) const {
  if (copy.number < 1 || copy.number != static_cast<std::int64_t>(copy.revoked.size())) return {};
  TRY(text, store_.getValue(recordKey(copy.number)));
  const auto record = text ? jsonOrNone(*text, kFileJson) : json();
  if (!record.is_object()) return {};
  std::string chain;
  for (std::int64_t i = 0; i < copy.number; ++i)
    chain = chainOf(chain, i + 1, copy.revoked[static_cast<std::size_t>(i)]);
  if (record.value("chain", "") != chain) return {};
  known_ = copy;
  chain_ = std::move(chain);
  copied_ = copy.number;
  return {};
}

Result<const RevocationList*> Revocations::list() const {
  if (!begun_) {
    const auto kept = copy();
    if (kept && *kept) TRY_OK(readFrom(**kept));
    if (kept && (!*kept || (*kept)->number == 0)) copied_ = 0;
    begun_ = true;
  }
  for (bool more = true; more;) {
    TRY(read, readNext());
    more = read;
  }
  renewCopy();
  return &known_;
}

/// Another process may write an older list over ours: whoever writes looks once more whether his is
/// the newest.
void Revocations::renewCopy() const {
  if (copied_ < 0 || copied_ == known_.number) return;
  const auto written = exportTo(file_.parent_path());
  if (!written)
    logWarning("validate", "the copy of the revocations: {}; `muster cert export` writes it again",
               written.error().str());
  copied_ = known_.number;
}

Result<std::int64_t> Revocations::exportTo(const std::filesystem::path& folder) const {
  if (known_.number == 0) TRY_OK(list());
  for (std::int64_t written = 0; written != known_.number;) {
    written = known_.number;
    TRY(text, known_.signedJson(key_));
    const bool own_copy = folder == file_.parent_path();  // in the state folder; others are carried
                                                          // to where anybody may verify by them
    TRY_OK(io::makeDirs(folder, own_copy ? 0700 : 0755));
    TRY_OK(io::writeFileAtomic(folder / kFile, text, own_copy ? 0600 : 0644));
    for (bool more = true; more;) {
      TRY(read, readNext());
      more = read;
    }
  }
  return std::int64_t{known_.number};
}

Result<void> Revocations::exportAsOf(const std::filesystem::path& folder, WallTime now) const {
  const unsigned mode = folder == file_.parent_path() ? 0600 : 0644;
  if (known_.number == 0) {
    TRY(empty, RevocationList{}.signedJson(key_));
    TRY_OK(io::makeDirs(folder, mode == 0600 ? 0700 : 0755));
    TRY_OK(io::writeFileAtomic(folder / kFile, empty, mode));
  }
  const ListAsOf statement{.number = known_.number, .as_of = now};
  TRY(text, statement.signedJson(key_));
  return io::writeFileAtomic(folder / kAsOfFile, text, mode);
}

Result<std::string> Revocations::signedRecord(const Revocation& revocation, std::int64_t number,
                                              const std::string& before) const {
  const auto chain = chainOf(before, number, revocation);
  TRY(signature,
      key_.sign(
          signer::Statement::Revocation,
          canonical({{"before", before}, {"number", number}, {"revocation", jsonOf(revocation)}}),
          signer::revocationWords(number, chain)));
  json record = jsonOf(revocation);
  record.update(
      {{"format", kRecordFormat}, {"number", number}, {"chain", chain}, {"signature", signature}});
  return canonical(record);
}

Result<void> Revocations::append(Revocation revocation) {
  TRY(kept, asKept(revocation));
  TRY_OK(bindSiteKey(store_, key_));
  for (int tries = 0; tries < kMaxTries; ++tries) {
    TRY_OK(list());
    if (has(kept)) return {};
    const auto number = known_.number + 1;
    auto chain = chainOf(chain_, number, kept);
    TRY(record, signedRecord(kept, number, chain_));
    TRY(added, store_.exchangeValue(recordKey(number), std::nullopt, record));
    if (!added) continue;
    adopt(std::move(kept), std::move(chain));
    return {};
  }
  return fail(ErrorCode::Unavailable, "revocations are being added by other processes; try again");
}

Result<std::int64_t> Revocations::signAgain() {
  TRY_OK(bindSiteKey(store_, key_));
  TRY_OK(list());
  std::string chain;
  for (std::int64_t i = 1; i <= known_.number; ++i) {
    const auto& revocation = known_.revoked[static_cast<std::size_t>(i - 1)];
    TRY(before, store_.getValue(recordKey(i)));
    TRY(record, signedRecord(revocation, i, chain));
    chain = chainOf(chain, i, revocation);
    if (before == record) continue;
    TRY(done, store_.exchangeValue(recordKey(i), before, record));
    if (!done)
      return fail(
          ErrorCode::Unavailable,
          fmt::format("revocation {} was changed by another process at the same time; try again",
                      i));
  }
  return exportTo(file_.parent_path());
}

Result<void> Revocations::migrateFile() {
  auto kept = copy();
  if (!kept) {
    TRY(taken, wasMigrated(store_, file_.parent_path()));
    if (!taken)
      return fail(
          Error(kept.error())
              .within("it has to be taken into the store, and what it revoked must not be lost: "
                      "restore it from a backup; without one move it away, and revoke again what "
                      "is to stay revoked"));
    logWarning("validate",
               "{}; the store's revocations count, `muster cert export` writes the file again",
               kept.error().str());
    return {};
  }
  if (!*kept) return {};
  TRY_OK(list());
  for (std::size_t i = 0; i < (*kept)->revoked.size(); ++i) {
    const auto& revocation = (*kept)->revoked[i];
    const bool is_there =
        i < known_.revoked.size() && known_.revoked[i] == revocation;  // nearly always
    if (!is_there && !has(revocation)) TRY_OK(append(revocation));
  }
  copied_ = (*kept)->number;
  renewCopy();
  return {};
}

Result<void> Revocations::add(Revocation revocation) {
  if (revocation.reason.empty())
    return fail(ErrorCode::InvalidInput, "say why it is revoked: --reason TEXT");
  TRY_OK(migrateFile());
  TRY_OK(append(std::move(revocation)));
  if (const auto written = exportTo(file_.parent_path()); !written)
    return fail(Error(written.error())
                    .within("it is revoked, but the list to carry could not be written (`muster "
                            "cert export --to FOLDER` does it)"));
  copied_ = known_.number;
  return {};
}

}  // namespace muster::validate
