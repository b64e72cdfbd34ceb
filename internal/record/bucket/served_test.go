package bucket

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// localBucket is a bucket as local projects serve it, and the folder in which the record's objects are files.
func localBucket(t testing.TB) (recordURL, folder string) {
	t.Helper()
	dir := t.TempDir()
	recordURL, stop, err := buckets.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return recordURL, filepath.Join(dir, instance.BucketName, "c1")
}

// served is such a bucket in a process of its own, which dies and comes back.
type served struct {
	t            testing.TB
	folder, addr string
	process      *exec.Cmd
}

// bucketServer is that process.
func bucketServer(folder, addr string) {
	b, err := buckets.Open(folder, nil)
	if err != nil {
		die(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		die(err)
	}
	fmt.Println(l.Addr())
	die(http.Serve(l, b))
}

func newServed(t testing.TB) *served {
	t.Helper()
	s := &served{t: t, folder: t.TempDir(), addr: "127.0.0.1:0"}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *served) url() string { return "gs://" + instance.BucketName + "?endpoint=http://" + s.addr }

func (s *served) start() {
	s.process = process(s.t, "bucket", s.folder, s.addr)
	out, err := s.process.StdoutPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err == nil {
		_, err = fmt.Fscanln(out, &s.addr)
	}
	if err != nil {
		s.t.Error(err)
	}
}

func (s *served) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// dieAgainAndAgain kills the process at random moments, and starts it again, until the returned function is called. It
// lives for up to twice as long as it took to start, where that is long: a call takes longer then, too.
func (s *served) dieAgainAndAgain() (end func() (deaths int)) {
	ended, done, deaths := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(done)
		life := 60 * time.Millisecond
		for {
			select {
			case <-ended:
				return
			case <-time.After(rand.N(life)):
				s.kill()
				begin := time.Now()
				s.start()
				life = max(60*time.Millisecond, 2*time.Since(begin))
				deaths++
			}
		}
	}()
	return func() int { close(ended); <-done; return deaths }
}

// What a racer was told is so for ever, whenever the server died.
func TestClaimRaceOverTheServersDeath(t *testing.T) {
	const racers, races = 6, 60
	s := newServed(t)
	var all []*racingProcess
	for n := range racers {
		all = append(all, startRacer(t, s.url(), fmt.Sprintf("m%d", n)))
	}
	end := s.dieAgainAndAgain()
	winners := map[uint64]string{}
	for epoch := uint64(1); epoch <= races; epoch++ {
		results := race(t, all, epoch)
		checkRace(t, epoch, results)
		winners[epoch] = results[0].Got
	}
	deaths := end()
	if t.Logf("%d deaths in %d races", deaths, races); deaths == 0 {
		t.Error("the server never died")
	}
	view, err := openStore(t, s.url()).View(t.Context())
	if err != nil || len(view.Epochs) != races {
		t.Fatalf("view: %d epochs, %v: want %d", len(view.Epochs), err, races)
	}
	for _, e := range view.Epochs {
		if e.Claim.Token != winners[e.Number] {
			t.Errorf("epoch %d: %q, and all read %q", e.Number, e.Claim.Token, winners[e.Number])
		}
	}
}
