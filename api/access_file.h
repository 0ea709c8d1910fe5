// SPDX-License-Identifier: Apache-2.0
// /etc/muster/access.conf: which local users may do what. A file of the host and not of the
// inventory: whoever may change the inventory does not thereby become an administrator, and user
// ids are the host's.
//
//   # WHO            ROLE      SCOPE
//   user anna        operator
//   user 1003        robot     nodes=gpu[001-064]
//   group hpc        operator  pools=batch,debug
//
// The first row that fits counts. root is admin whatever it says, and so is the user that the
// server runs as. docs/adr/0291
#pragma once

#include "api/identity.h"
#include "base/diagnostic.h"
#include "base/io/peer_credentials.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

inline constexpr std::string_view kAccessFile = "/etc/muster/access.conf";
inline constexpr const char* kViewerGroup = "muster";  ///< its members are viewers

struct AccessRow {
  bool is_group = false;
  std::string who;  ///< a name, or digits: an id
  Role role = Role::Viewer;
  Scope scope;
};

class AccessTable {
 public:
  /// `file` is named in diagnostics.
  static Result<AccessTable> parse(std::string_view text, const std::string& file,
                                   Diagnostics& problems);
  /// A file that is not there has no rows. Errors: InvalidInput (a row; file:line), Denied (others
  /// than root and this process's user may write it)
  static Result<AccessTable> read(const std::filesystem::path& file);

  /// Who this peer is. Users and groups are looked up by the host's means, which may take a while.
  /// Nothing: nobody that may anything.
  std::optional<Identity> identify(const io::PeerCredentials& peer) const;
  const std::vector<AccessRow>& rows() const { return rows_; }

 private:
  std::vector<AccessRow> rows_;
};

}  // namespace muster::api
