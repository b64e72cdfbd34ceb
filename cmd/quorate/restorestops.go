package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/replica"
)

const (
	// stopAfter is how long a VM that a restore waits for may still say itself that it stopped: its agent reads orders
	// within 10 s.
	stopAfter = 20 * time.Second
	// stopAgainAfter is the time between two tries to stop a VM, where the first failed.
	stopAgainAfter = 30 * time.Second
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

// vmStops stops the VMs whose silence a restore waits for: those that have had the time to stop by themselves. One
// that is stopped already, by another, is stopped once more, which is over at once: the end of an operation of ours
// is the proof. A VM is known by its instance id, so neither one that has followed under its name nor the restorer's
// own is touched.
type vmStops struct {
	api   instanceStops
	notes stopNotes
	// due is when each instance that is waited for may be stopped, by its id.
	due map[string]time.Time
	// running are the ids of those that are being stopped; ended is where each says how that went.
	running []string
	ended   chan stopEnd
	// unnoted are those whose operation has ended without an error, and of which that is not noted yet.
	unnoted []record.Incarnation
	// said is the last trouble that was told, so that it is told once.
	said string
}

type stopEnd struct {
	record.Incarnation
	err error
}

// stops opens the Compute API where the flag asks for it, and looks whether it answers, so that nothing is ordered in
// vain; nil: it does not ask.
func (f *restoreFlags) stops(ctx context.Context, store *bucket.Store, w wreck) (*vmStops, error) {
	if !f.stopVMs {
		return nil, nil
	}
	c, err := f.load()
	if err != nil {
		return nil, err
	}
	compute, err := gce.NewCompute(gce.ComputeConfig{
		Project: w.Inception.ProjectNumber, Cluster: c.Name, Endpoint: c.Compute.Endpoint, Client: gce.UserClient()})
	if err == nil {
		_, _, err = compute.VMs(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("--stop-vms: %w; nothing was written", err)
	}
	return newVMStops(compute, store), nil
}

func newVMStops(api instanceStops, notes stopNotes) *vmStops {
	return &vmStops{api: api, notes: notes, due: map[string]time.Time{}, ended: make(chan stopEnd)}
}

// look takes those that are waited for, begins to stop those that are due, and tells and notes which have ended.
func (s *vmStops) look(ctx context.Context, out io.Writer, w waiting, now time.Time) {
	s.tell(out, now)
	s.note(ctx, out, w.order)
	var due []record.Incarnation
	for _, i := range w.instances {
		at, known := s.due[i.InstanceID]
		switch {
		case !known:
			s.due[i.InstanceID] = now.Add(stopAfter)
		case !now.Before(at) && !slices.Contains(s.running, i.InstanceID):
			due = append(due, i)
		}
	}
	if len(due) == 0 {
		return
	}
	list, _, err := s.api.VMs(ctx)
	if err != nil {
		s.trouble(out, fmt.Sprintf("Which VMs still run is not known: %s.", err))
		return
	}
	for _, i := range due {
		n := slices.IndexFunc(list, func(vm replica.VM) bool { return vm.InstanceID == i.InstanceID })
		if n < 0 || list[n].Status == "STOPPING" {
			continue
		}
		text := fmt.Sprintf("Stopping %s, which is %s.", instanceText(i), list[n].Status)
		if table.RunKindOf(list[n].Status) == table.RunStopped {
			if slices.Contains(w.stopped, i.InstanceID) {
				continue
			}
			text = fmt.Sprintf("%s is %s already, and not by this command. It is stopped once more: that ends at "+
				"once, and proves it.", instanceText(i), list[n].Status)
		}
		printText(out, "", text)
		s.running = append(s.running, i.InstanceID)
		go func() {
			err := s.api.StopInstance(ctx, list[n].Place, i.InstanceID)
			select {
			case s.ended <- stopEnd{i, err}:
			case <-ctx.Done():
			}
		}()
	}
}

// tell says how the stops that have ended meanwhile went.
func (s *vmStops) tell(out io.Writer, now time.Time) {
	for {
		select {
		case e := <-s.ended:
			s.running = slices.DeleteFunc(s.running, func(id string) bool { return id == e.InstanceID })
			s.due[e.InstanceID] = now.Add(stopAgainAfter)
			if e.err != nil {
				s.trouble(out, fmt.Sprintf("%s was not stopped: %s. It is tried again.", instanceText(e.Incarnation),
					e.err))
				continue
			}
			s.unnoted = append(s.unnoted, e.Incarnation)
			printText(out, "", fmt.Sprintf("%s is stopped. Once the next epoch is formed, start it: gcloud compute "+
				"instances start %s --zone %s; it puts its directory away and joins empty.",
				instanceText(e.Incarnation), e.Place.Name, e.Place.Zone))
		default:
			return
		}
	}
}

// note writes of each stop that has ended that it has, for the order that is followed; again until it is written.
func (s *vmStops) note(ctx context.Context, out io.Writer, order uint64) {
	if order == 0 {
		return
	}
	s.unnoted = slices.DeleteFunc(s.unnoted, func(i record.Incarnation) bool {
		_, _, err := s.notes.NoteVMStop(ctx, order, record.VMStop{InstanceID: i.InstanceID, By: givenBy()})
		if err != nil {
			s.trouble(out, fmt.Sprintf("That %s is stopped could not be noted: %s. It is tried again.",
				instanceText(i), err))
		}
		return err == nil
	})
}

func (s *vmStops) trouble(out io.Writer, text string) {
	if text != s.said {
		printText(out, "", text)
	}
	s.said = text
}
