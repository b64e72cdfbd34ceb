package fleet_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/fleet"
	"github.com/quorate/quorate/fleet/plan"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func fleetOf(w *world) *fleet.Fleet {
	f := &fleet.Fleet{Cloud: w, Cluster: w, By: "test", Begin: w.begin, DataDevice: "quorate-data",
		Metadata: map[string]string{"quorate-cluster": "name: prod-1"},
		Document: &replica.Cluster{Name: "prod-1", Replicas: 3, GCE: &replica.GCE{Project: "example", Region: region,
			Zones: zones, Image: "family/quorate", MachineType: "e2-standard-4", Network: "default",
			ServiceAccount: instance.MastersAccount(), Tags: []string{"masters", "infra"},
			Labels: map[string]string{"team": "infra"}}}}
	if w.surrounded {
		f.Document.Endpoint = replica.Endpoint{InternalIP: "10.128.0.99", Port: 443}
		f.Document.GCE.LoadBalancer = replica.LoadBalancer{Type: replica.InternalBalancer, Name: "prod-1"}
		f.Document.GCE.Firewall.APISources = []string{"10.128.0.0/20"}
	}
	if w.onDemand {
		f.Document.Endpoint = replica.Endpoint{ExternalIP: externalIP, Port: 443}
		f.Document.GCE.LoadBalancer = replica.LoadBalancer{Type: replica.ExternalBalancer, Name: "prod-1", OnDemand: true}
	}
	return f
}

// command is one of the operator's, as it is typed, in a world of some replicas.
type command struct {
	name     string
	replicas int
	wish     plan.Wish
	rules    rules
	// left are how many VMs and voters there are in the end, and how many disks that no VM has.
	vms, voters, spare int
	// rolled is the image that all VMs have then, and they are made as the document says.
	rolled string
	// around is how many resources there are around the masters in the end, where the document asks for them; less than
	// 0: all were there before, and none is.
	around int
}

var commands = []command{
	{"create 3", 0, plan.Wish{Kind: plan.Create, Count: 3}, rules{}, 3, 3, 0, "", 0},
	{"add the second", 1, plan.Wish{Kind: plan.Add}, rules{}, 2, 1, 0, "", 0},
	{"add the third", 2, plan.Wish{Kind: plan.Add, Zone: zones[2]}, rules{}, 3, 3, 0, "", 0},
	{"remove by name", 3, plan.Wish{Kind: plan.Remove, Name: "master-b", DropDisk: true},
		rules{target: "1004", dropDisks: true}, 2, 2, 0, "", 0},
	{"remove of a zone, its disk is kept", 3, plan.Wish{Kind: plan.Remove, Zone: zones[2]}, rules{target: "1006"}, 2, 2,
		1, "", 0},
	{"remove the leader", 3, plan.Wish{Kind: plan.Remove, Name: "master-a", DropDisk: true},
		rules{target: "1002", dropDisks: true}, 2, 2, 0, "", 0},
	{"remove one that never joined", 3, plan.Wish{Kind: plan.Remove, Name: "master-x", DropDisk: true},
		rules{target: "1011", dropDisks: true, begun: begunVM}, 3, 3, 0, "", 0},
	{"remove one that was begun and has a disk alone", 3, plan.Wish{Kind: plan.Remove, Name: "master-x", DropDisk: true},
		rules{dropDisks: true, begun: begunDisk}, 3, 3, 0, "", 0},
	{"create 3, where one was begun in another zone", 1, plan.Wish{Kind: plan.Create, Count: 3, Zones: zones[:2]},
		rules{begun: begunDisk}, 3, 3, 1, "", 0},
	{"replace", 3, plan.Wish{Kind: plan.Replace, Name: "master-b", DropDisk: true},
		rules{target: "1004", dropDisks: true}, 3, 3, 0, "", 0},
	{"replace in its place", 3, plan.Wish{Kind: plan.Replace, Name: "master-a", InPlace: true}, rules{inPlace: true},
		3, 3, 0, "", 0},
	{"replace in its place, with a new disk", 3, plan.Wish{Kind: plan.Replace, Name: "master-b", InPlace: true,
		NewDisk: true}, rules{inPlace: true}, 3, 3, 1, "", 0},
	{"replace the only one in its place", 1, plan.Wish{Kind: plan.Replace, Name: "master-a", InPlace: true,
		Interrupt: true}, rules{inPlace: true, interrupts: true}, 1, 1, 0, "", 0},
	{"roll", 3, plan.Wish{Kind: plan.Roll, Image: newImage}, rules{inPlace: true}, 3, 3, 0, newImage, 0},
	{"roll to what the document says", 3, plan.Wish{Kind: plan.Roll}, rules{inPlace: true}, 3, 3, 0, oldImage, 0},
	{"roll the only one", 1, plan.Wish{Kind: plan.Roll, Image: newImage, Interrupt: true},
		rules{inPlace: true, interrupts: true}, 1, 1, 0, newImage, 0},
	{"create 3 and what surrounds them", 0, plan.Wish{Kind: plan.Create, Count: 3}, rules{}, 3, 3, 0, "", 10},
	{"delete, with what surrounds them", 3, plan.Wish{Kind: plan.Delete}, rules{all: true}, 0, -1, 0, "", -1},
	{"delete", 3, plan.Wish{Kind: plan.Delete}, rules{all: true}, 0, -1, 0, "", 0},

	{"create 1, the balancer on demand", 0, plan.Wish{Kind: plan.Create, Count: 1}, rules{onDemand: true}, 1, 1, 0, "", 1},
	{"add the second, the balancer on demand", 1, plan.Wish{Kind: plan.Add, Interrupt: true}, rules{onDemand: true}, 2, 1,
		0, "", 7},
	{"remove the last but one, the balancer on demand", 2, plan.Wish{Kind: plan.Remove, Name: "master-b", DropDisk: true,
		Interrupt: true}, rules{target: "1004", dropDisks: true, onDemand: true}, 1, 1, 0, "", 1},
	{"replace the only one, the balancer on demand", 1, plan.Wish{Kind: plan.Replace, Name: "master-a", DropDisk: true,
		Interrupt: true}, rules{target: "1002", dropDisks: true, onDemand: true}, 1, 1, 0, "", 1},
	{"roll the only one, the balancer on demand", 1, plan.Wish{Kind: plan.Roll, Image: newImage, Interrupt: true},
		rules{inPlace: true, interrupts: true, onDemand: true}, 1, 1, 0, newImage, 1},
}

// inWorld runs a test in a world whose agents live, in time that passes at once.
func inWorld(t *testing.T, replicas int, do func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, replicas)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go w.live(ctx)
		time.Sleep(20 * time.Second)
		do(t, w)
	})
}

// inWorld runs a test in the world that the command is meant for. What it is to delete is there.
func (c command) inWorld(t *testing.T, do func(t *testing.T, w *world)) {
	t.Helper()
	inWorld(t, c.replicas, func(t *testing.T, w *world) {
		if w.onDemand = c.rules.onDemand; w.onDemand {
			w.around[link(addressOf(w))] = addressOf(w)
			if c.replicas == 1 {
				w.vms[place(0)].ExternalIP = externalIP
			}
		} else {
			w.surrounded = c.around != 0
		}
		if c.around < 0 || w.onDemand && c.replicas > 1 {
			surround(t, fleetOf(w))
			w.changes = 0
		}
		if c.rules.begun != nothingBegun {
			w.begin4th(t, c.rules.begun == begunVM)
		}
		do(t, w)
	})
}

// begin4th leaves what an addition leaves that got no VM, as where the zone has none, or one that never joins.
func (w *world) begin4th(t *testing.T, vm bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := replica.Place{Zone: zones[2], Name: "master-x"}
	disk := &gce.FleetDisk{Zone: p.Zone, Name: p.Name + "-data", ID: w.id(),
		Labels: map[string]string{fleet.ReplicaLabel: p.Name}}
	w.disks[p.Zone+"/"+disk.Name] = disk
	w.orders = append(w.orders, record.Order{Number: 2, Kind: record.OrderReplicas, Replicas: len(w.vms) + 1})
	if vm {
		w.insertVM(p, gce.VMSpec{Name: p.Name, DataDisk: disk.Name, Image: oldImage})
		w.vms[p].booted = time.Now().Add(24 * time.Hour)
	}
}

// addressOf is the address that somebody has reserved.
func addressOf(w *world) gce.Resource {
	r := fleetOf(w).Wanted().Resources()[0]
	r.ID, r.Name = "9", "prod-1"
	return r
}

// surround makes all that the document asks for.
func surround(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	wanted, _, err := f.Cloud.Surroundings(t.Context(), f.Wanted())
	if err != nil || len(wanted) == 0 {
		t.Fatal(err, wanted)
	}
	for _, r := range wanted {
		if r.Kind == gce.Address && !r.Made {
			continue
		}
		if err := f.Cloud.InsertResource(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// talk agrees to everything.
func talk(tell func(fleet.Event)) fleet.Talk {
	return fleet.Talk{Approve: func(plan.Plan) error { return nil }, Tell: tell}
}

func (c command) run(ctx context.Context, w *world) error { return c.runTelling(ctx, w, nil) }

func (c command) runTelling(ctx context.Context, w *world, tell func(fleet.Event)) error {
	w.rules = c.rules
	_, err := fleetOf(w).Run(ctx, c.wish, talk(tell))
	return err
}

// check says what is not as it should be when the command is done.
func (c command) check(t *testing.T, w *world) {
	t.Helper()
	time.Sleep(10 * time.Second)
	around := w.left()
	w.mu.Lock()
	defer w.mu.Unlock()
	voters, touch := w.votes()
	spare := 0
	for _, d := range w.disks {
		if len(d.Users) == 0 {
			spare++
		}
	}
	if len(w.vms) != c.vms || c.voters >= 0 && (voters != c.voters || touch != c.voters) || spare != c.spare {
		t.Errorf("%d VMs, %d voters (%d in touch), %d disks that no VM has; want %d, %d, %d", len(w.vms), voters, touch,
			spare, c.vms, c.voters, c.spare)
	}
	if len(around) != max(0, c.around) {
		t.Errorf("around them are %d, want %d: %v", len(around), max(0, c.around), around)
	}
	for _, p := range w.places() {
		v := w.vms[p]
		if has := v.ExternalIP == externalIP; has != (c.rules.onDemand && c.around == 1) {
			t.Errorf("VM %s has the external address: %t", p, has)
		}
		as := v.Image == c.rolled && v.MachineType == "e2-standard-4" && len(v.Tags) == 2 && v.Labels["team"] == "infra" &&
			v.Metadata["quorate-cluster"] != ""
		if c.rolled != "" && !as || !w.alive(p) {
			t.Errorf("VM %s takes part: %t; %+v", p, w.alive(p), v.FleetVM)
		}
	}
}

func TestEachCommandIsCarriedOut(t *testing.T) {
	for _, c := range commands {
		t.Run(c.name, func(t *testing.T) {
			c.inWorld(t, func(t *testing.T, w *world) {
				began := time.Now()
				if err := c.run(t.Context(), w); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); c.rules.interrupts && took > time.Minute {
					t.Errorf("nobody was served for %s: the VM that was deleted was believed for too long", took)
				}
				c.check(t, w)
				before := w.changes
				if c.wish.Kind != plan.Add && c.wish.Name == "" && c.wish.Zone == "" { // again is to do nothing
					if err := c.run(t.Context(), w); err != nil || w.changes != before {
						t.Errorf("again: %d changes more, %v", w.changes-before, err)
					}
				}
			})
		})
	}
}

// A call fails before or after its effect, or the operator interrupts it: at each change of each command. Running the
// command again completes it, and nothing is left over.
func TestAFaultAtEachStepIsCompletedByRunningAgain(t *testing.T) {
	lost := errors.New("the connection was lost")
	for _, c := range commands {
		changes := 0
		c.inWorld(t, func(t *testing.T, w *world) {
			if err := c.run(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			changes = w.changes
		})
		if changes == 0 {
			t.Fatalf("%s changes nothing", c.name)
		}
		for at := 1; at <= changes; at++ {
			for _, fault := range []string{"fails before", "fails after", "interrupted"} {
				t.Run(fmt.Sprintf("%s, change %d %s", c.name, at, fault), func(t *testing.T) {
					c.inWorld(t, func(t *testing.T, w *world) {
						ctx, interrupt := context.WithCancel(t.Context())
						defer interrupt()
						w.hurt = func(n int, effect bool) error {
							switch {
							case n == at && fault == "interrupted":
								interrupt()
							case n == at && effect == (fault == "fails after"):
								return lost
							case n > at:
								t.Errorf("change %d was begun after the fault at %d", n, at)
							}
							return nil
						}
						err := c.run(ctx, w)
						last := at == changes && fault == "interrupted" // it was done anyway
						if !last && !errors.Is(err, fleet.ErrStopped) {
							t.Fatalf("after a fault: %v", err)
						}
						if fault != "interrupted" && !errors.Is(err, lost) {
							t.Errorf("the fault is not said: %v", err)
						}
						w.hurt = nil
						if err := c.again(w); err != nil {
							t.Fatalf("run again: %v", err)
						}
						c.check(t, w)
					})
				})
			}
		}
	}
}

// again runs the command as somebody would who was told to: with the same words, unless it was done. Then a command
// that names nobody would do another one.
func (c command) again(w *world) error {
	if c.isDone(w) {
		return nil
	}
	return c.unlessGone(w, c.run(context.Background(), w))
}

// isDone: the command was done, and would do another one.
func (c command) isDone(w *world) bool {
	return len(w.vms) == c.vms && (c.wish.Kind == plan.Add || c.wish.Name == "" && c.wish.Zone != "") && !w.begun() &&
		(!w.onDemand || len(w.left()) == c.around)
}

// unlessGone is an error of the command, unless it was done and there is nobody of that name any more.
func (c command) unlessGone(w *world, err error) error {
	var r *plan.Refusal
	if errors.As(err, &r) && r.Name == plan.NoSuchReplica && len(w.vms) == c.vms {
		return nil
	}
	return err
}

// begun: somebody has a VM and has not joined, or leaves and has one.
func (w *world) begun() bool {
	for _, p := range w.places() {
		if !w.alive(p) || w.leaveOf(p) != nil {
			return true
		}
	}
	return false
}

// The operator interrupts a wait: nothing more is changed, and running it again completes it.
func TestInterruptedAtAWait(t *testing.T) {
	for _, c := range commands {
		for at := 1; ; at++ {
			waited := false
			t.Run(fmt.Sprintf("%s, wait %d", c.name, at), func(t *testing.T) {
				c.inWorld(t, func(t *testing.T, w *world) {
					ctx, interrupt := context.WithCancel(t.Context())
					defer interrupt()
					waits, changes := 0, 0
					w.rules = c.rules
					_, err := fleetOf(w).Run(ctx, c.wish, talk(func(e fleet.Event) {
						if e.Waits != "" {
							if waits++; waits == at {
								waited, changes = true, w.changes
								interrupt()
							}
						}
					}))
					if waited && (!errors.Is(err, fleet.ErrStopped) || w.changes != changes) {
						t.Errorf("%d changes after the interruption, %v", w.changes-changes, err)
					}
					if waited {
						if err := c.again(w); err != nil {
							t.Fatalf("run again: %v", err)
						}
						c.check(t, w)
					}
				})
			})
			if !waited {
				break
			}
		}
	}
}

// A firewall keeps the load balancer's probes out: create ends in a few minutes, and says so. Run again once they
// arrive, it goes on.
func TestCreateSaysThatProbesDoNotArrive(t *testing.T) {
	at := slices.IndexFunc(commands, func(c command) bool { return c.around == 10 })
	c := commands[at]
	c.inWorld(t, func(t *testing.T, w *world) {
		w.walled = true
		began := time.Now()
		err := c.run(t.Context(), w)
		const want = "its probes do not arrive, or its agent could not attach it. They come from 130.211.0.0/22, " +
			"35.191.0.0/16 and need a firewall rule"
		if !errors.Is(err, fleet.ErrStopped) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if took := time.Since(began); took > 15*time.Minute {
			t.Errorf("it took %s", took)
		}
		w.mu.Lock()
		w.walled = false
		w.mu.Unlock()
		if err := c.run(t.Context(), w); err != nil {
			t.Error(err)
		}
		c.check(t, w)
	})
}

// The leader's agent cannot write reports: by what it wrote before, nothing is taken away.
func TestAStaleReportOfTheLeaderTakesNobodyAway(t *testing.T) {
	for _, c := range commands {
		if !slices.Contains([]plan.Kind{plan.Remove, plan.Roll}, c.wish.Kind) && !c.wish.InPlace {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			c.inWorld(t, func(t *testing.T, w *world) {
				w.mute[w.leader] = true
				began := time.Now()
				err := c.run(t.Context(), w)
				var r *plan.Refusal
				orders := 0
				if c.rules.begun != nothingBegun {
					orders = 1 // its number is taken back, which takes nothing away
				}
				if !errors.As(err, &r) || r.Name != plan.MembersUnknown || w.changes != orders {
					t.Errorf("%d changes, %v", w.changes, err)
				}
				if took := time.Since(began); took < 40*time.Second || took > 90*time.Second {
					t.Errorf("it gave up after %s", took)
				}
			})
		})
	}
}

// Two replicas say that they lead: nobody is believed.
func TestTwoLeadersAreBelievedNothing(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go func() { // a replica that is cut off goes on reporting that it leads
			for ctx.Err() == nil {
				w.mu.Lock()
				w.mute[place(1)] = true
				s := w.reports[place(0)]
				s.Place, s.InstanceID, s.Member = place(1), w.vms[place(1)].InstanceID, w.members[place(1)].id
				s.Members = slices.Clone(s.Members)
				for n := range s.Members {
					s.Members[n].Leader = s.Members[n].ID == s.Member
				}
				s.Written = time.Now()
				w.reports[place(1)] = s
				w.mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		}()
		time.Sleep(time.Second)
		err := command{wish: plan.Wish{Kind: plan.Remove, Name: "master-c"}}.run(t.Context(), w)
		var r *plan.Refusal
		if !errors.As(err, &r) || r.Name != plan.MembersUnknown || !strings.Contains(r.Why, "several") || w.changes != 0 {
			t.Errorf("%d changes, %v", w.changes, err)
		}
	})
}

// What the operator does not agree to is not done.
func TestWithoutConsentNothingIsDone(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		no := errors.New("no")
		p, err := fleetOf(w).Run(t.Context(), plan.Wish{Kind: plan.Delete}, fleet.Talk{
			Approve: func(p plan.Plan) error { return no }})
		if !errors.Is(err, no) || w.changes != 0 || len(p.Steps) != 6 {
			t.Errorf("%d changes, %d steps, %v", w.changes, len(p.Steps), err)
		}
	})
}

// A command that gave up while the replacement joined is run again when it has joined: that is done. With --again, and
// after more than an hour, another one is meant.
func TestAReplacementThatHasJoinedMeanwhileIsDone(t *testing.T) {
	for _, again := range []bool{false, true} {
		inWorld(t, 3, func(t *testing.T, w *world) {
			w.rules = rules{inPlace: true}
			wish := plan.Wish{Kind: plan.Replace, Name: "master-b", InPlace: true, NewDisk: true}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			_, err := fleetOf(w).Run(ctx, wish, talk(func(e fleet.Event) {
				if e.Begins != nil && e.Begins.Act == plan.AwaitJoined {
					interrupt()
				}
			}))
			if !errors.Is(err, fleet.ErrStopped) {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
			before := w.changes
			wish.Again = again
			p, err := fleetOf(w).Run(t.Context(), wish, talk(nil))
			if done := w.changes == before && len(p.Warnings) == 1; err != nil || done == again {
				t.Errorf("again %t: %d changes, %q, %v", again, w.changes-before, p.Warnings, err)
			}
			before, wish.Again = w.changes, false
			time.Sleep(2 * time.Hour)
			if _, err := fleetOf(w).Run(t.Context(), wish, talk(nil)); err != nil || w.changes != before+3 {
				t.Errorf("two hours later: %d changes, %v", w.changes-before, err)
			}
		})
	}
}

// In the middle of a roll another replica is not well: a component was started again, as where a master next to it came
// back. The roll says so and waits for it, and stops only where it does not get well.
func TestARollWaitsForAReplicaToGetWell(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		inWorld(t, 3, func(t *testing.T, w *world) {
			ill := place(2)
			changes, said := 0, ""
			var fell time.Time
			err := command{wish: plan.Wish{Kind: plan.Roll, Image: newImage}, rules: rules{inPlace: true}}.runTelling(
				t.Context(), w, func(e fleet.Event) {
					if e.Ended != nil && e.Ended.Act == plan.CreateVM && fell.IsZero() {
						w.mu.Lock()
						w.down[ill], changes, fell = "kube-scheduler", w.changes, time.Now()
						w.mu.Unlock()
					}
					if strings.Contains(e.Waits, "to get well") && said == "" {
						said = e.Waits
						time.AfterFunc(2*time.Minute, func() {
							w.mu.Lock()
							defer w.mu.Unlock()
							if recovers {
								delete(w.down, ill)
							}
						})
					}
				})
			if said != "waiting for "+ill.String()+" to get well: not ready: kube-scheduler" {
				t.Errorf("it waits for %q", said)
			}
			var r *plan.Refusal
			took := time.Since(fell)
			switch stopped := errors.As(err, &r) && r.Name == plan.NotWell && errors.Is(err, fleet.ErrStopped); {
			case recovers && err != nil:
				t.Error(err)
			case !recovers && (!stopped || w.changes != changes || took < 5*time.Minute || took > 7*time.Minute):
				t.Errorf("after %s and %d changes more: %v", took, w.changes-changes, err)
			}
		})
	}
}

// A replica is not well for a moment when the first step is due: a component is started again, or the leader has just
// missed it. The plan was made while all were well, and was approved, so the roll waits.
func TestARollWaitsBeforeItsFirstStep(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		w.rules = rules{inPlace: true}
		said, before := "", -1
		_, err := fleetOf(w).Run(t.Context(), plan.Wish{Kind: plan.Roll, Image: newImage}, fleet.Talk{
			Approve: func(plan.Plan) error {
				w.mu.Lock()
				w.down[place(2)] = "kube-scheduler"
				w.mu.Unlock()
				time.Sleep(5 * time.Second)
				return nil
			},
			Tell: func(e fleet.Event) {
				if strings.Contains(e.Waits, "to get well") && said == "" {
					w.mu.Lock()
					defer w.mu.Unlock()
					said, before = e.Waits, w.changes
					time.AfterFunc(time.Minute, func() {
						w.mu.Lock()
						defer w.mu.Unlock()
						delete(w.down, place(2))
					})
				}
			}})
		if err != nil || before != 0 || w.changes != 6 {
			t.Errorf("it waits for %q after %d changes; %d in all, %v", said, before, w.changes, err)
		}
	})
}

// A replica is not well when the plan is to be made: that is said, and it is waited for. The operator is told within a
// minute that it does not get well.
func TestARollDoesNotBeginWhereOneIsNotWell(t *testing.T) {
	for _, recovers := range []bool{true, false} {
		inWorld(t, 3, func(t *testing.T, w *world) {
			w.down[place(1)] = "kube-scheduler"
			time.Sleep(5 * time.Second)
			time.AfterFunc(20*time.Second, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				if recovers {
					delete(w.down, place(1))
				}
			})
			began, told, refusedAfter := time.Now(), "", time.Duration(0)
			err := command{wish: plan.Wish{Kind: plan.Roll, Image: newImage}, rules: rules{inPlace: true}}.runTelling(
				t.Context(), w, func(e fleet.Event) { told = cmp.Or(told, e.Waits) })
			var r *plan.Refusal
			if errors.As(err, &r) && r.Name == plan.NotWell {
				refusedAfter = time.Since(began)
			}
			if told != "waiting for "+place(1).String()+" to get well: not ready: kube-scheduler" {
				t.Errorf("it waits for %q", told)
			}
			switch {
			case recovers && (err != nil || w.changes != 6):
				t.Errorf("%d changes, %v", w.changes, err)
			case !recovers && (refusedAfter == 0 || refusedAfter > time.Minute || w.changes > 0):
				t.Errorf("after %s and %d changes: %v", refusedAfter, w.changes, err)
			}
		})
	}
}
