package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAnAnswerARefusalAndSilenceAreToldApart(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "a.sock")
	if err := os.WriteFile(socket, nil, 0o644); err != nil { // what another process left
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /number", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(7) })
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /no", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not now", http.StatusConflict)
	})
	mux.HandleFunc("GET /hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	stop, err := Serve(socket, mux)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	var n int
	if err := Call(t.Context(), socket, "GET", "/number", &n); err != nil || n != 7 {
		t.Errorf("answered %d, %v", n, err)
	}
	if err := Call(t.Context(), socket, "POST", "/order", nil); err != nil {
		t.Errorf("an order that is carried out: %v", err)
	}
	var refusal *Refusal
	if err := Call(t.Context(), socket, "GET", "/no", &n); !errors.As(err, &refusal) ||
		refusal.Status != http.StatusConflict || refusal.Why != "not now" {
		t.Errorf("a refusal: %v", err)
	}
	if err := Call(t.Context(), socket, "GET", "/nothing", &n); !errors.As(err, &refusal) ||
		refusal.Status != http.StatusNotFound {
		t.Errorf("a question that is not known: %v", err)
	}
	var silent *url.Error
	var text string
	if err := Call(t.Context(), socket, "GET", "/number", &text); err == nil || errors.As(err, &refusal) ||
		errors.As(err, &silent) {
		t.Errorf("an answer of another kind: %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Call(soon, socket, "GET", "/hang", &n); !errors.As(err, &silent) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer in time: %v", err)
	}
	stop()
	if err := Call(t.Context(), socket, "GET", "/number", &n); !errors.As(err, &silent) {
		t.Errorf("nobody listens: %v", err)
	}
}

// A connection is used again for questions, also after long answers; and where the process at the socket is another one
// by then, a new one is made.
func TestOneConnectionIsKeptToEachSocket(t *testing.T) {
	var made atomic.Int32
	serve := func(socket, says string) (stop func()) {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /text", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(says) })
		mux.HandleFunc("POST /order", func(http.ResponseWriter, *http.Request) {})
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: mux, ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				made.Add(1)
			}
		}}
		go server.Serve(l)
		return func() { server.Close() }
	}
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.sock"), filepath.Join(dir, "b.sock")
	stopA, stopB := serve(a, strings.Repeat("a", 1<<16)), serve(b, "b")
	defer stopB()
	ask := func(socket, want string) {
		t.Helper()
		var got string
		if err := Call(t.Context(), socket, "GET", "/text", &got); err != nil || !strings.HasPrefix(got, want) {
			t.Fatalf("answered %.9q, %v; want %q", got, err, want)
		}
	}
	for range 5 {
		ask(a, "aaa")
		ask(b, "b")
	}
	if n := made.Load(); n != 2 {
		t.Errorf("%d connections for ten questions to two sockets", n)
	}
	if err := Call(t.Context(), a, "POST", "/order", nil); err != nil || made.Load() != 3 {
		t.Errorf("an order: %v, by connection %d; want one of its own", err, made.Load())
	}
	stopA()
	err := Call(t.Context(), a, "GET", "/text", nil)
	if err == nil || !strings.Contains(err.Error(), `"http://local/text"`) || !strings.Contains(err.Error(), a) {
		t.Errorf("nobody listens: %v", err)
	}
	stopA = serve(a, "c")
	ask(a, "c")
	stopA()
	defer serve(a, "d")()
	ask(a, "d") // the kept connection ended meanwhile
}

func TestASocketThatCannotBeMadeIsAnError(t *testing.T) {
	if stop, err := Serve(filepath.Join(t.TempDir(), "absent", "a.sock"), nil); err == nil || stop != nil {
		t.Errorf("served in a folder that does not exist: %v", err)
	}
}

func TestALockIsHeldByOneAndNotByItsChildren(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("taken twice: %v", err)
	}
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	release()
	release, err = Lock(path)
	if err != nil {
		t.Fatalf("after its release, with a child that was started before: %v", err)
	}
	release()
	if _, err := Lock(filepath.Join(path, "below")); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("a file that cannot be made: %v", err)
	}
}

// A program that is being started has this process' files until it runs, which may take some milliseconds.
func TestALockIsFreeOnceItIsReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	inherited := inherit(t, path)
	release()
	release, err = Lock(path)
	if err != nil {
		t.Fatalf("while a program is being started that has the file still: %v", err)
	}
	defer release()
	if err := unix.Close(inherited); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("once that program runs, the lock is taken twice: %v", err)
	}
}

// inherit has an open file of this process once more, as a program that is being started has it.
func inherit(t *testing.T, path string) int {
	t.Helper()
	for fd := range 1024 {
		if to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil || to != path {
			continue
		}
		again, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	t.Fatalf("this process does not have %s open", path)
	return -1
}

func TestTheRoomOfAFolder(t *testing.T) {
	free, total, err := Room(t.TempDir())
	if err != nil || free <= 0 || total < free {
		t.Errorf("%d of %d are free, %v", free, total, err)
	}
	if _, _, err := Room("/does-not-exist"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a folder that does not exist: %v", err)
	}
}
