// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/examples.h"

#include <CLI/CLI.hpp>

#include <array>
#include <sstream>
#include <string>

namespace muster::cli {
namespace {

constexpr std::array kExamples{
    Example{"init",
            "muster init --name hall-2 --network 10.20.0.0/16 --bmc-network 10.20.250.0/24"},
    Example{"doctor", "muster doctor"},
    Example{"inventory check", "muster inventory check"},
    Example{"inventory show", "muster inventory show --json"},
    Example{"inventory import netbox",
            "muster inventory import netbox --url https://netbox.example.com --token-file "
            "secrets/netbox --site hall-2 --tag gpu"},
    Example{"inventory schema", "muster inventory schema"},
    Example{"plan", "muster plan --nodes gpu[001-008] --out change.json"},
    Example{"apply", "muster apply change.json"},
    Example{"status", "muster status --state failed --rack r12"},
    Example{"why", "muster why gpu017"},
    Example{"findings", "muster findings gpu[001-128]"},
    Example{"events", "muster events gpu017 --limit 50"},
    Example{"history", "muster history gpu017"},
    Example{"wipe", "muster wipe gpu017 --reason \"new image\""},
    Example{"erase", "muster erase gpu017 --confirm gpu017 --reason \"goes back to the vendor\""},
    Example{"audit verify", "muster audit verify"},
    Example{"audit head", "muster audit head"},
    Example{"audit archive", "muster audit archive --before 2026-01-31 --to audit-2025.jsonl"},
    Example{"key list", "muster key list"},
    Example{"key show", "muster key show images"},
    Example{"key rotate", "muster key rotate images"},
    Example{"cert show", "muster cert show gpu017"},
    Example{"cert verify", "muster cert verify"},
    Example{"cert revoke", "muster cert revoke gpu017 --reason \"GPU 3 was replaced\""},
    Example{"cert export", "muster cert export"},
    Example{"cert override", "muster cert override gpu017 --reason \"agreed with the vendor\""},
    Example{"run list", "muster run list --open"},
    Example{"run show", "muster run show r-1f2e3d4c5b6a"},
    Example{"run follow", "muster run follow r-1f2e3d4c5b6a"},
    Example{"run cancel", "muster run cancel r-1f2e3d4c5b6a"},
    Example{"run pause", "muster run pause r-1f2e3d4c5b6a"},
    Example{"run resume", "muster run resume r-1f2e3d4c5b6a"},
    Example{"run approve", "muster run approve r-1f2e3d4c5b6a"},
    Example{"run override", "muster run override r-1f2e3d4c5b6a --reason overheating"},
    Example{"run acknowledge", "muster run acknowledge r-1f2e3d4c5b6a"},
    Example{"rollout start",
            "muster rollout start --driver nvidia-575 --nodes gpu[001-128] --dry-run"},
    Example{"rollout status", "muster rollout status"},
    Example{"rollout pause", "muster rollout pause"},
    Example{"rollout abort", "muster rollout abort"},
    Example{"rollout resume", "muster rollout resume"},
    Example{"rollout rollback", "muster rollout rollback"},
    Example{"monitor", "muster monitor"},
    Example{"server", "muster server --listen 10.20.0.1:9443"},
    Example{"ui", "muster ui"},
    Example{"login", "muster login --server https://ctl1:9443 --server-ca ca.crt"},
    Example{"logout", "muster logout --server https://ctl1:9443 --server-ca ca.crt"},
    Example{"token create", "muster token create wall --role viewer --pools batch --hours 720"},
    Example{"token list", "muster token list"},
    Example{"token revoke", "muster token revoke ci"},
    Example{"notify list", "muster notify list"},
    Example{"notify test", "muster notify test oncall"},
    Example{"notify secret", "muster notify secret > secrets/oncall"},
    Example{"quarantine list", "muster quarantine list"},
    Example{"quarantine add", "muster quarantine add gpu017 --reason \"GPU 3 falls off the bus\""},
    Example{"quarantine remove", "muster quarantine remove gpu017 --reason \"GPU 3 was replaced\""},
    Example{"pool holds", "muster pool holds"},
    Example{"pool override",
            "muster pool override gpu017 --reason \"agreed with anna: firmware first\""},
    Example{"console", "muster console gpu017 --last"},
    Example{"rma", "muster rma gpu017 --out gpu017.tar.zst"},
    Example{"backup",
            "muster backup /srv/backup/site.muster --passphrase-file /etc/muster/secrets/backup"},
    Example{"restore", "muster restore /srv/backup/site.muster"},
    Example{"store check", "muster store check"},
    Example{"completion bash", "muster completion bash > /etc/bash_completion.d/muster"},
    Example{"completion zsh", "muster completion zsh > \"${fpath[1]}/_muster\""},
    Example{"completion fish", "muster completion fish > ~/.config/fish/completions/muster.fish"},
    Example{"completion words", "muster completion words nodes"},
    Example{"man", "muster man rollout | man -l -"},
    Example{"bmc show", "muster bmc show"},
    Example{"bmc power",
            "muster bmc power gpu017 restart --reason \"hangs in POST\" --confirm gpu017"},
    Example{"bmc boot", "muster bmc boot gpu017 pxe"},
    Example{"bmc boot-order", "muster bmc boot-order gpu017"},
    Example{"bmc media", "muster bmc media gpu017"},
    Example{"bmc locate", "muster bmc locate gpu017 on"},
    Example{"bmc rotate", "muster bmc rotate gpu[001-128]"},
    Example{"bmc certificate", "muster bmc certificate gpu[001-128]"},
    Example{"bmc trust reset", "muster bmc trust reset gpu017"},
    Example{"bmc auth reset", "muster bmc auth reset gpu017"},
    Example{"bmc forget-tpm", "muster bmc forget-tpm gpu017"},
    Example{"bmc forget-key", "muster bmc forget-key gpu017"},
    Example{"bmc revoke-key", "muster bmc revoke-key gpu017"},
    Example{"bmc approve-key", "muster bmc approve-key gpu017 0123456789abcdef0123456789abcdef"},
    Example{"image build", "muster image build noble-gpu"},
    Example{"image list", "muster image list"},
    Example{"image verify", "muster image verify"},
    Example{"image diff", "muster image diff noble-1 noble-2"},
    Example{"image gc", "muster image gc"},
    Example{"image export", "muster image export noble-gpu noble-gpu.pack"},
    Example{"image import", "muster image import noble-gpu.pack"},
    Example{"image sign", "muster image sign noble-gpu"},
    Example{"image key", "muster image key"},
    Example{"fabric show", "muster fabric show --device gpu017"},
    Example{"fabric diff", "muster fabric diff"},
    Example{"fabric plan", "muster fabric plan"},
    Example{"fabric plot", "muster fabric plot"},
    Example{"fabric rehearse", "muster fabric rehearse"},
    Example{"fabric qos-check", "muster fabric qos-check --config leaf1.cfg"},
    Example{"fabric health", "muster fabric health"},
    Example{"fabric render", "muster fabric render --out fabric"},
    Example{"validate run", "muster validate run --nodes gpu[001-016]"},
    Example{"validate isolate", "muster validate isolate"},
    Example{"validate report", "muster validate report"},
    Example{"validate checks", "muster validate checks"},
    Example{"validate baseline", "muster validate baseline"},
    Example{"discover scan", "muster discover scan 10.20.250.0/24"},
    Example{"discover watch", "muster discover watch"},
    Example{"discover approve", "muster discover approve SN00017"},
    Example{"discover forget", "muster discover forget SN00017"},
    Example{"firmware plan", "muster firmware plan"},
    Example{"firmware sign", "muster firmware sign hgx-h100-2026.1"},
    Example{"firmware retry", "muster firmware retry gpu017 --reason \"the BMC was reset\""},
    Example{"lab up", "muster lab up"},
    Example{"lab down", "muster lab down"},
    Example{"lab status", "muster lab status"},
    Example{"lab console", "muster lab console gpu001"},
    Example{"lab fault", "muster lab fault gpu001 --update-fault cut-upload"},
    Example{"lab packages", "muster lab packages ."},
    Example{"lab exec", "muster lab exec sinfo"}};

}  // namespace

std::span<const Example> examples() { return kExamples; }

void addExamples(CLI::App& app) {
  for (const auto& example : kExamples) {
    CLI::App* command = &app;
    std::istringstream words{std::string(example.command)};
    for (std::string word; command && words >> word;) {
      const auto found = command->get_subcommands(
          [&word](const CLI::App* below) { return below->get_name() == word; });
      command = found.empty() ? nullptr : found.front();
    }
    if (command) command->footer("Example: " + std::string(example.line));
  }
}

}  // namespace muster::cli
