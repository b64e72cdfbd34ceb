package agent

import (
	"errors"
	"os"
	"testing"

	"github.com/quorate/quorate/agent/status"
)

// The record cannot be read after a reboot: an agent that waits takes a person's word, keeps it over its own restart,
// and forgets it with the boot.
func TestStartAnywayIsForThisBootAlone(t *testing.T) {
	v := newVM(t)
	socket := SocketPath(v.config().RunDir)
	a, in := v.identified()
	stop, err := a.serve(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := SayStartAnyway(t.Context(), socket); !errors.Is(err, ErrRefused) {
		t.Errorf("before it knows anything: %v", err)
	}
	if s, err := ReadStatus(t.Context(), socket); err != nil || s.Etcd.Explanation != nil {
		t.Errorf("it explains what it has not seen: %v %+v", err, s.Etcd.Explanation)
	}
	v.established(v.self.Place, "started")
	v.record.err = errBroken
	go a.readRecord(t.Context(), in)
	var s status.Status
	eventually(t, "it polls", func() bool {
		s, err = ReadStatus(t.Context(), socket)
		return err == nil && s.Etcd.Explanation != nil
	})
	e := s.Etcd.Explanation
	if e.Plan.Row != 2 && e.Plan.Row != 1 || e.Record.Class != "R!" {
		t.Errorf("%+v", e)
	}
	// There is no directory on this disk: nothing could be started.
	if err := SayStartAnyway(t.Context(), socket); !errors.Is(err, ErrRefused) || a.startAnyway.given() {
		t.Errorf("without a directory: %v", err)
	}
	if err := os.WriteFile(a.startAnyway.path, []byte(v.self.BootID), 0o600); err != nil {
		t.Fatal(err)
	}
	if !a.startAnyway.given() {
		t.Error("the word of this boot does not count")
	}
	a.self.BootID = "another boot"
	if a.startAnyway.given() {
		t.Error("the word of another boot counts")
	}
}
