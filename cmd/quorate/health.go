package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

const (
	// readTimeout bounds what health reads from the bucket. If that does not answer in that time, health judges by the
	// endpoint alone.
	readTimeout = 15 * time.Second
	// waitPeriod is the time between two judgements of --wait and --watch.
	waitPeriod = 2 * time.Second
	// computeTimeout bounds the tries of each question to the Compute API. All else is judged without it.
	computeTimeout = 3 * time.Second
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
				return o.follow(cmd.Context(), cmd.OutOrStdout())
			}
			v := o.judge(cmd.Context())
			for end := time.Now().Add(f.wait); v.State != health.Well && time.Now().Before(end); {
				select {
				case <-cmd.Context().Done():
					return context.Cause(cmd.Context())
				case <-time.After(waitPeriod):
				}
				v = o.judge(cmd.Context())
			}
			if err := terminal.PrintAs(cmd.OutOrStdout(), f.output, v,
				func(w io.Writer) { showHealth(w, v, time.Now()) }); err != nil {
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

// observer asks again and again for what health judges by.
type observer struct {
	cluster  *replica.Cluster
	flags    *cluster.Flags
	record   *bucket.Store
	reports  *bucket.Reports
	endpoint *endpoint
	compute  *http.Client // for the Compute API; nil: it is not asked
}

func (f *healthFlags) observer() (*observer, error) {
	c, err := f.Load()
	if err != nil {
		return nil, err
	}
	o, err := newObserver(c, &f.Flags)
	if err == nil && f.compute {
		o.compute = gce.UserClient()
	}
	return o, err
}

// newObserver asks nobody yet.
func newObserver(c *replica.Cluster, f *cluster.Flags) (*observer, error) {
	o := &observer{cluster: c, flags: f, endpoint: newEndpoint(c)}
	var err error
	if o.record, err = cluster.OpenRecord(c); err != nil {
		return nil, err
	}
	o.reports, err = cluster.OpenReports(c)
	return o, err
}

// reading is what was found out, and the commands that fit it.
type reading struct {
	health.Facts
	commands health.Commands
}

func (r reading) judge() health.Verdict { return health.Judge(r.Facts, r.commands) }

func (o *observer) judge(ctx context.Context) health.Verdict {
	r := o.read(ctx)
	r.Endpoint = o.endpoint.ask(ctx)
	return r.judge()
}

// read gathers what the bucket and the Compute API say. What cannot be read is said in the facts.
func (o *observer) read(ctx context.Context) reading {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	f := health.Facts{Cluster: o.cluster.Name, Now: time.Now(), Wanted: o.cluster.Replicas}
	var err error
	if f.Reports, err = o.reports.All(ctx); err != nil {
		f.Unread = err.Error()
		return reading{f, commandsFor(o.cluster, o.flags, "")} // it is the bucket of the record, too
	}
	v, err := o.record.View(ctx)
	if err != nil {
		f.UnreadRecord = err.Error()
	}
	f.Orders = ordersInForce(v, f.Now)
	project, region := "", ""
	if v.Inception != nil {
		project, region = v.Inception.ProjectNumber, v.Inception.Region
	}
	if o.compute != nil {
		if f.VMs, err = o.vms(ctx, project, region); err != nil {
			f.UnreadVMs = err.Error()
		}
	}
	return reading{f, commandsFor(o.cluster, o.flags, project)}
}

// vms are those that the Compute API lists; not nil where it answers.
func (o *observer) vms(ctx context.Context, project, region string) ([]replica.VM, error) {
	if project == "" {
		return nil, errors.New("the record does not say in which project they are")
	}
	api, err := gce.NewCompute(gce.ComputeConfig{Project: project, Cluster: o.cluster.Name,
		Region: region, Endpoint: o.cluster.Compute.Endpoint, Client: o.compute, Wait: computeTimeout})
	if err != nil {
		return nil, err
	}
	list, _, err := api.VMs(ctx)
	if err != nil {
		return nil, err
	}
	return append([]replica.VM{}, list...), nil
}

// ordersInForce are those that people should be reminded of.
func ordersInForce(v record.View, now time.Time) (out []health.Order) {
	log := order.NewLog(v, now)
	for _, o := range v.Orders {
		if log.State(o.Number).State == table.OrderInForce && o.Kind != record.OrderResume {
			out = append(out, health.Order{Number: o.Number, Kind: string(o.Kind), What: order.Text(o), By: o.By,
				Reason: o.Reason, Since: o.Time, Until: o.Until})
		}
	}
	return out
}
