package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/fleet/plan"
)

func newCreate() *cobra.Command {
	var f fleetFlags
	var zones []string
	var accept bool
	var access access
	cmd := &cobra.Command{Use: "create", Short: "Make a cluster: its record, and the VMs and disks of its masters",
		Args: command.NoArguments,
		Long: `Make a cluster: its record, and the VMs and disks of its masters, as many as replicas of the document says,
made as its section gce says. It waits until each is a member and ready. Before them it makes the firewall rules, where
gce.firewall asks for them, and the load balancer, where gce.loadBalancer does.

The bucket, the key, the service account with its permissions, and an external address have to be there: they outlive a
cluster, and who may do what is the project's owner to say. What has a name that is needed, and differs, is refused and
never changed.

Where a zone has no VM of the type, run it again with --zone for each of the others. A data disk that it has made in the
zone left out is kept; the plan says so, and how it is deleted.

At its end kubectl works here: an administrator's kubeconfig is put into the first file of $KUBECONFIG, or ~/.kube/config,
under the cluster's name. The current context stays, unless --use is given. It says how to take that back.` +
			checkText + planText,
		Example: `  quorate create -f cluster.yaml --dry-run
  quorate create -f cluster.yaml --zone us-central1-a --zone us-central1-b --zone us-central1-c`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkZones(zones); err != nil {
				return err
			}
			if f.number != "" && !projectForm.MatchString(f.number) {
				return fault.Usage("--project-number %q: a number such as 271828182845 is needed", f.number)
			}
			c, err := f.LoadWithKey()
			if err != nil {
				return err
			}
			if err := access.check(c); err != nil {
				return err
			}
			err = f.carryOut(cmd, plan.Wish{Kind: plan.Create, Zones: zones, Interrupt: accept}, f.asking(cmd))
			if err == nil && !f.dryRun {
				access.grant(cmd, &f.Flags, c)
			}
			return err
		}}
	f.add(cmd)
	f.AddFile(cmd)
	f.addSkipChecks(cmd)
	addAcceptOutage(cmd, &accept)
	access.add(cmd)
	cmd.Flags().StringArrayVar(&zones, "zone", nil, "a zone in which masters are made, once for each; the document's "+
		"where it is not given")
	command.CompleteFlag(cmd, "zone", f.zones)
	cmd.Flags().StringVar(&f.number, "project-number", "", "the project's number, where it cannot be asked for")
	return cmd
}
