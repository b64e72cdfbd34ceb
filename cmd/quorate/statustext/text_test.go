package statustext

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/agent/datadisk"
	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/terminal/terminaltest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/supervisor"
)

// TestStatusText compares what a person reads with the golden files: a replica that is well, one that cannot boot, one
// that waits.
func TestStatusText(t *testing.T) {
	terminaltest.CompareTexts(t, "testdata", func(w io.Writer, input []byte, now time.Time) error {
		var s Shown
		err := json.Unmarshal(input, &s)
		Show(w, s, now)
		return err
	})
}

func TestTheStatusSaysWhyTheAgentStartsAgain(t *testing.T) {
	var s status.Status
	s.Replica.Name, s.Replica.Zone, s.Replica.Phase = "a", "z", "stopping"
	if got := headline(s, time.Now()); !strings.Contains(got, "hands over and stops its processes") {
		t.Errorf("asked to: %q", got)
	}
	s.Replica.StartsAgain = "etcd does not come up"
	if got := headline(s, time.Now()); !strings.HasSuffix(got, "starts again: etcd does not come up") ||
		strings.Contains(got, "hands over") {
		t.Errorf("by itself: %q", got)
	}
}

func TestTheStatusSaysWhatTheArchiveTakes(t *testing.T) {
	if got := archiveText(&status.Archives{Count: 2, Bytes: 300 << 20,
		Kept: "no archive is purged: a restore is in force"}); got != "2 archived directories take 300 MiB; no "+
		"archive is purged: a restore is in force" {
		t.Error(got)
	}
}

func TestOneThingIsNotSeveral(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s := status.Status{Archives: &status.Archives{Count: 1, Bytes: 138 << 20}, LogLoss: &status.LogLoss{Lines: 1},
		Certificates: []certs.Expiry{{Name: "etcd-peer", NotAfter: now.Add(30 * time.Hour)}},
		Components:   []supervisor.Status{{Name: "etcd", State: supervisor.Ready, OutputDropped: 1}},
		Addons:       &plan.Status{Folder: "/a", Version: "2", Standing: plan.Current, Objects: 1, InPlace: 1}}
	var b strings.Builder
	Show(&b, Shown{Status: s}, now)
	for _, want := range []string{"\n1 archived directory takes 138 MiB\n", "\n1 line of the agent's log was dropped\n",
		"\n1 certificate; the first to expire is etcd-peer, on 2026-11-24, in 1 day\n",
		"\n1 byte of the log of etcd was dropped since the agent began: ", "1 of 1 object in place, 0 ready"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}

func TestTheStatusSaysWhatOfTheDataDiskIsLeft(t *testing.T) {
	var s status.Status
	if got := sizeText(s); got != "" {
		t.Errorf("nothing is known: %q", got)
	}
	s.DataDisk = &datadisk.Size{FileSystem: 20 << 30, Free: 5 << 29}
	if got := sizeText(s); got != "the data disk's file system has 20.0 GiB, 2.5 GiB free" {
		t.Errorf("a file system without a disk: %q", got)
	}
	s.DataDisk.Device = 100 << 30
	s.Etcd.Database = &table.Database{Bytes: 900 << 20, InUse: 30 << 20, Quota: 1000 << 20}
	const want = "the data disk has 100.0 GiB, its file system 20.0 GiB, 2.5 GiB free (it has not grown to its disk: " +
		"systemctl start quorate-data-growfs); etcd's database takes 900 MiB of its quota of 1000 MiB (90 %), " +
		"30 MiB of that in use"
	if got := sizeText(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTheStatusSaysHowTheAddonsStand(t *testing.T) {
	for name, c := range map[string]struct {
		status plan.Status
		want   string
	}{
		"before the first pass": {plan.Status{Folder: "/a"}, "add-ons, version - of /a: nothing is applied yet"},
		"all is in place": {plan.Status{Folder: "/a", Version: "2", Standing: plan.Current, Objects: 4, InPlace: 3,
			Ready: 2}, "add-ons, version 2 of /a: 3 of 4 objects in place, 2 ready"},
		"an older set": {plan.Status{Folder: "/a", Version: "2", Inventory: "3", Standing: plan.Older},
			"add-ons, version 2 of /a: nothing is written, version 3 is in the cluster"},
		"leftovers": {plan.Status{Folder: "/a", Version: "2", Standing: plan.Current, Kept: "2 are kept"},
			"add-ons, version 2 of /a: 0 of 0 objects in place, 0 ready; 2 are kept"},
	} {
		if got := addonsText(&c.status); got != c.want {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

func TestTheStatusNamesTheAddonsThatAreNotWell(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	object := func(name, reason string) plan.ObjectStatus {
		return plan.ObjectStatus{Object: name, Reason: reason, Since: now.Add(-time.Minute), Source: "x.yaml"}
	}
	s := plan.Status{Failing: []plan.ObjectStatus{object("ConfigMap a/b", "a webhook refuses it")},
		Contested: []plan.ObjectStatus{object("Deployment a/c", "spec.replicas: changed back by hpa")},
		NotReady:  []plan.ObjectStatus{object("Service a/d", "it was just applied")}}
	var b strings.Builder
	showAddonObjects(&b, &s, now)
	want := `
ADD-ON          STATE      FOR   FILE
ConfigMap a/b   failing    1m0s  x.yaml
    a webhook refuses it
Deployment a/c  contested  1m0s  x.yaml
    spec.replicas: changed back by hpa
Service a/d     not ready  1m0s  x.yaml
    it was just applied
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	for range mostAddons {
		s.Failing = append(s.Failing, s.Failing[0])
	}
	if showAddonObjects(&b, &s, now); !strings.HasSuffix(b.String(), "\nand 3 more\n") {
		t.Errorf("of %d there are\n%s", mostAddons+3, b.String())
	}
	b.Reset()
	if showAddonObjects(&b, &plan.Status{}, now); b.Len() > 0 {
		t.Errorf("where all is well it says %q", b.String())
	}
}
