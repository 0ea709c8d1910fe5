// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/backup.h"

#include "base/io/files.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <iostream>

namespace muster::cli {
namespace {

constexpr std::size_t kMaxPassphraseBytes = 4096;

/// One line of the terminal that is not shown.
Secret askHidden(const char* question) {
  std::cerr << question << std::flush;
  termios before{};
  const bool known = ::tcgetattr(STDIN_FILENO, &before) == 0;
  auto hidden = before;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  if (known) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  std::string line;
  std::getline(std::cin, line);
  if (known) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
  std::cerr << '\n';
  return Secret(std::move(line));
}

Result<Secret> passphraseOf(const std::filesystem::path& file, bool twice) {
  if (!file.empty()) {
    struct stat status{};
    if (::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        (status.st_mode & 0077) != 0)
      return fail(ErrorCode::Denied, fmt::format("{} could be read by other users: chmod 600 {}",
                                                 file.string(), file.string()));
    TRY(text, io::readFile(file, kMaxPassphraseBytes));
    auto line = text.substr(0, text.find('\n'));
    if (line.ends_with('\r')) line.pop_back();
    return Secret(std::move(line));
  }
  if (::isatty(STDIN_FILENO) == 0)
    return fail(ErrorCode::InvalidInput,
                "no terminal to ask for the passphrase: give --passphrase-file FILE");
  auto first = askHidden("Passphrase: ");
  if (twice && askHidden("The same again: ") != first)
    return fail(ErrorCode::InvalidInput, "the two are not the same; nothing was written");
  return first;
}

}  // namespace

int backup(const app::Options& options, const BackupArgs& args) {
  const auto passphrase = passphraseOf(args.passphrase_file, true);
  if (!passphrase) return report(passphrase.error());
  const auto made = app::makeBackup(options, args.file, *passphrase);
  if (!made) return report(made.error());
  if (options.json) {
    std::cout << jsonText(nlohmann::json{{"file", args.file.string()},
                                         {"files", made->files},
                                         {"bytes", made->bytes},
                                         {"left_out", made->left_out}})
              << '\n';
    return kOk;
  }
  std::cout << fmt::format(
      "{}: {} files, {} KiB, encrypted. Keep the passphrase elsewhere: without it nobody can read "
      "the file.\n",
      args.file.string(), made->files, made->bytes / 1024);
  for (const auto& name : made->left_out) std::cout << "left out: " << name << '\n';
  return kOk;
}

int restore(const app::Options& options, const RestoreArgs& args) {
  const auto passphrase = passphraseOf(args.passphrase_file, false);
  if (!passphrase) return report(passphrase.error());
  const auto done = app::restoreBackup(options, args.file, *passphrase, args.replace);
  if (!done) return report(done.error());
  if (options.json) {
    std::cout << jsonText(nlohmann::json{{"cluster", done->cluster},
                                         {"made_at", done->made_at},
                                         {"made_by", done->made_by},
                                         {"files", done->files},
                                         {"inventory", done->inventory.string()},
                                         {"replaced", done->replaced.string()}})
              << '\n';
    return kOk;
  }
  std::cout << fmt::format(
      "{}: restored as of {} ({} files). What was under way then is given up, unused permissions "
      "to wipe are taken back.\n",
      options.state.string(), done->made_at, done->files);
  if (!done->replaced.empty())
    std::cout << fmt::format("what was there before: {}\n", done->replaced.string());
  std::cout << fmt::format(
      "the inventory as it was: {}\n"
      "next: put it where MUSTER_INVENTORY says, build or copy the images (muster image list), "
      "revoke again what was revoked since, then muster plan (docs/backup.md)\n",
      done->inventory.string());
  return kOk;
}

int storeCheck(const app::Options& options) {
  const auto lines = app::checkStore(options);
  if (!lines) return report(lines.error());
  bool ok = true;
  auto all = nlohmann::json::array();
  for (const auto& line : *lines) {
    ok = ok && line.ok;
    all.push_back({{"what", line.what}, {"ok", line.ok}, {"text", line.text}});
    if (!options.json)
      std::cout << fmt::format("{:<18}{:<5}{}\n", line.what, line.ok ? "ok" : "BAD", line.text);
  }
  if (options.json) std::cout << jsonText(all) << '\n';
  return ok ? kOk : kFailed;
}

}  // namespace muster::cli
