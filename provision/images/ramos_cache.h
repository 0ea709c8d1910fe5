// SPDX-License-Identifier: Apache-2.0
// Which RAM OS belongs to this muster: its name is a digest over the agent's binaries, which takes
// ldd and some hundred megabytes of reading. That is done once, and anew when one of those files
// has changed; the next process of this muster finds it in the cache's folder (docs/adr/0389).
#pragma once

#include "provision/images/agent_initrd.h"
#include "provision/images/ramos.h"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace muster::provision {

struct ImageStoreOptions;

/// Any thread may ask; whoever comes while it is worked out waits for it.
class RamOsCache {
 public:
  using WorkOut =
      std::function<Result<std::vector<AgentFile>>(const std::filesystem::path& agent_binary)>;
  using Now = std::function<std::chrono::steady_clock::time_point()>;
  using Date = std::function<std::chrono::system_clock::time_point()>;
  /// `files`: what belongs to the agent (agentFiles). `now`, `date`: for tests.
  RamOsCache(const ImageStoreOptions& options, Architecture architecture,
             WorkOut files = agentFiles, Now now = std::chrono::steady_clock::now,
             Date date = std::chrono::system_clock::now);

  /// Blocking when it is not known yet or a file has changed. Errors: as agentFiles; kept for a
  /// moment, so that they are not worked out again and again
  Result<RamOs> present();
  /// What belongs to the agent as it is now, and the RAM OS that it makes. Reads all of it,
  /// whatever is known. Errors: as agentFiles
  struct Named {
    std::vector<AgentFile> files;
    std::string state;   ///< of the files, before they were read
    std::string digest;  ///< of the files
    RamOs ram_os;
  };
  Result<Named> workOut() const;
  /// Would `present` answer without reading files? Some stat calls, at most once in kLookInterval.
  bool isKnown();

  static constexpr std::chrono::milliseconds kLookInterval{1000};
  static constexpr std::chrono::seconds kFailureKept{5};
  /// A file that changed less than this ago may change again within one tick of the file system's
  /// clock, and look the same to the next process: nothing is recorded then.
  static constexpr std::chrono::seconds kSettled{2};

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Known {
    Result<RamOs> answer;
    std::string state;  ///< of the files it was made from
    std::vector<std::filesystem::path> files;
    Time looked_at{};
  };
  std::string stateOf(const std::vector<std::filesystem::path>& files) const;
  bool holds(Known& known) const;
  bool hasSettled(const std::filesystem::path& file) const;
  std::filesystem::path recordFile() const;
  bool isOurs(const std::filesystem::path& record) const;
  std::optional<Known> recorded() const;
  void record(const Known& known, const std::string& digest) const;

  const std::filesystem::path cache_, agent_binary_;
  const std::string system_key_;
  const Architecture architecture_;
  const WorkOut files_;
  const Now now_;
  const Date date_;
  std::mutex mutex_;
  std::optional<Known> known_;
};

}  // namespace muster::provision
