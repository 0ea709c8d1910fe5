// SPDX-License-Identifier: Apache-2.0
// The images that the plain HTTP port serves, by digest. Anybody may ask for any digest: one that
// is not known costs a look at a table, and now and then one reading of the cache, which is done
// aside.
#pragma once

#include "base/async/task.h"
#include "provision/images/packed_image.h"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace muster::provision {

/// Lives on the control thread; the reading is done by workers, where there are any.
class ServedImages {
 public:
  using Images = std::map<std::string, PackedImage>;
  /// Blocking: all that the cache holds, by digest.
  using ReadAll = std::function<Images()>;
  ServedImages(ReadAll read_all, Workers* workers)
      : read_all_(std::move(read_all)), workers_(workers) {}

  /// What is missing is looked for at most once in kReadInterval, for all who ask together.
  Task<std::optional<PackedImage>> find(std::string digest);

  static constexpr std::chrono::milliseconds kReadInterval{2000};

 private:
  Task<void> read();

  ReadAll read_all_;
  Workers* workers_;
  Images known_;
  std::chrono::steady_clock::time_point read_at_{};
  std::shared_ptr<asio::steady_timer>
      reading_;  ///< while somebody reads; cancelled when it is done
};

}  // namespace muster::provision
