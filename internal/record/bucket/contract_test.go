package bucket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// eachBucket runs one test against a bucket in memory and one that a local project serves.
func eachBucket(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("bucket", func(t *testing.T) { test(t, newBucket(t).url) })
	t.Run("local project", func(t *testing.T) { url, _ := localBucket(t); test(t, url) })
}

// eachBucketAndFailing runs it against a bucket that fails, too.
func eachBucketAndFailing(t *testing.T, test func(t *testing.T, url string)) {
	eachBucket(t, test)
	t.Run("bucket that fails", func(t *testing.T) {
		b := newBucket(t)
		b.plan = sevenths
		test(t, b.url)
	})
}

// sevenths lets every request but two of seven suffer.
func sevenths(doing string, n int) fault {
	if doing == "upload" {
		return []fault{lied, none, lost, delayed, refused, late, none}[n%7]
	}
	return []fault{none, refused, none, late, lost, torn, throttled}[n%7]
}

func testClaim(name, token string) record.Claim {
	return record.Claim{Token: token, Seeder: record.Seeder{Place: replica.Place{Zone: "z-a", Name: name},
		InstanceID: "17"}, MaxLearners: 4,
		Source: record.Source{Kind: record.SourceEmpty}, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func TestDriverContract(t *testing.T) {
	eachBucketAndFailing(t, func(t *testing.T, url string) {
		ctx, d := t.Context(), openStore(t, url).driver
		if entries, err := d.list(ctx); err != nil || len(entries) != 0 {
			t.Fatalf("a record that was never written to: %v, %v: want an empty listing", entries, err)
		}
		if _, err := d.read(ctx, "a/b.json"); !errors.Is(err, errAbsent) {
			t.Fatalf("read of an absent object: %v", err)
		}
		// The driver may answer errExists where an earlier try of the same call made the object.
		if err := d.create(ctx, "a/b.json", []byte("one")); err != nil && !errors.Is(err, errExists) {
			t.Fatal(err)
		}
		if err := d.create(ctx, "a/b.json", []byte("two")); !errors.Is(err, errExists) {
			t.Fatalf("create of an object that exists: %v", err)
		}
		if data, err := d.read(ctx, "a/b.json"); err != nil || string(data) != "one" {
			t.Fatalf("read: %q, %v: want what the first create wrote", data, err)
		}
		before, err := d.list(ctx)
		if err != nil || len(before) != 1 || before[0].key != "a/b.json" {
			t.Fatalf("list: %v, %v", before, err)
		}
		if err := d.overwrite(ctx, "a/b.json", []byte("six")); err != nil {
			t.Fatal(err)
		}
		if data, err := d.read(ctx, "a/b.json"); err != nil || string(data) != "six" {
			t.Fatalf("read: %q, %v: want what overwrite wrote", data, err)
		}
		if err := d.overwrite(ctx, "a.json", nil); err != nil {
			t.Fatal(err)
		}
		after, err := d.list(ctx)
		if err != nil || len(after) != 2 || after[0].key != "a.json" || after[1].key != "a/b.json" {
			t.Fatalf("list: %v, %v: want the two keys in the order of their bytes", after, err)
		}
		if after[1].stamp == before[0].stamp {
			t.Error("the stamp of an object that was written again did not change")
		}
	})
}

// A mark is read again only where its stamp says so: also where it is as long as before and both were written in one
// moment.
func TestEveryOverwritingShows(t *testing.T) {
	eachBucket(t, func(t *testing.T, url string) {
		s, reader := openStore(t, url), openStore(t, url)
		for n := range uint64(30) {
			if err := s.WriteMark(t.Context(), record.Mark{MemberID: 1, Epoch: 1, Applied: 100 + n}); err != nil {
				t.Fatal(err)
			}
			if v, err := reader.View(t.Context()); err != nil || v.Marks[1].Applied != 100+n {
				t.Fatalf("mark %+v, %v: want applied %d", v.Marks[1], err, 100+n)
			}
		}
	})
}

// TestClaimRaceOfProcesses is the reason for the whole package.
func TestClaimRaceOfProcesses(t *testing.T) {
	const racers = 8
	eachBucketAndFailing(t, func(t *testing.T, url string) {
		const races = 12
		var all []*racingProcess
		for n := range racers {
			all = append(all, startRacer(t, url, fmt.Sprintf("m%d", n)))
		}
		for epoch := uint64(1); epoch <= races; epoch++ {
			checkRace(t, epoch, race(t, all, epoch))
		}
		view, err := openStore(t, url).View(t.Context())
		if err != nil || uint64(len(view.Epochs)) != races {
			t.Fatalf("view: %d epochs, %v: want %d", len(view.Epochs), err, races)
		}
	})
}

// racingProcess is one process of a race.
type racingProcess struct {
	in  io.Writer
	out *bufio.Reader
}

func startRacer(t *testing.T, url, name string) *racingProcess {
	t.Helper()
	cmd := process(t, "racer", url, name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("racer %s: %v", name, err)
		}
	})
	p := &racingProcess{in: in, out: bufio.NewReader(out)}
	if line, err := p.out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("racer %s: %q, %v", name, line, err)
	}
	return p
}

// race starts all processes on one epoch at the same moment.
func race(t *testing.T, all []*racingProcess, epoch uint64) []raceResult {
	t.Helper()
	results := make([]raceResult, len(all))
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for n, p := range all {
		group.Go(func() {
			if _, errs[n] = fmt.Fprintln(p.in, epoch); errs[n] != nil {
				return
			}
			line, err := p.out.ReadBytes('\n')
			errs[n] = errors.Join(err, json.Unmarshal(line, &results[n]))
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return results
}

func checkRace(t *testing.T, epoch uint64, results []raceResult) {
	t.Helper()
	var winners []string
	for _, r := range results {
		if r.Won {
			winners = append(winners, r.Mine)
		}
		if r.Got == "" || r.Got != results[0].Got {
			t.Errorf("epoch %d: %s read the winner %q, another read %q; its errors: %q", epoch, r.Mine, r.Got,
				results[0].Got, r.Errors)
		}
	}
	if len(winners) != 1 || winners[0] != results[0].Got {
		t.Errorf("epoch %d: winners %q, and all read %q: want exactly one, the one that all read", epoch, winners,
			results[0].Got)
	}
}

func TestWriterWhoseAnswerWasLostLearnsThatItWon(t *testing.T) {
	for name, f := range map[string]fault{"503 without effect": refused, "429": throttled, "cut connection": lost,
		"503 that took effect": lied, "late effect": delayed, "late answer": late, "no answer": silent,
		"neither effect nor answer": hung,
		"an answer that stops":      stuck, "an answer that breaks off": torn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBucket(t)
			b.always("upload", f, 1)
			checkWins(t, b)
		})
		t.Run(name+", also to the reading back", func(t *testing.T) {
			t.Parallel()
			b := newBucket(t)
			b.plan = func(_ string, n int) fault { return []fault{f, none}[min(n, 1)] }
			checkWins(t, b)
		})
	}
	t.Run("an answer that is never good, with an effect", func(t *testing.T) {
		b := newBucket(t)
		b.always("upload", lied, 0)
		checkWins(t, b)
		if n := b.count("upload"); n != normalPace.tries+1 {
			t.Errorf("%d uploads: want %d by the first writer, no retries but ours, and 1 by the second", n,
				normalPace.tries)
		}
	})
}

// checkWins writes a claim through the faults, then as a second writer without any.
func checkWins(t *testing.T, b *testBucket) {
	t.Helper()
	got, won, err := openStore(t, b.url).CreateClaim(t.Context(), 1, testClaim("m1", "first"))
	if err != nil || !won || got.Token != "first" {
		t.Fatalf("first writer: %+v, won %v, %v", got, won, err)
	}
	b.always("none", none, 0)
	got, won, err = openStore(t, b.url).CreateClaim(t.Context(), 1, testClaim("m2", "second"))
	if err != nil || won || got.Token != "first" {
		t.Fatalf("second writer: %+v, won %v, %v", got, won, err)
	}
}

// answering is a place whose answer to a create is not what happened.
type answering struct {
	*memory
	answer error
}

func (a answering) create(ctx context.Context, key string, data []byte) error {
	a.memory.create(ctx, key, data)
	return a.answer
}

// Who won is what is read back, whatever the create answered.
func TestWhatIsReadBackDecidesWhoWon(t *testing.T) {
	for _, answer := range []error{nil, errExists, errors.New("cut off")} {
		s := &Store{driver: answering{newMemory(), answer}, cluster: "c1"}
		for _, token := range []string{"first", "second"} {
			got, won, err := s.CreateClaim(t.Context(), 1, testClaim("m1", token))
			if err != nil || won != (token == "first") || got.Token != "first" {
				t.Errorf("the place answers %v, %s writer: %s, won %t, %v", answer, token, got.Token, won, err)
			}
		}
	}
}

func TestNobodyWinsWithoutAnAnswer(t *testing.T) {
	for name, plan := range map[string]func(string, int) fault{
		"all refused":         func(string, int) fault { return refused },
		"written, never read": func(doing string, _ int) fault { return map[string]fault{"read": refused}[doing] },
		"lost, then never read": func(doing string, _ int) fault {
			return map[string]fault{"upload": lost,
				"read": silent}[doing]
		},
		"forbidden":           func(string, int) fault { return forbidden },
		"read back forbidden": func(doing string, _ int) fault { return map[string]fault{"read": forbidden}[doing] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBucket(t)
			b.plan = plan
			if _, won, err := openStore(t, b.url).CreateClaim(t.Context(), 1, testClaim("m1", "first")); err == nil ||
				won {
				t.Fatalf("won %v, error %v: want an error", won, err)
			}
		})
	}
}

func TestOrdersGivenAtOnceGetDistinctNumbers(t *testing.T) {
	const writers = 12
	eachBucket(t, func(t *testing.T, url string) {
		numbers := make([]uint64, writers)
		var group sync.WaitGroup
		for n := range writers {
			s := openStore(t, url)
			group.Go(func() {
				o, err := s.CreateOrder(t.Context(), record.Order{By: fmt.Sprint("operator ", n),
					Kind:     record.OrderReplicas,
					Replicas: n + 1})
				if err != nil {
					t.Error(err)
				}
				numbers[n] = o.Number
			})
		}
		group.Wait()
		slices.Sort(numbers)
		for n, number := range numbers {
			if number != uint64(n+1) {
				t.Fatalf("numbers %v: want 1 to %d", numbers, writers)
			}
		}
	})
}

// What speaks of an order that is lost keeps its number: another order under it would be taken for that one, done or
// accepted.
func TestTheNumberOfALostOrderDoesNotComeBack(t *testing.T) {
	for _, key := range []string{record.OrderKey(7), record.DoneKey(7), record.AcceptedKey(7), record.VerdictKey(7),
		record.VMStopKey(7, "101")} {
		m := newMemory()
		m.put(key, "{}")
		if o, err := m.store().CreateOrder(t.Context(),
			record.Order{Kind: record.OrderPause}); err != nil || o.Number != 8 {
			t.Errorf("beside %s: number %d, %v: want 8", key, o.Number, err)
		}
	}
	m := newMemory()
	for _, key := range []string{record.DoneKey(10), record.OrderKey(9)} { // as a listing sorts them
		m.put(key, "{}")
	}
	o, err := m.store().CreateOrder(t.Context(), record.Order{Kind: record.OrderPause})
	if err != nil || o.Number != 11 {
		t.Errorf("beside order 9, and the end of a lost order 10: number %d, %v: want 11", o.Number, err)
	}
}

// There is no number after the largest.
func TestAnObjectWithAHugeNumberDoesNotEndAllOrders(t *testing.T) {
	for _, key := range []string{record.OrderKey(math.MaxUint64), record.DoneKey(math.MaxUint64),
		record.VMStopKey(math.MaxUint64, "101")} {
		m := newMemory()
		m.put(key, "{}")
		s := m.store()
		if o, err := s.CreateOrder(t.Context(), record.Order{Kind: record.OrderPause}); err != nil || o.Number != 1 {
			t.Errorf("beside %s: number %d, %v: want 1", key, o.Number, err)
		}
		if v, err := s.View(t.Context()); err != nil || len(v.Orders) != 1 {
			t.Errorf("beside %s: orders %v, %v", key, v.Orders, err)
		}
		if got := find(s.Check(t.Context(), ""), "extra"); !strings.Contains(got, key) {
			t.Errorf("the check says %q of %s", got, key)
		}
	}
}
