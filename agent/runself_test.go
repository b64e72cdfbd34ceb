package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is a script in the place of quorate.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quorate")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func runOf(t *testing.T, script string) SelfRun {
	t.Helper()
	return SelfRun{Self: program(t, script), Args: []string{"work"}, Env: os.Environ(),
		Log: slog.New(slog.DiscardHandler)}
}

func TestWhatARunSaysIsTold(t *testing.T) {
	crash := `printf 'unexpected fault address 0x1\nfatal error: fault\n\ngoroutine 1 [running]:\n' >&2; exit 2`
	for _, c := range []struct{ name, script, says, fails, logged string }{
		{"it prints", `echo "$1 $QUORATE_TEST"; echo a word >&2`, "work env\n", "", ""},
		{"it refuses", `echo '{"msg":"a log line"}' >&2; echo "quorate: no room" >&2; exit 1`, "", "no room", ""},
		{"it refuses for two reasons", `printf 'quorate: one\nquorate: two\n' >&2; exit 1`, "", "one; two", ""},
		{"it crashes", crash, "", "exit status 2: unexpected fault address 0x1", "goroutine 1 [running]"},
		{"it is killed", `echo '{"msg":"a log line"}' >&2; kill -9 $$`, "", "signal: killed: a log line", "a log line"},
		{"it is silent", `exit 3`, "", "exit status 3", ""},
		{"it says much", `head -c 200000 /dev/zero >&2; printf '\nquorate: no room\n' >&2; exit 1`, "", "no room", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := runOf(t, c.script)
			r.Env = append(r.Env, "QUORATE_TEST=env")
			var logged bytes.Buffer
			r.Log = slog.New(slog.NewTextHandler(&logged, nil))
			got, err := r.Run(t.Context())
			if c.fails == "" && (err != nil || string(got) != c.says) {
				t.Errorf("%q, %v: want %q", got, err, c.says)
			}
			if c.fails != "" && (err == nil || err.Error() != c.fails) {
				t.Errorf("error %v: want %q", err, c.fails)
			}
			if !strings.Contains(logged.String(), c.logged) || c.logged == "" && logged.Len() > 0 {
				t.Errorf("logged %q, want %q", logged.String(), c.logged)
			}
		})
	}
}

func TestARunEndsBeforeTheAgentWhereMemoryIsShort(t *testing.T) {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	r := runOf(t,
		`until [ "$(cat /proc/$$/oom_score_adj)" -gt `+strings.TrimSpace(string(own))+` ]; do sleep 0.01; done`)
	r.OOMScore = 500
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := r.Run(ctx); err != nil {
		t.Error(err)
	}
}

// await waits for a file that a script writes, and returns what is in it.
func await(t *testing.T, path string) string {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			return strings.TrimSpace(string(b))
		}
	}
	t.Fatalf("%s is not written", path)
	return ""
}

// It is asked first, so that it clears away what is half done. One that does not heed that is killed.
func TestARunEndsWhenTheAgentIsToldToStop(t *testing.T) {
	t.Parallel()
	const begin = `; echo begun > %[1]s/begun; `
	const work = begin + `while :; do sleep 0.02; done`
	for name, c := range map[string]struct {
		does, ends string
		after      time.Duration
	}{
		"it clears away":    {`trap 'echo told > %[1]s/told; exit 7' TERM` + work, "exit status 7", 0},
		"it does not heed":  {`trap 'echo told > %[1]s/told' TERM` + work, "signal: killed", selfStop},
		"it has none of it": {`echo told > %[1]s/told` + begin + `exec sleep 60`, "signal: terminated", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := runOf(t, fmt.Sprintf(c.does, dir))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := r.Run(ctx)
				ended <- err
			}()
			await(t, filepath.Join(dir, "begun"))
			begin := time.Now()
			cancel()
			err := <-ended
			took := time.Since(begin)
			if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), c.ends) || took < c.after {
				t.Errorf("%v after %s", err, took)
			}
			await(t, filepath.Join(dir, "told"))
		})
	}
}

// An agent that is killed takes its runs with it, whatever started it: two at the same work would undo each other's.
func TestARunDiesWithTheAgent(t *testing.T) {
	if path := os.Getenv("QUORATE_TEST_RUN"); path != "" { // the agent
		_, err := SelfRun{Self: path, Args: []string{"work"}, Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
		t.Fatal(err)
	}
	dir := t.TempDir()
	agent := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	agent.Env = append(os.Environ(),
		"QUORATE_TEST_RUN="+program(t, "trap '' TERM HUP; echo $$ > "+dir+"/pid; while :; do sleep 0.02; done"))
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer agent.Wait()
	defer agent.Process.Kill()
	pid, err := strconv.Atoi(await(t, filepath.Join(dir, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("it lives on")
		}
	}
}

// alive: the process runs. A zombie that nobody has reaped yet does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
