// SPDX-License-Identifier: Apache-2.0
// A PostgreSQL server of the test's own: data in a temporary folder, a Unix socket there and no
// other, not as root. It dies with the test. `whyNot` says why there is none.
#pragma once

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace muster::test {

class PostgresServer {
 public:
  PostgresServer() {
    if (findPrograms() && initialise()) start();
  }
  ~PostgresServer() { stop(); }
  PostgresServer(const PostgresServer&) = delete;

  const std::string& whyNot() const { return why_not_; }

  std::string url(const std::string& database) const {
    return "postgresql:///" + database + "?host=" + folder_.path().string() + "&user=postgres";
  }
  /// A new, empty database. Answers its URL.
  std::string createDatabase() {
    const auto name = "t" + std::to_string(++databases_);
    execute("postgres", "CREATE DATABASE " + name);
    return url(name);
  }
  void execute(const std::string& database, const std::string& statement) {
    soci::session sql(soci::postgresql, url(database));
    sql << statement;
  }

  void start() {
    auto command =
        asServer({programs_ / "postgres",
                  {"-D", (folder_ / "data").string(), "-k", folder_.path().string(), "-c",
                   "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=40"}});
    auto started = io::makeProcessRunner()->start(command, folder_ / "log");
    if (!started) return refuse(started.error().str());
    server_ = std::move(*started);
    for (int tries = 0; tries < 300; ++tries) {
      try {
        soci::session(soci::postgresql, url("postgres"));
        return;
      } catch (const soci::soci_error&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
    refuse("the server does not answer: " + io::readFile(folder_ / "log").value_or("no log"));
  }
  /// Ends it at once, as a crash does; clients lose their connections.
  void stop() {
    if (!server_) return;
    server_->signal(SIGQUIT);
    for (int tries = 0; tries < 200 && server_->running(); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    server_->terminate(std::chrono::seconds(5));
    server_.reset();
  }
  void restart() {
    stop();
    start();
  }

 private:
  void refuse(std::string why) {
    why_not_ = std::move(why);
    server_.reset();
  }

  bool findPrograms() {
    std::error_code ignored;
    for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", ignored))
      if (std::filesystem::exists(version.path() / "bin" / "initdb"))
        programs_ = version.path() / "bin";
    if (programs_.empty()) {
      refuse("PostgreSQL is not installed (postgresql-15); ./run setup installs it");
      return false;
    }
    if (::geteuid() == 0 && !::getpwnam("postgres")) {
      refuse("PostgreSQL does not run as root, and there is no user postgres");
      return false;
    }
    return true;
  }

  bool initialise() {
    const auto data = folder_ / "data";
    std::filesystem::create_directory(data);
    ::chmod(data.c_str(), 0700);
    if (::geteuid() == 0) {
      const auto* user = ::getpwnam("postgres");
      for (const auto& path : {data, folder_.path()})
        if (::chown(path.c_str(), user->pw_uid, user->pw_gid) != 0)
          return refuse("chown failed"), false;
    }
    auto done =
        io::runChecked(asServer({programs_ / "initdb",
                                 {"-D", data.string(), "-U", "postgres", "-A", "trust", "--no-sync",
                                  "--no-instructions", "-E", "UTF8", "--locale=C.UTF-8"}}));
    if (!done) refuse(done.error().str());
    return done.has_value();
  }

  static io::Command asServer(io::Command command) {
    command.working_dir = "/";
    if (::geteuid() != 0) return command;
    std::vector<std::string> args{"--reuid=postgres", "--regid=postgres", "--clear-groups",
                                  "--pdeathsig=QUIT", command.program};
    args.insert(args.end(), command.args.begin(), command.args.end());
    command.program = "setpriv";
    command.args = std::move(args);
    return command;
  }

  TempFolder folder_;
  std::filesystem::path programs_;
  std::string why_not_;
  std::unique_ptr<io::Child> server_;
  int databases_ = 0;
};

/// The server that all tests of the program share; started by the first that asks, ended with the
/// program.
inline PostgresServer& postgresServer() {
  static PostgresServer server;
  return server;
}

}  // namespace muster::test
