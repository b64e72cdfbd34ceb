package datadir

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// The layout of bbolt's file (bbolt's internal/common: page.go, meta.go, bucket.go), in the byte order of the machines
// that etcd supports. It has had one version since 2014, and the database says which it is of.
const (
	pageHead    = 16 // id 8, flags 2, count 2, overflow 4
	elementSize = 16 // of a branch: position 4, key 4, page 8; of a leaf: flags 4, position 4, key 4, value 4
	bucketHead  = 16 // root 8, sequence 8
	metaSize    = 64
	metaMagic   = 0xED0CDAED

	branchFlag, leafFlag, freelistFlag = 0x01, 0x02, 0x10
	bucketFlag                         = 0x01
	noFreelist                         = ^uint64(0)
	longFreelist                       = 0xFFFF

	// longestPage bounds what is read into memory for one page with those that continue it: far more than the longest
	// request that etcd takes.
	longestPage = 64 << 20
	// revisionBytes is the shortest key of etcd's key bucket.
	revisionBytes = 17
)

// damagedPage says that a database cannot be read by anybody: a page that is in use is not what its place in the tree
// demands. Nothing that the kernel said is ever one, so that no error that may pass is taken for damage.
type damagedPage struct {
	page uint64
	what string
}

// Error implements error.
func (d *damagedPage) Error() string { return fmt.Sprintf("page %d %s", d.page, d.what) }

// pageTree reads a database by its tree, with read(2) and not through a mapping as bbolt does: there a disk that fails
// is a fault of memory, as a page is that points nowhere, and ends the process. It demands what bbolt's own
// check demands, and which etcd makes when it opens a database (bbolt's freepages), but for pages that nobody uses:
// those are lost room and no reason to end.
//
// That check in a process of its own would not do. It finds no branch without children, no bucket's value that reaches
// beyond its page, and no meta page that is called free. One page that claims to go on for 2^31 others makes it take
// all memory. And a bad sector ends it by the same signal as a page that points beyond the file.
type pageTree struct {
	ctx  context.Context
	file io.ReaderAt
	size uint64 // of a page
	high uint64 // the first page beyond those that may be in use
	used []bool
	read int

	found   Database // what the buckets of etcd say
	buckets []string // those that there are
}

// CheckPages reads all of a stopped member's database that is in use. The error is a damagedPage where the database is
// damaged, and any other where it could not be read to its end.
func CheckPages(ctx context.Context, path string) error {
	_, err := readPages(ctx, path)
	return err
}

// readPages reads all of a database that nobody writes to. It takes a byte of memory for each page.
func readPages(ctx context.Context, path string) (*pageTree, error) {
	size, err := pageSize(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	t := &pageTree{ctx: ctx, file: f, size: size}
	return t, t.check(info.Size())
}

// check reads the tree of a file that has so many bytes, and the list of its free pages.
func (t *pageTree) check(length int64) error {
	m, err := t.meta()
	if err != nil {
		return err
	}
	if has := uint64(length) / t.size; m.high > has {
		return &damagedPage{m.high - 1, fmt.Sprintf("is in use, and the file has %d", has)}
	}
	t.high, t.used = m.high, make([]bool, m.high)
	if _, err := t.tree(node{id: m.root, by: m.page}, nil); err != nil {
		return err
	}
	if m.freelist == noFreelist { // etcd writes none
		return nil
	}
	return t.freelist(m.freelist, m.page)
}

// pageSize asks bbolt, which finds the meta pages of a database whatever wrote it. It reads them through its mapping.
func pageSize(path string) (uint64, error) {
	if err := readHead(path); err != nil {
		return 0, err
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, fmt.Errorf("open the database: %w", err)
	}
	return uint64(db.Info().PageSize), db.Close()
}

// meta is what the newest of the two meta pages says that is valid.
type meta struct{ page, root, freelist, high, txid uint64 }

func (t *pageTree) meta() (newest meta, err error) {
	found := false
	for page := range uint64(2) {
		b := make([]byte, metaSize)
		if _, err := t.file.ReadAt(b, int64(page*t.size+pageHead)); err != nil {
			return meta{}, fmt.Errorf("read page %d: %w", page, err)
		}
		sum := fnv.New64a()
		sum.Write(b[:metaSize-8])
		if binary.LittleEndian.Uint32(b) != metaMagic || binary.LittleEndian.Uint64(b[metaSize-8:]) != sum.Sum64() {
			continue
		}
		m := meta{page: page, root: binary.LittleEndian.Uint64(b[16:]), freelist: binary.LittleEndian.Uint64(b[32:]),
			high: binary.LittleEndian.Uint64(b[40:]), txid: binary.LittleEndian.Uint64(b[48:])}
		if !found || m.txid > newest.txid {
			newest, found = m, true
		}
	}
	if !found {
		return meta{}, errors.New("read the meta pages: neither is valid") // opening it says so
	}
	return newest, nil
}

// node is one page of the tree as its parent has it: its number, who names it, and between which keys its own must be;
// nil: there is no such bound.
type node struct {
	id, by   uint64
	min, max []byte
}

// page reads a page that is in use, with those that continue it, and notes that it is.
func (t *pageTree) page(n node) ([]byte, error) {
	if t.read++; t.read%256 == 0 && t.ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted: %w", context.Cause(t.ctx))
	}
	if n.id < 2 || n.id >= t.high {
		return nil, &damagedPage{n.by, fmt.Sprintf("names page %d, and there are %d", n.id, t.high)}
	}
	b := make([]byte, t.size)
	if err := t.readAt(b, n.id); err != nil {
		return nil, err
	}
	if id := binary.LittleEndian.Uint64(b); id != n.id {
		return nil, &damagedPage{n.id, fmt.Sprintf("says that it is page %d", id)}
	}
	more := uint64(binary.LittleEndian.Uint32(b[12:]))
	if more >= t.high-n.id {
		return nil, &damagedPage{n.id, fmt.Sprintf("says that it goes on for %d pages, and there are %d", more, t.high)}
	}
	for id := n.id; id <= n.id+more; id++ {
		if t.used[id] {
			return nil, &damagedPage{id, fmt.Sprintf("is used twice, by page %d too", n.by)}
		}
		t.used[id] = true
	}
	if flagsOf(b) == freelistFlag || more == 0 {
		return b, nil
	}
	if more*t.size > longestPage {
		return nil, &damagedPage{n.id, fmt.Sprintf("says that it goes on for %d pages", more)}
	}
	b = make([]byte, (more+1)*t.size)
	return b, t.readAt(b, n.id)
}

func (t *pageTree) readAt(b []byte, page uint64) error {
	if _, err := t.file.ReadAt(b, int64(page*t.size)); err != nil {
		return fmt.Errorf("read page %d: %w", page, err)
	}
	return nil
}

func flagsOf(page []byte) uint16 { return binary.LittleEndian.Uint16(page[8:]) }
func countOf(page []byte) int    { return int(binary.LittleEndian.Uint16(page[10:])) }

// tree reads a page and all below it, in the bucket with a name, and returns the last key.
func (t *pageTree) tree(n node, bucket []byte) (last []byte, err error) {
	b, err := t.page(n)
	if err != nil {
		return nil, err
	}
	switch flagsOf(b) {
	case branchFlag:
		return t.branch(n, b, bucket)
	case leafFlag:
		return t.leaf(n, b, bucket)
	}
	return nil, &damagedPage{n.id, fmt.Sprintf("is of no kind that a tree has (flags %x)", flagsOf(b))}
}

func (t *pageTree) branch(n node, b, bucket []byte) (last []byte, err error) {
	count := countOf(b)
	if count == 0 {
		return nil, &damagedPage{n.id, "is a branch to nowhere"}
	}
	key := func(i int) ([]byte, uint64, error) {
		at := pageHead + i*elementSize
		e, ok := piece(b, at, elementSize)
		if !ok {
			return nil, 0, &damagedPage{n.id, fmt.Sprintf("says that it has %d elements, and is too short", count)}
		}
		k, ok := piece(b, at+int(binary.LittleEndian.Uint32(e)), int(binary.LittleEndian.Uint32(e[4:])))
		if !ok || len(k) == 0 {
			return nil, 0, &damagedPage{n.id, fmt.Sprintf("has no key in its element %d", i)}
		}
		return k, binary.LittleEndian.Uint64(e[8:]), nil
	}
	last = n.min
	for i := range count {
		k, child, err := key(i)
		if err != nil {
			return nil, err
		}
		if err := n.inOrder(i, last, k); err != nil {
			return nil, err
		}
		below := node{id: child, by: n.id, min: k, max: n.max}
		if i+1 < count {
			if below.max, _, err = key(i + 1); err != nil {
				return nil, err
			}
		}
		if last, err = t.tree(below, bucket); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// inOrder compares a key with the one before it, which for the first one is the parent's, and with the bound.
func (n node) inOrder(i int, before, key []byte) error {
	c := bytes.Compare(before, key)
	if before != nil && (c > 0 || i > 0 && c == 0) || n.max != nil && bytes.Compare(key, n.max) >= 0 {
		return &damagedPage{n.id, fmt.Sprintf("has a key that is out of order, in its element %d", i)}
	}
	return nil
}

func (t *pageTree) leaf(n node, b, bucket []byte) (last []byte, err error) {
	last = n.min
	count := countOf(b)
	for i := range count {
		e, ok := element(b, i)
		if !ok {
			return nil, &damagedPage{n.id, fmt.Sprintf("has nothing where its element %d of %d should be", i, count)}
		}
		if err := n.inOrder(i, last, e.key); err != nil {
			return nil, err
		}
		last = e.key
		if e.bucket {
			err = t.bucket(n, e)
		} else {
			err = t.entry(n, e, bucket)
		}
		if err != nil {
			return nil, err
		}
	}
	return last, nil
}

// leafElement is one element of a leaf.
type leafElement struct {
	key, value []byte
	bucket     bool
}

func element(b []byte, i int) (leafElement, bool) {
	at := pageHead + i*elementSize
	e, ok := piece(b, at, elementSize)
	if !ok {
		return leafElement{}, false
	}
	begin, keySize := at+int(binary.LittleEndian.Uint32(e[4:])), int(binary.LittleEndian.Uint32(e[8:]))
	key, ok := piece(b, begin, keySize)
	value, valued := piece(b, begin+keySize, int(binary.LittleEndian.Uint32(e[12:])))
	return leafElement{key, value, binary.LittleEndian.Uint32(e)&bucketFlag != 0}, ok && valued && keySize > 0
}

// piece is a part of a page; not ok: it does not lie within.
func piece(b []byte, at, size int) ([]byte, bool) {
	if at > len(b) || size > len(b)-at {
		return nil, false
	}
	return b[at : at+size], true
}

// bucket reads the tree of a bucket, or the page that a small one has within its parent's value.
func (t *pageTree) bucket(n node, e leafElement) (err error) {
	t.buckets = append(t.buckets, string(e.key))
	if len(e.value) < bucketHead {
		return &damagedPage{n.id, fmt.Sprintf("has a bucket %q that names no page", e.key)}
	}
	if root := binary.LittleEndian.Uint64(e.value); root != 0 {
		_, err = t.tree(node{id: root, by: n.id}, e.key)
		return err
	}
	inline := e.value[bucketHead:]
	if len(inline) < pageHead || flagsOf(inline) != leafFlag {
		return &damagedPage{n.id, fmt.Sprintf("has a bucket %q that is no leaf", e.key)}
	}
	_, err = t.leaf(node{id: n.id}, inline, e.key)
	return err
}

// entry is what etcd reads of each key revision when it starts (mvcc's restoreIntoIndex), and ends if it cannot; and
// what its database says of itself.
func (t *pageTree) entry(n node, e leafElement, bucket []byte) error {
	switch {
	case bytes.Equal(bucket, keyBucket):
		if len(e.key) < revisionBytes || proto.Unmarshal(e.value, new(mvccpb.KeyValue)) != nil {
			return &damagedPage{n.id, fmt.Sprintf("holds no key and value at revision %x", e.key)}
		}
		t.found.Entries++
		t.found.Revision = max(t.found.Revision, int64(leading(e.key)))
	case !bytes.Equal(bucket, metaBucket):
	case bytes.Equal(e.key, consistentIndex):
		t.found.Index = leading(e.value)
	case bytes.Equal(e.key, consistentTerm):
		t.found.Term = leading(e.value)
	case slices.Contains(compactionMarks, string(e.key)): // what was deleted last may have been compacted away
		t.found.Revision = max(t.found.Revision, int64(leading(e.value)))
	}
	return nil
}

// freelist reads the pages that are said to be free, which a restore writes once: none of them may be in use, or named
// twice.
func (t *pageTree) freelist(id, by uint64) error {
	b, err := t.page(node{id: id, by: by})
	if err != nil {
		return err
	}
	if flagsOf(b) != freelistFlag {
		return &damagedPage{id, fmt.Sprintf("is no list of free pages (flags %x)", flagsOf(b))}
	}
	at, count, room := uint64(pageHead), uint64(countOf(b)), (uint64(binary.LittleEndian.Uint32(b[12:]))+1)*t.size
	if count == longFreelist {
		count, at = binary.LittleEndian.Uint64(b[pageHead:]), at+8
	}
	if count > (room-at)/8 {
		return &damagedPage{id, fmt.Sprintf("says that %d pages are free, and is too short", count)}
	}
	list := io.NewSectionReader(t.file, int64(id*t.size+at), int64(count*8))
	part := make([]byte, t.size)
	for left := count * 8; left > 0; {
		part = part[:min(left, t.size)]
		if _, err := io.ReadFull(list, part); err != nil {
			return fmt.Errorf("read page %d: %w", id, err)
		}
		for i := 0; i < len(part); i += 8 {
			free := binary.LittleEndian.Uint64(part[i:])
			if free < 2 || free >= t.high || t.used[free] {
				return &damagedPage{id, fmt.Sprintf("says that page %d is free, which is in use, named twice or "+
					"not there", free)}
			}
			t.used[free] = true
		}
		left -= uint64(len(part))
	}
	return nil
}
