package replica

import (
	"fmt"
	"strconv"
	"time"
)

// The bounds of etcd's timers: the first three are etcd's own (embed.Config.Validate counts in whole milliseconds).
const (
	heartbeatsPerElection = 5
	maxElection           = 50 * time.Second
	timerUnit             = time.Millisecond
	// minHeartbeat: below it the timers measure the scheduler, not the network.
	minHeartbeat = 10 * time.Millisecond
)

// The bounds of etcd's sizes.
const (
	minQuota = 16 << 20
	// maxQuota is twice what etcd suggests as the most (it warns above 8 GiB): a database that large takes minutes to
	// restore.
	maxQuota = 16 << 30
	// minCatchUp is etcd's own default. Fewer, and a voter that was away for seconds must fetch a snapshot.
	minCatchUp = 5000
	// maxCatchUp bounds the memory: the entries are kept there, at 2 to 10 KB each.
	maxCatchUp = 1000000
)

func (e Etcd) validate(f *Faults) {
	if !cleanPath(e.DataDir) || e.DataDir == "/" {
		f.add("etcd.dataDir", e.DataDir, pathRule+", not the root")
	}
	if e.DataDisk != "" && !deviceName().MatchString(e.DataDisk) {
		f.add("etcd.dataDisk", e.DataDisk, "a GCE device name: 1 to 63 of letters, digits, -, _ and .")
	}
	if e.QuotaBytes < minQuota || e.QuotaBytes > maxQuota {
		f.add("etcd.quotaBytes", strconv.FormatInt(e.QuotaBytes, 10), fmt.Sprintf("%d (16 MiB) to %d (16 GiB)",
			int64(minQuota), int64(maxQuota)))
	}
	e.validateTimers(f)
	e.Snapshots.validate(f)
	if e.CatchUpEntries < minCatchUp || e.CatchUpEntries > maxCatchUp {
		f.add("etcd.catchUpEntries", strconv.FormatUint(e.CatchUpEntries, 10), fmt.Sprintf("%d to %d", minCatchUp,
			maxCatchUp))
	}
}

// The bounds of the snapshots' times.
const (
	// minInterval: a database of gigabytes takes minutes to save.
	minInterval = 5 * time.Minute
	maxInterval = 24 * time.Hour
	// maxRetention is some ten years: beyond it somebody has mistyped.
	maxRetention = 90000 * time.Hour
)

func (s Snapshots) validate(f *Faults) {
	if i := s.Interval.Duration(); i < minInterval || i > maxInterval {
		f.add("etcd.snapshots.interval", s.Interval.String(), fmt.Sprintf("%s to %s", minInterval, maxInterval))
	}
	if h := s.Hourly.Duration(); h < time.Hour || h > maxRetention {
		f.add("etcd.snapshots.hourly", s.Hourly.String(), fmt.Sprintf("%s to %s", time.Hour, maxRetention))
	}
	if d := s.Daily.Duration(); d < s.Hourly.Duration() || d > maxRetention {
		f.add("etcd.snapshots.daily", s.Daily.String(), fmt.Sprintf("at least etcd.snapshots.hourly (%s), at most %s",
			s.Hourly, maxRetention))
	}
}

func (e Etcd) validateTimers(f *Faults) {
	heartbeat, election := e.Heartbeat.Duration(), e.Election.Duration()
	if heartbeat < minHeartbeat || heartbeat%timerUnit != 0 {
		f.add("etcd.heartbeat", e.Heartbeat.String(), fmt.Sprintf("whole milliseconds, at least %s", minHeartbeat))
	}
	if least := heartbeatsPerElection * heartbeat; election < least || election > maxElection ||
		election%timerUnit != 0 {
		f.add("etcd.election", e.Election.String(), fmt.Sprintf("whole milliseconds, at least %d heartbeats (%s), at "+
			"most %s", heartbeatsPerElection, least, maxElection))
	}
}
