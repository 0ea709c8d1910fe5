// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/site.h"
#include "cli/arguments/arguments.h"

namespace muster::cli {

void addSiteCommands(CLI::App& app, Invocation& call) {
  auto [init_command, init] =
      addCommand(app, "init", "Write a first inventory with comments; asks for what is not given",
                 call, initSite);
  auto& answers = init.answers;
  init_command.add_option("--name", answers.name, "Name of the cluster");
  init_command.add_option("--network", answers.network, "The provisioning network, 10.20.0.0/16");
  init_command.add_option("--controller", answers.controller,
                          "This host's address on it; default: the first");
  init_command.add_option("--dhcp", answers.dhcp, "authoritative, or proxy beside another server")
      ->check(CLI::IsMember({"authoritative", "proxy"}))
      ->capture_default_str();
  init_command.add_option("--range", answers.range,
                          "Addresses for machines that are not declared; default: the last ones");
  init_command.add_option("--bmc-network", answers.bmc_network,
                          "Where BMCs are looked for: a network or a range");
  init_command.add_option("--bmc-user", answers.bmc_user, "Their account")->capture_default_str();
  init_command
      .add_option("--bmc-password-file", answers.bmc_password_file,
                  "A file that holds their password")
      ->capture_default_str();
  init_command.add_option("--suite", answers.suite, "Debian suite of the first image")
      ->capture_default_str();
  init_command.add_option("--scheduler", answers.scheduler, "Who hands out jobs")
      ->check(CLI::IsMember({"none", "slurm"}))
      ->capture_default_str();
  auto [doctor_command, doctor_args] = addCommand(
      app, "doctor",
      "Say what is missing on this host, why it matters, and the command that mends it; exit 1 "
      "when something is bad",
      call, doctor);
  doctor_command.add_flag("--without-network", doctor_args.request.without_network,
                          "Send nothing: no DHCP request, no connection to BMCs");
  doctor_command.add_option("--access", doctor_args.access_file,
                            "The file that says which local users may do what; default: "
                            "/etc/muster/access.conf");
}

}  // namespace muster::cli
