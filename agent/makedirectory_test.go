package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember"
)

// program is a script in the place of quorate.
func program(t *testing.T, script string) (*Agent, etcdmember.Making) {
	t.Helper()
	dir := t.TempDir()
	self := filepath.Join(dir, "quorate")
	if err := os.WriteFile(self, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	work := etcdmember.Making{Snapshot: "s", Scratch: dir, Out: filepath.Join(dir, "new"), Name: "m", DNSName: "d",
		Token: "t"}
	return &Agent{cfg: Config{Self: self, LogDir: "/dev/null/no/such/folder", Env: os.Environ()}}, work
}

func TestADirectoryIsMadeByAProcessOfItsOwn(t *testing.T) {
	a, work := program(t, `[ "$1 $2" = "make-directory --config" ] && grep -q '"token": "t"' "$3" && mkdir new`)
	if err := a.makeDirectory(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(work.Out); err != nil {
		t.Error(err)
	}
}

func TestAMakingEndsBeforeTheAgentWhereMemoryIsShort(t *testing.T) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	a, work := program(t, `until [ "$(cat /proc/$$/oom_score_adj)" -gt `+strings.TrimSpace(string(own))+` ]; do sleep 0.01; done; mkdir new`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := a.makeDirectory(ctx, work); err != nil {
		t.Error(err)
	}
}

func TestWhatTheMakingComplainedOfIsTold(t *testing.T) {
	a, work := program(t, "echo first >&2; echo 'quorate: it is broken' >&2; exit 1")
	if err := a.makeDirectory(t.Context(), work); err == nil ||
		!strings.Contains(err.Error(), "exit status 1: quorate: it is broken (") {
		t.Errorf("%v", err)
	}
}

func TestAMakingEndsWhenTheAgentIsToldToStop(t *testing.T) {
	a, work := program(t, "exec sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := a.makeDirectory(ctx, work); !errors.Is(err, context.DeadlineExceeded) &&
		!strings.Contains(err.Error(), "terminated") || time.Since(begin) > makingStop {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

// One that does not heed the order is killed: what it has made is of no use, and the agent has to end.
func TestAMakingThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	a, work := program(t, "trap '' TERM; while :; do sleep 0.1; done")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := a.makeDirectory(ctx, work)
	if took := time.Since(begin); err == nil || took < makingStop || took > makingStop+3*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}
