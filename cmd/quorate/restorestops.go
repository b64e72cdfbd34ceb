package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

// instanceStops is what stopping VMs needs of the Compute API.
type instanceStops interface {
	VMs(ctx context.Context) ([]replica.VM, time.Time, error)
	StopInstance(ctx context.Context, p replica.Place, instanceID string) error
}

// stopNotes is where it is noted that a VM was stopped: an agent takes that for a proof, and waits for no other.
type stopNotes interface {
	NoteVMStop(ctx context.Context, order uint64, v record.VMStop) (got record.VMStop, won bool, err error)
}

// vmStops stops the VMs of which order.Stops says so, and notes the ends.
type vmStops struct {
	api    instanceStops
	notes  stopNotes
	decide *order.Stops
	// ended is where each stop says how it went.
	ended chan stopEnd
	// unnoted are those whose operation has ended without an error, and of which that is not noted yet.
	unnoted []record.Incarnation
	// said is the last trouble that was printed, so that it is printed once.
	said string
}

type stopEnd struct {
	record.Incarnation
	err error
}

// stops opens the Compute API where the flag asks for it, and checks whether it answers, so that nothing is ordered in
// vain; nil: it does not ask.
func (f *restoreFlags) stops(ctx context.Context, store *bucket.Store, r order.Restore) (*vmStops, error) {
	if !f.stopVMs {
		return nil, nil
	}
	c, err := f.Load()
	if err != nil {
		return nil, err
	}
	compute, err := gce.NewCompute(gce.ComputeConfig{
		Project: r.Record.Inception.ProjectNumber, Cluster: c.Name, Region: r.Record.Inception.Region,
		Endpoint: c.Compute.Endpoint, Client: gce.UserClient()})
	if err == nil {
		_, _, err = compute.VMs(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("--stop-vms: %w; nothing was written", err)
	}
	return newVMStops(compute, store), nil
}

func newVMStops(api instanceStops, notes stopNotes) *vmStops {
	return &vmStops{api: api, notes: notes, decide: order.NewStops(), ended: make(chan stopEnd)}
}

// check begins to stop those that are due, and prints and notes which have ended.
func (s *vmStops) check(ctx context.Context, out io.Writer, r order.Restore, p order.Progress, now time.Time) {
	s.report(out, now)
	if p.Stage == order.StageWaiting {
		s.note(ctx, out, p.Order.Number)
	}
	due := s.decide.Due(p, now)
	if len(due) == 0 {
		return
	}
	list, _, err := s.api.VMs(ctx)
	if err != nil {
		s.trouble(out, fmt.Sprintf("Which VMs still run is not known: %s.", err))
		return
	}
	for _, stop := range s.decide.Begin(r, due, list) {
		text := fmt.Sprintf("Stopping %s, which is %s.", order.InstanceText(stop.Incarnation), stop.VM.Status)
		if stop.Again {
			text = fmt.Sprintf("%s is %s already, and not by this command. It is stopped once more: that ends at "+
				"once, and proves it.", order.InstanceText(stop.Incarnation), stop.VM.Status)
		}
		terminal.PrintText(out, "", text)
		go func() {
			err := s.api.StopInstance(ctx, stop.VM.Place, stop.InstanceID)
			select {
			case s.ended <- stopEnd{stop.Incarnation, err}:
			case <-ctx.Done():
			}
		}()
	}
}

// report says how the stops that have ended meanwhile went.
func (s *vmStops) report(out io.Writer, now time.Time) {
	for {
		select {
		case e := <-s.ended:
			s.decide.Ended(e.InstanceID, now)
			if e.err != nil {
				s.trouble(out, fmt.Sprintf("%s was not stopped: %s. It is tried again.",
					order.InstanceText(e.Incarnation),
					e.err))
				continue
			}
			s.unnoted = append(s.unnoted, e.Incarnation)
			terminal.PrintText(out, "",
				fmt.Sprintf("%s is stopped. Once the next epoch is formed, start it: gcloud compute "+
					"instances start %s --zone %s; it puts its directory away and joins empty.",
					order.InstanceText(e.Incarnation), e.Place.Name, e.Place.Zone))
		default:
			return
		}
	}
}

// note writes of each stop that has ended that it has, for the order that is followed; again until it is written.
func (s *vmStops) note(ctx context.Context, out io.Writer, number uint64) {
	s.unnoted = slices.DeleteFunc(s.unnoted, func(i record.Incarnation) bool {
		_, _, err := s.notes.NoteVMStop(ctx, number, record.VMStop{InstanceID: i.InstanceID, By: cluster.GivenBy()})
		if err != nil {
			s.trouble(out, fmt.Sprintf("That %s is stopped could not be noted: %s. It is tried again.",
				order.InstanceText(i), err))
		}
		return err == nil
	})
}

func (s *vmStops) trouble(out io.Writer, text string) {
	if text != s.said {
		terminal.PrintText(out, "", text)
	}
	s.said = text
}
