// SPDX-License-Identifier: Apache-2.0
#include "monitor/rma.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "base/json_output.h"
#include "bmc/console/ansi_strip.h"
#include "bmc/console/boot_log.h"
#include "inventory/model/cluster.h"
#include "lifecycle/audit/history.h"
#include "lifecycle/model/certificate_keys.h"
#include "lifecycle/model/facet_table.h"
#include "lifecycle/model/json.h"
#include "lifecycle/model/quarantine.h"
#include "monitor/kernel_evidence.h"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace muster::monitor {
namespace {

using namespace lifecycle;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kFormat = "muster-rma/1";
constexpr std::chrono::seconds kTarLimit{300};
constexpr unsigned kArchiveMode = 0600;  ///< what consoles have shown is in it

std::string print(const json& value) { return jsonText(value, 2) + "\n"; }

template <class List>
std::string printAll(const List& list) {
  json out = json::array();
  for (const auto& item : list) out.push_back(lifecycle::toJson(item));
  return print(out);
}

/// What a vendor asks for first.
json serialsOf(const inventory::Node& node, const std::vector<Fact>& facts) {
  json out = {{"node", node.name.str()},
              {"declared_serial", node.serial},
              {"mac", node.mac.str()},
              {"rack", node.rack},
              {"unit", node.unit}};
  for (const auto& fact : facts)
    if (fact.facet.str().starts_with("hw.") ||
        lifecycle::stageOf(fact.facet) == lifecycle::Stage::Firmware)
      out["found"][fact.facet.str()] = fact.value;
  return out;
}

Async<std::string> eventLogOf(bmc::Bmc& bmc) {
  auto entries = co_await bmc.eventLog(kRmaLogEntries);
  json out = {{"bmc", bmc.address()}};
  if (!entries) {
    out["not_read"] = entries.error().str();
    co_return print(out);
  }
  out["logs"] = entries->logs;
  out["entries"] = json::array();
  for (const auto& entry : entries->entries) {
    out["entries"].push_back({{"id", entry.id},
                              {"created", entry.created},
                              {"severity", entry.severity},
                              {"message", entry.message},
                              {"log", entry.log}});
    if (!entry.resolution.empty()) out["entries"].back()["resolution"] = entry.resolution;
  }
  co_return print(out);
}

Async<std::string> systemOf(bmc::Bmc& bmc) {
  auto system = co_await bmc.system();
  if (!system) co_return print({{"bmc", bmc.address()}, {"not_read", system.error().str()}});
  co_return print({{"bmc", bmc.address()},
                   {"manufacturer", system->manufacturer},
                   {"model", system->model},
                   {"serial", system->serial},
                   {"uuid", system->uuid},
                   {"macs", system->macs},
                   {"power", system->power == bmc::PowerState::On    ? "on"
                             : system->power == bmc::PowerState::Off ? "off"
                                                                     : "unknown"}});
}

/// Whether the line names the node, and not only one whose name begins or ends alike.
bool speaksOf(std::string_view line, std::string_view node) {
  const auto goesOn = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  };
  for (auto at = line.find(node); at != std::string_view::npos; at = line.find(node, at + 1)) {
    const auto end = at + node.size();
    if ((at == 0 || !goesOn(line[at - 1])) && (end == line.size() || !goesOn(line[end])))
      return true;
  }
  return false;
}

/// Lines of muster's own log about the node.
std::string logOf(const fs::path& file, const std::string& node) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "muster.log cannot be read\n";
  const auto size = static_cast<std::size_t>(in.tellg());
  in.seekg(static_cast<std::streamoff>(size > kRmaLogBytes ? size - kRmaLogBytes : 0));
  std::string out;
  for (std::string line; std::getline(in, line);)
    if (speaksOf(line, node)) out += line + "\n";
  return out;
}

std::string certificateOf(Store& store, const NodeName& node) {
  const auto text = store.getValue(certificateKey(node));
  if (!text) return print({{"not_read", text.error().str()}});
  return *text ? **text : print({{"not_read", node.str() + " has no certificate"}});
}

/// Removed with the object, whatever happens in between.
struct TempTree {
  fs::path path;
  ~TempTree() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

/// What its consoles said in the boots that are kept, as text.
void addConsoles(const fs::path& state, const NodeName& node, std::vector<RmaFile>& files) {
  const bmc::BootLogArchive shelf(bmc::keptConsoles(state), node);
  const auto boots = shelf.boots();
  if (!boots) return files.push_back({"console.log", boots.error().str() + "\n"});
  for (const auto& boot : *boots) {
    std::string text = fmt::format("boot {}, begun {} ({})\n", boot.number,
                                   muster::toString(boot.began), boot.why);
    for (const auto& line :
         bmc::plainLines(shelf.read(boot.number).value_or(std::string()), kRmaConsoleLines))
      text += line + "\n";
    files.push_back({fmt::format("console-{}.log", boot.number), std::move(text)});
  }
}

}  // namespace

Async<std::vector<RmaFile>> gatherRma(const inventory::Cluster& cluster, Store& store,
                                      bmc::BmcFleet& bmcs, fs::path state, NodeName node,
                                      WallTime now) {
  const auto* declared = cluster.findNode(node);
  if (!declared)
    co_return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", node.str()));
  const Subject subject(node);
  CO_TRY(facts, store.factsOf(subject));
  CO_TRY(findings, store.findings(&subject));
  CO_TRY(events, store.lastEvents(kRmaEvents, &subject));
  CO_TRY(actions, store.intentsOf(subject, kRmaActions));
  CO_TRY(held, Quarantine(store).find(node));
  CO_TRY(health, store.getValue("health." + node.str()));
  CO_TRY(kernel_log, storedKernelLog(store, node));
  auto& bmc = bmcs.at(node);
  CO_TRY(system, co_await systemOf(bmc));
  CO_TRY(event_log, co_await eventLogOf(bmc));
  std::vector<RmaFile> files = {
      {"facts.json", printAll(facts)},
      {"findings.json", printAll(findings)},
      {"events.json", printAll(events)},
      {"actions.json", printAll(actions)},
      {"serials.json", print(serialsOf(*declared, facts))},
      {"certificate.json", certificateOf(store, node)},
      {"health-history.json", health ? *health + "\n" : print(json::object())},
      {"kernel.log", std::move(kernel_log)},
      {"bmc-system.json", std::move(system)},
      {"bmc-event-log.json", std::move(event_log)},
      {"muster.log", logOf(state / "muster.log", node.str())}};
  addConsoles(state, node, files);
  if (held)
    files.push_back({"quarantine.json", print({{"since", muster::toString(held->since)},
                                               {"by", held->by},
                                               {"reason", held->reason},
                                               {"evidence", held->evidence}})});
  std::sort(files.begin(), files.end(),
            [](const RmaFile& a, const RmaFile& b) { return a.name < b.name; });
  files.push_back(manifestOf(files, node, now));
  co_return files;
}

RmaFile manifestOf(const std::vector<RmaFile>& files, const NodeName& node, WallTime now) {
  json list = json::array();
  for (const auto& file : files)
    list.push_back({{"name", file.name},
                    {"size_bytes", file.content.size()},
                    {"sha256", io::sha256Hex(file.content)}});
  return {"manifest.json", print({{"format", kFormat},
                                  {"node", node.str()},
                                  {"made_at", muster::toString(now)},
                                  {"files", std::move(list)}})};
}

Result<void> checkRmaFile(const fs::path& out) {
  const auto name = out.filename().string();
  if (!name.ends_with(".tar.zst") && !name.ends_with(".tar.gz"))
    return fail(ErrorCode::InvalidInput,
                fmt::format("{}: the name ends in .tar.zst or .tar.gz", out.string()));
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(out, ignored)))  // a link to nowhere is there as well
    return fail(ErrorCode::Conflict, out.string() + " exists; remove it, or take another name");
  return {};
}

/// By the system's tar: sorted, without the owner and the times of this machine.
Result<void> writeRma(std::vector<RmaFile> files, const NodeName& node, WallTime now,
                      const fs::path& out) {
  TRY_OK(checkRmaFile(out));
  std::error_code ignored;
  auto pattern = (fs::temp_directory_path() / "muster-rma-XXXXXX").string();
  if (!::mkdtemp(pattern.data()))
    return fail(ErrorCode::Unavailable,
                "no temporary folder could be made in " + fs::temp_directory_path().string());
  const TempTree temp{pattern};
  const auto folder = "rma-" + node.str();
  TRY_OK(io::makeDirs(temp.path / folder));
  for (const auto& file : files)
    TRY_OK(io::writeFileAtomic(temp.path / folder / file.name, file.content));
  const auto part = fs::absolute(out.parent_path() / (".part-" + out.filename().string()));
  TRY_OK(io::writeFileAtomic(part, "", kArchiveMode));  // tar keeps its mode, whatever the umask
  io::Command tar;
  tar.program = "tar";
  tar.args = {
      "--create",
      "--auto-compress",
      "--sort=name",
      "--owner=0",
      "--group=0",
      "--numeric-owner",
      "--mode=u=rwX,go=rX",
      "--format=ustar",
      fmt::format("--mtime=@{}",
                  std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count()),
      "--directory=" + temp.path.string(),
      "--file=" + part.string(),
      folder};
  tar.timeout = kTarLimit;
  if (auto made = io::runChecked(tar); !made) {
    fs::remove(part, ignored);
    return fail(std::move(made).error());
  }
  std::error_code error;
  fs::rename(part, out, error);
  if (error)
    return fail(ErrorCode::Unavailable, fmt::format("{}: {}", out.string(), error.message()));
  return {};
}

}  // namespace muster::monitor
