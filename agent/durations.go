package agent

import (
	"time"

	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/replica"
)

// This page has the durations that the agent names, in the order of a replica's life. The limits of the
// phases stand with them (deadlines).

// The boot.

// promotionPatience is how long a new member waits to become a voter whose client port serves, before its control plane
// starts with another member in addition to its own. Promotion takes two polls of 250 ms.
const promotionPatience = 3 * time.Second

// maintenancePeriod is the time between two hand-overs of etcd's leadership while the host is about to be maintained:
// it may come back when another replica fails. A member that does not lead answers at once.
const maintenancePeriod = 5 * time.Second

// Whether this is a Spot VM is asked again after firstSpotPause, and later and later, up to lastSpotPause.
const firstSpotPause, lastSpotPause = time.Second, time.Minute

const (
	// Two starts are at least a second apart, as the service manager has it, then two, four and so on, up to
	// lastDistance: what a person repairs meanwhile counts soon.
	firstDistance, lastDistance = time.Second, 10 * time.Second
	// calmAfter is how long the member must run for the starts before to be forgotten.
	calmAfter = 10 * time.Second
)

// programPatience is how long a question to a program is waited for. The question has a limit of its own, which is
// shorter: what exceeds this hangs in the kernel, on a disk that stands still for one.
const programPatience = 8 * time.Second

// The member's process.

// etcdStopTimeout is enough for a leader to hand over and for the database to be closed.
const etcdStopTimeout = 15 * time.Second

// How the member's process is asked whether it answers: how often, how long one answer may take, and for how long it
// may fail to until it is started again. A start reads the log and the database, which may take minutes on a slow disk:
// breaking that off would make it begin again.
const (
	startPeriod, startTimeout, startLimit = 50 * time.Millisecond, 1 * time.Second, 10 * time.Minute
	livePeriod, liveTimeout, liveLimit    = 5 * time.Second, 3 * time.Second, 20 * time.Second
)

// launchLimit is how long Start waits for the process. A launch reads this program from the boot disk, which may be
// frozen.
const launchLimit = 10 * time.Second

// selfStop is how long a run may take to end once it is asked to. What it has done by then is of no use.
const selfStop = 3 * time.Second

// The control plane.

const (
	// fitPeriod is the longest time between two fits: what has to run may have changed unnoticed.
	fitPeriod = time.Minute
	// fitHurry is the time between two fits while a component is not ready: its program may be put right at any moment.
	fitHurry = time.Second
	// A fit that failed is tried again after firstFitRetry, and later and later, up to lastFitRetry: what a person
	// repairs is taken up within that.
	firstFitRetry, lastFitRetry = time.Second, 10 * time.Second
	// componentPatience is how long a component may be not ready before that is a wait. A restart after a crash takes
	// less.
	componentPatience = 5 * time.Second
)

const (
	// A request that fails while other replicas join is answered a moment later.
	firstAccessRetry, lastAccessRetry = 500 * time.Millisecond, 30 * time.Second
	// accessTimeout bounds one try: some requests to the apiserver on this machine and, at most, one bundle that is
	// read.
	accessTimeout = time.Minute
)

// What one replica at a time does.

const (
	// dutiesPeriod is the time between two rounds of it.
	dutiesPeriod = time.Minute
	// departedPatience is how long the kubelet of a replica that left must have been silent.
	departedPatience = time.Minute
)

const (
	// addonsPeriod is the time between two questions to the add-on manager.
	addonsPeriod = 2 * time.Second
	// addonsTimeout bounds one question: it answers from its memory.
	addonsTimeout = time.Second
	// What the add-on manager may do is granted again after firstGrantRetry where that failed, up to lastGrantRetry.
	firstGrantRetry, lastGrantRetry = time.Second, 30 * time.Second
)

// callTimeout bounds one call to the apiserver on this machine.
const callTimeout = 5 * time.Second

// Background tasks.

const (
	// snapshotPeriod is the time between two checks of whose turn it is, at what the membership read from the record
	// anyway: an order that waits for a snapshot should not wait for the check.
	snapshotPeriod = 2 * time.Second
	// snapshotRetry is the time after a saving that failed; it doubles up to snapshotRetryMost. After one that did not,
	// it is the time that the record is given to show it.
	snapshotRetry     = time.Minute
	snapshotRetryMost = 30 * time.Minute
	// savingLimit bounds one saving. The largest database that etcd is made for, 8 GiB, is written, read and checked at
	// 10 MB/s within half of it.
	savingLimit = time.Hour
	// savingLinger is what a saving may take to end once it is asked to.
	savingLinger = 5 * time.Second
	// snapshotPatience is how long after its time a snapshot is called overdue: by then each of three replicas has had
	// its turn.
	snapshotPatience = 45 * time.Minute
)

// archivesPeriod is the time between two checks of the archived directories. Room is wanted before the next
// replacement, which nobody can foresee; a check that finds no more than one reads the data disk alone.
const archivesPeriod = time.Minute

// Answers to questions.

// statusTimeout bounds everything that a status asks of others: a person waits.
const statusTimeout = 3 * time.Second

// The end.

// stopPatience is how long what the agent itself does may take to end once it is asked to. What exceeds it hangs in the
// kernel, on a disk that stands still for one.
const stopPatience = 8 * time.Second

// The limits of a planned stop. GCE cuts the power about 90 s after it asked.
const (
	releaseTimeout = 10 * time.Second
	// detachSettles is how long after its detachment from the load balancer a VM still serves everything: with the time
	// for which a stopping apiserver does, it is what Google may take until new connections go elsewhere, and a second
	// more: without it, 2 of 27,000 connections in a roll came in the moment in which the apiserver closed its port.
	detachSettles = replica.SettleTime + time.Second - controlplane.ShutdownDelay
	// detachTimeout is for leaving the load balancer, and begins when etcd's leadership is handed over and leases are
	// released. Google takes 5 to 30 s. An operation that is not over by then goes on, and after it the apiserver still
	// serves for its ShutdownDelay.
	detachTimeout = member.HandOverTimeout + releaseTimeout + detachSettles
	// asideTimeout is for leaving the load balancer while the VM stays on: Google takes 5 to 30 s, and more at times.
	asideTimeout = time.Minute
	// orderPause is the time between two questions whether this replica is ordered to leave, which asks nobody.
	// orderRetry is the longest pause between two tries to write that it serves nobody any more.
	orderPause = time.Second
	orderRetry = 10 * time.Second
	// orphanTimeout is how long an apiserver may take to stop whose member was removed or has no quorum: it can answer
	// nobody any more, and waits in vain for etcd until its own limit of 30 s. Within this much load balancers see that
	// it is not ready.
	orphanTimeout = 6 * time.Second
	// giveUpTimeout is for etcd's own end. One that is not gone by then is blocked in the kernel, and is left to what
	// stops everything.
	giveUpTimeout = etcdStopTimeout + 5*time.Second
)
