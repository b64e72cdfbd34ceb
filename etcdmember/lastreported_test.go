package etcdmember

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

func TestTheLastObservationIsExplained(t *testing.T) {
	m, ms, k := kept(t)
	if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil {
		t.Fatal(err)
	}
	e := ms.reported.explained().Explain()
	if e == nil || !e.Running || e.Plan.Row != table.RowRunning || e.Disk.Class != "L1" ||
		e.Record.Means != "epoch 1 is formed and open" || e.Leader != nil {
		t.Errorf("%+v", e)
	}
	m.record.Change(func(v *record.View) { v.Orders = []record.Order{{Number: 1, Kind: record.OrderPause}} })
	if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil {
		t.Fatal(err)
	}
	if e := ms.reported.explained().Explain(); !slices.Contains(e.Found, "Changes of the membership are paused by order.") {
		t.Errorf("found: %q", e.Found)
	}
}

// After a reboot without a record only a person's word starts a member that has run; nothing else does, and the word is
// of no use elsewhere.
func TestAPersonsWordStartsAMemberWithoutTheRecord(t *testing.T) {
	m, ms, k := kept(t)
	if err := k.reconcile(t.Context(), table.MemberStatus{}); err != nil {
		t.Fatal(err)
	}
	if err := ms.MayStartAnyway(); err == nil {
		t.Error("the word is taken where nothing waits for it")
	}
	if err := m.child.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.me.BootID = "boot2"
	m.record.Fail(errors.New("503"))
	var word atomic.Bool
	m.config = func(c *Config) { c.StartAnyway = word.Load }
	ms = m.open()
	if err := ms.MayStartAnyway(); err == nil {
		t.Error("the word is taken before anything was observed")
	}
	settled := make(chan error, 1)
	go func() { settled <- ms.Settle(t.Context()) }()
	etcdtest.Eventually(t, "it waits for the word", func() bool { return ms.MayStartAnyway() == nil })
	if m.child.Running() || blockedName(ms) != "record-unreadable" {
		t.Errorf("it runs: %t, blocked by %q", m.child.Running(), blockedName(ms))
	}
	word.Store(true)
	etcdtest.Eventually(t, "it runs", m.child.Running)
	if err := <-settled; err != nil {
		t.Error(err)
	}
	if blockedName(ms) != "record-unreadable" {
		t.Errorf("blocked by %q: the record still cannot be read", blockedName(ms))
	}
}
