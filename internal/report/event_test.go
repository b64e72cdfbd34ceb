package report

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

func TestEachChangeIsAnEvent(t *testing.T) {
	for name, c := range map[string]struct {
		change func(before, after *Report)
		want   []string
	}{
		"nothing": {func(_, _ *Report) {}, nil},
		"ages and texts": {func(_, a *Report) {
			a.Members[1].Lag, a.Components[0].Reason, a.RecordRead = new(uint64(7)), "other", &t0
		}, nil},
		"a boot goes on": {func(b, a *Report) {
			b.Phase, b.Ready, a.Phase, a.Ready = "record", false, "etcd",
				false
		}, []string{"phase phase etcd"}},
		"a boot is done": {func(b, _ *Report) { b.Phase, b.Ready = "control plane", false },
			[]string{"ready is ready"}},
		"a stop": {func(_, a *Report) { a.Phase, a.Ready = "stopping", false },
			[]string{"stopping was asked to stop; it stops in order"}},
		"an end that nobody asked for": {func(_, a *Report) {
			a.Phase, a.Ready, a.StartsAgain = "stopping", false, "etcd does not come up"
		}, []string{"restarting stops its processes and starts again: etcd does not come up"}},
		"an incarnation": {func(_, a *Report) { a.Incarnation = 2 }, []string{"place has incarnation 2"}},
		"an act": {func(_, a *Report) { a.Steps = []Step{{"remove member", "done", 1, "its disk is gone"}} },
			[]string{"did removed a former member: its disk is gone"}},
		"an act that goes without saying": {func(_, a *Report) {
			a.Steps = []Step{{"start", "done", 1, "the directory is valid"}}
		}, []string{"did started its member on the disk's directory"}},
		"an act that fails": {func(b, a *Report) {
			b.Steps, a.Steps = []Step{{"promote", "failed", 1, ""}},
				[]Step{{"promote", "failed", 3, ""}}
		},
			[]string{`did did not get through with "promote", and observes again (2 times)`}},
		"a promotion": {func(b, _ *Report) { b.Members[0].Role = "learner" },
			[]string{"joined its member a1 is a voter"}},
		"another leads": {func(_, a *Report) { a.Members[0].Leader, a.Members[1].Leader = false, true },
			[]string{"follows follows us-central1-b.master-b, which leads etcd"}},
		"it leads": {func(b, _ *Report) { b.Members[0].Leader, b.Members[1].Leader = false, true },
			[]string{"leads leads etcd"}},
		"nobody leads": {func(_, a *Report) { a.Members[0].Leader = false },
			[]string{"leads knows of no etcd leader"}},
		"a member is silent": {func(_, a *Report) { a.Members[1].Heard = new(false) }, []string{
			"silent hears nothing of us-central1-b.master-b any more"}},
		"a wait": {func(_, a *Report) { a.Waits = []replica.Wait{{Name: "no-room", Reason: "the disk is full"}} },
			[]string{"waiting waits, no-room: the disk is full"}},
		"the end of a wait": {func(b, _ *Report) { b.Waits = []replica.Wait{{Name: "no-room"}} },
			[]string{"resumed does not wait any more: no-room"}},
		"a member that never started is silent": {func(b, a *Report) {
			b.Members[1].Started, a.Members[1].Started, a.Members[1].Heard = false, false, new(false)
		}, nil},
		"a component starts": {func(b, a *Report) {
			b.Components[1].State = "waiting"
			a.Components[1].State, a.Components[1].Reason = "starting", "connection refused"
		}, []string{"component kube-apiserver is starting"}},
		"an election": {func(b, a *Report) { b.Elected, a.Elected = []string{"quorate"}, []string{"kube-scheduler"} },
			[]string{"elected leads kube-scheduler", "unelected does not see itself lead quorate any more"}},
		"another row": {func(_, a *Report) { a.Row = "replace-broken" }, []string{"row row replace-broken holds"}},
		"a crash": {func(_, a *Report) {
			a.Components[1] = Component{Name: "kube-apiserver", State: "starting",
				Restarts: 1, Reason: "exit code 255"}
		},
			[]string{"startedAgain kube-apiserver is starting, started again: exit code 255"}},
		"a crash between two observations": {func(_, a *Report) { a.Components[1].Restarts = 1 },
			[]string{"startedAgain kube-apiserver is ready, started again"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := ready(t0), ready(t0.Add(time.Second))
			c.change(&before, &after)
			var got []string
			for _, e := range Changes(before, after) {
				got = append(got, string(e.Kind)+" "+e.Text)
				if !e.At.Equal(after.At) {
					t.Errorf("it happened at %s", e.At)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// What a program reads of an event is in fields.
func TestEventsSayTheStateAndSinceWhen(t *testing.T) {
	before, after := ready(t0), ready(t0.Add(time.Second))
	after.Components[0].State = "backoff"
	after.Waits = []replica.Wait{{Name: "no-room", Since: t0.Add(-time.Hour)}}
	got := Changes(before, after)
	if len(got) != 2 || !got[0].Since.Equal(t0.Add(-time.Hour)) || got[1].State != "backoff" {
		t.Errorf("%+v", got)
	}
}

func TestNoTextHasASecret(t *testing.T) {
	for _, secret := range []string{
		"base64key://c21hbGwga2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMuLi4=",
		"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBZ7Q1\nq8vb\n-----END EC PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\nMHcCAQEEIBZ7",
		"eyJhbGciOiJSUzI1NiIsImtpZCI6IjEyMyJ9.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.c2lnbmF0dXJl",
		"ya29.a0AfH6SMBx8Hq2Vb0Tn4Kd9wQz7LrYcE1pJuX3mGs5",
		"https://jane:hunter2@example.org/x",
		"k8s/Zm9v+Q7/pWc1dX0/u9AbT3s/Lr6Kj2H/e5Yg8n0=",
	} {
		got := Clean("the thing says: " + secret + " and fails")
		for _, part := range []string{"c21hbGwg", "MHcC", "c3lzdGVtOnNl", "eyJzdWIi", "a0AfH6", "hunter2", "pWc1dX0",
			"Lr6Kj2H"} {
			if strings.Contains(secret, part) && strings.Contains(got, part) {
				t.Errorf("%q has %q", got, part)
			}
		}
		if !strings.HasPrefix(got, "the thing says: ") {
			t.Errorf("%q", got)
		}
	}
	for _, plain := range []string{"open /var/lib/quorate/etcd/member=1: no such file",
		"instance 7395952728694776415 of us-central1-a.master-a",
		"open /var/lib/quorate/etcd/member/wal/0000000000000000-0000000000000000.wal: no space left on device",
		"sha256 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
		"boot 8b0d7c52-6f4b-4c8e-9a57-1c2d3e4f5a6b"} {
		if got := Clean(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

// By construction: nothing in a report or an event can hold bytes, a map or anything at all. What is text is named
// here.
func TestAReportConsistsOfNamesNumbersAndTimes(t *testing.T) {
	free := []string{"Report.StartsAgain", "Step.Reason", "Component.Reason", "Wait.Reason", "Wait.Next", "Event.Text"}
	var texts []string
	var walk func(v reflect.Type)
	walk = func(v reflect.Type) {
		switch {
		case v == reflect.TypeFor[time.Time](), v.PkgPath() == "net/netip":
			return
		case v.Kind() == reflect.Pointer:
			walk(v.Elem())
		case v.Kind() == reflect.Slice && v.Elem().Kind() != reflect.Uint8:
			walk(v.Elem())
		case v.Kind() == reflect.Struct:
			for n := range v.NumField() {
				f := v.Field(n)
				if f.Type.Kind() == reflect.String {
					texts = append(texts, v.Name()+"."+f.Name)
				}
				walk(f.Type)
			}
		case v.Kind() == reflect.String, v.Kind() == reflect.Bool, v.Kind() == reflect.Uint64,
			v.Kind() == reflect.Int, v.Kind() == reflect.Int64:
		default:
			t.Errorf("%s can hold anything", v)
		}
	}
	walk(reflect.TypeFor[Report]())
	walk(reflect.TypeFor[Batch]())
	for _, f := range free {
		if !slices.Contains(texts, f) {
			t.Errorf("%s is not there any more: this test no longer knows what is free text", f)
		}
	}
	if n := len(texts); n != 35 {
		t.Errorf("%d texts; a new one that is free has to pass Clean: %q", n, texts)
	}
}

func TestNamesOfObjects(t *testing.T) {
	b := Batch{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, BootID: "097299dd-5448", Number: 17,
		At: t0}
	if got, want := b.Key(), "events/20261123T060000.000Z_us-central1-a.master-a_097299dd_000017.json"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !IsEvents(b.Key()) || !strings.HasPrefix(b.Key(), EventsFrom(t0)) {
		t.Errorf("%s is no name of a batch", b.Key())
	}
	if b.Key() < EventsFrom(t0) || b.Key() >= EventsFrom(t0.Add(time.Millisecond)) {
		t.Error("names do not sort by time")
	}
	for _, other := range []string{"events/", "events/x.json", "replicas/us-central1-a.master-a.json", "inception.json",
		"events/20261123T060000.000Z_x"} {
		if IsEvents(other) {
			t.Errorf("%q is taken for events", other)
		}
	}
	for key, want := range map[string]bool{Key(b.Place): true, "replicas/x.json": false, "replicas/a.b": false,
		"events/a.b.json": false} {
		if _, ok := PlaceOf(key); ok != want {
			t.Errorf("PlaceOf(%q): %t", key, ok)
		}
	}
}
