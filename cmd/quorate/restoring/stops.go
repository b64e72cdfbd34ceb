package restoring

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Instances is what stopping VMs needs of the Compute API.
type Instances interface {
	VMs(ctx context.Context) ([]replica.VM, time.Time, error)
	StopInstance(ctx context.Context, p replica.Place, instanceID string) error
}

// Notes is where it is noted that a VM was stopped: an agent takes that for a proof, and waits for no other.
type Notes interface {
	NoteVMStop(ctx context.Context, order uint64, v record.VMStop) (got record.VMStop, won bool, err error)
}

// Stops stops the VMs of which order.Stops says so, and notes the ends.
type Stops struct {
	api    Instances
	notes  Notes
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

// NewStops has stopped nothing yet.
func NewStops(api Instances, notes Notes) *Stops {
	return &Stops{api: api, notes: notes, decide: order.NewStops(), ended: make(chan stopEnd)}
}

// check begins to stop those that are due, and prints and notes which have ended.
func (s *Stops) check(ctx context.Context, out io.Writer, r order.Restore, p order.Progress, now time.Time) {
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
func (s *Stops) report(out io.Writer, now time.Time) {
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
func (s *Stops) note(ctx context.Context, out io.Writer, number uint64) {
	s.unnoted = slices.DeleteFunc(s.unnoted, func(i record.Incarnation) bool {
		_, _, err := s.notes.NoteVMStop(ctx, number, record.VMStop{InstanceID: i.InstanceID, By: cluster.GivenBy()})
		if err != nil {
			s.trouble(out, fmt.Sprintf("That %s is stopped could not be noted: %s. It is tried again.",
				order.InstanceText(i), err))
		}
		return err == nil
	})
}

func (s *Stops) trouble(out io.Writer, text string) {
	if text != s.said {
		terminal.PrintText(out, "", text)
	}
	s.said = text
}
