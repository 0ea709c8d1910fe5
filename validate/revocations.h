// SPDX-License-Identifier: Apache-2.0
// Revocations: certificates that count no more although nothing they are bound to has moved.
//
// In the store they are records that are only ever added: `revocation.N` for N from 1 without gaps,
// each signed together with the hash of all before it. A number is taken by whoever adds its record
// first, so that two hosts never give one number to two revocations, and list N is the first N
// records, the same bytes on every host. What is carried to wherever certificates are verified
// offline is that list as one signed file; a copy lies in the state folder.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/io/crypto.h"
#include "lifecycle/store/store.h"
#include "signer/certificate_key.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::validate {

struct Revocation {
  std::string certificate;  ///< Certificate::id; empty: the node had none, but what it passed
                            ///< before counts no more
  NodeName node;
  WallTime at{};
  std::string by, reason;
  friend bool operator==(const Revocation&, const Revocation&) = default;
};

struct RevocationList {
  std::int64_t number = 0;  ///< grows with every change: an older list is known by it
  WallTime issued_at{};
  std::vector<Revocation> revoked;

  const Revocation* find(std::string_view certificate_id) const;
  /// The newest of the node.
  const Revocation* newestOf(const NodeName& node) const;
  Result<std::string> signedJson(const signer::CertificateKey& key) const;
  /// Errors: Corrupt (no such list, or the signature does not fit)
  static Result<RevocationList> fromJson(std::string_view text, std::string_view public_pem);
};

/// The revocations of a store. Records that cannot be read, are not signed by this key, or do not
/// follow from each other are an error, never an empty list.
class Revocations {
 public:
  /// `folder` is where copies lie.
  Revocations(lifecycle::Store& store, std::filesystem::path folder, signer::CertificateKey key)
      : store_(store), file_(folder / kFile), key_(std::move(key)) {}
  /// Also what others have added since; one small read when nobody has. Errors: Corrupt, those of
  /// the store
  Result<const RevocationList*> list() const;
  /// What the file lists and the store does not is added before.
  /// Errors: InvalidInput (no reason), Conflict (another site's key), those of list and migrateFile
  Result<void> add(Revocation revocation);
  /// Adds what the folder's file lists and the store does not. Errors: Corrupt (the file, when it
  /// was never taken over)
  Result<void> migrateFile();
  /// Writes the list as it is now into a folder. Answers its number; 0: nothing was ever revoked,
  /// and nothing written.
  Result<std::int64_t> exportTo(const std::filesystem::path& folder) const;
  /// Writes, signed, that the list last read was the newest one at `now`; also an empty list, where
  /// nothing was ever revoked. Whoever verifies far away learns from it how old his list is: list N
  /// itself has the same bytes as long as one key signs.
  Result<void> exportAsOf(const std::filesystem::path& folder, WallTime now) const;
  /// Signs every record and the list anew, with the key that signs now: what the key before has
  /// signed is needed no more. Effect: idempotent; killed anywhere, each record has one of both
  /// signatures. Answers how many there are. Errors: those of list and of the store, Unavailable
  /// (others change them at the same time)
  Result<std::int64_t> signAgain();
  const std::filesystem::path& file() const { return file_; }

  static constexpr std::string_view kFile = "revocations.json.signed";  ///< no node is called so
  static constexpr std::string_view kAsOfFile = "revocations-as-of.json.signed";

 private:
  Result<bool> readNext() const;
  Result<void> readFrom(const RevocationList& copy) const;
  Result<std::string> signedRecord(const Revocation& revocation, std::int64_t number,
                                   const std::string& before) const;
  Result<void> append(Revocation revocation);
  Result<std::optional<RevocationList>> copy() const;
  bool has(const Revocation& revocation) const;
  void adopt(Revocation revocation, std::string chain) const;
  void renewCopy() const;

  lifecycle::Store& store_;
  std::filesystem::path file_;
  signer::CertificateKey key_;
  mutable bool begun_ = false;
  mutable RevocationList known_;
  mutable std::string chain_;  ///< hash of all that are known
  mutable std::int64_t copied_ =
      -1;  ///< number of the list in the file; -1: not looked at, or not to be written over
};

}  // namespace muster::validate
