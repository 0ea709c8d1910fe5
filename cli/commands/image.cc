// SPDX-License-Identifier: Apache-2.0
// image: building, listing, verifying, comparing, carrying and removing images.
#include "app/images.h"

#include "app/site/site_records.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/image.h"
#include "cli/commands/print_done.h"
#include "cli/commands/run.h"
#include "cli/view/console_progress.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

constexpr std::size_t kShownPaths = 40, kShownDigestChars = 12;

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
std::string shortOf(const std::string& digest) { return digest.substr(0, kShownDigestChars); }

/// A program is told each thing that was built on a line of its own, and what goes on meanwhile on
/// standard error.
class BuildPrinter final : public app::ImageBuildListener {
 public:
  explicit BuildPrinter(bool json) : json_(json) {}
  void onLine(std::string_view text) override {
    (json_ ? std::cerr : std::cout) << text << std::endl;
  }
  void onRamOs(const std::filesystem::path& kernel, const std::filesystem::path& initrd) override {
    if (json_)
      std::cout << jsonText(
                       nlohmann::json{{"kernel", kernel.string()}, {"initrd", initrd.string()}})
                << std::endl;
    else
      std::cout << fmt::format("RAM OS: {} and {}\n", kernel.string(), initrd.string());
  }
  void onImage(const std::string& name, const std::string& digest,
               const std::filesystem::path& pack) override {
    if (json_)
      std::cout << jsonText(
                       nlohmann::json{{"image", name}, {"digest", digest}, {"pack", pack.string()}})
                << std::endl;
    else
      std::cout << fmt::format("image {}@{}: {}\n", name, shortOf(digest), pack.string());
  }

 private:
  const bool json_;
};

/// In a column: this site where it is one of them, else the first, and how many more.
std::string signersText(const provision::KeptImage& image, const std::string& own) {
  if (image.signers.empty()) return "-";
  const bool is_own = std::ranges::find(image.signers, own) != image.signers.end();
  const std::string first = is_own ? "this site" : image.signers.front();
  const auto more = image.signers.size() - 1;
  return more == 0 ? first : fmt::format("{} +{}", first, more);
}

nlohmann::json asJson(const provision::KeptImage& image) {
  return {{"name", image.name},
          {"digest", image.digest},
          {"key", image.key},
          {"size_bytes", image.size_bytes},
          {"pack_bytes", image.pack_bytes},
          {"predecessor", image.predecessor},
          {"signed_by", image.signers},
          {"profiles", image.profiles},
          {"declared", image.declared},
          {"fault", image.fault}};
}

void printRow(const provision::KeptImage& image, const std::string& own) {
  const std::string used = image.profiles.empty()
                               ? (image.declared ? "no profile" : "not in this inventory")
                               : fmt::format("{}", fmt::join(image.profiles, ","));
  std::cout << fmt::format("{:<24}{:<14}{:>8.0f} MiB {:>7.0f} MiB  {:<20}{}\n", image.name,
                           shortOf(image.digest), mib(image.size_bytes), mib(image.pack_bytes),
                           signersText(image, own),
                           image.fault.empty() ? used : "not usable: " + image.fault);
}

bool confirmed(const std::string& question) {
  if (::isatty(STDIN_FILENO) != 1) return false;
  std::cout << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

void printPaths(const char* what, const std::vector<std::string>& paths) {
  if (paths.empty()) return;
  std::cout << fmt::format("{} {} files\n", what, paths.size());
  for (std::size_t i = 0; i < std::min(paths.size(), kShownPaths); ++i)
    std::cout << "  " << paths[i] << "\n";
  if (paths.size() > kShownPaths)
    std::cout << fmt::format("  … and {} more (--json names all)\n", paths.size() - kShownPaths);
}

void printDiff(const provision::ImageDiff& diff) {
  std::cout << fmt::format("{} of {} chunks differ: {:.1f} MiB to fetch\n", diff.changed_chunks,
                           diff.chunks, mib(diff.fetch_bytes));
  if (!diff.looked_inside) {
    std::cout << "not both hold an ext4 file system, so only chunks can be compared\n";
    return;
  }
  std::cout << fmt::format("kernels: {} -> {}\n", fmt::join(diff.kernels_from, ", "),
                           fmt::join(diff.kernels_to, ", "));
  for (const auto& package : diff.packages)
    std::cout << fmt::format("package {}: {} -> {}\n", package.name,
                             package.from.empty() ? "-" : package.from,
                             package.to.empty() ? "-" : package.to);
  printPaths("added", diff.added);
  printPaths("removed", diff.removed);
  printPaths("changed", diff.changed);
}

nlohmann::json asJson(const provision::ImageDiff& diff) {
  auto packages = nlohmann::json::array();
  for (const auto& package : diff.packages)
    packages.push_back({{"name", package.name}, {"from", package.from}, {"to", package.to}});
  return {{"chunks", diff.chunks},
          {"changed_chunks", diff.changed_chunks},
          {"fetch_bytes", diff.fetch_bytes},
          {"looked_inside", diff.looked_inside},
          {"added", diff.added},
          {"removed", diff.removed},
          {"changed", diff.changed},
          {"packages", packages},
          {"kernels_from", diff.kernels_from},
          {"kernels_to", diff.kernels_to}};
}

/// How many things go, and their bytes together.
std::pair<std::size_t, std::uint64_t> printClearing(const app::CleanupPlan& cleanup) {
  const auto& plan = cleanup.clearing;
  if (!cleanup.ram_os_kept_because.empty())
    std::cout << fmt::format("keeps   every RAM OS: {}\n", cleanup.ram_os_kept_because);
  std::size_t sets = 0;
  std::uint64_t bytes = plan.bytes;
  for (const auto& kept : plan.keep)
    std::cout << fmt::format("keeps   {}@{}: {}\n", kept.image.name, shortOf(kept.image.digest),
                             kept.why);
  for (const auto& set : plan.ramos)
    if (!set.why.empty())
      std::cout << fmt::format("keeps   {}: {}\n", set.folder.string(), set.why);
  for (const auto& image : plan.remove)
    std::cout << fmt::format("removes {}@{}: {:.0f} MiB, nobody names it\n", image.name,
                             shortOf(image.digest), mib(image.pack_bytes));
  for (const auto& set : plan.ramos) {
    if (!set.why.empty()) continue;
    std::cout << fmt::format("removes {}: {:.0f} MiB, of another version of muster\n",
                             set.folder.string(), mib(set.bytes));
    bytes += set.bytes;
    ++sets;
  }
  for (const auto& folder : plan.leftovers)
    std::cout << fmt::format("removes {}: left by a build that was killed\n", folder.string());
  return {plan.remove.size() + sets + plan.leftovers.size(), bytes};
}

}  // namespace

namespace {

/// Whoever serves the site builds it, by a process of its own: it outlives this terminal.
int buildByRun(const app::Options& options, app::SiteClient& site,
               const app::ImageBuildRequest& request) {
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followNewRun(options, site,
                      {.kind = lifecycle::RunKind::ImageBuild,
                       .apply = {"", false, options.command_line, ""},
                       .image_build = {request.only, request.over}},
                      progress);
}

}  // namespace

int imageBuild(const app::Options& options, const app::ImageBuildRequest& request) {
  const auto site = siteForRuns(options);
  if (!site) return report(site.error());
  if (*site) return buildByRun(options, **site, request);
  BuildPrinter printer(options.json);
  const auto built = app::buildImages(options, request, printer);
  return built ? int{kOk} : report(built.error());
}

int imageList(const app::Options& options) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto list = (*site)->records().images();
  if (!list) return report(list.error());
  if (options.json) {
    auto out = nlohmann::json::array();
    for (const auto& image : list->images) out.push_back(asJson(image));
    std::cout << jsonText(out, 2) << "\n";
    return kOk;
  }
  std::cout << fmt::format("{:<24}{:<14}{:>12} {:>11}  {:<20}{}\n", "image", "digest", "size",
                           "packed", "signed by", "used by");
  for (const auto& image : list->images) printRow(image, list->site_key_id);
  for (const auto& name : list->not_built)
    std::cout << fmt::format("{:<24}not built: muster image build {}\n", name, name);
  return kOk;
}

int imageVerify(const app::Options& options, const ImageArgs& args) {
  bool fine = true;
  auto all = nlohmann::json::array();
  const auto print = [&](const app::ImageCheck& check) {
    const auto& image = check.image;
    fine = fine && check.faults.empty();
    all.push_back({{"image", image.name}, {"digest", image.digest}, {"faults", check.faults}});
    if (options.json) return;
    std::cout << fmt::format(
        "{}@{}: {}\n", image.name, shortOf(image.digest),
        check.faults.empty() ? "every chunk and signature is right" : "damaged");
    for (const auto& fault : check.faults) std::cout << "  " << fault << "\n";
    if (!check.faults.empty())
      std::cout << (image.declared
                        ? fmt::format("  build it again: muster image build {}\n", image.name)
                        : "  import it again, or remove it: muster image gc\n");
  };
  const auto verified = app::verifyImages(options, args.name, print);
  if (!verified) return report(verified.error());
  printDone(options, all, "");
  return fine ? kOk : kFailed;
}

int imageDiff(const app::Options& options, const ImageDiffArgs& args) {
  const auto diff = app::compareImages(options, args.from, args.to);
  if (!diff) return report(diff.error());
  if (options.json)
    std::cout << jsonText(asJson(*diff), 2) << "\n";
  else
    printDiff(*diff);
  return diff->changed_chunks == 0 ? kOk : kFailed;
}

namespace {

/// A program is asked nothing: without --yes it is told what would go.
int gcAsJson(const app::Options& options, const app::CleanupPlan& cleanup, bool yes) {
  const auto& plan = cleanup.clearing;
  nlohmann::json out = {{"keep", nlohmann::json::array()},
                        {"remove", nlohmann::json::array()},
                        {"remove_ram_os", nlohmann::json::array()},
                        {"leftovers", nlohmann::json::array()},
                        {"removed", false}};
  for (const auto& kept : plan.keep)
    out["keep"].push_back(
        {{"image", kept.image.name}, {"digest", kept.image.digest}, {"why", kept.why}});
  for (const auto& image : plan.remove)
    out["remove"].push_back(
        {{"image", image.name}, {"digest", image.digest}, {"pack_bytes", image.pack_bytes}});
  for (const auto& set : plan.ramos)
    if (set.why.empty())
      out["remove_ram_os"].push_back({{"folder", set.folder.string()}, {"bytes", set.bytes}});
  for (const auto& folder : plan.leftovers) out["leftovers"].push_back(folder.string());
  const bool has_work =
      !out["remove"].empty() || !out["remove_ram_os"].empty() || !out["leftovers"].empty();
  if (yes && has_work) {
    if (const auto done = app::cleanUpImages(cleanup); !done) return report(done.error());
    out["removed"] = true;
  }
  printDone(options, out, "");
  return yes || !has_work ? kOk : kWorkLeft;
}

}  // namespace

int imageGc(const app::Options& options, const ImageGcArgs& args) {
  const auto plan = app::planImageCleanup(options);
  if (!plan) return report(plan.error());
  if (options.json) return gcAsJson(options, *plan, args.yes);
  const auto [count, bytes] = printClearing(*plan);
  if (count == 0) {
    std::cout << "Nothing to remove.\n";
    return kOk;
  }
  std::cout << "The cache is shared by all states of this machine; what only another of them uses "
               "must be built or imported again.\n";
  if (!args.yes && !confirmed(fmt::format("Remove these {}, {:.0f} MiB?", count, mib(bytes)))) {
    std::cout << "Nothing was removed (--yes removes without asking).\n";
    return kWorkLeft;
  }
  const auto done = app::cleanUpImages(*plan);
  return done ? int{kOk} : report(done.error());
}

int imageExport(const app::Options& options, const ImageExportArgs& args) {
  const auto image = app::exportImage(options, args.name, args.file);
  if (!image) return report(image.error());
  return printDone(
      options,
      {{"image", image->name},
       {"digest", image->digest},
       {"file", args.file.string()},
       {"signer", image->signer}},
      fmt::format("{}@{} is in {}, signed by this site ({}); `muster image key` prints the key "
                  "that its reader must trust\n",
                  image->name, shortOf(image->digest), args.file.string(), image->signer));
}

int imageImport(const app::Options& options, const app::ImageImport& request) {
  const auto image = app::importImage(options, request);
  if (!image) return report(image.error());
  return printDone(options,
                   {{"image", image->name},
                    {"digest", image->digest},
                    {"signer", image->signer},
                    {"signed_by_site", image->signed_by_site},
                    {"was_present", image->was_present}},
                   fmt::format("{}@{}: signed by {}{}\n", image->name, shortOf(image->digest),
                               image->signed_by_site ? "this site" : image->signer,
                               image->was_present ? "; it was here already" : ""));
}

int imageSign(const app::Options& options, const ImageArgs& args) {
  const auto image = app::signImage(options, args.name);
  if (!image) return report(image.error());
  return printDone(options,
                   {{"image", image->name}, {"digest", image->digest}, {"signer", image->signer}},
                   fmt::format("{}@{}: signed by this site ({})\n", image->name,
                               shortOf(image->digest), image->signer));
}

int imageKey(const app::Options& options) {
  const auto keys = app::Keys::loadOrCreate(options.state);
  if (!keys) return report(keys.error());
  return printDone(options, {{"public_pem", keys->images.public_pem}}, keys->images.public_pem);
}

}  // namespace muster::cli
