package lastwords

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// boot is a keeper of one boot on a folder; end closes it, as an agent does that is asked to end or whose VM dies.
type boot struct {
	*Keeper
	found chan Former
	log   *safeBuffer
}

type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func always() bool { return true }

func begin(dir, id string, room func() bool) boot {
	b := boot{New(), make(chan Former, 1), &safeBuffer{}}
	b.Open(Place{Dir: dir, Boot: Boot{ID: id, Instance: "4711"}, Room: room, Found: func(f Former) { b.found <- f },
		Log: slog.New(slog.NewTextHandler(b.log, nil))})
	return b
}

func (b boot) say(source string, lines ...string) {
	for _, line := range lines {
		b.Add(source, []byte(line+"\n"))
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheNextBootFindsHowTheOneBeforeEnded(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "lastwords")
	first := begin(dir, "one", always)
	if f := <-first.found; f.Boot != (Boot{}) || f.Excerpts != nil {
		t.Errorf("a new disk has %+v", f)
	}
	first.say(Agent, "time=2026-11-24T10:00:00Z level=ERROR msg=failed", "time=2026-11-24T10:00:01Z level=INFO msg=a",
		"time=2026-11-24T10:00:02Z level=INFO msg=b", "time=2026-11-24T10:00:03Z level=INFO msg=c")
	first.say("kube-apiserver", "I1124 10:00:00.1 1 a.go:1] up", "W1124 10:00:01.1 1 a.go:1] slow for 7 ms",
		"W1124 10:00:02.1 1 a.go:1] slow for 9 ms", "panic: no", "", "goroutine 1 [running]:", "main.main()",
		"I1124 10:00:03.1 1 a.go:1] up again")
	first.say("etcd", `{"level":"info","msg":"well"}`,
		`{"level":"error","ts":"2026-11-24T10:00:00Z","caller":"a.go:1","msg":"failed","error":"no space","more":1}`)
	first.Close()

	second := begin(dir, "two", always)
	f := <-second.found
	want := []Excerpt{
		{Agent, []string{"time=2026-11-24T10:00:00Z level=ERROR msg=failed", "time=2026-11-24T10:00:01Z level=INFO msg=a",
			"time=2026-11-24T10:00:02Z level=INFO msg=b", "time=2026-11-24T10:00:03Z level=INFO msg=c"}},
		{"etcd", []string{"2026-11-24T10:00:00Z error failed: no space"}},
		{"kube-apiserver", []string{"W1124 10:00:02.1 1 a.go:1] slow for 9 ms", "panic: no"}},
	}
	if f.Boot != (Boot{"one", "4711"}) || f.InOrder || fmt.Sprint(f.Excerpts) != fmt.Sprint(want) {
		t.Errorf("found %+v, want %+v", f, want)
	}
	second.say(Agent, "time=2026-11-24T10:01:00Z level=INFO msg=d")
	second.Add(Agent, []byte(Ended))
	second.Close()

	// The agent is started again in the same boot: that is no news. The next boot's is.
	again := begin(dir, "two", always)
	if f := <-again.found; f.Boot != (Boot{}) {
		t.Errorf("an agent that is started again finds %+v", f)
	}
	again.Add(Agent, []byte(Ended))
	again.Close()
	third := begin(dir, "three", always)
	if f := <-third.found; f.Boot.ID != "two" || !f.InOrder ||
		fmt.Sprint(f.Excerpts) != "[{agent [time=2026-11-24T10:01:00Z level=INFO msg=d]}]" {
		t.Errorf("found %+v", f)
	}
	third.say(Agent, "of the third")
	third.Close()
	before, err := Before(dir, Agent, "three")
	if err != nil || !strings.Contains(string(before), "msg=d") || strings.Contains(string(before), "of the third") {
		t.Errorf("before the third boot: %q, %v", before, err)
	}
	since, err := Since(dir, Agent, "three")
	if err != nil || !strings.HasPrefix(string(since), mark+"boot three ") || strings.Contains(string(since), "msg=d") ||
		!strings.HasSuffix(string(since), "of the third\n") {
		t.Errorf("since the third boot: %q, %v", since, err)
	}
	for _, silent := range []string{"four", ""} {
		if since, err := Since(dir, Agent, silent); err != nil || len(since) > 0 {
			t.Errorf("since boot %q: %q, %v", silent, since, err)
		}
	}
}

// What a boot said at its begin explains no end an hour later. A line without a time may be of the end, and what
// the agent said last tells what it was at.
func TestWhatWasSaidLongBeforeTheEndIsLeftOut(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "lastwords")
	first := begin(dir, "one", always)
	<-first.found
	first.say(Agent, "time=2026-11-24T09:00:00Z level=WARN msg=old", "time=2026-11-24T09:30:00Z level=INFO msg=a",
		"time=2026-11-24T09:40:00Z level=INFO msg=b", "time=2026-11-24T09:50:00Z level=INFO msg=c")
	first.say("kube-apiserver", "W1124 09:58:59.9 1 a.go:1] old", "E1124 09:59:01.1 1 a.go:1] new", "panic: no")
	first.say("kube-scheduler", "E1124 09:00:00.0 1 a.go:1] old")
	first.say("etcd", `{"level":"warn","ts":"2026-11-24T09:00:00.123+0100","msg":"old"}`,
		`{"level":"warn","ts":"2026-11-24T09:59:59.123456Z","msg":"new"}`,
		`{"level":"info","ts":"2026-11-24T10:00:01Z","msg":"last"}`)
	first.Close()
	second := begin(dir, "two", always)
	defer second.Close()
	want := []Excerpt{{Agent, []string{"time=2026-11-24T09:30:00Z level=INFO msg=a",
		"time=2026-11-24T09:40:00Z level=INFO msg=b", "time=2026-11-24T09:50:00Z level=INFO msg=c"}},
		{"etcd", []string{"2026-11-24T09:59:59.123456Z warn new"}},
		{"kube-apiserver", []string{"E1124 09:59:01.1 1 a.go:1] new", "panic: no"}}}
	if f := <-second.found; fmt.Sprint(f.Excerpts) != fmt.Sprint(want) {
		t.Errorf("found %+v, want %+v", f.Excerpts, want)
	}
}

func TestOldWordsMakeWayAcrossBoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := strings.Repeat("x", 1023)
	for n := range 2 * fileLimit / mostInPeriod * 3 {
		b := begin(dir, fmt.Sprintf("boot-%d", n), always)
		for range mostInPeriod/1024 - 2 {
			b.say("etcd", line)
		}
		b.say("etcd", fmt.Sprintf("end of %d", n))
		b.Close()
	}
	total := 0
	for _, path := range []string{"etcd.log", "etcd.log.1"} {
		text := content(t, filepath.Join(dir, path))
		if total += len(text); !strings.HasPrefix(text, mark+"boot ") {
			t.Errorf("%s begins with %.40q", path, text)
		}
	}
	entries, err := os.ReadDir(dir)
	if total > MostBytes/mostSources || total < fileLimit || err != nil || len(entries) != 2 {
		t.Errorf("%d bytes in %d files are kept: %v", total, len(entries), err)
	}
	all, err := read(dir, "etcd")
	if list := sections(all); err != nil || !strings.HasSuffix(string(list[len(list)-1].text), "end of 191\n") {
		t.Errorf("the newest words are not the last: %v", err)
	}
}

func TestALineThatAPowerCutHasTornIsEnded(t *testing.T) {
	dir := t.TempDir()
	first := begin(dir, "one", always)
	<-first.found
	first.say(Agent, "whole")
	first.Close()
	path := filepath.Join(dir, "agent.log")
	if err := os.WriteFile(path, []byte(content(t, path)+"W1124 10:00:02.1 1 a.go:1] to\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := begin(dir, "two", always)
	if f := <-second.found; fmt.Sprint(f.Excerpts) != "[{agent [whole W1124 10:00:02.1 1 a.go:1] to]}]" {
		t.Errorf("found %+v", f)
	}
	second.say(Agent, "next")
	second.Close()
	if text := content(t, path); !strings.Contains(text, "to\x00\x00\n"+mark+"boot two") {
		t.Errorf("%q", text)
	}
	// A run that ends within a line is no part of the next.
	third := begin(dir, "three", always)
	third.Add("etcd", []byte("no end"))
	third.Add("etcd", nil)
	third.Add("etcd", nil)
	third.say("etcd", "next run")
	third.Close()
	if text := content(t, filepath.Join(dir, "etcd.log")); !strings.HasSuffix(text, "\nno end\nnext run\n") {
		t.Errorf("%q", text)
	}
}

// A disk without room is not made worse, and what it held stays.
func TestNothingIsWrittenWhileTheDiskHasNoRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var room atomic.Bool
	room.Store(true)
	b := begin(dir, "one", room.Load)
	<-b.found
	b.say("etcd", "before")
	waitFor(t, func() bool { _, err := os.Stat(filepath.Join(dir, "etcd.log")); return err == nil })
	room.Store(false)
	b.say("etcd", "meanwhile")
	b.say("kube-apiserver", "meanwhile")
	waitFor(t, func() bool { return strings.Contains(b.log.String(), "not kept") })
	b.say("etcd", "meanwhile, too")
	b.Close()
	if text := content(t, filepath.Join(dir, "etcd.log")); !strings.HasSuffix(text, "\nbefore\n") {
		t.Errorf("%q", text)
	}
	if list, err := Sources(dir); err != nil || !slices.Equal(list, []string{"etcd"}) {
		t.Errorf("a file was made: %v, %v", list, err)
	}
	if n := strings.Count(b.log.String(), "not kept"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, b.log)
	}
}

// An error of the disk loses the words of that moment alone.
func TestWordsAreKeptAgainAfterAnError(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "lastwords")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder has to be
		t.Fatal(err)
	}
	b := begin(dir, "one", always)
	<-b.found
	b.say("etcd", "lost")
	waitFor(t, func() bool { return strings.Contains(b.log.String(), "not kept") })
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	b.say("etcd", "kept")
	waitFor(t, func() bool { return strings.Contains(b.log.String(), "kept on the data disk again") })
	b.Close()
	if text := content(t, filepath.Join(dir, "etcd.log")); strings.Contains(text, "lost") ||
		!strings.HasSuffix(text, "\nkept\n") {
		t.Errorf("%q", text)
	}
}

// A file that is a pipe of which nobody reads hangs when it is written to, as one on a disk that stands still.
func TestNobodyWaitsForADiskThatStandsStill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "etcd.log")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	k := New()
	k.Open(Place{Dir: dir, Boot: Boot{"one", "4711"}, Room: always, Found: func(Former) {},
		Log: slog.New(slog.DiscardHandler)})
	chunk := bytes.Repeat([]byte("0123456789abcdef\n"), 1000)
	for range 2000 { // 34 MB
		k.Add("etcd", chunk)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("who logs has waited %s", took)
	}
	k.mu.Lock()
	held := cap(k.sources["etcd"].text)
	k.mu.Unlock()
	if held > 8*mostInPeriod {
		t.Errorf("%d bytes are held in memory", held)
	}
	begun = time.Now()
	k.Close()
	if took := time.Since(begun); took > 2*closePatience || took < closePatience/2 {
		t.Errorf("Close took %s", took)
	}
	// Lets it go. It is open for writing, too: the writer may come to its file only now, and a pipe that has no writer
	// is at its end at once.
	f, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	go io.Copy(io.Discard, f)
	<-k.done
}

func TestWhatIsTooMuchInAMomentLosesItsBeginning(t *testing.T) {
	dir := t.TempDir()
	k := New()
	for n := range 20_000 {
		k.Add("etcd", fmt.Appendf(nil, "line %d\n", n))
	}
	k.Open(Place{Dir: dir, Boot: Boot{"one", "4711"}, Room: always, Found: func(Former) {},
		Log: slog.New(slog.DiscardHandler)})
	k.Close()
	text := content(t, filepath.Join(dir, "etcd.log"))
	lines := strings.Split(text, "\n")
	if len(text) > mostInPeriod+200 || !strings.HasSuffix(text, "line 19999\n") ||
		!strings.Contains(lines[1], "bytes were left out here") || !strings.HasPrefix(lines[2], "line 1") {
		t.Errorf("%d bytes: %q", len(text), lines[:3])
	}
}

func TestSourcesAreBounded(t *testing.T) {
	dir := t.TempDir()
	b := begin(dir, "one", always)
	<-b.found
	for n := range 3 * mostSources {
		b.say(fmt.Sprintf("component-%d", n), "x")
	}
	b.say("../../etc/passwd", "x")
	b.Close()
	list, err := Sources(dir)
	if err != nil || len(list) != mostSources {
		t.Errorf("%d sources are kept: %v", len(list), err)
	}
	// Those that nothing runs any more make way.
	for n := range mostSources {
		path := filepath.Join(dir, fmt.Sprintf("old-%d.log", n))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	next := begin(dir, "two", always)
	<-next.found
	next.Close()
	if left, err := Sources(dir); err != nil || !slices.Equal(left, list) {
		t.Errorf("left are %v, want %v: %v", left, list, err)
	}
}

func TestTheFilesAreForRootAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lastwords")
	b := begin(dir, "one", always)
	b.say("etcd", "x")
	b.Close()
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "etcd.log"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v: %v", path, info.Mode(), want, err)
		}
	}
}

func TestANilKeeperKeepsNothing(t *testing.T) {
	var k *Keeper
	k.Add("etcd", []byte("x"))
	k.Open(Place{})
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 10 s")
		}
	}
}
