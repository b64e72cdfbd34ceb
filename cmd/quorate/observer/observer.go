// Package observer judges a cluster from outside: it reads what the replicas report to the bucket, asks the endpoint
// and, where it is wanted, the Compute API, and prints the verdict of package health.
package observer

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/health"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

const (
	// LongestBatch is how long before a time a batch of events may have begun that has some from then on: batches are
	// listed by their first event, and one waits while the bucket takes no writes.
	LongestBatch = time.Hour
	// ReadTimeout bounds what health reads from the bucket. If that does not answer in that time, health judges by the
	// endpoint alone.
	ReadTimeout = 15 * time.Second
	// Period is the time between two judgements of --wait and --watch.
	Period = 2 * time.Second
	// computeTimeout bounds the tries of each question to the Compute API. All else is judged without it.
	computeTimeout = 3 * time.Second
)

// Observer asks again and again for what health judges by.
type Observer struct {
	cluster  *replica.Cluster
	flags    *cluster.Flags
	Record   *bucket.Store
	Reports  *bucket.Reports
	Endpoint *Endpoint
	// Compute is for the Compute API; nil: it is not asked.
	Compute *http.Client
}

// New asks nobody yet.
func New(c *replica.Cluster, f *cluster.Flags) (*Observer, error) {
	o := &Observer{cluster: c, flags: f, Endpoint: newEndpoint(c)}
	var err error
	if o.Record, err = cluster.OpenRecord(c); err != nil {
		return nil, err
	}
	o.Reports, err = cluster.OpenReports(c)
	return o, err
}

// Reading is what was found out, and the commands that fit it.
type Reading struct {
	health.Facts
	commands health.Commands
}

// Judge is the verdict on what was found out.
func (r Reading) Judge() health.Verdict { return health.Judge(r.Facts, r.commands) }

// Judge asks everybody, the endpoint too, and is the verdict on that.
func (o *Observer) Judge(ctx context.Context) health.Verdict {
	r := o.Read(ctx)
	r.Endpoint = o.Endpoint.Ask(ctx)
	return r.Judge()
}

// Read gathers what the bucket and the Compute API say. What cannot be read is said in the facts.
func (o *Observer) Read(ctx context.Context) Reading {
	ctx, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	f := health.Facts{Cluster: o.cluster.Name, Now: time.Now(), Wanted: o.cluster.Replicas}
	var err error
	if f.Reports, err = o.Reports.All(ctx); err != nil {
		f.Unread, f.NoBucket = err.Error(), errors.Is(err, bucket.ErrNoBucket)
		return Reading{f, commandsFor(o.cluster, o.flags, "")} // it is the bucket of the record, too
	}
	v, err := o.Record.View(ctx)
	if err != nil {
		f.UnreadRecord = err.Error()
	}
	f.Orders = ordersInForce(v, f.Now)
	applyOrders(&f, v)
	project, region := "", ""
	if v.Inception != nil {
		project, region = v.Inception.ProjectNumber, v.Inception.Region
	}
	if o.Compute != nil {
		if f.VMs, err = o.vms(ctx, project, region); err != nil {
			f.UnreadVMs = err.Error()
		}
	}
	return Reading{f, commandsFor(o.cluster, o.flags, project)}
}

// vms are those that the Compute API lists; not nil where it answers.
func (o *Observer) vms(ctx context.Context, project, region string) ([]replica.VM, error) {
	if project == "" {
		return nil, errors.New("the record does not say in which project they are")
	}
	api, err := gce.NewCompute(gce.ComputeConfig{Project: project, Cluster: o.cluster.Name,
		Region: region, Endpoint: o.cluster.Compute.Endpoint, Client: o.Compute, Wait: computeTimeout})
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

// applyOrders has the facts say what the record's orders change: how many replicas are wanted, and whose members were
// taken out.
func applyOrders(f *health.Facts, v record.View) {
	orders := table.OrdersOf(v.Orders, record.NumberOf(v.NewestFormed()), f.Now)
	f.Wanted = cmp.Or(orders.Replicas, f.Wanted)
	for _, p := range v.Places() {
		if o := orders.Left(p); o != nil && o.Done != nil {
			f.Left = append(f.Left, p)
		}
	}
}
