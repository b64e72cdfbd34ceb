package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C while a source is asked ends support at once, and no file is there, whole or in part.
func TestAnInterruptedSupportLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			once := sync.OnceFunc(func() { close(asked) })
			silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				once()
				<-r.Context().Done()
			}))
			t.Cleanup(silent.Close)
			dir := t.TempDir()
			document := filepath.Join(t.TempDir(), "cluster.yaml")
			if err := os.WriteFile(document, []byte(supportDocument), 0o600); err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			cmd := &exec.Cmd{Path: self, Dir: dir, Stdout: &said, Stderr: &said, Args: []string{"quorate", "support",
				"--config", document, "--record", "gs://rec?endpoint=" + silent.URL, "--run-dir", "nowhere"}}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-asked:
			case err := <-ended:
				t.Fatalf("before it asked: %v: %s", err, said.String())
			}
			begin := time.Now()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != exitFailure ||
				!strings.Contains(said.String(), "support was interrupted; nothing was written") {
				t.Errorf("%v: %s", err, said.String())
			}
			if d := time.Since(begin); d > 3*time.Second { // a try has 4 s, and there are several
				t.Errorf("it ended %s after the signal", d)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

const supportDocument = `{apiVersion: quorate.dev/v1alpha1, kind: Cluster, name: demo, endpoint: {externalIP: 192.0.2.1},
record: {url: "gs://elsewhere"}, seal: {key: "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"}}
`
