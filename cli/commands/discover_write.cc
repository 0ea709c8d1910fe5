// SPDX-License-Identifier: Apache-2.0
// discover: deciding about machines, and writing them into the inventory.
#include "app/controller.h"
#include "app/state_folder.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "cli/commands/commands.h"
#include "cli/commands/discovery.h"
#include "discovery/adopt.h"
#include "discovery/classify.h"
#include "discovery/match.h"
#include "discovery/scanner.h"
#include "lab/lab.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

constexpr std::size_t kMaxListBytes = 16u << 20;

/// As given when it is there, else in the inventory's folder; absolute, as the loader names it.
std::filesystem::path csvPath(const std::filesystem::path& given,
                              const inventory::Cluster& cluster) {
  std::error_code ignored;
  const auto here = std::filesystem::absolute(given, ignored).lexically_normal();
  const auto beside = (cluster.folder / given).lexically_normal();
  for (const auto& group : cluster.node_files)
    if (group.path == here || group.path == beside) return group.path;
  return here;
}

std::string problems(const inventory::Loaded& loaded) {
  std::string out;
  for (const auto& one : loaded.diagnostics.all())
    if (one.severity == Severity::Error) out += "\n" + one.str();
  return out;
}

/// The text replaces the file only when the whole inventory is valid with it.
Result<void> replaceCsv(const app::Options& options, const std::filesystem::path& file,
                        const std::string& text) {
  inventory::LoadOptions with;
  with.texts[file] = text;
  with.rows_may_miss = true;
  const auto loaded = inventory::load(options.inventory, with);
  if (!loaded.cluster)
    return fail(ErrorCode::InvalidInput,
                fmt::format("the inventory would not be valid with these rows; {} is as it was:{}",
                            file.string(), problems(loaded)));
  std::error_code ignored;
  const auto mode =
      static_cast<unsigned>(std::filesystem::status(file, ignored).permissions()) & 0777u;
  return io::writeFileAtomic(file, text, mode);
}

}  // namespace

Result<std::unique_ptr<Discovery>> Discovery::open(const app::Options& options) {
  auto loaded = inventory::load(options.inventory, {.texts = {}, .rows_may_miss = true});
  if (!loaded.cluster) {
    loaded.diagnostics.sort();
    return fail(ErrorCode::InvalidInput, fmt::format("{} is not valid; nothing was done:{}",
                                                     options.inventory.string(), problems(loaded)));
  }
  auto home = std::make_unique<Discovery>();
  home->cluster = std::move(*loaded.cluster);
  TRY(found, lab::find(options.labFolder(home->cluster)));
  if (found) app::believeTwin(home->cluster);
  if (found) TRY_OK(lab::enter(*found));
  TRY_OK(app::prepareStateFolder(options.state));
  TRY(store, lifecycle::openStore(options.storeUrl()));
  home->store = std::move(store);
  home->bmcs = bmc::makeBmcFleet(home->cluster, *home->store, home->clock, home->workers);
  return home;
}

int discoverApprove(const app::Options& options, const DiscoverFlags& flags) {
  auto opened = Discovery::open(options);
  if (!opened) return report(opened.error());
  auto& home = **opened;
  std::map<std::string, std::string> globs;
  for (const auto& text : flags.matches) {
    const auto glob = discovery::parseMatch(text);
    if (!glob) return report(glob.error());
    globs.insert(*glob);
  }
  if (flags.words.empty() == globs.empty())
    return report(
        Error(ErrorCode::InvalidInput, "say which: name machines, or --match FIELD=GLOB"));
  std::string mac;
  if (!flags.mac.empty()) {
    const auto parsed = Mac::parse(flags.mac);
    if (!parsed) return report(parsed.error());
    mac = parsed->str();
  }
  if (!(flags.as.empty() && mac.empty()) && flags.words.size() != 1)
    return report(
        Error(ErrorCode::InvalidInput, "--as and --mac are for one machine, by its name"));
  std::vector<std::string> approved;
  const auto changed =
      discovery::updateRegistry(*home.store, [&](discovery::MachineRegistry& book) -> Result<void> {
        approved.clear();
        const discovery::Approval approval{flags.profile, flags.rack, flags.as, mac,
                                           app::userName()};
        std::vector<std::size_t> chosen;
        for (const auto& word : flags.words) {
          TRY(at, book.find(word));
          chosen.push_back(at);
        }
        for (std::size_t i = 0; i < book.machines().size() && !globs.empty(); ++i)
          if (matches(book.machines()[i], globs) &&
              !discovery::nodeOf(book.machines()[i], home.cluster))
            chosen.push_back(i);
        if (chosen.empty())
          return fail(ErrorCode::NotFound, "no machine that is not a node yet matches");
        for (const auto at : chosen) {
          TRY_OK(discovery::approve(book.machines()[at], approval, home.cluster));
          approved.push_back(book.machines()[at].id());
        }
        return {};
      });
  if (!changed) return report(changed.error());
  if (options.json)
    std::cout << jsonText(nlohmann::json{{"approved", approved}}, 2) << "\n";
  else
    std::cout << fmt::format("approved: {}\nmuster discover --write FILE.csv writes their rows\n",
                             fmt::join(approved, " "));
  return kOk;
}

int discoverForget(const app::Options& options, const DiscoverFlags& flags) {
  auto home = Discovery::open(options);
  if (!home) return report(home.error());
  if (flags.all) {
    const auto gone = (*home)->store->putValue("discover.machines", "");
    return gone ? kOk : report(gone.error());
  }
  const auto changed = discovery::updateRegistry(
      *(*home)->store, [&](discovery::MachineRegistry& book) -> Result<void> {
        for (const auto& word : flags.words) {
          TRY_OK(book.find(word));
          book.forget(word);
        }
        return {};
      });
  return changed ? kOk : report(changed.error());
}

int discoverWrite(const app::Options& options, const DiscoverFlags& flags) {
  if (flags.write.empty())
    return report(Error(ErrorCode::InvalidInput, "--adopt needs --write FILE.csv"));
  auto opened = Discovery::open(options);
  if (!opened) return report(opened.error());
  auto& home = **opened;
  const auto file = csvPath(flags.write, home.cluster);
  std::vector<discovery::ListedRow> list;
  if (!flags.adopt.empty()) {
    const auto text = io::readFile(flags.adopt, kMaxListBytes);
    if (!text) return report(text.error());
    auto parsed = discovery::parseList(*text, flags.adopt.string());
    if (!parsed) return report(parsed.error());
    list = std::move(*parsed);
  }
  discovery::Rows rows;
  std::vector<std::string> unseen;
  const auto changed =
      discovery::updateRegistry(*home.store, [&](discovery::MachineRegistry& book) -> Result<void> {
        discovery::applyRules(book, home.cluster);
        std::map<std::string, discovery::CsvFields> extras;
        TRY(missing, discovery::applyList(book, list, flags.adopt.string(),
                                          {flags.profile, flags.rack, "", "", app::userName()},
                                          home.cluster, &extras));
        unseen = std::move(missing);
        TRY(made, discovery::rowsFor(book, home.cluster, file, extras));
        rows = std::move(made);
        return {};
      });
  if (!changed) return report(changed.error());
  if (!rows.rows.empty()) {
    const auto before = io::readFile(file);
    if (!before) return report(before.error());
    const bool pins_needed = home.cluster.bmc_trust == inventory::BmcTrustPolicy::Declared;
    const auto after = discovery::withRows(
        *before, file.string(), rows.rows,
        pins_needed ? std::vector<std::string>{"bmc_pin"} : std::vector<std::string>());
    if (!after) return report(after.error());
    if (auto replaced = replaceCsv(options, file, *after); !replaced)
      return report(replaced.error());
    for (const auto& machine : changed->machines())
      for (const auto& [bmc, node] : rows.adopted)
        if (machine.bmc == bmc && !machine.credential.empty())
          if (auto kept =
                  bmc::inheritPin(*home.store, discovery::undeclaredBmcKey(bmc, machine.credential),
                                  NodeName(node));
              !kept)
            return report(kept.error());
  }
  if (options.json) {
    nlohmann::json out{{"file", file.string()},
                       {"rows", rows.rows},
                       {"left_out", rows.left_out},
                       {"not_seen", unseen}};
    std::cout << jsonText(out, 2) << "\n";
  } else {
    for (const auto& row : rows.rows)
      std::cout << fmt::format("{}  {}  {}\n", row.at("name"), row.at("bmc"), row.at("mac"));
    for (const auto& line : unseen) std::cerr << "muster: " << line << "\n";
    for (const auto& line : rows.left_out) std::cerr << "muster: left out " << line << "\n";
    std::cout << fmt::format("{} row{} added to {}\n", rows.rows.size(),
                             rows.rows.size() == 1 ? "" : "s", file.string());
  }
  return unseen.empty() && rows.left_out.empty() ? kOk : kWorkLeft;
}

}  // namespace muster::cli
