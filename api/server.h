// SPDX-License-Identifier: Apache-2.0
// The API of a site: HTTP over a Unix socket and, where asked for, HTTPS; on threads of its own, so
// that no client slows the controller's. docs/api.md
#pragma once

#include "app/site/options.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace muster::api {

struct ApiOptions {
  std::filesystem::path socket;       ///< empty: defaultSocket
  std::string listen;                 ///< "ADDRESS:PORT" for HTTPS; empty: none
  std::filesystem::path access_file;  ///< empty: kAccessFile
  /// What an administrator should read now: what is wrong with the access file. On any thread;
  /// empty: the log alone has it
  std::function<void(const std::string&)> notice = {};
  /// Its URL for clients elsewhere, where that is not what `listen` says; empty: as `listen`
  std::string announce = {};
};

inline constexpr const char* kUsualState = "/var/lib/muster";
inline constexpr const char* kUsualSocket = "/run/muster/api.sock";
/// kUsualSocket for the usual state folder, and one of its own for each other; in the state
/// folder itself for whom /run is not writable.
std::filesystem::path defaultSocket(const app::Options& options);

class ApiServer {
 public:
  /// Answers when clients can connect. An inventory with errors does not stop it: it says which.
  /// Errors: Conflict (another server answers on the socket or port), InvalidInput (listen), Denied
  /// (the access file may be written by others), those of the store
  static Result<std::unique_ptr<ApiServer>> start(const app::Options& options,
                                                  const ApiOptions& api);
  ~ApiServer();

  const std::filesystem::path& socket() const;
  std::uint16_t port() const;  ///< of HTTPS; 0: there is none
  /// Where clients elsewhere reach it: ApiOptions::announce; else the address that it listens on,
  /// and the host's name where that is any address. Empty: nowhere (no HTTPS, or loopback alone).
  std::string url() const;
  /// The inventory is read again before the next answer. From any thread.
  void reload();
  /// Both threads have answered within this time. From any thread.
  bool answered(std::chrono::seconds within) const;
  /// Clients are let go, and the socket's file with them.
  void stop();

 private:
  struct State;
  explicit ApiServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace muster::api
