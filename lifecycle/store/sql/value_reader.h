// SPDX-License-Identifier: Apache-2.0
// Values read by a connection of their own: the control thread asks for them thousands of times
// (pins, refused passwords, tokens), and must not wait until the journal's batch is on the disk. It
// sees what was committed when it asks.
#pragma once

#include "lifecycle/store/sql/backend.h"
#include "lifecycle/store/sql/prepared.h"

#include <mutex>
#include <optional>

namespace muster::lifecycle::sql {

class ValueReader {
 public:
  /// `backend` is borrowed; nothing is connected before the first value is asked for.
  explicit ValueReader(Backend& backend) : backend_(backend) {}
  ~ValueReader() { (void)intact(); }
  ValueReader(const ValueReader&) = delete;
  /// Errors: as the backend explains them; a connection that was lost is made again within its
  /// patience.
  Result<std::optional<std::string>> get(const std::string& key);

 private:
  Result<void> connected();
  Result<void> intact();

  Backend& backend_;
  std::mutex mutex_;
  soci::session sql_;
  PreparedStatements prepared_;
  bool connected_ = false;
};

}  // namespace muster::lifecycle::sql
