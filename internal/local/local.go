// Package local is what the processes of one machine have in common: the unix sockets on which they talk (Serve, Call),
// the locks by which only one of them does something (Lock), and the room on the disk that they share (Room).
//
// It knows nothing of what is said, locked or written. It does not retry: the caller says by its context how long it
// waits.
package local

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Serve answers on a unix socket until the returned function is called. It replaces what a process before it has left
// there. Only this process's user may ask.
func Serve(socket string, h http.Handler) (stop func(), err error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	return func() { server.Close(); <-done }, nil
}

// Refusal is the error of a process that answers, and does not do what it was asked for.
type Refusal struct {
	// Status is the answer's HTTP status, Why its text.
	Status int
	Why    string
}

func (r *Refusal) Error() string { return r.Why }

// asking keeps two connections to each socket for questions: an agent asks its member twice a second, and when it asked
// four times a new connection each time was a quarter of what an idle one computed. What changes something gets a
// connection of its own: one whose other end has just gone would make it fail, where a question is asked again on a new
// one.
var asking, ordering = newClient(false), newClient(true)

// newClient takes URLs whose host is the socket's path, in hex.
func newClient(once bool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives:   once,
		MaxIdleConnsPerHost: 2, // the question for news waits for its answer nearly always
		IdleConnTimeout:     idle,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, _, _ := strings.Cut(address, ":")
			socket, err := hex.DecodeString(host)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, "unix", string(socket))
		},
	}}
}

const (
	// idle is how long a connection is kept that nobody uses.
	idle = 10 * time.Second
	// atEnd is more than the bytes that may follow the JSON of an answer.
	atEnd = 512
)

// Call asks on a unix socket, and decodes the JSON of the answer unless answer is nil. Where nobody answers the error
// is a *url.Error, where the answer is no success a *Refusal, and else the decoder's.
func Call(ctx context.Context, socket, method, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+hex.EncodeToString([]byte(socket))+path, nil)
	if err != nil {
		return err
	}
	client := asking
	if method != http.MethodGet {
		client = ordering
	}
	resp, err := client.Do(req)
	if failed := new(url.Error); errors.As(err, &failed) {
		failed.URL = "http://local" + path // for people
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	defer io.CopyN(io.Discard, resp.Body, atEnd) // else the connection is not kept
	if resp.StatusCode/100 != 2 {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // only makes the message better
		return &Refusal{resp.StatusCode, strings.TrimSpace(string(why))}
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

// ErrLocked is in the error of Lock where another process holds the lock.
var ErrLocked = errors.New("another process holds it")

// Lock takes the lock of a file, which it makes where there is none. The kernel frees the lock when this process ends,
// however it ends. The children do not inherit it. A program that is being started has the file for some milliseconds
// all the same, so the release does not only close it.
func Lock(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() {
		unix.Flock(int(f.Fd()), unix.LOCK_UN)
		f.Close()
	}, nil
}

// Room is how many bytes may still be written to the file system of a folder, and how many it holds in all.
func Room(dir string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, &os.PathError{Op: "read the free space of", Path: dir, Err: err}
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}
