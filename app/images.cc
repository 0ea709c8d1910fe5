// SPDX-License-Identifier: Apache-2.0
#include "app/images.h"

#include "app/controller/controller.h"
#include "app/site/effective_cluster.h"
#include "base/io/regular_file.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/json.h"
#include "lifecycle/rollout/record.h"
#include "provision/images/image_bundle.h"
#include "provision/images/image_cache.h"
#include "provision/images/image_store.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

namespace muster::app {
namespace {

constexpr std::size_t kIntentsOfANode = 50;
constexpr std::size_t kMaxKeyBytes = 4096;

struct Images {
  inventory::Cluster cluster;
  Keys keys;
  std::unique_ptr<provision::ImageStore> store;
  std::vector<provision::KeptImage> kept;
};

Result<Images> open(const Options& options) {
  TRY(cluster, loadCluster(options));
  TRY(keys, Keys::loadOrCreate(options.state));
  auto images = openImages(options, keys, cluster);
  auto kept = provision::keptImages(options.cache, cluster);
  return Images{std::move(cluster), std::move(keys), std::move(images), std::move(kept)};
}

/// Nodes, journal and rollouts that may lie over the inventory: what they name is not removed.
Result<provision::Needs> needsOf(const Options& options, const inventory::Cluster& cluster) {
  provision::Needs needs;
  TRY(store, openStoreForWriting(options));
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

/// Of what the profiles say; of none: of most nodes.
std::set<Architecture> architecturesOf(const inventory::Cluster& cluster) {
  std::set<Architecture> all;
  for (const auto& [name, profile] : cluster.profiles) all.insert(profile.arch);
  if (all.empty()) all.insert(Architecture::Amd64);
  return all;
}

}  // namespace

Result<void> buildImages(const Options& options, const ImageBuildRequest& request,
                         ImageBuildListener& listener) {
  const std::string& only = request.only;
  if (!request.over.empty() && (only.empty() || only == "ramos"))
    return fail(ErrorCode::InvalidInput, "--over is for one image: name it");
  TRY(images, open(options));
  const auto log = [&listener](std::string_view text) { listener.onLine(text); };
  const bool with_ramos = only.empty() || only == "ramos";
  if (with_ramos) {
    for (const auto architecture : architecturesOf(images.cluster)) {
      TRY(ramos, images.store->buildRamOs(architecture, log));
      listener.onRamOs(ramos.kernel, ramos.initrd);
    }
  }
  bool found = with_ramos;
  for (const auto& [name, image] : images.cluster.images) {
    if (!only.empty() && only != name) continue;
    found = true;
    TRY(packed, images.store->build(image, log, request.over));
    listener.onImage(name, packed.digest, packed.pack);
  }
  if (!found)
    return fail(ErrorCode::NotFound, fmt::format("the inventory declares no image {}", only));
  return {};
}

Result<std::vector<std::string>> missingImages(const Options& options, const std::string& only) {
  TRY(images, open(options));
  std::vector<std::string> out;
  const bool with_ramos = only.empty() || only == "ramos";
  if (with_ramos)
    for (const auto architecture : architecturesOf(images.cluster)) {
      const auto found = images.store->findRamOs(architecture);
      if (!found || !*found) out = {"ramos"};
    }
  bool known = with_ramos;
  for (const auto& [name, image] : images.cluster.images) {
    if (!only.empty() && only != name) continue;
    known = true;
    const auto found = images.store->find(image);  // one that is damaged is built again
    if (!found || !*found) out.push_back(name);
  }
  if (!known)
    return fail(ErrorCode::NotFound, fmt::format("the inventory declares no image {}", only));
  return out;
}

Result<ImageList> listImages(const Options& options) {
  TRY(images, open(options));
  ImageList out{std::move(images.kept), {}, images.keys.images.id()};
  for (const auto& [name, image] : images.cluster.images)
    if (!std::ranges::any_of(out.images,
                             [&name](const auto& one) { return one.declared && one.name == name; }))
      out.not_built.push_back(name);
  return out;
}

Result<void> verifyImages(const Options& options, const std::string& name,
                          const std::function<void(const ImageCheck&)>& each) {
  TRY(images, open(options));
  auto which = images.kept;
  if (!name.empty()) {
    TRY(found, provision::findKept(images.kept, name));
    which = {found};
  }
  for (const auto& image : which)
    each({image, provision::faultsOf(image.folder, images.keys.images,
                                     std::max(1u, std::thread::hardware_concurrency()))});
  return {};
}

Result<provision::ImageDiff> compareImages(const Options& options, const std::string& from,
                                           const std::string& to) {
  TRY(images, open(options));
  TRY(a, provision::findKept(images.kept, from));
  TRY(b, provision::findKept(images.kept, to));
  std::string work = (options.cache / "diff-XXXXXX").string();
  if (::mkdtemp(work.data()) == nullptr)
    return fail(ErrorCode::Internal, "cannot make a folder in " + options.cache.string());
  // While it is held `image gc` leaves the folder alone; of a diff that was killed it is free.
  const auto lock = provision::BuildLock::take(work + ".lock", [] {});
  if (!lock) return fail(lock.error());
  auto diff = provision::diffImages(a.folder, b.folder, work);
  TRY_OK(provision::removeTree(work));
  std::error_code error;
  std::filesystem::remove(work + ".lock", error);
  return diff;
}

Result<CleanupPlan> planImageCleanup(const Options& options) {
  TRY(images, open(options));
  TRY(needs, needsOf(options, images.cluster));
  CleanupPlan out{provision::planClearing(images.kept, needs), ""};
  out.clearing.leftovers = provision::leftovers(options.cache);
  std::vector<provision::RamOs> all_present;
  for (const auto architecture : architecturesOf(images.cluster)) {
    const auto present =
        provision::presentRamOs(imageOptions(options, images.keys, images.cluster), architecture);
    if (present)
      all_present.push_back(*present);
    else
      out.ram_os_kept_because = present.error().str();
  }
  if (out.ram_os_kept_because.empty())
    out.clearing.ramos = provision::keptRamOs(options.cache, all_present);
  return out;
}

Result<void> cleanUpImages(const CleanupPlan& plan) { return provision::clear(plan.clearing); }

Result<CarriedImage> exportImage(const Options& options, const std::string& name,
                                 const std::filesystem::path& file) {
  TRY(images, open(options));
  TRY(found, provision::findKept(images.kept, name));
  TRY(manifest, provision::exportBundle(found.folder, images.keys.images, file));
  return CarriedImage{manifest.name, manifest.digest, images.keys.images.id(), true, false};
}

Result<CarriedImage> importImage(const Options& options, const ImageImport& request) {
  TRY(keys, Keys::loadOrCreate(options.state));
  provision::BundleImport import{options.cache, {}, request.allow_older};
  for (const auto& path : request.trusted_keys) {
    TRY(pem, io::readRegularFile(path, kMaxKeyBytes));
    import.trusted.push_back(std::move(pem));
  }
  TRY(imported, provision::importBundle(request.file, import, keys.images));
  return CarriedImage{imported.image.name, imported.image.digest, imported.signer,
                      imported.signer == keys.images.id(), imported.was_here};
}

Result<CarriedImage> signImage(const Options& options, const std::string& name) {
  TRY(images, open(options));
  TRY(found, provision::findKept(images.kept, name));
  TRY(image, provision::signAgain(found.folder, images.keys.images));
  return CarriedImage{image.name, image.digest, images.keys.images.id(), true, true};
}

}  // namespace muster::app
