package certs

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/durable"
)

var errCut = errors.New("cut")

// cutDisk dies within its nth step: the step has not taken effect, and a temporary file is left behind. Dying behind a
// step leaves the same as dying before the next.
func cutDisk(n int, backwards bool) disk {
	real := fastDisk()
	step := func(path string, do func() error) error {
		n--
		if n > 0 {
			return do()
		}
		if n < 0 {
			panic("Ensure went on after its disk had failed")
		}
		return errors.Join(errCut, os.WriteFile(filepath.Join(filepath.Dir(path), ".durable-left"), []byte("half"),
			0o600))
	}
	return disk{
		read: real.read, sync: real.sync,
		write: func(files ...durable.File) (int, error) {
			files = slices.Clone(files)
			if backwards { // a crash may leave out any of a set
				slices.Reverse(files)
			}
			for n, f := range files {
				err := step(f.Path, func() error { _, err := real.write(f); return err })
				if err != nil {
					return n, err
				}
			}
			return len(files), nil
		},
		rename: func(from, to string) error { return step(from, func() error { return real.rename(from, to) }) },
	}
}

// Ensure is killed at each of its steps, in three situations. Each time every leaf that is there must load, no older
// bundle may be taken any more, and the next run must repair all and keep what was finished.
func TestKilledAtAnyStepLeavesLoadablePairs(t *testing.T) {
	first := testBundle(t)
	trusts, second := inTwo(t, first, t0)
	for _, world := range []struct {
		name    string
		stride  int // garbage makes two steps of each file: every third is enough to meet both kinds
		prepare func(t *testing.T, r *Request)
	}{
		{"first boot", 1, func(*testing.T, *Request) {}},
		{"rotation", 1, func(t *testing.T, r *Request) {
			r.Bundle = first
			mustEnsure(t, *r)
			r.Bundle, r.Former = second, []*Bundle{first, trusts}
		}},
		{"garbage everywhere", 3, func(t *testing.T, r *Request) {
			mustEnsure(t, *r)
			for path := range contents(t, r.Files) {
				if err := os.WriteFile(path, []byte("<garbage"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(world.name, func(t *testing.T) {
			t.Parallel()
			for _, backwards := range []bool{false, true} {
				for n := 1; ; n += world.stride {
					r := testRequest(t, second)
					world.prepare(t, &r)
					_, err := ensure(r, cutDisk(n, backwards))
					if err == nil && n > len(sharedNames)+len(table) {
						break
					}
					if !errors.Is(err, errCut) {
						t.Fatalf("step %d: %v", n, err)
					}
					checkAfterCut(t, n, r, first, world.name == "garbage everywhere")
				}
			}
		})
	}
}

func checkAfterCut(t *testing.T, n int, r Request, older *Bundle, garbage bool) {
	t.Helper()
	finished := map[Leaf]string{}
	files := contents(t, r.Files)
	for _, row := range table {
		data, there := files[r.Files.Leaf(row.leaf)]
		if !there || data == "<garbage" {
			continue
		}
		c, err := tls.X509KeyPair([]byte(data), []byte(data))
		if err != nil {
			t.Fatalf("step %d: leaf %s: %v", n, row.leaf, err)
		}
		if verify(c.Leaf, t0, r.Bundle.authorities[row.authority].cert) == nil {
			finished[row.leaf] = data
		}
	}
	if bound, ok := files[r.Files.Binding()]; ok && strings.Contains(bound, `"generation": 3`) {
		old := r
		old.Bundle = older
		if _, err := ensure(old, fastDisk()); !errors.Is(err, ErrRollback) {
			t.Fatalf("step %d: the older bundle: %v", n, err)
		}
	} else if n > 3 && !garbage {
		t.Fatalf("step %d: the binding is not written first", n)
	}
	mustEnsure(t, r)
	after := contents(t, r.Files)
	for l, data := range finished {
		if after[r.Files.Leaf(l)] != data {
			t.Errorf("step %d: leaf %s was finished and is issued again", n, l)
		}
	}
	for path := range after {
		if strings.Contains(path, ".durable-") {
			t.Errorf("step %d: %s is left", n, path)
		}
	}
	r.Now = t0.Add(time.Minute)
	if report := mustEnsure(t, r); len(report.Changes) != 0 {
		t.Errorf("step %d: not whole after one run: %v", n, report.Changes)
	}
}
