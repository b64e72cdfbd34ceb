package datadir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/quorate/quorate/etcdmember/etcdtest"
)

func TestDamagedPagesAreFound(t *testing.T) {
	zeroed := func(p []byte) { clear(p) }
	random := func(p []byte) {
		r := rand.NewChaCha8([32]byte{7})
		io.ReadFull(r, p)
	}
	put16 := func(at int, v uint16) func([]byte) {
		return func(p []byte) { binary.LittleEndian.PutUint16(p[at:], v) }
	}
	put32 := func(at int, v uint32) func([]byte) {
		return func(p []byte) { binary.LittleEndian.PutUint32(p[at:], v) }
	}
	put64 := func(at int, v uint64) func([]byte) {
		return func(p []byte) { binary.LittleEndian.PutUint64(p[at:], v) }
	}
	cases := []struct {
		name, kind string
		change     func(page []byte)
		says       string
	}{
		{"a leaf is zeroed", "leaf", zeroed, "says that it is page 0"},
		{"a leaf is noise", "leaf", random, "says that it is page"},
		{"a leaf's flag is flipped", "leaf", func(p []byte) { p[8] ^= 0x08 },
			"is of no kind that a tree has (flags a)"},
		{"a leaf has more elements than it has room", "leaf", put16(10, 0xfff0), "has nothing where its element"},
		{"a leaf goes on beyond the file", "leaf", put32(12, 1<<31), "says that it goes on for 2147483648 pages"},
		{"a leaf's element points beyond it", "leaf", put32(pageHead+4, 1<<20), "has nothing where its element 0"},
		{"a leaf's key is of no size", "leaf", put32(pageHead+8, 0), "has nothing where its element 0"},
		{"a leaf's key is changed", "leaf",
			func(p []byte) { p[pageHead+int(binary.LittleEndian.Uint32(p[pageHead+4:]))] = 0xff }, "out of order"},
		{"a leaf's value is none of etcd's", "leaf",
			func(p []byte) { p[pageHead+int(binary.LittleEndian.Uint32(p[pageHead+4:]))+revisionBytes] = 0 },
			"holds no key and value at revision"},
		{"a branch is zeroed", "branch", zeroed, "says that it is page 0"},
		{"a branch is noise", "branch", random, "says that it is page"},
		{"a branch has no children", "branch", put16(10, 0), "is a branch to nowhere"},
		{"a branch's child is not there", "branch", put64(pageHead+8, 1<<40), "names page 1099511627776"},
		{"a branch's two children are one", "branch",
			func(p []byte) { copy(p[pageHead+8:pageHead+16], p[pageHead+elementSize+8:]) }, "out of order"},
		{"a branch's child is itself", "branch", func(p []byte) { copy(p[pageHead+8:pageHead+16], p[:8]) },
			"is used twice"},
		{"the list of free pages is zeroed", "freelist", zeroed, "says that it is page 0"},
		{"the list of free pages is a leaf", "freelist", put16(8, leafFlag), "is no list of free pages"},
		{"the list of free pages is too long", "freelist", put16(10, 0xfff0), "pages are free, and is too short"},
		{"a free page is in use", "freelist", put64(pageHead, 0), "says that page 0 is free"},
		{"a page is free twice", "freelist", func(p []byte) { copy(p[pageHead:], p[pageHead+8:pageHead+16]) },
			"named twice"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := etcdtest.Database(t, c.kind == "freelist")
			if err := CheckPages(t.Context(), path); err != nil {
				t.Fatalf("as it was written: %v", err)
			}
			list := etcdtest.Pages(t, path, c.kind)
			etcdtest.DamagePage(t, path, list[len(list)/2], c.change)
			if err := openDatabase(path, nil); err != nil {
				t.Errorf("a look at its head finds it: %v", err)
			}
			err := CheckPages(t.Context(), path)
			if page := (*damagedPage)(nil); !errors.As(err, &page) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// What bbolt's own check does not find, or takes all memory for: it is why there is a reader of our own.
func TestDamageBeyondBboltsCheckIsFound(t *testing.T) {
	for name, change := range map[string]func(page []byte){
		// The page is read first, so that no other has claimed those that it says continue it.
		"goes on for 2147483648 pages": func(p []byte) { binary.LittleEndian.PutUint32(p[12:], 1<<31) },
		// bbolt reads the head of a bucket, and copies all of its value with the first change beside it.
		"has nothing where its element 1 of 3 should be": func(p []byte) {
			binary.LittleEndian.PutUint32(p[pageHead+elementSize+12:], 1<<30)
		},
	} {
		path := etcdtest.Database(t, false)
		leaves := etcdtest.Pages(t, path, "leaf")
		etcdtest.DamagePage(t, path, leaves[len(leaves)-1], change) // the root, of the last commit
		err := CheckPages(t.Context(), path)
		if page := (*damagedPage)(nil); !errors.As(err, &page) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// A small bucket lies within its parent's page. bbolt's check passes it over, and bbolt finds nothing in it by halves.
func TestASmallBucketIsReadToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(metaBucket)
		return errors.Join(err, b.Put([]byte("aaaa"), nil), b.Put([]byte("bbbb"), nil))
	})
	if err := errors.Join(err, db.Close(), CheckPages(t.Context(), path)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(whole, []byte("aaaabbbb"))
	for want, change := range map[string]func(b []byte){
		"is out of order, in its element 1": func(b []byte) { copy(b[at:], "cccc") },
		"has nothing where its element 1 of 2": func(b []byte) {
			binary.LittleEndian.PutUint32(b[at-elementSize+8:],
				1<<30)
		},
		`has a bucket "meta" that is no leaf`: func(b []byte) { b[at-2*elementSize-pageHead+8] = branchFlag },
	} {
		b := slices.Clone(whole)
		change(b)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CheckPages(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What bbolt cannot read is found, whatever it is; and what is changed in pages that nobody uses is no damage.
func TestWhatBboltCannotReadIsFound(t *testing.T) {
	path, r := etcdtest.Database(t, true), rand.New(rand.NewPCG(1, 2))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	unread, found, clean := 0, 0, 0
	for range 400 {
		b := slices.Clone(whole)
		page := b[(2+r.IntN(len(b)/size-2))*size:][:size]
		switch r.IntN(4) {
		case 0:
			clear(page)
		case 1:
			page[r.IntN(pageHead)] ^= 1 << r.IntN(8)
		case 2:
			page[r.IntN(pageHead+8*elementSize)] ^= 1 << r.IntN(8)
		default:
			copy(page, whole[(2+r.IntN(len(b)/size-2))*size:][:size])
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		theirs, ours := readByBbolt(t, path), CheckPages(t.Context(), path)
		if page := (*damagedPage)(nil); ours != nil && !errors.As(ours, &page) {
			t.Fatalf("not the pages' fault: %v", ours)
		}
		switch {
		case theirs != nil && ours == nil:
			t.Fatalf("bbolt cannot read it, and it counts as sound: %v", theirs)
		case theirs != nil:
			unread++
		case ours != nil:
			found++
		default:
			clean++
		}
	}
	if t.Logf("bbolt could not read %d, %d more were damaged, %d were sound", unread, found, clean); unread < 50 ||
		clean < 20 {
		t.Error("the damage is not of all kinds")
	}
}

// readByBbolt reads every bucket through bbolt, and wants etcd's revisions in order.
func readByBbolt(t *testing.T, path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) (err error) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("a page is not what it should be: %v", r)
			}
		}()
		for _, name := range [][]byte{keyBucket, metaBucket} {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("it has no bucket %q", name)
			}
		}
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			var last []byte
			return b.ForEach(func(k, _ []byte) error {
				if bytes.Equal(name, keyBucket) && (len(k) < revisionBytes || bytes.Compare(k, last) <= 0) {
					return fmt.Errorf("key revision %x after %x", k, last)
				}
				last = append(last[:0], k...)
				return nil
			})
		})
	})
}

// An error of the kernel, or the end of the agent, says nothing of what a database holds.
func TestADatabaseThatCannotBeReadIsNotDamaged(t *testing.T) {
	path := etcdtest.Database(t, false)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bad := etcdtest.Pages(t, path, "leaf")[3]
	size, err := pageSize(path)
	if err != nil {
		t.Fatal(err)
	}
	tree := &pageTree{ctx: t.Context(), file: badSector{f, int64(bad * os.Getpagesize())}, size: size}
	err = tree.check(1 << 40)
	if page := (*damagedPage)(nil); !errors.Is(err, errBadSector) || errors.As(err, &page) {
		t.Errorf("a bad sector: %v", err)
	}
	if err := CheckPages(t.Context(), filepath.Join(t.TempDir(), "db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

var errBadSector = errors.New("input/output error")

// badSector is a file that cannot be read at one place.
type badSector struct {
	io.ReaderAt
	at int64
}

func (b badSector) ReadAt(p []byte, off int64) (int, error) {
	if off <= b.at && b.at < off+int64(len(p)) {
		return 0, errBadSector
	}
	return b.ReaderAt.ReadAt(p, off)
}
