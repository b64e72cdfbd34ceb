package bucket

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The test binary runs itself as other processes: what the record promises, it promises between processes.
const roleVariable = "RECORD_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "racer":
		racer(os.Args[1], os.Args[2])
	case "bucket":
		bucketServer(os.Args[1], os.Args[2])
	}
}

// process starts the test binary in a role.
func process(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...) // not of the test's context, which ends before the cleanup that waits for it
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// fastPace keeps the tests quick; the number of tries is the real one.
var fastPace = pace{tries: normalPace.tries, timeout: 400 * time.Millisecond, first: 2 * time.Millisecond}

// hurry gives a Store over gs the tests' pace.
func hurry(s *Store) *Store {
	if g, ok := s.driver.(*gcs); ok {
		g.pace = fastPace
	}
	return s
}

func openStore(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(url, "c1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return hurry(s)
}

// patient gives a Store over gs tries that a busy machine does not use up: for tests that count requests, or whose
// requests are large.
func patient(s *Store) *Store {
	if g, ok := s.driver.(*gcs); ok {
		g.pace = pace{tries: fastPace.tries, timeout: time.Minute, first: fastPace.first}
	}
	return s
}

// die ends a process of the test.
func die(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// raceResult is what one process says about one race.
type raceResult struct {
	Mine, Got string // tokens
	Won       bool
	Errors    []string
}

// racer races for the claim of each epoch that stdin names, and writes a result a line.
func racer(url, name string) {
	s, err := Open(url, "c1", nil)
	if err != nil {
		die(err)
	}
	hurry(s)
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var epoch uint64
		if _, err := fmt.Sscan(lines.Text(), &epoch); err != nil {
			die(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(raceOnce(s, epoch, name)); err != nil {
			die(err)
		}
	}
}

// raceOnce claims as an agent does: after an error it tries again, with the same claim, as long as it takes. On a busy
// machine that is as long as a server's process takes to start.
func raceOnce(s *Store, epoch uint64, name string) (r raceResult) {
	claim := testClaim(name, fmt.Sprintf("token-%s-%d", name, epoch))
	r.Mine = claim.Token
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		got, won, err := s.CreateClaim(context.Background(), epoch, claim)
		if err == nil {
			r.Got, r.Won = got.Token, won
			return r
		}
		r.Errors = append(r.Errors, err.Error())
	}
	return r
}
