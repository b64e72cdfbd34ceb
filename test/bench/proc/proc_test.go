package proc

import (
	"os"
	"testing"
	"time"
)

func TestUsageOfThisProcessCanBeRead(t *testing.T) {
	rss, file, err := Memory(os.Getpid())
	if err != nil || rss < 1 || file <= 0 || file > rss {
		t.Errorf("%v MiB, of it files %v, %v", rss, file, err)
	}
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; { // it uses a core
	}
	own, err := CPU(os.Getpid())
	if whole, bad := CPUWithChildren(os.Getpid()); err != nil || bad != nil || own <= 0 || whole < own {
		t.Errorf("%s, with children %s; %v, %v", own, whole, err, bad)
	}
	if n, err := Wakeups(os.Getpid()); err != nil || n < 1 {
		t.Errorf("%v wake-ups, %v", n, err)
	}
	if _, err := Find(os.Getpid(), "no-such-program", "x"); err == nil {
		t.Error("a process that is not there was found")
	}
}

func TestAProcessIsKnownByTheBeginningOfItsWords(t *testing.T) {
	for _, c := range []struct {
		args, words []string
		want        bool
	}{
		{[]string{"/usr/local/bin/quorate", "agent", "--log-dir", ""}, []string{"quorate", "agent"}, true},
		{[]string{"/usr/local/bin/quorate", "run-etcd", ""}, []string{"quorate", "agent"}, false},
		{[]string{"quorate"}, []string{"quorate", "agent"}, false},
		{[]string{"/bin/sh", "/opt/a.sh", ""}, []string{"sh", "a.sh"}, false},
	} {
		if got := begins(c.args, c.words); got != c.want {
			t.Errorf("%q begins with %q: %v", c.args, c.words, got)
		}
	}
}
