package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/observer"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/health"
)

func newHealth() *cobra.Command {
	var f healthFlags
	cmd := &cobra.Command{Use: "health", Short: "Say whether the cluster serves, what is wrong, and what to do",
		Args: command.NoArguments,
		Long: `Say whether the cluster serves, how many more failures it survives, what is wrong, the cause before what
follows from it, and what to do about it.

It reads what the agents report to the bucket of the record, and asks the endpoint. So it works from anywhere, as
anybody who may read the bucket, and while apiserver and etcd are down. A replica reports a change within two seconds,
and at least each half minute. With --compute it asks the Compute API too, which can tell a VM that is off from one
that hangs.

On a master it does not ask the endpoint, which is the master's own apiserver there.

Exit code 0: all is well. 1: degraded. 2: not serving, or not known.`,
		Example: `  quorate health --config cluster.yaml
  quorate health --config cluster.yaml --wait 5m      # until all is well
  quorate health --config cluster.yaml --watch        # a line for each change`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			o, err := f.observer()
			if err != nil {
				return err
			}
			if f.watch {
				return verdictOf(o.Follow(cmd.Context(), cmd.OutOrStdout()))
			}
			v := o.Judge(cmd.Context())
			for end := time.Now().Add(f.wait); v.State != health.Well && time.Now().Before(end); {
				select {
				case <-cmd.Context().Done():
					return context.Cause(cmd.Context())
				case <-time.After(observer.Period):
				}
				v = o.Judge(cmd.Context())
			}
			if err := terminal.PrintAs(cmd.OutOrStdout(), f.output, v,
				func(w io.Writer) { observer.Show(w, v, time.Now()) }); err != nil {
				return err
			}
			return verdictOf(v.State)
		}}
	f.Add(cmd)
	command.AddOutput(cmd, &f.output)
	cmd.Flags().BoolVar(&f.watch, "watch", false, "go on, and say what changes")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "wait for so long until all is well, such as 5m")
	cmd.Flags().BoolVar(&f.compute, "compute", false, "ask the Compute API for the VMs, too")
	return cmd
}

// healthFlags are the flags of health.
type healthFlags struct {
	cluster.Flags
	output         string
	watch, compute bool
	wait           time.Duration
}

func (f *healthFlags) check() error {
	switch {
	case f.watch && f.output != "":
		return fault.Usage("--watch prints text: leave --output out")
	case f.watch && f.wait != 0:
		return fault.Usage("--watch and --wait exclude one another")
	case f.wait < 0:
		return fault.Usage("--wait %s: want a duration such as 5m", f.wait)
	}
	return nil
}

func (f *healthFlags) observer() (*observer.Observer, error) {
	c, err := f.Load()
	if err != nil {
		return nil, err
	}
	o, err := observer.New(c, &f.Flags)
	if err == nil && f.compute {
		o.Compute = gce.UserClient()
	}
	return o, err
}
