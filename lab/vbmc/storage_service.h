// SPDX-License-Identifier: Apache-2.0
// A RAID controller of a virtual BMC: its drives, and volumes that are made and deleted, at once or
// at the machine's next start. Source: DSP0268 Storage, Drive, Volume; DSP0266 (create, apply
// time); captures (RaidBehaviour)
#pragma once

#include "lab/vbmc/bmc_runtime.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace muster::lab::vbmc {

class StorageService {
 public:
  explicit StorageService(BmcRuntime& bmc) : bmc_(bmc) {}

  /// Whether the machine has a controller.
  bool there() const { return !bmc_.options.raid_drives.empty(); }
  std::string collectionPath() const;
  std::optional<nlohmann::json> resource(const std::string& path) const;
  bool isVolume(const std::string& path) const;
  bool isCollection(const std::string& path) const;
  io::ServerResponse create(const io::ServerRequest& request);
  io::ServerResponse remove(const std::string& path);

  /// What is due by now is done.
  void tick();
  /// The machine starts: what waited for that begins.
  void atStart();
  /// The next order ends as a failed task with these words.
  void failNext(std::string message) { fails_with_ = std::move(message); }

 private:
  struct Order {
    std::string task;
    Volume makes;         ///< without an id: it deletes
    std::string deletes;  ///< id
    bool waits = false;   ///< for the next start
    std::string fails_with = {};
    std::chrono::steady_clock::time_point until{};
  };
  std::string storage() const;
  std::string volumes() const { return storage() + "/Volumes"; }
  std::vector<std::string> driveIds() const;
  const Volume* volumeAt(const std::string& path) const;
  nlohmann::json storageResource() const;
  nlohmann::json controllerResource(const std::string& path) const;
  nlohmann::json driveResource(const std::string& path, std::size_t index) const;
  nlohmann::json volumeResource(const std::string& path, const Volume& volume) const;
  nlohmann::json capabilities(const std::string& path) const;
  std::optional<io::ServerResponse> refuse(const nlohmann::json& body, Volume& wanted) const;
  io::ServerResponse take(Order order, const std::string& made_at);
  void carryOut(const Order& order);
  void end(const std::string& task, const std::string& failure);

  BmcRuntime& bmc_;
  std::vector<Order> orders_;
  std::string fails_with_;
};

}  // namespace muster::lab::vbmc
