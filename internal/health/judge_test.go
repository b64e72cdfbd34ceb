package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

var t0 = time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)

var places = map[string]replica.Place{
	"a": {Zone: "us-central1-a", Name: "master-a"}, "b": {Zone: "us-central1-b", Name: "master-b"},
	"c": {Zone: "us-central1-c", Name: "master-c"},
}

// commands spell what they would run so that a test reads it.
var commands = Commands{
	Quorate:    func(c string) string { return c },
	StartVM:    func(p replica.Place) string { return "start " + p.Name },
	ResetVM:    func(p replica.Place) string { return "reset " + p.Name },
	RecreateVM: func(p replica.Place) string { return "recreate " + p.Name },
	On:         func(p replica.Place, c string) string { return p.Name + ": " + c },
}

// three is a cluster of three that is well; a leads.
func three() Facts {
	f := Facts{Cluster: "demo", Now: t0, Wanted: 3, Endpoint: &Endpoint{Address: "203.0.113.7:443", Code: 200}}
	for n, name := range []string{"a", "b", "c"} {
		f.Reports = append(f.Reports, report.Sighting{Age: time.Duration(5*n+3) * time.Second, Report: report.Report{
			Place: places[name], At: t0, Since: t0.Add(-time.Hour), Phase: "keep", Ready: true, Member: name + "1",
			Components: []report.Component{{Name: "etcd", State: "ready"}, {Name: "kube-apiserver", State: "ready"}},
			Members:    members(name), Certificate: &report.Certificate{Name: "apiserver",
				NotAfter: t0.AddDate(0, 2, 0)}}})
	}
	return f
}

// members are the three as one of them knows them.
func members(knows string) (out []report.Member) {
	for _, name := range []string{"a", "b", "c"} {
		m := report.Member{Name: places[name].String(), ID: name + "1", Role: "voter", Leader: name == "a",
			Started: true}
		if knows == "a" {
			m.Heard = new(true)
		}
		out = append(out, m)
	}
	return out
}

// of is the report of a replica, to be changed.
func (f *Facts) of(name string) *report.Sighting {
	return &f.Reports[slices.IndexFunc(f.Reports, func(s report.Sighting) bool { return s.Place == places[name] })]
}

func (f *Facts) drop(name string) {
	f.Reports = slices.DeleteFunc(f.Reports, func(s report.Sighting) bool { return s.Place == places[name] })
}

func (f *Facts) waits(name string, waits ...string) {
	for _, w := range waits {
		f.of(name).Waits = append(f.of(name).Waits, replica.Wait{Name: w, Reason: "Because of " + w + ".", Next: "n."})
	}
}

// dies: a replica was shot, and the one that leads does not hear of it any more.
func (f *Facts) dies(name, leads string) {
	f.of(name).Age = 12 * time.Second
	s := f.of(leads)
	s.Age = time.Second
	s.Members = members("a")
	for n := range s.Members {
		m := &s.Members[n]
		m.Leader, m.Heard = m.Name == places[leads].String(), new(m.Name != places[name].String())
	}
}

// losesTouch: a replica that runs, and reports, and the one that leads do not hear of each other.
func (f *Facts) losesTouch(name string) {
	f.dies(name, "a")
	f.leaderless(name)
	f.of(name).Age = 2 * time.Second
}

// removed: a fourth replica had left by an order, when its VM was deleted.
func (f *Facts) removed(name string) {
	p := replica.Place{Zone: "us-central1-b", Name: "master-" + name}
	f.Left = append(f.Left, p)
	f.Reports = append(f.Reports, report.Sighting{Age: 2 * time.Minute,
		Report: report.Report{Place: p, Phase: "stopping"}})
}

// leaderless: a replica knows of no leader.
func (f *Facts) leaderless(names ...string) {
	for _, name := range names {
		s := f.of(name)
		s.Age = time.Second
		s.Members = members("b")
		s.Members[0].Leader = false
	}
}

// said is the findings as a person reads them: each cause, and what follows from it in brackets.
func said(list []Finding) string {
	var out []string
	for _, f := range list {
		text := f.Name
		for n, p := range f.Replicas {
			text += map[bool]string{true: " ", false: ","}[n == 0] + p[strings.LastIndexByte(p, '-')+1:]
		}
		if len(f.Consequences) > 0 {
			text += " [" + said(f.Consequences) + "]"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestVerdicts(t *testing.T) {
	dead := &Endpoint{Address: "203.0.113.7:443", Error: "nothing within 2s"}
	for name, c := range map[string]struct {
		change func(f *Facts)
		state  State
		// survives is -2 where the voters are not known.
		survives int
		keep     string
		leader   string
		findings string
		// remedy is that of the first finding.
		remedy string
	}{
		"all is well": {func(*Facts) {}, Well, 1, "", "a", "", ""},
		"a replica was removed: nobody is told to start it": {func(f *Facts) { f.removed("d") }, Well, 1, "", "a",
			"", ""},
		"one that was stopped before its member left": {func(f *Facts) {
			f.removed("d")
			f.Left = nil
		}, Degraded, 1, "", "a", "replica-stopped d", "start master-d"},
		"one that left after the leader's report": {func(f *Facts) {
			f.dies("b", "a")
			f.Left, f.Wanted = []replica.Place{places["b"]}, 2
		}, Well, 0, "us-central1-a us-central1-c", "a", "", ""},
		"one that left, and whose agent waits in its VM": {func(f *Facts) {
			f.of("b").Member, f.of("b").Phase, f.of("b").Ready = "", "etcd", false
			f.waits("b", "left")
			f.Left, f.Wanted = []replica.Place{places["b"]}, 2
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "left b [replica-booting b]", "quorate orders"},
		"a master that does not lead is shot": {func(f *Facts) { f.dies("b", "a") }, Degraded, 0,
			"us-central1-a us-central1-c", "a", "replica-not-heard b", "start master-b"},
		"the master that leads is shot": {func(f *Facts) { f.dies("a", "c") }, Degraded, 0,
			"us-central1-b us-central1-c", "c", "replica-not-heard a", "start master-a"},
		"the master that leads is shot, and the endpoint has not noticed yet": {func(f *Facts) {
			f.dies("a", "c")
			f.Endpoint = dead
		}, NotServing, 0, "us-central1-b us-central1-c", "c", "replica-not-heard a [endpoint-silent]", "start master-a"},
		"a minute later the leader waits for it": {func(f *Facts) {
			f.dies("b", "a")
			f.of("b").Age = 2 * time.Minute
			f.waits("a", "member-unreachable")
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "replica-not-heard b [member-unreachable a]",
			"start master-b"},
		"a replica that hangs is shot where the Compute API says that it runs": {func(f *Facts) {
			f.dies("b", "a")
			f.VMs = []replica.VM{{Place: places["b"], Status: "RUNNING"}}
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "replica-not-heard b", "reset master-b"},
		"a VM is off": {func(f *Facts) {
			f.dies("b", "a")
			f.VMs = []replica.VM{{Place: places["b"], Status: "TERMINATED"}}
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "vm-not-running b [replica-not-heard b]", "start master-b"},
		"two VMs are off, and nobody leads who could notice": {func(f *Facts) {
			f.leaderless("c")
			for _, name := range []string{"a", "b"} {
				f.of(name).Age = 20 * time.Second
				f.VMs = append(f.VMs, replica.VM{Place: places[name], Status: "TERMINATED"})
			}
			f.Endpoint = dead
		}, NotServing, -1, "", "", "vm-not-running a [replica-not-heard a; no-leader; endpoint-silent]; " +
			"vm-not-running b [replica-not-heard b]", "start master-a"},
		"a VM boots, and the Compute API's list is of a moment ago": {func(f *Facts) {
			f.of("b").Age = time.Second
			f.VMs = []replica.VM{{Place: places["a"], Status: "RUNNING"}, {Place: places["b"], Status: "TERMINATED"},
				{Place: places["c"], Status: "RUNNING"}}
		}, Well, 1, "", "a", "", ""},
		"the Compute API does not answer": {func(f *Facts) { f.UnreadVMs = "403" }, Degraded, 1, "", "a",
			"vms-unreadable-here", "quorate gce check"},
		"a VM is deleted": {func(f *Facts) {
			f.dies("b", "a")
			f.VMs = []replica.VM{{Place: places["a"], Status: "RUNNING"}}
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "vm-missing b [replica-not-heard b]", "recreate master-b"},
		"two of three are shot": {func(f *Facts) {
			f.dies("a", "b")
			f.of("c").Age = 90 * time.Second
			f.leaderless("b")
			f.of("a").Age = 90 * time.Second
			f.waits("b", "no-quorum", "component-not-ready")
			f.Endpoint = &Endpoint{Address: "x", Code: 500}
		}, NotServing, -1, "", "",
			"replica-not-heard a [no-quorum b; no-leader; component-not-ready b; endpoint-not-ready]; " +
				"replica-not-heard c", "start master-a"},
		"a replica cannot write reports, and etcd's leader hears of it": {func(f *Facts) {
			f.of("b").Age = 5 * time.Minute
		}, Degraded, 1, "", "a", "replica-without-report b", "master-b: quorate status"},
		"a disk fills, and nothing has failed yet": {func(f *Facts) {
			f.waits("b", "disk-nearly-full", "snapshot-overdue")
		}, Degraded, 1, "", "a", "disk-nearly-full b [snapshot-overdue b]", "master-b: quorate status"},
		"the master that led is cut off, and reports after the one that leads now": {func(f *Facts) {
			f.dies("a", "b")
			f.leaderless("a")
			f.of("a").Components[0].State = "degraded"
			f.of("b").Age = 5 * time.Second
		}, Degraded, 0, "us-central1-b us-central1-c", "b", "replica-cut-off a",
			"master-a: quorate status"},
		"no room on two replicas": {func(f *Facts) {
			f.waits("a", "no-room", "disk-nearly-full")
			f.waits("b", "no-room", "step-failed")
			f.of("b").Waits[0].Reason = "Two."
		}, Degraded, 1, "", "a", "no-room a,b [disk-nearly-full a; step-failed b]",
			"master-a: quorate status; master-b: quorate status"},
		"a cause on one replica does not hide what two have": {func(f *Facts) {
			f.waits("a", "no-room", "program-unusable", "component-not-ready")
			f.waits("b", "component-not-ready")
			f.waits("c", "no-room", "preflight")
		}, Degraded, 1, "", "a",
			"no-room a,c [preflight c]; program-unusable a; component-not-ready a,b", "master-a: quorate status; " +
				"master-c: quorate status"},
		"all are shot": {func(f *Facts) {
			for n := range f.Reports {
				f.Reports[n].Age = time.Hour
			}
			f.Endpoint = dead
		}, NotServing, -1, "", "", "replica-not-heard a [no-leader; endpoint-silent]; " +
			"replica-not-heard b; replica-not-heard c",
			"start master-a"},
		"its first member is about to lead": {func(f *Facts) {
			f.drop("b")
			f.drop("c")
			s := f.of("a")
			s.Phase, s.Ready, s.Members = "etcd", false, s.Members[:1]
			s.Members[0].Leader = false
			f.Endpoint = dead
		}, NotServing, -1, "", "", "replica-booting a [endpoint-silent]; replicas-missing", ""},
		"its only member starts again and again": {func(f *Facts) {
			f.drop("b")
			f.drop("c")
			s := f.of("a")
			s.Phase, s.Ready, s.Members, s.StartsAgain = "stopping", false, s.Members[:1], "etcd does not come up"
			s.Members[0].Leader = false
			f.Endpoint = dead
		}, NotServing, -1, "", "", "no-leader [replica-booting a; endpoint-silent]; replicas-missing", ""},
		"a replica stops in order": {func(f *Facts) {
			f.of("b").Phase, f.of("b").Ready = "stopping", false
		}, Degraded, 1, "", "a", "", ""},
		"a replica was stopped in order, as a roll by hand does": {func(f *Facts) {
			f.dies("b", "a")
			f.of("b").Phase, f.of("b").Ready, f.of("b").Member = "stopping", false, ""
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "replica-stopped b", "start master-b"},
		"its agent ends, and is started again": {func(f *Facts) {
			f.dies("b", "a")
			f.of("b").Phase, f.of("b").Ready, f.of("b").Member = "stopping", false, ""
			f.of("b").StartsAgain = "etcd does not come up"
			f.waits("b", "no-room")
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "no-room b [replica-booting b]",
			"master-b: quorate status"},
		"it was shot while it was to start again": {func(f *Facts) {
			f.dies("b", "a")
			f.of("b").Phase, f.of("b").Ready, f.of("b").StartsAgain = "stopping", false, "etcd does not come up"
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "replica-booting b", ""},
		"its agent ended to be started again, and was not": {func(f *Facts) {
			f.dies("b", "a")
			f.of("b").Phase, f.of("b").Ready, f.of("b").Member = "stopping", false, ""
			f.of("b").StartsAgain, f.of("b").Age = "etcd does not come up", SilentAfter+time.Second
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "replica-not-heard b", "start master-b"},
		"it boots again": {func(f *Facts) {
			f.of("b").Phase, f.of("b").Ready = "control plane", false
		}, Degraded, 1, "", "a", "replica-booting b", ""},
		"it boots, and its former report is what the leader judged by": {func(f *Facts) {
			f.dies("b", "a")
			f.of("b").Phase, f.of("b").Ready, f.of("b").Age = "record", false, 0
			f.of("b").Members, f.of("b").Member = nil, ""
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "replica-booting b", ""},
		"two of three were promoted after their reports": {func(f *Facts) {
			for _, name := range []string{"b", "c"} {
				f.of(name).Phase, f.of(name).Ready = "etcd", false
				f.of(name).Members, f.of(name).Member = nil, ""
			}
		}, Degraded, 1, "", "a", "replica-booting b; replica-booting c", ""},
		"a replica is cut off from the others, and says so": {func(f *Facts) {
			f.losesTouch("b")
			f.waits("b", "peers-do-not-connect")
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "peers-do-not-connect b [replica-cut-off b]",
			"master-b: quorate status"},
		"etcd has ended for want of room": {func(f *Facts) {
			f.losesTouch("b")
			f.of("b").Components[0].State = "backoff"
			f.waits("b", "no-room", "disk-nearly-full")
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "no-room b [disk-nearly-full b; etcd-ended b]",
			"master-b: quorate status"},
		"etcd has crashed, and its leader cannot reach it": {func(f *Facts) {
			f.losesTouch("b")
			f.of("b").Components[0].State, f.of("b").Components[1].State = "parked", "waiting"
			f.waits("a", "member-unreachable")
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "etcd-ended b [member-unreachable a]",
			"master-b: quorate status"},
		"a disk that is shared does not cut off": {func(f *Facts) {
			f.losesTouch("b")
			f.of("b").Components[0].State = "degraded"
			f.waits("b", "data-disk-shared")
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "data-disk-shared b; replica-cut-off b",
			"master-b: quorate status"},
		"etcd is started once more for want of room": {func(f *Facts) {
			f.losesTouch("b")
			f.of("b").Components[0].State, f.of("b").Components[0].Restarts = "starting", 3
			f.waits("b", "no-room")
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "no-room b [replica-cut-off b]",
			"master-b: quorate status"},
		"its etcd was started again while it was cut off": {func(f *Facts) {
			f.losesTouch("b")
			f.of("b").Components[0].State, f.of("b").Components[0].Restarts = "starting", 1
		}, Degraded, 0, "us-central1-a us-central1-c", "a", "replica-cut-off b", "master-b: quorate status"},
		"a full disk is the cause of all else on its replica": {func(f *Facts) {
			f.of("b").Ready, f.of("b").Phase, f.of("b").Member, f.of("b").Members = false, "etcd", "", nil
			f.waits("b", "etcd-does-not-stay-up", "no-room")
		}, Degraded, 0, "us-central1-a us-central1-c", "a",
			"no-room b [etcd-does-not-stay-up b; replica-booting b]", "master-b: quorate status"},
		"a full disk does not explain what another waits for": {func(f *Facts) {
			f.waits("b", "no-room")
			f.waits("c", "program-unusable")
		}, Degraded, 1, "", "a", "no-room b; program-unusable c", "master-b: quorate status"},
		"a program that is gone": {func(f *Facts) {
			f.of("b").Components[1].State = "backoff"
			f.waits("b", "program-unusable", "component-not-ready")
		}, Degraded, 1, "", "a", "program-unusable b [component-not-ready b; component-down b]",
			"master-b: quorate status"},
		"an apiserver is down and nothing waits yet": {func(f *Facts) {
			f.of("b").Components[1].State = "starting"
		}, Degraded, 1, "", "a", "component-down b", "master-b: quorate status"},
		"the bucket cannot be read by the masters": {func(f *Facts) {
			f.waits("a", "record-unreadable")
			f.waits("b", "record-unreadable", "snapshot-overdue")
		}, Degraded, 1, "", "a", "record-unreadable a,b [snapshot-overdue b]", "quorate record check"},
		"the bucket cannot be read from here": {func(f *Facts) { f.Reports, f.Unread = nil, "403" }, Degraded, -2, "",
			"",
			"record-unreadable-here", "quorate record check"},
		"the bucket does not exist": {func(f *Facts) { f.Reports, f.Unread, f.NoBucket = nil, "404", true }, Degraded, -2,
			"", "", "record-unreadable-here", ""},
		"the bucket cannot be read from a master, which asks no endpoint": {func(f *Facts) {
			f.Reports, f.Unread, f.Endpoint = nil, "403", nil
		}, Unknown, -2, "", "", "record-unreadable-here", "quorate record check"},
		"nobody has ever reported": {func(f *Facts) { f.Reports = nil }, Degraded, -2, "", "", "no-reports", ""},
		"the database is full": {func(f *Facts) { f.waits("a", "no-space"); f.waits("b", "addons-failing") }, Degraded,
			1, "",
			"a", "no-space a [addons-failing b]", "master-a: quorate status"},
		"the add-ons lack a role": {func(f *Facts) {
			f.waits("a", "addons-role-not-granted", "addons-unreachable", "addons-failing")
		}, Degraded, 1, "", "a", "addons-role-not-granted a [addons-failing a; addons-unreachable a]",
			"master-a: quorate status"},
		"data differ": {func(f *Facts) { f.waits("a", "corrupt-member", "corrupt") }, Degraded, 1, "", "a",
			"corrupt a [corrupt-member a]", "master-a: quorate status"},
		"the broken comes before the deeper": {func(f *Facts) { f.waits("b", "no-room"); f.waits("a", "corrupt") },
			Degraded,
			1, "", "a", "corrupt a; no-room b", "master-a: quorate status"},
		"a pause": {func(f *Facts) {
			f.Orders = []Order{{Number: 3, Kind: "pause", By: "jane@host", Reason: "roll"}}
			f.waits("a", "paused")
		}, Well, 1, "", "a", "membership-paused [paused a]", "quorate resume"},
		"a certificate that is not renewed": {func(f *Facts) {
			f.of("c").Certificate.NotAfter = t0.Add(24 * time.Hour)
			f.waits("c", "bundle-unreadable", "certificates-not-renewed")
		}, Degraded, 1, "", "a", "bundle-unreadable c [certificates-not-renewed c; certificate-expires c]",
			"quorate record check"},
		"the load balancer is wrong": {func(f *Facts) { f.Endpoint = dead }, NotServing, 1, "", "a", "endpoint-silent",
			""},
		"the routes are gone": {func(f *Facts) {
			f.Endpoint = dead
			f.waits("a", "endpoint-route-missing")
		}, NotServing, 1, "", "a", "endpoint-route-missing a [endpoint-silent]", "master-a: quorate status"},
		"a replica was taken out for good": {func(f *Facts) {
			for _, name := range []string{"a", "b"} {
				f.of(name).Members = f.of(name).Members[:2]
			}
			f.of("c").Age, f.Wanted = time.Hour, 2
		}, Well, 0, "us-central1-a us-central1-b", "a", "", ""},
		"a member that has never reported, and that etcd's leader hears of": {func(f *Facts) { f.drop("c") }, Degraded, 1,
			"", "a", "replica-without-report c", "master-c: quorate status"},
		"a member that has never reported, and of which nobody hears": {func(f *Facts) {
			f.drop("c")
			f.of("a").Members[2].Heard = new(false)
		}, Degraded, 0, "us-central1-a us-central1-b", "a", "replica-without-report c", "master-c: quorate status"},
		"a third replica is missing": {func(f *Facts) {
			f.drop("c")
			for _, name := range []string{"a", "b"} {
				f.of(name).Members = f.of(name).Members[:2]
				f.of(name).Members[1].Role = "learner"
			}
			f.waits("a", "third-replica-missing")
		}, Degraded, 0, "us-central1-a", "a", "third-replica-missing a; replicas-missing", "master-a: quorate status"},
		"a name of a later version": {func(f *Facts) { f.waits("b", "moon-phase") }, Degraded, 1, "", "a",
			"moon-phase b",
			"master-b: quorate status"},
	} {
		t.Run(name, func(t *testing.T) {
			f := three()
			c.change(&f)
			v := Judge(f, commands)
			if v.State != c.state {
				t.Errorf("%s, want %s", v.State, c.state)
			}
			survives := v.Voters.Survives
			if !v.Voters.Known {
				survives = -2
			}
			if survives != c.survives || strings.Join(v.Voters.KeepZones, " ") != c.keep {
				t.Errorf("survives %d, keep %v; want %d, %s", survives, v.Voters.KeepZones, c.survives, c.keep)
			}
			if leader := strings.TrimPrefix(v.Leader, "us-central1-"); leader != "" && leader[:1] != c.leader ||
				leader == "" && c.leader != "" {
				t.Errorf("%q leads, want %q", v.Leader, c.leader)
			}
			if got := said(v.Findings); got != c.findings {
				t.Errorf("found\n     %s\nwant %s", got, c.findings)
			}
			if len(v.Findings) > 0 {
				if got := strings.Join(v.Findings[0].Remedy, "; "); got != c.remedy {
					t.Errorf("remedy %q, want %q", got, c.remedy)
				}
			}
			for _, f := range v.Findings {
				if f.What == "" || f.Runbook != "docs/runbook.md#"+f.Name {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// A cause must stand above what follows from it: else a finding would be folded below one that it explains itself.
func TestCausesStandAboveTheirConsequences(t *testing.T) {
	seen := map[string]bool{}
	for n, e := range catalog {
		if seen[e.name] {
			t.Errorf("%s stands there twice", e.name)
		}
		seen[e.name] = true
		for _, cause := range join(e.here, e.anywhere) {
			if at := position(cause); at >= n {
				t.Errorf("%s follows from %s, which does not stand above it", e.name, cause)
			}
		}
	}
	for _, name := range Own {
		if !seen[name] {
			t.Errorf("%s is not in the catalog", name)
		}
	}
}

// What differs from replica to replica is said of each.
func TestAWaitOfSeveralReplicasHasTheReasonOfEach(t *testing.T) {
	f := three()
	f.waits("a", "no-room", "step-failed")
	f.waits("b", "no-room", "step-failed")
	f.of("b").Waits[0].Reason = "another disk"
	v := Judge(f, commands)
	if got, want := v.Findings[0].What, "master-a: Because of no-room. master-b: another disk."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := v.Findings[0].Consequences[0].What, "Because of step-failed."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheHeadlineSaysWhatMayStillFail(t *testing.T) {
	for want, v := range map[string]Verdict{
		"Cluster demo serves and is well: 3 of 3 voters take part, and one more may fail.": {State: Well,
			Voters: Voters{Known: true, Count: 3, Well: 3, Survives: 1}},
		"Cluster demo serves and is well: 5 of 5 voters take part, and 2 more may fail.": {State: Well,
			Voters: Voters{Known: true, Count: 5, Well: 5, Survives: 2}},
		"Cluster demo serves, and is degraded: 2 of 3 voters take part, and none of them may fail.": {State: Degraded,
			Voters: Voters{Known: true, Count: 3, Well: 2}},
		"Cluster demo does not serve: 1 of 3 voters take part, which is no quorum.": {State: NotServing,
			Voters: Voters{Known: true, Count: 3, Well: 1, Survives: -1}},
		"Cluster demo serves and is well: its only voter takes part, and it may not fail.": {State: Well,
			Voters: Voters{Known: true, Count: 1, Well: 1}},
		"Cluster demo does not serve, although etcd has its quorum: 3 of 3 voters take part, and one more may fail.": {
			State: NotServing, Voters: Voters{Known: true, Count: 3, Well: 3, Survives: 1}},
		"Cluster demo does not serve.":              {State: NotServing},
		"Whether cluster demo serves is not known.": {State: Unknown},
	} {
		v.Cluster = "demo"
		if got := v.Headline(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
