package certs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// lostBindings are ways to lose binding.json.
var lostBindings = map[string]func(path string) error{
	"removed":            os.Remove,
	"emptied":            func(path string) error { return os.WriteFile(path, nil, 0o600) },
	"not JSON":           func(path string) error { return os.WriteFile(path, []byte("<html>"), 0o600) },
	"without a cluster":  replaced(`"clusterUID": "uid-1"`, `"clusterUID": ""`),
	"without generation": replaced(`"generation": `, `"of": `),
	"without a pin":      replaced(`"etcd-peer": `, `"etcd-client": `),
	"a folder": func(path string) error {
		return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
	},
	"a link": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("elsewhere", path)) },
}

// replaced changes a file's text.
func replaced(old, by string) func(path string) error {
	return func(path string) error {
		data, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(data), old) {
			err = fmt.Errorf("%s lacks %s", path, old)
		}
		return errors.Join(err, os.WriteFile(path, []byte(strings.ReplaceAll(string(data), old, by)), 0o600))
	}
}

// A folder that lost its binding is bound to the generation that its files come from, and takes none that is older, nor
// another's.
func TestALostBindingIsFoundInTheFilesBesideIt(t *testing.T) {
	first := testBundle(t)
	knows, works := inTwo(t, first, t0)
	other, skips := testBundle(t), testBundle(t)
	skips.Generation = 3
	line := []*Bundle{first, knows, works}
	sharing := changed(other, func(n *Bundle) {
		n.Generation, n.authorities[Kubernetes] = 3,
			first.authorities[Kubernetes]
	})
	for name, c := range map[string]struct {
		has     *Bundle
		offered []*Bundle
		takes   bool
	}{
		"the same one":                     {works, line[2:], true},
		"the same one behind all others":   {works, line, true},
		"the same one behind a stranger":   {sharing, []*Bundle{first, sharing}, true}, // some files come from both
		"the next one":                     {knows, line, true},
		"the next but one":                 {first, line, true},
		"the first, and it has the last":   {works, line[:1], false},
		"the first two, and it has a last": {works, line[:2], false},
		"the first, and it has the second": {knows, line[:1], false},
		"an unrelated one":                 {first, []*Bundle{other}, false},
		"an unrelated later one":           {first, []*Bundle{first, knows, skips}, false},
	} {
		for lost, lose := range lostBindings {
			if lost != "removed" && name != "the first, and it has the last" && name != "the same one" {
				continue
			}
			r := testRequest(t, c.has)
			mustEnsure(t, r)
			if err := lose(r.Files.Binding()); err != nil {
				t.Fatal(err)
			}
			before := tree(t, r.Files.Dir)
			n := len(c.offered) - 1
			r.Bundle, r.Former, r.ClusterUID = c.offered[n], c.offered[:n], "uid-1"
			report, err := ensure(r, fastDisk())
			switch {
			case !c.takes:
				if !errors.Is(err, ErrNotContinued) || tree(t, r.Files.Dir) != before {
					t.Errorf("%s, offered %s: %v", lost, name, err)
				}
			case err != nil || report.Generation != c.offered[n].Generation:
				t.Errorf("%s, offered %s: generation %d, %v", lost, name, report.Generation, err)
			}
		}
	}
}

// tree is a folder's names and contents.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		data, _ := os.ReadFile(path) // a folder or a link has none
		fmt.Fprintln(&out, path, e.Type(), string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Each file by itself shows that a generation is older than what the folder has, and a damaged one shows nothing.
func TestEachFileBesideALostBindingCounts(t *testing.T) {
	first := testBundle(t)
	knows, _ := inTwo(t, first, t0)
	for _, m := range sharedFiles(Files{}) {
		if m.volatile || m.name == "service-account.key" { // the second generation signs with the first one's key
			continue
		}
		for _, damaged := range []bool{false, true} {
			r := testRequest(t, knows)
			mustEnsure(t, r)
			kept, err := os.ReadFile(filepath.Join(r.Files.Dir, filepath.Base(pathOf(t, r.Files, m.name))))
			if err != nil {
				t.Fatal(err)
			}
			if damaged {
				kept = []byte("<garbage")
			}
			r = testRequest(t, first)
			mustEnsure(t, r)
			for _, all := range sharedFiles(r.Files) {
				os.Remove(all.path)
			}
			if err := errors.Join(os.Remove(r.Files.Binding()), os.WriteFile(pathOf(t, r.Files, m.name), kept,
				0o600)); err != nil {
				t.Fatal(err)
			}
			if _, err := ensure(r, fastDisk()); damaged != (err == nil) || err != nil &&
				!strings.Contains(err.Error(), m.name+" beside it") {
				t.Errorf("%s, damaged %t: %v", m.name, damaged, err)
			}
		}
	}
}

func pathOf(t *testing.T, f Files, name string) string {
	t.Helper()
	for _, m := range sharedFiles(f) {
		if m.name == name {
			return m.path
		}
	}
	t.Fatalf("no file %s", name)
	return ""
}

// The power went while a generation was written, and the binding is lost: the newest file counts.
func TestALostBindingBesideHalfAGeneration(t *testing.T) {
	first := testBundle(t)
	knows, works := inTwo(t, first, t0)
	for n := 1; n < len(sharedNames); n++ {
		r := testRequest(t, knows)
		mustEnsure(t, r)
		r.Bundle, r.Former = works, []*Bundle{knows}
		if _, err := ensure(r, cutDisk(n, false)); !errors.Is(err, errCut) {
			t.Fatalf("step %d: %v", n, err)
		}
		if err := os.Remove(r.Files.Binding()); err != nil {
			t.Fatal(err)
		}
		r.Bundle, r.Former = knows, []*Bundle{first}
		if _, err := ensure(r, fastDisk()); (err == nil) != (n <= 2) { // the first step is the binding, the second a CA
			t.Errorf("step %d: the generation before: %v", n, err)
		}
		r.Bundle, r.Former = works, []*Bundle{first, knows}
		if report := mustEnsure(t, r); report.Generation != 3 {
			t.Errorf("step %d: generation %d", n, report.Generation)
		}
	}
}

// What cannot be read says nothing: it is not replaced, no bundle is asked for, and the cause is in the error.
func TestAFileThatCannotBeReadIsNeitherBadNorMissing(t *testing.T) {
	for _, with := range []bool{true, false} {
		r := testRequest(t, testBundle(t))
		mustEnsure(t, r)
		paths := []string{r.Files.Binding(), r.Files.Leaf(APIServer), r.Files.Kubeconfig(Agent)}
		for _, m := range sharedFiles(r.Files) {
			paths = append(paths, m.path)
		}
		before := contents(t, r.Files)
		if !with {
			r.Bundle = nil
		}
		for _, path := range paths {
			for _, errno := range []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.EACCES} {
				for times := 1; times <= 2; times++ {
					_, err := ensure(r, unreadable(path, times, errno))
					if err == nil && times == 2 { // it is read once only
						continue
					}
					if !errors.Is(err, errno) || errors.Is(err, ErrBundleNeeded) {
						t.Errorf("with a bundle %t: reading %s fails with %q: %v", with, filepath.Base(path), errno,
							err)
					}
				}
			}
		}
		// Neither where the binding in its folder is lost.
		if err := os.Remove(r.Files.Binding()); err != nil {
			t.Fatal(err)
		}
		if _, err := ensure(r, unreadable(r.Files.CA(EtcdPeer), 1, syscall.EIO)); !errors.Is(err, syscall.EIO) {
			t.Errorf("with a bundle %t: no binding, and a CA that cannot be read: %v", with, err)
		}
		delete(before, r.Files.Binding())
		after := contents(t, r.Files)
		delete(after, r.Files.Binding()) // a bundle may have written it before
		for path, data := range before {
			if after[path] != data {
				t.Errorf("with a bundle %t: %s changed", with, path)
			}
		}
		if len(after) != len(before) {
			t.Errorf("with a bundle %t: %d files, before %d", with, len(after), len(before))
		}
	}
}

// unreadable is a disk that fails the nth reading of a file, and every later one.
func unreadable(path string, n int, errno syscall.Errno) disk {
	d := fastDisk()
	d.read = func(p string) ([]byte, fs.FileMode, error) {
		if p == path {
			if n--; n <= 0 {
				return nil, 0, &fs.PathError{Op: "read", Path: p, Err: errno}
			}
		}
		return readRegular(p)
	}
	return d
}
