// SPDX-License-Identifier: Apache-2.0
#include "base/json_output.h"
#include "cli/commands/commands.h"

#include "app/controller.h"
#include "lifecycle/model/json.h"
#include "lifecycle/rollout/record.h"
#include "provision/images/image_bundle.h"
#include "provision/images/image_cache.h"
#include "provision/images/image_diff.h"
#include "provision/images/image_library.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <iostream>
#include <set>
#include <thread>

namespace muster::cli {
namespace {

constexpr std::size_t kShownPaths = 40, kShownDigestChars = 12, kIntentsOfANode = 50;
constexpr std::size_t kMaxKeyBytes = 4096;

void say(std::string_view words) { std::cout << words << std::endl; }

struct Opened {
  inventory::Cluster cluster;
  app::Keys keys;
  std::unique_ptr<provision::ImageStore> images;
  std::vector<provision::KeptImage> kept;
};

Result<Opened> open(const app::Options& options) {
  TRY(cluster, app::loadCluster(options));
  TRY(keys, app::Keys::loadOrCreate(options.state));
  auto images = app::openImages(options, keys);
  auto kept = provision::keptImages(options.cache, cluster);
  return Opened{std::move(cluster), std::move(keys), std::move(images), std::move(kept)};
}

int exitOf(const Result<int>& result) { return result ? *result : report(result.error()); }

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
std::string shortOf(const std::string& digest) { return digest.substr(0, kShownDigestChars); }

Result<void> buildAll(Opened& opened, const std::string& only) {
  if (only.empty() || only == "ramos") {
    TRY(ramos, opened.images->buildRamOs(say));
    std::cout << fmt::format("RAM OS: {} and {}\n", ramos.kernel.string(), ramos.initrd.string());
  }
  bool found = only.empty() || only == "ramos";
  for (const auto& [name, image] : opened.cluster.images) {
    if (!only.empty() && only != name) continue;
    found = true;
    TRY(packed, opened.images->build(image, say));
    std::cout << fmt::format("image {}@{}: {}\n", name, shortOf(packed.digest),
                             packed.pack.string());
  }
  if (!found)
    return fail(ErrorCode::NotFound, fmt::format("the inventory declares no image {}", only));
  return {};
}

std::string signersText(const provision::KeptImage& image, const std::string& own) {
  std::vector<std::string> words;
  for (const auto& signer : image.signers) words.push_back(signer == own ? "this site" : signer);
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ","));
}

nlohmann::json asJson(const provision::KeptImage& image) {
  return {{"name", image.name},
          {"digest", image.digest},
          {"key", image.key},
          {"size_bytes", image.size_bytes},
          {"pack_bytes", image.pack_bytes},
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

/// Nodes, journal and rollouts that may lie over the inventory: what they name is not cleared away.
Result<provision::Needs> needsOf(const app::Options& options, const inventory::Cluster& cluster) {
  provision::Needs needs;
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY(open_intents, store->openIntents());
  for (const auto& intent : open_intents)
    provision::addNeeds(lifecycle::canonical(lifecycle::toJson(intent)),
                        "work that is under way names it", needs);
  TRY(rollouts, lifecycle::RolloutRecord::list(*store));
  for (const auto& id : rollouts) {
    TRY(frozen, store->getValue("rollout." + id + ".frozen"));
    if (frozen) provision::addNeeds(*frozen, "rollout " + id + " names it", needs);
  }
  // Nodes that the inventory has lost count too: they may still run.
  std::set<lifecycle::Subject> subjects;
  for (const auto& node : cluster.nodes) subjects.insert(lifecycle::Subject(node.name));
  TRY(facts, store->facts());
  for (const auto& [facet, fact] : facts.all()) {
    subjects.insert(facet.subject);
    provision::addNeeds(fact.value, "node " + facet.subject.str() + " has it", needs);
  }
  for (const auto& subject : subjects) {
    TRY(intents, store->intentsOf(subject, kIntentsOfANode));
    for (const auto& intent : intents)
      provision::addNeeds(lifecycle::canonical(lifecycle::toJson(intent)),
                          "the journal of " + subject.str() + " names it", needs);
  }
  return needs;
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

Result<int> diffOf(const app::Options& options, const std::string& from, const std::string& to) {
  TRY(opened, open(options));
  TRY(a, provision::findKept(opened.kept, from));
  TRY(b, provision::findKept(opened.kept, to));
  std::string work = (options.cache / "diff-XXXXXX").string();
  if (::mkdtemp(work.data()) == nullptr)
    return fail(ErrorCode::Internal, "cannot make a folder in " + options.cache.string());
  const auto diff = provision::diffImages(a.folder, b.folder, work);
  TRY_OK(provision::removeTree(work));
  if (!diff) return fail(diff.error());
  if (options.json)
    std::cout << jsonText(asJson(*diff), 2) << "\n";
  else
    printDiff(*diff);
  return diff->changed_chunks == 0 ? int{kOk} : int{kFailed};
}

Result<provision::Clearing> clearingOf(const app::Options& options) {
  TRY(opened, open(options));
  TRY(needs, needsOf(options, opened.cluster));
  auto plan = provision::planClearing(opened.kept, needs);
  plan.leftovers = provision::leftovers(options.cache);
  if (const auto present = provision::presentRamOs(app::imageOptions(options, opened.keys)))
    plan.ramos = provision::keptRamOs(options.cache, *present);
  else
    std::cout << fmt::format("keeps   every RAM OS: {}\n",
                             present.error().str());  // which one is in use cannot be told
  return plan;
}

/// How many things go, and their bytes together.
std::pair<std::size_t, std::uint64_t> printClearing(const provision::Clearing& plan) {
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

Result<int> clearOf(const app::Options& options, bool yes) {
  TRY(plan, clearingOf(options));
  const auto [count, bytes] = printClearing(plan);
  if (count == 0) {
    std::cout << "Nothing to remove.\n";
    return int{kOk};
  }
  std::cout << "The cache is shared by all states of this machine; what only another of them uses "
               "must be built or imported again.\n";
  if (!yes && !confirmed(fmt::format("Remove these {}, {:.0f} MiB?", count, mib(bytes)))) {
    std::cout << "Nothing was removed (--yes removes without asking).\n";
    return int{kWorkLeft};
  }
  TRY_OK(provision::clear(plan));
  return int{kOk};
}

}  // namespace

int imageBuild(const app::Options& options, const std::string& name) {
  auto opened = open(options);
  if (!opened) return report(opened.error());
  const auto built = buildAll(*opened, name);
  return built ? int{kOk} : report(built.error());
}

int imageList(const app::Options& options) {
  const auto opened = open(options);
  if (!opened) return report(opened.error());
  if (options.json) {
    auto out = nlohmann::json::array();
    for (const auto& image : opened->kept) out.push_back(asJson(image));
    std::cout << jsonText(out, 2) << "\n";
    return kOk;
  }
  std::cout << fmt::format("{:<24}{:<14}{:>12} {:>11}  {:<20}{}\n", "image", "digest", "size",
                           "packed", "signed by", "used by");
  for (const auto& image : opened->kept) printRow(image, opened->keys.images.id());
  for (const auto& [name, image] : opened->cluster.images) {
    const bool kept = std::ranges::any_of(
        opened->kept, [&name](const auto& one) { return one.declared && one.name == name; });
    if (!kept) std::cout << fmt::format("{:<24}not built: muster image build {}\n", name, name);
  }
  return kOk;
}

int imageVerify(const app::Options& options, const std::string& name) {
  const auto opened = open(options);
  if (!opened) return report(opened.error());
  std::vector<provision::KeptImage> which = opened->kept;
  if (!name.empty()) {
    const auto found = provision::findKept(opened->kept, name);
    if (!found) return report(found.error());
    which = {*found};
  }
  bool fine = true;
  for (const auto& image : which) {
    const auto faults = provision::faultsOf(image.folder, opened->keys.images,
                                            std::max(1u, std::thread::hardware_concurrency()));
    std::cout << fmt::format("{}@{}: {}\n", image.name, shortOf(image.digest),
                             faults.empty() ? "every chunk and signature is right" : "damaged");
    for (const auto& fault : faults) std::cout << "  " << fault << "\n";
    if (!faults.empty())
      std::cout << (image.declared
                        ? fmt::format("  make it anew: muster image build {}\n", image.name)
                        : "  import it again, or remove it: muster image gc\n");
    fine = fine && faults.empty();
  }
  return fine ? kOk : kFailed;
}

int imageDiff(const app::Options& options, const std::string& from, const std::string& to) {
  return exitOf(diffOf(options, from, to));
}
int imageGc(const app::Options& options, bool yes) { return exitOf(clearOf(options, yes)); }

int imageExport(const app::Options& options, const std::string& name,
                const std::filesystem::path& file) {
  const auto opened = open(options);
  if (!opened) return report(opened.error());
  const auto found = provision::findKept(opened->kept, name);
  if (!found) return report(found.error());
  const auto manifest = provision::exportBundle(found->folder, opened->keys.images, file);
  if (!manifest) return report(manifest.error());
  std::cout << fmt::format(
      "{}@{} is in {}, signed by this site ({}); `muster image key` prints the key that its reader "
      "must trust\n",
      manifest->name, shortOf(manifest->digest), file.string(), opened->keys.images.id());
  return kOk;
}

int imageImport(const app::Options& options, const std::filesystem::path& file,
                const std::vector<std::filesystem::path>& trust, bool older) {
  const auto keys = app::Keys::loadOrCreate(options.state);
  if (!keys) return report(keys.error());
  provision::BundleImport import{options.cache, {}, older};
  for (const auto& path : trust) {
    const auto pem = io::readFile(path, kMaxKeyBytes);
    if (!pem) return report(pem.error());
    import.trusted.push_back(*pem);
  }
  const auto imported = provision::importBundle(file, import, keys->images);
  if (!imported) return report(imported.error());
  std::cout << fmt::format("{}@{}: signed by {}{}\n", imported->image.name,
                           shortOf(imported->image.digest),
                           imported->signer == keys->images.id() ? "this site" : imported->signer,
                           imported->was_here ? "; it was here already" : "");
  return kOk;
}

int imageSign(const app::Options& options, const std::string& name) {
  const auto opened = open(options);
  if (!opened) return report(opened.error());
  const auto found = provision::findKept(opened->kept, name);
  if (!found) return report(found.error());
  const auto image = provision::signAgain(found->folder, opened->keys.images);
  if (!image) return report(image.error());
  std::cout << fmt::format("{}@{}: signed by this site ({})\n", image->name, shortOf(image->digest),
                           opened->keys.images.id());
  return kOk;
}

int imageKey(const app::Options& options) {
  const auto keys = app::Keys::loadOrCreate(options.state);
  if (!keys) return report(keys.error());
  std::cout << keys->images.public_pem;
  return kOk;
}

}  // namespace muster::cli
