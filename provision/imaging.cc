// SPDX-License-Identifier: Apache-2.0
#include "provision/imaging.h"

#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "provision/agent_task.h"
#include "provision/facets.h"
#include "provision/images/packed_image.h"
#include "provision/inspection.h"
#include "provision/peers/peer_service.h"
#include "provision/storage/data_wipe.h"
#include "provision/storage/disk_params.h"
#include "wire/pack_index.h"
#include "wire/task_params.h"

#include <fmt/format.h>

namespace muster::provision {

using gateway::AgentState;
using lifecycle::ActContext;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Outcome;
using std::chrono::seconds;
using wire::Mode;
using wire::TaskKind;

namespace {

constexpr seconds kWriteImageLimit{3600};

/// Why a live image cannot run on a machine, as far as its hardware is known. The agent looks
/// again, at what is really free.
std::optional<std::string> tooLarge(const PackedImage& image,
                                    const std::optional<AgentState>& state) {
  const auto memory = state ? state->hardware.memory_bytes : 0;
  if (memory == 0 || memory >= image.size_bytes + wire::kLiveRoomBytes) return std::nullopt;
  return fmt::format(
      "the live image {} takes {} MiB of memory and its system {} MiB beside it, the machine has "
      "{} MiB; make the image smaller, or one of another kind",
      image.name, image.size_bytes >> 20, wire::kLiveRoomBytes >> 20, memory >> 20);
}

}  // namespace

std::string Imaging::params(const inventory::Node& node, const PackedImage& image,
                            bool wipe_allowed, bool data_allowed) const {
  const auto& profile = deps_.cluster.profileOf(node);
  const auto base = fmt::format("{}/images/{}", deps_.controller_http_url, image.digest);
  wire::WriteImageParams out;
  out.index_url = base + "/index.json";
  out.pack_url = base + "/pack";
  out.digest = image.digest;
  out.signing_public_pem = deps_.signing_public_pem;
  out.disk = profile.disk;
  out.wipe_allowed = wipe_allowed;
  out.data_wipe_allowed = data_allowed;
  out.hostname = node.name.str();
  out.kernel_args = profile.kernel_args;
  out.authorized_keys = deps_.cluster.images.at(profile.image).authorized_keys;
  out.boot = profile.boot == inventory::BootMode::Uefi ? "uefi" : "bios";
  out.secure_boot = profile.secure_boot;
  out.agent = {deps_.agent_urls.empty() ? deps_.controller_https_url : deps_.agent_urls,
               deps_.agent_ca_pem};
  auto plan = inventory::addressPlan(deps_.cluster.provisioning(), node.address);
  plan.image_mirrors.insert(
      plan.image_mirrors.end(), deps_.standby_urls.begin(),
      deps_.standby_urls.end());  // a writing goes on when the site changes hands
  addDiskParams(profile, node, plan.image_mirrors, out);
  if (deps_.peers) out.peers = deps_.peers->offer(node, image);
  // A fixed address: an installed node must come up while the controller is away.
  if (node.address.value() != 0) {
    out.address_cidr = fmt::format("{}/{}", node.address.str(), plan.prefix_bits);
    if (plan.gateway) out.gateway = plan.gateway->str();
    for (const auto& server : plan.dns) out.dns.push_back(server.str());
  }
  out.network = inventory::nodeNetworkOf(deps_.cluster, node);
  return toJson(out);
}

/// Before the node is restarted for nothing. The agent's own guard knows the tables of the disks,
/// and has the last word.
Async<std::optional<Blocked>> Imaging::dataInTheWay(const inventory::Node& node,
                                                    const AgentState& state, bool allowed) {
  const auto& profile = deps_.cluster.profileOf(node);
  if (allowed || !foreignData(profile, state.hardware)) co_return std::optional<Blocked>();
  auto looking = reader_.lookAgain(node.name);  // somebody may have emptied them
  CO_TRY(now, co_await std::move(looking));
  const auto held = foreignData(profile, now.hardware);
  if (!held) co_return std::optional<Blocked>();
  const Refusal refusal{fmt::format("{}: {}", node.name.str(), *held),
                        {wire::TaskReason::DataWipeDenied}};
  co_return Blocked{refusal.why + wipeAdviceFor(refusal, node.name)};
}

Async<Outcome> Imaging::install(const inventory::Node& node, ActContext& context) {
  const auto& wanted = deps_.cluster.profileOf(node).image;
  const auto image = images_.find(wanted);
  if (!image) co_return Outcome(Blocked{image.error().str()});
  if (image->live) {
    co_return co_await startLive(node, *image, context);
  }
  CO_TRY(note, TaskNote::parse(context.operation()));
  const auto state = deps_.agents.state(node.name);
  const bool written = note && note->done;
  if (written && note->data_allowed) CO_TRY_OK(deps_.end_data_wipe(node.name, context.intentId()));
  if (written || (state && state->mode == Mode::Disk && state->image_digest == image->digest)) {
    co_return co_await bootInstalled(node, *image);
  }
  bool data_allowed = note && note->data_allowed;
  if (state && !note) {
    const DataWipeOrder order{
        context.intentId(),
        orderWords(deps_.cluster.profileOf(node), node, image->digest, state->hardware),
        context.wipeAllowed(), deps_.clock.now()};
    CO_TRY(allowed, deps_.take_data_wipe(node.name, order));
    data_allowed = allowed;
    CO_TRY(refusal, co_await dataInTheWay(node, *state, allowed));
    if (refusal) co_return Outcome(*refusal);
  }
  if (deps_.peers) (void)deps_.peers->offer(node, *image);  // made ready while the machine boots
  CO_TRY(wait, co_await restarts_.intoRam(node.name,
                                          note ? Restarts::Work::Begun : Restarts::Work::None));
  if (wait) co_return Outcome(*wait);
  if (!state)
    co_return Outcome(
        Again{kLookAgain, "the hardware report of " + node.name.str()});  // it called just now

  const auto write_params = [&](bool wipe_allowed) {
    return params(node, *image, wipe_allowed, data_allowed);
  };
  auto stepped = co_await stepTask(deps_.agents, node.name, TaskKind::WriteImage, kWriteImageLimit,
                                   context, write_params, data_allowed);
  if (auto failing =
          stepped ? std::nullopt : diskFinding(node.name, stepped.error(), deps_.clock.now()))
    context.finding(std::move(*failing));
  CO_TRY(step, std::move(stepped));
  if (const auto* again = std::get_if<Again>(&step)) co_return Outcome(*again);
  if (const auto* refused = std::get_if<Refusal>(&step)) {
    if (auto kept = newMemberFinding(*refused, node.name, deps_.clock.now()))
      context.finding(std::move(*kept));
    co_return Outcome(Blocked{refused->why + wipeAdviceFor(*refused, node.name)});
  }
  for (auto& finding : sourceFindings(node.name, std::get<std::string>(step), deps_.clock.now(),
                                      deps_.standby_urls))
    context.finding(std::move(finding));
  if (deps_.peers) deps_.peers->dismiss(node.name);
  if (data_allowed) CO_TRY_OK(deps_.end_data_wipe(node.name, context.intentId()));
  context.progress(1, "written; starting from the disk");
  co_return co_await bootInstalled(node, *image);
}

/// The image is on the disk; it must now run, and be the one that was written.
Async<Outcome> Imaging::bootInstalled(const inventory::Node& node, const PackedImage& image) {
  CO_TRY(wait, co_await restarts_.intoDisk(node.name, Restarts::Work::Begun));
  if (wait) co_return Outcome(*wait);
  const auto state = deps_.agents.state(node.name);
  if (!state)
    co_return Outcome(
        Again{kLookAgain, "the installed system of " + node.name.str() + " to call again"});
  if (state->image_digest == image.digest) co_return Outcome(Done{});
  co_return fail(
      ErrorCode::Conflict,
      fmt::format("{} was imaged with {}, but booted {}; check the boot order of its firmware",
                  node.name.str(), imageValue(image.name, image),
                  images_.installedValue(state->image_digest)));
}

/// A live image is brought into the memory of a machine that runs its kernel, and takes over there:
/// no disk is written. Whatever becomes of the machine, doing it again is harmless.
Async<Outcome> Imaging::startLive(const inventory::Node& node, const PackedImage& image,
                                  ActContext& context) {
  const auto state = deps_.agents.state(node.name);
  if (state && state->mode == Mode::Disk && state->image_digest == image.digest) {
    co_await restarts_.arrived(node.name);
    if (deps_.peers) deps_.peers->dismiss(node.name);
    co_return Outcome(Done{});
  }
  if (const auto why = tooLarge(image, state))
    co_return Outcome(Blocked{fmt::format("{}: {}", node.name.str(), *why)});
  CO_TRY(note, TaskNote::parse(context.operation()));
  if (deps_.peers) (void)deps_.peers->offer(node, image);  // made ready while the machine boots
  CO_TRY(wait, co_await restarts_.intoRam(
                   node.name, note ? Restarts::Work::Begun : Restarts::Work::None, image.digest));
  if (wait) co_return Outcome(*wait);
  const auto start_params = [&](bool) { return params(node, image, false, false); };
  CO_TRY(step, co_await stepTask(deps_.agents, node.name, TaskKind::StartImage, kWriteImageLimit,
                                 context, start_params));
  if (const auto* again = std::get_if<Again>(&step)) co_return Outcome(*again);
  if (const auto* refused = std::get_if<Refusal>(&step)) co_return Outcome(Blocked{refused->why});
  if (!note || !note->done)
    for (auto& finding : sourceFindings(node.name, std::get<std::string>(step), deps_.clock.now(),
                                        deps_.standby_urls))
      context.finding(std::move(finding));
  co_return Outcome(Again{
      kLookAgain, fmt::format("the agent of the live system of {} to report", node.name.str())});
}

Async<Outcome> Imaging::run(const inventory::Node& node, ActContext& context) {
  if (const auto& profile = deps_.cluster.profileOf(node); deps_.cluster.isLive(profile)) {
    const auto image = images_.find(profile.image);
    if (!image) co_return Outcome(Blocked{image.error().str()});
    co_return co_await startLive(node, *image, context);
  }
  CO_TRY(wait, co_await restarts_.intoDisk(node.name, Restarts::Work::None));
  if (wait) co_return Outcome(*wait);
  co_return Outcome(Done{});
}

}  // namespace muster::provision
