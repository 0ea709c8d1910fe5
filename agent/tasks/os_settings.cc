// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/os_settings.h"

#include "agent/tasks/package_manager.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "wire/host_settings.h"
#include "wire/task_params.h"
#include "wire/task_reason.h"

#include <fnmatch.h>
#include <algorithm>
#include <sstream>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kToolLimit{60};
constexpr std::size_t kMaxFileBytes = wire::kMaxHostSettingsBytes;
constexpr std::size_t kDigestDigits = 12;

/// Where a driver's settings may lie, and how their names begin. Nothing else is ever written for a
/// controller.
struct Place {
  std::string_view folder, before, after;
  unsigned mode = 0644;
};
constexpr Place kPlaces[] = {{"etc/modprobe.d", "muster-", ".conf"},
                             {"etc/sysctl.d", "90-muster-", ".conf"},
                             {"etc/muster/kernel-args.d", "", ""},
                             {"etc/apt/preferences.d", "muster-", ".pref"},
                             {wire::kHostSettingsFolder, "", ".json", 0600}};

std::string fileOf(const Place& place, const std::string& driver) {
  return std::string(place.folder) + "/" + std::string(place.before) + driver +
         std::string(place.after);
}

std::string contentOf(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  auto text = io::readFile(path, kMaxFileBytes);
  return text ? *text : std::string();
}

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(" \t\n"));
  text.erase(text.find_last_not_of(" \t\n") + 1);
  return text;
}

std::vector<std::string> wordsOf(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

std::map<std::string, std::string> filesNow(const fs::path& root, const std::string& driver) {
  std::map<std::string, std::string> out;
  for (const auto& place : kPlaces) {
    std::error_code error;
    const auto file = fileOf(place, driver);
    if (fs::exists(root / file, error)) out[file] = contentOf(root / file);
  }
  return out;
}

fs::path underscored(const fs::path& folder, std::string module) {
  std::replace(module.begin(), module.end(), '-', '_');
  return folder / module;
}

/// What of the files is not in force; empty: everything is. Sysctls are not here: they need no
/// restart.
std::string missingInKernel(const fs::path& root, const std::map<std::string, std::string>& files,
                            const std::string& driver) {
  const auto running = wordsOf(contentOf(root / "proc/cmdline"));
  if (const auto args = files.find(fileOf(kPlaces[2], driver)); args != files.end())
    for (const auto& word : wordsOf(args->second))
      if (std::find(running.begin(), running.end(), word) == running.end())
        return "the kernel was started without " + word;
  const auto modprobe = files.find(fileOf(kPlaces[0], driver));
  if (modprobe == files.end()) return {};
  std::istringstream lines(modprobe->second);
  for (std::string line; std::getline(lines, line);) {
    const auto words = wordsOf(line);
    if (words.size() < 3 || words[0] != "options") continue;
    const auto parameters = underscored(root / "sys/module", words[1]) / "parameters";
    for (std::size_t i = 2; i < words.size(); ++i) {
      const auto equals = words[i].find('=');
      const auto key = words[i].substr(0, equals);
      std::error_code error;
      if (!fs::exists(parameters / key, error))
        continue;  // not loaded yet, or a parameter that does not show itself
      const auto now = trimmed(contentOf(parameters / key)), wanted = words[i].substr(equals + 1);
      const bool same =
          now == wanted || (now == "Y" && wanted == "1") || (now == "N" && wanted == "0");
      if (!same)
        return fmt::format("module {} runs with {}={}, wanted {}", words[1], key, now, wanted);
    }
  }
  return {};
}

std::string sysctlDrift(const fs::path& root, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    auto key = trimmed(line.substr(0, equals));
    std::replace(key.begin(), key.end(), '.', '/');
    if (wordsOf(contentOf(root / "proc/sys" / key)) != wordsOf(line.substr(equals + 1))) return key;
  }
  return {};
}

/// The boot menu reads one list (etc/muster/kernel-args.cfg; where /boot is a file system of its
/// own, there), made of all drivers' parts.
Result<void> writeKernelArguments(const fs::path& root) {
  std::vector<std::string> words;
  std::vector<fs::path> parts;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "etc/muster/kernel-args.d", error))
    parts.push_back(entry.path());
  std::sort(parts.begin(), parts.end());
  for (const auto& part : parts)
    for (const auto& word : wordsOf(contentOf(part)))
      if (word.find_first_of("\"'$\\`;{}") == std::string::npos) words.push_back(word);
  if (words.empty() && !fs::exists(root / "etc/muster/kernel-args.cfg", error)) return {};
  const auto text = fmt::format("set muster_args=\"{}\"\n", fmt::join(words, " "));
  TRY_OK(io::makeDirs(root / "etc/muster"));
  if (fs::is_directory(root / "boot/muster", error))
    TRY_OK(io::writeFileAtomic(root / "boot/muster/kernel-args.cfg", text));
  return io::writeFileAtomic(root / "etc/muster/kernel-args.cfg", text);
}

// ---- restarts: who ordered one leaves BOOT "\n" INTENT "\n" REASON in
// var/lib/muster/restarted-DRIVER until it has helped

constexpr std::string_view kMarkers = "var/lib/muster", kMarker = "restarted-";
constexpr double kRestartFraction = 0.95;
constexpr std::size_t kAttemptDigits = 2;

struct RestartMarker {
  std::string boot, intent, reason;
};

std::string bootOf(const fs::path& root) {
  return trimmed(contentOf(root / "proc/sys/kernel/random/boot_id"));
}

fs::path markerOf(const fs::path& root, const std::string& driver) {
  return root / kMarkers / (std::string(kMarker) + driver);
}

RestartMarker readMarker(const fs::path& file) {
  std::istringstream lines(contentOf(file));
  RestartMarker out;
  std::getline(lines, out.boot);
  std::getline(lines, out.intent);
  std::getline(lines, out.reason, '\0');
  return out;
}

/// All attempts of one action share it: INTENT, INTENT.2, … An intent ends with a token of at least
/// 12 characters that holds no dot.
std::string intentOf(const std::string& task_id) {
  const auto dot = task_id.rfind('.');
  const bool attempt = dot != std::string::npos && task_id.size() - dot <= kAttemptDigits + 1 &&
                       task_id.find_first_not_of("0123456789", dot + 1) == std::string::npos;
  return attempt ? task_id.substr(0, dot) : task_id;
}

/// Of restarts that were ordered in this boot, by whichever driver: one order serves them all.
std::vector<fs::path> markersOf(const fs::path& root, const std::string& boot) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / kMarkers, error))
    if (entry.path().filename().string().starts_with(kMarker) &&
        readMarker(entry.path()).boot == boot)
      out.push_back(entry.path());
  return out;
}

}  // namespace

Result<OsSettings> settingsOf(const wire::DriverParams& params) {
  const auto wrong = [](const char* key, const std::string& why) {
    return fail(ErrorCode::InvalidInput, fmt::format("params.{} {}", key, why));
  };
  for (const auto& [path, content] : params.files)
    if (std::none_of(std::begin(kPlaces), std::end(kPlaces),
                     [&](const Place& place) { return fileOf(place, params.name) == path; }))
      return wrong("files", "names a file that muster does not write: " + path);
  for (const auto& service : params.services)
    if (service.empty() || service.starts_with('-') || service.find('/') != std::string::npos)
      return wrong("services", "has no service's name: " + service);
  for (const auto& archive : params.archives) {
    if (archive.name.empty() ||
        archive.name.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
            std::string::npos)
      return wrong("archives", "has a name that is none");
    if (const auto key = io::fromBase64(archive.key_base64); !key || key->size() < 32)
      return wrong("archives", "has no key for " + archive.name);
  }
  return OsSettings{params.name,    params.files,  params.archives,       params.services,
                    params.modules, params.kernel, params.build == "dkms"};
}

Result<void> writeArchives(const TaskTools& tools, const OsSettings& settings) {
  const bool apt = packageManager(tools.root) == PackageManager::Apt;
  const auto sources = tools.root / (apt ? "etc/apt/sources.list.d" : "etc/yum.repos.d"),
             keys = tools.root / (apt ? "etc/apt/keyrings" : "etc/pki/rpm-gpg");
  const auto prefix = "muster-" + settings.driver + "-";
  std::error_code error;
  for (const auto& folder : {sources, keys})
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().filename().string().starts_with(prefix)) fs::remove(entry.path(), error);
  for (const auto& archive : settings.archives) {
    TRY(key, io::fromBase64(archive.key_base64));
    TRY_OK(io::makeDirs(sources));
    TRY_OK(io::makeDirs(keys));
    const auto source = prefix + archive.name + (apt ? ".sources" : ".repo");
    // The key's name follows what it is: apt wants .asc for armoured ones.
    const bool armoured = key.starts_with("-----BEGIN PGP");
    auto text = apt ? archive.apt_source : archive.dnf_source;
    const auto named = prefix + archive.name + ".key",
               stored = prefix + archive.name + (apt ? armoured ? ".asc" : ".gpg" : ".key");
    if (const auto at = text.find(named); at != std::string::npos)
      text.replace(at, named.size(), stored);
    TRY_OK(io::writeFileAtomic(keys / stored, key));
    TRY_OK(io::writeFileAtomic(sources / source, text));
  }
  return {};
}

Async<void> applySettings(TaskTools tools, OsSettings settings) {
  for (const auto& place : kPlaces) {
    const auto file = fileOf(place, settings.driver);
    const auto wanted = settings.files.find(file);
    std::error_code error;
    if (wanted == settings.files.end()) {
      fs::remove(tools.root / file, error);  // an earlier declaration's
      continue;
    }
    CO_TRY_OK(io::makeDirs((tools.root / file).parent_path()));
    CO_TRY_OK(io::writeFileAtomic(tools.root / file, wanted->second, place.mode));
  }
  CO_TRY_OK(writeKernelArguments(tools.root));
  if (const auto file = fileOf(kPlaces[1], settings.driver); settings.files.contains(file)) {
    std::vector<std::string> args = {"-q", "-p", (tools.root / file).string()};
    CO_TRY_OK(co_await runTool(tools, "sysctl", std::move(args), kToolLimit));
  }
  if (!settings.kernel.empty() && packageManager(tools.root) == PackageManager::Apt) {
    const auto release = trimmed(contentOf(tools.root / "proc/sys/kernel/osrelease"));
    std::vector<std::string> args = {"hold", "linux-image-" + release};
    // The pin itself is proven by the probe; a kernel of no package has nothing to hold.
    (void)co_await runTool(tools, "apt-mark", std::move(args), kToolLimit);
  }
  co_return Result<void>();
}

Async<void> startServices(TaskTools tools, OsSettings settings) {
  for (const auto& service : settings.services) {
    std::vector<std::string> args = {"enable", "--now", service};
    CO_TRY_OK(co_await runTool(tools, "systemctl", std::move(args), kToolLimit));
  }
  co_return Result<void>();
}

Task<std::string> restartReason(TaskTools tools, OsSettings settings) {
  if (auto missing = missingInKernel(tools.root, settings.files, settings.driver); !missing.empty())
    co_return missing;
  for (const auto& module : settings.modules) {
    const auto folder = underscored(tools.root / "sys/module", module);
    // The source's checksum tells two builds of one version apart.
    for (const auto& [file, field] :
         {std::pair("version", "version"), std::pair("srcversion", "srcversion")}) {
      const auto loaded = trimmed(contentOf(folder / file));
      std::vector<std::string> args = {"-F", field, module};
      const auto answer = co_await runTool(tools, "modinfo", std::move(args), kToolLimit);
      const auto installed = answer ? trimmed(*answer) : std::string();
      if (!loaded.empty() && !installed.empty() && loaded != installed)
        co_return fmt::format("module {} is loaded with {} {}, installed is {}", module, field,
                              loaded, installed);
    }
  }
  if (!settings.kernel.empty()) {
    const auto release = trimmed(contentOf(tools.root / "proc/sys/kernel/osrelease"));
    if (::fnmatch(settings.kernel.c_str(), release.c_str(), 0) != 0)
      co_return fmt::format("kernel {} runs, wanted {}", release, settings.kernel);
  }
  co_return std::string();
}

Async<void> restartFor(TaskTools tools, std::string driver, std::string reason,
                       TaskContextPtr context) {
  const auto boot = bootOf(tools.root);
  const auto marker = markerOf(tools.root, driver);
  const auto before = readMarker(marker);
  const auto intent = intentOf(context->id());
  // One restart for one reason and action. Whoever applies again has mended something, or finds the
  // setting lost long after it had worked.
  if (before.intent == intent && before.boot != boot && before.reason == reason)
    co_return fail(ErrorCode::Corrupt, "the machine was restarted for it, and still " + reason);
  const bool ordered = !markersOf(tools.root, boot).empty();
  CO_TRY_OK(io::makeDirs(marker.parent_path()));
  CO_TRY_OK(io::writeFileAtomic(marker, boot + "\n" + intent + "\n" + reason));
  context->progress(kRestartFraction, "restarting: " + reason, {wire::TaskReason::Restarting});
  std::error_code ignored;
  if (!ordered) {
    // In a moment, so that the controller hears of it and listens to the console.
    std::vector<std::string> args = {"--on-active=5", "--unit=muster-restart", "--collect",
                                     "systemctl", "reboot"};
    if (const auto given = co_await runTool(tools, "systemd-run", std::move(args), kToolLimit);
        !given) {
      fs::remove(marker, ignored);
      co_return fail(Error(given.error()).within("the restart could not be ordered"));
    }
  }
  co_await tools.clock.sleep(kRestartLimit);
  for (const auto& vain : markersOf(tools.root, boot)) fs::remove(vain, ignored);
  co_return fail(
      ErrorCode::Timeout,
      fmt::format("the restart that was ordered has not come within {} minutes (what holds it up: "
                  "`systemctl list-jobs` on the node); it is needed because {}",
                  kRestartLimit.count(), reason));
}

void forgetRestart(const fs::path& root, const std::string& driver) {
  const auto marker = markerOf(root, driver);
  std::error_code ignored;
  if (readMarker(marker).boot != bootOf(root))
    fs::remove(marker, ignored);  // else it stands for an order that is still to come
}

std::string settingsProbe(const fs::path& root, const std::string& driver) {
  const auto files = filesNow(root, driver);
  if (files.empty()) return {};
  auto digest = io::sha256Hex(jsonText(nlohmann::json(files))).substr(0, kDigestDigits);
  if (const auto sysctl = files.find(fileOf(kPlaces[1], driver)); sysctl != files.end())
    if (const auto key = sysctlDrift(root, sysctl->second); !key.empty())
      return digest + ":drift:" + key;
  return missingInKernel(root, files, driver).empty() ? digest : digest + ":restart";
}

}  // namespace muster::agent
