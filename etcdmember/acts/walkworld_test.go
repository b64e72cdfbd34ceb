package acts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// t0 is when each walk begins.
var t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const testCluster = "demo"

var places = func() []replica.Place {
	var out []replica.Place
	for _, c := range "abcde" {
		out = append(out, replica.Place{Zone: "us-central1-" + string(c), Name: "m-" + string(c)})
	}
	return out
}()

// vm is one instance and the memory of its agent, which a crash takes.
type vm struct {
	place int
	id    string
	boot  int
	on    bool
	ghost bool // its place has a successor, and it has not been deleted yet
	disk  *data
	etcd  *etcd

	side      int        // VMs on one side of a partition reach each other
	blind     bool       // it cannot read or write the record
	actor     *Actor     // of its agent: it ends with it
	underWay  *underWay  // the act that it takes; nil: none
	pause     func(Step) // hands over at a step of that act
	compute   table.Compute
	runs      map[string]table.Run
	beats     map[table.BeatKey]table.Beat
	listed    map[record.MemberID]string
	view      *record.View // as it was read for the next decision; nil: it is read with the rest
	viewed    time.Time    // when it was read: what is decided then is decided as of this moment
	viewErr   error
	paused    int             // as many events of it pass before its next write
	slow      int             // as many events of it pass before it asks who answers
	read      table.Directory // when it was last read, with etcd stopped
	seen      map[string]bool
	tries     table.Tries // as the agent remembers them
	silences  table.Silences
	suspended bool // nothing of it runs until it is resumed
	fenced    bool // its disk takes no write any more: another host has it
	// this very instance, started again on another host, which left this one behind; nil: it was not
	newer         *vm
	said          string    // what the Compute API says of it, whatever is true; empty: what is true
	superseded    bool      // it was found so in this boot
	noUser        bool      // and it is no user of its disk, by the API
	fails         time.Time // when its host fails for good; zero: it does not
	stoppedAt     time.Time
	foundAgain    time.Time // when the API listed it again; a leader that waits asks once a minute
	previous      leader.Ring
	silent        map[record.MemberID]time.Time
	moved         map[record.MemberID]movement
	compacted     time.Time // by this leader's agent
	defragmented  map[record.MemberID]time.Time
	full, emptied time.Time // as a learner: since when it is full, and when it was last defragmented by itself
	row           table.Row
	act           table.Act // of the last decision
	blocked       *replica.Wait
	leaderBlocked *replica.Wait
	strangerSince time.Time
}

// data is a data disk.
type data struct {
	id       string
	agent    table.AgentFile
	agentErr error // agent.json cannot be read
	dir      *dir
	archives []*dir // never changed
	made     *dir   // by a restore, beside the one in place
}

func (d *data) copied(id string) *data {
	c := *d
	c.id = id
	if d.dir != nil {
		dir := *d.dir
		c.dir = &dir
	}
	return &c
}

// world is everything, and what really happened beside it: what a walk's invariants ask.
type world struct {
	by     variant
	random *rand.Rand
	now    time.Time
	places int
	vms    []*vm
	disks  map[string]bool // that exist
	view   record.View
	made   int
	calm   bool // no fault happens, and answers are not lost
	faults int  // left in this walk

	computeErr   bool
	computeEmpty bool
	computeLate  bool
	lists        []table.Listing // the newest ones, for a late answer
	restoreLost  func()          // puts a lost object back
	older        []*data         // copies of disks
	parked       map[int]*data   // disks that are out of their place for a while, by place
	takeBacks    int             // withdrawals that may still be given
	cuts         map[[2]*vm]bool // from the first to the second

	survivors bool // policy 22
	asks      int  // orders that a person still gives
	restless  bool // and changes its mind again and again
	sizes     bool // some of which are not restores
	snapshots []saved
	promises  map[uint64]promise

	tokens   map[string]record.MemberID
	ever     map[identity]uint64
	acked    map[record.MemberID][]uint64
	serving  map[record.MemberID]bool
	outcomes map[uint64]bool

	noMarks          bool // the bucket takes none
	purged           int  // archives
	passing          int  // writes to a disk that failed, and went well when they were made again
	unfit            int  // sources of a restore that were refused
	limited          bool // it came to what nothing can detect
	forgetful        int  // starts of an older copy beside a quorum that does not need what it lost
	copied, stale    int  // copies of the state, and how many arrived too late
	rows, leaderRows map[table.Row]int
	injected         map[string]int
	history          []string
}

// mostFaults is the most that goes wrong in one walk.
const mostFaults = 6

func newWorld(seed uint64, by variant) *world { return newWorldOf(seed, by, 0) }

// newWorldOf has so many places; 0: any number.
func newWorldOf(seed uint64, by variant, n int) *world {
	w := &world{by: by, random: rand.New(rand.NewPCG(seed, 3)), now: t0, disks: map[string]bool{},
		parked: map[int]*data{}, cuts: map[[2]*vm]bool{},
		promises: map[uint64]promise{}, tokens: map[string]record.MemberID{}, ever: map[identity]uint64{},
		acked:   map[record.MemberID][]uint64{},
		serving: map[record.MemberID]bool{}, outcomes: map[uint64]bool{}, rows: map[table.Row]int{},
		leaderRows: map[table.Row]int{}, injected: map[string]int{}}
	w.view = record.View{Inception: &record.Inception{UID: "uid", Name: testCluster, ProjectNumber: "7",
		Region: "us-central1", Time: t0.Add(-time.Hour)},
		Replicas: map[replica.Place][]record.Incarnation{}, Marks: map[record.MemberID]record.Mark{}}
	w.places, w.faults = 1+w.random.IntN(5), 1+w.random.IntN(mostFaults)
	if n > 0 {
		w.places = n
	}
	w.survivors, w.asks, w.takeBacks = w.chance(60), max(0, w.random.IntN(5)-1), w.random.IntN(3)
	if w.sizes = w.chance(30); w.sizes {
		w.asks += 3
	}
	if w.restless = w.chance(15); w.restless {
		w.asks, w.takeBacks = w.asks+8, w.takeBacks+4
	}
	for p := range w.places {
		w.create(p, w.blankDisk())
	}
	return w
}

func (w *world) next() int { w.made++; return w.made }

func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *world) log(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	// what is tried again and again is said once
	if n := len(w.history); n == 0 || !strings.HasSuffix(w.history[n-1], line) {
		w.history = append(w.history, w.now.Sub(t0).String()+" "+line)
	}
}

func (w *world) blankDisk() *data {
	d := &data{id: fmt.Sprintf("d%d", w.next())}
	w.disks[d.id] = true
	return d
}

func (w *world) create(place int, disk *data) *vm {
	v := &vm{place: place, id: fmt.Sprint(1000*(place+1) + w.next()), disk: disk}
	w.vms = append(w.vms, v)
	w.boot(v)
	return v
}

// boot turns a VM on. crash ends its agent, and with it etcd: what they only remember is lost.
func (w *world) boot(v *vm) {
	w.made++
	v.boot = w.made
	w.crash(v)
	v.on, v.suspended, v.superseded = true, false, false
}

func (w *world) crash(v *vm) {
	v.breakOff()
	v.etcd, v.compute, v.read, v.seen, v.previous, v.silent = nil, table.Compute{}, table.Directory{},
		map[string]bool{}, leader.Ring{}, nil
	v.runs, v.beats, v.listed, v.view = map[string]table.Run{}, map[table.BeatKey]table.Beat{}, nil, nil
	v.tries, v.silences = table.Tries{}, table.Silences{}
	v.blocked, v.strangerSince, v.compacted, v.defragmented = nil, time.Time{}, time.Time{}, nil
	v.full, v.emptied = time.Time{}, time.Time{}
	v.actor = w.newActor(v)
}

func (w *world) off(v *vm) { w.crash(v); v.on, v.stoppedAt = false, w.now }

func (w *world) drop(v *vm) {
	w.off(v)
	w.vms = slices.DeleteFunc(slices.Clone(w.vms), func(u *vm) bool { return u == v })
}

func (w *world) byInstance(id string) *vm {
	for _, v := range w.vms {
		if v.id == id && v.newer == nil {
			return v
		}
	}
	return nil
}

// reach: a connection needs both directions, so one that is cut is enough.
func (w *world) reach(a, b *vm) bool {
	return a == b || a.on && b.on && !a.suspended && !b.suspended && a.newer == nil && b.newer == nil &&
		a.side == b.side && !w.cuts[[2]*vm{a, b}] && !w.cuts[[2]*vm{b, a}]
}

func (w *world) unreadable(v *vm) error {
	if v.blind {
		return errWalk
	}
	return nil
}

// listing is an answer of the Compute API. One that is late is up to 8 s old.
func (w *world) listing() table.Listing {
	l := table.Listing{Time: w.now, ServerTime: w.now, Users: map[string][]replica.Place{}}
	for _, v := range w.vms {
		if v.newer != nil {
			continue // the API knows one VM of an id
		}
		if !v.noUser {
			l.Users[v.disk.id] = append(l.Users[v.disk.id], places[v.place])
		}
		status := "RUNNING"
		switch {
		case v.said != "":
			status = v.said
		case v.suspended:
			status = "SUSPENDED"
		case !v.on:
			status = "TERMINATED"
		}
		if status != "ABSENT" {
			l.Instances = append(l.Instances, table.Instance{Place: places[v.place], InstanceID: v.id, Status: status,
				LastStop: v.stoppedAt})
		}
	}
	for id := range w.disks {
		l.Disks = append(l.Disks, id)
	}
	slices.Sort(l.Disks)
	w.lists = append(slices.DeleteFunc(w.lists,
		func(o table.Listing) bool { return w.now.Sub(o.Time) > 8*time.Second }), l)
	switch {
	case w.computeErr:
		return table.Listing{Time: w.now, Err: errWalk}
	case w.computeEmpty:
		return table.Listing{Time: w.now}
	case w.computeLate:
		l = w.lists[0]
		l.Time = w.now
	}
	return l
}

func (w *world) String() string {
	var b strings.Builder
	for _, v := range w.vms {
		for _, a := range v.disk.archives {
			fmt.Fprintf(&b, "\n  archive on %s: member %s log %d commit %d conf %v", v.disk.id, a.id, len(a.log),
				a.commit, a.conf.voters)
		}
		name := ""
		if v.blocked != nil {
			name = v.blocked.Name
		}
		if v.leaderBlocked != nil {
			name += " beside:" + v.leaderBlocked.Name
		}
		fmt.Fprintf(&b, "\n  %s place %d disk %s on %v row %s %s phase %q", v.id, v.place, v.disk.id, v.on, v.row, name,
			v.disk.agent.Phase)
		if d := v.disk.dir; d != nil {
			fmt.Fprintf(&b, " member %s log %d commit %d term %d running %v version %d/%d voters %v learners %v", d.id,
				len(d.log), d.commit, d.term,
				v.etcd != nil, d.version, w.ever[d.who()], d.conf.voters, d.conf.learners)
			fmt.Fprintf(&b, " first %d flipped %d space %+v alarms %v", d.first, d.flipped, d.space, d.conf.alarms)
		}
	}
	return b.String()
}
