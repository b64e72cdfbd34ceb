package image

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// sum is the SHA-256 of a disk's file.
func sum(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// says is whether the console has a line that matches, from a place on.
func says(m *machine, from int, pattern string) func() bool {
	wanted := regexp.MustCompile(pattern)
	return func() bool { return wanted.MatchString(m.console()[from:]) }
}

// diskFaults are data disks that a first boot finds, each with the line of the serial console that says what is wrong.
// The machine leaves them as they are.
var diskFaults = []struct {
	name     string
	prepare  func(t *testing.T, path string)
	readOnly bool
	says     string
}{
	{name: "somebody's data without a signature", says: `google-quorate-data .*is not formatted`,
		prepare: func(t *testing.T, path string) { put(t, path, 1<<20, foreign) }},
	{name: "a partition table", says: `google-quorate-data holds dos, .*is not formatted`,
		prepare: func(t *testing.T, path string) { put(t, path, 446, partitions) }},
	{name: "a file system that is damaged", says: `EXT4-fs \(sd.\): group descriptors corrupted`,
		prepare: func(t *testing.T, path string) {
			run(t, "mkfs.ext4", "-q", "-e", "remount-ro", path)
			// The descriptors of block groups, which the superblock's checksum does not cover.
			put(t, path, 4096, bytes.Repeat([]byte{0xa5}, 4096))
		}},
	{name: "a disk that is attached read-only", readOnly: true, says: `name=data-disk-damaged reason=.*read-only`,
		prepare: func(t *testing.T, path string) { run(t, "mkfs.ext4", "-q", path) }},
}

// One machine, whose address and metadata server are more than a minute late, is given one data disk after another. It
// says what is wrong with each, formats none of them, and goes on with one that it can mount, whose file system grows
// as the disk does.
func TestAFirstBootSaysWhatIsWrongWithTheDataDisk(t *testing.T) {
	image := baked(t)
	n := newSilentNetwork(t, masterA())
	n.initRecord(t) // before the machine, whose clock is slow
	m := boot(t, n, image, "")
	q := m.control(t)
	m.await(t, `hostname\[\d+\]: the metadata server does not give this machine's name, for (6\d|7\d) s`)
	// What elects itself goes by the host name: nothing is to be started as "localhost".
	if began := regexp.MustCompile(`\bquorate\[\d+\]:.*`).FindString(m.console()); began != "" {
		t.Errorf("the agent began before the machine had its name: %s", began)
	}
	n.serveDHCP(t)
	n.serveMetadata(t)
	m.await(t, `name=data-disk-missing`)
	for _, c := range diskFaults {
		disk := blank(t)
		c.prepare(t, disk)
		before, said := sum(t, disk), len(m.console())
		q.attach(t, disk, c.readOnly)
		m.until(t, c.name, says(m, said, c.says))
		m.until(t, "the agent's wait", says(m, said, `name=data-disk-damaged`))
		said = len(m.console())
		q.detach(t)
		if sum(t, disk) != before {
			t.Errorf("%s: the disk was changed", c.name)
		}
		m.until(t, "the disk is gone", says(m, said, `name=data-disk-missing`))
	}
	// A full disk is a file system like another, until somebody writes to it.
	full, said := blank(t), len(m.console())
	run(t, "mkfs.ext4", "-q", full)
	run(t, "unshare", "--mount", "sh", "-c", `mount -o loop "$1" /mnt && ! cat /dev/zero >/mnt/all 2>/dev/null`,
		"sh", full)
	q.attach(t, full, false)
	m.until(t, "a disk that is full", says(m, said, `name=preflight reason=.*has 0 MiB left`))
	said = len(m.console())
	q.detach(t)
	// The agent looks in the moment of the loss: while the disk is still mounted its reading fails, and the console has
	// the reason that was found first. The replica's report has the newest.
	m.until(t, "a disk that goes while it is in use",
		says(m, said, `name=fault reason=.*(not mounted|input/output error)`))
	m.until(t, "a report of it", func() bool { return strings.Contains(n.report(t), "is not mounted at") })

	// A file system that is smaller than its disk grows, and again when the disk does.
	disk := blank(t)
	run(t, "mkfs.ext4", "-q", "-b", "4096", disk, "256M")
	said = len(m.console())
	q.attach(t, disk, false)
	m.until(t, "a file system that grows", says(m, said, `resized filesystem to 262144\b`))
	m.until(t, "a member", says(m, said, `process=etcd from=starting to=ready`))
	q.do(t, "block_resize", map[string]any{"node-name": "hot", "size": 2 * dataSize})
	m.until(t, "a file system that grows again", says(m, said, `resized filesystem to 524288\b`))
}
