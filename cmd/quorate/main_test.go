package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/cmd/quorate/cluster"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/record/bucket"
)

// TestMain makes this program the command itself where a script calls it.
func TestMain(m *testing.M) {
	realtest.AtOnce(8) // most of them wait for a record that nobody serves
	testscript.Main(m, map[string]func(){"quorate": main})
}

// TestScripts runs the command line as a person would; each script is one command's manual. Each folder of a script is
// a bucket of its name: gs://FOLDER$AT.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			b, err := buckets.Open(e.WorkDir, nil)
			if err != nil {
				return err
			}
			server := httptest.NewServer(b)
			e.Defer(server.Close)
			e.Setenv("AT", "?endpoint="+server.URL)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "as-nobody": asNobody, "bundle": makeBundle, "agent-answers": agentAnswers,
			"hold-lock": holdLock, "ended": ended, "snapshot": storeSnapshot, "damage": damage,
			"open": openEscrow, "close": closeEscrows,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, errors.New("unknown condition")
		},
	})
}

// exits CODE COMMAND...: the command must end with this code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// as-nobody CODE TEXT ARG...: quorate run without root ends with this code and says exactly this.
func asNobody(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: as-nobody CODE TEXT ARG...")
	}
	run, err := nobody(ts.Defer)
	ts.Check(err)
	code, out, err := run(args[2:]...)
	ts.Check(err)
	if strconv.Itoa(code) != args[0] || out != args[1]+"\n" {
		ts.Fatalf("exit code %d, %q; want %s, %q", code, out, args[0], args[1])
	}
}

// nobody returns what runs quorate without root, from a folder that others can read.
func nobody(defers func(func())) (run func(args ...string) (code int, out string, err error), err error) {
	dir, err := os.MkdirTemp("", "quorate-as-nobody")
	if err != nil {
		return nil, err
	}
	defers(func() { os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "quorate")
	// By another process: a file that this one has open for writing cannot be run while any of its tests forks.
	if err := errors.Join(os.Chmod(dir, 0o755), exec.Command("cp", self, program).Run(),
		os.Chmod(program, 0o755)); err != nil {
		return nil, err
	}
	return func(args ...string) (int, string, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir = "/"
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			return 0, "", err
		}
		return cmd.ProcessState.ExitCode(), string(out), nil
	}, nil
}

// bundle FILE [GENERATION [DAYS]]: make the cluster's first bundle, as its first master would, DAYS ago; of another
// GENERATION, as somebody would who has the bucket and the seal key.
func makeBundle(ts *testscript.TestScript, _ bool, args []string) {
	numbers := []int{1, 0}
	for i, arg := range args[1:] {
		var err error
		numbers[i], err = strconv.Atoi(arg)
		ts.Check(err)
	}
	ctx := context.Background()
	c, err := cluster.Load(ts.MkAbs(args[0]))
	ts.Check(err)
	store, err := cluster.OpenRecord(c)
	ts.Check(err)
	v, err := store.View(ctx)
	ts.Check(err)
	bundles, err := bucket.OpenBundles(store, c.Seal.Key)
	ts.Check(err)
	b, err := certs.NewBundle(v.Inception.UID, time.Now().AddDate(0, 0, -numbers[1]))
	ts.Check(err)
	b.Generation = uint64(numbers[0])
	plaintext, err := b.Encode()
	ts.Check(err)
	_, won, err := bundles.Create(ctx, b.Generation, plaintext)
	if err != nil || !won {
		ts.Fatalf("create the bundle: won %v, %v", won, err)
	}
}

// agent-answers DIR FILE: an agent whose folder is DIR answers FILE, whatever it is asked. Without FILE it takes the
// question and is silent; with a TEXT after FILE it refuses with that.
func agentAnswers(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	l, err := net.Listen("unix", agent.SocketPath(dir))
	ts.Check(err)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch len(args) {
		case 1:
			<-r.Context().Done()
			return
		case 3:
			http.Error(w, args[2], http.StatusConflict)
			return
		}
		http.ServeFile(w, r, ts.MkAbs(args[1]))
	})
	server := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	ts.Defer(func() { server.Close(); <-done })
}

// hold-lock DIR: be the agent whose folder is DIR until the script ends.
func holdLock(ts *testscript.TestScript, _ bool, args []string) {
	release, err := beTheOnlyAgent(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(release)
}

// ended DIR CODE TEXT...: an agent whose folder is DIR ended so a moment ago.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	master.WriteLastEnd(dir, errors.New(args[1]), exitFailure, time.Now())
}
