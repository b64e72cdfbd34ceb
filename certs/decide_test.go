package certs

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	b := testBundle(t)
	next := rotated(t, b, t0.Add(24*time.Hour))
	own := mustIssue(t, b, EtcdServer, t0).cert
	want := Want{Spec: specOf(t, EtcdServer), CA: b.authorities[EtcdClient].cert, InstanceID: testIdentity().InstanceID}
	due := RenewAt(own, want.InstanceID)
	here := Found{Cert: own, Mode: 0o600}

	afterRotation := want
	afterRotation.CA, afterRotation.Former = next.authorities[EtcdClient].cert, next.authorities[EtcdClient].former
	former := afterRotation
	former.Former = nil
	moved := want
	moved.Spec.Addresses = sortedAddresses(append([]netip.Addr{netip.MustParseAddr("10.128.0.9")},
		want.Spec.Addresses...))
	fewer := want
	fewer.Spec.Names = want.Spec.Names[1:]
	gone := want
	gone.Spec.Addresses = slices.DeleteFunc(slices.Clone(want.Spec.Addresses),
		func(a netip.Addr) bool { return a.String() == "fd20::2" })
	other := want
	other.Spec.CommonName = "master-2.us-central1-b.prod.quorate.internal"

	for _, tc := range []struct {
		name   string
		now    time.Time
		found  Found
		want   Want
		action Action
		reason string
		aside  bool
	}{
		{"a fresh leaf stays", t0, here, want, Keep, "", false},
		{"it stays until it is due", due.Add(-time.Second), here, want, Keep, "", false},
		{"it is renewed when it is due", due, here, want, Renew, "renewal was due", false},
		{"and in the last second of its life", own.NotAfter.Add(-time.Second), here, want, Renew, "renewal was due",
			false},
		{"after it there must be another", own.NotAfter, here, want, Replace, "expired at 2027-04-15", false},
		{"a year later too", t0.Add(365 * 24 * time.Hour), here, want, Replace, "expired", false},
		{"a clock that went back two days", t0.Add(-48 * time.Hour), here, want, Replace, "not valid before", false},
		{"a clock that is an hour slow", t0.Add(-time.Hour), here, Want{Spec: want.Spec, CA: want.CA}, Keep, "", false},
		{"nothing there", t0, Found{Err: fs.ErrNotExist}, want, Replace, "missing", false},
		{"garbage is kept aside", t0, Found{Err: errors.New("no PEM block")}, want, Replace, "no PEM block", true},
		{"a file that others could read", t0, Found{Cert: own, Mode: 0o640}, want, Renew, "mode 0640", false},
		{"a new address", t0, here, moved, Renew, "it lacks the address 10.128.0.9", false},
		{"a name too many", t0, here, fewer, Renew, "it has the name " + want.Spec.Names[0] + " too many", false},
		{"an address that is another's by now", t0, here, gone, Renew, "it has the address fd20::2 too many", false},
		{"another replica's leaf", t0, here, other, Replace, "subject", false},
		{"a client's leaf in a server's place", t0, Found{Cert: mustIssue(t, b, AgentEtcd, t0).cert, Mode: 0o600}, want,
			Replace, "subject", false},
		{"a former CA's leaf works on, and is renewed", t0.Add(25 * time.Hour), here, afterRotation, Renew,
			"issued by a former CA", false},
		{"a stranger's leaf beside a former CA", t0.Add(25 * time.Hour),
			Found{Cert: mustIssue(t, testBundle(t), EtcdServer, t0).cert, Mode: 0o600},
			afterRotation, Replace, "not issued by the etcd-client CA", false},
		{"until that CA is dropped", t0.Add(25 * time.Hour), here, former, Replace, "not issued by the etcd-client CA",
			false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.now, tc.found, tc.want)
			if d.Action != tc.action || !strings.Contains(d.Reason, tc.reason) || d.Aside != tc.aside ||
				(d.Action == Keep) != (d.Reason == "") {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

func TestALeafThatEndsWithItsCAIsNotIssuedAgainAndAgain(t *testing.T) {
	b := testBundle(t)
	ca := b.authorities[EtcdClient].cert
	issued := ca.NotAfter.Add(-3 * time.Hour)
	leaf := mustIssue(t, b, EtcdServer, issued).cert
	want := Want{Spec: specOf(t, EtcdServer), CA: ca, InstanceID: "7"}
	for now := issued; now.Before(ca.NotAfter); now = now.Add(time.Minute) {
		if d := Decide(now, Found{Cert: leaf, Mode: 0o600}, want); d.Action != Keep {
			t.Fatalf("%s before the CA's end: %+v", ca.NotAfter.Sub(now), d)
		}
	}
}

func TestRenewalsAreSpreadButNeverLate(t *testing.T) {
	leaf := mustIssue(t, testBundle(t), Agent, t0).cert
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	latest, earliest := leaf.NotBefore.Add(life*2/3), leaf.NotBefore.Add(life*2/3-life/12)
	days := map[int]bool{}
	for i := range 200 {
		at := RenewAt(leaf, fmt.Sprint(4000000000000000000+i))
		if at.After(latest) || at.Before(earliest) {
			t.Fatalf("instance %d renews at %s, allowed is %s to %s", i, at, earliest, latest)
		}
		days[at.YearDay()] = true
	}
	if len(days) < 7 {
		t.Errorf("200 replicas renew on %d days", len(days))
	}
	if !RenewAt(leaf, "1").Equal(RenewAt(leaf, "1")) {
		t.Error("a replica's renewal moves")
	}
}
